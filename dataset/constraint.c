#include "dataset/constraint.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* The text is evaluated while it is parsed, by recursive descent over a window of one token. A value may be unknown
 * (it then makes what it touches unknown) or wrong (an index out of range, a division by zero); a constraint is checked
 * for sense by evaluating it with nothing known. What the text itself does wrong stops the parser at once. */
enum { TEXT_BYTES = 4096, NESTING = 64, SPOTS = 32 };

/* --- tokens -------------------------------------------------------------------------------------------------- */

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_INTEGER, TOKEN_FLOAT, TOKEN_SIGN };

struct token {
	enum token_kind kind;
	const char *at;
	size_t length;
	int64_t integer;
	double number;
};

enum state { KNOWN, UNKNOWN, WRONG };
enum kind { INTEGER, FLOAT, TENSOR };

/* A tensor value is a view: the input `input` with its first `dim` dimensions indexed away, beginning at `offset`. Its
 * state says whether that place is known; whether the contents are is another question (contents()). */
struct value {
	enum state state;
	enum kind kind;
	int64_t integer;
	double number;
	int input, dim;
	int64_t offset; /* in elements; meaningful when place and contents are known */
	int axis;       /* >= 0: just the name of this axis, nothing else */
};

/* A part of the text that was replaced by what it stands for, to tell why a constraint is broken. */
struct spot {
	const char *from, *to;
	struct value value;
};

struct parser {
	const struct definition *definition;
	const char *text;
	const int64_t *axis;                     /* NULL: none is known */
	const struct constraint_tensor *tensors; /* NULL: none is known */
	struct token token;
	const char *behind;   /* where the token before this one ended */
	bool live;            /* false: behind an `or` that is decided; parsed, not evaluated */
	int nesting;
	bool stopped;         /* the text makes no sense: `err` is set and the tokens are at their end */
	struct err *err;
	struct err wrong;     /* the first thing that went wrong while evaluating */
	const char *unknown;  /* the first name whose value was missing; NULL: none */
	struct spot spots[SPOTS];
	int spot_count;
};

static int column_of(const struct parser *p, const char *at)
{
	int column = 1;

	for (const char *c = p->text; c < at; c++)
		column += ((unsigned char)*c & 0xC0) != 0x80;
	return column;
}

