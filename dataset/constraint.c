#include "dataset/constraint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "dataset/constraint_tokens.h"

/* A recursive-descent parser with one token of lookahead (dataset/constraint_tokens.h) evaluates a constraint during
 * parsing. Each value is known, unknown or wrong (dataset/constraint_values.h); a value is wrong if an error prevented
 * its computation. If a caller only wants to check the syntax, it passes no axis values and no tensors, so all values
 * are unknown. A syntax error stops the parser. */
enum { TEXT_BYTES = 4096, NESTING = 64, SPOTS = 32 };

/* A part of the constraint's text, and the value of this part, for the message about a false constraint. */
struct spot {
	const char *from, *to;
	struct value value;
};

struct parser {
	struct tokens tokens;
	struct known known;
	int nesting;
	struct spot spots[SPOTS];
	int spot_count;
};

static void next(struct parser *p)
{
	tokens_next(&p->tokens);
}

static bool is(const struct parser *p, const char *text)
{
	return tokens_is(&p->tokens, text);
}

static bool take(struct parser *p, const char *text)
{
	return tokens_take(&p->tokens, text);
}

static struct value no_value(void)
{
	return (struct value){.state = WRONG, .axis = -1};
}

static struct value expected(struct parser *p, const char *what)
{
	tokens_expected(&p->tokens, what);
	return no_value();
}

static struct value stop(struct parser *p, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static struct value stop(struct parser *p, const char *at, const char *format, ...)
{
	char sentence[512];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof sentence, format, args);
	va_end(args);
	tokens_stop(&p->tokens, at, "%s", sentence);
	return no_value();
}

static struct value unreadable(struct parser *p, const struct tensor_spec *spec, const char *at)
{
	return stop(p, at, "%s is %s; a constraint can read only integer tensors", spec->name, dtype_name(spec->dtype));
}

/* Converts the operand of an arithmetic operator or of a comparison to a number. Reports an error if the operand is a
 * tensor with dimensions. `at` is the position of the operand in the text. */
static struct value number(struct parser *p, struct value v, const char *at)
{
	if (p->tokens.stopped || v.kind != TENSOR)
		return v;
	const struct tensor_spec *spec = value_spec(&p->known, v);

	if (value_rank(&p->known, v) > 0)
		return stop(p, at, "expected a number, found the tensor %s; name an element, as in %s[-1].item()",
			    spec->name, spec->name);
	return value_readable(spec->dtype, false) ? value_element(&p->known, v) : unreadable(p, spec, at);
}

/* Applies an operator to two numbers. If a number has the state UNKNOWN or WRONG, the result has the same state; WRONG
 * prevails over UNKNOWN. */
static struct value combine(struct parser *p, const char *sign, struct value a, const char *at_a, struct value b,
			    const char *at_b)
{
	a = number(p, a, at_a);
	b = number(p, b, at_b);
	enum value_state state = a.state > b.state ? a.state : b.state;

	if (state != KNOWN || p->tokens.stopped)
		return (struct value){.state = p->tokens.stopped ? WRONG : state, .axis = -1};
	return value_arithmetic(&p->known, sign, a, b);
}

/* --- names and their suffixes -------------------------------------------------------------------------------- */

static struct value expression(struct parser *p);

/* Records that `v` is the value of the text from `from` up to the current token, for the message about a false
 * constraint. */
static struct value spot(struct parser *p, const char *from, struct value v)
{
	if (!p->tokens.stopped && v.state == KNOWN && v.kind != TENSOR && p->spot_count < SPOTS)
		p->spots[p->spot_count++] = (struct spot){from, p->tokens.behind, v};
	return v;
}

/* Records the value of a whole text with spot(), and removes the values that spot() has recorded for parts of this
 * text. */
static struct value spot_whole(struct parser *p, const char *from, int spots_before, struct value v)
{
	if (v.state == KNOWN && v.kind != TENSOR)
		p->spot_count = spots_before;
	return spot(p, from, v);
}

/* Applies one index to a view of a tensor. The index removes the view's first dimension. `at` is the position of the
 * tensor's name in the text. */
static struct value take_element(struct parser *p, struct value view, struct value index, const char *at)
{
	const struct tensor_spec *spec = value_spec(&p->known, view);

