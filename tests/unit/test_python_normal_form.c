/* test_python_normal_form - the lexical normal form of Python source code. Tests which edits change the normal form and
 * which edits do not, and for which sources the normal form is the source itself. The last test compares the normal
 * form with Python's own parser: tests/normal_forms/check.py starts this program with `--forms`.
 * `test_python_normal_form --forms` reads any number of sources, each as "LENGTH\n" followed by that many bytes, and
 * prints the normal form of each in hex. */
#include "cache/python_normal_form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct buf form_of(const char *source)
{
	struct buf out = {0};

	python_normal_form(source, strlen(source), &out);
	return out;
}

static bool same(const char *a, const char *b)
{
	struct buf one = form_of(a), two = form_of(b);
	bool equal = one.length == two.length && memcmp(one.data, two.data, one.length) == 0;

	buf_free(&one);
	buf_free(&two);
	return equal;
}

/* Checks that all `sources` have the same normal form, and that it consists of tokens and is not the source itself. */
static void assert_all_same(const char *const *sources, int count)
{
	for (int i = 0; i < count; i++) {
		struct buf form = form_of(sources[i]);

		if (form.data[0] != 'T' || !same(sources[0], sources[i]))
			fail_msg("the forms of these texts differ, or are raw:\n%s\n--- and ---\n%s", sources[0], sources[i]);
		buf_free(&form);
	}
}

/* Checks that no two of the `sources` have the same normal form. */
static void assert_all_differ(const char *const *sources, int count)
{
	for (int i = 0; i < count; i++)
		for (int j = 0; j < i; j++)
			if (same(sources[i], sources[j]))
				fail_msg("the forms of these texts are the same:\n%s\n--- and ---\n%s", sources[i], sources[j]);
}

static void assert_raw(const char *const *sources, int count)
{
	for (int i = 0; i < count; i++) {
		struct buf form = form_of(sources[i]);

		if (form.data[0] != 'R' || form.length != strlen(sources[i]) + 1 ||
		    strcmp(form.data + 1, sources[i]) != 0)
			fail_msg("the form of this text is not the text itself:\n%s", sources[i]);
		buf_free(&form);
	}
}

#define ALL(assertion, ...)                                                                                            \
	do {                                                                                                           \
		static const char *const sources[] = {__VA_ARGS__};                                                    \
		assertion(sources, (int)(sizeof sources / sizeof *sources));                                           \
	} while (0)

static void comments_blank_lines_and_spacing_leave_no_trace(void **state)
{
	(void)state;
	ALL(assert_all_same, "def run(a, b):\n    return a+b\n", "def run(a, b):\n    return a+b",
	    "def run(a,b) :\n  return a + b\n",
	    "\n# head\ndef run(a, b): # tail\n\n      # inner\n    return a+b  # x\n\n# end",
	    "def run(a,\n        b):\n    return a \\\n  + b\n", "def run(a, # first\n\n b):\n return\ta+b   \n   \n");
	ALL(assert_all_same, "x = '''a\nb''' \\\n + y\n", "x = '''a\r\nb''' \\\r\n + y\r\n");
	ALL(assert_all_same, "if a:\n  if b:\n    c\n  d\ne\n", "if a:\n if b:\n        c\n # x\n d\n    # y\ne\n");
}

static void docstrings_of_modules_functions_and_classes_leave_no_trace(void **state)
{
	(void)state;
	ALL(assert_all_same, "def f():\n    return 1\n", "'module'\ndef f():\n    return 1\n",
	    "def f():\n    \"\"\"Longer.\n\n    # text\n    \"\"\"\n    return 1\n",
	    "r'\\d'\ndef f(): # c\n    # c\n    u'''x''' 'y' # c\n    return 1\n");
	ALL(assert_all_same, "class A:\n  async def f():\n    x\n",
	    "class A:\n  'a'\n  async def f():\n    'b'\n    x\n");
}

