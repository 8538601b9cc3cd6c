/* python_outline - a recursive parser of Python's statements. It does not know the precedence of operators, and of an
 * assignment's target only whether it can be one.
 *
 * After an error, the current token is the end token, so every loop below ends. Statements nest at most
 * PYTHON_INDENTS deep and brackets PYTHON_BRACKETS deep; `depth` limits what nests without brackets (lambda, else). */
#include "dataset/python_outline.h"

#include <string.h>

#include "dataset/python_tokens.h"

enum { DEPTH = 400 };

struct parser {
	struct python_tokens t;
	struct arena *arena;
	struct python_outline *out;
	struct python_function *functions; /* space for PYTHON_FUNCTIONS; NULL until the first */
	const char *wanted;
	struct python_place place; /* of the last function */
	bool grammar;              /* the error is not in a token, but in the order of tokens */
	int depth;
	int blocks;        /* the indented blocks around the statement */
	bool in_function;  /* `return` is valid */
	bool in_loop;      /* `break` and `continue` are valid */
	bool in_namespace; /* inside a function or a class, where an assignment binds no name of the module */
	bool with_items;   /* brackets may contain `as` */
	bool target;       /* the expression that was read last can be assigned to */
	bool mentioned;    /* the statement contains the wanted name so far */
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* --- tokens -------------------------------------------------------------------------------------------------- */

static bool is(const struct parser *p, const char *text)
{
	return python_tokens_is(&p->t, text);
}

static bool is_kind(const struct parser *p, enum python_token_kind kind)
{
	return p->t.token.kind == kind;
}

static void next(struct parser *p)
{
	python_tokens_next(&p->t);
}

static bool take(struct parser *p, const char *text)
{
	if (!is(p, text))
		return false;
	next(p);
	return true;
}

static bool is_any(const struct parser *p, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is(p, texts[i]))
			return true;
	return false;
}

static bool is_word(const struct parser *p, const char *word)
{
	return word != NULL && is_kind(p, PYTHON_NAME) && strlen(word) == p->t.token.length &&
	       memcmp(word, p->t.token.at, p->t.token.length) == 0;
}

/* Reports that the current token is not what the grammar needs. */
static void expected(struct parser *p, const char *what)
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

static void expect(struct parser *p, const char *text)
{
	char what[16] = "'";

	if (take(p, text))
		return;
	strncat(what, text, sizeof what - 3);
	strcat(what, "'");
	expected(p, what);
}

/* Marks the names that a statement binds: those from the last call of `bind_nothing` to this call. */
static void bind_mentioned(struct parser *p)
{
	if (p->mentioned && !p->in_namespace)
		p->out->binds_wanted = true;
}

static void bind_nothing(struct parser *p)
{
	p->mentioned = false;
}

/* Reads a name that the statement binds. */
static void bound_name(struct parser *p, const char *what)
{
	if (!is_kind(p, PYTHON_NAME)) {
		expected(p, what);
		return;
	}
	if (is_word(p, p->wanted) && !p->in_namespace)
		p->out->binds_wanted = true;
	next(p);
}

/* Goes deeper; gives up beyond the limit. */
static bool deeper(struct parser *p)
{
	if (++p->depth <= DEPTH)
		return true;
	python_tokens_give_up(&p->t);
	return false;
}

/* --- expressions --------------------------------------------------------------------------------------------- */

static void expression(struct parser *p);
static void expressions(struct parser *p);
static void parameters(struct parser *p, const char *end, struct python_function *function);

static bool begins_expression(const struct parser *p)
{
	static const char *const beginnings[] = {"(",    "[",     "{",     "+",	  "-",	  "~",	   "...",  "*",
						 "not",  "await", "lambda", "None", "True", "False"};

	return is_kind(p, PYTHON_NAME) || is_kind(p, PYTHON_NUMBER) || is_kind(p, PYTHON_STRING) ||
	       is_any(p, beginnings, COUNT(beginnings));
}

static void starred(struct parser *p)
{
	take(p, "*");
	expression(p);
}

static void operand(struct parser *p);