	if (value_rank(&p->known, view) == 0)
		return stop(p, at, "%s has only %d dimensions, so another index is not allowed",
			    spec->name, spec->rank);
	struct value i = value_index(&p->known, value_size(&p->known, view, 0), index, spec->name);

	view.dim++;
	if (i.state > view.state)
		view.state = i.state;
	if (view.state == KNOWN && value_contents(&p->known, view.input) != NULL)
		view.offset += i.integer * value_elements(&p->known, view);
	return view;
}

/* Parses an index. The current token is the one after '['. */
static struct value subscript(struct parser *p, struct value view, const char *at)
{
	do {
		const char *place = p->tokens.token.at;
		struct value index = number(p, expression(p), place);

		if (!p->tokens.stopped)
			view = take_element(p, view, index, at);
	} while (!p->tokens.stopped && take(p, ","));
	return take(p, "]") ? view : expected(p, "']'");
}

/* Parses the index that must follow `.shape`. */
static struct value shape(struct parser *p, struct value view)
{
	if (!take(p, "["))
		return expected(p, "'[' after .shape");
	const char *at = p->tokens.token.at;
	struct value i = value_index(&p->known, value_rank(&p->known, view), number(p, expression(p), at), "the shape");

	if (p->tokens.stopped || i.state != KNOWN)
		return take(p, "]") || p->tokens.stopped ? i : expected(p, "']'");
	if (!take(p, "]"))
		return expected(p, "']'");
	int64_t size = value_size(&p->known, view, (int)i.integer);

	return size < 0
		   ? value_unknown(
			 &p->known,
			 p->known.definition->axes[value_spec(&p->known, view)->axis[view.dim + (int)i.integer]].name)
		   : value_integer(size);
}

/* Parses the name of a member. The current token is the one after '.'. */
static struct value member(struct parser *p, struct value view, const char *at)
{
	const struct tensor_spec *spec = value_spec(&p->known, view);
	bool is_shape = is(p, "shape"), is_numel = is(p, "numel"), is_item = is(p, "item");
	char which = is(p, "max") ? 'a' : is(p, "min") ? 'i' : 's';

	if (!is_shape && !is_numel && !is_item && which == 's' && !is(p, "sum"))
		return expected(p, "item(), max(), min(), sum(), numel() or shape[…]");
	next(p);
	struct value v = {.state = WRONG, .axis = -1};

	if (is_shape)
		v = shape(p, view);
	else if (!take(p, "(") || !take(p, ")"))
		return expected(p, "'()'");
	else if (!is_numel && !value_readable(spec->dtype, false))
		return unreadable(p, spec, at);
	else if (view.state != WRONG)
		v = is_numel  ? value_count(&p->known, view)
		    : is_item ? value_item(&p->known, view)
			      : value_reduce(&p->known, view, which);
	if (view.state == WRONG)
		v.state = WRONG; /* an earlier index was out of range, so the result is wrong */
	return v;
}

/* Parses what follows the name of an input, such as `[0]` or `.item()`. The current token is the one after the name. */
static struct value tensor(struct parser *p, int input, const char *at)
{
	struct value v = {.kind = TENSOR, .input = input, .axis = -1};
	const struct tensor_spec *spec = value_spec(&p->known, v);

	if (spec->rank == RANK_SCALAR)
		return is(p, "[") || is(p, ".") ? stop(p, at, "%s is a Python scalar and has no elements", spec->name)
						: value_element(&p->known, v);
	while (v.kind == TENSOR && !p->tokens.stopped) {
		if (take(p, "["))
			v = subscript(p, v, at);
		else if (take(p, "."))
			v = member(p, v, at);
		else
			break;
	}
	return v.kind == TENSOR && !p->tokens.stopped && value_rank(&p->known, v) == 0 ? number(p, v, at) : v;
}

/* --- the grammar --------------------------------------------------------------------------------------------- */

static int find_name(const struct parser *p, const struct token *name, bool axes)
{
	int count = axes ? p->known.definition->axis_count : p->known.definition->input_count;

	for (int i = 0; i < count; i++) {
		const char *candidate = axes ? p->known.definition->axes[i].name : p->known.definition->inputs[i].name;

		if (strlen(candidate) == name->length && memcmp(candidate, name->at, name->length) == 0)
			return i;
	}
	return -1;
}

