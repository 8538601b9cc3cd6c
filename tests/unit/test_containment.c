/* test_containment - the message about a missing layer of the sandbox says what the consequences are. */
#include "workers/sandbox/containment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/shared_options.h"
#include "workers/sandbox/sandbox.h"

static void every_gap_is_a_choice_of_the_option(void **state)
{
	const struct sandbox_gap *gap;
	char names[512] = "none|full";

	(void)state;
	for (int i = 0; (gap = sandbox_gap(i)) != NULL; i++) {
		strcat(strcat(names, "|"), gap->name);
		assert_true((gap->closed_by & SANDBOX_ALL) != 0 && (gap->closed_by & ~(uint32_t)SANDBOX_ALL) == 0);
	}
	assert_string_equal(names, GAPS);
}

static void a_gap_is_open_only_if_every_layer_against_it_is_missing(void **state)
{
	const struct sandbox_gap *gap;

	(void)state;
	for (int i = 0; (gap = sandbox_gap(i)) != NULL; i++) {
		assert_true(sandbox_gap_is_open(gap, 0));
		assert_true(sandbox_gap_is_open(gap, SANDBOX_ALL & ~gap->closed_by));
		for (uint32_t layer = 1; layer < SANDBOX_ALL; layer <<= 1)
			assert_int_equal(sandbox_gap_is_open(gap, layer), (gap->closed_by & layer) == 0);
	}
	for (uint32_t layer = 1; layer < SANDBOX_ALL; layer <<= 1)
		assert_non_null(sandbox_layer_name(layer));
}

static void layers_are_written_as_open_gaps(void **state)
{
	char names[CONTAINMENT_TEXT], sentences[CONTAINMENT_SENTENCES];

	(void)state;
	containment_write(SANDBOX_ALL, names);
	assert_string_equal(names, "full");
	containment_write_sentences(SANDBOX_ALL, sentences);
	assert_string_equal(sentences, "");
	containment_write(SANDBOX_ALL & ~(uint32_t)(SANDBOX_TMP | SANDBOX_MEMORY_SUM | SANDBOX_MEMORY_GROUP | SANDBOX_USER), names);
	assert_string_equal(names, "disk,memory");
	containment_write_sentences(SANDBOX_ALL & ~(uint32_t)SANDBOX_TMP, sentences);
	assert_string_equal(sentences, "references can fill the disk with temporary files");
	containment_write(0, names); /* the buffer has room for all names */
	assert_non_null(strstr(names, "disk,memory"));
	containment_write_sentences(0, sentences);
	assert_non_null(strstr(sentences, "this machine's memory"));
}

static void what_is_required_is_compared_word_by_word(void **state)
{
	static const struct {
		const char *text, *required;
		bool suffices;
	} rows[] = {
	    {"full", NULL, true},          {NULL, NULL, true},
	    {"files", NULL, true},         {"full", "full", true},
	    {"full", "files,disk", true},  {NULL, "files", false}, /* text NULL: the containment is unknown */
	    {NULL, "full", false},         {"memory", "full", false},
	    {"memory", "memory", false},   {"memory", "files,memory", false},
	    {"memory", "files,disk", true}, {"process_memory", "memory", true}, /* a name must match a whole word of the
										 * list */
	    {"files,memory", "disk,memory", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(containment_suffices(rows[i].text, rows[i].required), rows[i].suffices);
}

/* A limit on the sum of the memory of a reference's processes works only if the sum includes every process and all of
 * the memory of each process. */
static void memory_is_added_up_only_if_the_sum_is_complete(void **state)
{
	const uint32_t needed = SANDBOX_PID | SANDBOX_PROC | SANDBOX_TMP | SANDBOX_MEMORY_LIMIT | SANDBOX_NO_SHARED_MEMORY;

	(void)state;
	assert_int_equal(sandbox_with_sum(needed), needed | SANDBOX_MEMORY_SUM);
	for (int i = 0; i < SANDBOX_LAYERS; i++) {
		uint32_t layer = (uint32_t)1 << i;

		if ((needed & layer) != 0)
			assert_int_equal(sandbox_with_sum(SANDBOX_ALL & ~layer) & SANDBOX_MEMORY_SUM, 0);
	}
}

/* On a GPU, the driver needs local sockets and a large address space, so these two are not limited. */
static void on_a_gpu_only_local_sockets_and_memory_are_not_limited(void **state)
{
	const uint32_t on_cpu_only = SANDBOX_NO_SOCKETS | SANDBOX_MEMORY_LIMIT | SANDBOX_NO_SHARED_MEMORY;

	(void)state;
	assert_int_equal(sandbox_probe(true), sandbox_probe(false) & ~on_cpu_only);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_gap_is_a_choice_of_the_option),
	    cmocka_unit_test(memory_is_added_up_only_if_the_sum_is_complete),
	    cmocka_unit_test(a_gap_is_open_only_if_every_layer_against_it_is_missing),
	    cmocka_unit_test(layers_are_written_as_open_gaps),
	    cmocka_unit_test(what_is_required_is_compared_word_by_word),
	    cmocka_unit_test(on_a_gpu_only_local_sockets_and_memory_are_not_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
