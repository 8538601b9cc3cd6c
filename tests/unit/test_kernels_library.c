/* test_kernels_library - the kernels library is loaded from the path in $REFTEST_KERNELS, and any other file causes an
 * error message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "kernels/core/kernels_library.h"

/* Finds the build folder: this program is in its subfolder tests/unit/. */
static void name_build_folder(void)
{
	char folder[4096], place[4200];
	struct err err = {""};

	assert_int_equal(file_program_directory(folder, sizeof folder, &err), 0);
	snprintf(place, sizeof place, "%s/../..", folder);
	assert_int_equal(setenv("REFTEST_KERNELS", place, 1), 0);
}

static void the_library_of_this_build_opens_and_knows_its_families(void **state)
{
	struct kernels kernels;
	struct err err = {""};
	struct device *device;

	(void)state;
	name_build_folder();
	if (kernels_open(&kernels, NULL, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(strlen(kernels.api->digest), 32);
	assert_int_equal(strlen(kernels.api->checker_digest), 32);
	assert_true(kernels.api->op_count >= 2);
	assert_non_null(kernels.api->by_name("rmsnorm"));
	assert_ptr_equal(kernels.api->by_name(kernels.api->ops[0].op->name), &kernels.api->ops[0]);
	device = kernels.api->open_cpu(&err);
	assert_string_equal(device->calls->class_name(device), "cpu");
	device->calls->close(device);
	kernels_close(&kernels);
	assert_null(kernels.api);
	assert_int_equal(kernels_open(&kernels, NULL, &err), 0); /* the library can be opened again after it was
								  * closed */
	kernels_close(&kernels);
}

static void a_folder_without_a_library_or_with_garbage_is_reported(void **state)
{
	char folder[] = "/tmp/reftest-library-XXXXXX", path[256];
	struct kernels kernels;
	struct err err = {""};

	(void)state;
	assert_non_null(mkdtemp(folder));
	setenv("REFTEST_KERNELS", folder, 1);
	assert_int_equal(kernels_open(&kernels, NULL, &err), -1);
	assert_non_null(strstr(err.text, "libreftest_kernels.so cannot be loaded"));
	snprintf(path, sizeof path, "%s/libreftest_kernels.so", folder);
	assert_int_equal(file_replace(path, "no library", 10, &err), 1);
	assert_int_equal(kernels_open(&kernels, NULL, &err), -1);
	assert_null(kernels.api);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void beside_a_program_without_a_library_the_remedy_is_named(void **state)
{
	struct kernels kernels;
	struct err err = {""};

	(void)state;
	/* without the variable, the folders near this test program are searched, and they have no library */
	unsetenv("REFTEST_KERNELS");
	assert_int_equal(kernels_open(&kernels, NULL, &err), -1);
	assert_non_null(strstr(err.text, "run make"));
}

static void a_missing_cuda_library_is_reported_and_leaves_the_other_open(void **state)
{
	char folder[] = "/tmp/reftest-library-XXXXXX", link[256], target[4300];
	struct kernels kernels;
	struct err err = {""};

	(void)state;
	name_build_folder();
	assert_non_null(mkdtemp(folder));
	snprintf(link, sizeof link, "%s/libreftest_kernels.so", folder);
	snprintf(target, sizeof target, "%s/libreftest_kernels.so", getenv("REFTEST_KERNELS"));
	assert_int_equal(symlink(target, link), 0);
	setenv("REFTEST_KERNELS", folder, 1);
	if (kernels_open(&kernels, NULL, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(kernels_open_cuda(&kernels, &err), -1);
	assert_non_null(strstr(err.text, "libreftest_kernels_cuda.so does not exist"));
	assert_null(kernels.cuda);
	assert_non_null(kernels.api->by_name("gemm"));
	kernels_close(&kernels);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_library_of_this_build_opens_and_knows_its_families),
	    cmocka_unit_test(a_folder_without_a_library_or_with_garbage_is_reported),
	    cmocka_unit_test(beside_a_program_without_a_library_the_remedy_is_named),
	    cmocka_unit_test(a_missing_cuda_library_is_reported_and_leaves_the_other_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
