#include "report/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/shell_word.h"
#include "base/screen.h"
#include "base/show.h"
#include "base/show_wrapped.h"
#include "base/wrap.h"
#include "engine/approval_state.h"
#include "engine/definition_files.h"
#include "engine/settings.h"
#include "report/common_diagnosis.h"
#include "report/totals.h"

enum { MESSAGE_LINES = 24, LINE_BYTES = 2000, STATUS_COLUMNS = STATUS_NAME_MAX + 1 /* of print_word */, NARROW = 60, CAUSE_LINES = 5 };

const char *report_colour(enum status status)
{
	static const char *const colours[] = {
	    [GROUP_VERIFIED] = "\033[32m", [GROUP_UNVERIFIED] = "\033[33m", [GROUP_WRONG] = "\033[31m", [GROUP_INVALID] = "\033[31m"};

	return colours[status_group(status)];
}

struct word {
	char text[16];
};

/* Returns the name of a status, in capitals if the status is worse than `skipped`. */
static struct word word_of(enum status status)
{
	struct word word;

	snprintf(word.text, sizeof word.text, "%s", status_name(status));
	for (char *at = word.text; *at != '\0' && status_group(status) > GROUP_UNVERIFIED; at++)
		*at = (char)toupper((unsigned char)*at);
	return word;
}

const char *report_status(const struct result *result)
{
	if (!totals_lacks_verdict(result))
		return status_name(result->status);
	return result->stale ? "stale" : "unknown";
}

static void print_word(FILE *out, const struct result *result)
{
	bool colour = result->run->program->colour;
	struct word word = result->known ? word_of(result->status) : (struct word){""};

	if (!result->known)
		snprintf(word.text, sizeof word.text, "%s", report_status(result));

	fputs(colour && result->known ? report_colour(result->status) : "", out);
	show_print(out, "%-*s", STATUS_NAME_MAX, word.text);
	fputs(colour ? "\033[0m " : " ", out);
}

/* ---- text ----------------------------------------------------------------------------------------------------- */

/* Prints text that a reference wrote, with all lines indented. Long texts and long lines are cut. */
static void print_indented(FILE *out, const char *text, int indent)
{
	for (int line = 0; *text != '\0'; line++) {
		size_t length = strcspn(text, "\n");

		if (line == MESSAGE_LINES) {
			show_print(out, "%*s…\n", indent, "");
			return;
		}
		show_print(out, "%*s%.*s%s\n", indent, "", (int)(length < LINE_BYTES ? length : LINE_BYTES), text,
		           length > LINE_BYTES ? "…" : "");
		text += length + (text[length] == '\n');
	}
}

static void print_index(FILE *out, int64_t flat, const struct output_verdict *output)
{
	int64_t at[RANK_MAX];

	for (int i = output->rank - 1; i >= 0; i--) {
		at[i] = output->shape[i] > 0 ? flat % output->shape[i] : 0;
		flat = output->shape[i] > 0 ? flat / output->shape[i] : flat;
	}
	show_print(out, "[");
	for (int i = 0; i < output->rank; i++)
		show_print(out, "%s%" PRId64, i > 0 ? ", " : "", at[i]);
	show_print(out, "]");
}

void report_worst(FILE *out, const struct output_verdict *output, const char *one, const char *other)
{
	const struct metrics *m = &output->metrics;

	show_print(out,
		"           %s: max abs %.4g, mean abs %.4g, max rel %.4g, cosine %.6f, mse %.4g, hit ratio %.4f, "
		"margin %.4g\n",
		output->name, m->max_abs, m->mean_abs, m->max_rel, m->cosine, m->mse,
		m->elements > 0 ? (double)m->hits / (double)m->elements : 1, m->margin);
	for (int i = 0; i < m->worst_count; i++) {
		show_print(out, "             at ");
		print_index(out, m->worst[i].index, output);
		show_print(out, "  %s %.9g  %s %.9g  |difference| %.4g\n", one, m->worst[i].reference, other,
			m->worst[i].ground_truth, m->worst[i].diff);
	}
}

/* Prints the command that repeats a failed case. If other cases ran before it in the same process, and the reference may
 * keep something from one case to the next, the case may pass alone, so a comment says what to run then. */