/* Reads the targets of `for`: a list of operands. */
static void for_targets(struct parser *p)
{
	bind_nothing(p);
	do {
		take(p, "*");
		operand(p);
		if (!p->target)
			expected(p, "a target before this");
	} while (take(p, ",") && begins_expression(p));
	bind_mentioned(p);
}

static void disjunction(struct parser *p);

static bool at_comprehension(const struct parser *p)
{
	return is(p, "for") || is(p, "async");
}

/* Reads `for … in … if …` after the element of a comprehension, if there is one. */
static void comprehension(struct parser *p)
{
	bool mentioned = p->mentioned, bind = p->out->binds_wanted;

	while (at_comprehension(p)) {
		take(p, "async");
		expect(p, "for");
		for_targets(p);
		p->out->binds_wanted = bind; /* a comprehension has its own names */
		expect(p, "in");
		disjunction(p);
		while (take(p, "if")) {
			disjunction(p);
			if (take(p, ":="))
				expression(p);
		}
	}
	p->mentioned = p->mentioned || mentioned;
}

static void yield_expression(struct parser *p)
{
	expect(p, "yield");
	if (take(p, "from"))
		expression(p);
	else if (begins_expression(p))
		expressions(p);
	p->target = false;
}

/* Reads the elements of a list, a tuple or a parenthesised expression, up to the closing bracket. */
static void elements(struct parser *p, const char *closing)
{
	while (!is(p, closing)) {
		if (is(p, "yield"))
			yield_expression(p);
		else
			starred(p);
		if (p->with_items && take(p, "as"))
			operand(p);
		comprehension(p);
		if (!take(p, ","))
			break;
	}
	expect(p, closing);
	p->target = true;
}

/* Reads the items of a set or a dict. Either all items are pairs, or none is. */
static void items(struct parser *p)
{
	bool first = true, pairs = false;

	while (!is(p, "}")) {
		bool unpacked = take(p, "**");

		starred(p);
		if (first)
			pairs = unpacked || is(p, ":");
		if (pairs && !unpacked) {
			expect(p, ":");
			expression(p);
		}
		first = false;
		comprehension(p);
		if (!take(p, ","))
			break;
	}
	expect(p, "}");
	p->target = false;
}

static void arguments(struct parser *p)
{
	while (!is(p, ")")) {
		if (take(p, "**") || take(p, "*")) {
			expression(p);
		} else {
			expression(p);
			if (p->target && take(p, "="))
				expression(p);
			comprehension(p);
		}
		if (!take(p, ","))
			break;
	}
	expect(p, ")");
	p->target = false;
}

static void slice(struct parser *p)
{
	if (!is(p, ":"))
		starred(p);
	for (int colons = 0; colons < 2 && take(p, ":"); colons++)
		if (!is(p, ":") && !is(p, ",") && !is(p, "]"))
			expression(p);
}

static void subscript(struct parser *p)
{
	do
		slice(p);
	while (take(p, ",") && !is(p, "]"));
	expect(p, "]");
	p->target = true;
}

/* Reads what can follow an operand directly: attributes, calls, subscripts. */
static void trailers(struct parser *p)
{
	for (;;) {
		if (take(p, ".")) {
			if (!is_kind(p, PYTHON_NAME)) {
				expected(p, "the name of an attribute");
				return;
			}
			next(p);
			p->target = true;
		} else if (take(p, "(")) {
			arguments(p);
		} else if (take(p, "[")) {
			subscript(p);
		} else {
			return;
		}
	}
}

/* Notes the wanted name, and functions that change the names of a module: they may bind any name. */
static void note_name(struct parser *p)
{
	static const char *const changes[] = {"exec", "globals", "locals", "vars", "setattr"};

	if (is_word(p, p->wanted))
		p->mentioned = true;
	for (size_t i = 0; i < COUNT(changes); i++)
		if (is_word(p, changes[i]))
			p->out->binds_any = true;
}

