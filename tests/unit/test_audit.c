/* audit: tests that cannot fail are found, tests that can are left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "artifacts/audit.h"

static const char reference[] = "import torch\n\n\ndef run(x):\n    # doubled\n    return x * 2\n";

/* The text's findings are at these lines, 0 ending them. */
static void expect_lines(const char *text, const int *lines)
{
	struct arena arena = {0};
	const struct audit_finding *findings;
	int count = audit_text(text, strlen(text), reference, "definitions/x/y.json", &arena, &findings), wanted = 0;

	while (lines[wanted] != 0)
		wanted++;
	if (count != wanted || (count > 0 && findings[0].line != lines[0])) {
		print_error("%s", text);
		for (int i = 0; i < count; i++)
			print_error("  line %d: %s\n", findings[i].line, findings[i].reason);
	}
	assert_int_equal(count, wanted);

	for (int i = 0; i < count; i++)
		assert_int_equal(findings[i].line, lines[i]);
	arena_free(&arena);
}

#define EXPECT(text, ...) expect_lines(text, (const int[]){__VA_ARGS__, 0})
#define EXPECT_NONE(text) expect_lines(text, (const int[]){0})

static void a_returned_verdict_is_found(void **state)
{
	(void)state;
	EXPECT("def test_a():\n    ok = check_it()\n    return ok\n", 3);
	EXPECT("def test_a():\n    assert x\n    if x:\n        return False\n", 4);
	EXPECT("class TestA:\n    async def test_a(self):\n        x = f(1,\n2)\n        return (\n            x)\n",
	       5);
	EXPECT("def test_a(x: int = 1) -> bool: return x\n", 1);
	EXPECT("def test_a():\n    if f(x[1:2],\n         3): return 4; y = 5\n", 3);
	EXPECT_NONE("def test_a():\n    assert x\n    return True\n");
	EXPECT_NONE("def test_a():\n    def inner():\n        return 5\n    assert inner()\n    return\n");
	EXPECT_NONE("def helper():\n    return 5\n\n\ndef test_a():\n    assert helper() == 5\n");
}

static void a_test_that_compares_nothing_is_found(void **state)
{
	(void)state;
	EXPECT("def test_a():\n    print(run(1))\n", 1);
	EXPECT("def test_a():\n    \"\"\"assert\n    assert 1\n\"\"\"\n    x = 'assert 1'  # assert 1\n", 1);
	EXPECT("def check(x):\n    print(x)\n\n\ndef test_a():\n    check(1)\n", 5);
	EXPECT("def test_a(): x = lambda: 3; print(x)\n", 1);
	EXPECT("def test_a():\n    metrics = compare_tensors(x, y, atol=1)\n    print(metrics)\n", 1);
	EXPECT_NONE("def compare(x):\n    assert x\n\n\ndef test_a():\n    y = compare(1)\n    print(y)\n");
	EXPECT_NONE("def test_a():\n    compare_tensors(x, y, atol=1)\n");
	EXPECT_NONE("def test_a():\n    metrics = compare_tensors(x, y)\n    assert metrics.good\n");
	EXPECT_NONE("def test_a():\n    for x in y: compare_tensors(x, y)\n");
	EXPECT_NONE("def test_a(x={1: 2}): assert x\n");
	EXPECT_NONE("def test_a():\n    x: int = 3; assert x\n");
	EXPECT_NONE("def test_a():\n    for x in y: assert x\n");
	EXPECT_NONE("def test_a():\n    torch.testing.assert_close(1, 2)\n");
	EXPECT_NONE("def test_a():\n    with pytest.raises(ValueError):\n        pass\n");
	EXPECT_NONE(
	    "def deep():\n    raise ValueError\n\n\ndef middle():\n    deep()\n\n\ndef test_a():\n    middle()\n");
	EXPECT_NONE("def test_a():\n    with pytest.warns(UserWarning):\n        f()\n");
	EXPECT_NONE("def test_a():\n    def test_inner():\n        return 5\n    assert test_inner() == 5\n");
	EXPECT_NONE("text = '''\ndef test_a():\n    return 1\n'''\n");
}

