/* test_hand_edit - reftest may replace a generated file only while the file has the body that reftest wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "testgen/hand_edit.h"

static const char body[] = "import pytest\n";

static void a_sealed_body_is_ours(void **state)
{
	struct buf out = {0};

	(void)state;
	owned_seal(&out, body, sizeof body - 1);
	assert_int_equal(owned_by(out.data, out.length), OWNER_REFTEST);
	assert_string_equal(out.data + owned_body(out.data, out.length), body);
	buf_free(&out);
}

static void any_edit_makes_it_somebodys(void **state)
{
	struct buf out = {0};

	(void)state;
	owned_seal(&out, body, sizeof body - 1);
	for (size_t i = owned_body(out.data, out.length); i < out.length; i++) {
		out.data[i] ^= 1;
		assert_int_equal(owned_by(out.data, out.length), OWNER_EDITED);
		out.data[i] ^= 1;
	}
	assert_int_equal(owned_by(out.data, out.length - 1), OWNER_EDITED);
	buf_add(&out, "\n", 1);
	assert_int_equal(owned_by(out.data, out.length), OWNER_EDITED);
	buf_free(&out);
}

static void without_the_header_it_is_a_strangers(void **state)
{
	struct buf out = {0};

	(void)state;
	assert_int_equal(owned_by(body, sizeof body - 1), OWNER_USER);
	assert_int_equal(owned_by("", 0), OWNER_USER);
	owned_seal(&out, body, sizeof body - 1);
	for (size_t i = 0; i < 60; i++)
		assert_int_equal(owned_by(out.data, i), OWNER_USER);
	out.data[3] ^= 1;
	assert_int_equal(owned_by(out.data, out.length), OWNER_USER);
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_sealed_body_is_ours),
	    cmocka_unit_test(any_edit_makes_it_somebodys),
	    cmocka_unit_test(without_the_header_it_is_a_strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
