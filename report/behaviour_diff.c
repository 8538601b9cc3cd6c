#include "report/behaviour_diff.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/show.h"
#include "engine/base_references.h"
#include "report/github.h"
#include "report/run_json.h"
#include "report/text.h"

enum { OTHER_CASES = 4 /* the maximum number of ids that other_cases lists */ };

static const struct {
	const char *name; /* the behaviour's name in JSON, and the first word of its lines in the text report */
	const char *text; /* the sentence about the behaviour; NULL: sentence() makes it */
	int exit_status;
} rows[] = {
    [BEHAVIOUR_CHANGED] = {"changed", NULL, EXIT_FAILED},
    [BEHAVIOUR_UNKNOWN] = {"unknown", NULL, EXIT_UNVERIFIED},
    [BEHAVIOUR_ROUNDING] = {"rounding", NULL, EXIT_VERIFIED},
    [BEHAVIOUR_SAME] = {"same", NULL, EXIT_VERIFIED},
    [BEHAVIOUR_TEXT] = {"text", "the schema and the code are the same", EXIT_VERIFIED},
    [BEHAVIOUR_ADDED] = {"added", "the definition is not in the commit", EXIT_VERIFIED},
    [BEHAVIOUR_DELETED] = {"deleted", "the definition is only in the commit", EXIT_VERIFIED},
};

_Static_assert(sizeof rows / sizeof *rows == BEHAVIOUR_COUNT, "each behaviour has a row");

/* Returns whether every element of every output has the same value in both references. */
static bool same_values(const struct verdict *v)
{
	for (int i = 0; i < v->output_count; i++)
		if (v->outputs[i].metrics.margin > 0 || v->outputs[i].metrics.max_abs > 0)
			return false;
	return true;
}

static enum behaviour behaviour_of_case(const struct case_result *c)
{
	const struct verdict *v = c->verdict;

	if (v != NULL && v->status == STATUS_PASSED)
		return same_values(v) ? BEHAVIOUR_SAME : BEHAVIOUR_ROUNDING;
	if (v != NULL && v->status == STATUS_FAILED && (v->reason == REASON_NUMERIC || v->reason == REASON_NONFINITE))
		return BEHAVIOUR_CHANGED;
	return BEHAVIOUR_UNKNOWN;
}

enum behaviour behaviour_of(const struct result *result)
{
	enum behaviour worst = BEHAVIOUR_SAME;

	if (!result->known || result->case_count == 0)
		return BEHAVIOUR_UNKNOWN;
	for (int i = 0; i < result->case_count; i++) {
		enum behaviour one = behaviour_of_case(&result->cases[i]);

		worst = one < worst ? one : worst;
	}
	return worst;
}

static int cases_with(const struct result *result, enum behaviour behaviour)
{
	int count = 0;

	for (int i = 0; i < result->case_count; i++)
		count += behaviour_of_case(&result->cases[i]) == behaviour;
	return count;
}

/* Returns the first case with this behaviour. For BEHAVIOUR_ROUNDING, returns the case with the largest margin instead,
 * and sets `margin` to this margin. */
static const struct case_result *example(const struct result *result, enum behaviour behaviour, double *margin)
{
	const struct case_result *found = NULL;

	*margin = -1;
	for (int i = 0; i < result->case_count; i++) {
		const struct case_result *c = &result->cases[i];

		if (behaviour_of_case(c) != behaviour)
			continue;
		if (behaviour != BEHAVIOUR_ROUNDING)
			return c;
		for (int k = 0; k < c->verdict->output_count; k++)
			if (c->verdict->outputs[k].metrics.margin > *margin) {
				*margin = c->verdict->outputs[k].metrics.margin;
				found = c;
			}
	}
	return found;
}

/* Returns a text such as "output 'y': 246 of 256 elements exceed the bound 0.008 + 0.01 |before|, by a factor of up to
 * 58.7". */
static const char *outputs_that_differ(const struct verdict *v, struct arena *arena)
{
	const char *text = "";

	for (int i = 0; i < v->output_count; i++) {
		const struct output_verdict *output = &v->outputs[i];
		const struct metrics *m = &output->metrics;

		if (output->status == STATUS_FAILED)
			text = arena_printf(arena,
					    "%s%soutput '%s': %" PRId64 " of %" PRId64
					    " elements exceed the bound %.3g + %.3g |before|, by a factor of up to "
					    "%.3g",
					    text, *text != '\0' ? "; " : "", output->name, m->elements - m->hits, m->elements,
					    output->atol, output->rtol, m->margin);
	}
	return text;
}