/* Parses the name of an axis or an input. An axis and an input may have the same name. If '[' or '.' follows, the name
 * refers to the input; if not, to the axis. */
static struct value name(struct parser *p)
{
	struct token token = p->tokens.token;
	int axis = find_name(p, &token, true), input = find_name(p, &token, false), spots = p->spot_count;

	next(p);
	if (input >= 0 && (axis < 0 || is(p, "[") || is(p, ".")))
		return spot_whole(p, token.at, spots, tensor(p, input, token.at));
	if (axis < 0)
		return stop(p, token.at, "expected the name of an axis%s, found '%.*s'", p->tokens.is_length ? "" : " or an input",
			    token.length < 40 ? (int)token.length : 40, token.at);
	struct value v = p->known.axis == NULL || p->known.axis[axis] < 0
			     ? value_unknown(&p->known, p->known.definition->axes[axis].name)
			     : value_integer(p->known.axis[axis]);

	v = spot(p, token.at, v);
	v.axis = axis;
	return v;
}

/* length parses the argument of len(x), and extreme parses the arguments of max(a, b, …) or min(a, b, …). The current
 * token is the one after the opening parenthesis. */
static struct value length(struct parser *p)
{
	struct token token = p->tokens.token;
	int input = token.kind == TOKEN_NAME ? find_name(p, &token, false) : -1;
	struct value v = {.kind = TENSOR, .input = input, .axis = -1};

	if (input < 0)
		return expected(p, "the name of an input");
	next(p);
	if (!take(p, ")"))
		return expected(p, "')'");
	if (p->known.definition->inputs[input].rank <= 0)
		return stop(p, token.at, "%s has no dimensions and therefore no length", p->known.definition->inputs[input].name);
	int64_t size = value_size(&p->known, v, 0);

	return size < 0 ? value_unknown(&p->known, p->known.definition->inputs[input].name) : value_integer(size);
}

static struct value extreme(struct parser *p, bool largest)
{
	const char *at = p->tokens.token.at;
	struct value best = number(p, expression(p), at);
	int count = 1;

	for (; take(p, ","); count++) {
		at = p->tokens.token.at;
		struct value v = number(p, expression(p), at);

		if (v.state > best.state)
			best.state = v.state;
		else if (v.state == KNOWN && best.state == KNOWN &&
			 (largest ? value_number(v) > value_number(best) : value_number(v) < value_number(best)))
			best = v;
	}
	best.axis = -1;
	if (!take(p, ")"))
		return expected(p, "',' or ')'");
	return count > 1 ? best : stop(p, at, "expected at least two arguments");
}

/* Functions of one number. */
static const struct {
	const char *module, *name; /* module: NULL for a builtin of Python */
	char which;		   /* for value_rounded */
} functions[] = {{"math", "ceil", 'c'}, {"math", "floor", 'f'}, {NULL, "int", 't'}, {NULL, "abs", 'a'}};

/* If the text begins with `name`, returns the text after the name and any blanks. Otherwise returns NULL. */
static const char *behind_name(const char *text, const char *name)
{
	size_t length = strlen(name);

	if (strncmp(text, name, length) != 0)
		return NULL;
	text += length;
	return text + strspn(text, " \t");
}

/* If the current token begins a call of one of `functions`, returns the index of the function. Otherwise returns -1. */
static int function_called(const struct parser *p)
{
	const char *at = p->tokens.token.at;

	for (int i = 0; i < (int)(sizeof functions / sizeof *functions) && p->tokens.token.kind == TOKEN_NAME; i++) {
		const char *next = functions[i].module == NULL ? at : behind_name(at, functions[i].module);

		if (next != NULL && functions[i].module != NULL)
			next = *next == '.' ? next + 1 : NULL;
		next = next == NULL ? NULL : behind_name(next, functions[i].name);
		if (next != NULL && *next == '(')
			return i;
	}
	return -1;
}

/* Parses a call of a function; the current token is its name. */
static struct value rounded(struct parser *p, int function)
{
	while (!p->tokens.stopped && !take(p, "("))
		next(p);
	const char *at = p->tokens.token.at;
	struct value v = number(p, expression(p), at);

