#include "report/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "report/common_diagnosis.h"
#include "report/run_json.h"
#include "report/totals.h"

/* Starts the line of an event: a JSON object with the fields that every event has. To end the line, call end_event or
 * buffer_event. */
static struct buf event_of(const char *name, const struct batch_counts *batch)
{
	struct buf out = {0};

	buf_printf(&out, "{\"event\": \"%s\"", name);
	if (batch != NULL)
		buf_printf(&out, ", \"batch\": %" PRId64, batch->number);
	return out;
}

static void end_event(struct buf *out)
{
	buf_text(out, "}\n");
	fwrite(out->data, 1, out->length, stdout);
	fflush(stdout);
	buf_free(out);
}

/* Ends the line of an event. Does not flush standard output, because a batch may have a thousand such events. The next
 * end_event flushes the line, or the watcher does so before it waits. */
static void buffer_event(struct buf *out)
{
	buf_text(out, "}\n");
	fwrite(out->data, 1, out->length, stdout);
	buf_free(out);
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

/* Appends the name "op_type/name" of the definition at `path`. */
static void add_name(struct buf *out, const char *path)
{
	const char *name = path + strlen("definitions/");

	buf_json_bytes(out, name, strlen(name) - strlen(".json"));
}

/* Returns the number of cases that ran in this run. (If a verdict has no device, its case did not run.) */
static int cases_run(const struct result *result)
{
	int run = 0;

	for (int i = 0; i < result->case_count; i++)
		run += result->cases[i].verdict != NULL && !result->cases[i].cached &&
		       result->cases[i].verdict->device != NULL;
	return run;
}

void event_verdict(const struct batch_counts *batch, const struct result *result)
{
	struct buf out = event_of("verdict", batch);
	int run = cases_run(result);
	const char *comma = "";

	buf_json_next_member(&out, "name", result->file->name);
	buf_json_next_member(&out, "op_type", result->file->op_type);
	buf_json_next_member(&out, "status", result->known ? status_name(result->status) : "unknown");
	buf_json_next_member(&out, "reason", reason_name(result->reason));
	buf_json_next_member(&out, "message", result->message);
	buf_printf(&out, ", \"cases_run\": %d, \"cases_cached\": %d", run, (int)result->counts.cases - run);
	add_seconds(&out, batch->seconds);
	report_json_approval(&out, result);
	diagnosis_json(result, &out);
	buf_text(&out, ", \"cases\": ["); /* the array contains only the cases that did not pass */
	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *verdict = result->cases[i].verdict;

		if (verdict == NULL || verdict->status == STATUS_PASSED)
			continue;
		buf_text(&out, comma);
		report_json_case(&out, result, &result->cases[i]);
		comma = ", ";
	}
	buf_text(&out, "]");
	buffer_event(&out);
}

void event_changed(const struct batch_counts *batch, const char *const *paths, int count)
{
	struct buf out = event_of("changed", batch);

	buf_text(&out, ", \"names\": [");
	for (int i = 0; i < count; i++) {
		buf_text(&out, i > 0 ? ", " : "");
		add_name(&out, paths[i]);
	}
	buf_text(&out, "]");
	end_event(&out);
}

void event_plan(const struct batch_counts *batch)
{
	struct buf out = event_of("plan", batch);

	buf_printf(&out, ", \"definitions\": %d, \"cases_to_run\": %" PRId64 ", \"cases_cached\": %" PRId64,
		   batch->definitions, batch->cases_planned, batch->cases_cached);
	add_seconds(&out, batch->seconds);
	end_event(&out);
}

void event_gone(const struct batch_counts *batch, const char *path)
{
	struct buf out = event_of("gone", batch);

	buf_text(&out, ", \"name\": ");
	add_name(&out, path);
	end_event(&out);
}

void event_batch(const struct batch_counts *batch)
{
	struct buf out = event_of("batch", batch);

	add_statuses(&out, batch->verdicts);
	buf_printf(&out,
		   ", \"gone\": %d, \"cases_run\": %" PRId64 ", \"cases_cached\": %" PRId64 ", \"written\": %d",
		   batch->gone, batch->cases_run, batch->cases_cached, batch->written);
	add_seconds(&out, batch->seconds);
	end_event(&out);
}

void event_ready(const char *root, int definitions, const int *by_status)
{
	struct buf out = event_of("ready", NULL);

	buf_json_next_member(&out, "root", root);
	buf_printf(&out, ", \"definitions\": %d", definitions);
	add_statuses(&out, by_status);
	end_event(&out);
}

void event_notice(const char *sentence)
{
	struct buf out = event_of("notice", NULL);

	buf_json_next_member(&out, "message", sentence);
	end_event(&out);
}

void event_exec(const char *how_it_ended)
{
	struct buf out = event_of("exec", NULL);

	buf_json_next_member(&out, "ended", how_it_ended);
	end_event(&out);
}

void event_end(int exit_status)
{
	struct buf out = event_of("end", NULL);

	buf_printf(&out, ", \"exit\": %d", exit_status);
	end_event(&out);
}

struct batch_counts event_counts(const struct run *run)
{
	const struct totals totals = totals_of(run);
	struct batch_counts counts = {.number = 1,
				      .definitions = (int)totals.definitions,
				      .cases_planned = run->cases_planned,
				      .cases_run = run->cases_run,
				      .cases_cached = run->cases_cached,
				      .seconds = run_seconds(run)};

	for (int s = 0; s < STATUS_COUNT; s++)
		counts.verdicts[s] = (int)totals.by_status[s];
	return counts;
}
