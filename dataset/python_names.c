/* python_names - reads the tokens of a source once, and records which names the source binds and which names it uses.
 * The module builds no tree: the tokens beside a name, the brackets around it and the kind of its statement show
 * whether the name is bound. In case of doubt, a name counts as bound, because a false alarm is worse than an undefined
 * name that is not reported. */
#include "dataset/python_names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/python_tokens.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum bracket {
	BRACKET_GROUP, /* brackets that only group an expression or a list of targets */
	BRACKET_CALL,
	BRACKET_SUBSCRIPT,
	BRACKET_ITEMS, /* { } */
	BRACKET_PARAMETERS,
	BRACKET_TYPES /* the type parameters of a def or class */
};

/* The kind of the current statement. The kind says whether the names of the statement are bound or used. */
enum statement {
	STATEMENT_PLAIN, /* each name counts as used, unless it becomes a target */
	STATEMENT_BLOCK, /* a statement such as `if`, with a ':' and a block after it */
	STATEMENT_BINDS  /* import, global, match, case: each name counts as bound by the statement */
};

/* The next part of a def or class statement that the reader expects: its name, or the brackets after the name. */
enum head { HEAD_NONE, HEAD_NAME, HEAD_BRACKETS };

/* Whether the reader is between `for` and `in`, or after `as`. The statement binds the names that stand there. */
enum targets { TARGETS_NONE, TARGETS_FOR, TARGETS_AS };

struct names {
	struct python_token *items; /* space for `room` */
	size_t count, room;
};

struct reader {
	struct python_tokens t;
	struct arena *arena;
	struct python_token before, token, after; /* `after` equals t.token */
	struct names bound, used, candidates; /* candidates: names that are bound if '=' follows */
	enum bracket bracket[PYTHON_BRACKETS];
	int lambda[PYTHON_BRACKETS]; /* the bracket depths of the lambdas whose ':' was not read yet */
	int depth, lambdas;
	enum statement statement;
	bool begins;     /* the token is the first of its statement */
	enum head head;
	bool is_def; /* `head` belongs to a def statement and not to a class statement */
	enum targets targets;
	int targets_depth;
	bool annotation; /* the names that are read now are part of an annotation */
	int annotation_depth;
	bool later_annotations; /* from __future__ import annotations */
	bool from_future;
	bool silent; /* the source may define names in ways that this module does not recognize */
};

/* ---- tokens ---- */

static bool same(const struct python_token *token, const char *text)
{
	return token->length == strlen(text) && memcmp(token->at, text, token->length) == 0 && token->kind != PYTHON_STRING;
}

static bool is_any(const struct python_token *token, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (same(token, texts[i]))
			return true;
	return false;
}

static void add(struct reader *r, struct names *names, const struct python_token *token)
{
	if (names->count == names->room) {
		size_t room = names->room * 2 + 64;
		struct python_token *more = arena_array(r->arena, room, sizeof *more);

		if (names->count > 0)
			memcpy(more, names->items, names->count * sizeof *more);
		names->items = more;
		names->room = room;
	}
	names->items[names->count++] = *token;
}

static int compare(const void *a, const void *b)
{
	const struct python_token *one = a, *other = b;
	size_t shorter = one->length < other->length ? one->length : other->length;
	int order = memcmp(one->at, other->at, shorter);

	return order != 0 ? order : (one->length > other->length) - (one->length < other->length);
}

/* Returns whether the token is a name that every module can use without defining it, such as `len`. `_` also counts,
 * because gettext often defines it. */
