/* test_secrets - secrets are removed from the environment, and come back only for a program that replaces this one
 * (exec). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "engine/secrets.h"

static void a_secret_leaves_the_environment_and_its_memory(void **state)
{
	struct secrets secrets;

	(void)state;
	setenv("REFTEST_CACHE_KEY", "hmac:000102030405060708090a0b0c0d0e0f", 1);
	unsetenv("REFTEST_REMOTE");
	const char *place = getenv("REFTEST_CACHE_KEY");
	size_t length = strlen(place);

	secrets_take(&secrets);
	assert_string_equal(secrets.text[SECRET_CACHE_KEY], "hmac:000102030405060708090a0b0c0d0e0f");
	assert_null(secrets.text[SECRET_REMOTE]);
	assert_null(getenv("REFTEST_CACHE_KEY"));
	for (size_t i = 0; i < length; i++) /* the C library keeps the memory of a removed variable, so the secret must
					     * be overwritten */
		assert_int_equal(place[i], '\0');
	secrets_put_back(&secrets);
	assert_string_equal(getenv("REFTEST_CACHE_KEY"), "hmac:000102030405060708090a0b0c0d0e0f");
	assert_null(getenv("REFTEST_REMOTE"));
	secrets_forget(&secrets);
	assert_null(secrets.text[SECRET_CACHE_KEY]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_secret_leaves_the_environment_and_its_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