static void atom(struct parser *p)
{
	static const char *const constants[] = {"None", "True", "False", "..."};

	p->target = is_kind(p, PYTHON_NAME);
	if (is_kind(p, PYTHON_NAME)) {
		note_name(p);
		next(p);
	} else if (is_kind(p, PYTHON_STRING)) {
		while (is_kind(p, PYTHON_STRING))
			next(p);
	} else if (is_kind(p, PYTHON_NUMBER) || is_any(p, constants, COUNT(constants))) {
		next(p);
	} else if (take(p, "(")) {
		elements(p, ")");
	} else if (take(p, "[")) {
		elements(p, "]");
	} else if (take(p, "{")) {
		items(p);
	} else {
		expected(p, "an expression");
	}
}

static void operand(struct parser *p)
{
	static const char *const prefixes[] = {"+", "-", "~", "not", "await"};
	bool prefixed = false;

	while (is_any(p, prefixes, COUNT(prefixes))) {
		next(p);
		prefixed = true;
	}
	if (!deeper(p))
		return;
	atom(p);
	trailers(p);
	p->depth--;
	p->target = p->target && !prefixed;
}

static bool take_operator(struct parser *p)
{
	static const char *const operators[] = {"+", "-", "*",	"/",  "//", "%",  "@",	"&",  "|", "^",	 "<<",
						">>", "**", "<", ">", "==", "<=", ">=", "!=", "<>", "in", "is",
						"and", "or"};

	if (is_any(p, operators, COUNT(operators))) {
		next(p);
		return true;
	}
	if (!take(p, "not"))
		return false;
	expect(p, "in");
	return true;
}

static void disjunction(struct parser *p)
{
	operand(p);
	if (!take_operator(p))
		return;
	do
		operand(p);
	while (take_operator(p));
	p->target = false;
}

static void lambda(struct parser *p)
{
	expect(p, "lambda");
	parameters(p, ":", NULL);
	expression(p);
	p->target = false;
}

static void expression(struct parser *p)
{
	if (!deeper(p))
		return;
	if (is(p, "lambda")) {
		lambda(p);
	} else {
		disjunction(p);
		if (p->target && is(p, ":=")) {
			bind_mentioned(p);
			next(p);
			expression(p);
			p->target = false;
		} else if (take(p, "if")) {
			disjunction(p);
			expect(p, "else");
			expression(p);
			p->target = false;
		}
	}
	p->depth--;
}

/* Reads a list of expressions without brackets, or `yield`. */
static void expressions(struct parser *p)
{
	bool target = true;

	if (is(p, "yield")) {
		yield_expression(p);
		return;
	}
	do {
		starred(p);
		target = target && p->target;
	} while (take(p, ",") && begins_expression(p));
	p->target = target;
}

/* --- parameters ---------------------------------------------------------------------------------------------- */

struct parameter_list {
	struct python_parameter *items; /* NULL: nothing is recorded */
	int count, room;
	enum python_parameter_kind kind; /* of the next parameter */
	bool defaults;                   /* a parameter with a default precedes */
};

static void add_parameter(struct parser *p, struct parameter_list *list, const struct python_token *name,
			  enum python_parameter_kind kind, bool has_default)
{
	if (list->count == PYTHON_PARAMETERS) {
		python_tokens_give_up(&p->t);
		return;
	}
	if (list->count == list->room) {
		struct python_parameter *more = arena_array(p->arena, (size_t)list->room * 2 + 8, sizeof *more);

		if (list->count > 0)
			memcpy(more, list->items, (size_t)list->count * sizeof *more);
		list->items = more;
		list->room = list->room * 2 + 8;
	}
	list->items[list->count++] =
	    (struct python_parameter){arena_copy(p->arena, name->at, name->length), kind, has_default};
}

/* Reads a parameter: its name, in `def` its annotation, and its default. */
static void parameter(struct parser *p, struct parameter_list *list, enum python_parameter_kind kind, bool annotated,
		      bool recorded)
{
	const struct python_token name = p->t.token;
	bool has_default = false;

	if (!is_kind(p, PYTHON_NAME)) {
		expected(p, "the name of a parameter");
		return;
	}
	next(p);
	if (annotated && take(p, ":"))
		starred(p);
	if (kind != PARAMETER_ARGS && kind != PARAMETER_KWARGS)
		has_default = take(p, "=");
	if (has_default)
		expression(p);
	else if (kind == PARAMETER_ANY && list->defaults && p->t.stop == PYTHON_READING)
		python_tokens_fail(&p->t, name.at, "a parameter without a default follows one with a default");
	list->defaults = list->defaults || has_default;
	if (recorded && p->t.stop == PYTHON_READING)
		add_parameter(p, list, &name, kind, has_default);
}

