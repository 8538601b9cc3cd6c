/* test_job - the message with which a case is sent to the judge: a valid message is read completely, and a damaged one
 * is rejected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "workers/protocol/job.h"

static const struct axis axes[] = {{"batch", true, 0}, {"hidden", false, 4096}};
static const struct tensor_spec inputs[] = {
    {.name = "x", .dtype = DTYPE_BFLOAT16, .rank = 2, .axis = {0, 1}},
    {.name = "scale", .dtype = DTYPE_FLOAT32, .rank = RANK_SCALAR, .description = "0 \"stands\" for 1"},
    {.name = "state", .dtype = DTYPE_FLOAT4_E2M1, .rank = 1, .axis = {1}, .optional = true},
    {.name = "length", .dtype = DTYPE_INT32, .rank = 0},
};
static const struct tensor_spec outputs[] = {{.name = "y", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {0, 1}}};
static const char *const tags[] = {"model:\"quoted\"", "status:verified"};
static const struct definition definition = {
    .name = "rmsnorm_h4096", .op_type = "rmsnorm", .description = "line\nline", .tags = tags, .tag_count = 2,
    .axes = axes, .axis_count = 2, .inputs = inputs, .input_count = 4, .outputs = outputs, .output_count = 1,
};
static const struct input_source sources[] = {
    {.kind = SOURCE_SAFETENSORS, .path = "blob/a.safetensors", .tensor_key = "x",
     .content = {{0x01, 0xfe}}},
    {.kind = SOURCE_SCALAR, .scalar_kind = SCALAR_INT, .integer = INT64_MIN, .number = -0x1p63},
    {.kind = SOURCE_ABSENT},
    {.kind = SOURCE_CUSTOM},
};
static const bool given[] = {true, false};
static const struct input_code input_code = {
    .kind = INPUT_CODE_INIT, .function = "_norm_init", .place = "x.json:3:4", .given = given};
static const int64_t axis[] = {3, 4096};
static const char *const constraints[] = {"x.shape[0] == batch"};
static const struct rule rules[] = {{8e-3, 1e-2, 0.85}};

static struct job the_job(struct arena *arena)
{
	return (struct job){
	    .id = "workload:1", .problem = problem_of(&definition, arena), .op = "rmsnorm", .axis = axis,
	    .seed = UINT64_MAX, .edge = OP_EDGES, .runs = JOB_RUNS_SECOND, .bench = true, .checks = true, .compare_bits = true, .chosen_axes = true, .input_code = &input_code, .asks = JOB_GRADIENTS, .inputs = sources, .constraints = constraints, .constraint_count = 1,
	    .constants = {{"eps", NAN, "unattested", ""}, {"k", 1e-6, "name", "the description says 1e-5"}},
	    .constant_count = 2, .rules = rules, .root = "/data/set",
	};
}

static struct job *read_text(const char *text, struct arena *arena, struct err *err)
{
	struct json_text json = {"case", text, strlen(text), 1};
	cJSON *tree = json_parse(&json, err);
	struct job *job;

	assert_non_null(tree);
	job = job_read(tree, arena, err);
	cJSON_Delete(tree);
	return job;
}

static void what_is_written_reads_back_the_same(void **state)
{
	struct arena arena = {0};
	struct buf text = {0}, again = {0};
	struct err err = {""};
	struct job job = the_job(&arena), *back;

	(void)state;
	job_write(&job, &text);
	assert_null(strchr(text.data, '\n'));
	back = read_text(text.data, &arena, &err);
	assert_non_null(back);
	job_write(back, &again);
	assert_string_equal(text.data, again.data);

	assert_true(back->seed == UINT64_MAX);
	assert_string_equal(back->problem.inputs[1].description, "0 \"stands\" for 1");
	assert_int_equal(back->edge, OP_EDGES);
	assert_true(back->chosen_axes);
	assert_string_equal(back->input_code->function, "_norm_init");
	assert_string_equal(back->input_code->place, "x.json:3:4");
	assert_true(back->input_code->given[0] && !back->input_code->given[1]);
	assert_int_equal(back->runs, JOB_RUNS_SECOND);
	assert_true(back->checks && back->compare_bits);
	assert_true(back->bench);
	assert_true(back->asks == JOB_GRADIENTS);
	assert_true(digest_equal(&back->inputs[0].content, &sources[0].content));
	assert_true(back->inputs[1].integer == INT64_MIN);
	assert_true(isnan(back->constants[0].value));
	assert_true(back->constants[1].value == 1e-6);
	assert_true(back->rules[0].atol == 8e-3);
	assert_null(back->no_truth);
	assert_int_equal(back->problem.inputs[1].rank, OP_SCALAR);
	assert_int_equal(back->problem.inputs[3].rank, 0);
	assert_true(back->problem.axes[0].var);
	assert_string_equal(back->problem.tags[0], tags[0]);
	buf_free(&text);
	buf_free(&again);
	arena_free(&arena);
}

static void an_edge_that_no_family_can_have_is_refused(void **state)
{
	struct arena arena = {0};
	struct buf text = {0};
	struct err err = {""};
	struct job job = the_job(&arena);

	(void)state;
	job.edge = OP_EDGES + 1;
	job_write(&job, &text);
	assert_null(read_text(text.data, &arena, &err));
	assert_non_null(strstr(err.text, "\"edge\""));
	buf_free(&text);
	arena_free(&arena);
}

static void custom_inputs_without_code_are_refused(void **state)
{
	struct arena arena = {0};
	struct buf text = {0};
	struct err err = {""};
	struct job job = the_job(&arena);

	(void)state;
	job.input_code = NULL;
	job_write(&job, &text);
	assert_null(read_text(text.data, &arena, &err));
	assert_non_null(strstr(err.text, "\"input_code\""));
	buf_free(&text);
	arena_free(&arena);
}

static void a_job_without_a_family_says_why(void **state)
{
	struct arena arena = {0};
	struct buf text = {0};
	struct err err = {""};
	struct job job = the_job(&arena), *back;

	(void)state;
	job.op = NULL;
	job.no_truth = "no family knows op_type 'rope'";
	job_write(&job, &text);
	back = read_text(text.data, &arena, &err);
	assert_non_null(back);
	assert_null(back->op);
	assert_string_equal(back->no_truth, job.no_truth);
	buf_free(&text);
	arena_free(&arena);
}

/* Every member is needed. If a member is renamed, the text is rejected, and the error message names the missing
 * member. */
