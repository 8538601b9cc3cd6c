#include "report/drift_list.h"

#include <inttypes.h>
#include <string.h>

#include "dataset/verdict.h"

static const char *const kinds[DRIFT_KINDS] = {[DRIFT_GREW] = "grew", [DRIFT_FELL] = "fell", [DRIFT_STAYED] = "stayed"};

/* Appends a version that differs between the two verdicts, for example "torch 2.12.0 -> 2.13.0". */
static void add_change(const char *what, const char *from, const char *to, const char **comma, struct buf *out)
{
	if (strcmp(from, to) == 0)
		return;
	buf_printf(out, "%s%s %s -> %s", *comma, what, *from != '\0' ? from : "unknown", *to != '\0' ? to : "unknown");
	*comma = ", ";
}

static void add_changes(const struct margin_drift *d, struct buf *out)
{
	const char *comma = "";

	add_change("torch", d->from.torch, d->to.torch, &comma, out);
	add_change("CUDA", d->from.cuda, d->to.cuda, &comma, out);
	/* a missing driver version does not count as a change, because older versions of reftest did not store it */
	if (*d->from.driver != '\0' && *d->to.driver != '\0')
		add_change("driver", d->from.driver, d->to.driver, &comma, out);
	add_change(d->to.ground_truth, d->from.version, d->to.version, &comma, out);
	if (*comma == '\0')
		buf_text(out, "a ground truth other than the one used for this margin has changed");
}

static void text_drift(const struct margin_drift *d, struct buf *out)
{
	buf_printf(out, "%-8s %s/%s on %s: margin %.3g -> %.3g", kinds[margin_drift_kind(d)], d->result->file->op_type,
		   d->result->file->name, d->to.device_class, d->from.margin, d->to.margin);
	buf_printf(out, d->to.margin > 1 ? ", above the bound\n" : ", %.0f %% of the bound\n", 100 * d->to.margin);
	buf_printf(out, "         %s: ", d->c->test->id);
	add_changes(d, out);
	buf_text(out, "\n");
}

void drift_list_text(const struct margin_drifts *drifts, bool each, struct buf *out)
{
	int counts[DRIFT_KINDS] = {0};

	for (int i = 0; i < drifts->count; i++) {
		enum drift_kind kind = margin_drift_kind(&drifts->items[i]);

		counts[kind]++;
		if (each || kind != DRIFT_STAYED)
			text_drift(&drifts->items[i], out);
	}
	if (drifts->count > 0)
		buf_printf(out, "margins: %d grew, %d fell, %d changed by at most a factor of two; ",
			   counts[DRIFT_GREW], counts[DRIFT_FELL], counts[DRIFT_STAYED]);
	buf_printf(out, "%d definition%s fewer than two verdicts to compare\n", drifts->never_compared,
		   drifts->never_compared == 1 ? " has" : "s have");
}

static void json_point(const char *key, const struct margin_point *point, struct buf *out)
{
	buf_printf(out, ", \"%s\": {\"time\": %" PRId64 ", \"margin\": ", key, point->time);
	buf_json_number(out, point->margin);
	buf_json_next_member(out, "status", status_name(point->status));
	buf_json_next_member(out, "torch", point->torch);
	buf_json_next_member(out, "cuda", point->cuda);
	buf_json_next_member(out, "driver", point->driver);
	buf_json_next_member(out, "ground_truth", point->ground_truth);
	buf_json_next_member(out, "version", point->version);
	buf_text(out, "}");
}

static void json_drift(const struct margin_drift *d, struct buf *out)
{
	buf_text(out, "{");
	buf_json_member(out, "name", d->result->file->name);
	buf_json_next_member(out, "op_type", d->result->file->op_type);
	buf_json_next_member(out, "case", d->c->test->id);
	buf_json_next_member(out, "device_class", d->to.device_class);
	buf_json_next_member(out, "moved", kinds[margin_drift_kind(d)]);
	buf_text(out, ", \"factor\": ");
	buf_json_number(out, d->factor);
	json_point("from", &d->from, out);
	json_point("to", &d->to, out);
	buf_text(out, "}");
}

void drift_list_json(const struct margin_drifts *drifts, struct buf *out)
{
	buf_text(out, "\"drifts\": [");
	for (int i = 0; i < drifts->count; i++) {
		buf_text(out, i > 0 ? ",\n  " : "\n  ");
		json_drift(&drifts->items[i], out);
	}
	buf_printf(out, "],\n \"single\": %d", drifts->never_compared);
}
