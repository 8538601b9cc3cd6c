/* test_python_names - finds each name that nothing in the source defines, with its line and column. */
#include "dataset/python_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

/* Checks the names that are found. `expected` lists them as "line:column name", separated by spaces. */
static void check_found(const char *source, const char *expected)
{
	struct arena arena = {0};
	struct buf text = {0};
	struct python_name found[4];
	int count = python_names_undefined(source, strlen(source), &arena, found, 4);

	buf_text(&text, "");
	for (int i = 0; i < count; i++)
		buf_printf(&text, "%s%d:%d %s", i > 0 ? " " : "", found[i].line, found[i].column, found[i].name);
	if (strcmp(text.data == NULL ? "" : text.data, expected) != 0)
		fail_msg("%s\nfound: %s\nexpected: %s", source, text.data == NULL ? "" : text.data, expected);
	buf_free(&text);
	arena_free(&arena);
}

static void undefined_names_have_the_place_of_their_first_use(void **state)
{
	(void)state;
	check_found("import torch\n\ndef run(x):\n    if x is None:\n        return one(x, two)\n    return one.x[x]\n", "5:16 one 5:23 two");
	check_found("a[b] = 1", "1:1 a 1:3 b");
	check_found("a.b = f(c=d)", "1:1 a 1:7 f 1:11 d");
	check_found("for i in j: k", "1:10 j 1:13 k");
	check_found("[i for i in j if k]", "1:13 j 1:18 k");
	check_found("f = lambda a, b=c: a + b + d", "1:17 c 1:28 d");
	check_found("with f(x) as y: pass", "1:6 f 1:8 x");
	check_found("def f(a: A = b) -> C: d: E = 1", "1:10 A 1:14 b 1:20 C");
	check_found("x = {'\xC3\xA9': a}", "1:11 a");
	check_found("x += 1", "1:1 x");
	check_found("@a\nclass B(c, metaclass=d): pass", "1:2 a 2:9 c 2:22 d");
	check_found("try: pass\nexcept E as e: e", "2:8 E");
	check_found("a; b; c; d; e", "1:1 a 1:4 b 1:7 c 1:10 d");
}

static void names_that_any_statement_defines_are_not_found(void **state)
{
	static const char *const sources[] = {
	    "def f(): return g()\ndef g(): pass",
	    "def f(a, *b, c=1, **d): return a, b, c, d",
	    "def f(a, /, b: int, *, c): return a, b, c",
	    "(lambda a, *b, c=1, **d: (a, b, c, d))",
	    "a, (b, *c) = [d, e] = 1, 2\na, b, c, d, e",
	    "a = b = 1\na; b",
	    "a: int\na",
	    "if (a := 1): a",
	    "import a.b, c as d\na; d",
	    "from . import a\nfrom .b import (c, d as e,)\na; c; e",
	    "def f():\n  global a\n  a = 1\na",
	    "for a, (b, c) in (): a; b; c",
	    "[a + b for a in () for b in a]",
	    "{a: b for a, b in ()}",
	    "f = print\nf(a for a in ())",
	    "with open('') as (a, b), open('') as c: a; b; c",
	    "with (open('') as a, open('') as b): a; b",
	    "try: pass\nexcept OSError as a: a",
	    "match 1:\n  case [a, *b]: a; b\n  case {'k': c, **d} if c: d",
	    "class A[T](list): x: T\ndef f[S](x: S): return A",
	    "type A = B\nA",
	    "from __future__ import annotations\ndef f(x: Optional[int], y: A = 1) -> Dict[B]: return x, y",
	    "def f():\n  x: Optional[int] = 1\n  return x",
	    "print(len(str(__name__)), end='')",
	    "'a'.join(()); x = 1 .real\nx.anything.at_all(sep=x)",
	    "f'{a}'",
	    "from m import *\na",
	    "exec('a = 1')\na",
	    "globals()['a'] = 1\na",
	    "try: a\nexcept NameError: pass",
	    "x = f'{(a := 1)}'\na",
	    "\xC3\xA9",
	};

	(void)state;
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
		check_found(sources[i], "");
}

static void invalid_sources_are_read_without_harm(void **state)
{
	(void)state;
	check_found("", "");
	check_found(")))((( lambda : : def class for as", "");
	check_found("\"\"\"", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(undefined_names_have_the_place_of_their_first_use),
	    cmocka_unit_test(names_that_any_statement_defines_are_not_found),
	    cmocka_unit_test(invalid_sources_are_read_without_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