/* Reads parameters up to `end`, and records them in `function` unless it is NULL, for a lambda. */
static void parameters(struct parser *p, const char *end, struct python_function *function)
{
	struct parameter_list list = {.kind = PARAMETER_ANY};
	bool annotated = strcmp(end, ")") == 0;

	while (!is(p, end)) {
		if (take(p, "/")) {
			for (int i = 0; i < list.count; i++)
				list.items[i].kind = PARAMETER_POSITIONAL_ONLY;
		} else if (take(p, "**")) {
			parameter(p, &list, PARAMETER_KWARGS, annotated, function != NULL);
		} else if (take(p, "*")) {
			if (!is(p, ","))
				parameter(p, &list, PARAMETER_ARGS, annotated, function != NULL);
			list.kind = PARAMETER_NAMED_ONLY;
		} else {
			parameter(p, &list, list.kind, annotated, function != NULL);
		}
		if (!take(p, ","))
			break;
	}
	expect(p, end);
	if (function == NULL)
		return;
	function->parameters = list.items;
	function->parameter_count = list.count;
}

/* --- simple statements --------------------------------------------------------------------------------------- */

static void assignment(struct parser *p)
{
	static const char *const updates[] = {"+=",  "-=",  "*=", "/=", "//=", "%=", "@=",
					      "&=", "|=", "^=", ">>=", "<<=", "**="};

	expressions(p);
	if (is_any(p, updates, COUNT(updates))) {
		next(p);
		expressions(p);
	} else if (p->target && is(p, ":")) {
		bind_mentioned(p);
		next(p);
		expression(p);
		if (take(p, "="))
			expressions(p);
	} else {
		while (p->target && is(p, "=")) {
			bind_mentioned(p);
			bind_nothing(p);
			next(p);
			expressions(p);
		}
	}
}

static void return_statement(struct parser *p)
{
	if (!p->in_function)
		python_tokens_fail(&p->t, p->t.token.at, "'return' outside a function");
	next(p);
	if (begins_expression(p) || is(p, "yield"))
		expressions(p);
}

static void loop_control(struct parser *p)
{
	if (!p->in_loop)
		python_tokens_fail(&p->t, p->t.token.at, "'%.*s' outside a loop", (int)p->t.token.length,
				   p->t.token.at);
	next(p);
}

static void raise_statement(struct parser *p)
{
	next(p);
	if (!begins_expression(p))
		return;
	expression(p);
	if (take(p, "from"))
		expression(p);
}

/* global and nonlocal */
static void scope_statement(struct parser *p)
{
	bool global = is(p, "global"), in_namespace = p->in_namespace;

	p->in_namespace = !global;
	do {
		next(p);
		bound_name(p, "a name");
	} while (is(p, ","));
	p->in_namespace = in_namespace;
}

static void del_statement(struct parser *p)
{
	next(p);
	expressions(p);
}

static void assert_statement(struct parser *p)
{
	next(p);
	expression(p);
	if (take(p, ","))
		expression(p);
}

static void imported_as(struct parser *p)
{
	if (take(p, "as"))
		bound_name(p, "a name");
}

/* Reads a dotted name, whose first part is bound. */
static void module_name(struct parser *p)
{
	bound_name(p, "the name of a module");
	while (take(p, ".")) {
		if (!is_kind(p, PYTHON_NAME))
			expected(p, "the name of a module");
		next(p);
	}
}

static void import_statement(struct parser *p)
{
	do {
		next(p);
		module_name(p);
		imported_as(p);
	} while (is(p, ","));
}

static void imported_names(struct parser *p, const char *end)
{
	do {
		bound_name(p, "a name to import");
		imported_as(p);
	} while (take(p, ",") && !(end != NULL && is(p, end)));
	if (end != NULL)
		expect(p, end);
}

