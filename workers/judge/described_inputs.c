#include "workers/judge/described_inputs.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/core/dtype_convert.h"
#include "kernels/core/random_inputs.h"

enum { AT_LEAST_2 = -2 };
/* A tensor with more elements than this gets generic values instead of INPUT_ROWS, because the host would need too long
 * to write the rows. */
static const int64_t MOST_IN_ROWS = (int64_t)1 << 20;

enum element { ELEMENT_INTEGER, ELEMENT_BOOL, ELEMENT_FLOAT };

/* This table maps words in the names of inputs to kinds of inputs. The first row that matches an input is used. An
 * empty word matches every name. The input must have the rank `rank`, or any rank if `rank` is 0. If `rank` is
 * AT_LEAST_2, the input must have a rank of 2 or more, and a dtype of at least 16 bits. If `described` is true, a row
 * also matches if the word is in the description of the input. `described` is false for many words, because
 * descriptions often mention other tensors. */
static const struct {
	enum element element;
	const char *word;
	int rank;
	enum input_kind kind;
	bool described;
} words[] = {
    {ELEMENT_BOOL, "", 0, INPUT_MASK, false},
    {ELEMENT_INTEGER, "perm", 1, INPUT_PERMUTATION, true},
    {ELEMENT_INTEGER, "indptr", 1, INPUT_POINTERS, true},
    {ELEMENT_INTEGER, "cu_seq", 1, INPUT_POINTERS, true},
    {ELEMENT_INTEGER, "cumulative", 1, INPUT_POINTERS, true},
    {ELEMENT_INTEGER, "offsets", 1, INPUT_POINTERS, true},
    {ELEMENT_INTEGER, "row_ptr", 1, INPUT_POINTERS, true},
    {ELEMENT_INTEGER, "lens", 0, INPUT_LENGTHS, true},
    {ELEMENT_INTEGER, "length", 0, INPUT_LENGTHS, true},
    {ELEMENT_INTEGER, "mask", 0, INPUT_MASK, true},
    {ELEMENT_INTEGER, "indices", 0, INPUT_INDICES, true},
    {ELEMENT_INTEGER, "index", 0, INPUT_INDICES, true},
    {ELEMENT_INTEGER, "idx", 0, INPUT_INDICES, true},
    {ELEMENT_INTEGER, "ids", 0, INPUT_INDICES, true},
    {ELEMENT_INTEGER, "table", 0, INPUT_INDICES, true},
    {ELEMENT_INTEGER, "slot", 0, INPUT_INDICES, true},
    {ELEMENT_INTEGER, "position", 0, INPUT_INDICES, true},
    {ELEMENT_FLOAT, "cos", 0, INPUT_COSINES, false},
    {ELEMENT_FLOAT, "sin", 0, INPUT_SINES, false},
    {ELEMENT_FLOAT, "prob", 0, INPUT_PROBABILITIES, false},
    {ELEMENT_FLOAT, "var", 0, INPUT_POSITIVE, false},
    {ELEMENT_FLOAT, "scale", 0, INPUT_POSITIVE, false},
    {ELEMENT_FLOAT, "rstd", 0, INPUT_POSITIVE, false},
    {ELEMENT_FLOAT, "cosine", 0, INPUT_COSINES, true},
    {ELEMENT_FLOAT, "sine", 0, INPUT_SINES, true},
    {ELEMENT_FLOAT, "probabilities", 0, INPUT_PROBABILITIES, true},
    {ELEMENT_FLOAT, "variance", 0, INPUT_POSITIVE, true},
    {ELEMENT_FLOAT, "standard deviation", 0, INPUT_POSITIVE, true},
    {ELEMENT_FLOAT, "positive", 0, INPUT_POSITIVE, true},
    {ELEMENT_FLOAT, "x", AT_LEAST_2, INPUT_ROWS, false},
    {ELEMENT_FLOAT, "hidden", AT_LEAST_2, INPUT_ROWS, false},
    {ELEMENT_FLOAT, "input", AT_LEAST_2, INPUT_ROWS, false},
    {ELEMENT_FLOAT, "residual", AT_LEAST_2, INPUT_ROWS, false},
    {ELEMENT_FLOAT, "logits", AT_LEAST_2, INPUT_ROWS, false},
    {ELEMENT_FLOAT, "scores", AT_LEAST_2, INPUT_ROWS, false},
};