	v.axis = -1;
	if (!take(p, ")"))
		return expected(p, "')'");
	return v.state == KNOWN && !p->tokens.stopped ? value_rounded(&p->known, functions[function].which, v) : v;
}

static struct value atom(struct parser *p)
{
	int function = function_called(p);
	struct token token = p->tokens.token;
	bool call = token.kind == TOKEN_NAME &&
		    p->tokens.token.at[strspn(token.at + token.length, " \t") + token.length] == '(';

	if (token.kind == TOKEN_INTEGER || token.kind == TOKEN_FLOAT) {
		next(p);
		return token.kind == TOKEN_INTEGER ? value_integer(token.integer) : value_real(token.number);
	}
	if (is(p, "True") || is(p, "False")) {
		next(p);
		return value_integer(*token.at == 'T');
	}
	if (call && (is(p, "len") || is(p, "max") || is(p, "min"))) {
		int spots = p->spot_count;

		next(p);
		next(p);
		return spot_whole(p, token.at, spots, *token.at == 'l' ? length(p) : extreme(p, token.at[1] == 'a'));
	}
	if (function >= 0 && !p->tokens.is_length) { /* in the expression of an axis, functions are not allowed */
		int spots = p->spot_count;

		return spot_whole(p, token.at, spots, rounded(p, function));
	}
	if (take(p, "(")) {
		struct value v = expression(p);

		v.axis = -1;
		return take(p, ")") ? v : expected(p, "')'");
	}
	return token.kind == TOKEN_NAME ? name(p) : expected(p, "a value");
}

/* Parses a unary operator. Each recursion of the parser goes through this function or the function for `not`, so these
 * two functions count the nesting depth. */
static struct value unary(struct parser *p)
{
	const char *at = p->tokens.token.at;
	struct value v;

	if (++p->nesting > NESTING)
		return stop(p, at, "expected at most %d nested operators and parentheses", NESTING);
	if (is(p, "-") || is(p, "+")) {
		bool minus = is(p, "-");

		next(p);
		const char *operand = p->tokens.token.at;

		v = combine(p, minus ? "-" : "+", value_integer(0), at, unary(p), operand);
	} else {
		v = atom(p);
		if (take(p, "**")) {
			const char *exponent = p->tokens.token.at;

			v = combine(p, "**", v, at, unary(p), exponent);
		}
	}
	p->nesting--;
	return v;
}

static struct value product(struct parser *p)
{
	const char *at = p->tokens.token.at;
	struct value v = unary(p);

	while (is(p, "*") || is(p, "/") || is(p, "//") || is(p, "%")) {
		const char *sign = is(p, "//") ? "//" : is(p, "*") ? "*" : is(p, "/") ? "/" : "%";

		next(p);
		const char *operand = p->tokens.token.at;

		v = combine(p, sign, v, at, unary(p), operand);
	}
	return v;
}

static struct value sum(struct parser *p)
{
	const char *at = p->tokens.token.at;
	struct value v = product(p);

	while (is(p, "+") || is(p, "-")) {
		const char *sign = is(p, "+") ? "+" : "-";

		next(p);
		const char *operand = p->tokens.token.at;

		v = combine(p, sign, v, at, product(p), operand);
	}
	return v;
}

/* Parses `&` or `|` between integers. As in Python, the two operators bind tighter than comparisons. */
static struct value bits(struct parser *p, const char *sign, struct value (*operand)(struct parser *))
{
	const char *at = p->tokens.token.at;
	struct value v = operand(p);

	while (is(p, sign)) {
		next(p);
		const char *other = p->tokens.token.at;

		v = combine(p, sign, v, at, operand(p), other);
	}
	return v;
}

static struct value bits_and(struct parser *p)
{
	return bits(p, "&", sum);
}

static struct value bits_or(struct parser *p)
{
	return bits(p, "|", bits_and);
}

static const char *comparison_sign(const struct parser *p)
{
	static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">", "in", "not"};

	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (is(p, signs[i]))
			return signs[i];
	return NULL;
}

static bool compare(const char *sign, long double a, long double b)
{
	switch (sign[0]) {
	case '=':
		return a == b;
	case '!':
		return a != b;
	case '<':
		return sign[1] == '=' ? a <= b : a < b;
	default:
		return sign[1] == '=' ? a >= b : a > b;
	}
}