/* The text makes no sense at `at`. The parser sees only the end of the text from here on. */
static struct value stop(struct parser *p, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static struct value stop(struct parser *p, const char *at, const char *format, ...)
{
	char sentence[512];
	va_list args;

	if (!p->stopped) {
		va_start(args, format);
		vsnprintf(sentence, sizeof sentence, format, args);
		va_end(args);
		err_set(p->err, "column %d of the constraint \"%s\": %s", column_of(p, at), err_show(p->text).text,
		        sentence);
	}
	p->stopped = true;
	p->token = (struct token){.kind = TOKEN_END, .at = at};
	return (struct value){.state = WRONG, .axis = -1};
}

/* The value cannot be told: the reason is kept if anybody needs the value. */
static struct value wrong(struct parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static struct value wrong(struct parser *p, const char *format, ...)
{
	va_list args;
	char sentence[512];

	if (p->live && p->wrong.text[0] == '\0') {
		va_start(args, format);
		vsnprintf(sentence, sizeof sentence, format, args);
		va_end(args);
		err_set(&p->wrong, "the constraint \"%s\" cannot be evaluated: %s", err_show(p->text).text, sentence);
	}
	return (struct value){.state = p->live ? WRONG : UNKNOWN, .axis = -1};
}

static size_t number_length(const char *at)
{
	size_t i = 0;

	while (isalnum((unsigned char)at[i]) || at[i] == '.' || at[i] == '_' ||
	       ((at[i] == '+' || at[i] == '-') && i > 0 && (at[i - 1] == 'e' || at[i - 1] == 'E')))
		i++;
	return i;
}

static void read_number(struct parser *p)
{
	struct token *token = &p->token;
	char copy[48], *end;

	token->length = number_length(token->at);
	if (token->length >= sizeof copy) {
		stop(p, token->at, "expected a number of fewer than %zu characters", sizeof copy);
		return;
	}
	memcpy(copy, token->at, token->length);
	copy[token->length] = '\0';
	token->kind = strspn(copy, "0123456789") == token->length ? TOKEN_INTEGER : TOKEN_FLOAT;
	token->number = strtod(copy, &end);
	if (*end != '\0' || strspn(copy, "0123456789.eE+-") != token->length) {
		stop(p, token->at, "expected a decimal number, found '%s'", copy);
	} else if (token->kind == TOKEN_INTEGER) {
		errno = 0;
		token->integer = strtoll(copy, NULL, 10);
		if (errno == ERANGE)
			stop(p, token->at, "expected an integer below 2^63, found %s", copy);
	} else if (!isfinite(token->number)) {
		stop(p, token->at, "expected a number that fits a 64-bit float, found %s", copy);
	}
}

static void next(struct parser *p)
{
	static const char *const signs[] = {"==", "!=", "<=", ">=", "//", "**", "<", ">", "+", "-",
	                                    "*",  "/",  "%",  "(",  ")",  "[",  "]", ",", "."};
	const char *at = p->token.at + p->token.length;

	if (p->stopped)
		return;
	p->behind = at;
	at += strspn(at, " \t\r\n");
	p->token = (struct token){.kind = TOKEN_END, .at = at};
	if (*at == '\0')
		return;
	if (isalpha((unsigned char)*at) || *at == '_') {
		p->token.kind = TOKEN_NAME;
		while (isalnum((unsigned char)at[p->token.length]) || at[p->token.length] == '_')
			p->token.length++;
		return;
	}
	if (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1]))) {
		read_number(p);
		return;
	}
	p->token.kind = TOKEN_SIGN;
	for (size_t i = 0; i < sizeof signs / sizeof *signs && p->token.length == 0; i++)
		if (strncmp(at, signs[i], strlen(signs[i])) == 0)
			p->token.length = strlen(signs[i]);
	if (p->token.length == 0)
		stop(p, at,
		     *at == '=' ? "found '=', which compares nothing; write '=='"
		                : "found a character that means nothing here");
}

/* Is the present token this word or sign? */
static bool is(const struct parser *p, const char *text)
{
	return p->token.kind != TOKEN_END && p->token.length == strlen(text) &&
	       memcmp(p->token.at, text, p->token.length) == 0;
}

static bool take(struct parser *p, const char *text)
{
	if (!is(p, text))
		return false;
	next(p);
	return true;
}

static struct value expected(struct parser *p, const char *what)
{
	char found[64];

	snprintf(found, sizeof found, "%.*s", p->token.length < 40 ? (int)p->token.length : 40, p->token.at);
	if (p->token.kind == TOKEN_END)
		return stop(p, p->token.at, "expected %s, found the end", what);
	return stop(p, p->token.at, "expected %s, found '%s'", what, found);
}

/* --- values -------------------------------------------------------------------------------------------------- */

static struct value integer(int64_t number)
{
	return (struct value){.kind = INTEGER, .integer = number, .axis = -1};
}

static struct value real(double number)
{
	return (struct value){.kind = FLOAT, .number = number, .axis = -1};
}

static struct value unknown(struct parser *p, const char *name)
{
	if (p->live && p->unknown == NULL)
		p->unknown = name;
	return (struct value){.state = UNKNOWN, .axis = -1};
}

/* Long double holds every int64 and every double on the machines this runs on, or rounds alike on both sides. */
static long double as_real(struct value v)
{
	return v.kind == INTEGER ? (long double)v.integer : (long double)v.number;
}

static bool is_true(struct value v)
{
	return as_real(v) != 0;
}

