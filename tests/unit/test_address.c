#include "commands/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cache/fingerprint.h"

static struct addresses lies(const struct verdict *v, const struct digest *subject)
{
	struct arena arena = {0};
	struct fields fields = {0};

	witness_fields(v->ground_truth, v->ground_truth_version, v->device_class, v->torch, v->cuda, &arena, &fields);
	struct digest witness = fields_digest(&fields);

	arena_free(&arena);
	return addresses_of(subject, &witness, v);
}

static int in_common(const struct addresses *a, const struct addresses *b)
{
	int count = 0;

	for (int i = 0; i < a->count; i++)
		for (int k = 0; k < b->count; k++)
			count += strcmp(a->text[i], b->text[k]) == 0;
	return count;
}

/* A policy finds a verdict exactly when plan_case would let it count. */
static void what_would_count_is_found_and_nothing_else(void **state)
{
	static const struct verdict verdicts[] = {
	    {.device_class = "cpu", .ground_truth = "builtin", .ground_truth_version = "v1", .torch = "2.13.0"},
	    {.device_class = "cpu", .ground_truth = "builtin", .ground_truth_version = "v1", .torch = "2.14.0"},
	    {.device_class = "cpu", .ground_truth = "builtin", .ground_truth_version = "v2", .torch = "2.13.0"},
	    {.device_class = "sm_90",
	     .ground_truth = "builtin",
	     .ground_truth_version = "v1",
	     .torch = "2.9",
	     .cuda = "13.0"},
	    {.device_class = "sm_90",
	     .ground_truth = "builtin",
	     .ground_truth_version = "v1",
	     .torch = "2.9",
	     .cuda = "12.8"},
	    {.device_class = "sm_80",
	     .ground_truth = "builtin",
	     .ground_truth_version = "v1",
	     .torch = "2.9",
	     .cuda = "13.0"},
	    {.device_class = "cpu", .torch = "2.13.0"},
	};
	static const struct policy policies[] = {
	    {.device_class = "cpu", .torch = "2.13.0"},			 /* --device cpu */
	    {.device_class = "cpu", .torch = "2.13.0", .any_gpu = true}, /* no GPU here */
	    {.device_class = "cpu", .any_gpu = true},			 /* nor a torch */
	    {.device_class = "cpu"},
	    {.device_class = "sm_90", .torch = "2.9", .cuda = "13.0"},
	    {.device_class = "sm_90"},
	};
	static const struct truth builtin = {"builtin", "v1"};
	static const struct truths truths = {&builtin, 1, false};
	struct digest subject = digest_of("subject", 7), other = digest_of("other", 5);
	struct arena arena = {0};
	int found = 0;

	(void)state;
	for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++)
		for (size_t v = 0; v < sizeof verdicts / sizeof verdicts[0]; v++) {
			const struct verdict *stored[] = {&verdicts[v]};
			struct addresses wanted = addresses_wanted(&policies[p], &subject, &truths);
			struct addresses there = lies(&verdicts[v], &subject), elsewhere = lies(&verdicts[v], &other);
			bool counts = plan_case(&policies[p], &truths, stored, 1, &arena).answer == PLAN_CACHED;

			assert_int_equal(in_common(&wanted, &there) > 0, counts);
			assert_int_equal(in_common(&wanted, &elsewhere), 0);
			found += counts;
		}
	assert_int_equal(found, 15);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_would_count_is_found_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