/* Parses the sequence after `in` or `not in`, and returns whether it contains the value. */
static struct value contained(struct parser *p, struct value left, bool negated)
{
	const char *close = is(p, "(") ? ")" : is(p, "[") ? "]" : is(p, "{") ? "}" : NULL;
	enum value_state state = left.state;
	bool found = false;

	if (close == NULL)
		return expected(p, "a tuple, list or set of numbers");
	next(p);
	while (!p->tokens.stopped && !is(p, close)) {
		const char *at = p->tokens.token.at;
		struct value item = number(p, expression(p), at);

		if (item.state > state)
			state = item.state;
		else if (item.state == KNOWN && left.state == KNOWN)
			found = found || value_number(item) == value_number(left);
		if (!take(p, ",") && !is(p, close))
			return expected(p, "',' or the end of the sequence");
	}
	take(p, close);
	if (state == WRONG || (state == UNKNOWN && !found))
		return (struct value){.state = state, .axis = -1};
	return value_integer(found != negated);
}

/* Returns the result of one comparison. Also writes the right operand to `right`: in a < b < c, b is the left operand
 * of the next comparison. */
static struct value compare_once(struct parser *p, const char *sign, struct value left, struct value *right)
{
	bool negated = sign[0] == 'n';

	next(p);
	if (negated && !take(p, "in"))
		return expected(p, "'in' after 'not'");
	if (negated || sign[0] == 'i') {
		struct value v = contained(p, left, negated);

		return comparison_sign(p) == NULL ? v : expected(p, "'and' or 'or'");
	}
	const char *at = p->tokens.token.at;

	*right = number(p, bits_or(p), at);
	enum value_state state = left.state > right->state ? left.state : right->state;

	if (state != KNOWN)
		return (struct value){.state = state, .axis = -1};
	return value_integer(compare(sign, value_number(left), value_number(*right)));
}

/* Parses comparisons. a < b < c means a < b and b < c. If a comparison is false, the operands after it are not
 * evaluated. */
static struct value comparison(struct parser *p)
{
	const char *at = p->tokens.token.at, *sign;
	struct value left = bits_or(p), result = value_integer(1), right = left;
	bool live = p->known.live;

	if (comparison_sign(p) == NULL)
		return left;
	left = number(p, left, at);
	while ((sign = comparison_sign(p)) != NULL) {
		struct value one = compare_once(p, sign, left, &right);

		if (one.state > result.state && value_is_true(result))
			result.state = one.state;
		else if (one.state == KNOWN && result.state != WRONG && !value_is_true(one)) {
			result = value_integer(0);
			p->known.live = false;
		}
		left = right;
	}
	p->known.live = live;
	return result;
}

static struct value negation(struct parser *p)
{
	const char *at = p->tokens.token.at;

	if (!take(p, "not"))
		return comparison(p);
	if (++p->nesting > NESTING)
		return stop(p, at, "expected at most %d nested operators and parentheses", NESTING);
	const char *operand = p->tokens.token.at;
	struct value v = number(p, negation(p), operand);

	p->nesting--;
	v.axis = -1;
	return v.state == KNOWN && !p->tokens.stopped ? value_integer(!value_is_true(v)) : v;
}

/* Parses `and` or `or`. As in Python, the result is one of the operands: the left one if it alone determines the truth
 * value, otherwise the right one. If the left operand is unknown, the result is unknown. */
static struct value logic(struct parser *p, const char *word, struct value (*operand)(struct parser *))
{
	const char *at = p->tokens.token.at;
	struct value v = operand(p);
	bool live = p->known.live, is_or = word[0] == 'o';

	while (is(p, word)) {
		v = number(p, v, at);
		bool decided = v.state != KNOWN || value_is_true(v) == is_or;

		p->known.live = live && !decided;
		next(p);
		at = p->tokens.token.at;
		struct value right = number(p, operand(p), at);

		if (!decided)
			v = right;
		v.axis = -1;
	}
	p->known.live = live;
	return v;
}

static struct value conjunction(struct parser *p)
{
	return logic(p, "and", negation);
}

static struct value expression(struct parser *p)
{
	return logic(p, "or", conjunction);
}

