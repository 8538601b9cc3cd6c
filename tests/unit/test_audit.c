/* audit: tests that cannot fail are found, tests that can are left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "artifacts/audit.h"

static const char reference[] = "import torch\n\n\ndef run(x):\n    # doubled\n    return x * 2\n";

/* The text's findings are at these lines, 0 ending them. */
static void expect_lines(const char *text, const int *lines)
{
	struct arena arena = {0};
	const struct audit_finding *findings;
	int count = audit_text(text, strlen(text), reference, "definitions/x/y.json", &arena, &findings);

	for (int i = 0; i < count; i++)
		assert_int_equal(findings[i].line, lines[i]);
	assert_int_equal(lines[count], 0);
	arena_free(&arena);
}

#define EXPECT(text, ...) expect_lines(text, (const int[]){__VA_ARGS__, 0})
#define EXPECT_NONE(text) expect_lines(text, (const int[]){0})

static void a_returned_verdict_is_found(void **state)
{
	(void)state;
	EXPECT("def test_a():\n    ok = check_it()\n    return ok\n", 3);
	EXPECT("def test_a():\n    assert 1\n    if x:\n        return False\n", 4);
	EXPECT("class TestA:\n    async def test_a(self):\n        x = f(1,\n2)\n        return (\n            x)\n",
	       5);
	EXPECT("def test_a(x: int = 1) -> bool: return x\n", 1);
	EXPECT("def test_a():\n    if f(x[1:2],\n         3): return 4; y = 5\n", 3);
	EXPECT_NONE("def test_a():\n    assert 1\n    return True\n");
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
	EXPECT_NONE("def test_a(x={1: 2}): assert x\n");
	EXPECT_NONE("def test_a():\n    x: int = 3; assert x\n");
	EXPECT_NONE("def test_a():\n    for x in y: assert x\n");
	EXPECT_NONE("def test_a():\n    torch.testing.assert_close(1, 2)\n");
	EXPECT_NONE("def test_a():\n    with pytest.raises(ValueError):\n        pass\n");
	EXPECT_NONE(
	    "def deep():\n    raise ValueError\n\n\ndef middle():\n    deep()\n\n\ndef test_a():\n    middle()\n");
	EXPECT_NONE("text = '''\ndef test_a():\n    return 1\n'''\n");
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
	    cmocka_unit_test(a_pasted_reference_counts_by_what_it_means),
	    cmocka_unit_test(broken_python_is_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
