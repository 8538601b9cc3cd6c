#include "dataset/python_expression.h"

bool python_begins_expression(const struct python_parser *p)
{
	static const char *const beginnings[] = {"(",    "[",     "{",     "+",	  "-",	  "~",	   "...",  "*",
						 "not",  "await", "lambda", "None", "True", "False"};

	return is_kind(p, PYTHON_NAME) || is_kind(p, PYTHON_NUMBER) || is_kind(p, PYTHON_STRING) ||
	       is_any(p, beginnings, COUNT(beginnings));
}

static void starred(struct python_parser *p)
{
	take(p, "*");
	python_expression(p);
}

void python_for_targets(struct python_parser *p)
{
	bind_nothing(p);
	do {
		take(p, "*");
		python_operand(p);
		if (!p->target)
			expected(p, "a target before this");
	} while (take(p, ",") && python_begins_expression(p));
	bind_mentioned(p);
}

static void disjunction(struct python_parser *p);

static bool at_comprehension(const struct python_parser *p)
{
	return is(p, "for") || is(p, "async");
}

/* Reads `for … in … if …` after the element of a comprehension. Reads nothing if there is no `for`. */
static void comprehension(struct python_parser *p)
{
	bool mentioned = p->mentioned, bind = p->binds_wanted;

	while (at_comprehension(p)) {
		take(p, "async");
		expect(p, "for");
		python_for_targets(p);
		p->binds_wanted = bind; /* the targets of a comprehension are not names of the module */
		expect(p, "in");
		disjunction(p);
		while (take(p, "if")) {
			disjunction(p);
			if (take(p, ":="))
				python_expression(p);
		}
	}
	p->mentioned = p->mentioned || mentioned;
}

static void yield_expression(struct python_parser *p)
{
	expect(p, "yield");
	if (take(p, "from"))
		python_expression(p);
	else if (python_begins_expression(p))
		python_expressions(p);
	p->target = false;
}

/* Reads the elements of a list, a tuple or a parenthesised expression, up to the closing bracket. */
static void elements(struct python_parser *p, const char *closing)
{
	while (!is(p, closing)) {
		if (is(p, "yield"))
			yield_expression(p);
		else
			starred(p);
		if (p->with_items && take(p, "as"))
			python_operand(p);
		comprehension(p);
		if (!take(p, ","))
			break;
	}
	expect(p, closing);
	p->target = true;
}

/* Reads the items of a set or a dict. Either all items are pairs (a dict) or none of them is a pair (a set). */
static void items(struct python_parser *p)
{
	bool first = true, pairs = false;

	while (!is(p, "}")) {
		bool unpacked = take(p, "**");

		starred(p);
		if (first)
			pairs = unpacked || is(p, ":");
		if (pairs && !unpacked) {
			expect(p, ":");
			python_expression(p);
		}
		first = false;
		comprehension(p);
		if (!take(p, ","))
			break;
	}
	expect(p, "}");
	p->target = false;
}

void python_arguments(struct python_parser *p)
{
	while (!is(p, ")")) {
		if (take(p, "**") || take(p, "*")) {
			python_expression(p);
		} else {
			python_expression(p);
			if (p->target && take(p, "="))
				python_expression(p);
			comprehension(p);
		}
		if (!take(p, ","))
			break;
	}
	expect(p, ")");
	p->target = false;
}

static void slice(struct python_parser *p)
{
	if (!is(p, ":"))
		starred(p);
	for (int colons = 0; colons < 2 && take(p, ":"); colons++)
		if (!is(p, ":") && !is(p, ",") && !is(p, "]"))
			python_expression(p);
}

static void subscript(struct python_parser *p)
{
	do
		slice(p);
	while (take(p, ",") && !is(p, "]"));
	expect(p, "]");
	p->target = true;
}

/* Reads what can follow an operand directly: attributes, calls, subscripts. */
static void trailers(struct python_parser *p)
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
			python_arguments(p);
		} else if (take(p, "[")) {
			subscript(p);
		} else {
			return;
		}
	}
}

/* Records whether the current token is the name `wanted`, or the name of a function that may bind any name of the
 * module, such as exec or globals. */
static void note_name(struct python_parser *p)
{
	static const char *const changes[] = {"exec", "globals", "locals", "vars", "setattr"};

	if (is_word(p, p->wanted))
		p->mentioned = true;
	for (size_t i = 0; i < COUNT(changes); i++)
		if (is_word(p, changes[i]))
			p->binds_any = true;
}

static void atom(struct python_parser *p)
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

void python_operand(struct python_parser *p)
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

static bool take_operator(struct python_parser *p)
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

static void disjunction(struct python_parser *p)
{
	python_operand(p);
	if (!take_operator(p))
		return;
	do
		python_operand(p);
	while (take_operator(p));
	p->target = false;
}

static void lambda(struct python_parser *p)
{
	expect(p, "lambda");
	python_parameters(p, ":", NULL);
	python_expression(p);
	p->target = false;
}

void python_expression(struct python_parser *p)
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
			python_expression(p);
			p->target = false;
		} else if (take(p, "if")) {
			disjunction(p);
			expect(p, "else");
			python_expression(p);
			p->target = false;
		}
	}
	p->depth--;
}

void python_expressions(struct python_parser *p)
{
	bool target = true;

	if (is(p, "yield")) {
		yield_expression(p);
		return;
	}
	do {
		starred(p);
		target = target && p->target;
	} while (take(p, ",") && python_begins_expression(p));
	p->target = target;
}

/* --- parameters ---------------------------------------------------------------------------------------------- */

struct parameter_list {
	struct python_parameter *items; /* NULL: the parameters are not recorded */
	int count, room;
	enum python_parameter_kind kind; /* kind of the next parameter */
	bool defaults;                   /* an earlier parameter has a default */
};

static void add_parameter(struct python_parser *p, struct parameter_list *list, const struct python_token *name,
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

/* Reads a parameter: its name, its annotation (only in `def`) and its default. */
static void parameter(struct python_parser *p, struct parameter_list *list, enum python_parameter_kind kind, bool annotated,
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
		python_expression(p);
	else if (kind == PARAMETER_ANY && list->defaults && p->t.stop == PYTHON_READING)
		python_tokens_fail(&p->t, name.at, "a parameter without a default follows a parameter with a default");
	list->defaults = list->defaults || has_default;
	if (recorded && p->t.stop == PYTHON_READING)
		add_parameter(p, list, &name, kind, has_default);
}

void python_parameters(struct python_parser *p, const char *end, struct python_function *function)
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
