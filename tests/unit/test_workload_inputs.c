/* test_workload_inputs - if a workload provides some inputs, the family uses them to generate the other inputs. The
 * family also checks the provided inputs before a reference gets them. */
#include "tests/unit/attention_family.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "kernels/core/device.h"
#include "workers/judge/case_inputs.h"

extern const struct op gqa_paged_op;

enum { PAGES = 6, INDICES = 4 };

/* A case with two sequences. Each sequence has two pages, and each page has four keys. The workload may provide
 * kv_indices. */
struct scene {
	struct built built;
	struct input_source sources[MAX_INPUTS];
	int64_t axis[MAX_AXES];
	struct op_case c;
	struct job job;
	struct tensor in[MAX_INPUTS];
	struct device *device;
	struct tensors *tensors;
	char root[32];
};

static void build_problem(struct built *b)
{
	start_problem(b, "gqa_paged_decode", "gqa_paged");
	add_axis(b, "batch_size", 0);
	add_axis(b, "heads", 2);
	add_axis(b, "head_dim", 8);
	add_axis(b, "page_size", 4);
	add_axis(b, "num_pages", 0);
	add_axis(b, "len_indptr", 0);
	add_axis(b, "num_kv_indices", 0);
	add_input(b, "q", DTYPE_BFLOAT16, "batch_size heads head_dim");
	add_input(b, "k_cache", DTYPE_BFLOAT16, "num_pages page_size heads head_dim");
	add_input(b, "v_cache", DTYPE_BFLOAT16, "num_pages page_size heads head_dim");
	add_input(b, "kv_indptr", DTYPE_INT32, "len_indptr");
	add_input(b, "kv_indices", DTYPE_INT32, "num_kv_indices");
	add_input(b, "sm_scale", DTYPE_FLOAT32, NULL);
	add_output(b, "output", DTYPE_BFLOAT16, "batch_size heads head_dim");
}

/* Replaces the safetensors file by one with these indices. Returns the digest of the new file. */
static struct digest write_blob(const struct scene *s, const int32_t *indices)
{
	static const char header[] = "{\"i\":{\"dtype\":\"I32\",\"shape\":[4],\"data_offsets\":[0,16]}}";
	uint64_t length = sizeof header - 1;
	unsigned char all[8 + sizeof header - 1 + INDICES * sizeof *indices];
	char path[64];
	FILE *out;

	snprintf(path, sizeof path, "%s/blob.safetensors", s->root);
	out = fopen(path, "wb");
	assert_non_null(out);
	memcpy(all, &length, 8);
	memcpy(all + 8, header, length);
	memcpy(all + 8 + length, indices, INDICES * sizeof *indices);
	assert_int_equal(fwrite(all, sizeof all, 1, out), 1);
	assert_int_equal(fclose(out), 0);
	return digest_of(all, sizeof all);
}

/* Fills the inputs. If `indices` is NULL, the family generates all inputs. Otherwise, the safetensors file provides
 * kv_indices. */
static void set_up(struct scene *s, const int32_t *indices)
{
	static const int64_t var[] = {2, PAGES, 3, INDICES};
	struct rejection rejection = {.why = {""}};
	struct err err = {""};

	memset(s, 0, sizeof *s);
	strcpy(s->root, "/tmp/reftest-given-XXXXXX");
	assert_non_null(mkdtemp(s->root));
	build_problem(&s->built);
	for (int a = 0, v = 0; a < s->built.problem.axis_count; a++)
		s->axis[a] = s->built.axes[a].var ? var[v++] : s->built.axes[a].value;
	if (indices != NULL) {
		s->sources[4] = (struct input_source){.kind = SOURCE_SAFETENSORS, .path = "blob.safetensors",
		                                      .tensor_key = "i", .content = write_blob(s, indices)};
	}
	s->job = (struct job){.problem = s->built.problem, .axis = s->axis, .inputs = s->sources, .root = s->root};
	s->c = (struct op_case){.problem = &s->job.problem, .axis = s->axis, .given = case_inputs_given(&s->job)};
	s->c.scalar[5] = 0.35;
	s->device = device_open_cpu(&err);
	assert_non_null(s->device);
	s->tensors = tensors_new();
	for (int i = 0; i < 5; i++)
		s->in[i] = make_tensor(&s->c, &s->built.inputs[i]);
	assert_int_equal(case_inputs_fill(s->device, s->tensors, &s->job, &gqa_paged_op, &s->c, s->in, &rejection), 0);
}

static void tear_down(struct scene *s)
{
	char path[64];

	tensors_free(s->tensors);
	for (int i = 0; i < 5; i++)
		free(s->in[i].data);
	s->device->calls->close(s->device);
	snprintf(path, sizeof path, "%s/blob.safetensors", s->root);
	unlink(path);
	assert_int_equal(rmdir(s->root), 0);
}

static int check(struct scene *s, struct rejection *rejection)
{
	struct arena arena = {0};
	int rc = case_inputs_check(s->device, &s->job, &gqa_paged_op, &s->c, s->in, &arena, rejection);

	arena_free(&arena);
	return rc;
}

