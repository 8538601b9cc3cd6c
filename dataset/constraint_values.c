#include "dataset/constraint_values.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Returns a value that marks an expression as wrong. `format` says what is wrong; only the first such text is kept,
 * because the message about a constraint shows only one. */
static struct value __attribute__((format(printf, 2, 3))) value_wrong(struct known *k, const char *format, ...)
{
	va_list args;
	char sentence[512];

	if (k->live && k->wrong.text[0] == '\0') {
		va_start(args, format);
		vsnprintf(sentence, sizeof sentence, format, args);
		va_end(args);
		if (k->text == NULL)
			err_set(&k->wrong, "%s", sentence);
		else
			err_set(&k->wrong, "the constraint \"%s\" cannot be evaluated: %s", err_show(k->text).text, sentence);
	}
	return (struct value){.state = k->live ? WRONG : UNKNOWN, .axis = -1};
}

struct value value_integer(int64_t number)
{
	return (struct value){.kind = INTEGER, .integer = number, .axis = -1};
}

struct value value_real(double number)
{
	return (struct value){.kind = FLOAT, .number = number, .axis = -1};
}

struct value value_unknown(struct known *k, const char *name)
{
	if (k->live && k->unknown == NULL)
		k->unknown = name;
	return (struct value){.state = UNKNOWN, .axis = -1};
}

long double value_number(struct value v)
{
	return v.kind == INTEGER ? (long double)v.integer : (long double)v.number;
}

bool value_is_true(struct value v)
{
	return value_number(v) != 0;
}

const struct constraint_tensor *value_contents(const struct known *k, int input)
{
	const struct constraint_tensor *tensor = k->tensors == NULL ? NULL : &k->tensors[input];
	int rank = k->definition->inputs[input].rank;

	return tensor != NULL && tensor->data != NULL && (tensor->rank == rank || (tensor->rank <= 0 && rank <= 0))
		   ? tensor
		   : NULL;
}

const struct tensor_spec *value_spec(const struct known *k, struct value v)
{
	return &k->definition->inputs[v.input];
}

int value_rank(const struct known *k, struct value v)
{
	int rank = value_spec(k, v)->rank;

	return rank < 0 ? 0 : rank - v.dim;
}

int64_t value_size(const struct known *k, struct value v, int i)
{
	const struct constraint_tensor *tensor = value_contents(k, v.input);

	if (tensor != NULL)
		return tensor->shape[v.dim + i];
	return k->axis == NULL ? -1 : k->axis[value_spec(k, v)->axis[v.dim + i]];
}

int64_t value_elements(const struct known *k, struct value v)
{
	int64_t elements = 1;

	for (int i = 0; i < value_rank(k, v); i++) {
		int64_t size = value_size(k, v, i);

		if (size < 0 || __builtin_mul_overflow(elements, size, &elements))
			return -1;
	}
	return elements;
}

bool value_readable(enum dtype dtype, bool scalar)
{
	return !dtype_is_float(dtype) || (scalar && (dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64));
}

/* Reads one element of a tensor whose contents are known. The data may be unaligned, so the element is copied. */
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
		return value_integer(bits.i64);
	case DTYPE_INT32:
		return value_integer(bits.i32);
	case DTYPE_INT16:
		return value_integer(bits.i16);
	case DTYPE_INT8:
		return value_integer(bits.i8);
	case DTYPE_UINT32:
		return value_integer(bits.u32);
	case DTYPE_FLOAT32:
		return value_real(bits.f32);
	case DTYPE_FLOAT64:
		return value_real(bits.f64);
	default: /* bool, uint8 */
		return value_integer(bits.u8);
	}
}

struct value value_element(struct known *k, struct value view)
{
	const struct tensor_spec *spec = value_spec(k, view);
	const struct constraint_tensor *tensor = value_contents(k, view.input);

	if (view.state == WRONG)
		return (struct value){.state = WRONG, .axis = -1};
	if (view.state == UNKNOWN || tensor == NULL || !value_readable(tensor->dtype, spec->rank == RANK_SCALAR))
		return value_unknown(k, spec->name);
	return element(tensor, view.offset);
}

static struct value overflow(struct known *k)
{
	return value_wrong(k, "an integer overflows 64 bits");
}

struct value value_rounded(struct known *k, char which, struct value v)
{
	if (v.kind == INTEGER)
		return which != 'a' || v.integer >= 0 ? value_integer(v.integer)
		       : v.integer == INT64_MIN	      ? overflow(k)
						      : value_integer(-v.integer);
	if (which == 'a')
		return value_real(fabs(v.number));
	double rounded = which == 'c' ? ceil(v.number) : which == 'f' ? floor(v.number) : trunc(v.number);

	return fabs(rounded) < 0x1p63 ? value_integer((int64_t)rounded) : overflow(k); /* also NaN */
}

