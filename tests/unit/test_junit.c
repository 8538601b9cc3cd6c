/* test_junit - JUnit XML: a skipped case has <skipped>, an error has <error>, and no text makes the XML invalid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "report/junit.h"

static void each_state_is_what_junit_calls_it(void **state)
{
	const struct verdict verdicts[] = {
	    {.status = STATUS_PASSED, .seconds = 0.5},
	    {.status = STATUS_FAILED, .reason = REASON_NUMERIC, .message = "far off\nby 3"},
	    {.status = STATUS_ERROR, .reason = REASON_RAISED, .message = "ValueError"},
	    {.status = STATUS_SKIPPED, .reason = REASON_MEMORY},
	    {.status = STATUS_INVALID}};
	struct junit_case cases[6] = {{.name = "unknown", .why = "it would run"}};
	struct junit_suite suites[2] = {{.op_type = "gemm", .name = "g", .cases = cases, .case_count = 6},
					{.op_type = "gemm", .name = "h", .invalid = "h.json:1:1: no"}};
	struct buf out = {0};

	(void)state;
	for (int i = 0; i < 5; i++)
		cases[i + 1] = (struct junit_case){.name = "case", .verdict = &verdicts[i]};
	junit_write(suites, 2, 1.5, &out);
	assert_non_null(strstr(
	    out.data,
	    "<testsuites name=\"reftest\" tests=\"7\" failures=\"1\" errors=\"3\" skipped=\"2\" time=\"1.500000\">"));
	assert_non_null(strstr(out.data, "<failure message=\"far off\" type=\"numeric\">far off&#10;by 3</failure>"));
	assert_non_null(strstr(out.data, "<error message=\"ValueError\" type=\"raised\">"));
	assert_non_null(strstr(out.data, "<skipped message=\"memory\">"));
	assert_non_null(strstr(out.data, "<skipped message=\"it would run\">"));
	assert_non_null(strstr(out.data, "<error message=\"h.json:1:1: no\" type=\"invalid\">"));
	buf_free(&out);
}

static void a_weak_definition_is_skipped_not_passed(void **state)
{
	const struct verdict passed = {.status = STATUS_PASSED};
	struct junit_case c = {.name = "case", .verdict = &passed};
	struct junit_suite suite = {.op_type = "gemm", .name = "g", .weak = true, .cases = &c, .case_count = 1};
	struct buf out = {0};

	(void)state;
	junit_write(&suite, 1, 0, &out);
	assert_non_null(strstr(out.data, "skipped=\"1\""));
	suite.weak = false;
	buf_clear(&out);
	junit_write(&suite, 1, 0, &out);
	assert_non_null(strstr(out.data, "skipped=\"0\""));
	buf_free(&out);
}

static void what_xml_cannot_hold_is_escaped(void **state)
{
	const struct verdict v = {.status = STATUS_FAILED, .message = "<b>&\"]]>\x01\xff\xEF\xBF\xBE'"};
	struct junit_case c = {.name = "a\"b", .verdict = &v};
	struct junit_suite suite = {.op_type = "x<y", .name = "n&m", .cases = &c, .case_count = 1};
	struct buf out = {0};

	(void)state;
	junit_write(&suite, 1, 0, &out);
	assert_non_null(strstr(out.data, ">&lt;b&gt;&amp;&quot;]]&gt;\\x01\\xff\\ufffe'</failure>"));
	assert_non_null(strstr(out.data, "classname=\"x&lt;y.n&amp;m\" name=\"a&quot;b\""));
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_state_is_what_junit_calls_it),
	    cmocka_unit_test(a_weak_definition_is_skipped_not_passed),
	    cmocka_unit_test(what_xml_cannot_hold_is_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