/* --- the public functions ------------------------------------------------------------------------------------ */

static struct parser begin(const struct definition *definition, const char *text, const int64_t *axis,
			   const struct constraint_tensor *tensors, struct err *err)
{
	return (struct parser){
	    .tokens = tokens_begin(text, TEXT_BYTES, err),
	    .known = {.definition = definition, .axis = axis, .tensors = tensors, .text = text, .live = true}};
}

static struct value whole(struct parser *p)
{
	const char *at = p->tokens.token.at;
	struct value v = number(p, expression(p), at);

	if (!p->tokens.stopped && p->tokens.token.kind != TOKEN_END)
		expected(p, "an operator");
	return v;
}

/* Writes the message "TEXT: TEXT with values is false", for example "rows == 2 * half: 9 == 2 * 4 is false". */
static void write_broken(const struct parser *p, struct err *why)
{
	struct buf text = {0};
	const char *at = p->tokens.text;

	for (int i = 0; i < p->spot_count; i++) {
		const struct spot *s = &p->spots[i];

		buf_add(&text, at, (size_t)(s->from - at));
		if (s->value.kind == INTEGER)
			buf_printf(&text, "%lld", (long long)s->value.integer);
		else
			buf_printf(&text, "%.9g", s->value.number);
		at = s->to;
	}
	buf_text(&text, at);
	err_set(why, "%s: %s is false", p->tokens.text, text.data);
	buf_free(&text);
}

enum constraint_answer constraint_evaluate(const struct definition *definition, const char *text, const int64_t *axis,
					   const struct constraint_tensor *tensors, struct err *why)
{
	struct parser p = begin(definition, text, axis, tensors, why);
	struct value v = whole(&p);

	if (p.tokens.stopped)
		return CONSTRAINT_ERROR;
	if (v.state == WRONG) {
		err_set(why, "%s", p.known.wrong.text);
		return CONSTRAINT_ERROR;
	}
	if (v.state == UNKNOWN) {
		err_set(why, "%s needs %s", text,
			p.known.unknown == NULL ? "an unknown value" : p.known.unknown);
		return CONSTRAINT_UNKNOWN;
	}
	if (value_is_true(v))
		return CONSTRAINT_HOLDS;
	write_broken(&p, why);
	return CONSTRAINT_BROKEN;
}

/* Returns whether `v` is an integer that can be the length of an axis, and if it is, writes this integer to `out`. */
static bool is_length(struct value v, int64_t *out)
{
	const int64_t most = (int64_t)1 << 53;

	if (v.kind == FLOAT && (v.number < 0 || v.number >= (double)most || v.number != (double)(int64_t)v.number))
		return false;
	int64_t length = v.kind == FLOAT ? (int64_t)v.number : v.integer;

	if (length < 0 || length >= most)
		return false;
	*out = length;
	return true;
}

enum constraint_answer constraint_length(const struct definition *definition, const char *text, const int64_t *axis,
					 int64_t *value, struct err *why)
{
	struct parser p = begin(definition, text, axis, NULL, why);
	const char *at = p.tokens.token.at;

	p.tokens.is_length = true;
	p.known.text = NULL;
	struct value v = number(&p, sum(&p), at);

	if (!p.tokens.stopped && p.tokens.token.kind != TOKEN_END)
		expected(&p, "an arithmetic operator");
	if (p.tokens.stopped)
		return CONSTRAINT_ERROR;
	if (v.state == UNKNOWN)
		return CONSTRAINT_UNKNOWN;
	if (v.state == KNOWN && is_length(v, value))
		return CONSTRAINT_HOLDS;
	if (v.state == WRONG)
		err_set(why, "%s", p.known.wrong.text);
	else if (v.kind == FLOAT)
		err_set(why, "the value is %.9g, not an integer from 0 to 9007199254740991", v.number);
	else
		err_set(why, "the value is %lld, not an integer from 0 to 9007199254740991", (long long)v.integer);
	return CONSTRAINT_ERROR;
}

