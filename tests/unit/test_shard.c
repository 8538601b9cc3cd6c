/* test_shard - the option --shard: every case belongs to exactly one shard, which depends only on the subject of the
 * case. */
#include "engine/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_shard_is_one_of_as_many_as_there_are(void **state)
{
	struct shard shard;
	struct err err;

	(void)state;
	assert_int_equal(shard_read("2/4", &shard, &err), 0);
	assert_int_equal(shard.number, 2);
	assert_int_equal(shard.count, 4);
	assert_int_equal(shard_read("1/1", &shard, &err), 0);
	static const char *const bad[] = {"",	  "/",	  "1",	 "1/",	 "/2",	 "0/4",	 "5/4",
					  "-1/4", "1/-4", "1/0", "1/4x", "1 /4", "+1/4", "1/99999999999999999999",
					  "a/b"};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		err.text[0] = '\0';
		assert_int_equal(shard_read(bad[i], &shard, &err), -1);
		assert_true(strstr(err.text, "shard") != NULL);
	}
}

enum { CASES = 200 };

static void make_cases(struct test_case *items, struct job *job)
{
	for (int i = 0; i < CASES; i++) {
		int of = i < CASES - 1 ? i : 0; /* the last case has the same subject as the first case */

		items[i] = (struct test_case){.id = "case", .job = job, .subject = digest_of(&of, sizeof of)};
	}
}

static void every_case_falls_to_exactly_one_shard(void **state)
{
	static struct test_case items[CASES];
	static struct job job;
	int seen[CASES] = {0}, first = -1, last = -1;

	(void)state;
	for (int number = 1; number <= 7; number++) {
		struct cases cases = {.items = items, .count = CASES};
		const struct shard shard = {number, 7};

		make_cases(items, &job);
		struct test_case all[CASES];

		memcpy(all, items, sizeof all);
		assert_int_equal(shard_filter(&shard, "rmsnorm/a", &cases), cases.count > 0);
		/* no shard is empty, and no shard has most of the cases */
		assert_in_range(cases.count, CASES / 14, CASES / 3);
		for (int i = 0, at = 0; i < CASES && at < cases.count; i++)
			if (digest_equal(&all[i].subject, &items[at].subject)) {
				seen[i]++;
				first = i == 0 ? number : first;
				last = i == CASES - 1 ? number : last;
				at++;
			}
	}
	for (int i = 0; i < CASES; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(first, last);
}

/* The shards of a run may run on different machines and with different versions of reftest, so the shard of a subject
 * may never change. */
static void the_shard_of_a_subject_is_written_in_stone(void **state)
{
	struct test_case items[4];
	static struct job job;
	int of[4] = {0};

	(void)state;
	for (int number = 1; number <= 5; number++) {
		struct cases cases = {.items = items, .count = 4};

		for (unsigned char i = 0; i < 4; i++) {
			items[i] = (struct test_case){.id = "case", .job = &job};
			items[i].subject.bytes[0] = (unsigned char)(i + 1);
			items[i].subject.bytes[7] = (unsigned char)(10 * i);
			items[i].subject.bytes[8] = 0xff; /* must have no effect, because only the first eight bytes of
							   * the subject count */
		}
		shard_filter(&(struct shard){number, 5}, "a", &cases);
		for (int i = 0; i < cases.count; i++)
			of[items[i].subject.bytes[0] - 1] = number;
	}
	/* the first eight bytes of the subject are a big-endian number n, and the shard is n modulo 5, plus 1; in case
	 * i, n is (i + 1) 2^56 + 10 i; 2^56 modulo 5 is 1, so the shard is ((i + 1) + 10 i) modulo 5, plus 1 */
	assert_int_equal(of[0], 2);
	assert_int_equal(of[1], 3);
	assert_int_equal(of[2], 4);
	assert_int_equal(of[3], 5);
}

static void what_has_no_subject_goes_by_its_name(void **state)
{
	int reported[3] = {0};

	(void)state;
	for (int number = 1; number <= 3; number++) {
		const struct shard shard = {number, 3};
		struct test_case decided[2] = {{.id = "workload:1"}, {.id = "workload:2"}};
		struct cases none = {.count = 0}, bad = {.items = decided, .count = 2};

		reported[0] += shard_reports(&shard, "gemm/broken");
		reported[1] += shard_filter(&shard, "gemm/empty", &none);
		reported[2] += shard_filter(&shard, "gemm/bad_lines", &bad);
		assert_true(bad.count == 0 || bad.count == 2);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(reported[i], 1);
	/* without shards, every case belongs to this run */
	assert_true(shard_reports(&(struct shard){0, 0}, "anything"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_shard_is_one_of_as_many_as_there_are),
	    cmocka_unit_test(every_case_falls_to_exactly_one_shard),
	    cmocka_unit_test(the_shard_of_a_subject_is_written_in_stone),
	    cmocka_unit_test(what_has_no_subject_goes_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
