/* test_device_cpu - the CPU as a device: it allocates memory, fills, copies and compares tensors, and finds the first
 * byte that differs from another buffer or from a value. The memory limits of control groups reduce its free memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/free_memory.h"
#include "kernels/core/device.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/random_inputs.h"

static int open_device(void **state)
{
	*state = device_open_cpu(NULL);
	return *state == NULL;
}

static int close_device(void **state)
{
	struct device *device = *state;

	device->calls->close(device);
	return 0;
}

static void it_says_what_it_is(void **state)
{
	struct device *device = *state;

	assert_string_equal(device->calls->class_name(device), "cpu");
	assert_true(strlen(device->calls->product(device)) > 0);
	assert_false(device->calls->broken(device));
	assert_true(device->calls->memory_free(device) > 1 << 20);
	assert_true(device->calls->memory_total(device) >= device->calls->memory_free(device));
}

static void memory_is_aligned_and_more_than_is_free_is_refused(void **state)
{
	struct device *device = *state;
	int64_t sizes[] = {0, 1, 255, 256, 257, 1 << 20};
	struct err err = {""};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		void *memory = device->calls->allocate(device, sizes[i], &err);

		assert_non_null(memory);
		assert_int_equal((uintptr_t)memory % 256, 0);
		assert_int_equal(device->calls->set(device, memory, 0xff, sizes[i], &err), 0);
		device->calls->release(device, memory);
	}
	assert_null(device->calls->allocate(device, INT64_MAX, &err));
	assert_non_null(strstr(err.text, "bytes of memory are needed"));
	assert_null(device->calls->allocate(device, device->calls->memory_total(device) + 1, &err));
	assert_null(device->calls->allocate(device, -1, &err));
}

static void it_cannot_share_by_handle_and_says_why(void **state)
{
	struct device *device = *state;
	unsigned char handle[DEVICE_HANDLE];
	struct err err = {""};

	assert_int_equal(device->calls->share(device, handle, handle, &err), -1);
	assert_non_null(strstr(err.text, "memfd"));
}

static void searches_give_the_first_place_wherever_it_is(void **state)
{
	struct device *device = *state;
	int64_t places[] = {0, 1, 4095, 4096, 4097, 9999}, bytes = 10000;
	unsigned char *a = malloc((size_t)bytes), *b = malloc((size_t)bytes);
	struct err err = {""};

	assert_true(a != NULL && b != NULL);
	device->calls->set(device, a, 0x5a, bytes, &err);
	device->calls->copy(device, b, a, bytes, &err);
	assert_int_equal(device->calls->first_difference(device, a, b, bytes, &err), -1);
	assert_int_equal(device->calls->first_other(device, a, 0x5a, bytes, &err), -1);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		b[places[i]] = 0;
		b[9999] = 1;
		assert_int_equal(device->calls->first_difference(device, a, b, bytes, &err), places[i]);
		assert_int_equal(device->calls->first_other(device, b, 0x5a, bytes, &err), places[i]);
		b[places[i]] = b[9999] = 0x5a;
	}
	assert_int_equal(device->calls->first_difference(device, a, b, 0, &err), -1);
	assert_int_equal(device->calls->first_other(device, a, 0, 0, &err), -1);
	free(a);
	free(b);
}

static void parts_are_written_and_compared(void **state)
{
	struct device *device = *state;
	unsigned char from[6000], to[10000], want[10000];
	const struct device_part parts[] = {
	    {.memory = to + 1, .bytes = from, .length = 6000},
	    {.memory = to + 6001, .byte = 0x5a, .length = 3000},
	    {.memory = NULL, .length = 0},
	};
	struct err err = {""};

	memset(from, 1, sizeof from);
	memset(to, 2, sizeof to);
	memset(want, 2, sizeof want);
	memset(want + 1, 1, 6000);
	memset(want + 6001, 0x5a, 3000);
	assert_int_equal(device->calls->write_parts(device, parts, 3, &err), 0);
	assert_memory_equal(to, want, sizeof to);
	assert_int_equal(device->calls->parts_equal(device, parts, 3, &err), 1);
	for (size_t at = 0; at < sizeof to; at += at == 0 ? 1 : 1499) {
		bool outside = at == 0 || at > 9000;

		to[at]++;
		assert_int_equal(device->calls->parts_equal(device, parts, 3, &err), outside);
		to[at]--;
	}
	to[9000]++;
	assert_int_equal(device->calls->parts_equal(device, parts, 3, &err), 0);
	assert_int_equal(device->calls->parts_equal(device, parts, 0, &err), 1);
}

static const struct op_axis axes[] = {{"n", true, 0}};

static void an_input_of_no_family_is_filled_with_generic_values(void **state)
{
	struct device *device = *state;
	int64_t n = 40001;

	for (int d = 0; d < DTYPE_COUNT; d++) {
		enum dtype dtype = (enum dtype)d;
		const struct op_arg input = {.name = "x", .dtype = dtype, .rank = 1};
		const struct op_problem problem = {
		    .name = "p", .op_type = "t", .axes = axes, .axis_count = 1, .inputs = &input, .input_count = 1};
		const struct op_case c = {.problem = &problem, .axis = &n, .seed = 4};
		struct tensor out = {.dtype = dtype, .rank = 1, .shape = {n}, .elements = n};
		uint64_t key = input_key(&c, 0);
		struct err err = {""};

		out.data = malloc((size_t)dtype_bytes(dtype, n));
		assert_non_null(out.data);
		memset(out.data, 0xff, (size_t)dtype_bytes(dtype, n));
		assert_int_equal(device->calls->fill(device, NULL, &c, 0, &out, &err), 0);
		for (int64_t i = 0; i < n; i++) {
			double value = dtype_load(out.data, dtype, i),
			       drawn = (double)uniform_signed(philox_bits(key, i), 23);

			if (!dtype_is_float(dtype))
				assert_true(value == 0);
			else if (dtype == DTYPE_FLOAT8_E8M0FNU)
				assert_true(value == 1);
			else
				assert_true(value - drawn <= 0.25 && drawn - value <= 0.25);
		}
		assert_int_equal(device->calls->truth(device, NULL, &c, &out, &out, &err), -1);
		free(out.data);
	}
}

static void comparing_goes_by_the_rule(void **state)
{
	struct device *device = *state;
	float a[] = {1, 2, 3}, b[] = {1, 2, 3.1f};
	struct metrics metrics;

	assert_int_equal(
	    device->calls->compare(device, a, b, DTYPE_FLOAT32, 3, (struct rule){0.2, 0, 1}, &metrics, NULL), 0);
	assert_true(metrics.passed);
	assert_int_equal(
	    device->calls->compare(device, a, b, DTYPE_FLOAT32, 3, (struct rule){0.01, 0, 1}, &metrics, NULL), 0);
	assert_false(metrics.passed);
}

/* --- control groups: a fake machine made of files ----------------------------------------------------------------- */