/* Computes unknown axes from their expressions, and returns the number of axes that got a value. */
static int solve_expressions(const struct definition *definition, int64_t *axis)
{
	int filled = 0;

	for (int i = 0; definition->axis_expressions != NULL && i < definition->axis_count; i++) {
		const char *text = definition->axis_expressions[i];

		if (axis[i] < 0 && text != NULL && constraint_length(definition, text, axis, &axis[i], NULL) == CONSTRAINT_HOLDS)
			filled++;
	}
	return filled;
}

/* If the text has the form `axis == expression`, and all values in the expression are known, returns the axis and
 * writes the value of the expression. Otherwise returns -1. */
static int solve_one(const struct definition *definition, const char *text, const int64_t *axis, int64_t *value)
{
	struct parser p = begin(definition, text, axis, NULL, NULL);
	struct value left = sum(&p);

	if (!take(&p, "=="))
		return -1;
	struct value right = sum(&p);

	if (p.tokens.stopped || p.tokens.token.kind != TOKEN_END)
		return -1;
	bool on_left = left.axis >= 0 && left.state == UNKNOWN;
	struct value target = on_left ? left : right, known = on_left ? right : left;

	if (target.axis < 0 || target.state != UNKNOWN || known.state != KNOWN || known.kind != INTEGER ||
	    known.integer < 0 || known.integer >= (int64_t)1 << 53)
		return -1;
	*value = known.integer;
	return target.axis;
}

/* Computes left - right of a constraint `left == right`. Returns false if the text is no equation, if the value of a
 * side is unknown, or if the difference may overflow. */
static bool difference(const struct definition *definition, const char *text, const int64_t *axis, int64_t *out)
{
	const int64_t most = (int64_t)1 << 53;
	struct parser p = begin(definition, text, axis, NULL, NULL);
	struct value left = sum(&p);

	if (!take(&p, "=="))
		return false;
	struct value right = sum(&p);

	if (p.tokens.stopped || p.tokens.token.kind != TOKEN_END || left.state != KNOWN || right.state != KNOWN ||
	    left.kind != INTEGER || right.kind != INTEGER || left.integer <= -most || left.integer >= most ||
	    right.integer <= -most || right.integer >= most)
		return false;
	*out = left.integer - right.integer;
	return true;
}

/* Returns whether the difference of the two sides of a constraint is linear in the axis `unknown`. Also writes the
 * differences for the lengths 0 and 1 of this axis. The function tries larger lengths, too, because a remainder or a
 * quotient may look linear for small lengths. */
static bool is_linear(const struct definition *definition, const char *text, int64_t *axis, int unknown, int64_t ends[2])
{
	static const int64_t values[] = {0, 1, 2, 3, 1021, 65537, 1048583};
	int64_t at;

	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		axis[unknown] = values[i];
		if (!difference(definition, text, axis, &at) || (i > 1 && at - ends[0] != values[i] * (ends[1] - ends[0])))
			return false;
		if (i < 2)
			ends[i] = at;
	}
	return ends[0] != ends[1];
}

/* Solves a constraint such as `hidden == 2 * half` for its only unknown axis. The constraint must be linear in this
 * axis. Returns the axis and writes its value, or returns -1 if there is no solution. */
static int solve_linear(const struct definition *definition, const char *text, const int64_t *axis, int64_t *value)
{
	int64_t tried[DEFINITION_AXES], ends[2];

	memcpy(tried, axis, (size_t)definition->axis_count * sizeof *axis);
	for (int i = 0; i < definition->axis_count; i++) {
		if (axis[i] >= 0)
			continue;
		if (is_linear(definition, text, tried, i, ends)) {
			int64_t slope = ends[1] - ends[0];

			*value = -(ends[0] / slope);
			return ends[0] % slope == 0 && *value >= 0 ? i : -1;
		}
		tried[i] = axis[i];
	}
	return -1;
}

int constraint_solve(const struct definition *definition, int64_t *axis)
{
	int filled = 0, before;

	do {
		before = filled;
		filled += solve_expressions(definition, axis);
		for (int i = 0; i < definition->constraint_count; i++) {
			int64_t value;
			int found = solve_one(definition, definition->constraints[i], axis, &value);

			if (found < 0)
				found = solve_linear(definition, definition->constraints[i], axis, &value);
			if (found >= 0) {
				axis[found] = value;
				filled++;
			}
		}
	} while (filled > before); /* until no further axis gets a value */
	return filled;
}
