/* python_outline - a recursive parser of Python's statements. The parser builds no tree. For an expression, the parser
 * only records whether the expression is a valid target of an assignment. */
#include "dataset/python_outline.h"

#include <string.h>

#include "dataset/python_expression.h"

/* --- simple statements --------------------------------------------------------------------------------------- */

static void assignment(struct python_parser *p)
{
	static const char *const updates[] = {"+=",  "-=",  "*=", "/=", "//=", "%=", "@=",
					      "&=", "|=", "^=", ">>=", "<<=", "**="};

	python_expressions(p);
	if (is_any(p, updates, COUNT(updates))) {
		next(p);
		python_expressions(p);
	} else if (p->target && is(p, ":")) {
		bind_mentioned(p);
		next(p);
		python_expression(p);
		if (take(p, "="))
			python_expressions(p);
	} else {
		while (p->target && is(p, "=")) {
			bind_mentioned(p);
			bind_nothing(p);
			next(p);
			python_expressions(p);
		}
	}
}

static void return_statement(struct python_parser *p)
{
	if (!p->in_function)
		python_tokens_fail(&p->t, p->t.token.at, "'return' outside a function");
	next(p);
	if (python_begins_expression(p) || is(p, "yield"))
		python_expressions(p);
}

static void loop_control(struct python_parser *p)
{
	if (!p->in_loop)
		python_tokens_fail(&p->t, p->t.token.at, "'%.*s' outside a loop", (int)p->t.token.length,
				   p->t.token.at);
	next(p);
}

static void raise_statement(struct python_parser *p)
{
	next(p);
	if (!python_begins_expression(p))
		return;
	python_expression(p);
	if (take(p, "from"))
		python_expression(p);
}

/* global and nonlocal */
static void scope_statement(struct python_parser *p)
{
	bool global = is(p, "global"), in_namespace = p->in_namespace;

	p->in_namespace = !global;
	do {
		next(p);
		bound_name(p, "a name");
	} while (is(p, ","));
	p->in_namespace = in_namespace;
}

static void del_statement(struct python_parser *p)
{
	next(p);
	python_expressions(p);
}

static void assert_statement(struct python_parser *p)
{
	next(p);
	python_expression(p);
	if (take(p, ","))
		python_expression(p);
}

static void imported_as(struct python_parser *p)
{
	if (take(p, "as"))
		bound_name(p, "a name");
}

/* Reads the dotted name of a module, and binds the first part of the name. */
static void module_name(struct python_parser *p)
{
	bound_name(p, "the name of a module");
	while (take(p, ".")) {
		if (!is_kind(p, PYTHON_NAME))
			expected(p, "the name of a module");
		next(p);
	}
}

static void import_statement(struct python_parser *p)
{
	do {
		next(p);
		module_name(p);
		imported_as(p);
	} while (is(p, ","));
}

static void imported_names(struct python_parser *p, const char *end)
{
	do {
		bound_name(p, "a name to import");
		imported_as(p);
	} while (take(p, ",") && !(end != NULL && is(p, end)));
	if (end != NULL)
		expect(p, end);
}

static void from_statement(struct python_parser *p)
{
	bool dots = false, bind = p->binds_wanted;

	next(p);
	while (take(p, ".") || take(p, "..."))
		dots = true;
	if (!dots || !is(p, "import"))
		module_name(p);
	p->binds_wanted = bind;
	expect(p, "import");
	if (take(p, "*"))
		p->binds_any = true;
	else if (take(p, "("))
		imported_names(p, ")");
	else
		imported_names(p, NULL);
}

static const struct {
	const char *keyword;
	void (*read)(struct python_parser *p);
} simple_statements[] = {
    {"pass", next},		 {"return", return_statement}, {"break", loop_control},
    {"continue", loop_control},	 {"raise", raise_statement},   {"global", scope_statement},
    {"nonlocal", scope_statement}, {"del", del_statement},     {"assert", assert_statement},
    {"import", import_statement}, {"from", from_statement},
};

static void simple_statement(struct python_parser *p)
{
	bind_nothing(p);
	for (size_t i = 0; i < COUNT(simple_statements); i++)
		if (is(p, simple_statements[i].keyword)) {
			simple_statements[i].read(p);
			return;
		}
	if (python_begins_expression(p) || is(p, "yield"))
		assignment(p);
	else
		expected(p, "a statement");
}

/* Reads statements separated by ';' up to the end of the line. */
static void simple_line(struct python_parser *p)
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

/* A set of the clauses that may follow a statement. REQUIRED: one of the clauses in the set must follow. */
enum { ELIF = 1, ELSE = 2, EXCEPT = 4, FINALLY = 8, REQUIRED = 16 };

static void statements(struct python_parser *p);

/* Reads the ':' of a compound statement and then its block, which is the rest of the line or an indented block. */
static void block(struct python_parser *p)
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

/* Reads the block of a def or class. A loop or function around the def or class does not make `break` or `return` valid
 * in the block. If the block assigns to a name, this does not bind the name in the module. */
static void own_block(struct python_parser *p, bool is_function)
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

static void loop_block(struct python_parser *p)
{
	bool in_loop = p->in_loop;

	p->in_loop = true;
	block(p);
	p->in_loop = in_loop;
}

/* if and elif */
static void if_clause(struct python_parser *p)
{
	next(p);
	python_expression(p);
	block(p);
}