static void every_token_leaves_a_trace(void **state)
{
	(void)state;
	ALL(assert_all_differ, "x = 1", "x = 2", "x = 1.0", "x = 1_0", "x = 10", "y = 1", "x == 1", "x += 1", "x = -1",
	    "x = '1'", "x = \"1\"", "x = b'1'", "x = f'1'", "x = r'1'", "x = ' 1'", "x = (1)", "x = 1,", "x = 1;",
	    "x = [1]", "x = 1\ny", "x = 1; y", "x\n= 1", "x = 1e-5", "x = 1e-6", "x = 0x1e-5", "x = 0x1e -6", "x < <y",
	    "x << y", "x <= y", "if x:\n a\n b\n", "if x:\n a\nb\n", "if x: a\nb\n", "f'{x }'", "f'{x}'", "a b", "ab",
	    "a.b", "a. .b", "a...b");
}

static void strings_that_are_no_docstrings_leave_a_trace(void **state)
{
	(void)state;
	ALL(assert_all_differ, "def f():\n  pass\n", "def f():\n  'a'\n  'b'\n  pass\n",
	    "def f():\n  'a'\n  'c'\n  pass\n", "def f():\n  f'a'\n  pass\n", "def f():\n  b'a'\n  pass\n",
	    "def f():\n  ('a')\n  pass\n", "def f(): 'a'\n", "def f():\n  'a'; pass\n", "def f():\n  'a' + b\n  pass\n",
	    "def f():\n  pass\n  'a'\n", "if f:\n  'a'\n  pass\n", "if f:\n  'b'\n  pass\n",
	    "def f():\n  'a' f'b'\n  pass\n");
	/* In the last source, a docstring comes before a string and a future import. The normal form drops the
	 * docstring, but must keep the string. */
	ALL(assert_all_differ, "'a'\nfrom __future__ import annotations\n",
	    "'a'\n'b'\nfrom __future__ import annotations\n", "('b')\nfrom __future__ import annotations\n",
	    "'a'\n('b')\nfrom __future__ import annotations\n");
}

static void a_docstring_with_escapes_is_kept_because_a_malformed_one_is_an_error(void **state)
{
	(void)state;
	ALL(assert_all_differ, "x = 1\n", "'\\x'\nx = 1\n", "'\\x41'\nx = 1\n", "'\\N{nothing}'\nx = 1\n");
}

static void a_body_of_nothing_but_a_docstring_is_not_an_empty_body(void **state)
{
	(void)state;
	ALL(assert_all_differ, "def f():\n  'a'\n", "def f():\n  pass\n", "def f():\n");
	assert_true(same("def f():\n", "def f():\n  # c\n"));
	assert_true(same("def f():\n  'a'\n", "def f():\n  'b'\n"));
}

static void what_it_is_not_certain_of_is_its_own_form(void **state)
{
	(void)state;
	ALL(assert_raw, "x = 1\r", "x = 1\ry\r\n", "x = '\r'\n", "if x:\n\ty\n", "x = 1\f\n",
	    "\xEF\xBB\xBFx = 1\n", "x = '\xFF'\n", "# \xC0\x80\n",
	    "x = '\xED\xA0\x80'\n", "\xC3\xA9 = 1\n", "x\xC2\xA0= 1\n", "x = 'a\n", "x = '''a\n", "x = (1\n",
	    "x = 1)\n", "x = (1]\n", "x = 1if y else 2\n", "x = a\"b\"\n", "x = ur'b'\n", "x = 1_\n", "x = 0xg\n",
	    "x = $y\n", "x = y!\n", "if x:\n    y\n  z\n", "  x = 1\n y\n", "x = 1 \\\n", "x = 1 \\ \ny\n",
	    "x = 1 \\\n\ny\n", "\\\nx = 1\n", "x = f'{y[\"a\"]}'\n", "x = f'{y['a']}'\n", "x = f'{y'\n", "x = f'y}'\n",
	    "x = f'{y:#x}'\n", "x = f'\\{y}'\n", "# coding: latin-1\nx = 1\n",
	    "#\n# vim: set fileencoding=latin-1 :\nx\n");
}