/* An assertion that its own test catches; not one that is told all the same, nor what a test expects to raise. */
static void a_swallowed_assertion_is_found(void **state)
{
	static const char *const catching[] = {"except:", "except AssertionError:", "except Exception as e:",
					       "except (ValueError, AssertionError):", "except BaseException:"};
	static const char *const silent[] = {"pass", "print(e)", "return", "...", "pytest.skip('x')", "'why'"};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof catching / sizeof *catching; i++)
		for (size_t k = 0; k < sizeof silent / sizeof *silent; k++) {
			snprintf(text, sizeof text,
				 "def test_a():\n    assert shape\n    try:\n        assert x\n    %s\n        %s\n",
				 catching[i], silent[k]);
			EXPECT(text, 4);
		}
	EXPECT("def test_a():\n    try:\n        for x in y:\n            torch.testing.assert_close(x, 2)\n"
	       "    except ValueError:\n        raise\n    except Exception: print(1); return\n",
	       4);
	EXPECT("def test_a():\n    ok = True\n    try:\n        check(x)\n    except AssertionError:\n        ok = "
	       "False\n",
	       4);
	EXPECT(
	    "def check(x):\n    try:\n        assert x\n    except:\n        pass\n\n\ndef test_a():\n    check(1)\n",
	    8);
	EXPECT("def test_a():\n    try:\n        assert x\n    except AssertionError:\n        pass\n    else:\n       "
	       " y = 1\n",
	       3);
	EXPECT_NONE("def test_a():\n    try:\n        assert x\n    except ValueError:\n        pass\n");
	EXPECT_NONE("def test_a():\n    try:\n        assert x\n    except Exception as e:\n        pytest.fail(e)\n");
	EXPECT_NONE("def test_a():\n    try:\n        assert x\n    except AssertionError:\n        sys.exit(1)\n");
	EXPECT_NONE("def test_a():\n    try:\n        assert x\n    except AssertionError:\n        raise\n"
		    "    except Exception:\n        pass\n");
	EXPECT_NONE("def test_a():\n    try:\n        assert x\n    finally:\n        pass\n");
	EXPECT_NONE(
	    "def test_a():\n    try:\n        y = f(x)\n    except Exception:\n        pytest.skip('no kernel')\n"
	    "    assert y\n");
	EXPECT_NONE(
	    "def test_a():\n    try:\n        check_support(x)\n    except Exception:\n        pytest.skip('no')\n"
	    "    assert y\n");
	EXPECT_NONE("def test_a():\n    try:\n        y = 1\n    except Exception:\n        assert x\n");
	EXPECT_NONE("def test_a():\n    try:\n        assert_valid(x)\n    except AssertionError:\n        pass\n"
		    "    else:\n        raise ValueError\n");
	EXPECT_NONE("def test_a():\n    ok = True\n    try:\n        assert x\n    except AssertionError:\n"
		    "        ok = False\n    assert ok\n");
	EXPECT_NONE(
	    "def test_a():\n    try:\n        assert tight\n    except AssertionError:\n        assert loose\n");
}

static void a_suppressed_assertion_is_found(void **state)
{
	(void)state;
	EXPECT("def test_a():\n    with contextlib.suppress(AssertionError):\n        assert x\n", 3);
	EXPECT("def test_a():\n    assert y\n    with torch.no_grad(), suppress(Exception): assert x\n", 3);
	EXPECT_NONE("def test_a():\n    with contextlib.suppress(KeyError):\n        assert x\n");
	EXPECT_NONE("def test_a():\n    with pytest.raises(AssertionError):\n        assert x\n");
}

static void a_test_that_never_counts_is_found(void **state)
{
	(void)state;
	EXPECT("@pytest.mark.skip\ndef test_a():\n    assert x\n", 1);
	EXPECT("@slow\n@pytest.mark.skip(reason='x')\n@slow\ndef test_a():\n    assert x\n", 2);
	EXPECT("@pytest.mark.xfail\ndef test_a():\n    assert x\n", 1);
	EXPECT("@pytest.mark.xfail(reason='x', strict=True)\ndef test_a():\n    assert x\n", 1);
	EXPECT("@pytest.mark.skipif(True, reason='x')\ndef test_a():\n    assert x\n", 1);
	EXPECT("@unittest.skip('x')\nclass TestA:\n    def test_a(self):\n        assert x\n", 1);
	EXPECT("class TestA:\n    pytestmark = [pytest.mark.slow, pytest.mark.skip]\n\n    def test_a(self):\n        "
	       "assert x\n",
	       2);
	EXPECT("import pytest\npytestmark = pytest.mark.skip(reason='x')\ndef test_a():\n    assert x\n", 2);
	EXPECT("pytest.skip('x', allow_module_level=True)\ndef test_a():\n    assert x\n", 1);
	EXPECT_NONE("@pytest.mark.skipif(not torch.cuda.is_available(), reason='x')\ndef test_a():\n    assert x\n");
	EXPECT_NONE("@pytest.mark.parametrize('x', [1, pytest.param(2, marks=pytest.mark.skip)])\ndef test_a(x):\n    "
		    "assert x\n");
	EXPECT_NONE("@pytest.mark.skipif(condition=cpu, reason='x')\ndef test_a():\n    assert x\n");
	EXPECT_NONE("@pytest.mark.xfail(cpu, reason='x')\ndef test_a():\n    assert x\n");
	EXPECT_NONE("@pytest.mark.xfail(x == 1, reason='x')\ndef test_a():\n    assert x\n");
	EXPECT_NONE("@pytest.mark.xfail(reason='x', condition=cpu)\ndef test_a():\n    assert x\n");
	EXPECT_NONE("if cpu:\n    pytest.skip('x', allow_module_level=True)\ndef test_a():\n    assert x\n");
	EXPECT_NONE("@pytest.mark.skip\ndef helper():\n    pass\n\n\ndef test_a():\n    assert x\n");
	EXPECT_NONE("pytestmark = pytest.mark.skipif(cpu, reason='x')\ndef test_a():\n    assert x\n");
}

