#include "models/expression.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { NAME_BYTES = 64 };
#define LARGEST (INT64_C(1) << 53)

struct reader {
	const char *at;
	const struct expression_names *names;
	int depth;
};

static enum expression_result read_sum(struct reader *r, int64_t *value);

static bool takes(struct reader *r, char c)
{
	while (*r->at == ' ')
		r->at++;
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

static enum expression_result in_range(int64_t value)
{
	return value >= 0 && value < LARGEST ? EXPRESSION_VALUE : EXPRESSION_INVALID;
}

static enum expression_result read_number(struct reader *r, int64_t *value)
{
	*value = 0;
	while (isdigit((unsigned char)*r->at) && *value < LARGEST)
		*value = *value * 10 + (*r->at++ - '0');
	return in_range(*value);
}

static enum expression_result divide(int64_t a, int64_t b, int64_t *value)
{
	if (b == 0 || a % b != 0)
		return EXPRESSION_INDIVISIBLE;
	*value = a / b;
	return EXPRESSION_VALUE;
}

static enum expression_result share(int64_t a, int64_t b, int64_t *value)
{
	if (a > 0 && b % a == 0) {
		*value = 1;
		return EXPRESSION_VALUE;
	}
	return divide(a, b, value);
}

static enum expression_result ceiling(int64_t a, int64_t b, int64_t *value)
{
	if (b == 0)
		return EXPRESSION_INDIVISIBLE;
	*value = (a + b - 1) / b;
	return EXPRESSION_VALUE;
}

static enum expression_result blocks(int64_t a, int64_t b, int64_t *value)
{
	if (divide(a, b, value) == EXPRESSION_VALUE)
		return EXPRESSION_VALUE;
	*value = a;
	return EXPRESSION_PARTIAL_BLOCK;
}

static enum expression_result pad(int64_t a, int64_t b, int64_t *value)
{
	enum expression_result result = ceiling(a, b, value);

	*value = result == EXPRESSION_VALUE ? *value * b : 0; /* less than a + b */
	return result == EXPRESSION_VALUE ? in_range(*value) : result;
}

/* Reads the rest of a call such as "share(a, b)" after the opening parenthesis, and computes the value of the call. */
static enum expression_result read_call(struct reader *r, const char *name, int64_t *value)
{
	static const struct function {
		const char *name;
		enum expression_result (*compute)(int64_t a, int64_t b, int64_t *value);
	} functions[] = {{"share", share}, {"ceil", ceiling}, {"pad", pad}, {"blocks", blocks}};
	int64_t a, b;
	enum expression_result result = read_sum(r, &a);

	if (result == EXPRESSION_VALUE && !takes(r, ','))
		return EXPRESSION_INVALID;
	if (result == EXPRESSION_VALUE)
		result = read_sum(r, &b);
	if (result != EXPRESSION_VALUE)
		return result;
	if (!takes(r, ')'))
		return EXPRESSION_INVALID;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (strcmp(functions[i].name, name) == 0)
			return functions[i].compute(a, b, value);
	return EXPRESSION_INVALID;
}

/* Copies the name at the current position. Returns false if the name is too long, or if there is no name. */
static bool take_name(struct reader *r, char name[NAME_BYTES])
{
	size_t length = 0;

	while (isalnum((unsigned char)r->at[length]) || r->at[length] == '_')
		length++;
	if (length == 0 || length >= NAME_BYTES || isdigit((unsigned char)*r->at))
		return false;
	memcpy(name, r->at, length);
	name[length] = '\0';
	r->at += length;
	return true;
}

/* Reads the rest of "count('c', name)" after the opening parenthesis. */
static enum expression_result read_count(struct reader *r, int64_t *value)
{
	char name[NAME_BYTES];

	if (!takes(r, '\'') || r->at[0] == '\0' || r->at[1] != '\'')
		return EXPRESSION_INVALID;
	char wanted = r->at[0];

	r->at += 2;
	if (!takes(r, ','))
		return EXPRESSION_INVALID;
	r->at += strspn(r->at, " ");
	if (!take_name(r, name) || !takes(r, ')'))
		return EXPRESSION_INVALID;
	const char *text = r->names->text != NULL ? r->names->text(r->names->context, name) : NULL;

	if (text == NULL)
		return EXPRESSION_MISSING;
	for (*value = 0; *text != '\0'; text++)
		*value += *text == wanted;
	return EXPRESSION_VALUE;
}

/* Reads the rest of "scaled(n, name)" after the opening parenthesis. */
static enum expression_result read_scaled(struct reader *r, int64_t *value)
{
	char name[NAME_BYTES];
	double factor, product;
	int64_t whole;
	enum expression_result result = read_sum(r, &whole);

	if (result != EXPRESSION_VALUE)
		return result;
	if (!takes(r, ','))
		return EXPRESSION_INVALID;
	r->at += strspn(r->at, " ");
	if (!take_name(r, name) || !takes(r, ')'))
		return EXPRESSION_INVALID;
	if (r->names->real == NULL || !r->names->real(r->names->context, name, &factor))
		return EXPRESSION_MISSING;
	product = (double)whole * factor;
	if (!(product >= 0) || product >= (double)LARGEST)
		return EXPRESSION_INVALID;
	*value = (int64_t)llround(product);
	/* 0.1 has no exact double */
	return fabs(product - (double)*value) < 1e-6 ? EXPRESSION_VALUE : EXPRESSION_INDIVISIBLE;
}

static enum expression_result read_name(struct reader *r, int64_t *value)
{
	static const struct call {
		const char *name;
		enum expression_result (*read)(struct reader *r, int64_t *value);
	} calls[] = {{"count", read_count}, {"scaled", read_scaled}};
	char name[NAME_BYTES];

	if (!take_name(r, name))
		return EXPRESSION_INVALID;
	if (takes(r, '(')) {
		for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
			if (strcmp(calls[i].name, name) == 0)
				return calls[i].read(r, value);
		return read_call(r, name, value);
	}
	return r->names->value(r->names->context, name, r->depth + 1, value);
}

static enum expression_result read_factor(struct reader *r, int64_t *value)
{
	enum expression_result result = EXPRESSION_INVALID;

	if (++r->depth > EXPRESSION_DEPTH)
		return EXPRESSION_INVALID;
	if (takes(r, '(')) {
		result = read_sum(r, value);
		if (result == EXPRESSION_VALUE && !takes(r, ')'))
			result = EXPRESSION_INVALID;
	} else if (isdigit((unsigned char)*r->at)) {
		result = read_number(r, value);
	} else if (isalpha((unsigned char)*r->at) || *r->at == '_') {
		result = read_name(r, value);
	}
	r->depth--;
	return result;
}

static enum expression_result multiply(int64_t a, int64_t b, int64_t *value)
{
	return __builtin_mul_overflow(a, b, value) ? EXPRESSION_INVALID : in_range(*value);
}

static enum expression_result read_product(struct reader *r, int64_t *value)
{
	enum expression_result result = read_factor(r, value);
	int64_t right;

	while (result == EXPRESSION_VALUE) {
		bool product = takes(r, '*');

		if (!product && !takes(r, '/'))
			break;
		result = read_factor(r, &right);
		if (result == EXPRESSION_VALUE)
			result = product ? multiply(*value, right, value) : divide(*value, right, value);
	}
	return result;
}

static enum expression_result read_sum(struct reader *r, int64_t *value)
{
	enum expression_result result = read_product(r, value);
	int64_t right;

	while (result == EXPRESSION_VALUE) {
		bool plus = takes(r, '+');

		if (!plus && !takes(r, '-'))
			break;
		result = read_product(r, &right);
		if (result == EXPRESSION_VALUE) {
			*value = plus ? *value + right : *value - right;
			result = in_range(*value);
		}
	}
	return result;
}

enum expression_result expression_evaluate(const char *text, const struct expression_names *names, int depth, int64_t *value)
{
	struct reader r = {.at = text, .names = names, .depth = depth};
	enum expression_result result = depth > EXPRESSION_DEPTH ? EXPRESSION_INVALID : read_sum(&r, value);

	while (*r.at == ' ')
		r.at++;
	return result == EXPRESSION_VALUE && *r.at != '\0' ? EXPRESSION_INVALID : result;
}