static const struct constraint_tensor *contents(const struct parser *p, int input)
{
	const struct constraint_tensor *tensor = p->tensors == NULL ? NULL : &p->tensors[input];
	int rank = p->definition->inputs[input].rank;

	return tensor != NULL && tensor->data != NULL && (tensor->rank == rank || (tensor->rank <= 0 && rank <= 0))
	           ? tensor
	           : NULL;
}

static const struct tensor_spec *spec_of(const struct parser *p, struct value v)
{
	return &p->definition->inputs[v.input];
}

static int rank_of(const struct parser *p, struct value v)
{
	int rank = spec_of(p, v)->rank;

	return rank < 0 ? 0 : rank - v.dim;
}

/* Size of dimension `i` of a view, -1 if it is not known. */
static int64_t size_of(const struct parser *p, struct value v, int i)
{
	const struct constraint_tensor *tensor = contents(p, v.input);

	if (tensor != NULL)
		return tensor->shape[v.dim + i];
	return p->axis == NULL ? -1 : p->axis[spec_of(p, v)->axis[v.dim + i]];
}

/* Elements of a view, -1 if not known or beyond counting. */
static int64_t elements_of(const struct parser *p, struct value v)
{
	int64_t elements = 1;

	for (int i = 0; i < rank_of(p, v); i++) {
		int64_t size = size_of(p, v, i);

		if (size < 0 || __builtin_mul_overflow(elements, size, &elements))
			return -1;
	}
	return elements;
}

static bool readable(enum dtype dtype, bool scalar)
{
	return !dtype_is_float(dtype) || (scalar && (dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64));
}

/* One element of known contents. Bytes may lie anywhere, so each is copied out. */
static struct value element(const struct constraint_tensor *tensor, int64_t index)
{
	union {
		int64_t i64;
		int32_t i32;
		int16_t i16;
		int8_t i8;
		uint8_t u8;
		uint32_t u32;
		float f32;
		double f64;
	} bits = {0};
	int64_t size = dtype_bits(tensor->dtype) / 8;

	memcpy(&bits, (const char *)tensor->data + index * size, (size_t)size);
	switch (tensor->dtype) {
	case DTYPE_INT64:
		return integer(bits.i64);
	case DTYPE_INT32:
		return integer(bits.i32);
	case DTYPE_INT16:
		return integer(bits.i16);
	case DTYPE_INT8:
		return integer(bits.i8);
	case DTYPE_UINT32:
		return integer(bits.u32);
	case DTYPE_FLOAT32:
		return real(bits.f32);
	case DTYPE_FLOAT64:
		return real(bits.f64);
	default: /* bool, uint8 */
		return integer(bits.u8);
	}
}

/* The number at a view's place. */
static struct value number_in(struct parser *p, struct value view)
{
	const struct tensor_spec *spec = spec_of(p, view);
	const struct constraint_tensor *tensor = contents(p, view.input);

	if (view.state == WRONG)
		return (struct value){.state = WRONG, .axis = -1};
	if (view.state == UNKNOWN || tensor == NULL || !readable(tensor->dtype, spec->rank == RANK_SCALAR))
		return unknown(p, spec->name);
	return element(tensor, view.offset);
}

static struct value unreadable(struct parser *p, const struct tensor_spec *spec, const char *at)
{
	return stop(p, at, "%s is %s; only tensors of integers can be read here", spec->name, dtype_name(spec->dtype));
}

/* What arithmetic and comparisons work on: a number. `at`: where the value stands, for the sentence. */
static struct value number(struct parser *p, struct value v, const char *at)
{
	if (p->stopped || v.kind != TENSOR)
		return v;
	const struct tensor_spec *spec = spec_of(p, v);

	if (rank_of(p, v) > 0)
		return stop(p, at, "expected a number, found the tensor %s; name an element, as in %s[-1].item()",
		            spec->name, spec->name);
	return readable(spec->dtype, false) ? number_in(p, v) : unreadable(p, spec, at);
}

/* --- arithmetic: Python's, on exact 64-bit integers and floats ----------------------------------------------- */

static struct value overflow(struct parser *p)
{
	return wrong(p, "an integer leaves 64 bits");
}

