/* test_python_outline - the outline of a source has every function at top level, each kind of error is reported with
 * its position, and no error is reported in source code that is valid in any version of Python. */
#include "dataset/python_outline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static enum python_outline_answer outline_of(const char *source, struct arena *arena, struct python_outline *out,
					     struct err *err)
{
	*err = (struct err){""};
	return python_outline_read(source, strlen(source), "run", arena, out, err);
}

static void check_parameter(const struct python_function *function, int index, const char *name,
			    enum python_parameter_kind kind, bool has_default)
{
	assert_in_range(index, 0, function->parameter_count - 1);
	assert_string_equal(function->parameters[index].name, name);
	assert_int_equal(function->parameters[index].kind, kind);
	assert_int_equal(function->parameters[index].has_default, has_default);
}

static void functions_at_top_level_are_listed_in_order(void **state)
{
	static const char source[] =
	    "import torch\n"
	    "'''\ndef in_a_string(): pass\n'''\n"
	    "def first(a, b: int = (1, 2), /, c=lambda x, y=1: {x: y}, *, d, e=None, **f) -> 'T':\n"
	    "    def inner(): pass\n"
	    "class A:\n    def method(self): pass\n"
	    "if torch: \n    def conditional(): pass\n"
	    "@torch.no_grad()\n@f\nasync def second(*args): pass\n"
	    "def first(): pass\n";
	struct arena arena = {0};
	struct python_outline outline;
	struct err err;

	(void)state;
	assert_int_equal(outline_of(source, &arena, &outline, &err), PYTHON_OUTLINE_OK);
	assert_int_equal(outline.function_count, 3);
	const struct python_function *first = &outline.functions[0], *second = &outline.functions[1];

	assert_string_equal(first->name, "first");
	assert_int_equal(first->line, 5);
	assert_false(first->is_async || first->decorated);
	assert_int_equal(first->parameter_count, 6);
	check_parameter(first, 0, "a", PARAMETER_POSITIONAL_ONLY, false);
	check_parameter(first, 1, "b", PARAMETER_POSITIONAL_ONLY, true);
	check_parameter(first, 2, "c", PARAMETER_ANY, true);
	check_parameter(first, 3, "d", PARAMETER_NAMED_ONLY, false);
	check_parameter(first, 4, "e", PARAMETER_NAMED_ONLY, true);
	check_parameter(first, 5, "f", PARAMETER_KWARGS, false);
	assert_string_equal(second->name, "second");
	assert_int_equal(second->line, 13);
	assert_true(second->is_async && second->decorated);
	check_parameter(second, 0, "args", PARAMETER_ARGS, false);
	assert_ptr_equal(python_outline_function(&outline, "first"), &outline.functions[2]);
	assert_null(python_outline_function(&outline, "inner"));
	assert_false(outline.binds_wanted || outline.binds_any);
	assert_false(python_outline_may_define(&outline, "run"));
	assert_true(python_outline_may_define(&outline, "second"));
	arena_free(&arena);
}