static void while_statement(struct python_parser *p)
{
	next(p);
	python_expression(p);
	loop_block(p);
}

static void for_statement(struct python_parser *p)
{
	next(p);
	python_for_targets(p);
	expect(p, "in");
	python_expressions(p);
	loop_block(p);
}

/* else, try and finally */
static void plain_clause(struct python_parser *p)
{
	next(p);
	block(p);
}

static void except_clause(struct python_parser *p)
{
	next(p);
	take(p, "*");
	if (!is(p, ":")) {
		python_expressions(p);
		imported_as(p);
	}
	block(p);
}

static void with_statement(struct python_parser *p)
{
	next(p);
	p->with_items = true;
	do {
		bind_nothing(p);
		python_expression(p);
		if (take(p, "as"))
			python_operand(p);
		bind_mentioned(p);
	} while (take(p, ","));
	p->with_items = false;
	block(p);
}

/* Skips the type parameters of a def or class: `[T, *Ts]`. */
static void type_parameters(struct python_parser *p)
{
	int open = p->t.open;

	if (!take(p, "["))
		return;
	while (p->t.open >= open && p->t.stop == PYTHON_READING)
		next(p);
	next(p);
}

/* Adds a function to the outline. Returns NULL if the function is not at top level, or if the outline is full. */
static struct python_function *add_function(struct python_parser *p, bool is_async, bool decorated)
{
	if (p->blocks > 0)
		return NULL;
	if (p->functions == NULL)
		p->functions = arena_array(p->arena, PYTHON_FUNCTIONS, sizeof *p->functions);
	if (p->function_count == PYTHON_FUNCTIONS) {
		python_tokens_give_up(&p->t);
		return NULL;
	}
	python_tokens_place(&p->t, &p->place, p->t.token.at);
	struct python_function *function = &p->functions[p->function_count++];

	*function = (struct python_function){.name = arena_copy(p->arena, p->t.token.at, p->t.token.length),
					     .line = p->place.line,
					     .is_async = is_async,
					     .decorated = decorated};
	return function;
}

static void function_definition(struct python_parser *p, bool is_async, bool decorated)
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

	python_parameters(p, ")", function != NULL ? function : &unused);
	if (take(p, "->"))
		python_expressions(p);
	own_block(p, true);
}

static void def_statement(struct python_parser *p)
{
	function_definition(p, false, false);
}

static void class_statement(struct python_parser *p)
{
	next(p);
	bound_name(p, "the name of a class");
	type_parameters(p);
	if (take(p, "("))
		python_arguments(p);
	own_block(p, false);
}

static void async_or_def(struct python_parser *p, bool decorated)
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

static void async_statement(struct python_parser *p)
{
	async_or_def(p, false);
}

static void decorated_statement(struct python_parser *p)
{
	while (take(p, "@")) {
		python_expression(p);
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
	void (*read)(struct python_parser *p);
	/* The clause that the keyword begins, for example ELSE. 0: the keyword begins a new statement. */
	int needs;
	int then;  /* the clauses that may follow this clause */
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

/* Returns whether the line begins with a word that is a keyword only at the beginning of some statements: `match`,
 * `case`, `type` or `lazy`. */
static bool at_soft_keyword(const struct python_parser *p)
{
	static const char *const words[] = {"match", "case", "type", "lazy"};

	for (size_t i = 0; i < COUNT(words); i++)
		if (is_word(p, words[i]))
			return true;
	return false;
}

/* Skips a line that begins with `match`, `case`, `type` or `lazy`, and its block. The parser does not know the grammar
 * of these statements. It does not examine whether the word is a keyword in this line or an ordinary name, because
 * lines with such a name are rare. */
static void soft_statement(struct python_parser *p)
{
	bool colon = false;

	while (!is_kind(p, PYTHON_NEWLINE) && !is_kind(p, PYTHON_END)) {
		colon = is(p, ":");
		if (is_word(p, p->wanted) && !p->in_namespace)
			p->binds_wanted = true;
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

static void check_follower(struct python_parser *p, int allowed, int clause)
{
	if ((allowed & REQUIRED) && (clause & (EXCEPT | FINALLY)) == 0)
		expected(p, "'except' or 'finally'");
	else if ((clause & allowed) != clause)
		expected(p, "a statement");
}

/* Reads a statement. `allowed` has the clauses that may follow the previous statement. Returns the clauses that may
 * follow the statement that was read. */
static int statement(struct python_parser *p, int allowed)
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

static void statements(struct python_parser *p)
{
	int allowed = 0;

	while (!is_kind(p, PYTHON_END) && !is_kind(p, PYTHON_DEDENT))
		allowed = statement(p, allowed);
	check_follower(p, allowed, 0);
}

/* --- the interface ------------------------------------------------------------------------------------------- */

/* Call this after a syntax error: its cause may be an earlier bracket that is never closed. If a bracket is open at the
 * error, reads on to the end of the text. If the scanner then reports that this bracket is never closed, reports this
 * instead of the error. */
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
	struct python_parser p = {.arena = arena, .wanted = wanted};

	python_tokens_begin(&p.t, source, length);
	statements(&p);
	*out = (struct python_outline){.functions = p.functions,
				       .function_count = p.function_count,
				       .binds_wanted = p.binds_wanted,
				       .binds_any = p.binds_any};
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
