/* test_invalid_workload_inputs - op.check rejects meaningless inputs that a workload provides: bad indices, offsets and
 * lengths, and NaN where a number is needed. The test covers every definition of the starter dataset, and therefore
 * every op family. If op.check accepts the inputs, the oracle must not read beyond its tensors; builds with sanitizers
 * check this. The table `meanings` lists the inputs for which any content is valid, with the reason. Each input of a
 * family must either be checked by op.check or be listed in the table, otherwise the test fails. */
#include "tests/unit/trial.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/buf.h"
#include "base/file.h"
#include "dataset/definition_parse.h"
#include "workers/protocol/job.h"

enum { BYTES_MOST = 16 << 20, PLACES = 6, FAMILIES = 64 };

/* Inputs for which any content is valid. */
static const struct {
	const char *family, *inputs, *meaning; /* inputs: the names of the inputs, with blanks around each name */
} meanings[] = {
    {"sampling", " top_k ", "0 and below: no filter; above the vocabulary: all of it"},
    {"rope", " pos_ids ", "an angle, whatever it is; where they are rows of a table they are looked at"},
    {"gqa_paged", " q k_cache v_cache ", "what no offset or index leads to may hold anything"},
    {"mla_paged", " q_nope q_pe ckv_cache kpe_cache ", "the same"},
    {"gqa_ragged", " q k v ", "the same"},
    {"mla_ragged", " q k v ", "the same"},
    {"dsa_paged", " q_nope q_pe ckv_cache kpe_cache ", "the same"},
};

struct tally {
	bool seen[FAMILIES]; /* seen[i]: the family op_table[i] was tested */
	int inputs, silent;
};

static bool has_a_meaning(const char *family, const char *input)
{
	char name[128];

	snprintf(name, sizeof name, " %s ", input);
	for (int i = 0; i < COUNT(meanings); i++)
		if (strcmp(meanings[i].family, family) == 0 && strstr(meanings[i].inputs, name) != NULL)
			return true;
	return false;
}

/* Returns true if op.check rejects the case. A rejection must have a message. */
static bool refused(const struct trial *t)
{
	struct err why = {""};

	if (t->op->check == NULL || t->op->check(&t->c, t->in, &why) == 0)
		return false;
	assert_true(why.text[0] != '\0');
	return true;
}

/* At some positions of the tensor, stores each of `values`, one after the other. Returns true if there is a position at
 * which op.check rejects all values. */
static bool refuses_all(struct trial *t, int input, const double *values, int count)
{
	struct tensor *tensor = &t->in[input];
	int64_t step = tensor->elements / PLACES + 1;
	bool tried = false;

	for (int64_t at = 0; at < tensor->elements; at += step) {
		double kept = dtype_load(tensor->data, tensor->dtype, at);
		int through = 0;

		for (int i = 0; i < count; i++) {
			struct err why = {""};

			dtype_store(tensor->data, tensor->dtype, at, values[i]);
			if (refused(t))
				continue;
			through++;
			if (!tried)
				t->op->oracle(&t->c, t->in, t->truth, &why);
			tried = true;
		}
		dtype_store(tensor->data, tensor->dtype, at, kept);
		if (through == 0)
			return true;
	}
	return false;
}

static void look_at_input(struct trial *t, int input, struct tally *tally)
{
	static const double wild[] = {-2147483648.0, 2147483647.0}, none[] = {NAN};
	const struct op_arg *arg = &t->problem->inputs[input];
	bool index = arg->dtype == DTYPE_INT32 || arg->dtype == DTYPE_INT64;
	bool number = dtype_is_float(arg->dtype) && arg->dtype != DTYPE_FLOAT4_E2M1;

	if (arg->rank == OP_SCALAR || t->in[input].elements == 0 || !(index || number))
		return;
	tally->inputs++;
	bool found = index ? refuses_all(t, input, wild, COUNT(wild)) : refuses_all(t, input, none, COUNT(none));

	if (found != has_a_meaning(t->op->name, arg->name))
		return;
	tally->silent++;
	print_error("%s: input '%s' of %s may hold %s and nothing is said\n", t->problem->name, arg->name, t->op->name,
		    index ? "any integer" : "NaN");
}

static void look_at_definition(const char *path, struct tally *tally)
{
	int64_t axis[TRIAL_ROWS * TRIAL_AXES], bytes = 0;
	struct buf text = {0};
	struct err err = {""};
	struct arena arena = {0};
	struct trial t;

	assert_int_equal(file_read(AT_FDCWD, path, DEFINITION_BYTES, &text, NULL, &err), FILE_OK);
	const struct definition *definition = definition_parse(path, NULL, NULL, text.data, text.length, &arena, &err);

	assert_string_equal(err.text, "");
	struct op_problem problem = problem_of(definition, &arena);
	int variant;
	const struct op_entry *entry = op_find(&problem, &variant, &err);

	assert_non_null(entry);
	assert_true(problem.axis_count <= TRIAL_AXES);
	int rows = entry->op->sizes(&problem, variant, SIZE_SMALL, axis, TRIAL_ROWS);

	for (int i = 0; i < problem.input_count; i++) {
		struct tensor tensor = job_tensor(&problem.inputs[i], axis + (rows - 1) * problem.axis_count);

		bytes += job_tensor_bytes(&tensor);
	}
	if (bytes <= BYTES_MOST) {
		tally->seen[entry - op_table] = true;
		trial_open(&t, entry->op, &problem, axis + (rows - 1) * problem.axis_count, 1);
		t.c.given = UINT32_MAX;
		if (refused(&t))
			fail_msg("%s: an input that the family generates itself is rejected", path);
		for (int i = 0; i < problem.input_count; i++)
			look_at_input(&t, i, tally);
		trial_close(&t);
	}
	arena_free(&arena);
	buf_free(&text);
}

static void look_at_folder(const char *op_type, struct tally *tally)
{
	char folder[512], path[1024];
	DIR *files;

	snprintf(folder, sizeof folder, "definitions/%s", op_type);
	files = opendir(folder);
	assert_non_null(files);
	for (struct dirent *file; (file = readdir(files)) != NULL;)
		if (file->d_name[0] != '.') {
			snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
			look_at_definition(path, tally);
		}
	closedir(files);
}

static void what_means_nothing_is_refused_in_every_input_of_every_family(void **state)
{
	struct tally tally = {0};
	DIR *folders = opendir("definitions");

	(void)state;
	assert_non_null(folders);
	assert_true(op_count <= FAMILIES);
	for (struct dirent *folder; (folder = readdir(folders)) != NULL;)
		if (folder->d_name[0] != '.')
			look_at_folder(folder->d_name, &tally);
	closedir(folders);
	for (int i = 0; i < op_count; i++)
		if (!tally.seen[i])
			fail_msg("no definition of the starter dataset tests the inputs that a workload may provide to %s",
			         op_table[i].op->name);
	assert_true(tally.inputs > 200);
	assert_int_equal(tally.silent, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_means_nothing_is_refused_in_every_input_of_every_family),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