/* This table maps words in the names of Python scalars to their values. The first row that matches a name is used. */
static const struct {
	enum element element;
	const char *word;
	double value;
} scalars[] = {
    {ELEMENT_FLOAT, "eps", 1e-6},	    {ELEMENT_FLOAT, "scale", 0.125},	 {ELEMENT_FLOAT, "scaling", 0.125},
    {ELEMENT_FLOAT, "temperature", 0.75}, {ELEMENT_FLOAT, "top_p", 0.75},	 {ELEMENT_FLOAT, "min_p", 0.125},
    {ELEMENT_FLOAT, "dropout", 0.125},	    {ELEMENT_FLOAT, "momentum", 0.125}, {ELEMENT_INTEGER, "top_k", 2},
    {ELEMENT_INTEGER, "topk", 2},	    {ELEMENT_INTEGER, "k", 2},		 {ELEMENT_INTEGER, "num", 1},
    {ELEMENT_INTEGER, "n", 1},		    {ELEMENT_INTEGER, "group", 1},	 {ELEMENT_INTEGER, "groups", 1},
    {ELEMENT_INTEGER, "size", 1},
};

/* This table says which axis bounds the values of an input. A row matches if a word of the input's name begins with
 * `input`, and a word of the axis's name begins with `axis`. */
static const struct {
	const char *input, *axis;
} bounds[] = {
    {"page", "page"},	{"block", "page"},  {"block", "block"},	  {"slot", "slot"},	  {"slot", "pool"},
    {"expert", "expert"}, {"topk", "expert"}, {"token", "vocab"},	  {"input_ids", "vocab"}, {"label", "class"},
    {"label", "vocab"},	{"position", "max"}, {"position", "pos"},  {"seq", "seq"},	  {"len", "seq"},
    {"len", "max"},	{"kv", "kv"},	    {"q", "q"},		  {"kv", "page"},	  {"target", "class"},
};

/* Returns whether a word of `text` begins with `word`, ignoring case. Digits and underscores separate words. */
static bool has_word(const char *text, const char *word)
{
	if (text == NULL)
		return false;
	for (const char *at = text; *at != '\0'; at++)
		if ((at == text || !isalpha((unsigned char)at[-1])) && strncasecmp(at, word, strlen(word)) == 0)
			return true;
	return *word == '\0';
}

static bool leads_another(const struct op_problem *problem, int axis, int input)
{
	for (int i = 0; i < problem->input_count; i++)
		if (i != input && problem->inputs[i].rank > 0 && problem->inputs[i].axis[0] == axis)
			return true;
	return false;
}

static bool is_own_axis(const struct op_arg *arg, int axis)
{
	for (int d = 0; d < arg->rank; d++)
		if (arg->axis[d] == axis)
			return true;
	return false;
}

/* Returns a score for the guess that the values of the input are bounded by the length of the axis. Returns -1 if the
 * input itself has this axis, or if nothing suggests that the axis bounds the values. */
static int fit_of(const struct op_problem *problem, int input, int axis)
{
	const struct op_arg *arg = &problem->inputs[input];
	int fit = leads_another(problem, axis, input) ? 1 : 0;

	if (is_own_axis(arg, axis))
		return -1;
	for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
		if (has_word(arg->name, bounds[i].input) && has_word(problem->axes[axis].name, bounds[i].axis))
			fit += 2;
	return fit > 0 ? fit : -1;
}

static int bounding_axis(const struct op_problem *problem, int input)
{
	int best = -1, best_fit = 0;

	for (int i = 0; i < problem->axis_count; i++) {
		int fit = fit_of(problem, input, i);

		if (fit > best_fit) {
			best = i;
			best_fit = fit;
		}
	}
	return best;
}

static enum element element_of(const struct op_arg *arg)
{
	return arg->dtype == DTYPE_BOOL	       ? ELEMENT_BOOL
	       : dtype_is_float(arg->dtype) ? ELEMENT_FLOAT
					    : ELEMENT_INTEGER;
}

double described_scalar(const struct op_problem *problem, const int64_t *axis, int input)
{
	const struct op_arg *arg = &problem->inputs[input];
	enum element element = element_of(arg);

	for (int i = 0; element == ELEMENT_INTEGER && i < problem->axis_count; i++)
		if (strcmp(problem->axes[i].name, arg->name) == 0 && axis[i] > 0)
			return (double)axis[i];
	for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
		if (scalars[i].element == element && has_word(arg->name, scalars[i].word))
			return scalars[i].value;
	return element == ELEMENT_FLOAT ? 1 : 0;
}