static void an_assertion_that_is_true_by_itself_is_found(void **state)
{
	(void)state;
	EXPECT("def test_a():\n    assert True\n", 2);
	EXPECT("def test_a():\n    assert True, 'ran'\n", 2);
	EXPECT("def test_a():\n    assert y\n    assert (x == 1, 'a message')\n", 3);
	EXPECT("def test_a():\n    assert (\n        x == f(1, 2),\n        'a message',\n    )\n", 2);
	EXPECT("def test_a():\n    assert x or True\n", 2);
	EXPECT("def test_a():\n    assert 1\n", 2);
	EXPECT("def test_a():\n    assert 'x is right'\n", 2);
	EXPECT_NONE("def test_a():\n    assert (x == f(1, 2)), 'a message'\n");
	EXPECT_NONE("def test_a():\n    assert (x, y) == f()\n");
	EXPECT_NONE("def test_a():\n    assert x is True\n");
	EXPECT_NONE("def test_a():\n    assert Trueish\n");
	EXPECT_NONE("def test_a():\n    assert 'a' in x + 'b'\n");
	EXPECT_NONE("def test_a():\n    assert 1 in x\n");
	EXPECT_NONE("def test_a():\n    assert False\n");
}

static void an_assertion_that_is_never_reached_is_found(void **state)
{
	(void)state;
	EXPECT("def test_a():\n    if False:\n        assert x\n", 3);
	EXPECT("def test_a():\n    print(x)\n    return\n    assert x\n", 4);
	EXPECT("def test_a():\n    pytest.skip('later')\n    for x in y:\n        assert x\n", 4);
	EXPECT("def test_a():\n    for x in y:\n        continue\n        assert x\n", 4);
	EXPECT("def test_a():\n    def inner():\n        assert x\n    print(1)\n", 3);
	EXPECT("def test_a():\n    while 0: assert x\n", 2);
	EXPECT_NONE("def test_a():\n    if 0 < x:\n        assert x\n");
	EXPECT_NONE("def test_a():\n    if False or x:\n        assert x\n");
	EXPECT_NONE("def test_a():\n    if cpu: return\n    assert x\n");
	EXPECT_NONE("def test_a():\n    if cpu:\n        print(1)\n        return\n    assert x\n");
	EXPECT_NONE("def test_a():\n    if cpu:\n        pytest.skip('x')\n    else:\n        assert x\n");
	EXPECT_NONE("def test_a():\n    def inner():\n        assert x\n    run_with(inner)\n");
	EXPECT_NONE("def test_a():\n    def inner():\n        return 1\n    assert inner()\n");
	EXPECT_NONE(
	    "def test_a():\n    class Inner:\n        def method(self):\n            assert x\n    Inner().method()\n");
}

static void a_pasted_reference_counts_by_what_it_means(void **state)
{
	(void)state;
	EXPECT("import torch\n\ndef run(x):\n    return x * 3\n", 3);
	EXPECT_NONE("def run(x):\n\n    return x*2  # as the definition has it\n\n\nother = 1\n");
	EXPECT_NONE("class A:\n    def run(x):\n        return x * 3\n");
}

static void broken_python_is_no_harm(void **state)
{
	struct arena arena = {0};
	const struct audit_finding *findings;
	static const char *const texts[] = {
	    "", "\"", "'''", "def", "def test", "def test_a(", "))))\ndef test_a(): '\\", "\\\n\\", "return"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		audit_text(texts[i], strlen(texts[i]), reference, "x", &arena, &findings);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_returned_verdict_is_found),
	    cmocka_unit_test(a_test_that_compares_nothing_is_found),
	    cmocka_unit_test(a_swallowed_assertion_is_found),
	    cmocka_unit_test(a_suppressed_assertion_is_found),
	    cmocka_unit_test(a_test_that_never_counts_is_found),
	    cmocka_unit_test(an_assertion_that_is_true_by_itself_is_found),
	    cmocka_unit_test(an_assertion_that_is_never_reached_is_found),
	    cmocka_unit_test(a_pasted_reference_counts_by_what_it_means),
	    cmocka_unit_test(broken_python_is_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