static void print_again(FILE *out, const struct result *result, const struct case_result *c, int indent,
			const struct report_options *options)
{
	const struct verdict *v = c->verdict;
	struct buf name = {0}, words = {0};

	if (v->status != STATUS_FAILED && v->status != STATUS_ERROR)
		return;
	buf_printf(&name, "%s/%s", result->file->op_type, result->file->name);
	buf_shell_word(&words, name.data);
	bool follows = v->after != NULL && strcmp(v->after, "none") != 0;

	buf_text(&words, " --case ");
	buf_shell_word(&words, c->test->id);
	show_print(out, "%*sreftest verify %s --force%s%s%s%s\n", indent, "", words.data,
		   v->device != NULL ? " --device " : "", v->device != NULL ? v->device : "", options->command,
		   follows ? "  # if it passes alone, run it without --case" : "");
	buf_free(&name);
	buf_free(&words);
}

/* Prints a line with the names of the checks that have this result: "holds: outputs, repeat". */
static void print_checks_with(FILE *out, const struct verdict *v, enum check_result result)
{
	bool any = false;

	for (int i = 0; i < v->check_count; i++)
		if (v->checks[i].result == result) {
			if (!any)
				show_print(out, "           %s: ", check_result_name(result));
			show_print(out, "%s%s", any ? ", " : "", v->checks[i].name);
			any = true;
		}
	if (any)
		show_print(out, "\n");
}

static void print_checks(FILE *out, const struct verdict *v)
{
	print_checks_with(out, v, CHECK_HOLDS);
	print_checks_with(out, v, CHECK_NOT_RUN);
	for (int i = 0; i < v->check_count; i++)
		if (v->checks[i].result == CHECK_FAILS || v->checks[i].result == CHECK_PROPERTY)
			show_print(out, "           %s: %s: %s\n", check_result_name(v->checks[i].result), v->checks[i].name,
				   v->checks[i].evidence);
}

static void print_case(FILE *out, const struct result *result, const struct case_result *c,
		       const struct report_options *options)
{
	const struct verdict *v = c->verdict;
	const char *reason = reason_name(v->reason);

	show_print(out, "         %s  %s%s%s%s\n", c->test->id, case_is_finding(c) ? "finding" : word_of(v->status).text,
		reason != NULL ? ": " : "", reason != NULL ? reason : "", c->cached && !c->shared ? " (remembered)" : "");
	if (c->test->convention != NULL)
		show_print(out, "           expected by convention: %s\n", c->test->convention);
	for (int i = 0; i < v->region_count; i++)
		show_print(out, "           %s\n", v->regions[i]);
	if (v->message != NULL)
		print_indented(out, v->message, 11);
	print_checks(out, v);
	for (int i = 0; i < v->output_count; i++)
		if (v->outputs[i].status == STATUS_FAILED)
			report_worst(out, &v->outputs[i], "reference", "ground truth");
	if (c->printed != NULL && c->printed[0] != '\0') {
		show_print(out, "           it printed:\n");
		print_indented(out, c->printed, 13);
	}
	if (options->every_case || case_is_finding(c))
		print_again(out, result, c, 11, options);
}

/* Prints the cases that did not pass. If several cases were skipped, or only checked, for the same reason, prints the
 * first of them and the number of the others. */
static void print_cases(FILE *out, const struct result *result, const struct report_options *options)
{
	const struct verdict *last = NULL;
	const struct case_result *failed = NULL;
	int more = 0, more_failed = 0;

	for (int i = 0; i < result->case_count; i++) {
		const struct case_result *c = &result->cases[i];

		if (c->verdict == NULL || c->verdict->status == STATUS_PASSED)
			continue;
		if (last != NULL && c->verdict->status == last->status && c->verdict->reason == last->reason) {
			more++;
			continue;
		}
		last = status_group(c->verdict->status) == GROUP_UNVERIFIED ? c->verdict : last;
		if (status_group(c->verdict->status) == GROUP_WRONG && !options->every_case && failed != NULL &&
		    !case_is_finding(c)) {
			more_failed++;
			continue;
		}
		print_case(out, result, c, options);
		if (status_group(c->verdict->status) == GROUP_WRONG && !case_is_finding(c))
			failed = failed == NULL ? c : failed;
	}
	if (more > 0)
		show_print(out, "         and %d more %s\n", more, reason_name(last->reason));
	if (more_failed > 0)
		show_print(out, "         and %d more failed case%s (-v prints all)\n", more_failed, more_failed == 1 ? "" : "s");
	if (failed != NULL && !options->every_case)
		print_again(out, result, failed, 9, options);
}

