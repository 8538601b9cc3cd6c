#include "commands/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fold.h"
#include "base/utf8.h"
#include "commands/truths_matrix.h"

enum { MESSAGE_LINES = 24 };

static const struct {
	const char *colour, *word;
} looks[STATUS_COUNT] = {
    [STATUS_PASSED] = {"\033[32m", "passed"},  [STATUS_SKIPPED] = {"\033[33m", "skipped"},
    [STATUS_ERROR] = {"\033[31m", "ERROR"},    [STATUS_FAILED] = {"\033[31m", "FAILED"},
    [STATUS_INVALID] = {"\033[31m", "INVALID"},
};

static void print_word(FILE *out, const struct outcome *outcome)
{
	bool colour = outcome->pass->reftest->colour;
	const char *word = outcome->known ? looks[outcome->status].word : "unknown";

	fprintf(out, "%s%-8s%s ", colour && outcome->known ? looks[outcome->status].colour : "", word,
		colour ? "\033[0m" : "");
}

/* ---- text ----------------------------------------------------------------------------------------------------- */

/* One line of somebody else's text: what a terminal would obey instead of show becomes '?'. */
static void print_safely(FILE *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t step = utf8_length(text + i, length - i);
		unsigned char c = (unsigned char)text[i];
		bool control = step == 0 || (c < 0x20 && c != '\t') || c == 0x7f ||
		               (step == 2 && c == 0xC2 && (unsigned char)text[i + 1] < 0xA0);

		if (control)
			putc('?', out);
		else
			fwrite(text + i, 1, step, out);
		i += step > 0 ? step : 1;
	}
}

