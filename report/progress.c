#include "report/progress.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/screen.h"
#include "engine/remembered_seconds.h"
#include "engine/run_pools.h"
#include "report/text.h"

/* ---- the stream -------------------------------------------------------------------------------------------------- */

static ssize_t write_above(void *self, const char *text, size_t length)
{
	struct progress_display *display = self;

	if (getpid() == display->owner)
		progress_erase(display);
	size_t written = fwrite(text, 1, length, display->terminal);

	return fflush(display->terminal) == 0 && written == length ? (ssize_t)length : 0;
}

/* Replaces `stderr`, which is a variable in glibc, by a stream that erases the progress lines before it writes. This is
 * needed because any module may print a message to `stderr` during a run. */
void progress_open(struct progress_display *display, bool wanted)
{
	*display = (struct progress_display){.terminal = stderr, .owner = getpid()};
	if (!wanted)
		return;
	display->hook = fopencookie(display, "w", (cookie_io_functions_t){.write = write_above});
	if (display->hook == NULL)
		return;
	setvbuf(display->hook, NULL, _IONBF, 0);
	stderr = display->hook;
	display->on = true;
}

void progress_close(struct progress_display *display)
{
	if (!display->on)
		return;
	progress_erase(display);
	stderr = display->terminal;
	fclose(display->hook);
	display->on = false;
}

/* ---- the lines --------------------------------------------------------------------------------------------------- */

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void add_duration(struct screen_line *line, double seconds)
{
	char text[32];
	int64_t whole = (int64_t)ceil(seconds);

	if (whole < 120)
		snprintf(text, sizeof text, "%" PRId64 " s", whole < 1 ? 1 : whole);
	else if (whole < 7200)
		snprintf(text, sizeof text, "%" PRId64 " min", (whole + 30) / 60);
	else
		snprintf(text, sizeof text, "%.1f h", (double)whole / 3600);
	screen_line_add(line, text);
}

static void add_wrong(struct screen_line *line, const struct run *run)
{
	char text[64];

	if (run->cases_wrong == 0)
		return;
	snprintf(text, sizeof text, "%" PRId64 " failed", run->cases_wrong);
	screen_line_add(line, ", ");
	if (run->program->colour)
		screen_line_colour(line, report_colour(STATUS_FAILED));
	screen_line_add(line, text);
	if (run->program->colour)
		screen_line_colour(line, "\033[0m");
}

/* Writes the first line: "12 of 87 cases in 8 s, 1 failed, about 40 s left". */
static void head_line(struct screen_line *line, const struct run *run, double now)
{
	bool planned = run->visited >= run->selected_count;
	char text[128];

	if (run->cases_planned == 0)
		snprintf(text, sizeof text, "%d of %d definitions looked up", run->visited, run->selected_count);
	else
		snprintf(text, sizeof text, "%" PRId64 " of %" PRId64 "%s cases", run->cases_run, run->cases_planned,
			 planned ? "" : "+");
	screen_line_add(line, text);
	screen_line_add(line, " in ");
	add_duration(line, floor(run_seconds(run)));
	add_wrong(line, run);
	double left = planned && run->cases_planned > 0 ? remembered_seconds_left(run, run_lanes(run->options, &run->machine), now) : -1;

	if (left >= 0) {
		screen_line_add(line, ", about ");
		add_duration(line, left);
		screen_line_add(line, " left");
	}
}

/* Writes the line of a runner: "  runner 1     3 s  rmsnorm/rmsnorm_h2048 small:batch_size=1". */
static void lane_line(struct screen_line *line, const struct pool_running *running, double now)
{
	const struct result *result = running->owner;
	char text[64];

	if (running->started > 0)
		snprintf(text, sizeof text, "  runner %d %4.0f s  ", running->lane + 1, floor(now - running->started));
	else
		snprintf(text, sizeof text, "  runner %d starts  ", running->lane + 1);
	screen_line_add(line, text);
	if (running->preparing != NULL) {
		screen_line_add(line, running->preparing);
		screen_line_add(line, ": ");
	}
	screen_line_add(line, result->file->op_type);
	screen_line_add(line, "/");
	screen_line_add(line, result->file->name);
	screen_line_add(line, " ");
	screen_line_add(line, running->job->id);
}

static int running_now(const struct run *run, struct pool_running *out)
{
	return run->runner.calls != NULL ? run->runner.calls->running(run->runner.self, out, RUNNING_MOST) : 0;
}

static void add_line(struct progress_display *display, const struct screen_line *line, struct buf *out)
{
	buf_text(out, display->count > 0 ? "\n" : "");
	buf_add(out, line->text, line->length);
	display->drawn[display->count++] = line->used;
}

void progress_draw(struct progress_display *display, const struct run *run)
{
	const int columns = screen_columns(STDERR_FILENO), rows = screen_rows(STDERR_FILENO);
	const int most = rows - 1 < PROGRESS_LINES ? rows - 1 : PROGRESS_LINES;
	struct pool_running running[RUNNING_MOST];
	struct buf out = {0};
	double now = seconds_now();

	if (!display->on || screen_in_background(STDERR_FILENO))
		return;
	screen_erase(display->drawn, display->count, columns, &out);
	display->count = 0;
	struct screen_line head = {.room = columns - 1};

	head_line(&head, run, now);
	add_line(display, &head, &out);
	int count = running_now(run, running);

	for (int i = 0; i < count && display->count < most; i++) {
		struct screen_line line = {.room = columns - 1};

		if (display->count == most - 1 && i + 1 < count) {
			char text[64];

			snprintf(text, sizeof text, "  and %d more runners", count - i);
			screen_line_add(&line, text);
			i = count;
		} else {
			lane_line(&line, &running[i], now);
		}
		add_line(display, &line, &out);
	}
	fwrite(out.data, 1, out.length, display->terminal);
	fflush(display->terminal);
	buf_free(&out);
}

void progress_erase(struct progress_display *display)
{
	struct buf out = {0};

	if (!display->on || display->count == 0)
		return;
	if (!screen_in_background(STDERR_FILENO)) /* in the background, the cursor may be in a line of another
						   * process */
		screen_erase(display->drawn, display->count, screen_columns(STDERR_FILENO), &out);
	display->count = 0;
	fwrite(out.data, 1, out.length, display->terminal);
	fflush(display->terminal);
	buf_free(&out);
}