static void a_job_that_lacks_a_member_is_refused(void **state)
{
	static const char *const members[] = {
	    "\"id\"", "\"name\"", "\"op_type\"", "\"description\"", "\"tags\"", "\"axes\"", "\"axis\"", "\"inputs\"",
	    "\"outputs\"", "\"dtype\"", "\"seed\"", "\"sources\"", "\"kind\"", "\"path\"", "\"content\"", "\"integer\"",
	    "\"constraints\"", "\"constants\"", "\"value\":1e-06", "\"rules\"", "\"rtol\"", "\"root\"",
	};
	struct arena arena = {0};
	struct buf text = {0};
	struct job job = the_job(&arena);

	(void)state;
	job_write(&job, &text);
	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
		char *damaged = arena_string(&arena, text.data), *place = strstr(damaged, members[i]);
		struct err err = {""};

		assert_non_null(place);
		place[1] = '~';
		assert_null(read_text(damaged, &arena, &err));
		assert_non_null(strstr(err.text, "cannot parse a case"));
	}
	buf_free(&text);
	arena_free(&arena);
}

static void numbers_out_of_range_are_refused(void **state)
{
	static const struct {
		const char *then, *now;
	} damages[] = {
	    {"\"shape\":[0,1]", "\"shape\":[0,2]"},     {"\"shape\":[0,1]", "\"shape\":[1e3]"},
	    {"\"axis\":[3,4096]", "\"axis\":[-1,409]"}, {"\"axis\":[3,4096]", "\"axis\":[34096 ]"},
	    {"\"kind\":2", "\"kind\":9"},               {"\"scalar\":0", "\"scalar\":7"},
	    {"\"seed\":\"1", "\"seed\":\"x"},           {"bfloat16", "bfloat17"},
	};
	struct arena arena = {0};
	struct buf text = {0};
	struct job job = the_job(&arena);

	(void)state;
	job_write(&job, &text);
	for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
		char *damaged = arena_string(&arena, text.data), *place = strstr(damaged, damages[i].then);
		struct err err = {""};

		assert_non_null(place);
		assert_int_equal(strlen(damages[i].then), strlen(damages[i].now));
		memcpy(place, damages[i].now, strlen(damages[i].now));
		assert_null(read_text(damaged, &arena, &err));
	}
	buf_free(&text);
	arena_free(&arena);
}