static double worst_margin(const struct result *result)
{
	double margin = -1;

	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *v = result->cases[i].verdict;

		for (int k = 0; v != NULL && !case_is_finding(&result->cases[i]) && k < v->output_count; k++)
			margin = fmax(margin, v->outputs[k].metrics.margin);
	}
	return margin;
}

/* Returns the number of cases with a verdict of an earlier run. Sets `shared` to the number of cases that have the
 * verdict of an equal case of this run, so that they did not have to run. */
static int cached_cases(const struct result *result, int *shared)
{
	int count = 0;

	*shared = 0;
	for (int i = 0; i < result->case_count; i++) {
		count += result->cases[i].cached && !result->cases[i].shared;
		*shared += result->cases[i].shared;
	}
	return result->cases == NULL ? (int)result->counts.cases : count;
}

/* Prints the ground truths that computed the outputs of the case: "builtin on cpu", "flashinfer, torch, builtin agree
 * on sm_90". */
static void print_truths(FILE *out, const struct verdict *v)
{
	int answered = 0;

	for (int i = 0; i < v->tried_count; i++)
		if (v->tried[i].passed_over == NULL) {
			show_print(out, ", %s", v->tried[i].name);
			answered++;
		}
	if (answered == 0)
		show_print(out, ", %s", v->ground_truth);
	show_print(out, "%s on %s", answered > 1 ? " agree" : "", v->device_class);
}

static void print_passed_tail(FILE *out, const struct result *result)
{
	double margin = worst_margin(result);
	const struct verdict *v = result->case_count > 0 ? result->cases[0].verdict : NULL;

	show_print(out, "%u case%s", result->counts.cases, result->counts.cases == 1 ? "" : "s");
	int shared, cached = cached_cases(result, &shared);

	if (cached > 0 && shared > 0)
		show_print(out, " (%d cached, %d shared)", cached, shared);
	else if (cached + shared > 0)
		show_print(out, " (%d %s)", cached + shared, cached > 0 ? "cached" : "shared");
	if (margin >= 0)
		show_print(out, ", margin %.2g", margin);
	if (v != NULL && v->ground_truth != NULL)
		print_truths(out, v);
	show_print(out, "\n");
}

/* Prints the end of a line, for example "2 of 3 cases checked, 1 passed: no ground truth decides these cases". */
static void print_checked_tail(FILE *out, const struct result *result)
{
	show_print(out, "%u of %u cases checked", result->counts.checked, result->counts.cases);
	if (result->counts.passed > 0)
		show_print(out, ", %u passed", result->counts.passed);
	show_print(out, "%s", result->reason == REASON_UNSTEADY	? ": the reference may read the clock or the machine's name\n"
			      : result->reason == REASON_UNATTESTED ? ": only the reference states the value of a "
								      "constant\n"
								    : ": no ground truth decides these cases\n");
}

static void print_dry_run(FILE *out, const struct result *result)
{
	for (int i = 0; i < result->case_count; i++)
		if (result->cases[i].verdict == NULL)
			show_print(out, "         %s: would run: %s\n", result->cases[i].test->id, result->cases[i].why);
}

bool report_tells(const struct result *result, const struct report_options *options)
{
	if (options->list == LIST_ALL || !result->known || result->status != STATUS_PASSED || result->changed)
		return true;
	return (options->list == LIST_RAN && result->started > 0) || result->findings > 0;
}

static void print_findings(FILE *out, const struct result *result)
{
	const char *last = "";

	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *v = result->cases[i].verdict;

		for (int k = 0; v != NULL && k < v->finding_count; k++)
			if (strcmp(v->findings[k], last) != 0) {
				show_print(out, "         finding: %s\n", v->findings[k]);
				last = v->findings[k];
			}
	}
}

