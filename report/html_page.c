#include "report/html_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/definition_status.h"
#include "engine/margin_history.h"
#include "report/coverage_matrix.h"
#include "report/common_diagnosis.h"
#include "report/run_json.h"
#include "report/text.h"
#include "report/totals.h"

/* BAD_CASES: the maximum number of cases of a definition that are shown in full. HISTORY: the maximum number of points
 * in the history of a definition's margins. */
enum { BAD_CASES = 8, HISTORY = 64, DIGEST_SHOWN = 12 };

__asm__(".pushsection .rodata\n"
	"page_begin:\n"
	".incbin \"report/page.html\"\n"
	"page_end:\n"
	".byte 0\n"
	".popsection\n");

extern const char page_begin[] __attribute__((visibility("hidden")));
extern const char page_end[] __attribute__((visibility("hidden")));

static void json_real(struct buf *out, const char *key, double value)
{
	buf_printf(out, "\"%s\": ", key);
	buf_json_number(out, value);
}

/* ---- the margins of a definition ------------------------------------------------------------------------------- */

/* The largest margin of a definition's cases for one device class and one combination of versions of torch, CUDA,
 * driver and ground truth. */
struct version_margin {
	const struct margin_point *last; /* the newest of several margins with the same versions */
	double margin;
};

static bool same_versions(const struct margin_point *a, const struct margin_point *b)
{
	return strcmp(a->torch, b->torch) == 0 && strcmp(a->cuda, b->cuda) == 0 &&
	       strcmp(a->driver, b->driver) == 0 &&
	       strcmp(a->ground_truth, b->ground_truth) == 0 && strcmp(a->version, b->version) == 0 &&
	       strcmp(a->device_class, b->device_class) == 0;
}

static int add_point(struct version_margin *list, int count, const struct margin_point *point)
{
	for (int i = 0; i < count; i++) {
		if (!same_versions(list[i].last, point))
			continue;
		list[i].margin = fmax(list[i].margin, point->margin);
		list[i].last = point->time > list[i].last->time ? point : list[i].last;
		return count;
	}
	if (count < HISTORY)
		list[count++] = (struct version_margin){point, point->margin};
	return count;
}

static int by_time(const void *a, const void *b)
{
	const struct version_margin *x = a, *y = b;

	return (x->last->time > y->last->time) - (x->last->time < y->last->time);
}

/* Writes the largest margin for each combination of versions to `list`, oldest first. Returns the number of margins in
 * `list`. */
static int history_of(const struct result *result, struct arena *arena, struct version_margin *list)
{
	int count = 0;

	for (int i = 0; i < result->case_count; i++) {
		const struct margin_point *points;
		int found = result->cases[i].test->beside ? 0 : margin_history(result, &result->cases[i], arena, &points);

		for (int k = 0; k < found; k++)
			count = add_point(list, count, &points[k]);
	}
	qsort(list, (size_t)count, sizeof *list, by_time);
	return count;
}

/* Appends a text such as "torch 2.13.0+cpu, builtin 1f4b2c9a77e0 on cpu". The version of the ground truth `builtin` is
 * a digest. */
static void name_versions(const struct margin_point *point, struct buf *out)
{
	int shown = strcmp(point->ground_truth, "builtin") == 0 ? DIGEST_SHOWN : (int)strlen(point->version);

	buf_printf(out, "torch %s, ", *point->torch != '\0' ? point->torch : "unknown");
	if (*point->cuda != '\0')
		buf_printf(out, "CUDA %s, ", point->cuda);
	if (*point->driver != '\0')
		buf_printf(out, "driver %s, ", point->driver);
	buf_printf(out, "%s %.*s on %s", *point->ground_truth != '\0' ? point->ground_truth : "no ground truth", shown,
		   point->version, point->device_class);
}

static void json_history(const struct result *result, struct arena *arena, struct buf *out)
{
	struct version_margin *list = arena_array(arena, HISTORY, sizeof *list);
	int count = history_of(result, arena, list);

	buf_text(out, ", \"history\": [");
	for (int i = 0; i < count; i++) {
		struct buf with = {0};

		name_versions(list[i].last, &with);
		buf_printf(out, "%s{\"time\": %" PRId64 ", ", i > 0 ? ", " : "", list[i].last->time);
		json_real(out, "margin", list[i].margin);
		buf_json_next_member(out, "with", with.data);
		buf_text(out, "}");
		buf_free(&with);
	}
	buf_text(out, "]");
}

/* ---- a definition ---------------------------------------------------------------------------------------------- */

/* Returns the largest margin of the definition's cases, or NaN if no case has one. Ignores cases that do not change the
 * definition's status (test_case.beside). */
static double margin_of(const struct result *result, struct arena *arena)
{
	double margin = (double)NAN;

	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *v = margin_verdict(&result->cases[i], arena);

		if (v != NULL && !result->cases[i].test->beside)
			margin = fmax(margin, verdict_margin(v));
	}
	return margin;
}

/* Appends the names of the ground truths with which the cases were compared, without duplicates. */
static void json_ground_truths(const struct result *result, struct buf *out)
{
	const char *names[GROUND_TRUTHS_MAX];
	int count = 0;

	buf_text(out, ", \"ground_truths\": [");
	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *v = result->cases[i].verdict;
		bool listed = v == NULL || v->ground_truth == NULL || count == GROUND_TRUTHS_MAX;

		for (int k = 0; k < count && !listed; k++)
			listed = strcmp(names[k], v->ground_truth) == 0;
		if (listed)
			continue;
		buf_text(out, count > 0 ? ", " : "");
		buf_json_string(out, v->ground_truth);
		names[count++] = v->ground_truth;
	}
	buf_text(out, "]");
}