/* Returns a line with the ids of the other cases that differ besides `shown`, or "" if there are none. */
static const char *other_cases(const struct result *result, const struct case_result *shown, struct arena *arena)
{
	const char *text = "";
	int count = 0;

	for (int i = 0; i < result->case_count; i++) {
		const struct case_result *c = &result->cases[i];

		if (c == shown || behaviour_of_case(c) != BEHAVIOUR_CHANGED)
			continue;
		if (count++ < OTHER_CASES)
			text = arena_printf(arena, "%s%s%s", text, count == 1 ? "\nalso in " : ", ", c->test->id);
	}
	return count > OTHER_CASES ? arena_printf(arena, "%s and %d more", text, count - OTHER_CASES) : text;
}

/* Returns whether some output has equal values with different bits: 0 and -0, or two kinds of NaN. */
static bool has_other_bits(const struct verdict *v)
{
	for (int i = 0; i < v->output_count; i++)
		if (v->outputs[i].other_bits)
			return true;
	return false;
}

static const char *same_sentence(const struct result *result, struct arena *arena)
{
	int bits = 0;

	for (int i = 0; i < result->case_count; i++)
		bits += !has_other_bits(result->cases[i].verdict);
	if (bits == result->case_count)
		return arena_printf(arena, "the same bits in %d of %d cases", bits, result->case_count);
	return arena_printf(arena, "the same values in %d of %d cases, but different bits in %d (0 and -0, or two kinds of "
				   "NaN)",
			    result->case_count, result->case_count, result->case_count - bits);
}

static const char *sentence(const struct difference *d, struct arena *arena)
{
	const struct result *result = d->result;
	double margin;

	if (rows[d->behaviour].text != NULL)
		return d->why != NULL ? arena_printf(arena, "%s; %s", rows[d->behaviour].text, d->why) : rows[d->behaviour].text;
	if (result == NULL || result->cases == NULL)
		return d->why != NULL ? d->why : result != NULL && result->message != NULL ? result->message : "no case ran";
	const struct case_result *c = example(result, d->behaviour, &margin);
	const char *message = c != NULL && c->verdict != NULL ? c->verdict->message : NULL;
	int count = cases_with(result, d->behaviour);

	if (d->behaviour == BEHAVIOUR_SAME)
		return same_sentence(result, arena);
	if (d->behaviour == BEHAVIOUR_ROUNDING)
		return arena_printf(arena,
				    "within the bounds in all %d cases, but different values in %d of them; the largest difference is %.2g "
				    "times its bound, in case %s",
				    result->case_count, count, margin, c->test->id);
	if (d->behaviour == BEHAVIOUR_CHANGED)
		return arena_printf(arena, "%d of %d cases differ\n%s: %s%s%s", count, result->case_count, c->test->id,
				    c->verdict->second_set ? "on the second set of input values, " : "",
				    outputs_that_differ(c->verdict, arena), other_cases(result, c, arena));
	return arena_printf(arena, "%d of %d cases could not be compared\n%s: %s", count, result->case_count,
			    c != NULL ? c->test->id : "no case", message != NULL ? message : "it did not run");
}

static enum approved_side approved_side(const struct difference *d)
{
	const struct result *result = d->result;
	const struct base_reference *base;
	struct arena arena = {0};
	enum approved_code before = APPROVED_NONE;

	if (result == NULL || result->approved.approval == NULL)
		return APPROVED_SIDE_NONE;
	if (result->approved.code == APPROVED_SAME_CODE)
		return APPROVED_SIDE_NOW;
	base = base_reference_find(result->run->options->base, d->path);
	if (base != NULL && base->definition != NULL)
		before = approved_reference_compare(base->definition, result->approved.approval, &arena);
	arena_free(&arena);
	return before == APPROVED_SAME_CODE			     ? APPROVED_SIDE_BEFORE
	       : result->approved.code == APPROVED_OTHER_SCHEMA ? APPROVED_SIDE_NONE
								     : APPROVED_SIDE_NEITHER;
}

static const struct {
	const char *name; /* in JSON */
	const char *text; /* before the date */
} sides[] = {
    [APPROVED_SIDE_NONE] = {NULL, NULL},
    [APPROVED_SIDE_NOW] = {"now", "the reference is the one that was approved on"},
    [APPROVED_SIDE_BEFORE] = {"before", "differs from the approved reference: the reference in the commit is the "
					"one that was approved on"},
    [APPROVED_SIDE_NEITHER] = {"neither", "neither the old nor the new reference is the one that was approved on"},
};

static void print_worst(const struct case_result *c)
{
	for (int i = 0; i < c->verdict->output_count; i++)
		if (c->verdict->outputs[i].status == STATUS_FAILED)
			report_worst(stdout, &c->verdict->outputs[i], "now", "before");
}

/* Returns the name of the definition at `path`, such as "rmsnorm/rmsnorm_h64". */
static const char *name_of(const char *path, struct arena *arena)
{
	const char *word = strchr(path, '/') + 1;

	return arena_copy(arena, word, strlen(word) - strlen(".json"));
}