static void valid_sources_are_no_error(void **state)
{
	static const char *const sources[] = {
	    "",
	    "\n\n   \n# comment",
	    "\xEF\xBB\xBFx = 1",
	    "x = 1\ry = 2\r",
	    "if x:\r\n    y = 1\r\nelse:\r\n    z = 2\r\n",
	    "if x:\n\ty\n\tz\n",
	    "if x:\n        y\n\f        z\n",
	    "\fx = 1",
	    "x = 1 \\\n  + 2; y = 3;\n",
	    "x = '''a\n'b''\\''''; y = r'\\\\'; z = Rb\"\\\"\"",
	    "x = 'a\\\nb\\\r\nc'",
	    "f'{a}{b!r:>{w}.{p}}{{}}' f\"{c['d']}\" rf'\\{e}' f'\\N{DASH} {x:%H:%M} {y=}'",
	    "f\"{a[\"b\"]} {f'{c}'} {'}'} {d if e != 1 else (lambda: {1: 2})}\"",
	    "f'''{\na # comment '\n}{b:\n}'''",
	    "f'{a\n+ b}'",
	    "f'{x:{'\"'}}'",
	    "t'{a}' tr'{b}'",
	    "0xFF + 0o17 + 0b1 + 1_0 + 1. + .5 + 1e-5 + 2E3j + 1.e5 + 00 + 1..real",
	    "1if x else 2; [0x1for x in y]; 1or 2; 1_0and 3",
	    "a = b = *c, d = yield_",
	    "x: int; y: int = 1; (a.b): c; a[0]: d = e, f",
	    "x += 1; x //= 2; x **= 3; x >>= 4; x @= y",
	    "print(*a, b, *c, sep='', **d, **e)\nf(x for x in y)\nf(a, b=c if d else e, *f)",
	    "x[1:2, ::3, :, ..., None, *a, b:=1]; x[:]; x[a:b:c,]",
	    "[*a, b]; (*a,); {*a, b}; {**a, b: c, 'd': lambda: 1}; (); []; {}; (a); (a,)",
	    "[x for x, *y in z if a if not b for c in d]; {k: v for k, v in w}; (i async for i in j)",
	    "[*x for x in y]; {**x for x in y}",
	    "lambda: 0; lambda *a, b=1, **c: (a, b); lambda a, /, b: a; lambda *, a: a; lambda x=lambda: 1: x",
	    "a if b else c if d else lambda: e; not a in b; a not in b; a is not b; not not a; - + ~ a ** -b",
	    "while (n := f()) and n < 3 != 4: pass\nelse: break_ = 1",
	    "for x in *a, b: continue\nelse: pass\nfor a.b, c[0], (d, [e]) in f: break",
	    "try: pass\nexcept: pass\ntry: pass\nexcept (A, B) as c: pass\nexcept D: pass\nelse: pass\nfinally: pass\n",
	    "try: pass\nfinally: pass\ntry: pass\nexcept* A: pass\ntry: pass\nexcept A, B: pass",
	    "with a, b as c, (d) as (e, f): pass\nwith (a as b, c as d.e,): pass\nwith (a, b): pass\nwith (yield_): pass",
	    "async def f():\n  async for x in y: await z\n  async with a as b: return await c\n  else_ = 1",
	    "async def f():\n  async for x in y: pass\n  else: pass",
	    "def f(a, *, b): return\ndef g(*args: int, c=1, d, **e): return 1, *x\ndef h(a=1, *b, c): yield from d",
	    "def f[T, *Ts, **P](x: T, *args: *Ts) -> T, U: x = yield; y = yield z, w; return (yield)",
	    "class A[T](B, metaclass=C, *d, **e): x = 1\nclass B: pass\nclass C(): pass",
	    "@a.b(c)[d]\n@lambda f: f\n\n# comment\nclass A: pass",
	    "match x:\n  case [1, *_] | {'a': b, **c} if d:\n    pass\n  case _: pass\nmatch = case = type = 1; match.x; case(1)",
	    "match (x):\n  case A(b=1): pass\nmatch[x] = 1\nmatch -x:\n  case 1: pass",
	    "type X[T] = list[T]; type(x)\ntype = 1\nlazy import a\nlazy from a import b",
	    "import a.b as c, d\nfrom . import e\nfrom ...f.g import (h as i, j,)\nfrom .... import *\nfrom a import b, c as d",
	    "global x, y; del a, b[0]; assert c, d; raise; raise e; raise f from g",
	    "if a: b; c\nelif d: e\nelif f: g\nelse: h",
	    "if a:\n  b\n  if c:\n      d\n # comment\n  e\nf",
	    "def f():\n  x = 1\n\\\n  y = 2",
	    "x = (1,\n# comment\n  2\n      )\nif a: b = {\n}\nc",
	    "\xC3\xA9t\xC3\xA9 = '\xE2\x80\x9C'; \xE5\x90\x8D = 1",
	    "# coding: latin-1\nx = '\xE9'",
	    "return_ = 1; def_ = 2; x.match; in_ = 3; nonlocal_ = 4",
	    "a <> b",
	};
	struct python_outline outline;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		struct arena arena = {0};

		if (outline_of(sources[i], &arena, &outline, &err) == PYTHON_OUTLINE_ERROR)
			fail_msg("%s: %d:%d: %s", sources[i], outline.line, outline.column, err.text);
		arena_free(&arena);
	}
}