static void a_nul_or_a_control_character_makes_it_raw(void **state)
{
	static const char source[] = "# \0 x\ny = 1\n";
	struct buf out = {0};

	(void)state;
	assert_false(python_normal_form(source, sizeof source - 1, &out));
	assert_int_equal(out.length, sizeof source);
	assert_memory_equal(out.data + 1, source, sizeof source - 1);
	buf_free(&out);
	ALL(assert_raw, "x = '\x01'\n", "x = 1 # \x7f\n", "x = 1 # \x1b[0m\n");
}

static void code_that_may_see_its_own_source_is_raw(void **state)
{
	(void)state;
	ALL(assert_raw, "run.__doc__", "import inspect", "inspect.getsource(run)", "torch.jit.script(run)",
	    "@torch.compile\n", "import triton", "from triton import jit", "exec('x')", "eval('x')", "getattr(run, x)",
	    "vars(run)", "__file__", "run.__code__.co_consts", "a.co_lines()", "f.f_lineno", "sys._getframe()",
	    "import os", "import torch, os", "import linecache as l", "from traceback import x", "x = f'{run.__doc__}'",
	    "x = g('__doc__')", "x = 'find __doc__'", "'__doc__'.x", "import sneaky", "from . import x",
	    "from sneaky import x", "if x: import sneaky", "x; import sneaky", "x = currentframe()",
	    "@dataclasses.dataclass\nclass A:\n  __slots__ = ()\n",
	    "@dataclass\nclass A:\n  'd'\n  a: int = b\n", "import dataclasses as d\n@d.dataclass(order=True)\nclass A:\n  'd'\n  a: int = b\n", "open('x')", "yield from x", "__import__('x')",
	    "globals()['x']", "torch.sys", "def f():\n  'lineno' 'x' + y\n");
}

/* Each source uses a name that is not in the list of harmless names, so its normal form is the source itself. */
static void what_is_not_known_to_see_nothing_is_raw(void **state)
{
	(void)state;
	ALL(assert_raw, "from random import _os", "import random\nx = random._os.x", "x = (i for i in y).gi_code",
	    "import torch\ntorch.fx.graph_module._exec_with_source('run.__do' 'c__', {})", "import torch\nx = torch",
	    "import torch as t\nx = t.overrides.x", "import torch\nx = torch.nn\nx.utils", "import typing\ntyping.get_type_hints(f)",
	    "from functools import update_wrapper as u", "from functools import wraps", "from torch import *", "x.unheard_of",
	    "import torch\nx = torch.nn.functional.sys", "x = f'{y.gi_code}'", "x = '{0.a}'\ny = x.format(z)", "import torch.utils",
	    "from torch import utils", "x = repr(y)", "import torch\nx = map(partial, [torch], y)", "from warnings import warn",
	    "async def f():\n  pass\nx = f().cr_code", "x = getattr(y, 'gi_' + z)", "breakpoint()", "help(x)", "dir(x)");
	ALL(assert_all_same, "import torch\nclass C:\n  def a(self):\n    self.mine = torch.float8_e4m3fn\n  b = property(a)\nc = C().mine\n",
	    "import torch # c\nclass C:\n  'd'\n  def a(self):\n    self.mine = torch.float8_e4m3fn\n  b = property(a)\nc = C().mine\n");
}

static void ordinary_references_are_tokens(void **state)
{
	(void)state;
	ALL(assert_all_same,
	    "import math\nimport torch\nimport torch.nn.functional as F\nfrom typing import Optional, List\n",
	    "import math # inspect, __doc__, eval\nimport torch\n\nimport torch.nn.functional as F\n"
	    "from typing import Optional, \\\n  List\n");
	ALL(assert_all_same, "class M(torch.nn.Module):\n  def __init__(self):\n    super().__init__()\n",
	    "'how to compile it: torch.jit, __doc__'\nclass M(torch.nn.Module):\n  'inspect me'\n  def "
	    "__init__(self):\n"
	    "    super().__init__()\n");
}