static struct value divide_integers(struct parser *p, char sign, int64_t a, int64_t b)
{
	if (b == 0)
		return wrong(p, "a division by zero");
	if (a == INT64_MIN && b == -1)
		return sign == '%' ? integer(0) : overflow(p);
	int64_t quotient = a / b, rest = a % b;

	if (rest != 0 && (rest < 0) != (b < 0)) { /* rounds down, and the rest has the sign of b */
		quotient--;
		rest += b;
	}
	return integer(sign == '%' ? rest : quotient);
}

static struct value divide_floats(struct parser *p, char sign, double a, double b)
{
	if (b == 0)
		return wrong(p, "a division by zero");
	double rest = fmod(a, b);

	if (rest != 0 && (rest < 0) != (b < 0))
		rest += b;
	return real(sign == '%' ? rest : floor((a - rest) / b + 0.5));
}

static struct value power(struct parser *p, struct value a, struct value b)
{
	int64_t result = 1, base = a.integer;

	if (a.kind != INTEGER || b.kind != INTEGER || b.integer < 0) {
		double number_value = pow((double)as_real(a), (double)as_real(b));

		return isfinite(number_value) ? real(number_value) : wrong(p, "a power that is no number");
	}
	for (int64_t exponent = b.integer; exponent > 0; exponent >>= 1) {
		if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
			return overflow(p);
		if (exponent > 1 && __builtin_mul_overflow(base, base, &base))
			return overflow(p);
	}
	return integer(result);
}

static struct value arithmetic(struct parser *p, const char *sign, struct value a, struct value b)
{
	int64_t result;
	bool integers = a.kind == INTEGER && b.kind == INTEGER;
	double x = (double)as_real(a), y = (double)as_real(b);

	if (strcmp(sign, "**") == 0)
		return power(p, a, b);
	if (strcmp(sign, "//") == 0 || strcmp(sign, "%") == 0)
		return integers ? divide_integers(p, sign[0], a.integer, b.integer) : divide_floats(p, sign[0], x, y);
	switch (sign[0]) {
	case '/':
		return y == 0 ? wrong(p, "a division by zero") : real(x / y);
	case '+':
		return !integers                                                ? real(x + y)
		       : __builtin_add_overflow(a.integer, b.integer, &result) ? overflow(p)
		                                                               : integer(result);
	case '-':
		return !integers                                                ? real(x - y)
		       : __builtin_sub_overflow(a.integer, b.integer, &result) ? overflow(p)
		                                                               : integer(result);
	default:
		return !integers                                                ? real(x * y)
		       : __builtin_mul_overflow(a.integer, b.integer, &result) ? overflow(p)
		                                                               : integer(result);
	}
}

/* Both operands as numbers, unless one is unknown or wrong. */
static struct value combine(struct parser *p, const char *sign, struct value a, const char *at_a, struct value b,
                            const char *at_b)
{
	a = number(p, a, at_a);
	b = number(p, b, at_b);
	enum state state = a.state > b.state ? a.state : b.state;

	if (state != KNOWN || p->stopped)
		return (struct value){.state = p->stopped ? WRONG : state, .axis = -1};
	return arithmetic(p, sign, a, b);
}

/* --- names, and what may follow them ------------------------------------------------------------------------- */

static struct value expression(struct parser *p);

/* Shows in the end what this part of the text stood for. */
static struct value spot(struct parser *p, const char *from, struct value v)
{
	if (!p->stopped && v.state == KNOWN && v.kind != TENSOR && p->spot_count < SPOTS)
		p->spots[p->spot_count++] = (struct spot){from, p->behind, v};
	return v;
}

/* Spots inside one that replaces them all are dropped. */
static struct value spot_whole(struct parser *p, const char *from, int spots_before, struct value v)
{
	if (v.state == KNOWN && v.kind != TENSOR)
		p->spot_count = spots_before;
	return spot(p, from, v);
}