static void more_inputs_than_a_case_can_hold_are_refused(void **state)
{
	struct tensor_spec many[OP_ARGS + 1];
	struct input_source random[OP_ARGS + 1] = {0};
	struct definition wide = definition;
	struct arena arena = {0};
	struct buf text = {0};
	struct err err = {""};
	struct job job = the_job(&arena);

	(void)state;
	for (int i = 0; i <= OP_ARGS; i++)
		many[i] = inputs[0];
	wide.inputs = many;
	wide.input_count = OP_ARGS + 1;
	job.problem = problem_of(&wide, &arena);
	job.inputs = random;
	job_write(&job, &text);
	assert_null(read_text(text.data, &arena, &err));
	assert_non_null(strstr(err.text, "\"inputs\""));
	buf_free(&text);
	arena_free(&arena);
}

static void bytes_are_counted_and_saturate(void **state)
{
	struct arena arena = {0};
	struct job job = the_job(&arena);
	int64_t huge[] = {INT64_MAX / 4, 4096}, empty[] = {0, INT64_MAX}, small[] = {1, 1};
	struct tensor tensor = job_tensor(&job.problem.inputs[0], huge);

	(void)state;
	assert_true(tensor.elements == INT64_MAX && job_tensor_bytes(&tensor) == INT64_MAX);
	tensor = job_tensor(&job.problem.inputs[0], empty);
	assert_true(tensor.elements == 0 && job_tensor_bytes(&tensor) == 0);
	tensor = job_tensor(&job.problem.inputs[2], axis);
	assert_int_equal(job_tensor_bytes(&tensor), 2048); /* the dtype has two elements in a byte */
	tensor = job_tensor(&job.problem.inputs[1], axis);
	assert_int_equal(job_tensor_bytes(&tensor), 0);
	tensor = job_tensor(&job.problem.inputs[3], axis);
	assert_int_equal(job_tensor_bytes(&tensor), 4);

	assert_true(job_bytes(&job) >= 2 * (3 * 4096 * 2 + 2048) + 3 * 3 * 4096 * 4);
	job.axis = huge;
	assert_true(job_bytes(&job) == INT64_MAX);
	job.axis = small;
	assert_true(job_bytes(&job) < 16384);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_written_reads_back_the_same),
	    cmocka_unit_test(custom_inputs_without_code_are_refused),
	    cmocka_unit_test(an_edge_that_no_family_can_have_is_refused),
	    cmocka_unit_test(a_job_without_a_family_says_why),
	    cmocka_unit_test(a_job_that_lacks_a_member_is_refused),
	    cmocka_unit_test(numbers_out_of_range_are_refused),
	    cmocka_unit_test(more_inputs_than_a_case_can_hold_are_refused),
	    cmocka_unit_test(bytes_are_counted_and_saturate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
