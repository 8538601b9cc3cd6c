/* Tests of dataset/entry_point.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "dataset/entry_point.h"

/* Searches a copy without a NUL at its end, in memory of exactly this size, so that a sanitizer sees what is read beyond
 * the source. */
static bool find(const char *source, char name[64], int *unclosed_line)
{
	size_t size = strlen(source);
	char *copy = malloc(size > 0 ? size : 1);
	struct entry_point entry;

	memcpy(copy, source, size);
	bool found = definition_entry_point(copy, size, &entry);
	size_t length = entry.name == NULL ? 0 : entry.length < 63 ? entry.length : 63;

	memcpy(name, entry.name != NULL ? entry.name : "", length);
	name[length] = '\0';
	*unclosed_line = entry.unclosed_line;
	free(copy);
	return found;
}

static void check(const char *source, const char *expected, bool found)
{
	char name[64];
	int unclosed;

	if (find(source, name, &unclosed) != found || strcmp(name, expected) != 0)
		fail_msg("expected %s in:\n%s\nfound %s", expected, source, name);
}

static void run_is_called_wherever_it_is(void **state)
{
	(void)state;
	check("def run(x):\n    return x\n", "run", true);
	check("def run(x):\n    return x\ndef _a_reference(x):\n    return x\n", "run", true);
	check("def _a_reference(x):\n    return x\nrun = _a_reference\n", "run", true);
	check("x = (1,\n  2)\ndef run(): pass", "run", true);
	check("x = 'a' \\\n  'b'\ndef run(): pass", "run", true);
	check("from m import (f,\n  run)\n", "run", true);
}

static void without_run_the_last_reference_is_called(void **state)
{
	(void)state;
	check("import torch\n\n@torch.no_grad()\ndef _norm_reference(x):\n    return x\n", "_norm_reference", true);
	check("def _a_reference(x):\n    return x\ndef b_reference(x):\n    return x\n", "b_reference", true);
	check("def _a_reference(x):\n    return x\ndef _help(x):\n    return x\n", "_a_reference", true);
	check("def\t_a_reference (\n    x,\n):\n    return x\n", "_a_reference", true);
	check("def f():\r\n    pass\r\ndef _a_reference(x):\r\n    return x\r\n", "_a_reference", true);
	check("def f():\r    pass\rdef _a_reference(x):\r    return x\r", "_a_reference", true);
	check("def _a_reference(", "_a_reference", true);
}

static void other_functions_are_not_called(void **state)
{
	(void)state;
	check("def f(x):\n    return x\ndef g(x):\n    return x\n", "f", false);
	check("def _reference(x):\n    return x\n", "_reference", false);
	check("def _a_references(x):\n    return x\n", "_a_references", false);
	check("async def _a_reference(x):\n    return x\n", "", false);
	check("class _a_reference:\n    pass\n", "", false);
	check("class A:\n    def _a_reference(x):\n        pass\n", "", false);
	check("if x:\n    def _a_reference(x):\n        pass\n", "", false);
	check("def \xc3\xa9_reference(x):\n    pass\n", "\xc3\xa9_reference", false);
	check("def 1_reference(x):\n    pass\n", "1_reference", false);
	check("def", "", false);
	check("", "", false);
}

static void text_is_no_function(void **state)
{
	(void)state;
	check("'''\ndef run(x):\n'''\ndef _a_reference(x): pass\n", "_a_reference", true);
	check("def f():\n    \"\"\"Text.\n\ndef _b_reference(x):\n    \"\"\"\ndef _a_reference(x):\n    pass\ndef g(): pass\n",
	      "_a_reference", true);
	check("x = \"\"\"\\\"\"\"\ndef _a_reference(x):\n\"\"\"\ndef f(): pass\n", "f", false);
	check("# def run(x):\ndef f(): pass\n", "f", false);
	check("# it's\ndef _a_reference(x): pass\n", "_a_reference", true);
	check("x = '#' # \"\"\"\ndef _a_reference(x): pass\n", "_a_reference", true);
	check("x = 'a\\\ndef run(x): b'\ndef f(): pass\n", "f", false);
	check("x = (\nrun = 3)\ndef f(): pass\n", "f", false);
	check("x = ''\ndef _a_reference(x): pass\n", "_a_reference", true);
}

/* Python reports such mistakes with their lines when it loads the reference. */
static void the_scan_goes_on_after_a_mistake(void **state)
{
	(void)state;
	check("x = (1\ndef _a_reference(x):\n    pass\n", "_a_reference", true);
	check("x = )1\ndef _a_reference(x):\n    pass\n", "_a_reference", true);
	check("x = 'a\ndef _a_reference(x):\n    pass\n", "_a_reference", true);
}

static void a_string_without_an_end_is_named(void **state)
{
	char name[64];
	int line;

	(void)state;
	assert_false(find("x = 1\n\ny = '''a\nb\ndef _a_reference(x): pass\n", name, &line));
	assert_int_equal(line, 3);
	assert_true(find("def _a_reference(x): pass\ny = '''a\n", name, &line));
	assert_string_equal(name, "_a_reference");
	assert_false(find("y = '''a'''", name, &line));
	assert_int_equal(line, 0);
	assert_false(find("y = 'a\\", name, &line));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(run_is_called_wherever_it_is),
	    cmocka_unit_test(without_run_the_last_reference_is_called),
	    cmocka_unit_test(other_functions_are_not_called),
	    cmocka_unit_test(text_is_no_function),
	    cmocka_unit_test(the_scan_goes_on_after_a_mistake),
	    cmocka_unit_test(a_string_without_an_end_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