static struct value index_of(struct parser *p, int64_t size, struct value index, const char *what)
{
	if (index.state != KNOWN)
		return index;
	if (index.kind != INTEGER)
		return wrong(p, "an index that is no integer");
	int64_t i = index.integer < 0 && size >= 0 ? index.integer + size : index.integer;

	if (size < 0)
		return unknown(p, what);
	if (i < 0 || i >= size)
		return wrong(p, "the index %lld is outside %s of size %lld", (long long)index.integer, what,
		             (long long)size);
	return integer(i);
}

/* One index into a view, which loses its first dimension; `at` is where the tensor stands. */
static struct value take_element(struct parser *p, struct value view, struct value index, const char *at)
{
	const struct tensor_spec *spec = spec_of(p, view);

	if (rank_of(p, view) == 0)
		return stop(p, at, "%s has %d dimensions and takes no further index", spec->name, spec->rank);
	struct value i = index_of(p, size_of(p, view, 0), index, spec->name);

	view.dim++;
	if (i.state > view.state)
		view.state = i.state;
	if (view.state == KNOWN && contents(p, view.input) != NULL)
		view.offset += i.integer * elements_of(p, view);
	return view;
}

/* Behind a '['. */
static struct value subscript(struct parser *p, struct value view, const char *at)
{
	do {
		const char *place = p->token.at;
		struct value index = number(p, expression(p), place);

		if (!p->stopped)
			view = take_element(p, view, index, at);
	} while (!p->stopped && take(p, ","));
	return take(p, "]") ? view : expected(p, "']'");
}

static struct value reduce(struct parser *p, struct value view, char which)
{
	const struct constraint_tensor *tensor = contents(p, view.input);
	int64_t count = elements_of(p, view), total = 0;

	if (view.state == UNKNOWN || tensor == NULL || count < 0 || !readable(tensor->dtype, false))
		return unknown(p, spec_of(p, view)->name);
	if (count == 0 && which != 's')
		return wrong(p, "%s is empty and has neither a largest nor a smallest element", spec_of(p, view)->name);
	for (int64_t i = 0; i < count; i++) {
		int64_t v = element(tensor, view.offset + i).integer;

		if (which == 's') {
			if (__builtin_add_overflow(total, v, &total))
				return overflow(p);
		} else if (i == 0 || (which == 'a' ? v > total : v < total)) {
			total = v;
		}
	}
	return integer(total);
}

static struct value item(struct parser *p, struct value view)
{
	int64_t count = elements_of(p, view);

	if (count < 0)
		return unknown(p, spec_of(p, view)->name);
	if (count != 1)
		return wrong(p, "%s has %lld elements where .item() takes one", spec_of(p, view)->name,
		             (long long)count);
	return number_in(p, view);
}

/* `.shape` must be followed by an index. */
static struct value shape(struct parser *p, struct value view)
{
	if (!take(p, "["))
		return expected(p, "'[' after .shape");
	const char *at = p->token.at;
	struct value i = index_of(p, rank_of(p, view), number(p, expression(p), at), "the shape");

	if (p->stopped || i.state != KNOWN)
		return take(p, "]") || p->stopped ? i : expected(p, "']'");
	if (!take(p, "]"))
		return expected(p, "']'");
	int64_t size = size_of(p, view, (int)i.integer);

	return size < 0 ? unknown(p, p->definition->axes[spec_of(p, view)->axis[view.dim + (int)i.integer]].name)
	                : integer(size);
}

static struct value count_elements(struct parser *p, struct value view)
{
	int64_t count = elements_of(p, view);

	return count < 0 ? unknown(p, spec_of(p, view)->name) : integer(count);
}

/* Behind a '.'. */
static struct value member(struct parser *p, struct value view, const char *at)
{
	const struct tensor_spec *spec = spec_of(p, view);
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
	else if (!is_numel && !readable(spec->dtype, false))
		return unreadable(p, spec, at);
	else if (view.state != WRONG)
		v = is_numel ? count_elements(p, view) : is_item ? item(p, view) : reduce(p, view, which);
	if (view.state == WRONG)
		v.state = WRONG; /* an index before went out of range */
	return v;
}

