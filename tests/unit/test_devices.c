/* test_devices - checks which devices --device names, and which of them a run uses. The machines are invented: they
 * have GPUs of several classes, broken GPUs, or no GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/devices.h"

/* ---- what the option names ---- */

static void expect_read(const char *text, enum device_kind kind, const char *ordinals)
{
	struct device_choice choice;
	struct err err = {""};
	char found[256] = "";

	if (devices_read(text, &choice, &err) != 0)
		fail_msg("%s: %s", text, err.text);
	assert_int_equal(choice.kind, kind);
	for (int i = 0; i < choice.count; i++)
		snprintf(found + strlen(found), sizeof found - strlen(found), "%d ", choice.ordinals[i]);
	assert_string_equal(found, ordinals);
}

static void one_device_or_several_are_named(void **state)
{
	(void)state;
	expect_read("auto", DEVICE_AUTO, "");
	expect_read("cpu", DEVICE_CPU, "");
	expect_read("cuda", DEVICE_ALL_GPUS, "");
	expect_read("cuda:3", DEVICE_GPUS, "3 ");
	expect_read("cuda:0,1", DEVICE_GPUS, "0 1 ");
	expect_read("cuda:12,0,63", DEVICE_GPUS, "12 0 63 ");
}

static void expect_refused(const char *text, const char *says)
{
	struct device_choice choice;
	struct err err = {""};

	assert_int_equal(devices_read(text, &choice, &err), -1);
	if (strstr(err.text, says) == NULL)
		fail_msg("%s: %s", text, err.text);
}

static void what_names_no_device_is_refused(void **state)
{
	static const char *const wrong[] = {"",	       "gpu",	  "cuda:",    "cuda:-1",  "cuda:+1", "cuda:64", "cuda:1,",
					    "cuda:,1", "cuda:1 ", "cuda:0, 1", "cuda:0;1", "cpu,cuda", "cuda:1x", "CUDA",
					    "cuda:99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		expect_refused(wrong[i], "unknown device '");
	expect_refused("cuda:0,1,0", "--device names cuda:0 twice");
	expect_refused("cuda:1,01", "--device names cuda:1 twice");
}

/* ---- which devices a run uses ---- */

/* An invented machine. `classes` has the class of each GPU; NULL: this GPU cannot be used. */
struct machine {
	const char *const *classes;
	int count;
	char asked[256];
};

static int class_of(void *self, const char *device, char class_name[DEVICE_CLASS_SIZE], struct err *err)
{
	struct machine *machine = self;
	int ordinal = atoi(device + 5);

	strcat(machine->asked, device);
	strcat(machine->asked, " ");
	if (ordinal >= machine->count)
		return err_set(err, "there is no %s", device);
	if (machine->classes[ordinal] == NULL)
		return err_set(err, "%s is broken", device);
	snprintf(class_name, DEVICE_CLASS_SIZE, "%s", machine->classes[ordinal]);
	return 0;
}

struct chosen {
	struct machine machine;
	struct devices devices;
	struct arena arena;
	struct err err;
	enum devices_answer answer;
};

static void choose(struct chosen *c, const char *text, const char *const *classes, int count)
{
	struct device_choice choice;

	*c = (struct chosen){.machine = {.classes = classes, .count = count}};
	assert_int_equal(devices_read(text, &choice, &c->err), 0);
	c->answer = devices_choose(&choice, count, (struct device_probe){class_of, &c->machine}, &c->arena, &c->devices, &c->err);
}

/* Checks the names of the chosen devices. In `names`, a space follows each name. */
static void expect_chosen(struct chosen *c, const char *names)
{
	char found[256] = "";

	if (c->answer != DEVICES_FOUND)
		fail_msg("%s", c->err.text);
	for (int i = 0; i < c->devices.count; i++)
		snprintf(found + strlen(found), sizeof found - strlen(found), "%s ", c->devices.names[i]);
	assert_string_equal(found, names);
}

static void all_equal_gpus_are_used(void **state)
{
	static const char *const equal[] = {"sm_90", "sm_90", "sm_90"};
	struct chosen c;

	(void)state;
	choose(&c, "cuda", equal, 3);
	expect_chosen(&c, "cuda:0 cuda:1 cuda:2 ");
	assert_string_equal(c.devices.class_name, "sm_90");
	assert_int_equal(c.devices.left_out_count, 0);
	arena_free(&c.arena);
	choose(&c, "cuda:2,0", equal, 3);
	expect_chosen(&c, "cuda:2 cuda:0 ");
	assert_string_equal(c.machine.asked, "cuda:2 cuda:0 ");
	arena_free(&c.arena);
	choose(&c, "auto", equal, 3);
	expect_chosen(&c, "cuda:0 ");
	assert_string_equal(c.machine.asked, "cuda:0 ");
	arena_free(&c.arena);
}

static void a_gpu_that_differs_or_is_broken_is_left_out(void **state)
{
	static const char *const mixed[] = {NULL, "sm_90", "sm_80", "sm_90"};
	struct chosen c;

	(void)state;
	choose(&c, "cuda", mixed, 4);
	expect_chosen(&c, "cuda:1 cuda:3 ");
	assert_int_equal(c.devices.left_out_count, 2);
	assert_string_equal(c.devices.left_out[0], "cuda:0 is not used: cuda:0 is broken");
	assert_string_equal(c.devices.left_out[1], "cuda:2 is not used, because all GPUs of a run must be of one class: it is "
							   "sm_80, but cuda:1 is sm_90");
	arena_free(&c.arena);
}

static void named_gpus_are_never_left_out(void **state)
{
	static const char *const mixed[] = {NULL, "sm_90", "sm_80"};
	struct chosen c;

	(void)state;
	choose(&c, "cuda:1,0", mixed, 3);
	assert_int_equal(c.answer, DEVICES_UNUSABLE);
	assert_string_equal(c.err.text, "cuda:0 is broken");
	arena_free(&c.arena);
	choose(&c, "cuda:1,7", mixed, 3);
	assert_int_equal(c.answer, DEVICES_UNUSABLE);
	assert_string_equal(c.err.text, "there is no cuda:7");
	arena_free(&c.arena);
	choose(&c, "cuda:1,2", mixed, 3);
	assert_int_equal(c.answer, DEVICES_DIFFER);
	assert_string_equal(c.err.text, "cuda:1 is sm_90 and cuda:2 is sm_80; choose devices of one class");
	arena_free(&c.arena);
}

static void without_a_gpu_the_first_failure_is_the_reason(void **state)
{
	static const char *const broken[] = {NULL, NULL};
	struct chosen c;

	(void)state;
	choose(&c, "cuda", broken, 2);
	assert_int_equal(c.answer, DEVICES_UNUSABLE);
	assert_string_equal(c.err.text, "cuda:0 is broken");
	arena_free(&c.arena);
	choose(&c, "cuda", broken, 0);
	assert_int_equal(c.answer, DEVICES_UNUSABLE);
	assert_string_equal(c.err.text, "there is no cuda:0");
	arena_free(&c.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_device_or_several_are_named),
	    cmocka_unit_test(what_names_no_device_is_refused),
	    cmocka_unit_test(all_equal_gpus_are_used),
	    cmocka_unit_test(a_gpu_that_differs_or_is_broken_is_left_out),
	    cmocka_unit_test(named_gpus_are_never_left_out),
	    cmocka_unit_test(without_a_gpu_the_first_failure_is_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