static void put(const char *root, const char *path, const char *text)
{
	char full[512];
	struct err err = {""};

	snprintf(full, sizeof full, "%s%s", root, path);
	assert_true(file_replace(full, text, strlen(text), &err) >= 0);
}

static void remove_tree(const char *root)
{
	char command[600];

	snprintf(command, sizeof command, "rm -rf '%s'", root);
	assert_int_equal(system(command), 0);
}

static void a_control_group_above_this_one_limits_what_is_free(void **state)
{
	char root[] = "/tmp/reftest-memory-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_true(memory_available(root) == 0 && memory_installed(root) == 0);
	put(root, "/proc/meminfo", "MemTotal:       8000 kB\nMemFree: 100 kB\nMemAvailable:   6000 kB\n");
	assert_int_equal(memory_available(root), 6000 * 1024);
	assert_int_equal(memory_installed(root), 8000 * 1024);
	put(root, "/proc/self/cgroup", "0::/outer/inner\n");
	put(root, "/sys/fs/cgroup/outer/inner/memory.max", "max\n");
	put(root, "/sys/fs/cgroup/outer/memory.max", "1000000\n");
	put(root, "/sys/fs/cgroup/outer/memory.current", "700000\n");
	assert_int_equal(memory_available(root), 300000);
	assert_int_equal(memory_installed(root), 1000000);
	put(root, "/sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file 200000\nactive_file 7\n");
	assert_int_equal(memory_available(root), 500000);
	put(root, "/sys/fs/cgroup/outer/inner/memory.max", "400000\n");
	put(root, "/sys/fs/cgroup/outer/inner/memory.current", "500000\n");
	assert_int_equal(memory_available(root), 0);
	remove_tree(root);
}

static void control_groups_of_version_1_are_read_too(void **state)
{
	char root[] = "/tmp/reftest-memory-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(root));
	put(root, "/proc/meminfo", "MemTotal:       8000 kB\nMemAvailable:   6000 kB\n");
	put(root, "/proc/self/cgroup", "9:cpu:/x\n4:memory:/docker/abc\n");
	put(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");
	put(root, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "500000\n");
	put(root, "/sys/fs/cgroup/memory/memory.stat", "cache 1\ntotal_inactive_file 100000\n");
	assert_int_equal(memory_available(root), 1600000);
	assert_int_equal(memory_installed(root), 2000000);
	remove_tree(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(it_says_what_it_is),
	    cmocka_unit_test(memory_is_aligned_and_more_than_is_free_is_refused),
	    cmocka_unit_test(it_cannot_share_by_handle_and_says_why),
	    cmocka_unit_test(searches_give_the_first_place_wherever_it_is),
	    cmocka_unit_test(parts_are_written_and_compared),
	    cmocka_unit_test(an_input_of_no_family_is_filled_with_generic_values),
	    cmocka_unit_test(comparing_goes_by_the_rule),
	    cmocka_unit_test(a_control_group_above_this_one_limits_what_is_free),
	    cmocka_unit_test(control_groups_of_version_1_are_read_too),
	};

	return cmocka_run_group_tests(tests, open_device, close_device);
}