static bool fits_rank(int rank, const struct op_arg *arg)
{
	if (rank == AT_LEAST_2)
		return arg->rank >= 2 && dtype_bits(arg->dtype) >= 16;
	return rank == 0 || rank == arg->rank;
}

/* Forms of constraints that determine the kind of an input. A constraint of such a form has the name of an axis and the
 * name of the input, with the text `between` between the two names and the text `end` after the second name. If
 * `axis_first` is true, the axis comes first. For example, the first form is `n == ptr[-1].item()`. */
static const struct {
	bool axis_first;
	const char *between, *end;
	int rank; /* the rank that the input must have; 0: any rank */
	enum input_kind kind;
} forms[] = {
    {true, "==", "[-1].item()", 1, INPUT_POINTERS},  {true, "==", "[-1]", 1, INPUT_POINTERS},
    {false, "[-1].item()==", "", 1, INPUT_POINTERS}, {false, "[-1]==", "", 1, INPUT_POINTERS},
    {false, ".max()<", "", 0, INPUT_INDICES},	     {false, ".max()<=", "-1", 0, INPUT_INDICES},
    {true, ">", ".max()", 0, INPUT_INDICES},
};

/* If the text begins with `part`, returns the rest of the text, else NULL. Blanks in the text are ignored. */
static const char *behind(const char *text, const char *part)
{
	for (; text != NULL && *part != '\0'; part++) {
		text += strspn(text, " \t");
		text = *text == *part ? text + 1 : NULL;
	}
	return text;
}

static bool has_form(const char *text, const char *first, const char *between, const char *second, const char *end)
{
	text = behind(behind(behind(behind(text, first), between), second), end);
	return text != NULL && text[strspn(text, " \t")] == '\0';
}

/* Returns the kind of input that a constraint determines; INPUT_GENERIC: the constraint determines none. */
static struct described_input constrained_input(const struct op_problem *problem, const char *constraint, int input)
{
	const struct op_arg *arg = &problem->inputs[input];

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		for (int axis = 0; axis < problem->axis_count; axis++) {
			const char *name = problem->axes[axis].name;

			if ((forms[i].rank == 0 || forms[i].rank == arg->rank) &&
			    has_form(constraint, forms[i].axis_first ? name : arg->name, forms[i].between,
				     forms[i].axis_first ? arg->name : name, forms[i].end))
				return (struct described_input){forms[i].kind, axis};
		}
	return (struct described_input){INPUT_GENERIC, -1};
}

struct described_input described_input(const struct op_problem *problem, const char *const *constraints, int count, int input)
{
	const struct op_arg *arg = &problem->inputs[input];
	enum element element = element_of(arg);
	struct described_input out = {INPUT_GENERIC, -1};
	bool bounded;

	for (int i = 0; i < count && element == ELEMENT_INTEGER && arg->rank != OP_SCALAR; i++) {
		out = constrained_input(problem, constraints[i], input);
		if (out.kind != INPUT_GENERIC)
			return out;
	}
	for (size_t i = 0; arg->rank != OP_SCALAR && out.kind == INPUT_GENERIC && i < sizeof words / sizeof *words; i++)
		if (words[i].element == element && fits_rank(words[i].rank, arg) &&
		    (has_word(arg->name, words[i].word) || (words[i].described && has_word(arg->description, words[i].word))))
			out.kind = words[i].kind;
	bounded = out.kind == INPUT_POINTERS || out.kind == INPUT_LENGTHS || out.kind == INPUT_INDICES;
	if (bounded)
		out.axis = bounding_axis(problem, input);
	if (bounded && out.axis < 0)
		out.kind = INPUT_GENERIC;
	return out;
}

bool described_input_is_generic(const struct described_input *described, int64_t elements)
{
	return described->kind == INPUT_GENERIC || (described->kind == INPUT_ROWS && elements > MOST_IN_ROWS);
}

const char *input_kind_name(enum input_kind kind)
{
	static const char *const names[INPUT_KINDS] = {"generic", "pointers",	   "lengths", "indices", "permutation", "mask",
						       "probabilities", "positive", "cosines", "sines", "rows"};

	return names[kind];
}