static void errors_have_a_position(void **state)
{
	static const struct {
		const char *source;
		int line, column;
		const char *sentence;
	} wrong[] = {
	    {"x = 'abc\ny = 1", 1, 5, "the string is not terminated"},
	    {"x = 1\n  # \xC3\xA9\n\xC3\xA9 = b'''abc", 3, 5, "the string is not terminated"},
	    {"x = f'{a'\n", 1, 5, "the string is not terminated"},
	    {"x = f'{a:b'\n", 1, 5, "a '{' of the f-string is never closed"},
	    {"x = f'a}'\n", 1, 5, "a '}' of the f-string closes nothing"},
	    {"x = b'\xC3\xA9'", 1, 5, "a bytes literal contains a character that is not ASCII"},
	    {"x = [1, (2]\n", 1, 11, "']' does not close '(' of line 1"},
	    {"x = 1)\n", 1, 6, "')' closes nothing"},
	    {"x = (1,\ny = {2: 3}\n", 1, 5, "'(' is never closed"},
	    {"def f(a, b:\n    return a\n", 1, 6, "'(' is never closed"},
	    {"f('abc)\n", 1, 3, "the string is not terminated"},
	    {"def f(x)\n    return x\n", 1, 9, "expected ':', found the end of the line"},
	    {"def f(x):\nreturn x\n", 2, 1, "expected an indented block, found return"},
	    {"x = 1\n  y = 2\n", 2, 3,
	     "expected a statement, found a line that is indented more than the line before"},
	    {"if x:\n    y\n  z\n", 3, 3, "the indentation matches no outer block"},
	    {"if x:\n        y\n\tz\n", 3, 2,
	     "the indentation mixes tabs and spaces, so its depth depends on the width of a tab"},
	    {"if x:\n\ty\n        z\n", 3, 9,
	     "the indentation mixes tabs and spaces, so its depth depends on the width of a tab"},
	    {"x = a b\n", 1, 7, "expected the end of the statement, found b"},
	    {"print 'a'\n", 1, 7, "expected the end of the statement, found a string"},
	    {"f(a b)\n", 1, 5, "expected ')', found b"},
	    {"{'a': 1, 'b' 2}\n", 1, 14, "expected ':', found 2"},
	    {"{1, 2: 3}\n", 1, 6, "expected '}', found :"},
	    {"x = 1 +\n", 1, 8, "expected an expression, found the end of the line"},
	    {"x = \n", 1, 5, "expected an expression, found the end of the line"},
	    {"x[]\n", 1, 3, "expected an expression, found ]"},
	    {"f(x) = 1\n", 1, 6, "expected the end of the statement, found ="},
	    {"x = 12abc\n", 1, 7, "a number is directly followed by 'a'"},
	    {"x = $a\n", 1, 5, "the character '$' is not valid outside strings and comments"},
	    {"x = a\xC2\xA0+ b\n", 1, 6, "the character U+00A0 is not valid outside strings and comments"},
	    {"x = \x01\n", 1, 5, "a control character is not valid outside strings and comments"},
	    {"x = 1 \\ \ny\n", 1, 7, "outside strings, a backslash must be the last character of its line"},
	    {"x = 1 \\\n", 2, 1, "the text ends after a backslash"},
	    {"x = '\xE9'\n", 1, 6, "the text is not UTF-8"},
	    {"else:\n  x\n", 1, 1, "expected a statement, found else"},
	    {"if a: b\nelse: c\nelif d: e\n", 3, 1, "expected a statement, found elif"},
	    {"if a: b\nelse: c\nfinally: d\n", 3, 1, "expected a statement, found finally"},
	    {"try:\n  x\ny\n", 3, 1, "expected 'except' or 'finally', found y"},
	    {"return 1\n", 1, 1, "'return' outside a function"},
	    {"class A:\n  return 1\n", 2, 3, "'return' outside a function"},
	    {"for x in y:\n  def f(): break\n", 2, 12, "'break' outside a loop"},
	    {"@f\nx = 1\n", 2, 1, "expected a function or a class, found x"},
	    {"def f(a=1, b): pass\n", 1, 12, "a parameter without a default follows a parameter with a default"},
	    {"def f(1): pass\n", 1, 7, "expected the name of a parameter, found 1"},
	    {"def (x): pass\n", 1, 5, "expected the name of a function, found ("},
	    {"x = a.1\n", 1, 6, "expected the end of the statement, found .1"},
	    {"x = a.if\n", 1, 7, "expected the name of an attribute, found if"},
	    {"import\n", 1, 7, "expected the name of a module, found the end of the line"},
	    {"from a import\n", 1, 14, "expected a name to import, found the end of the line"},
	    {"for x y:\n  pass\n", 1, 7, "expected 'in', found y"},
	    {"if x = 1: pass\n", 1, 6, "expected ':', found ="},
	    {"async x = 1\n", 1, 7, "expected 'def', 'for' or 'with', found x"},
	    {"x = 1 if y\n", 1, 11, "expected 'else', found the end of the line"},
	};
	struct python_outline outline;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct arena arena = {0};

		if (outline_of(wrong[i].source, &arena, &outline, &err) != PYTHON_OUTLINE_ERROR)
			fail_msg("%s: no error", wrong[i].source);
		if (outline.line != wrong[i].line || outline.column != wrong[i].column ||
		    strcmp(err.text, wrong[i].sentence) != 0)
			fail_msg("%s: %d:%d: %s", wrong[i].source, outline.line, outline.column, err.text);
		arena_free(&arena);
	}
}

