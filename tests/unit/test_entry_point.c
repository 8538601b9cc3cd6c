/* test_entry_point - which function of a reference is called: run, or else the last function whose name ends with
 * _reference. */
#include "dataset/entry_point.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

/* Searches a copy of the source. The copy has no NUL at its end and its allocation has exactly its size, so that a
 * sanitizer detects a read beyond the end. `expected` is NULL if the source has no function to call. */
static void check_answer(const char *source, enum python_outline_answer expected_answer, const char *expected)
{
	struct arena arena = {0};
	struct python_outline outline;
	struct err err;
	size_t length = strlen(source);
	char *copy = malloc(length > 0 ? length : 1);
	const char *name;

	memcpy(copy, source, length);
	assert_int_equal(entry_point_find(copy, length, &arena, &outline, &name, &err), expected_answer);
	free(copy);
	if (expected == NULL ? name != NULL : name == NULL || strcmp(name, expected) != 0)
		fail_msg("expected %s, found %s in:\n%.200s", expected != NULL ? expected : "none",
			 name != NULL ? name : "none", source);
	arena_free(&arena);
}

static void check(const char *source, const char *expected)
{
	check_answer(source, PYTHON_OUTLINE_OK, expected);
}

#define REFERENCE "def _a_reference(x):\n    return x\n"

static void run_is_called_wherever_it_is(void **state)
{
	static const char *const binds[] = {"def run(x): pass",
					    "async def run(x): pass",
					    "@torch.no_grad()\ndef run(x): pass",
					    "class run: pass",
					    "run = _a_reference",
					    "if a:\n    def run(x): pass",
					    "from m import (f,\n  run)",
					    "try:\n    from m import run\nexcept ImportError:\n    run = None",
					    "def f():\n    global run\n    run = f"};

	(void)state;
	for (size_t i = 0; i < sizeof binds / sizeof *binds; i++) {
		struct buf source = {0};

		check(binds[i], "run");
		buf_printf(&source, "%s\n%s", binds[i], REFERENCE);
		check(source.data, "run");
		buf_clear(&source);
		buf_printf(&source, "%s%s\n", REFERENCE, binds[i]);
		check(source.data, "run");
		buf_free(&source);
	}
}

static void without_run_the_last_reference_is_called(void **state)
{
	(void)state;
	check("import torch\n\n@torch.no_grad()\ndef _norm_reference(x):\n    return x\n", "_norm_reference");
	check(REFERENCE "def b_reference(x):\n    return x\n", "b_reference");
	check(REFERENCE "def _help(x):\n    return x\n", "_a_reference");
	check(REFERENCE "async def b_reference(x):\n    return x\n", "_a_reference");
	check("def\t_a_reference (\n    x,\n):\n    return x\n", "_a_reference");
	check("'''\ndef run(x):\n'''\n" REFERENCE, "_a_reference");
	check("class A:\n    def run(x):\n        pass\n" REFERENCE, "_a_reference");
}

/* A call such as setattr(x, "a", 1) can define a function of any name, even `run`. */
static void run_is_called_if_any_name_may_be_bound(void **state)
{
	static const char *const binds[] = {"from m import *\n", "exec(text)\n", "def f(x):\n    setattr(x, 'a', 1)\n"};

	(void)state;
	for (size_t i = 0; i < sizeof binds / sizeof *binds; i++) {
		struct buf source = {0};

		check(binds[i], "run");
		buf_printf(&source, "%s%s", binds[i], REFERENCE);
		check(source.data, "_a_reference");
		buf_free(&source);
	}
}

static void other_functions_are_not_called(void **state)
{
	(void)state;
	check("def f(x):\n    return x\ndef g(x):\n    return x\n", NULL);
	check("def _reference(x):\n    return x\n", NULL);
	check("def _a_references(x):\n    return x\n", NULL);
	check("async def _a_reference(x):\n    return x\n", NULL);
	check("class _a_reference:\n    pass\n", NULL);
	check("class A:\n    def _a_reference(x):\n        pass\n", NULL);
	check("if x:\n    def _a_reference(x):\n        pass\n", NULL);
	check("def f():\n    '''\ndef _b_reference(x): pass\n'''\n", NULL);
	check("# def _a_reference(x): pass\n", NULL);
	check("def \xc3\xa9_reference(x):\n    pass\n", NULL);
	check("", NULL);
}

static void a_syntax_error_hides_all_functions(void **state)
{
	(void)state;
	check_answer(REFERENCE "x = (1\n", PYTHON_OUTLINE_ERROR, NULL);
	check_answer("def run(x): pass\ny = '''a\n", PYTHON_OUTLINE_ERROR, NULL);
}

/* If the outline stops before the end of the source, the rest of the source may define run. */
static void run_is_called_if_the_outline_is_unsure(void **state)
{
	struct buf source = {0};

	(void)state;
	buf_text(&source, REFERENCE "x = ");
	for (int i = 0; i < 1000; i++)
		buf_text(&source, "(");
	check_answer(source.data, PYTHON_OUTLINE_UNSURE, "run");
	buf_free(&source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(run_is_called_wherever_it_is),
	    cmocka_unit_test(without_run_the_last_reference_is_called),
	    cmocka_unit_test(run_is_called_if_any_name_may_be_bound),
	    cmocka_unit_test(other_functions_are_not_called),
	    cmocka_unit_test(a_syntax_error_hides_all_functions),
	    cmocka_unit_test(run_is_called_if_the_outline_is_unsure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