static void from_statement(struct parser *p)
{
	bool dots = false, bind = p->out->binds_wanted;

	next(p);
	while (take(p, ".") || take(p, "..."))
		dots = true;
	if (!dots || !is(p, "import"))
		module_name(p);
	p->out->binds_wanted = bind;
	expect(p, "import");
	if (take(p, "*"))
		p->out->binds_any = true;
	else if (take(p, "("))
		imported_names(p, ")");
	else
		imported_names(p, NULL);
}

static const struct {
	const char *keyword;
	void (*read)(struct parser *p);
} simple_statements[] = {
    {"pass", next},		 {"return", return_statement}, {"break", loop_control},
    {"continue", loop_control},	 {"raise", raise_statement},   {"global", scope_statement},
    {"nonlocal", scope_statement}, {"del", del_statement},     {"assert", assert_statement},
    {"import", import_statement}, {"from", from_statement},
};

static void simple_statement(struct parser *p)
{
	bind_nothing(p);
	for (size_t i = 0; i < COUNT(simple_statements); i++)
		if (is(p, simple_statements[i].keyword)) {
			simple_statements[i].read(p);
			return;
		}
	if (begins_expression(p) || is(p, "yield"))
		assignment(p);
	else
		expected(p, "a statement");
}

/* Reads statements separated by ';' up to the end of the line. */
static void simple_line(struct parser *p)
{
	do
		simple_statement(p);
	while (take(p, ";") && !is_kind(p, PYTHON_NEWLINE));
	if (is_kind(p, PYTHON_NEWLINE))
		next(p);
	else
		expected(p, "the end of the statement");
}

/* --- compound statements ------------------------------------------------------------------------------------- */

/* The clauses that may follow a statement. */
enum { ELIF = 1, ELSE = 2, EXCEPT = 4, FINALLY = 8, REQUIRED = 16 /* one of the others must follow */ };

static void statements(struct parser *p);

/* Reads the ':' of a compound statement and its block, which is the rest of the line or an indented block. */
static void block(struct parser *p)
{
	expect(p, ":");
	if (!is_kind(p, PYTHON_NEWLINE)) {
		simple_line(p);
		return;
	}
	next(p);
	if (!is_kind(p, PYTHON_INDENT)) {
		expected(p, "an indented block");
		return;
	}
	next(p);
	p->blocks++;
	statements(p);
	p->blocks--;
	if (is_kind(p, PYTHON_DEDENT))
		next(p);
}

/* Reads the block of a def or class, whose names, loops and `return` are its own. */
static void own_block(struct parser *p, bool is_function)
{
	bool in_function = p->in_function, in_loop = p->in_loop, in_namespace = p->in_namespace;

	p->in_function = is_function;
	p->in_loop = false;
	p->in_namespace = true;
	block(p);
	p->in_function = in_function;
	p->in_loop = in_loop;
	p->in_namespace = in_namespace;
}

static void loop_block(struct parser *p)
{
	bool in_loop = p->in_loop;

	p->in_loop = true;
	block(p);
	p->in_loop = in_loop;
}

/* if and elif */
static void if_clause(struct parser *p)
{
	next(p);
	expression(p);
	block(p);
}

static void while_statement(struct parser *p)
{
	next(p);
	expression(p);
	loop_block(p);
}

static void for_statement(struct parser *p)
{
	next(p);
	for_targets(p);
	expect(p, "in");
	expressions(p);
	loop_block(p);
}

/* else, try and finally */
static void plain_clause(struct parser *p)
{
	next(p);
	block(p);
}

static void except_clause(struct parser *p)
{
	next(p);
	take(p, "*");
	if (!is(p, ":")) {
		expressions(p);
		imported_as(p);
	}
	block(p);
}

static void with_statement(struct parser *p)
{
	next(p);
	p->with_items = true;
	do {
		bind_nothing(p);
		expression(p);
		if (take(p, "as"))
			operand(p);
		bind_mentioned(p);
	} while (take(p, ","));
	p->with_items = false;
	block(p);
}

