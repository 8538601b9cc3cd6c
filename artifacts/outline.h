/* outline - which statements and functions a Python text has, by a scanner of strings, comments, brackets and
 * indentation: no parser, and no text is refused. A statement on the line of its head ("if x: return") is one of its
 * own, one deeper, so that of two statements that follow one another the deeper belongs to a block that the other's
 * encloses. */
#ifndef REFTEST_ARTIFACTS_OUTLINE_H
#define REFTEST_ARTIFACTS_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct statement {
	int line; /* from 1 */
	int indent;
	size_t begin, end; /* of the whole statement, in the code */
	int head;	   /* the statement in whose block it stands; -1: none */
	int previous;	   /* the one before it in that block; -1: it is the first */
	int behind;	   /* the one behind its own block, or the count of all */
	bool dead;	   /* for the reader's use; false at first */
};

struct function {
	char name[128];
	int statement, last; /* its `def`, and the last statement of its body */
	bool test;	     /* "test…", and inside no other function */
	bool compares;	     /* for the reader's use; false at first */
};

struct outline {
	const char *text;
	char *code; /* the text with what strings and comments hold blanked */
	size_t length;
	struct statement *statements;
	int statement_count;
	struct function *functions;
	int function_count;
};

/* Everything in the arena but the text, which must stay. */
void outline_of(struct outline *o, const char *text, size_t length, struct arena *arena);

bool outline_word(char c); /* of a name */

/* Is there nothing between the two places? */
bool outline_blank(const struct outline *o, size_t begin, size_t end);

/* Does this word stand there? */
bool outline_begins(const struct outline *o, size_t at, size_t end, const char *word);

/* Does the statement begin with this word? Returns where it goes on behind it and its blanks; 0: no. */
size_t outline_after(const struct outline *o, const struct statement *at, const char *word);

/* The same for `def` and `async def`. */
size_t outline_after_def(const struct outline *o, const struct statement *at);

/* The next call in code[at … end): its name, without what stands before a dot, into `name`; where to look on: at its
 * bracket. 0: none. */
size_t outline_call(const struct outline *o, size_t at, size_t end, char *name, size_t size);

#endif
