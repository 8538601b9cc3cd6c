/* constraint_tokens - splits the text of a constraint into words, numbers and signs.
 *
 * After a syntax error, `err` has a message with the column, and every further token is the end token. */
#ifndef REFTEST_DATASET_CONSTRAINT_TOKENS_H
#define REFTEST_DATASET_CONSTRAINT_TOKENS_H

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
	const char *text; /* owned by the caller; must outlive this struct */
	struct token token;
	const char *behind; /* the end of the previous token */
	bool stopped;	    /* a syntax error was found: `err` is set, and `token` is the end token */
	struct err *err;    /* NULL if the caller needs no message */
	/* True: the text is the expression of an axis or of a size. False: the text is a constraint. Error messages say
	 * which of the two it is. */
	bool is_length;
};

/* Starts at the first token of `text`; reports an error if the text has more than `most` bytes. */
struct tokens tokens_begin(const char *text, size_t most, struct err *err);

void tokens_next(struct tokens *t);

/* tokens_is and tokens_take return true if the current token is the word or sign `text`. If so, tokens_take also
 * advances to the next token. */
bool tokens_is(const struct tokens *t, const char *text);
bool tokens_take(struct tokens *t, const char *text);

/* tokens_stop reports a syntax error at the position `at`. tokens_expected reports a syntax error at the current token,
 * and says that `what` was expected. */
void tokens_stop(struct tokens *t, const char *at, const char *format, ...) __attribute__((format(printf, 3, 4)));
void tokens_expected(struct tokens *t, const char *what);

#endif
