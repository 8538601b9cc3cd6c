/* tokens - the text of a constraint, a word, number or sign at a time.
 *
 * What the text itself does wrong stops it: the sentence, with the column, is in `err`, and only the end is seen from
 * there. */
#ifndef REFTEST_DATASET_TOKENS_H
#define REFTEST_DATASET_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_INTEGER, TOKEN_FLOAT, TOKEN_SIGN };

struct token {
	enum token_kind kind;
	const char *at;
	size_t length;
	int64_t integer;
	double number;
};

struct tokens {
	const char *text; /* the caller's, as long as this is used */
	struct token token;
	const char *behind; /* where the token before this one ended */
	bool stopped;	    /* the text makes no sense: `err` is set and the tokens are at their end */
	struct err *err;    /* NULL: nobody asks why */
};

/* At the first token of a text of at most `most` octets. */
struct tokens tokens_begin(const char *text, size_t most, struct err *err);

void tokens_next(struct tokens *t);

/* Is the present token this word or sign? `take` then goes on to the next. */
bool tokens_is(const struct tokens *t, const char *text);
bool tokens_take(struct tokens *t, const char *text);

/* The text makes no sense at `at`; at the present token, where `what` was expected. */
void tokens_stop(struct tokens *t, const char *at, const char *format, ...) __attribute__((format(printf, 3, 4)));
void tokens_expected(struct tokens *t, const char *what);

#endif