static void print_indented(FILE *out, const char *text, int indent)
{
	for (int line = 0; *text != '\0'; line++) {
		size_t length = strcspn(text, "\n");

		if (line == MESSAGE_LINES) {
			fprintf(out, "%*s…\n", indent, "");
			return;
		}
		fprintf(out, "%*s", indent, "");
		print_safely(out, text, length);
		putc('\n', out);
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
	putc('[', out);
	for (int i = 0; i < output->rank; i++)
		fprintf(out, "%s%" PRId64, i > 0 ? ", " : "", at[i]);
	putc(']', out);
}

static void print_worst(FILE *out, const struct output_verdict *output)
{
	const struct metrics *m = &output->metrics;

	fprintf(out,
		"           %s: max abs %.4g, mean abs %.4g, max rel %.4g, cosine %.6f, mse %.4g, hit ratio %.4f, "
		"margin %.4g\n",
		output->name, m->max_abs, m->mean_abs, m->max_rel, m->cosine, m->mse,
		m->elements > 0 ? (double)m->hits / (double)m->elements : 1, m->margin);
	for (int i = 0; i < m->worst_count; i++) {
		fprintf(out, "             at ");
		print_index(out, m->worst[i].index, output);
		fprintf(out, "  reference %.9g  ground truth %.9g  |difference| %.4g\n", m->worst[i].reference,
			m->worst[i].ground_truth, m->worst[i].diff);
	}
}

/* A failure can be pasted back as a command. */
static void print_again(FILE *out, const struct outcome *outcome, const struct case_outcome *c,
			const struct report_options *options)
{
	const struct verdict *v = c->verdict;

	if (v->status != STATUS_FAILED && v->status != STATUS_ERROR)
		return;
	fprintf(out, "           reftest verify %s/%s --case '%s' --force%s%s%s\n", outcome->file->op_type,
		outcome->file->name, c->test->id, v->device != NULL ? " --device " : "",
		v->device != NULL ? v->device : "", options->command);
}

static void print_case(FILE *out, const struct outcome *outcome, const struct case_outcome *c,
		       const struct report_options *options)
{
	const struct verdict *v = c->verdict;
	const char *reason = reason_name(v->reason);

	fprintf(out, "         %s  %s%s%s%s\n", c->test->id, is_finding(c) ? "finding" : looks[v->status].word,
		reason != NULL ? ": " : "", reason != NULL ? reason : "", c->cached ? " (remembered)" : "");
	if (c->test->convention != NULL)
		fprintf(out, "           the convention that counts here: %s\n", c->test->convention);
	if (v->message != NULL)
		print_indented(out, v->message, 11);
	for (int i = 0; i < v->output_count; i++)
		if (v->outputs[i].status == STATUS_FAILED)
			print_worst(out, &v->outputs[i]);
	if (c->printed != NULL && c->printed[0] != '\0') {
		fprintf(out, "           it printed:\n");
		print_indented(out, c->printed, 13);
	}
	print_again(out, outcome, c, options);
}

/* Cases that were skipped for the same reason are told once. */
static void print_cases(FILE *out, const struct outcome *outcome, const struct report_options *options)
{
	enum reason told = REASON_NONE;
	int more = 0;

	for (int i = 0; i < outcome->case_count; i++) {
		const struct case_outcome *c = &outcome->cases[i];

		if (c->verdict == NULL || c->verdict->status == STATUS_PASSED)
			continue;
		if (c->verdict->status == STATUS_SKIPPED && c->verdict->reason == told) {
			more++;
			continue;
		}
		told = c->verdict->status == STATUS_SKIPPED ? c->verdict->reason : told;
		print_case(out, outcome, c, options);
	}
	if (more > 0)
		fprintf(out, "         and %d more %s\n", more, reason_name(told));
}

static double worst_margin(const struct outcome *outcome)
{
	double margin = -1;

	for (int i = 0; i < outcome->case_count; i++) {
		const struct verdict *v = outcome->cases[i].verdict;

		for (int k = 0; v != NULL && !is_finding(&outcome->cases[i]) && k < v->output_count; k++)
			margin = fmax(margin, v->outputs[k].metrics.margin);
	}
	return margin;
}

static int cached_cases(const struct outcome *outcome)
{
	int count = 0;

	for (int i = 0; i < outcome->case_count; i++)
		count += outcome->cases[i].cached;
	return outcome->cases == NULL ? (int)outcome->counts.cases : count;
}

/* "builtin on cpu", "flashinfer, torch, builtin agree on sm_90" */
static void print_truths(FILE *out, const struct verdict *v)
{
	int answered = 0;

	for (int i = 0; i < v->witness_count; i++)
		if (v->witnesses[i].passed_over == NULL)
			answered += fprintf(out, ", %s", v->witnesses[i].name) > 0;
	if (answered == 0)
		fprintf(out, ", %s", v->ground_truth);
	fprintf(out, "%s on %s", answered > 1 ? " agree" : "", v->device_class);
}

static void print_passed_tail(FILE *out, const struct outcome *outcome)
{
	double margin = worst_margin(outcome);
	const struct verdict *v = outcome->case_count > 0 ? outcome->cases[0].verdict : NULL;

	fprintf(out, "%u case%s", outcome->counts.cases, outcome->counts.cases == 1 ? "" : "s");
	int cached = cached_cases(outcome);

	if (cached > 0)
		fprintf(out, " (%d cached)", cached);
	if (margin >= 0)
		fprintf(out, ", margin %.2g", margin);
	if (v != NULL && v->ground_truth != NULL)
		print_truths(out, v);
	putc('\n', out);
}

static void print_dry_run(FILE *out, const struct outcome *outcome)
{
	for (int i = 0; i < outcome->case_count; i++)
		if (outcome->cases[i].verdict == NULL)
			fprintf(out, "         %s: would run: %s\n", outcome->cases[i].test->id, outcome->cases[i].why);
}

static bool worth_telling(const struct outcome *outcome, const struct report_options *options)
{
	if (!options->only_changed || !outcome->known || outcome->status != STATUS_PASSED || outcome->changed)
		return true;
	return outcome->started > 0 || outcome->findings > 0;
}

static void print_findings(FILE *out, const struct outcome *outcome)
{
	const char *last = "";

	for (int i = 0; i < outcome->case_count; i++) {
		const struct verdict *v = outcome->cases[i].verdict;

		for (int k = 0; v != NULL && k < v->finding_count; k++)
			if (strcmp(v->findings[k], last) != 0) {
				fprintf(out, "         finding: %s\n", v->findings[k]);
				last = v->findings[k];
			}
	}
}

/* Nobody is passed over in silence; what is said of one case and true of the next is said once. */
static void print_passed_over(FILE *out, const struct outcome *outcome)
{
	const char *last[TRUTHS_MAX] = {NULL};

	for (int i = 0; i < outcome->case_count; i++) {
		const struct verdict *v = outcome->cases[i].verdict;

		for (int k = 0; v != NULL && k < v->witness_count && k < TRUTHS_MAX; k++) {
			const struct witness *w = &v->witnesses[k];

			if (w->passed_over == NULL || strncmp(w->passed_over, "it was not asked", 16) == 0 ||
			    (last[k] != NULL && strcmp(last[k], w->passed_over) == 0))
				continue;
			last[k] = w->passed_over;
			fprintf(out, "         %s: %s passed over: %.*s\n", outcome->cases[i].test->id, w->name,
			        (int)strcspn(w->passed_over, "\n"), w->passed_over);
		}
	}
}

void report_problems(const struct pass *pass)
{
	for (int i = 0; i < pass->problem_count; i++)
		fprintf(stderr, "reftest: %s\n", pass->problems[i]);
}

static void print_outcome(FILE *out, const struct outcome *outcome, const struct report_options *options)
{
	const char *reason = reason_name(outcome->reason);

	print_word(out, outcome);
	fprintf(out, "%s/%s  ", outcome->file->op_type, outcome->file->name);
	if (outcome->known && outcome->status == STATUS_PASSED)
		print_passed_tail(out, outcome);
	else if (outcome->status == STATUS_INVALID && outcome->cases == NULL)
		fprintf(out, "\n");
	else
		fprintf(out, "%u of %u cases passed%s%s\n", outcome->counts.passed, outcome->counts.cases,
			reason != NULL ? ": " : "", reason != NULL ? reason : "");
	if (outcome->message != NULL)
		print_indented(out, outcome->message, 9);
	print_cases(out, outcome, options);
	print_dry_run(out, outcome);
	print_findings(out, outcome);
	if (outcome->made != NULL && outcome->made->no_gradients != NULL)
		fprintf(out, "         backward: %s\n", outcome->made->no_gradients);
	print_passed_over(out, outcome);
	if (outcome->outside != NULL)
		fprintf(out, "         %s\n", outcome->outside);
	if (outcome->changed)
		fprintf(
		    out,
		    "         a file of it changed while it ran: this verdict is of the old text and was not kept\n");
}

/* What `print` writes, in lines that fit. */
struct folded {
	char *text;
	size_t length;
	FILE *out; /* to write to */
};

static void begin_folded(struct folded *folded, const struct report_options *options)
{
	*folded = (struct folded){.out = stdout};
	if (options->width > 0) {
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
	fold_text(folded->text, folded->length, (size_t)options->width, "reftest", &lines);
	fwrite(lines.data, 1, lines.length, stdout);
	buf_free(&lines);
	free(folded->text);
}

void report_outcome(const struct outcome *outcome, const struct report_options *options)
{
	struct folded folded;

	if (!worth_telling(outcome, options))
		return;
	begin_folded(&folded, options);
	print_outcome(folded.out, outcome, options);
	end_folded(&folded, options);
}

struct totals {
	int64_t definitions, by_status[STATUS_COUNT], unknown, changed, findings, elements;
};

static struct totals count_totals(const struct pass *pass)
{
	struct totals totals = {.definitions = pass->selected_count - pass->elsewhere + pass->vouched,
	                        .by_status[STATUS_PASSED] = pass->answered + pass->vouched,
	                        .unknown = pass->selected_count - pass->elsewhere - pass->answered - pass->count,
	                        .elements = (int64_t)(pass->answered_elements + pass->vouched_elements)};

	for (int i = 0; i < pass->count; i++) {
		const struct outcome *outcome = pass->outcomes[i];

		totals.unknown += !outcome->known;
		totals.by_status[outcome->status] += outcome->known;
		totals.changed += outcome->changed;
		totals.elements += (int64_t)outcome->counts.elements;
		totals.findings += outcome->findings;
	}
	return totals;
}

static void print_summary(FILE *out, const struct pass *pass, const struct report_options *options)
{
	struct totals totals = count_totals(pass);
	const char *comma = "";

	fprintf(out, "%" PRId64 " definition%s: ", totals.definitions, totals.definitions == 1 ? "" : "s");
	for (int s = 0; s < STATUS_COUNT; s++)
		if (totals.by_status[s] > 0) {
			fprintf(out, "%s%" PRId64 " %s", comma, totals.by_status[s], status_name((enum status)s));
			comma = ", ";
		}
	if (totals.unknown > 0)
		fprintf(out, "%s%" PRId64 " unknown", comma, totals.unknown);
	if (totals.definitions == 0)
		fprintf(out, pass->elsewhere > 0 ? "every case falls to another shard" : "nothing selected");
	fprintf(out, "; %" PRId64 " case%s run, %" PRId64 " cached; %.3g M elements compared; %.2f s\n", pass->cases_run,
	       pass->cases_run == 1 ? "" : "s", pass->cases_cached, (double)totals.elements / 1e6, pass->seconds);
	if (pass->machine.accepted != NULL)
		fprintf(
		    out,
		    "verdicts that %s gave elsewhere were accepted (--device-class); this machine has no such device\n",
		    pass->machine.accepted);
	if (options->strict && totals.findings > 0)
		fprintf(out, "%" PRId64 " finding%s, which --strict counts as failures\n", totals.findings,
			totals.findings == 1 ? "" : "s");
}

void report_summary(const struct pass *pass, const struct report_options *options)
{
	struct folded folded;

	begin_folded(&folded, options);
	print_summary(folded.out, pass, options);
	end_folded(&folded, options);
	fflush(stdout);
	if (pass->not_kept != NULL)
		fprintf(stderr, "reftest: the verdicts of this run could not be kept: %s\n", pass->not_kept);
	if (pass->interrupted)
		fprintf(stderr, "reftest: interrupted\n");
}

int report_exit_code(const struct pass *pass, const struct report_options *options)
{
	struct totals totals = count_totals(pass);

	if (pass->interrupted)
		return EXIT_INTERRUPTED;
	if (totals.by_status[STATUS_INVALID] > 0 || pass->problem_count > 0)
		return EXIT_USAGE;
	if (totals.by_status[STATUS_FAILED] > 0 || totals.by_status[STATUS_ERROR] > 0 ||
	    (options->strict && totals.findings > 0))
		return EXIT_FAILED;
	if ((totals.definitions == 0 && pass->elsewhere == 0) || totals.unknown > 0 || totals.changed > 0 || totals.by_status[STATUS_SKIPPED] > 0)
		return EXIT_UNVERIFIED;
	return EXIT_VERIFIED;
}

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

static void json_text(struct buf *out, const char *key, const char *text)
{
	buf_printf(out, "\"%s\": ", key);
	if (text != NULL)
		buf_json_string(out, text);
	else
		buf_text(out, "null");
}

static void json_real(struct buf *out, const char *key, double value)
{
	buf_printf(out, ", \"%s\": ", key);
	buf_json_number(out, value);
}

/* The part of the run that this is; null: all of it. */
static void json_shard(struct buf *out, const struct shard *shard)
{
	if (shard->count > 0)
		buf_printf(out, ", \"shard\": \"%d/%d\"", shard->number, shard->count);
	else
		buf_text(out, ", \"shard\": null");
}

static void json_axes(struct buf *out, const struct outcome *outcome, const struct case_outcome *c)
{
	const struct job *job = c->test->job;
	const char *comma = "";

	buf_text(out, ", \"axes\": {");
	for (int i = 0; job != NULL && i < job->problem.axis_count; i++)
		if (outcome->definition->axes[i].var) {
			buf_text(out, comma);
			buf_json_string(out, job->problem.axes[i].name);
			buf_printf(out, ": %" PRId64, job->axis[i]);
			comma = ", ";
		}
	buf_text(out, "}");
}

static void json_findings(struct buf *out, const struct case_outcome *c)
{
	const struct verdict *v = c->verdict;
	char edge[512];

	buf_text(out, ", \"findings\": [");
	for (int i = 0; v != NULL && i < v->finding_count; i++) {
		buf_text(out, i > 0 ? ", " : "");
		buf_json_string(out, v->findings[i]);
	}
	if (is_finding(c)) {
		snprintf(edge, sizeof edge, "%s is %s; the convention that counts here: %s", c->test->id,
		         status_name(v->status), c->test->convention);
		buf_text(out, v->finding_count > 0 ? ", " : "");
		buf_json_string(out, edge);
	}
	buf_text(out, "]");
}

void report_json_case(struct buf *out, const struct outcome *outcome, const struct case_outcome *c)
{
	const struct verdict *v = c->verdict;

	buf_text(out, "{");
	json_text(out, "id", c->test->id);
	buf_text(out, ", ");
	json_text(out, "status", v != NULL ? status_name(v->status) : "unknown");
	buf_text(out, ", ");
	json_text(out, "reason", v != NULL ? reason_name(v->reason) : NULL);
	buf_text(out, ", ");
	json_text(out, "message", v != NULL ? v->message : NULL);
	buf_printf(out, ", \"cached\": %s, \"kept\": %s, \"weak\": %s, ", c->cached ? "true" : "false",
	           c->kept && v != NULL ? "true" : "false", v != NULL && v->weak ? "true" : "false");
	json_text(out, "convention", c->test->convention);
	buf_text(out, ", ");
	json_text(out, "why", c->why);
	buf_text(out, ", ");
	json_text(out, "device", v != NULL ? v->device : NULL);
	buf_text(out, ", ");
	json_text(out, "device_class", v != NULL ? v->device_class : NULL);
	buf_text(out, ", ");
	json_text(out, "ground_truth", v != NULL ? v->ground_truth : NULL);
	buf_text(out, ", ");
	json_text(out, "ground_truth_version", v != NULL ? v->ground_truth_version : NULL);
	buf_text(out, ", \"witnesses\": ");
	if (v != NULL)
		verdict_write_witnesses(v, out);
	else
		buf_text(out, "[]");
	buf_text(out, ", ");
	json_text(out, "torch", v != NULL ? v->torch : NULL);
	json_axes(out, outcome, c);
	json_real(out, "seconds", v != NULL ? v->seconds : 0);
	buf_printf(out, ", \"reference_line\": %d, ", v != NULL ? v->reference_line : 0);
	json_text(out, "printed", c->printed);
	json_findings(out, c);
	buf_text(out, ", \"outputs\": ");
	if (v != NULL)
		verdict_write_outputs(v, out);
	else
		buf_text(out, "[]");
	buf_text(out, "}");
}

/* A probed constant is known once a case ran: then its value comes from there. */
static void json_constants(struct buf *out, const struct outcome *outcome)
{
	const struct cases *made = outcome->made;

	buf_text(out, ", \"constants\": [");
	for (int i = 0; made != NULL && i < made->constant_count; i++) {
		const char *source = made->constants[i].source;
		double value = made->constants[i].value;

		for (int k = 0; k < outcome->case_count; k++) {
			const struct verdict *v = outcome->cases[k].verdict;

			for (int n = 0; v != NULL && n < v->constant_count; n++)
				if (strcmp(v->constants[n].name, made->constants[i].name) == 0) {
					value = v->constants[n].value;
					source = v->constants[n].source;
				}
		}
		buf_text(out, i > 0 ? ", {" : "{");
		json_text(out, "name", made->constants[i].name);
		json_real(out, "value", value);
		buf_text(out, ", ");
		json_text(out, "source", source);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void json_notes(struct buf *out, const struct outcome *outcome)
{
	const struct definition *d = outcome->definition;
	const char *more[] = {outcome->made != NULL ? outcome->made->no_gradients : NULL, outcome->outside};
	const char *comma = "";

	buf_text(out, ", \"notes\": [");
	for (int i = 0; d != NULL && i < d->note_count; i++, comma = ", ") {
		buf_text(out, comma);
		buf_json_string(out, d->notes[i]);
	}
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (more[i] != NULL) {
			buf_text(out, comma);
			buf_json_string(out, more[i]);
			comma = ", ";
		}
	buf_text(out, "]");
}

static void json_definition(struct buf *out, const struct outcome *outcome)
{
	buf_text(out, "{");
	json_text(out, "name", outcome->file->name);
	buf_text(out, ", ");
	json_text(out, "op_type", outcome->file->op_type);
	buf_text(out, ", ");
	json_text(out, "status", outcome->known ? status_name(outcome->status) : "unknown");
	buf_text(out, ", ");
	json_text(out, "reason", reason_name(outcome->reason));
	buf_text(out, ", ");
	json_text(out, "message", outcome->message);
	buf_printf(out, ", \"changed\": %s", outcome->changed ? "true" : "false");
	json_constants(out, outcome);
	json_notes(out, outcome);
	buf_text(out, ", \"cases\": [");
	for (int i = 0; i < outcome->case_count; i++) {
		buf_text(out, i > 0 ? ",\n  " : "\n  ");
		report_json_case(out, outcome, &outcome->cases[i]);
	}
	buf_text(out, "]}");
}

/* With all of them asked: who could be, for which family, and why not the others, who stand in no verdict. */
static void json_truths(struct buf *out, const struct pass *pass)
{
	const struct truth_choice *choice = &pass->machine.truths;
	const struct kernels_face *face = pass->reftest->kernels.face;
	const struct truths_matrix matrix = {
	    .device_class = pass->machine.policy.device_class,
	    .facts = choice->facts,
	    .fact_count = choice->fact_count,
	    .ops = face == NULL ? NULL : face->ops,
	    .op_count = face == NULL ? 0 : face->op_count,
	    .trouble = choice->trouble,
	};

	if (!choice->all)
		return;
	buf_text(out, ",\n \"ground_truths\": ");
	truths_matrix_json(&matrix, out);
}

void report_json(const struct pass *pass, const struct report_options *options)
{
	struct totals totals = count_totals(pass);
	struct buf out = {0};

	buf_text(&out, "{\"schema\": 1, ");
	json_text(&out, "root", pass->reftest->root);
	buf_printf(&out, ", \"summary\": {\"definitions\": %" PRId64, totals.definitions);
	for (int s = 0; s < STATUS_COUNT; s++)
		buf_printf(&out, ", \"%s\": %" PRId64, status_name((enum status)s), totals.by_status[s]);
	buf_printf(&out, ", \"unknown\": %" PRId64 ", \"cases_run\": %" PRId64 ", \"cases_cached\": %" PRId64
	           ", \"elements\": %" PRId64, totals.unknown, pass->cases_run, pass->cases_cached, totals.elements);
	json_real(&out, "seconds", pass->seconds);
	buf_printf(&out, ", \"exit\": %d, \"interrupted\": %s, ", report_exit_code(pass, options),
	           pass->interrupted ? "true" : "false");
	json_text(&out, "not_kept", pass->not_kept);
	json_shard(&out, &pass->options->cases.shard);
	buf_text(&out, ", ");
	json_text(&out, "device_class", pass->machine.policy.device_class);
	buf_printf(&out, ", \"accepted_from_elsewhere\": %s", pass->machine.accepted != NULL ? "true" : "false");
	buf_text(&out, "},\n \"problems\": [");
	for (int i = 0; i < pass->problem_count; i++) {
		buf_text(&out, i > 0 ? ", " : "");
		buf_json_string(&out, pass->problems[i]);
	}
	buf_text(&out, "],\n \"definitions\": [");
	for (int i = 0; i < pass->count; i++) {
		buf_text(&out, i > 0 ? ",\n " : "\n ");
		json_definition(&out, pass->outcomes[i]);
		fwrite(out.data, 1, out.length, stdout);
		buf_clear(&out);
	}
	buf_text(&out, "]");
	json_truths(&out, pass);
	buf_text(&out, "}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}
