/* python_parser - the state of a parser of Python. Also has functions that test the current token or report an error at
 * it. After an error, the current token is the end token, so every loop of the parser ends. The nesting has three
 * limits: PYTHON_INDENTS for blocks, PYTHON_BRACKETS for brackets, and PYTHON_DEPTH for nested expressions, such as
 * `lambda: lambda: 0`, which need no brackets. */
#ifndef REFTEST_DATASET_PYTHON_PARSER_H
#define REFTEST_DATASET_PYTHON_PARSER_H

#include <string.h>

#include "base/arena.h"
#include "dataset/python_function.h"
#include "dataset/python_tokens.h"

enum { PYTHON_DEPTH = 400 };

struct python_parser {
	struct python_tokens t;
	struct arena *arena;
	struct python_function *functions; /* the functions at top level; NULL until the first one */
	int function_count;
	const char *wanted; /* the name that `binds_wanted` is about; NULL: none */
	bool binds_wanted, binds_any; /* as in struct python_outline */
	struct python_place place; /* the position of the last function */
	bool grammar;              /* the error is in the grammar, not in a token */
	int depth;
	int blocks;        /* the number of indented blocks around the statement */
	bool in_function;  /* `return` is valid */
	bool in_loop;      /* `break` and `continue` are valid */
	/* The statement is inside a function or a class, so an assignment in it binds no name of the module. */
	bool in_namespace;
	bool with_items;   /* brackets may contain `as` */
	bool target;       /* the last expression that was read is a valid target of an assignment */
	bool mentioned;    /* the part of the statement that was read contains the wanted name */
};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static inline bool is(const struct python_parser *p, const char *text)
{
	return python_tokens_is(&p->t, text);
}

static inline bool is_kind(const struct python_parser *p, enum python_token_kind kind)
{
	return p->t.token.kind == kind;
}

static inline void next(struct python_parser *p)
{
	python_tokens_next(&p->t);
}

static inline bool take(struct python_parser *p, const char *text)
{
	if (!is(p, text))
		return false;
	next(p);
	return true;
}

static inline bool is_any(const struct python_parser *p, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is(p, texts[i]))
			return true;
	return false;
}

static inline bool is_word(const struct python_parser *p, const char *word)
{
	return word != NULL && is_kind(p, PYTHON_NAME) && strlen(word) == p->t.token.length &&
	       memcmp(word, p->t.token.at, p->t.token.length) == 0;
}

/* Reports that the grammar requires `what` instead of the current token. */
static inline void expected(struct python_parser *p, const char *what)
{
	static const char *const names[] = {
	    [PYTHON_END] = "the end of the text",
	    [PYTHON_NEWLINE] = "the end of the line",
	    [PYTHON_INDENT] = "a line that is indented more than the line before",
	    [PYTHON_DEDENT] = "the end of the block",
	    [PYTHON_STRING] = "a string",
	};
	const struct python_token *token = &p->t.token;

	p->grammar = p->grammar || p->t.stop == PYTHON_READING;
	if (token->kind < COUNT(names) && names[token->kind] != NULL)
		python_tokens_fail(&p->t, token->at, "expected %s, found %s", what, names[token->kind]);
	else if (token->length > 40)
		python_tokens_fail(&p->t, token->at, "expected %s, found a long token", what);
	else
		python_tokens_fail(&p->t, token->at, "expected %s, found %.*s", what, (int)token->length, token->at);
}

static inline void expect(struct python_parser *p, const char *text)
{
	char what[16] = "'";

	if (take(p, text))
		return;
	strncat(what, text, sizeof what - 3);
	strcat(what, "'");
	expected(p, what);
}

/* Call this if the statement may bind the names that were read since the last call of bind_nothing. If the wanted name
 * is one of them, and the statement is not inside a function or a class, sets `binds_wanted`. */
static inline void bind_mentioned(struct python_parser *p)
{
	if (p->mentioned && !p->in_namespace)
		p->binds_wanted = true;
}

static inline void bind_nothing(struct python_parser *p)
{
	p->mentioned = false;
}

/* Reads a name that the statement binds. */
static inline void bound_name(struct python_parser *p, const char *what)
{
	if (!is_kind(p, PYTHON_NAME)) {
		expected(p, what);
		return;
	}
	if (is_word(p, p->wanted) && !p->in_namespace)
		p->binds_wanted = true;
	next(p);
}

/* Increments the nesting depth. If the depth exceeds PYTHON_DEPTH, stops the parser and returns false. */
static inline bool deeper(struct python_parser *p)
{
	if (++p->depth <= PYTHON_DEPTH)
		return true;
	python_tokens_give_up(&p->t);
	return false;
}

#endif