/* Skips the type parameters of a def or class: `[T, *Ts]`. */
static void type_parameters(struct parser *p)
{
	int open = p->t.open;

	if (!take(p, "["))
		return;
	while (p->t.open >= open && p->t.stop == PYTHON_READING)
		next(p);
	next(p);
}

/* Adds a function to the outline. Returns NULL if the function is not at top level. */
static struct python_function *add_function(struct parser *p, bool is_async, bool decorated)
{
	if (p->blocks > 0)
		return NULL;
	if (p->functions == NULL)
		p->functions = arena_array(p->arena, PYTHON_FUNCTIONS, sizeof *p->functions);
	if (p->out->function_count == PYTHON_FUNCTIONS) {
		python_tokens_give_up(&p->t);
		return NULL;
	}
	python_tokens_place(&p->t, &p->place, p->t.token.at);
	struct python_function *function = &p->functions[p->out->function_count++];

	*function = (struct python_function){.name = arena_copy(p->arena, p->t.token.at, p->t.token.length),
					     .line = p->place.line,
					     .is_async = is_async,
					     .decorated = decorated};
	return function;
}

static void function_definition(struct parser *p, bool is_async, bool decorated)
{
	struct python_function *function = NULL;

	expect(p, "def");
	if (is_kind(p, PYTHON_NAME))
		function = add_function(p, is_async, decorated);
	if (function != NULL)
		next(p);
	else
		bound_name(p, "the name of a function");
	type_parameters(p);
	expect(p, "(");
	struct python_function unused;

	parameters(p, ")", function != NULL ? function : &unused);
	if (take(p, "->"))
		expressions(p);
	own_block(p, true);
}

static void def_statement(struct parser *p)
{
	function_definition(p, false, false);
}

static void class_statement(struct parser *p)
{
	next(p);
	bound_name(p, "the name of a class");
	type_parameters(p);
	if (take(p, "("))
		arguments(p);
	own_block(p, false);
}

static void async_or_def(struct parser *p, bool decorated)
{
	bool is_async = take(p, "async");

	if (is(p, "def"))
		function_definition(p, is_async, decorated);
	else if (is_async && !decorated && is(p, "for"))
		for_statement(p);
	else if (is_async && !decorated && is(p, "with"))
		with_statement(p);
	else
		expected(p, decorated ? "a function or a class" : "'def', 'for' or 'with'");
}

static void async_statement(struct parser *p)
{
	async_or_def(p, false);
}

static void decorated_statement(struct parser *p)
{
	while (take(p, "@")) {
		expression(p);
		if (is_kind(p, PYTHON_NEWLINE))
			next(p);
		else
			expected(p, "the end of the line");
	}
	if (is(p, "class"))
		class_statement(p);
	else
		async_or_def(p, true);
}

static const struct {
	const char *keyword;
	void (*read)(struct parser *p);
	int needs; /* the clause that the statement is; 0: it begins a statement */
	int then;  /* what may follow */
} compound_statements[] = {
    {"if", if_clause, 0, ELIF | ELSE},
    {"elif", if_clause, ELIF, ELIF | ELSE},
    {"while", while_statement, 0, ELSE},
    {"for", for_statement, 0, ELSE},
    {"else", plain_clause, ELSE, FINALLY},
    {"try", plain_clause, 0, EXCEPT | FINALLY | REQUIRED},
    {"except", except_clause, EXCEPT, EXCEPT | ELSE | FINALLY},
    {"finally", plain_clause, FINALLY, 0},
    {"with", with_statement, 0, 0},
    {"def", def_statement, 0, 0},
    {"class", class_statement, 0, 0},
    {"async", async_statement, 0, ELSE},
    {"@", decorated_statement, 0, 0},
};

/* Returns whether the line begins with a word that is a keyword there in some versions only. */
static bool at_soft_keyword(const struct parser *p)
{
	static const char *const words[] = {"match", "case", "type", "lazy"};

	for (size_t i = 0; i < COUNT(words); i++)
		if (is_word(p, words[i]))
			return true;
	return false;
}

/* Skips a line that begins with such a word, and its block: as a statement its grammar differs, and as a name it is
 * rare. */
