/* test_visible_device - the value of CUDA_VISIBLE_DEVICES that makes only one GPU visible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "workers/pool/visible_device.h"

static void the_entry_of_a_device_is_found(void **state)
{
	static const struct {
		const char *device, *list, *expected;
	} rows[] = {
	    {"cuda:0", NULL, "0"},
	    {"cuda:7", NULL, "7"},
	    {"cuda:0", "3", "3"},
	    {"cuda:1", "3,1", "1"},
	    {"cuda:1", "GPU-8932f937, MIG-GPU-8932f937/1/2 ,5", "MIG-GPU-8932f937/1/2"},
	    {"cuda:2", "3,1", NULL},
	    {"cuda:1", "3,-1,1", NULL},
	    {"cuda:2", "3,-1,1", NULL},
	    {"cuda:0", "", NULL},
	    {"cuda:0", "-1", NULL},
	    {"cuda:1", "0,,1", NULL},
	    {"cuda", NULL, NULL},
	    {"cuda:", NULL, NULL},
	    {"cuda:x", NULL, NULL},
	    {"cuda:1x", NULL, NULL},
	    {"cpu", NULL, NULL},
	};
	struct arena arena = {0};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const char *found = visible_device(rows[i].device, rows[i].list, &arena);

		if (rows[i].expected == NULL)
			assert_null(found);
		else
			assert_string_equal(found, rows[i].expected);
	}
	arena_free(&arena);
}

static void an_environment_has_the_variable_once(void **state)
{
	char first[] = "PATH=/bin", old[] = "CUDA_VISIBLE_DEVICES=0,1", other[] = "CUDA_VISIBLE_DEVICES_OF=me";
	char *environment[] = {first, old, other, NULL};
	struct arena arena = {0};
	char **out = visible_device_environment(environment, "1", &arena);

	(void)state;
	assert_string_equal(out[0], first);
	assert_string_equal(out[1], other);
	assert_string_equal(out[2], "CUDA_VISIBLE_DEVICES=1");
	assert_null(out[3]);
	assert_ptr_equal(visible_device_environment(environment, NULL, &arena), environment);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_entry_of_a_device_is_found),
	    cmocka_unit_test(an_environment_has_the_variable_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