/* If the nesting exceeds the limits, the stack does not overflow, and no error is reported. */
static void deep_nesting_is_unsure(void **state)
{
	static const char *const repeated[] = {"(", "lambda: ", "x if x else ", "f'{", "- ", "[x for x in ", "x[", "f("};
	struct python_outline outline;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) {
		struct arena arena = {0};
		struct buf text = {0};

		for (int k = 0; k < 100000; k++)
			buf_text(&text, repeated[i]);
		enum python_outline_answer answer = outline_of(text.data, &arena, &outline, &err);

		assert_true(answer == PYTHON_OUTLINE_UNSURE || strcmp(repeated[i], "- ") == 0);
		buf_clear(&text);
		for (int k = 0; k < 200; k++)
			buf_printf(&text, "%*sif x:\n", k, "");
		assert_int_equal(outline_of(text.data, &arena, &outline, &err), PYTHON_OUTLINE_UNSURE);
		buf_free(&text);
		arena_free(&arena);
	}
}

static void a_name_may_be_bound_in_other_ways(void **state)
{
	static const struct {
		const char *source;
		bool wanted, any;
	} cases[] = {
	    {"run = f", true, false},
	    {"a, run = f", true, false},
	    {"import run", true, false},
	    {"class run: pass", true, false},
	    {"def f(): global run", true, false},
	    {"with f as run: pass", true, false},
	    {"if a:\n  def run(): pass", true, false},
	    {"match x:\n  case run: pass", true, false},
	    {"run: int = 1", true, false},
	    {"from m import *", false, true},
	    {"exec('')", false, true},
	    {"def f(): setattr(x, 'a', 1)", false, true},
	    {"x.run = 1\n", false, false},
	    {"def f(): run = 1", false, false},
	    {"f(run=1)", false, false},
	    {"x = run", false, false},
	    {"run()", false, false},
	    {"from run import x", false, false},
	    {"lambda run: 1", false, false},
	    {"'run'", false, false},
	    {"x = '#run = f' # run = f", false, false},
	    {"class A:\n  run = 1", false, false},
	    {"{run for run in x}", false, false},
	};
	struct python_outline outline;
	struct arena arena = {0};
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(outline_of(cases[i].source, &arena, &outline, &err), PYTHON_OUTLINE_OK);
		if (outline.binds_wanted != cases[i].wanted || outline.binds_any != cases[i].any)
			fail_msg("%s: binds run: %d, any name: %d", cases[i].source, outline.binds_wanted,
				 outline.binds_any);
		assert_int_equal(python_outline_may_define(&outline, "run"), cases[i].wanted || cases[i].any);
	}
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(functions_at_top_level_are_listed_in_order),
	    cmocka_unit_test(valid_sources_are_no_error),
	    cmocka_unit_test(errors_have_a_position),
	    cmocka_unit_test(deep_nesting_is_unsure),
	    cmocka_unit_test(a_name_may_be_bound_in_other_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