/* Appends the cases whose verdict is worse than passed or has findings. */
static void json_bad_cases(const struct result *result, struct buf *out)
{
	int bad = 0;

	buf_text(out, ", \"bad\": [");
	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *v = result->cases[i].verdict;

		if (case_lacks_verdict(&result->cases[i]) ||
		    (status_group(v->status) == GROUP_VERIFIED && v->finding_count == 0) || bad++ >= BAD_CASES)
			continue;
		buf_text(out, bad > 1 ? ", " : "");
		report_json_case(out, result, &result->cases[i]);
	}
	buf_printf(out, "], \"more_bad\": %d", bad > BAD_CASES ? bad - BAD_CASES : 0);
}

static void json_definition(const struct result *result, struct buf *out)
{
	struct arena arena = {0};

	buf_text(out, "{");
	buf_json_member(out, "name", result->file->name);
	buf_json_next_member(out, "op_type", result->file->op_type);
	buf_json_next_member(out, "status", report_status(result));
	buf_json_next_member(out, "reason", totals_lacks_verdict(result) ? NULL : reason_name(result->reason));
	buf_json_next_member(out, "message", result->message);
	buf_json_next_member(out, "family", result->made != NULL && result->made->op != NULL ? result->made->op->op->name : NULL);
	buf_printf(out, ", \"cases\": %u, \"passed\": %u, ", result->counts.cases, result->counts.passed);
	json_real(out, "margin", margin_of(result, &arena));
	json_ground_truths(result, out);
	diagnosis_json(result, out);
	json_history(result, &arena, out);
	json_bad_cases(result, out);
	buf_text(out, "}");
	arena_free(&arena);
}

/* ---- the page -------------------------------------------------------------------------------------------------- */

static void json_totals(const struct run *run, struct buf *out)
{
	const struct totals totals = totals_of(run);

	buf_printf(out, ",\n \"totals\": {\"definitions\": %" PRId64, totals.definitions);
	for (int s = 0; s < STATUS_COUNT; s++)
		buf_printf(out, ", \"%s\": %" PRId64, status_name((enum status)s), totals.shown[s]);
	buf_printf(out, ", \"stale\": %" PRId64 ", \"unknown\": %" PRId64 "}", totals.shown_stale, totals.shown_unknown);
}

/* Appends only the name of the dataset's folder, because other people read the page, too. A relative path would tell
 * them nothing, and an absolute path would reveal the folders of this machine. */
static void json_folder(const struct run *run, struct buf *out)
{
	char *path = realpath(run->program->root, NULL);
	const char *slash = path == NULL ? NULL : strrchr(path, '/');

	buf_json_next_member(out, "folder", slash != NULL && slash[1] != '\0' ? slash + 1 : run->program->root);
	free(path);
}

void html_page_data(const struct html_page *page, const struct run *run, const struct coverage *coverage,
		    struct buf *out)
{
	buf_text(out, "{\"schema\": 1");
	json_folder(run, out);
	buf_json_next_member(out, "version", page->version);
	buf_json_next_member(out, "device_class", run->machine.policy.device_class);
	buf_printf(out, ", \"made\": %" PRId64, page->made);
	json_totals(run, out);
	buf_text(out, ",\n \"problems\": ");
	buf_json_strings(out, run->problems, run->problem_count);
	buf_text(out, ",\n \"definitions\": [");
	for (int i = 0; i < run->count; i++) {
		buf_text(out, i > 0 ? ",\n " : "\n ");
		json_definition(run->results[i], out);
	}
	buf_text(out, "],\n \"coverage\": {");
	coverage_matrix_families(coverage, out);
	buf_printf(out, ", \"selected\": %s}}", coverage->selected ? "true" : "false");
}

/* Appends JSON so that it is safe inside a script element of HTML. Writes the characters '<', '>' and '&' as escapes,
 * so that no text can end the element or begin a comment. The JSON contains these characters only inside strings, where
 * an escape means the character itself. A character that is unsafe to show is already written as an escape in the JSON
 * (buf_json_bytes). Doubles the backslash of such an escape, so that the page shows the escape instead of the
 * character. */
static void add_safely(const struct buf *data, struct buf *out)
{
	for (size_t i = 0; i < data->length; i++) {
		char c = data->data[i];
		bool escape = c == '\\' && i + 1 < data->length;

		if (c == '<' || c == '>' || c == '&')
			buf_printf(out, "\\u%04x", (unsigned)c);
		else if (escape && data->data[i + 1] == 'u')
			buf_text(out, "\\\\");
		else if (escape)
			buf_add(out, data->data + i++, 2);
		else
			buf_add(out, &c, 1);
	}
}

void html_page_write(const struct buf *data, struct buf *out)
{
	static const char mark[] = "@DATA@";
	const char *at = strstr(page_begin, mark);

	buf_add(out, page_begin, (size_t)(at - page_begin));
	add_safely(data, out);
	at += strlen(mark);
	buf_add(out, at, (size_t)(page_end - at));
}