/* The name of an input, at the token behind it. */
static struct value tensor(struct parser *p, int input, const char *at)
{
	struct value v = {.kind = TENSOR, .input = input, .axis = -1};
	const struct tensor_spec *spec = spec_of(p, v);

	if (spec->rank == RANK_SCALAR)
		return is(p, "[") || is(p, ".") ? stop(p, at, "%s is a Python scalar and has no elements", spec->name)
		                                : number_in(p, v);
	while (v.kind == TENSOR && !p->stopped) {
		if (take(p, "["))
			v = subscript(p, v, at);
		else if (take(p, "."))
			v = member(p, v, at);
		else
			break;
	}
	return v.kind == TENSOR && !p->stopped && rank_of(p, v) == 0 ? number(p, v, at) : v;
}

/* --- the grammar --------------------------------------------------------------------------------------------- */

static int find_name(const struct parser *p, const struct token *name, bool axes)
{
	int count = axes ? p->definition->axis_count : p->definition->input_count;

	for (int i = 0; i < count; i++) {
		const char *candidate = axes ? p->definition->axes[i].name : p->definition->inputs[i].name;

		if (strlen(candidate) == name->length && memcmp(candidate, name->at, name->length) == 0)
			return i;
	}
	return -1;
}

/* An axis and an input may share a name: with an index or a member behind it, it is the input. */
static struct value name(struct parser *p)
{
	struct token token = p->token;
	int axis = find_name(p, &token, true), input = find_name(p, &token, false), spots = p->spot_count;

	next(p);
	if (input >= 0 && (axis < 0 || is(p, "[") || is(p, ".")))
		return spot_whole(p, token.at, spots, tensor(p, input, token.at));
	if (axis < 0)
		return stop(p, token.at, "expected the name of an axis or an input, found '%.*s'",
		            token.length < 40 ? (int)token.length : 40, token.at);
	struct value v = p->axis == NULL || p->axis[axis] < 0 ? unknown(p, p->definition->axes[axis].name)
	                                                       : integer(p->axis[axis]);

	v = spot(p, token.at, v);
	v.axis = axis;
	return v;
}

/* len(x), max(a, b, …), min(a, b, …), behind the parenthesis. */
static struct value length(struct parser *p)
{
	struct token token = p->token;
	int input = token.kind == TOKEN_NAME ? find_name(p, &token, false) : -1;
	struct value v = {.kind = TENSOR, .input = input, .axis = -1};

	if (input < 0)
		return expected(p, "the name of an input");
	next(p);
	if (!take(p, ")"))
		return expected(p, "')'");
	if (p->definition->inputs[input].rank <= 0)
		return stop(p, token.at, "%s has no dimensions, so no length", p->definition->inputs[input].name);
	int64_t size = size_of(p, v, 0);

	return size < 0 ? unknown(p, p->definition->inputs[input].name) : integer(size);
}

static struct value extreme(struct parser *p, bool largest)
{
	const char *at = p->token.at;
	struct value best = number(p, expression(p), at);
	int count = 1;

	for (; take(p, ","); count++) {
		at = p->token.at;
		struct value v = number(p, expression(p), at);

		if (v.state > best.state)
			best.state = v.state;
		else if (v.state == KNOWN && best.state == KNOWN &&
		         (largest ? as_real(v) > as_real(best) : as_real(v) < as_real(best)))
			best = v;
	}
	best.axis = -1;
	if (!take(p, ")"))
		return expected(p, "',' or ')'");
	return count > 1 ? best : stop(p, at, "expected at least two values to choose from");
}

static struct value atom(struct parser *p)
{
	struct token token = p->token;
	bool call =
	    token.kind == TOKEN_NAME && p->token.at[strspn(token.at + token.length, " \t") + token.length] == '(';