/* Prints the ground truths that were skipped, and the reasons. A reason that several cases share is printed once. */
static void print_passed_over(FILE *out, const struct result *result)
{
	const char *last[GROUND_TRUTHS_MAX] = {NULL};

	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *v = result->cases[i].verdict;

		for (int k = 0; v != NULL && k < v->tried_count && k < GROUND_TRUTHS_MAX; k++) {
			const struct tried_truth *w = &v->tried[k];

			if (w->passed_over == NULL || w->not_asked ||
			    (last[k] != NULL && strcmp(last[k], w->passed_over) == 0))
				continue;
			last[k] = w->passed_over;
			show_print(out, "         %s: ground truth %s was skipped: %.*s\n", result->cases[i].test->id, w->name,
				(int)strcspn(w->passed_over, "\n"), w->passed_over);
		}
	}
}

void report_problems(const struct run *run)
{
	for (int i = 0; i < run->problem_count; i++)
		show_print(stderr, "reftest: %s\n", run->problems[i]);
}

bool report_has_dataset_bound(const struct result *result)
{
	return result->definition != NULL && cases_have_dataset_bound(&result->run->options->cases, result->definition);
}

/* Prints the cause of the failures, if one was found. Prints several causes if each of them explains all failed
 * cases. */
static void print_diagnosis(FILE *out, const struct result *result)
{
	const char *says[DIAGNOSIS_SHOWN];
	int count = diagnosis_of(result, says);

	for (int i = 0; i < count; i++)
		show_print(out, "         %s%s%s\n", i == 0 ? "diagnosis: behaves as if " : "           or as if ", says[i],
			   i == 0 && result->counts.passed > 0 ? " (in the cases that failed)" : "");
}

/* If the definition has an approval, prints a sentence about the state of the approval (engine/approval_state.h). */
static void print_approval(FILE *out, const struct result *result)
{
	struct arena arena = {0};
	const char *sentence = approval_sentence(result, &arena);

	if (sentence != NULL)
		show_print(out, "         %s\n", sentence);
	arena_free(&arena);
}

/* Prints which file of the dataset sets the bounds of the definition. */
static void print_bounds(FILE *out, const struct result *result)
{
	if (report_has_dataset_bound(result))
		show_print(out, "         bounds from %s, line %d\n", result->run->program->settings->file,
			   result->run->program->settings->of[SETTING_TOLERANCE].line);
}

static void print_outcome(FILE *out, const struct result *result, const struct report_options *options)
{
	const char *reason = reason_name(result->reason);

	print_word(out, result);
	show_print(out, "%s/%s  ", result->file->op_type, result->file->name);
	if (result->known && result->status == STATUS_PASSED)
		print_passed_tail(out, result);
	else if (result->status == STATUS_INVALID && result->cases == NULL)
		show_print(out, "\n");
	else if (result->known && result->status == STATUS_CHECKED)
		print_checked_tail(out, result);
	else
		show_print(out, "%u of %u cases passed%s%s\n", result->counts.passed, result->counts.cases,
			reason != NULL ? ": " : "", reason != NULL ? reason : "");
	print_diagnosis(out, result);
	print_bounds(out, result);
	if (result->message != NULL)
		print_indented(out, result->message, 9);
	print_cases(out, result, options);
	print_dry_run(out, result);
	print_approval(out, result);
	print_findings(out, result);
	if (result->made != NULL && result->made->init_failed != NULL)
		show_print(out, "         finding: %s\n", result->made->init_failed);
	for (int i = 0; result->definition != NULL && i < result->definition->note_count; i++)
		show_print(out, "         note: %s\n", result->definition->notes[i]);
	if (result->made != NULL && result->made->how_matched != NULL)
		show_print(out, "         %s\n", result->made->how_matched);
	if (result->made != NULL && result->made->no_sizes != NULL && result->case_count > 0)
		show_print(out, "         %s\n", result->made->no_sizes);
	if (result->made != NULL && result->made->no_gradients != NULL)
		show_print(out, "         backward: %s\n", result->made->no_gradients);
	print_passed_over(out, result);
	if (result->unsteady != NULL)
		show_print(out, "         %s\n", result->unsteady);
	if (result->outside != NULL)
		show_print(out, "         %s\n", result->outside);
	if (result->changed)
		show_print(out,
		    "         a file of the definition changed during the run; this verdict is for the old content "
		    "and was not stored\n");
}

/* Text that is folded before it is printed on standard output. */
struct folded {
	char *text;
	size_t length;
	FILE *out; /* a stream in memory; standard output if lines are not folded */
};