/* Returns a uniform random number in [0, 1). */
static double uniform(uint64_t key, int64_t index)
{
	return philox_bits(key, index) / 4294967296.0;
}

/* Writes pointers that divide `total` elements into segments. In the first set of values, the segments have equal
 * lengths, as far as possible. In the second set of values, each segment has one element, except the first segment,
 * which has the rest. Therefore no segment is empty if `total` is large enough. */
static void fill_pointers(const struct op_case *c, int64_t total, struct tensor *out)
{
	int64_t segments = out->elements - 1;

	for (int64_t i = 1; i <= segments; i++) {
		int64_t even = (int64_t)((double)i * (double)total / (double)segments);
		int64_t uneven = total > segments - i ? total - (segments - i) : 0;

		dtype_store(out->data, out->dtype, i,
			    (double)(i == segments ? total : c->contents == CONTENTS_FIRST ? even : uneven));
	}
}

static void fill_probabilities(uint64_t key, struct tensor *out)
{
	int64_t width = out->rank > 0 ? out->shape[out->rank - 1] : 1;

	for (int64_t row = 0; width > 0 && row < out->elements / width; row++) {
		double sum = 0;

		for (int64_t i = 0; i < width; i++)
			sum += 0.1 + uniform(key, row * width + i);
		for (int64_t i = 0; i < width; i++)
			dtype_store(out->data, out->dtype, row * width + i, (0.1 + uniform(key, row * width + i)) / sum);
	}
}

/* Writes the numbers 0, 1, 2, … in a random order. */
static void fill_permutation(uint64_t key, struct tensor *out)
{
	for (int64_t i = 0; i < out->elements; i++) {
		int64_t other = (int64_t)(uniform(key, i) * (double)(i + 1));

		dtype_store(out->data, out->dtype, i, dtype_load(out->data, out->dtype, other));
		dtype_store(out->data, out->dtype, other, (double)i);
	}
}

/* Writes generic values that differ from row to row. In each group of four rows, the first row has values between -1
 * and 1, the second has values between -0.001 and 0.001 (so that an epsilon matters), the third has values between -1
 * and 1 and one large element, and the fourth has values between -2 and 2. */
static void fill_rows(uint64_t key, struct tensor *out)
{
	static const double factor[] = {1, 1e-3, 1, 2};
	enum { KINDS = sizeof factor / sizeof *factor, SPIKE = 2 };
	int64_t width = out->shape[out->rank - 1];

	for (int64_t i = 0; i < out->elements; i++) {
		int64_t row = i / width;
		double value = (2 * uniform(key, i) - 1) * factor[row % KINDS];

		if (row % KINDS == SPIKE && i % width == row % width)
			value = copysign(4 + 4 * fabs(value), value);
		dtype_store(out->data, out->dtype, i, value);
	}
}

static double value_of(enum input_kind kind, double random, int64_t bound)
{
	static const double pi = 3.14159265358979323846;

	switch (kind) {
	case INPUT_LENGTHS:
		return 1 + floor(random * (double)bound);
	case INPUT_INDICES:
		return floor(random * (double)bound);
	case INPUT_MASK:
		return random < 0.5;
	case INPUT_POSITIVE:
		return 0.5 + random;
	case INPUT_COSINES:
		return cos(2 * pi * random);
	case INPUT_SINES:
		return sin(2 * pi * random);
	default:
		return 0;
	}
}

void described_input_fill(const struct op_case *c, int input, const struct described_input *described,
			  struct tensor *out)
{
	bool angle = described->kind == INPUT_COSINES || described->kind == INPUT_SINES;
	uint64_t key = angle ? c->seed ^ UINT64_C(0x5851f42d4c957f2d) : input_key(c, input);
	int64_t bound = described->axis >= 0 ? c->axis[described->axis] : 0;

	memset(out->data, 0, (size_t)dtype_bytes(out->dtype, out->elements));
	if (described->kind == INPUT_POINTERS)
		fill_pointers(c, bound, out);
	else if (described->kind == INPUT_PROBABILITIES)
		fill_probabilities(key, out);
	else if (described->kind == INPUT_PERMUTATION)
		fill_permutation(key, out);
	else if (described->kind == INPUT_ROWS)
		fill_rows(key, out);
	else if (bound > 0 || described->axis < 0)
		for (int64_t i = 0; i < out->elements; i++)
			dtype_store(out->data, out->dtype, i, value_of(described->kind, uniform(key, i), bound));
}