static void print_lines(const char *text)
{
	for (size_t step; *text != '\0'; text += step + (text[step] == '\n')) {
		step = strcspn(text, "\n");
		show_print(stdout, "           %.*s\n", (int)step, text);
	}
}

void behaviour_print(const struct differences *all)
{
	int counts[BEHAVIOUR_COUNT] = {0};
	double margin;

	for (int i = 0; i < all->count; i++) {
		struct arena arena = {0};
		const struct difference *d = &all->items[i];
		const char *text = sentence(d, &arena), *more = strchr(text, '\n');
		int first = (int)(more != NULL ? more - text : (ptrdiff_t)strlen(text));

		counts[d->behaviour]++;
		show_print(stdout, "%-8s %s: %.*s\n", rows[d->behaviour].name, name_of(d->path, &arena), first, text);
		if (more != NULL)
			print_lines(more + 1);
		if (d->behaviour == BEHAVIOUR_CHANGED)
			print_worst(example(d->result, BEHAVIOUR_CHANGED, &margin));
		if (approved_side(d) != APPROVED_SIDE_NONE)
			show_print(stdout, "           %s %s\n", sides[approved_side(d)].text, d->result->approved.approval->date);
		arena_free(&arena);
	}
	show_print(stdout, "%d definition%s from %.12s", all->count, all->count == 1 ? " differs" : "s differ", all->commit);
	for (int b = 0; b < BEHAVIOUR_COUNT; b++)
		if (counts[b] > 0)
			show_print(stdout, ", %d %s", counts[b], rows[b].name);
	show_print(stdout, "\n");
}

static void put_difference(struct buf *out, const struct difference *d)
{
	struct arena arena = {0};

	buf_text(out, "\n  {\"name\": ");
	buf_json_string(out, name_of(d->path, &arena));
	buf_text(out, ", \"path\": ");
	buf_json_string(out, d->path);
	buf_printf(out, ", \"behaviour\": \"%s\", \"message\": ", rows[d->behaviour].name);
	buf_json_string(out, sentence(d, &arena));
	if (approved_side(d) != APPROVED_SIDE_NONE)
		buf_printf(out, ", \"approved\": \"%s\"", sides[approved_side(d)].name);
	else
		buf_text(out, ", \"approved\": null");
	buf_text(out, ", \"cases\": [");
	for (int i = 0; d->result != NULL && d->result->cases != NULL && i < d->result->case_count; i++) {
		const struct case_result *c = &d->result->cases[i];

		buf_printf(out, "%s\n   {\"behaviour\": \"%s\", \"verdict\": ", i > 0 ? "," : "",
			   rows[behaviour_of_case(c)].name);
		report_json_case(out, d->result, c);
		buf_text(out, "}");
	}
	buf_text(out, "]}");
	arena_free(&arena);
}

void behaviour_print_json(const struct differences *all)
{
	struct buf out = {0};

	buf_text(&out, "{\"schema\": 1, \"root\": ");
	buf_json_string(&out, all->root);
	buf_text(&out, ", \"commit\": ");
	buf_json_string(&out, all->commit);
	buf_text(&out, ",\n \"definitions\": [");
	for (int i = 0; i < all->count; i++) {
		buf_text(&out, i > 0 ? "," : "");
		put_difference(&out, &all->items[i]);
	}
	buf_text(&out, "]}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}

/* Returns the sentence about a difference. If a person approved one of the two references, the sentence says which one,
 * and gives the date of the approval. */
static const char *message_of(const struct difference *d, struct arena *arena)
{
	enum approved_side side = approved_side(d);

	return side == APPROVED_SIDE_NONE ? sentence(d, arena)
					  : arena_printf(arena, "%s\n%s %s", sentence(d, arena), sides[side].text,
							 d->result->approved.approval->date);
}

void behaviour_print_github(const struct differences *all)
{
	struct arena arena = {0};
	struct buf out = {0};
	struct annotation *list = arena_array(&arena, (size_t)all->count, sizeof *list);
	int count = 0;

	for (int i = 0; i < all->count; i++) {
		const struct difference *d = &all->items[i];

		if (d->behaviour > BEHAVIOUR_ROUNDING)
			continue;
		list[count++] = (struct annotation){
		    .error = d->behaviour == BEHAVIOUR_CHANGED,
		    .path = arena_printf(&arena, "%s%s", all->prefix, d->path),
		    .title = arena_printf(&arena, "%s: %s", name_of(d->path, &arena), rows[d->behaviour].name),
		    .message = message_of(d, &arena),
		};
	}
	annotate_write(list, count, &out);
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
	arena_free(&arena);
}

int behaviour_exit_status(const struct differences *all)
{
	enum behaviour worst = BEHAVIOUR_SAME;

	for (int i = 0; i < all->count; i++)
		worst = all->items[i].behaviour < worst ? all->items[i].behaviour : worst;
	return rows[worst].exit_status;
}