static void soft_statement(struct parser *p)
{
	bool colon = false;

	while (!is_kind(p, PYTHON_NEWLINE) && !is_kind(p, PYTHON_END)) {
		colon = is(p, ":");
		if (is_word(p, p->wanted) && !p->in_namespace)
			p->out->binds_wanted = true;
		next(p);
	}
	next(p);
	if (!colon || !is_kind(p, PYTHON_INDENT))
		return;
	next(p);
	p->blocks++;
	statements(p);
	p->blocks--;
	if (is_kind(p, PYTHON_DEDENT))
		next(p);
}

static void check_follower(struct parser *p, int allowed, int clause)
{
	if ((allowed & REQUIRED) && (clause & (EXCEPT | FINALLY)) == 0)
		expected(p, "'except' or 'finally'");
	else if ((clause & allowed) != clause)
		expected(p, "a statement");
}

/* Reads a statement. `allowed` has the clauses that may follow the statement before; returns those that may follow this
 * one. */
static int statement(struct parser *p, int allowed)
{
	for (size_t i = 0; i < COUNT(compound_statements); i++) {
		if (!is(p, compound_statements[i].keyword))
			continue;
		int then = compound_statements[i].then;

		check_follower(p, allowed, compound_statements[i].needs);
		bind_nothing(p);
		compound_statements[i].read(p);
		return compound_statements[i].needs == ELSE ? then & allowed : then;
	}
	check_follower(p, allowed, 0);
	if (at_soft_keyword(p))
		soft_statement(p);
	else
		simple_line(p);
	return 0;
}

static void statements(struct parser *p)
{
	int allowed = 0;

	while (!is_kind(p, PYTHON_END) && !is_kind(p, PYTHON_DEDENT))
		allowed = statement(p, allowed);
	check_follower(p, allowed, 0);
}

/* --- the interface ------------------------------------------------------------------------------------------- */

/* A bracket that is never closed makes the text behind it wrong. Reads on to the end of the text, and makes such a
 * bracket the error if it is open at the error that was found. */
static void prefer_open_bracket(struct python_tokens *t)
{
	struct python_tokens rest = *t;
	const char *outer = t->open > 0 ? t->bracket[0] : NULL;

	if (outer == NULL)
		return;
	rest.stop = PYTHON_READING;
	do
		python_tokens_next(&rest);
	while (rest.stop == PYTHON_READING && rest.token.kind != PYTHON_END);
	if (rest.stop != PYTHON_WRONG || rest.at != rest.end || rest.open == 0)
		return;
	for (int i = 0; i < t->open; i++)
		if (t->bracket[i] == rest.wrong_at) {
			t->wrong_at = rest.wrong_at;
			t->wrong = rest.wrong;
		}
}

enum python_outline_answer python_outline_read(const char *source, size_t length, const char *wanted,
					       struct arena *arena, struct python_outline *out, struct err *err)
{
	struct parser p = {.arena = arena, .out = out, .wanted = wanted};

	*out = (struct python_outline){.functions = NULL};
	python_tokens_begin(&p.t, source, length);
	statements(&p);
	out->functions = p.functions;
	if (p.t.stop == PYTHON_READING)
		return PYTHON_OUTLINE_OK;
	if (p.t.stop == PYTHON_UNSURE)
		return PYTHON_OUTLINE_UNSURE;
	if (p.grammar)
		prefer_open_bracket(&p.t);
	struct python_place place = {NULL, 0, 0};

	python_tokens_place(&p.t, &place, p.t.wrong_at);
	out->line = place.line;
	out->column = place.column;
	if (err != NULL)
		*err = p.t.wrong;
	return PYTHON_OUTLINE_ERROR;
}

const struct python_function *python_outline_function(const struct python_outline *outline, const char *name)
{
	for (int i = outline->function_count - 1; i >= 0; i--)
		if (strcmp(outline->functions[i].name, name) == 0)
			return &outline->functions[i];
	return NULL;
}

bool python_outline_may_define(const struct python_outline *outline, const char *wanted)
{
	return outline->binds_wanted || outline->binds_any || python_outline_function(outline, wanted) != NULL;
}
