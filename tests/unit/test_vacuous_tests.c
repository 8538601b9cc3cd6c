/* test_vacuous_tests - `audit` runs a script, python/vacuous_tests.py, and checks its output. A script that dies, or
 * prints nothing or too much, is reported. What the script finds is tested by tests/vacuous_tests.py. */
#include "folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "testgen/vacuous_tests.h"

static void answers_are_read(void **state)
{
	struct arena arena = {0};
	struct string_list messages = {.arena = &arena};
	const char answer[] = "{\"findings\": [{\"line\": 3, \"reason\": \"test_a compares nothing\"}, "
			      "{\"line\": 2147483647, \"reason\": \"y\"}]}";

	struct vacuous_answer answered = {.vacuous = true};

	(void)state;
	assert_int_equal(vacuous_tests_read_answer("x.py", answer, strlen(answer), &messages, &answered, NULL), 0);
	assert_false(answered.vacuous);
	assert_int_equal(vacuous_tests_read_answer("y.py", "{\"findings\":[]}", 15, &messages, &answered, NULL), 0);
	assert_false(answered.vacuous);
	assert_int_equal(vacuous_tests_read_answer("z.py", "{\"findings\":[],\"vacuous\":true}", 30, &messages, &answered, NULL), 0);
	assert_true(answered.vacuous);
	assert_null(answered.missing);
	assert_int_equal(vacuous_tests_read_answer("z.py", "{\"findings\":[],\"missing\":\"flashinfer\"}", 38, &messages, &answered, NULL), 0);
	assert_string_equal(answered.missing, "flashinfer");
	assert_int_equal(messages.count, 2);
	assert_string_equal(messages.items[0], "x.py:3: test_a compares nothing");
	assert_string_equal(messages.items[1], "x.py:2147483647: y");
	arena_free(&arena);
}

/* If any part of the script's output is malformed, all findings are dropped, also those of earlier parts. */
static void other_answers_are_refused(void **state)
{
	static const char *const wrong[] = {
	    "",
	    "[]",
	    "{}",
	    "{\"findings\": 3}",
	    "{\"findings\": [], \"vacuous\": 1}",
	    "{\"findings\": [], \"missing\": \"a b\"}",
	    "{\"findings\": [], \"missing\": \"\"}",
	    "{\"findings\": [], \"missing\": []}",
	    "{\"findings\": []} {\"findings\": []}",
	    "{\"findings\": [{\"line\": 1, \"reason\": \"x\"}, 3]}",
	    "{\"findings\": [{\"line\": 1, \"reason\": \"x\"}, {\"line\": 1}]}",
	    "{\"findings\": [{\"line\": 1, \"reason\": \"x\"}, {\"line\": 1, \"reason\": \"\"}]}",
	    "{\"findings\": [{\"line\": 1, \"reason\": \"x\"}, {\"line\": 0, \"reason\": \"y\"}]}",
	    "{\"findings\": [{\"line\": 1, \"reason\": \"x\"}, {\"line\": 1.5, \"reason\": \"y\"}]}",
	    "{\"findings\": [{\"line\": 1, \"reason\": \"x\"}, {\"line\": 2147483648, \"reason\": \"y\"}]}",
	    "{\"findings\": [{\"line\": 1, \"reason\": \"x\"}, {\"line\": \"1\", \"reason\": \"y\"}]}",
	    "{\"findings\": [{\"line\": 1, \"reason\": \"x\"}, {\"line\": 1, \"reason\": \"a\\u001b[2J\"}]}",
	    "{\"findings\": [{\"line\": 1, \"reason\": \"x\"}, {\"line\": 1, \"reason\": \"a\\nb\"}]}",
	};
	struct arena arena = {0};
	struct string_list messages = {.arena = &arena};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct err err = {""};
		struct vacuous_answer answered = {.vacuous = true};

		assert_int_equal(vacuous_tests_read_answer("x.py", wrong[i], strlen(wrong[i]), &messages, &answered, &err), -1);
		assert_int_equal(messages.count, 0);
		assert_false(answered.vacuous);
		assert_null(answered.missing);
		assert_true(err.text[0] != '\0');
	}
	arena_free(&arena);
}

