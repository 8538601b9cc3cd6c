#include "commands/watch_tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

/* Every event begins alike; say_event ends the line. */
static struct buf event_of(const char *name, const struct batch_counts *batch)
{
	struct buf out = {0};

	buf_printf(&out, "{\"event\": \"%s\"", name);
	if (batch != NULL)
		buf_printf(&out, ", \"batch\": %" PRId64, batch->number);
	return out;
}

static void say_event(struct buf *out)
{
	buf_text(out, "}\n");
	fwrite(out->data, 1, out->length, stdout);
	fflush(stdout);
	buf_free(out);
}

/* One of perhaps a thousand: it goes out with the next one that is said, or before anybody waits. */
static void say_one_of_many(struct buf *out)
{
	buf_text(out, "}\n");
	fwrite(out->data, 1, out->length, stdout);
	buf_free(out);
}

static void add_text(struct buf *out, const char *key, const char *text)
{
	buf_printf(out, ", \"%s\": ", key);
	if (text != NULL)
		buf_json_string(out, text);
	else
		buf_text(out, "null");
}

static void add_seconds(struct buf *out, double seconds)
{
	buf_printf(out, ", \"seconds\": %.6f", seconds);
}

static void add_statuses(struct buf *out, const int *by_status)
{
	for (int s = 0; s < STATUS_COUNT; s++)
		buf_printf(out, ", \"%s\": %d", status_name((enum status)s), by_status[s]);
}

/* "op_type/name" of a definition's path. */
static void add_name(struct buf *out, const char *path)
{
	const char *name = path + strlen("definitions/");

	buf_json_bytes(out, name, strlen(name) - strlen(".json"));
}

/* A verdict that names no device was not made by running anything. */
static int cases_run(const struct outcome *outcome)
{
	int run = 0;

	for (int i = 0; i < outcome->case_count; i++)
		run += outcome->cases[i].verdict != NULL && !outcome->cases[i].cached && outcome->cases[i].verdict->device != NULL;
	return run;
}

static void json_outcome(const struct batch_counts *batch, const struct outcome *outcome)
{
	struct buf out = event_of("verdict", batch);
	int run = cases_run(outcome);
	const char *comma = "";

	add_text(&out, "name", outcome->file->name);
	add_text(&out, "op_type", outcome->file->op_type);
	add_text(&out, "status", outcome->known ? status_name(outcome->status) : "unknown");
	add_text(&out, "reason", reason_name(outcome->reason));
	add_text(&out, "message", outcome->message);
	buf_printf(&out, ", \"cases_run\": %d, \"cases_cached\": %d", run, (int)outcome->counts.cases - run);
	add_seconds(&out, batch->seconds);
	buf_text(&out, ", \"cases\": ["); /* those that did not pass */
	for (int i = 0; i < outcome->case_count; i++) {
		const struct verdict *verdict = outcome->cases[i].verdict;

		if (verdict == NULL || verdict->status == STATUS_PASSED)
			continue;
		buf_text(&out, comma);
		report_json_case(&out, outcome, &outcome->cases[i]);
		comma = ", ";
	}
	buf_text(&out, "]");
	say_one_of_many(&out);
}

/* ---- lines ---------------------------------------------------------------------------------------------------- */

static const char *plural(int64_t count)
{
	return count == 1 ? "" : "s";
}

static void print_seconds(double seconds)
{
	if (seconds < 1)
		printf("%.1f ms\n", seconds * 1e3);
	else
		printf("%.2f s\n", seconds);
}

static void print_statuses(const int *by_status, const char *none)
{
	const char *comma = "";

	for (int s = 0; s < STATUS_COUNT; s++)
		if (by_status[s] > 0) {
			printf("%s%d %s", comma, by_status[s], status_name((enum status)s));
			comma = ", ";
		}
	printf("%s", comma[0] == '\0' ? none : "");
}

/* ---- the face --------------------------------------------------------------------------------------------------- */

void tell_changed(const struct watch_teller *teller, const struct batch_counts *batch, const char *const *paths, int count)
{
	if (!teller->json)
		return;
	struct buf out = event_of("changed", batch);

	buf_text(&out, ", \"names\": [");
	for (int i = 0; i < count; i++) {
		buf_text(&out, i > 0 ? ", " : "");
		add_name(&out, paths[i]);
	}
	buf_text(&out, "]");
	say_event(&out);
}