	if (token.kind == TOKEN_INTEGER || token.kind == TOKEN_FLOAT) {
		next(p);
		return token.kind == TOKEN_INTEGER ? integer(token.integer) : real(token.number);
	}
	if (is(p, "True") || is(p, "False")) {
		next(p);
		return integer(*token.at == 'T');
	}
	if (call && (is(p, "len") || is(p, "max") || is(p, "min"))) {
		int spots = p->spot_count;

		next(p);
		next(p);
		return spot_whole(p, token.at, spots, *token.at == 'l' ? length(p) : extreme(p, token.at[1] == 'a'));
	}
	if (take(p, "(")) {
		struct value v = expression(p);

		v.axis = -1;
		return take(p, ")") ? v : expected(p, "')'");
	}
	return token.kind == TOKEN_NAME ? name(p) : expected(p, "a value");
}

/* Every way down the grammar passes here or through `not`, so the depth is counted here. */
static struct value unary(struct parser *p)
{
	const char *at = p->token.at;
	struct value v;

	if (++p->nesting > NESTING)
		return stop(p, at, "expected at most %d operators and parentheses inside one another", NESTING);
	if (is(p, "-") || is(p, "+")) {
		bool minus = is(p, "-");

		next(p);
		const char *operand = p->token.at;

		v = combine(p, minus ? "-" : "+", integer(0), at, unary(p), operand);
	} else {
		v = atom(p);
		if (take(p, "**")) {
			const char *exponent = p->token.at;

			v = combine(p, "**", v, at, unary(p), exponent);
		}
	}
	p->nesting--;
	return v;
}

static struct value product(struct parser *p)
{
	const char *at = p->token.at;
	struct value v = unary(p);

	while (is(p, "*") || is(p, "/") || is(p, "//") || is(p, "%")) {
		const char *sign = is(p, "//") ? "//" : is(p, "*") ? "*" : is(p, "/") ? "/" : "%";

		next(p);
		const char *operand = p->token.at;

		v = combine(p, sign, v, at, unary(p), operand);
	}
	return v;
}

static struct value sum(struct parser *p)
{
	const char *at = p->token.at;
	struct value v = product(p);

	while (is(p, "+") || is(p, "-")) {
		const char *sign = is(p, "+") ? "+" : "-";

		next(p);
		const char *operand = p->token.at;

		v = combine(p, sign, v, at, product(p), operand);
	}
	return v;
}

static const char *comparison_sign(const struct parser *p)
{
	static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">"};

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

/* a < b < c is a < b and b < c; what stands behind a comparison that failed is not evaluated. */
static struct value comparison(struct parser *p)
{
	const char *at = p->token.at, *sign;
	struct value left = sum(p), result = integer(1);
	bool live = p->live;

	if (comparison_sign(p) == NULL)
		return left;
	left = number(p, left, at);
	while ((sign = comparison_sign(p)) != NULL) {
		next(p);
		at = p->token.at;
		struct value right = number(p, sum(p), at);
		enum state state = left.state > right.state ? left.state : right.state;

		if (state > result.state && is_true(result))
			result.state = state;
		else if (state == KNOWN && result.state != WRONG && !compare(sign, as_real(left), as_real(right))) {
			result = integer(0);
			p->live = false;
		}
		left = right;
	}
	p->live = live;
	return result;
}

static struct value negation(struct parser *p)
{
	const char *at = p->token.at;

	if (!take(p, "not"))
		return comparison(p);
	if (++p->nesting > NESTING)
		return stop(p, at, "expected at most %d operators and parentheses inside one another", NESTING);
	const char *operand = p->token.at;
	struct value v = number(p, negation(p), operand);

	p->nesting--;
	v.axis = -1;
	return v.state == KNOWN && !p->stopped ? integer(!is_true(v)) : v;
}

/* `and` and `or` give the operand that decides, as Python's do. While the left one is unknown, so is the whole. */
static struct value logic(struct parser *p, const char *word, struct value (*operand)(struct parser *))
{
	const char *at = p->token.at;
	struct value v = operand(p);
	bool live = p->live, is_or = word[0] == 'o';