int report_columns(const struct report_options *options)
{
	return show_is_screen(STDOUT_FILENO) ? screen_columns(STDOUT_FILENO) : options->width;
}

static void begin_folded(struct folded *folded, const struct report_options *options)
{
	*folded = (struct folded){.out = stdout};
	if (report_columns(options) > 0) {
		folded->out = open_memstream(&folded->text, &folded->length);
		if (folded->out == NULL)
			die_no_memory();
	}
}

static void end_folded(struct folded *folded, const struct report_options *options)
{
	struct buf lines = {0};

	if (folded->out == stdout)
		return;
	fclose(folded->out);
	wrap_text(folded->text, folded->length, (size_t)report_columns(options), "reftest", &lines);
	fwrite(lines.data, 1, lines.length, stdout);
	buf_free(&lines);
	free(folded->text);
}

void report_result(const struct result *result, const struct report_options *options)
{
	struct folded folded;

	if (!report_tells(result, options))
		return;
	begin_folded(&folded, options);
	print_outcome(folded.out, result, options);
	end_folded(&folded, options);
}

/* Prints a count such as "3 passed", after a comma if it is not the first one. Prints nothing if the count is 0. */
static void print_count(FILE *out, int64_t count, const char *word, const char **comma)
{
	if (count <= 0)
		return;
	show_print(out, "%s%" PRId64 " %s", *comma, count, word);
	*comma = ", ";
}

static void print_statuses(FILE *out, const struct totals *totals)
{
	const char *comma = "";

	for (int s = 0; s < STATUS_COUNT; s++)
		print_count(out, totals->shown[s], status_name((enum status)s), &comma);
	print_count(out, totals->shown_stale, "stale", &comma);
	print_count(out, totals->shown_unknown, "unknown", &comma);
}

/* Prints the settings of the dataset that took effect, because these settings change what "passed" means. */
static void print_settings(FILE *out, const struct run *run)
{
	struct buf text = {0};

	if (run->options->from_settings == 0)
		return;
	settings_describe(run->program->settings, run->options->from_settings, &text);
	buf_text(&text, "\n");
	show_wrapped(out, text.data);
	buf_free(&text);
}

static void print_summary(FILE *out, const struct run *run, const struct report_options *options)
{
	struct totals totals = totals_of(run);

	print_settings(out, run);
	show_print(out, "%" PRId64 " definition%s: ", totals.definitions, totals.definitions == 1 ? "" : "s");
	print_statuses(out, &totals);
	if (totals.definitions == 0)
		show_print(out, run->other_shard > 0 ? "all definitions belong to other shards" : "nothing selected");
	show_print(out, "; %" PRId64 " case%s run, %" PRId64 " cached", run->cases_run, run->cases_run == 1 ? "" : "s",
		   run->cases_cached - run->cases_shared);
	if (run->cases_shared > 0)
		show_print(out, ", %" PRId64 " shared", run->cases_shared);
	show_print(out, "; %.3g M elements compared; %.2f s\n", (double)totals.elements / 1e6, run->seconds);
	if (run->machine.accepted != NULL)
		show_print(out,
		    "verdicts of %s from other machines were accepted (--device-class); this machine has no such device\n",
		    run->machine.accepted);
	if (options->strict && totals.findings > 0)
		show_print(out, "%" PRId64 " finding%s, which --strict counts as failures\n", totals.findings,
			totals.findings == 1 ? "" : "s");
}

/* Returns the message about an invalid definition without its beginning, which is a position such as
 * "definitions/gemm/x.json:19:16: ". */
static const char *without_place(const struct result *result)
{
	const char *path = result->file->path, *message = result->message, *space;

	if (strncmp(message, path, strlen(path)) != 0 || (space = strchr(message, ' ')) == NULL || space[-1] != ':')
		return message;
	return space + 1;
}

/* Returns the cause of a failure: the diagnosis or, if there is none, the message of the result. If the result has
 * neither, returns the region of the wrong elements in the first failed case or, if no region is known, the message of
 * this case. The caller uses only the first line of the text. */