static bool is_builtin(const struct python_token *token)
{
	static const char *const names[] = {
	    "ArithmeticError", "AssertionError", "AttributeError", "BaseException", "BaseExceptionGroup", "BlockingIOError",
	    "BrokenPipeError", "BufferError", "BytesWarning", "ChildProcessError", "ConnectionAbortedError",
	    "ConnectionError", "ConnectionRefusedError", "ConnectionResetError", "DeprecationWarning", "EOFError", "Ellipsis",
	    "EncodingWarning", "EnvironmentError", "Exception", "ExceptionGroup", "FileExistsError", "FileNotFoundError",
	    "FloatingPointError", "FutureWarning", "GeneratorExit", "IOError", "ImportError", "ImportWarning",
	    "IndentationError", "IndexError", "InterruptedError", "IsADirectoryError", "KeyError", "KeyboardInterrupt",
	    "LookupError", "MemoryError", "ModuleNotFoundError", "NameError", "NotADirectoryError", "NotImplemented",
	    "NotImplementedError", "OSError", "OverflowError", "PendingDeprecationWarning", "PermissionError",
	    "ProcessLookupError", "PythonFinalizationError", "RecursionError", "ReferenceError", "ResourceWarning",
	    "RuntimeError", "RuntimeWarning", "StopAsyncIteration", "StopIteration", "SyntaxError", "SyntaxWarning",
	    "SystemError", "SystemExit", "TabError", "TimeoutError", "TypeError", "UnboundLocalError", "UnicodeDecodeError",
	    "UnicodeEncodeError", "UnicodeError", "UnicodeTranslateError", "UnicodeWarning", "UserWarning", "ValueError",
	    "Warning", "WindowsError", "ZeroDivisionError", "_", "__annotate__", "__annotations__", "__build_class__",
	    "__builtins__", "__cached__", "__class__", "__conditional_annotations__", "__debug__", "__dict__", "__doc__",
	    "__file__", "__import__", "__loader__", "__module__", "__name__", "__package__", "__path__", "__qualname__",
	    "__spec__", "abs", "aiter", "all", "anext", "any", "ascii", "bin", "bool", "breakpoint", "bytearray", "bytes",
	    "callable", "chr", "classmethod", "compile", "complex", "copyright", "credits", "delattr", "dict", "dir",
	    "divmod", "enumerate", "eval", "exec", "exit", "filter", "float", "format", "frozenset", "getattr", "globals",
	    "hasattr", "hash", "help", "hex", "id", "input", "int", "isinstance", "issubclass", "iter", "len", "license",
	    "list", "locals", "map", "max", "memoryview", "min", "next", "object", "oct", "open", "ord", "pow", "print",
	    "property", "quit", "range", "repr", "reversed", "round", "set", "setattr", "slice", "sorted", "staticmethod",
	    "str", "sum", "super", "tuple", "type", "vars", "zip",
	};

	return is_any(token, names, COUNT(names));
}

/* Returns whether the name is ASCII. Python normalizes other names: two of them may be spelled differently, but be the
 * same name for Python. */
static bool is_ascii(const struct python_token *token)
{
	for (size_t i = 0; i < token->length; i++)
		if ((unsigned char)token->at[i] >= 0x80)
			return false;
	return true;
}

/* ---- names ---- */

/* Returns whether all open brackets deeper than `depth` are of the kind BRACKET_GROUP. */
static bool only_groups(const struct reader *r, int depth)
{
	for (int i = depth; i < r->depth; i++)
		if (r->bracket[i] != BRACKET_GROUP)
			return false;
	return true;
}

static bool in_lambda_parameters(const struct reader *r)
{
	return r->lambdas > 0 && r->lambda[r->lambdas - 1] == r->depth;
}

static bool is_innermost(const struct reader *r, enum bracket bracket)
{
	return r->depth > 0 && r->bracket[r->depth - 1] == bracket;
}

/* Returns whether the token before the name shows that the name is a parameter. */
static bool is_parameter(const struct reader *r)
{
	static const char *const before[] = {"(", ",", "*", "**", "lambda"};

	return (in_lambda_parameters(r) || is_innermost(r, BRACKET_PARAMETERS)) && is_any(&r->before, before, COUNT(before)) &&
	       !r->annotation;
}

/* Returns whether the name stands alone, which means that it does not begin an attribute, a call or a subscript. */
static bool is_whole(const struct reader *r)
{
	static const char *const part[] = {".", "(", "["};

	return !is_any(&r->after, part, COUNT(part));
}

static bool is_bound(const struct reader *r)
{
	if (r->statement == STATEMENT_BINDS || r->head == HEAD_NAME || is_innermost(r, BRACKET_TYPES) || is_parameter(r))
		return true;
	return same(&r->after, ":=") || (r->targets != TARGETS_NONE && is_whole(r) && only_groups(r, r->targets_depth));
}

static void note_special(struct reader *r)
{
	static const char *const any[] = {"exec", "globals", "locals", "vars", "setattr", "builtins", "__builtins__",
					  "NameError", "__getattr__"};

	r->silent = r->silent || is_any(&r->token, any, COUNT(any));
	r->from_future = r->from_future || same(&r->token, "__future__");
	if (r->from_future && r->statement == STATEMENT_BINDS && same(&r->token, "annotations"))
		r->later_annotations = true;
}

