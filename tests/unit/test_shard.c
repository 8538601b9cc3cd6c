/* test_shard - the option --shard: every definition belongs to exactly one shard, which depends only on its name. */
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

static void every_definition_belongs_to_exactly_one_shard(void **state)
{
	enum { NAMES = 200, SHARDS = 7 };
	int held[SHARDS] = {0};

	(void)state;
	for (int i = 0; i < NAMES; i++) {
		char name[32];
		int in = 0;

		snprintf(name, sizeof name, "rmsnorm_h%d", i);
		for (int number = 1; number <= SHARDS; number++)
			if (shard_has(&(struct shard){number, SHARDS}, "rmsnorm", name)) {
				held[number - 1]++;
				in++;
			}
		assert_int_equal(in, 1);
		/* without shards, every definition belongs to this run */
		assert_true(shard_has(&(struct shard){0, 0}, "rmsnorm", name));
	}
	for (int i = 0; i < SHARDS; i++) /* no shard is empty, and no shard has most of the definitions */
		assert_in_range(held[i], NAMES / 14, NAMES / 3);
}

/* The shards of a run may run on different machines and with different versions of reftest, so the shard of a name may
 * never change. It is the big-endian number in the first eight bytes of XXH3-128("op_type/name"), modulo the number of
 * shards, plus 1. */
static void the_shard_of_a_name_is_written_in_stone(void **state)
{
	static const struct {
		const char *op_type, *name;
		int of_five;
	} rows[] = {{"rmsnorm", "rmsnorm_h128", 4}, {"gemm", "gemm_n128_k2048", 1}, {"rope", "a", 5}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int number = 1; number <= 5; number++)
			assert_int_equal(shard_has(&(struct shard){number, 5}, rows[i].op_type, rows[i].name),
					 number == rows[i].of_five);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_shard_is_one_of_as_many_as_there_are),
	    cmocka_unit_test(every_definition_belongs_to_exactly_one_shard),
	    cmocka_unit_test(the_shard_of_a_name_is_written_in_stone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
