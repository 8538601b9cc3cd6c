/* expression - evaluates the integer expressions of models/architectures.json: "num_attention_heads / tp".
 *
 * An expression consists of sums, products, exact quotients, parentheses, integers, names, and six functions:
 *   share(n, d)  the number of heads on each device if d devices share n heads: n / d, or 1 if d is a multiple of n
 *   pad(n, m)    the least multiple of m that is at least n
 *   ceil(n, d)   n / d, rounded up
 *   blocks(n, m) n / m, which must be an integer: the number of blocks of size m
 *   scaled(n, name)   n times the number that the name stands for; the product must be an integer
 *   count('*', name)  how often '*' occurs in the text that the name stands for
 * Every value is an integer from 0 to 2^53 - 1. */
#ifndef REFTEST_MODELS_EXPRESSION_H
#define REFTEST_MODELS_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum expression_result {
	EXPRESSION_VALUE,
	EXPRESSION_MISSING,   /* a name has no value */
	EXPRESSION_INDIVISIBLE, /* a quotient is not an integer */
	EXPRESSION_PARTIAL_BLOCK, /* in blocks(n, m), n is not a multiple of m; *value is then n */
	EXPRESSION_INVALID    /* the text is not an expression, or a value is out of range */
};

enum { EXPRESSION_DEPTH = 32 };

/* The callbacks that find what a name stands for. */
struct expression_names {
	/* Writes the value of a name. If the name stands for another expression, the callback passes `depth` to
	 * expression_evaluate. Returns EXPRESSION_VALUE, or the reason why the name has no value. */
	enum expression_result (*value)(void *context, const char *name, int depth, int64_t *value);
	/* Returns the text that a name stands for. Returns NULL if the name stands for no text. */
	const char *(*text)(void *context, const char *name);
	/* Writes the number that a name stands for. This number need not be an integer. Returns false if the name
	 * stands for no number. */
	bool (*real)(void *context, const char *name, double *value);
	void *context;
};

/* Evaluates `text`. `depth` is 0, except in a call from the callback expression_names.value, which passes its own
 * `depth`. Expressions that are nested more than EXPRESSION_DEPTH deep are invalid. */
enum expression_result expression_evaluate(const char *text, const struct expression_names *names, int depth, int64_t *value);

#endif