static struct value divide_integers(struct known *k, char sign, int64_t a, int64_t b)
{
	if (b == 0)
		return value_wrong(k, "a division by zero");
	if (a == INT64_MIN && b == -1)
		return sign == '%' ? value_integer(0) : overflow(k);
	int64_t quotient = a / b, rest = a % b;

	/* the quotient is rounded down, as in Python, so the remainder has the sign of b */
	if (rest != 0 && (rest < 0) != (b < 0)) {
		quotient--;
		rest += b;
	}
	return value_integer(sign == '%' ? rest : quotient);
}

static struct value divide_floats(struct known *k, char sign, double a, double b)
{
	if (b == 0)
		return value_wrong(k, "a division by zero");
	double rest = fmod(a, b);

	if (rest != 0 && (rest < 0) != (b < 0))
		rest += b;
	return value_real(sign == '%' ? rest : floor((a - rest) / b + 0.5));
}

static struct value power(struct known *k, struct value a, struct value b)
{
	int64_t result = 1, base = a.integer;

	if (a.kind != INTEGER || b.kind != INTEGER || b.integer < 0) {
		double number_value = pow((double)value_number(a), (double)value_number(b));

		return isfinite(number_value) ? value_real(number_value) : value_wrong(k, "a power is not a finite number");
	}
	for (int64_t exponent = b.integer; exponent > 0; exponent >>= 1) {
		if ((exponent & 1) && __builtin_mul_overflow(result, base, &result))
			return overflow(k);
		if (exponent > 1 && __builtin_mul_overflow(base, base, &base))
			return overflow(k);
	}
	return value_integer(result);
}

struct value value_arithmetic(struct known *k, const char *sign, struct value a, struct value b)
{
	int64_t result;
	bool integers = a.kind == INTEGER && b.kind == INTEGER;
	double x = (double)value_number(a), y = (double)value_number(b);

	if (strcmp(sign, "**") == 0)
		return power(k, a, b);
	if (strcmp(sign, "//") == 0 || strcmp(sign, "%") == 0)
		return integers ? divide_integers(k, sign[0], a.integer, b.integer) : divide_floats(k, sign[0], x, y);
	if ((sign[0] == '&' || sign[0] == '|') && !integers)
		return value_wrong(k, "an operand of %s is not an integer", sign);
	switch (sign[0]) {
	case '&':
		return value_integer(a.integer & b.integer);
	case '|':
		return value_integer(a.integer | b.integer);
	case '/':
		return y == 0 ? value_wrong(k, "a division by zero") : value_real(x / y);
	case '+':
		return !integers					       ? value_real(x + y)
		       : __builtin_add_overflow(a.integer, b.integer, &result) ? overflow(k)
									       : value_integer(result);
	case '-':
		return !integers					       ? value_real(x - y)
		       : __builtin_sub_overflow(a.integer, b.integer, &result) ? overflow(k)
									       : value_integer(result);
	default:
		return !integers					       ? value_real(x * y)
		       : __builtin_mul_overflow(a.integer, b.integer, &result) ? overflow(k)
									       : value_integer(result);
	}
}
struct value value_index(struct known *k, int64_t size, struct value index, const char *what)
{
	if (index.state != KNOWN)
		return index;
	if (index.kind != INTEGER)
		return value_wrong(k, "an index is not an integer");
	int64_t i = index.integer < 0 && size >= 0 ? index.integer + size : index.integer;

	if (size < 0)
		return value_unknown(k, what);
	if (i < 0 || i >= size)
		return value_wrong(k, "the index %lld is outside %s of size %lld", (long long)index.integer, what,
				   (long long)size);
	return value_integer(i);
}

struct value value_reduce(struct known *k, struct value view, char which)
{
	const struct constraint_tensor *tensor = value_contents(k, view.input);
	int64_t count = value_elements(k, view), total = 0;

	if (view.state == UNKNOWN || tensor == NULL || count < 0 || !value_readable(tensor->dtype, false))
		return value_unknown(k, value_spec(k, view)->name);
	if (count == 0 && which != 's')
		return value_wrong(k, "%s is empty and has neither a largest nor a smallest element",
				   value_spec(k, view)->name);
	for (int64_t i = 0; i < count; i++) {
		int64_t v = element(tensor, view.offset + i).integer;

		if (which == 's') {
			if (__builtin_add_overflow(total, v, &total))
				return overflow(k);
		} else if (i == 0 || (which == 'a' ? v > total : v < total)) {
			total = v;
		}
	}
	return value_integer(total);
}

struct value value_item(struct known *k, struct value view)
{
	int64_t count = value_elements(k, view);

	if (count < 0)
		return value_unknown(k, value_spec(k, view)->name);
	if (count != 1)
		return value_wrong(k, "%s has %lld elements, but .item() needs exactly one", value_spec(k, view)->name,
				   (long long)count);
	return value_element(k, view);
}

struct value value_count(struct known *k, struct value view)
{
	int64_t count = value_elements(k, view);

	return count < 0 ? value_unknown(k, value_spec(k, view)->name) : value_integer(count);
}