static void a_reason_is_bounded(void **state)
{
	struct arena arena = {0};
	struct string_list messages = {.arena = &arena};
	char answer[2100];
	struct vacuous_answer answered;

	(void)state;
	snprintf(answer, sizeof answer, "{\"findings\": [{\"line\": 1, \"reason\": \"%01600d\"}]}", 7);
	assert_int_equal(vacuous_tests_read_answer("x.py", answer, strlen(answer), &messages, &answered, NULL), 0);
	snprintf(answer, sizeof answer, "{\"findings\": [{\"line\": 1, \"reason\": \"%01601d\"}]}", 7);
	assert_int_equal(vacuous_tests_read_answer("x.py", answer, strlen(answer), &messages, &answered, NULL), -1);
	arena_free(&arena);
}

/* Audits two files with `script` instead of the real script. Returns the result of vacuous_tests_find. */
static int audit_with(const char *script, struct arena *arena, struct vacuous_tests *out, struct err *err)
{
	struct dataset dataset;

	(void)!system("mkdir -p definitions tests/references");
	put("tests/references/test_a.py", "def test_a():\n    print(1)\n");
	put("tests/references/test_b.py", "def test_b():\n    assert x\n");
	put("script.py", script);
	setenv("REFTEST_AUDIT", "script.py", 1);
	err->text[0] = '\0';
	assert_int_equal(dataset_scan(".", arena, &dataset, NULL), 0);

	int rc = vacuous_tests_find(&dataset, ".", "python3", arena, out, err);

	dataset_close(&dataset);
	return rc;
}

#define ANSWER "print('{\"findings\": []}', flush=True)\n"

static void what_a_script_does_is_checked(void **state)
{
	static const struct {
		const char *script, *words;
	} wrong[] = {
	    {"", "cannot audit tests/references/test_a.py: vacuous_tests.py printed no finding for it"},
	    {ANSWER, "cannot audit tests/references/test_b.py: vacuous_tests.py printed no finding for it"},
	    {ANSWER "print('{')\n", "cannot audit tests/references/test_b.py: the answer:1:"},
	    {"import sys\nsys.stdout.write('{\"findings\": []}')", "test_a.py: vacuous_tests.py printed no finding for it"},
	    {ANSWER "import os\nos.kill(os.getpid(), 11)\n", "cannot audit tests/references/test_b.py: "},
	    {ANSWER ANSWER "import sys\nsys.exit(3)\n", "cannot audit tests/references/: "},
	    {ANSWER ANSWER "import sys\nwhile True: sys.stdout.write('x' * 65536)\n", "printed more text than expected"},
	};
	struct arena arena = {0};
	struct vacuous_tests result;
	struct err err;

	(void)state;
	assert_int_equal(audit_with(ANSWER ANSWER, &arena, &result, &err), 0);
	assert_int_equal(result.files, 2);
	assert_int_equal(result.message_count, 0);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(audit_with(wrong[i].script, &arena, &result, &err), -1);
		if (strstr(err.text, wrong[i].words) == NULL)
			fail_msg("%s", err.text);
		assert_false(result.no_python);
	}
	arena_free(&arena);
}

/* The script gets the folder as an argument, and one line for each file on standard input. */
static void what_a_script_is_given(void **state)
{
	struct arena arena = {0};
	struct vacuous_tests result;
	struct err err;

	(void)state;
	assert_int_equal(audit_with("import json, sys\n"
				    "assert sys.argv[1:] == ['.']\n"
				    "for line in sys.stdin:\n"
				    "    print(json.dumps({'findings': [{'line': 1, 'reason': json.loads(line)['path']}]}))\n",
				    &arena, &result, &err),
			 0);
	assert_int_equal(result.message_count, 2);
	assert_string_equal(result.messages[0], "tests/references/test_a.py:1: tests/references/test_a.py");
	assert_string_equal(result.messages[1], "tests/references/test_b.py:1: tests/references/test_b.py");
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(answers_are_read),
	    cmocka_unit_test(other_answers_are_refused),
	    cmocka_unit_test(a_reason_is_bounded),
	    cmocka_unit_test_setup_teardown(what_a_script_does_is_checked, enter_folder, leave_folder),
	    cmocka_unit_test_setup_teardown(what_a_script_is_given, enter_folder, leave_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