static const char *cause_of(const struct result *result, const char **before)
{
	const char *says[DIAGNOSIS_SHOWN];

	*before = "";
	if (diagnosis_of(result, says) > 0) {
		*before = "behaves as if ";
		return says[0];
	}
	if (result->message != NULL)
		return without_place(result);
	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *v = result->cases[i].verdict;

		if (v != NULL && status_group(v->status) >= GROUP_WRONG && !case_is_finding(&result->cases[i]) &&
		    (v->region_count > 0 || v->message != NULL))
			return v->region_count > 0 ? v->regions[0] : v->message;
	}
	return reason_name(result->reason) != NULL ? reason_name(result->reason) : "";
}

/* Returns how many bytes of a line fit into `width` columns without a break inside a word. Returns 0 if the whole line
 * fits, or if even the first word does not fit. */
static size_t fitting_words(const char *line, size_t width)
{
	size_t last = 0, columns = 0;

	if (width == 0)
		return 0;
	for (size_t i = 0; line[i] != '\0'; i++) {
		columns += ((unsigned char)line[i] & 0xC0) != 0x80;
		if (columns + 1 > width) /* leaves room for the ellipsis */
			return last;
		if (line[i] == ' ')
			last = i;
	}
	return 0;
}

/* Appends a cause and the end of the line; end_folded will fold the line. Cuts a very long cause after about
 * CAUSE_LINES lines of `width` columns, because the report of the definition contains the whole text. If `width` is 0,
 * appends all words. */
static void add_cause(struct buf *out, const struct buf *text, size_t width)
{
	size_t cut = fitting_words(text->data, CAUSE_LINES * width);

	buf_add(out, text->data, cut > 0 ? cut : text->length);
	buf_text(out, cut > 0 ? "…\n" : "\n");
}

/* Prints a failure on one line, or on two lines if the name and the cause do not fit into `columns`. If `columns` is 0,
 * there is no limit. */
static void print_failure(FILE *out, const struct result *result, int columns)
{
	const size_t width = columns > STATUS_COLUMNS ? (size_t)(columns - STATUS_COLUMNS) : 0;
	const char *before, *cause = cause_of(result, &before);
	struct buf text = {0}, name = {0}, why = {0}, line = {0};

	buf_printf(&text, "%s/%s", result->file->op_type, result->file->name);
	show_add(&name, text.data, text.length);
	text.length = 0;
	buf_printf(&text, "%s%.*s", before, (int)strcspn(cause, "\n"), cause);
	show_add(&why, text.data, text.length);
	buf_add(&line, name.data, name.length);
	if (why.length > 0)
		buf_printf(&line, ": %s", why.data);
	if (why.length > 0 && fitting_words(line.data, width) > 0) {
		line.length = name.length;
		buf_printf(&line, "\n%*s", STATUS_COLUMNS, "");
		add_cause(&line, &why, width);
	} else {
		buf_text(&line, "\n");
	}
	print_word(out, result);
	fwrite(line.data, 1, line.length, out);
	buf_free(&text);
	buf_free(&name);
	buf_free(&why);
	buf_free(&line);
}

/* Prints a list of the failures, because their reports may have scrolled away. Prints nothing if only one definition
 * was selected. On a terminal with fewer than NARROW columns, long lines are folded instead of shortened. */
static void print_failures(FILE *out, const struct run *run, const struct report_options *options)
{
	const int columns = report_columns(options) < NARROW ? 0 : report_columns(options);

	for (int i = 0; options->list_failures && run->selected_count > 1 && i < run->count; i++) {
		const struct result *result = run->results[i];

		if (result != NULL && result->known && status_group(result->status) >= GROUP_WRONG)
			print_failure(out, result, columns);
	}
}

void report_summary(const struct run *run, const struct report_options *options)
{
	struct folded folded;

	begin_folded(&folded, options);
	print_failures(folded.out, run, options);
	print_summary(folded.out, run, options);
	end_folded(&folded, options);
	fflush(stdout);
	if (run->gaps != NULL && run->gaps[0] != '\0')
		show_print(stderr, "reftest: on this machine, references are not fully contained: %s (`reftest doctor` explains "
				   "this)\n",
			run->gaps);
	if (run->not_stored != NULL)
		show_print(stderr, "reftest: the verdicts of this run could not be stored: %s\n", run->not_stored);
	if (run->interrupted)
		show_print(stderr, "reftest: interrupted\n");
	else if (run->stopped)
		show_print(stderr, "reftest: the run stopped at the first failure (--fail-fast)\n");
}
