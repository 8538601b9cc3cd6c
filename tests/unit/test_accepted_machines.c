/* test_accepted_machines - checks when the program forgets the remembered version of torch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/accepted_machines.h"
#include "engine/program.h"

/* Without a cache, the program remembers the version of torch in memory. If a reference then runs with another version,
 * the program must forget the old one. Otherwise `serve` would expect the old version in each later request. */
static void a_version_in_memory_is_forgotten(void **state)
{
	struct program program = {.torch_key = strdup("torch python"), .torch_fact = strdup("2.0.0")};
	const struct machine_policy policy = {.torch_key = "torch python"};

	(void)state;
	machine_forget_torch(&program, &policy);
	assert_null(program.torch_key);
	assert_null(program.torch_fact);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_version_in_memory_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