static void name(struct reader *r)
{
	bool passed = same(&r->after, "=") && is_innermost(r, BRACKET_CALL) && !in_lambda_parameters(r);

	if (same(&r->before, ".") && r->statement != STATEMENT_BINDS)
		return; /* an attribute */
	note_special(r);
	if (is_bound(r)) {
		add(r, &r->bound, &r->token);
	} else if (!passed && !r->annotation) {
		add(r, &r->used, &r->token);
		if (is_whole(r) && only_groups(r, 0))
			add(r, &r->candidates, &r->token);
	}
	if (r->head == HEAD_NAME)
		r->head = HEAD_BRACKETS;
}

/* Binds the targets of `a, (b, c) = …`. */
static void bind_candidates(struct reader *r)
{
	for (size_t i = 0; i < r->candidates.count; i++)
		add(r, &r->bound, &r->candidates.items[i]);
	r->candidates.count = 0;
}

/* ---- brackets, keywords and signs ---- */

static void open_bracket(struct reader *r)
{
	bool follows = r->before.kind == PYTHON_NAME || r->before.kind == PYTHON_STRING || same(&r->before, ")") ||
		       same(&r->before, "]") || same(&r->before, "}");
	enum bracket bracket = same(&r->token, "{") ? BRACKET_ITEMS : BRACKET_GROUP;

	if (r->depth == PYTHON_BRACKETS) {
		r->silent = true;
		return;
	}
	if (follows && same(&r->token, "("))
		bracket = r->head == HEAD_BRACKETS && r->is_def ? BRACKET_PARAMETERS : BRACKET_CALL;
	else if (follows && same(&r->token, "["))
		bracket = r->head == HEAD_BRACKETS ? BRACKET_TYPES : BRACKET_SUBSCRIPT;
	if (bracket == BRACKET_PARAMETERS || bracket == BRACKET_CALL)
		r->head = HEAD_NONE;
	r->bracket[r->depth++] = bracket;
}

static void close_bracket(struct reader *r)
{
	r->depth -= r->depth > 0;
	if (r->targets != TARGETS_NONE && r->depth < r->targets_depth)
		r->targets = TARGETS_NONE;
	if (r->annotation && r->depth < r->annotation_depth)
		r->annotation = false;
	while (r->lambdas > 0 && r->lambda[r->lambdas - 1] > r->depth)
		r->lambdas--;
}

static void begin_statement(struct reader *r)
{
	r->begins = true;
	r->statement = STATEMENT_PLAIN;
	r->head = HEAD_NONE;
	r->targets = TARGETS_NONE;
	r->annotation = r->from_future = false;
	r->lambdas = 0;
	r->candidates.count = 0;
}

/* The names in an annotation are not recorded. The annotation ends at the next token of the same depth that cannot be
 * part of an annotation. */
static void begin_annotation(struct reader *r)
{
	r->annotation = true;
	r->annotation_depth = r->depth;
}

static void colon(struct reader *r)
{
	if (in_lambda_parameters(r)) {
		r->lambdas--;
	} else if (is_innermost(r, BRACKET_PARAMETERS)) {
		if (r->later_annotations)
			begin_annotation(r);
	} else if (r->depth == 0 && r->statement == STATEMENT_BLOCK) {
		begin_statement(r);
	} else if (r->depth == 0 && r->statement == STATEMENT_PLAIN) {
		bind_candidates(r);
		begin_annotation(r);
	}
}

static void sign(struct reader *r)
{
	static const char *const opening[] = {"(", "[", "{"}, *const closing[] = {")", "]", "}"};

	if (is_any(&r->token, opening, COUNT(opening))) {
		open_bracket(r);
	} else if (is_any(&r->token, closing, COUNT(closing))) {
		close_bracket(r);
	} else if (same(&r->token, ":")) {
		colon(r);
	} else if (same(&r->token, ";")) {
		begin_statement(r);
	} else if (same(&r->token, "->") && r->later_annotations) {
		begin_annotation(r);
	} else if (same(&r->token, "*") && same(&r->before, "import")) {
		r->silent = true;
	} else if (same(&r->token, ",") || same(&r->token, "=")) {
		if (r->targets == TARGETS_AS && r->targets_depth == r->depth)
			r->targets = TARGETS_NONE;
		if (r->annotation && r->annotation_depth == r->depth)
			r->annotation = false;
		if (same(&r->token, "=") && r->depth == 0 && !in_lambda_parameters(r))
			bind_candidates(r);
	}
}

