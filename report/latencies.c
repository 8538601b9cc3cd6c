#include "report/latencies.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/show.h"
#include "report/run_json.h"

struct shown {
	char text[32];
};

/* Writes a time with three significant digits and a unit. */
static struct shown show_seconds(double seconds)
{
	static const struct unit {
		double size;
		const char *name;
	} units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {0, "ns"}};
	const struct unit *unit = units;
	struct shown out;

	while (seconds < unit->size)
		unit++;
	snprintf(out.text, sizeof out.text, "%.3g %s", seconds / (unit->size > 0 ? unit->size : 1e-9), unit->name);
	return out;
}

static void print_spread(const char *kind, const struct latency_spread *spread)
{
	if (spread->runs == 1)
		show_print(stdout, "  %s %s (1 run)", kind, show_seconds(spread->median).text);
	else if (spread->runs > 1)
		show_print(stdout, "  %s %s (%s to %s, %d runs)", kind, show_seconds(spread->median).text,
			   show_seconds(spread->low).text, show_seconds(spread->high).text, spread->runs);
}

void latencies_print(const struct result *result)
{
	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *v = result->cases[i].verdict;

		if (v == NULL || v->latency_count == 0)
			continue;
		show_print(stdout, "         %s: %s\n", result->cases[i].test->id, status_name(v->status));
		for (int k = 0; k < v->latency_count; k++) {
			show_print(stdout, "           %-20s", v->latencies[k].name);
			print_spread("cold", &v->latencies[k].cold);
			print_spread("warm", &v->latencies[k].warm);
			show_print(stdout, "%s\n", v->latencies[k].cuda_events ? "" : ", wall clock");
		}
	}
}

static void add_line(struct buf *out, const struct result *result, const struct case_result *c, long long now)
{
	buf_printf(out, "{\"time\": %lld, \"op_type\": ", now);
	buf_json_string(out, result->file->op_type);
	buf_text(out, ", \"name\": ");
	buf_json_string(out, result->file->name);
	buf_text(out, ", \"case\": ");
	report_json_case(out, result, c);
	buf_text(out, "}\n");
}

/* Appends all lines with one call of write, so that the lines of several processes do not mix. */
static int append(const char *root, const struct buf *lines, struct err *err)
{
	struct arena arena = {0};
	const char *path = arena_printf(&arena, "%s/" LATENCIES_FILE, root);

	mkdir(arena_printf(&arena, "%s/.reftest", root), 0777);
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	int rc = fd >= 0 && write(fd, lines->data, lines->length) == (ssize_t)lines->length
		     ? 0
		     : err_errno(err, "cannot append to %s", path);

	if (fd >= 0)
		close(fd);
	arena_free(&arena);
	return rc;
}

int latencies_keep(const struct run *run, struct err *err)
{
	long long now = (long long)time(NULL);
	struct buf lines = {0};
	int rc = 0;

	for (int i = 0; i < run->count; i++)
		for (int k = 0; k < run->results[i]->case_count; k++) {
			const struct case_result *c = &run->results[i]->cases[k];

			if (c->verdict != NULL && c->verdict->latency_count > 0)
				add_line(&lines, run->results[i], c, now);
		}
	if (lines.length > 0)
		rc = append(run->program->root, &lines, err);
	buf_free(&lines);
	return rc;
}
