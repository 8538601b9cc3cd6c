#include "watcher/watch_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/show.h"
#include "base/show_wrapped.h"

/* ---- text ----------------------------------------------------------------------------------------------------- */

static const char *plural(int64_t count)
{
	return count == 1 ? "" : "s";
}

static void add_seconds(struct buf *line, double seconds)
{
	if (seconds < 1)
		buf_printf(line, "%.1f ms", seconds * 1e3);
	else
		buf_printf(line, "%.2f s", seconds);
}

static void add_statuses(struct buf *line, const int *by_status, const char *none)
{
	const char *comma = "";

	for (int s = 0; s < STATUS_COUNT; s++)
		if (by_status[s] > 0) {
			buf_printf(line, "%s%d %s", comma, by_status[s], status_name((enum status)s));
			comma = ", ";
		}
	buf_text(line, comma[0] == '\0' ? none : "");
}

/* Prints a line, folded to the width of the terminal, and frees it. */
static void print_line(struct buf *line)
{
	buf_text(line, "\n");
	show_wrapped(stdout, line->data);
	buf_free(line);
}

/* ---- the interface ----------------------------------------------------------------------------------------------- */

void print_changed(const struct watch_output *output, const struct batch_counts *batch, const char *const *paths,
		  int count)
{
	if (output->json)
		event_changed(batch, paths, count);
}

void print_planned(const struct watch_output *output, const struct batch_counts *batch)
{
	if (output->json) {
		event_plan(batch);
		return;
	}
	if (batch->definitions < 2 || batch->cases_planned == 0)
		return;
	struct buf line = {0};

	buf_printf(&line, "-- %d definitions: %" PRId64 " case%s to run, %" PRId64 " with a stored verdict; "
			  "planned in ",
		   batch->definitions, batch->cases_planned, plural(batch->cases_planned), batch->cases_cached);
	add_seconds(&line, batch->seconds);
	print_line(&line);
}

void print_result(const struct watch_output *output, const struct batch_counts *batch, const struct result *result)
{
	if (output->json) {
		event_verdict(batch, result);
		return;
	}
	/* In the first batch and in large batches, a definition that passed without running a case is not printed. */
	if (result->status == STATUS_PASSED && result->known && result->started <= 0 && result->findings == 0) {
		if (batch->number == 1 || batch->definitions > 8)
			return;
		struct buf line = {0};

		buf_printf(&line, "verified %s/%s  %u case%s, as before; ", result->file->op_type, result->file->name,
			   result->counts.cases, plural(result->counts.cases));
		add_seconds(&line, batch->seconds);
		print_line(&line);
		return;
	}
	report_result(result, &output->report);
}

void print_gone(const struct watch_output *output, const struct batch_counts *batch, const char *path)
{
	if (output->json) {
		event_gone(batch, path);
		return;
	}
	const char *name = path + strlen("definitions/");

	show_print(stdout, "gone     %.*s\n", (int)(strlen(name) - strlen(".json")), name);
}

void print_batch(const struct watch_output *output, const struct batch_counts *batch)
{
	if (output->json) {
		event_batch(batch);
		return;
	}
	struct buf line = {0};

	buf_printf(&line, "-- %d definition%s: ", batch->definitions, plural(batch->definitions));
	add_statuses(&line, batch->verdicts, "none");
	buf_printf(&line, "%s; %" PRId64 " case%s run, %" PRId64 " cached; ", batch->gone > 0 ? " (some were deleted)" : "",
		   batch->cases_run, plural(batch->cases_run), batch->cases_cached);
	if (batch->written > 0)
		buf_printf(&line, "%d test file%s written; ", batch->written, plural(batch->written));
	add_seconds(&line, batch->seconds);
	print_line(&line);
}

void print_ready(const struct watch_output *output, const char *root, const struct last_statuses *table)
{
	if (output->json) {
		event_ready(root, table->count, table->by_status);
		return;
	}
	struct buf line = {0};

	buf_printf(&line, "== watching %s: %d definition%s, ", root, table->count, plural(table->count));
	add_statuses(&line, table->by_status, "nothing known");
	print_line(&line);
	fflush(stdout);
}

void print_notice(const struct watch_output *output, const char *sentence)
{
	if (output->json)
		event_notice(sentence);
	fflush(stdout);
	show_print(stderr, "reftest: %s\n", sentence);
}

void print_command(const struct watch_output *output, const char *how_it_ended)
{
	if (output->json) {
		event_exec(how_it_ended);
		return;
	}
	show_print(stdout, "-- the command given by --exec ended: %s\n", how_it_ended);
	fflush(stdout);
}
