#include "watcher/watch_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/show.h"

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

/* Starts the JSON object of an event, with the fields that every event has. end_event or buffer_event ends the line. */
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

/* Ends the line of an event. Does not flush standard output, because a batch may have a thousand such events. The line
 * is flushed by the next end_event or before the watcher waits. */
static void buffer_event(struct buf *out)
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

/* Appends the name "op_type/name" of the definition at `path`. */
static void add_name(struct buf *out, const char *path)
{
	const char *name = path + strlen("definitions/");

	buf_json_bytes(out, name, strlen(name) - strlen(".json"));
}

/* Returns the number of cases that ran. A verdict has no device if its case did not run. */
static int cases_run(const struct result *result)
{
	int run = 0;

	for (int i = 0; i < result->case_count; i++)
		run += result->cases[i].verdict != NULL && !result->cases[i].cached &&
		       result->cases[i].verdict->device != NULL;
	return run;
}

static void json_outcome(const struct batch_counts *batch, const struct result *result)
{
	struct buf out = event_of("verdict", batch);
	int run = cases_run(result);
	const char *comma = "";

	add_text(&out, "name", result->file->name);
	add_text(&out, "op_type", result->file->op_type);
	add_text(&out, "status", result->known ? status_name(result->status) : "unknown");
	add_text(&out, "reason", reason_name(result->reason));
	add_text(&out, "message", result->message);
	buf_printf(&out, ", \"cases_run\": %d, \"cases_cached\": %d", run, (int)result->counts.cases - run);
	add_seconds(&out, batch->seconds);
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

/* ---- text ----------------------------------------------------------------------------------------------------- */

static const char *plural(int64_t count)
{
	return count == 1 ? "" : "s";
}

static void print_seconds(double seconds)
{
	if (seconds < 1)
		show_print(stdout, "%.1f ms\n", seconds * 1e3);
	else
		show_print(stdout, "%.2f s\n", seconds);
}

static void print_statuses(const int *by_status, const char *none)
{
	const char *comma = "";

	for (int s = 0; s < STATUS_COUNT; s++)
		if (by_status[s] > 0) {
			show_print(stdout, "%s%d %s", comma, by_status[s], status_name((enum status)s));
			comma = ", ";
		}
	show_print(stdout, "%s", comma[0] == '\0' ? none : "");
}

/* ---- the interface
 * --------------------------------------------------------------------------------------------------- */

void print_changed(const struct watch_output *output, const struct batch_counts *batch, const char *const *paths,
		  int count)
{
	if (!output->json)
		return;
	struct buf out = event_of("changed", batch);

	buf_text(&out, ", \"names\": [");
	for (int i = 0; i < count; i++) {
		buf_text(&out, i > 0 ? ", " : "");
		add_name(&out, paths[i]);
	}
	buf_text(&out, "]");
	end_event(&out);
}

void print_planned(const struct watch_output *output, const struct batch_counts *batch)
{
	if (output->json) {
		struct buf out = event_of("plan", batch);

		buf_printf(&out, ", \"definitions\": %d, \"cases_to_run\": %" PRId64 ", \"cases_cached\": %" PRId64,
			   batch->definitions, batch->cases_planned, batch->cases_cached);
		add_seconds(&out, batch->seconds);
		end_event(&out);
		return;
	}
	if (batch->definitions < 2 || batch->cases_planned == 0)
		return;
	show_print(stdout, "-- %d definitions: %" PRId64 " case%s to run, %" PRId64 " stored; planned in ", batch->definitions,
	       batch->cases_planned, plural(batch->cases_planned), batch->cases_cached);
	print_seconds(batch->seconds);
}

void print_result(const struct watch_output *output, const struct batch_counts *batch, const struct result *result)
{
	if (output->json) {
		json_outcome(batch, result);
		return;
	}
	/* In the first batch and in large batches, a definition that passed without running a case is not printed. */
	if (result->status == STATUS_PASSED && result->known && result->started <= 0 && result->findings == 0) {
		if (batch->number == 1 || batch->definitions > 8)
			return;
		show_print(stdout, "verified %s/%s  %u case%s, as before; ", result->file->op_type, result->file->name,
		       result->counts.cases, plural(result->counts.cases));
		print_seconds(batch->seconds);
		return;
	}
	report_result(result, &output->report);
}

void print_gone(const struct watch_output *output, const struct batch_counts *batch, const char *path)
{
	if (output->json) {
		struct buf out = event_of("gone", batch);

		buf_text(&out, ", \"name\": ");
		add_name(&out, path);
		end_event(&out);
		return;
	}
	const char *name = path + strlen("definitions/");

	show_print(stdout, "gone     %.*s\n", (int)(strlen(name) - strlen(".json")), name);
}

void print_batch(const struct watch_output *output, const struct batch_counts *batch)
{
	if (output->json) {
		struct buf out = event_of("batch", batch);

		add_statuses(&out, batch->verdicts);
		buf_printf(&out,
			   ", \"gone\": %d, \"cases_run\": %" PRId64 ", \"cases_cached\": %" PRId64 ", \"written\": %d",
			   batch->gone, batch->cases_run, batch->cases_cached, batch->written);
		add_seconds(&out, batch->seconds);
		end_event(&out);
		return;
	}
	show_print(stdout, "-- %d definition%s: ", batch->definitions, plural(batch->definitions));
	print_statuses(batch->verdicts, "none");
	show_print(stdout, "%s; %" PRId64 " case%s run, %" PRId64 " cached; ", batch->gone > 0 ? " (some were deleted)" : "",
	       batch->cases_run, plural(batch->cases_run), batch->cases_cached);
	if (batch->written > 0)
		show_print(stdout, "%d test file%s written; ", batch->written, plural(batch->written));
	print_seconds(batch->seconds);
}

void print_ready(const struct watch_output *output, const char *root, const struct last_statuses *table)
{
	if (output->json) {
		struct buf out = event_of("ready", NULL);

		add_text(&out, "root", root);
		buf_printf(&out, ", \"definitions\": %d", table->count);
		add_statuses(&out, table->by_status);
		end_event(&out);
		return;
	}
	show_print(stdout, "== watching %s: %d definition%s, ", root, table->count, plural(table->count));
	print_statuses(table->by_status, "nothing known");
	show_print(stdout, "\n");
	fflush(stdout);
}

void print_notice(const struct watch_output *output, const char *sentence)
{
	if (output->json) {
		struct buf out = event_of("notice", NULL);

		add_text(&out, "message", sentence);
		end_event(&out);
	}
	fflush(stdout);
	show_print(stderr, "reftest: %s\n", sentence);
}

void print_command(const struct watch_output *output, const char *how_it_ended)
{
	if (output->json) {
		struct buf out = event_of("exec", NULL);

		add_text(&out, "ended", how_it_ended);
		end_event(&out);
	} else {
		show_print(stdout, "-- the command of --exec ended: %s\n", how_it_ended);
		fflush(stdout);
	}
}
