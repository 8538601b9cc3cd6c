/* integer_inputs - prints the integer and boolean inputs that reftest makes for cases, and the values of scalars:
 *
 *   integer_inputs FILE
 *
 * FILE is JSON: [[path of a definition, op_type, name, [{axis: value}…]]…]. Prints a JSON line for each case: {input:
 * value}. A value is a number or the list of the elements. The line is {} if no op family supports the definition.
 * bench/bare_loop.py gives these inputs to its loop, because references refuse random lengths, offsets and page
 * tables. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "dataset/definition_parse.h"
#include "kernels/core/device.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/kernels_library.h"
#include "workers/judge/case_inputs.h"
#include "workers/protocol/job.h"

enum { FILE_MAX = 64 << 20 };

static void must(bool fine, const char *what, const struct err *err)
{
	if (fine)
		return;
	fprintf(stderr, "integer_inputs: %s: %s\n", what, err->text);
	exit(1);
}

static void read_all(const char *path, struct buf *out)
{
	struct err err = {""};

	must(file_read(AT_FDCWD, path, FILE_MAX, out, NULL, &err) == FILE_OK, path, &err);
}

/* A definition and the op family that makes its inputs. */
struct subject {
	struct op_problem problem;
	const struct op *op; /* NULL if no op family supports the definition */
	int variant;
	const struct input_source *sources; /* all random */
};

static struct subject open_subject(const cJSON *entry, struct arena *arena)
{
	const char *path = cJSON_GetArrayItem(entry, 0)->valuestring;
	const struct op_entry *found;
	const struct definition *definition;
	struct buf bytes = {0};
	struct err err = {""};
	struct subject s = {0};

	read_all(path, &bytes);
	definition = definition_parse(path, cJSON_GetArrayItem(entry, 1)->valuestring,
				      cJSON_GetArrayItem(entry, 2)->valuestring, bytes.data, bytes.length, arena, &err);
	buf_free(&bytes);
	must(definition != NULL, path, &err);
	s.problem = problem_of(definition, arena);
	found = op_find(&s.problem, &s.variant, &err);
	s.op = found == NULL ? NULL : found->op;
	s.sources = arena_array(arena, (size_t)s.problem.input_count + 1, sizeof *s.sources);
	return s;
}

static int64_t *axes_of(const struct subject *s, const cJSON *axes, struct arena *arena)
{
	int64_t *axis = arena_array(arena, (size_t)s->problem.axis_count + 1, sizeof *axis);

	for (int a = 0; a < s->problem.axis_count; a++) {
		axis[a] = s->problem.axes[a].value;
		if (s->problem.axes[a].var)
			json_integer(json_member(axes, s->problem.axes[a].name), &axis[a]);
	}
	return axis;
}

static struct op_case case_of(const struct subject *s, const struct job *job)
{
	struct op_case c = {.problem = &s->problem, .variant = s->variant, .axis = job->axis};

	op_case_set_contents(&c, job->seed, CONTENTS_FIRST);
	if (s->op->constants != NULL)
		c.constant_count = s->op->constants(&s->problem, s->variant, c.constants);
	for (int i = 0; i < c.constant_count; i++)
		if (isnan(c.constants[i].value))
			c.constants[i].value = 1e-6;
	for (int i = 0; i < s->problem.input_count; i++)
		if (s->problem.inputs[i].rank == OP_SCALAR)
			case_inputs_set_scalar(job, s->op, &c, i);
	return c;
}

static void print_tensor(const struct tensor *tensor, struct buf *out)
{
	buf_text(out, "[");
	for (int64_t i = 0; i < tensor->elements; i++)
		buf_printf(out, "%s%.0f", i > 0 ? "," : "", dtype_load(tensor->data, tensor->dtype, i));
	buf_text(out, "]");
}

/* Tensors of floats are left out. */
static void print_case(struct device *device, const struct subject *s, const cJSON *axes, struct arena *arena)
{
	struct job job = {.id = "case", .problem = s->problem, .op = s->op->name, .axis = axes_of(s, axes, arena),
			  .inputs = s->sources, .root = "."};
	struct op_case c = case_of(s, &job);
	struct tensor in[OP_ARGS] = {0};
	struct rejection rejection = {.why = {""}};
	struct buf out = {0};

	for (int i = 0; i < s->problem.input_count; i++) {
		in[i] = job_tensor(&s->problem.inputs[i], job.axis);
		if (in[i].rank != OP_SCALAR && !dtype_is_float(in[i].dtype))
			in[i].data = device->calls->allocate(device, job_tensor_bytes(&in[i]), &rejection.why);
	}
	must(case_inputs_fill(device, NULL, &job, s->op, &c, in, &rejection) == 0, s->problem.name, &rejection.why);
	buf_text(&out, "{");
	for (int i = 0; i < s->problem.input_count; i++) {
		if (in[i].rank != OP_SCALAR && in[i].data == NULL)
			continue;
		buf_text(&out, out.length > 1 ? "," : "");
		buf_json_string(&out, s->problem.inputs[i].name);
		buf_text(&out, ":");
		if (in[i].rank == OP_SCALAR)
			buf_json_number(&out, c.scalar[i]);
		else
			print_tensor(&in[i], &out);
		device->calls->release(device, in[i].data);
	}
	printf("%s}\n", out.data);
	buf_free(&out);
}

int main(int argc, char **argv)
{
	struct err err = {""};
	struct device *device = device_open_cpu(&err);
	struct buf text = {0};
	const cJSON *entry, *axes;

	if (argc != 2) {
		fprintf(stderr, "usage: integer_inputs FILE\n");
		return 2;
	}
	must(device != NULL, "the CPU", &err);
	read_all(argv[1], &text);
	const struct json_text json = {argv[1], text.data, text.length, 1};
	cJSON *list = json_parse(&json, &err);

	must(list != NULL, argv[1], &err);
	cJSON_ArrayForEach(entry, list)
	{
		struct arena arena = {0};
		struct subject s = open_subject(entry, &arena);

		cJSON_ArrayForEach(axes, cJSON_GetArrayItem(entry, 3))
			if (s.op != NULL)
				print_case(device, &s, axes, &arena);
			else
				printf("{}\n");
		arena_free(&arena);
	}
	cJSON_Delete(list);
	buf_free(&text);
	device->calls->close(device);
	return 0;
}