static int poisoned_pages(const struct scene *s)
{
	int count = 0;

	for (int64_t row = 0; row < PAGES * 4; row++)
		count += is_nan_row(&s->in[1], row, 16);
	return count;
}

static void indices_that_a_workload_provides_meet_no_poison(void **state)
{
	static const int32_t indices[INDICES] = {5, 4, 3, 2};
	struct rejection rejection = {.why = {""}};
	struct scene s;

	(void)state;
	set_up(&s, indices);
	assert_int_equal(s.c.given, 1 << 4);
	assert_int_equal(poisoned_pages(&s), 0);
	assert_int_equal(check(&s, &rejection), 0);
	tear_down(&s);
	set_up(&s, NULL);
	assert_int_equal(s.c.given, 0);
	assert_true(poisoned_pages(&s) > 0);
	assert_int_equal(check(&s, &rejection), 0);
	tear_down(&s);
}

static void indices_that_point_nowhere_make_the_case_invalid(void **state)
{
	static const int32_t wild[INDICES] = {5, 4, PAGES, 2}, negative[INDICES] = {5, -1, 3, 2};
	struct rejection rejection = {.why = {""}};
	struct scene s;

	(void)state;
	set_up(&s, wild);
	assert_int_equal(check(&s, &rejection), -1);
	assert_int_equal(rejection.status, STATUS_INVALID);
	assert_non_null(strstr(rejection.why.text, "kv_indices has 6 at flat index 2"));
	tear_down(&s);
	set_up(&s, negative);
	assert_int_equal(check(&s, &rejection), -1);
	assert_int_equal(rejection.status, STATUS_INVALID);
	tear_down(&s);
}

/* The workload gives an axis an impossible length, so the case is invalid. */
static void axes_that_make_no_sense_make_the_case_invalid(void **state)
{
	struct rejection rejection = {.why = {""}};
	struct scene s;

	(void)state;
	set_up(&s, NULL);
	s.axis[4] = 0; /* the number of pages */
	assert_int_equal(case_inputs_fill(s.device, s.tensors, &s.job, &gqa_paged_op, &s.c, s.in, &rejection), -1);
	assert_int_equal(rejection.status, STATUS_INVALID);
	assert_string_equal(rejection.why.text, "kv_indices has 4 page numbers, but the caches have no page");
	tear_down(&s);
}

/* Fills the inputs twice and checks the results. The first result must be `known`, because this process has already
 * read the file. The second fill uses an empty table of tensors, like a new judge process, and its result must be
 * `unknown`. */
static void expect_fill(struct scene *s, enum reason known, enum reason unknown)
{
	for (int again = 0; again < 2; again++) {
		struct tensors *fresh = tensors_new();
		struct rejection rejection = {.why = {""}};
		enum reason wanted = again == 0 ? known : unknown;
		int rc = case_inputs_fill(s->device, again == 0 ? s->tensors : fresh, &s->job, &gqa_paged_op, &s->c,
					  s->in, &rejection);

		assert_int_equal(rc, wanted == REASON_NONE ? 0 : -1);
		assert_int_equal(rejection.reason, wanted);
		assert_true(wanted == REASON_NONE || rejection.status == STATUS_SKIPPED);
		assert_true(wanted == REASON_NONE || strstr(rejection.why.text, "blob.safetensors: ") != NULL);
		tensors_free(fresh);
	}
}

static void tensors_are_those_that_were_hashed_or_none(void **state)
{
	static const int32_t indices[INDICES] = {5, 4, 3, 2}, others[INDICES] = {5, 4, 2, 3};
	char path[64];
	struct scene s;

	(void)state;
	set_up(&s, indices);
	snprintf(path, sizeof path, "%s/blob.safetensors", s.root);
	expect_fill(&s, REASON_NONE, REASON_NONE);
	write_blob(&s, others);
	expect_fill(&s, REASON_CHANGED, REASON_CHANGED);
	write_blob(&s, indices);
	expect_fill(&s, REASON_NONE, REASON_NONE);
	assert_memory_equal(s.in[4].data, indices, sizeof indices);
	assert_int_equal(truncate(path, 70), 0);
	expect_fill(&s, REASON_CHANGED, REASON_CHANGED);
	assert_int_equal(truncate(path, 3), 0);
	expect_fill(&s, REASON_CHANGED, REASON_CHANGED);
	assert_int_equal(unlink(path), 0);
	expect_fill(&s, REASON_CHANGED, REASON_MISSING_BLOB);
	s.sources[4].content = write_blob(&s, others); /* simulates a later run, whose job has the digest of the new
						        * file */
	expect_fill(&s, REASON_NONE, REASON_NONE);
	assert_memory_equal(s.in[4].data, others, sizeof others);
	tear_down(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(indices_that_a_workload_provides_meet_no_poison),
	    cmocka_unit_test(indices_that_point_nowhere_make_the_case_invalid),
	    cmocka_unit_test(tensors_are_those_that_were_hashed_or_none),
	    cmocka_unit_test(axes_that_make_no_sense_make_the_case_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