void tell_planned(const struct watch_teller *teller, const struct batch_counts *batch)
{
	if (teller->json) {
		struct buf out = event_of("plan", batch);

		buf_printf(&out, ", \"definitions\": %d, \"cases_to_run\": %" PRId64 ", \"cases_cached\": %" PRId64,
		           batch->definitions, batch->cases_planned, batch->cases_cached);
		add_seconds(&out, batch->seconds);
		say_event(&out);
		return;
	}
	if (batch->definitions < 2 || batch->cases_planned == 0)
		return;
	printf("-- %d definitions: %" PRId64 " case%s to run, %" PRId64 " known; planned in ", batch->definitions,
	       batch->cases_planned, plural(batch->cases_planned), batch->cases_cached);
	print_seconds(batch->seconds);
}

void tell_outcome(const struct watch_teller *teller, const struct batch_counts *batch, const struct outcome *outcome)
{
	if (teller->json) {
		json_outcome(batch, outcome);
		return;
	}
	/* At the start, and of a checkout, nobody wants to hear what is as it was. */
	if (outcome->status == STATUS_PASSED && outcome->known && outcome->started <= 0 && outcome->findings == 0) {
		if (batch->number == 1 || batch->definitions > 8)
			return;
		printf("verified %s/%s  %u case%s, as before; ", outcome->file->op_type, outcome->file->name,
		       outcome->counts.cases, plural(outcome->counts.cases));
		print_seconds(batch->seconds);
		return;
	}
	report_outcome(outcome, &teller->report);
}

void tell_gone(const struct watch_teller *teller, const struct batch_counts *batch, const char *path)
{
	if (teller->json) {
		struct buf out = event_of("gone", batch);

		buf_text(&out, ", \"name\": ");
		add_name(&out, path);
		say_event(&out);
		return;
	}
	const char *name = path + strlen("definitions/");

	printf("gone     %.*s\n", (int)(strlen(name) - strlen(".json")), name);
}

void tell_batch(const struct watch_teller *teller, const struct batch_counts *batch)
{
	if (teller->json) {
		struct buf out = event_of("batch", batch);

		add_statuses(&out, batch->told);
		buf_printf(&out, ", \"gone\": %d, \"cases_run\": %" PRId64 ", \"cases_cached\": %" PRId64 ", \"written\": %d",
		           batch->gone, batch->cases_run, batch->cases_cached, batch->written);
		add_seconds(&out, batch->seconds);
		say_event(&out);
		return;
	}
	printf("-- %d definition%s: ", batch->definitions, plural(batch->definitions));
	print_statuses(batch->told, "none");
	printf("%s; %" PRId64 " case%s run, %" PRId64 " cached; ", batch->gone > 0 ? " (and some gone)" : "", batch->cases_run,
	       plural(batch->cases_run), batch->cases_cached);
	if (batch->written > 0)
		printf("%d test file%s written; ", batch->written, plural(batch->written));
	print_seconds(batch->seconds);
}

void tell_ready(const struct watch_teller *teller, const char *root, const struct roll *roll)
{
	if (teller->json) {
		struct buf out = event_of("ready", NULL);

		add_text(&out, "root", root);
		buf_printf(&out, ", \"definitions\": %d", roll->count);
		add_statuses(&out, roll->by_status);
		say_event(&out);
		return;
	}
	printf("== watching %s: %d definition%s, ", root, roll->count, plural(roll->count));
	print_statuses(roll->by_status, "nothing known");
	printf("\n");
	fflush(stdout);
}

void tell_notice(const struct watch_teller *teller, const char *sentence)
{
	if (teller->json) {
		struct buf out = event_of("notice", NULL);

		add_text(&out, "message", sentence);
		say_event(&out);
	}
	fflush(stdout);
	fprintf(stderr, "reftest: %s\n", sentence);
}

void tell_command(const struct watch_teller *teller, const char *how_it_ended)
{
	if (teller->json) {
		struct buf out = event_of("exec", NULL);

		add_text(&out, "ended", how_it_ended);
		say_event(&out);
	} else {
		printf("-- the command of --exec has ended: %s\n", how_it_ended);
		fflush(stdout);
	}
}