	while (is(p, word)) {
		v = number(p, v, at);
		bool decided = v.state != KNOWN || is_true(v) == is_or;

		p->live = live && !decided;
		next(p);
		at = p->token.at;
		struct value right = number(p, operand(p), at);

		if (!decided)
			v = right;
		v.axis = -1;
	}
	p->live = live;
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

/* --- the four questions -------------------------------------------------------------------------------------- */

static struct parser begin(const struct definition *definition, const char *text, const int64_t *axis,
                           const struct constraint_tensor *tensors, struct err *err)
{
	struct parser p = {.definition = definition,
	                   .text = text,
	                   .axis = axis,
	                   .tensors = tensors,
	                   .token = {.at = text},
	                   .behind = text,
	                   .live = true,
	                   .err = err};

	if (strlen(text) > TEXT_BYTES)
		stop(&p, text, "expected at most %d bytes, found %zu", TEXT_BYTES, strlen(text));
	next(&p);
	return p;
}

static struct value whole(struct parser *p)
{
	const char *at = p->token.at;
	struct value v = number(p, expression(p), at);

	if (!p->stopped && p->token.kind != TOKEN_END)
		expected(p, "an operator");
	return v;
}

int constraint_check(const struct definition *definition, const char *text, struct err *err)
{
	struct parser p = begin(definition, text, NULL, NULL, err);
	struct value v = whole(&p);

	if (p.stopped)
		return -1;
	return v.state == WRONG ? err_set(err, "%s", p.wrong.text) : 0;
}

/* "TEXT: TEXT with values is false" */
static void tell_broken(const struct parser *p, struct err *why)
{
	struct buf text = {0};
	const char *at = p->text;

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
	err_set(why, "%s: %s is false", p->text, text.data);
	buf_free(&text);
}

enum constraint_answer constraint_evaluate(const struct definition *definition, const char *text, const int64_t *axis,
                                           const struct constraint_tensor *tensors, struct err *why)
{
	struct parser p = begin(definition, text, axis, tensors, why);
	struct value v = whole(&p);

	if (p.stopped)
		return CONSTRAINT_ERROR;
	if (v.state == WRONG) {
		err_set(why, "%s", p.wrong.text);
		return CONSTRAINT_ERROR;
	}
	if (v.state == UNKNOWN) {
		err_set(why, "%s needs %s", text, p.unknown == NULL ? "a value that is not given" : p.unknown);
		return CONSTRAINT_UNKNOWN;
	}
	if (is_true(v))
		return CONSTRAINT_HOLDS;
	tell_broken(&p, why);
	return CONSTRAINT_BROKEN;
}

/* The axis that `axis == expression` decides, and its value; -1 if the text has another form or too much is unknown. */
static int solve_one(const struct definition *definition, const char *text, const int64_t *axis, int64_t *value)
{
	struct parser p = begin(definition, text, axis, NULL, NULL);
	struct value left = sum(&p);

	if (!take(&p, "=="))
		return -1;
	struct value right = sum(&p);

	if (p.stopped || p.token.kind != TOKEN_END)
		return -1;
	bool on_left = left.axis >= 0 && left.state == UNKNOWN;
	struct value target = on_left ? left : right, known = on_left ? right : left;

	if (target.axis < 0 || target.state != UNKNOWN || known.state != KNOWN || known.kind != INTEGER ||
	    known.integer < 0 || known.integer >= (int64_t)1 << 53)
		return -1;
	*value = known.integer;
	return target.axis;
}

int constraint_solve(const struct definition *definition, int64_t *axis)
{
	int filled = 0, before;

	do {
		before = filled;
		for (int i = 0; i < definition->constraint_count; i++) {
			int64_t value;
			int found = solve_one(definition, definition->constraints[i], axis, &value);

			if (found >= 0) {
				axis[found] = value;
				filled++;
			}
		}
	} while (filled > before); /* each round fills an axis, so there are at most as many as axes */
	return filled;
}