static void begin_targets(struct reader *r, enum targets targets)
{
	r->targets = targets;
	r->targets_depth = r->depth;
}

static void keyword(struct reader *r)
{
	if (same(&r->token, "lambda") && r->lambdas < PYTHON_BRACKETS)
		r->lambda[r->lambdas++] = r->depth;
	else if (same(&r->token, "lambda"))
		r->silent = true;
	else if (same(&r->token, "for"))
		begin_targets(r, TARGETS_FOR);
	else if (same(&r->token, "as"))
		begin_targets(r, TARGETS_AS);
	else if (same(&r->token, "in") && r->targets == TARGETS_FOR && r->depth == r->targets_depth)
		r->targets = TARGETS_NONE;
	else if (same(&r->token, "def") || same(&r->token, "class")) {
		r->head = HEAD_NAME;
		r->is_def = same(&r->token, "def");
	}
}

/* Returns whether the token begins a statement with the keyword `match`, `case`, `type` or `lazy`, or a statement that
 * looks like one. */
static bool is_soft_keyword(const struct reader *r)
{
	static const char *const words[] = {"match", "case", "type", "lazy"}, *const others[] = {"=", ".", ",", ":", ";"};

	return is_any(&r->token, words, COUNT(words)) && !is_any(&r->after, others, COUNT(others)) &&
	       r->after.kind != PYTHON_NEWLINE;
}

/* Finds the kind of a statement from its first token. */
static void first_token(struct reader *r)
{
	static const char *const binding[] = {"import", "from", "global", "nonlocal"};
	static const char *const blocks[] = {"if", "elif", "else", "while", "for", "try", "except",
					     "finally", "with", "def", "class", "async"};

	if (is_any(&r->token, binding, COUNT(binding)) || is_soft_keyword(r))
		r->statement = STATEMENT_BINDS;
	else if (is_any(&r->token, blocks, COUNT(blocks)))
		r->statement = STATEMENT_BLOCK;
	r->begins = false;
}

/* Returns whether a string may contain an assignment expression, as in f"{(n := 3)}". An f-string is one token, so the
 * reader does not see the names that such an expression binds. */
static bool may_bind(const struct python_token *string)
{
	return memchr(string->at, '(', string->length) != NULL && memmem(string->at, string->length, ":=", 2) != NULL;
}

static void token(struct reader *r)
{
	switch (r->token.kind) {
	case PYTHON_NEWLINE:
	case PYTHON_INDENT:
	case PYTHON_DEDENT:
		begin_statement(r);
		return;
	case PYTHON_STRING:
		r->silent = r->silent || may_bind(&r->token);
		break;
	default:
		break;
	}
	if (r->begins)
		first_token(r);
	if (r->token.kind == PYTHON_NAME)
		name(r);
	else if (r->token.kind == PYTHON_KEYWORD)
		keyword(r);
	else if (r->token.kind == PYTHON_SIGN)
		sign(r);
}

/* ---- the interface ---- */

static bool is_among(const struct python_token *wanted, const struct names *names)
{
	return names->count > 0 && bsearch(wanted, names->items, names->count, sizeof *names->items, compare) != NULL;
}

static bool was_found(const struct python_token *wanted, const struct python_name *found, int count)
{
	for (int i = 0; i < count; i++)
		if (same(wanted, found[i].name))
			return true;
	return false;
}

int python_names_undefined(const char *source, size_t length, struct arena *arena, struct python_name *found, int most)
{
	struct reader r = {.arena = arena};
	struct python_place place = {NULL, 0, 0};
	int count = 0;

	python_tokens_begin(&r.t, source, length);
	begin_statement(&r);
	for (r.token = r.t.token; r.token.kind != PYTHON_END && !r.silent; r.before = r.token, r.token = r.after) {
		python_tokens_next(&r.t);
		r.after = r.t.token;
		token(&r);
	}
	if (r.silent || r.t.stop != PYTHON_READING)
		return 0;
	if (r.bound.count > 0)
		qsort(r.bound.items, r.bound.count, sizeof *r.bound.items, compare);
	for (size_t i = 0; i < r.used.count && count < most; i++) {
		const struct python_token *use = &r.used.items[i];

		if (is_among(use, &r.bound) || !is_ascii(use) || is_builtin(use) || was_found(use, found, count))
			continue;
		python_tokens_place(&r.t, &place, use->at);
		found[count++] = (struct python_name){arena_copy(arena, use->at, use->length), place.line, place.column};
	}
	return count;
}