static void the_end_of_the_text_may_come_anywhere(void **state)
{
	static const char text[] =
	    "@a\nclass B(c): # x\n  'd'\n  def e(f, *g):\n    '''h'''\n    return f\"{i:>{j}} {{\" \\\n  "
	    "+ 0x1_f - 1.5e-3 ** b'\\n' // [k, ...]\n";

	(void)state;
	for (size_t length = 0; length <= sizeof text - 1; length++) {
		/* the allocation has exactly this size, so that a sanitizer detects a read beyond the end */
		char *copy = malloc(length + 1);
		struct buf out = {0};

		memcpy(copy, text, length);
		python_normal_form(copy, length, &out);
		assert_true(out.length > 0);
		buf_free(&out);
		free(copy);
	}
}

static void depth_has_limits_and_no_recursion(void **state)
{
	size_t length = 1000 * 1000;
	char *text = malloc(length);
	struct buf out = {0};

	(void)state;
	memset(text, '(', length);
	assert_false(python_normal_form(text, length, &out));
	memset(text, '{', length);
	memcpy(text, "f'", 2);
	assert_false(python_normal_form(text, length, &out));
	buf_free(&out);
	free(text);
}

static void a_form_is_appended_to_what_is_there(void **state)
{
	struct buf out = {0};

	(void)state;
	buf_text(&out, "before");
	assert_true(python_normal_form("x", 1, &out));
	assert_int_equal(out.length, 6 + 1 + 2 + 1);
	assert_memory_equal(out.data, "beforeTx\0\n", 10);
	out.length = 6;
	assert_false(python_normal_form("(", 1, &out));
	assert_memory_equal(out.data, "beforeR(", 8);
	buf_free(&out);
}

static void equal_forms_mean_equal_syntax_trees_to_python(void **state)
{
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

	(void)state;
	assert_true(length > 0);
	self[length] = '\0';
	pid_t child = fork();

	if (child == 0) {
		execlp("python3", "python3", "tests/normal_forms/check.py", self, (char *)NULL);
		_exit(127);
	}
	int status = -1;

	assert_int_equal(waitpid(child, &status, 0), child);
	if (status != 0)
		fail_msg("python3 tests/normal_forms/check.py, from the top of the tree, ended with status %d", status);
}

static int print_forms(void)
{
	size_t length;

	while (scanf("%zu", &length) == 1 && getchar() == '\n') {
		char *source = malloc(length + 1);
		struct buf out = {0};

		if (source == NULL || fread(source, 1, length, stdin) != length)
			return 1;
		python_normal_form(source, length, &out);
		for (size_t i = 0; i < out.length; i++)
			printf("%02x", (unsigned char)out.data[i]);
		putchar('\n');
		buf_free(&out);
		free(source);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(comments_blank_lines_and_spacing_leave_no_trace),
	    cmocka_unit_test(docstrings_of_modules_functions_and_classes_leave_no_trace),
	    cmocka_unit_test(every_token_leaves_a_trace),
	    cmocka_unit_test(strings_that_are_no_docstrings_leave_a_trace),
	    cmocka_unit_test(a_docstring_with_escapes_is_kept_because_a_malformed_one_is_an_error),
	    cmocka_unit_test(a_body_of_nothing_but_a_docstring_is_not_an_empty_body),
	    cmocka_unit_test(what_it_is_not_certain_of_is_its_own_form),
	    cmocka_unit_test(a_nul_or_a_control_character_makes_it_raw),
	    cmocka_unit_test(code_that_may_see_its_own_source_is_raw),
	    cmocka_unit_test(what_is_not_known_to_see_nothing_is_raw),
	    cmocka_unit_test(ordinary_references_are_tokens),
	    cmocka_unit_test(the_end_of_the_text_may_come_anywhere),
	    cmocka_unit_test(depth_has_limits_and_no_recursion),
	    cmocka_unit_test(a_form_is_appended_to_what_is_there),
	    cmocka_unit_test(equal_forms_mean_equal_syntax_trees_to_python),
	};

	if (argc == 2 && strcmp(argv[1], "--forms") == 0)
		return print_forms();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
