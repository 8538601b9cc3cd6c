/* job - reads and writes the JSON form of a job:
 *
 *   {"id", "name", "op_type", "description", "tags": [text], "axes": [{"name", "value" (null: var)}],
 *    "inputs" and "outputs": [{"name", "dtype", "shape": [axis number] | null, "optional", "description"}],
 *    "op": text | null, "no_truth": text | null, "axis": [value], "seed": "decimal", "edge": "decimal",
 *    "runs": "decimal", "bench": bool, "chosen_axes": bool, "inputs_are_valid": bool, "chain": text | null, "fi_api": text | null,
 *    "arguments": [text], "gradients": bool, "sources": [{"kind", …}], "constraints": [text],
 *    "constants": [{"name", "value", "source", "conflict"}], "rules": [{"atol", "rtol", "hit_ratio"}],
 *    "input_code": {"kind", "function", "place", "given": [bool]}, or omitted,
 *    "second_rules": like "rules", or omitted, "checks": bool, "compare_bits": bool, "no_diagnosis": bool,
 *    "contiguous": bool, "save": text | null, "error_cap", "root", "all",
 *    "truths": [{"name", "version", "refused": text | null, "related": text | null, "place": text | null,
 *     "program": bool, "chain": bool}]}
 *
 * The array "axis" has the lengths of the axes, in the order of "axes". "sources" has one element for each input,
 * "given" has one element for each axis, and "rules" has one element for each output. The seed is text because JSON's
 * integers are exact only up to 2^53. NaN and infinities are written as the texts "nan", "inf" and "-inf"
 * (buf_json_number). */
#include "workers/protocol/job.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "workers/protocol/layout.h"

struct op_problem problem_of(const struct definition *definition, struct arena *arena)
{
	struct op_axis *axes = arena_array(arena, (size_t)definition->axis_count, sizeof *axes);
	struct op_arg *args[2];
	const struct tensor_spec *specs[2] = {definition->inputs, definition->outputs};
	const int counts[2] = {definition->input_count, definition->output_count};

	for (int i = 0; i < definition->axis_count; i++) {
		const struct axis *axis = &definition->axes[i];

		axes[i] = (struct op_axis){axis->name, axis->var, axis->value};
	}
	for (int side = 0; side < 2; side++) {
		args[side] = arena_array(arena, (size_t)counts[side], sizeof *args[side]);
		for (int i = 0; i < counts[side]; i++) {
			const struct tensor_spec *spec = &specs[side][i];
			struct op_arg *arg = &args[side][i];

			*arg = (struct op_arg){.name = spec->name, .dtype = spec->dtype, .rank = spec->rank,
			                       .optional = spec->optional, .description = spec->description};
			for (int d = 0; d < spec->rank; d++)
				arg->axis[d] = spec->axis[d];
		}
	}
	return (struct op_problem){
	    .name = definition->name,
	    .op_type = definition->op_type,
	    .description = definition->description,
	    .tags = definition->tags,
	    .tag_count = definition->tag_count,
	    .axes = axes,
	    .axis_count = definition->axis_count,
	    .inputs = args[0],
	    .input_count = definition->input_count,
	    .outputs = args[1],
	    .output_count = definition->output_count,
	};
}

bool job_inputs_are_known(const struct job *job)
{
	if (job->inputs_are_valid)
		return true;
	for (int i = 0; i < job->problem.input_count; i++)
		if (job->inputs[i].kind == SOURCE_RANDOM)
			return false;
	return true;
}

struct tensor job_tensor(const struct op_arg *arg, const int64_t *axis)
{
	struct tensor out = {.dtype = arg->dtype, .rank = arg->rank, .elements = 1};
	bool empty = false;

	for (int d = 0; d < arg->rank; d++) {
		out.shape[d] = axis[arg->axis[d]];
		empty = empty || out.shape[d] == 0;
		if (__builtin_mul_overflow(out.elements, out.shape[d], &out.elements))
			out.elements = INT64_MAX;
	}
	if (empty)
		out.elements = 0;
	return out;
}

int64_t job_tensor_bytes(const struct tensor *tensor)
{
	if (tensor->rank == OP_SCALAR)
		return 0;
	if (tensor->elements > INT64_MAX / dtype_bits(tensor->dtype) - 7)
		return INT64_MAX;
	return dtype_bytes(tensor->dtype, tensor->elements);
}

/* Returns the number of bytes that a tensor needs in the shared arena: its size, rounded up, and the gap after it. */
static int64_t placed_bytes(const struct op_arg *arg, const int64_t *axis)
{
	struct tensor tensor = job_tensor(arg, axis);

	return layout_add(layout_round(job_tensor_bytes(&tensor)), LAYOUT_GAP);
}

int64_t job_arena_bytes(const struct job *job)
{
	const struct op_problem *problem = &job->problem;
	int64_t total = LAYOUT_GAP + (2 * (problem->input_count + problem->output_count) + 3) * (int64_t)LAYOUT_ALIGN;

	for (int i = 0; i < problem->input_count; i++)
		total = layout_add(total, placed_bytes(&problem->inputs[i], job->axis));
	for (int i = 0; i < problem->output_count; i++)
		total = layout_add(total, placed_bytes(&problem->outputs[i], job->axis));
	return total;
}

int64_t job_bytes(const struct job *job)
{
	const struct op_problem *problem = &job->problem;
	int64_t total = 4 * LAYOUT_GAP;

	for (int i = 0; i < problem->input_count; i++)
		for (int copy = 0; copy < 3; copy++)
			total = layout_add(total, placed_bytes(&problem->inputs[i], job->axis));
	for (int i = 0; i < problem->output_count; i++)
		for (int copy = 0; copy < 5; copy++)
			total = layout_add(total, placed_bytes(&problem->outputs[i], job->axis));
	return total;
}

static void write_text(struct buf *out, const char *key, const char *text)
{
	buf_printf(out, ",\"%s\":", key);
	if (text == NULL)
		buf_text(out, "null");
	else
		buf_json_string(out, text);
}

static void write_number(struct buf *out, const char *key, double value)
{
	buf_printf(out, ",\"%s\":", key);
	buf_json_number(out, value);
}

static void write_texts(struct buf *out, const char *key, const char *const *texts, int count)
{
	buf_printf(out, ",\"%s\":[", key);
	for (int i = 0; i < count; i++) {
		buf_text(out, i > 0 ? "," : "");
		buf_json_string(out, texts[i]);
	}
	buf_text(out, "]");
}

static void write_axes(struct buf *out, const struct job *job)
{
	buf_text(out, ",\"axes\":[");
	for (int i = 0; i < job->problem.axis_count; i++) {
		const struct op_axis *axis = &job->problem.axes[i];

		buf_text(out, i > 0 ? ",{\"name\":" : "{\"name\":");
		buf_json_string(out, axis->name);
		if (axis->var)
			buf_text(out, ",\"value\":null}");
		else
			buf_printf(out, ",\"value\":%" PRId64 "}", axis->value);
	}
	buf_text(out, "],\"axis\":[");
	for (int i = 0; i < job->problem.axis_count; i++)
		buf_printf(out, "%s%" PRId64, i > 0 ? "," : "", job->axis[i]);
	buf_text(out, "]");
}

static void write_args(struct buf *out, const char *key, const struct op_arg *args, int count)
{
	buf_printf(out, ",\"%s\":[", key);
	for (int i = 0; i < count; i++) {
		buf_text(out, i > 0 ? ",{\"name\":" : "{\"name\":");
		buf_json_string(out, args[i].name);
		buf_printf(out, ",\"dtype\":\"%s\",\"shape\":", dtype_name(args[i].dtype));
		if (args[i].rank == OP_SCALAR) {
			buf_text(out, "null");
		} else {
			buf_text(out, "[");
			for (int d = 0; d < args[i].rank; d++)
				buf_printf(out, "%s%d", d > 0 ? "," : "", args[i].axis[d]);
			buf_text(out, "]");
		}
		buf_text(out, args[i].optional ? ",\"optional\":true" : "");
		if (args[i].description != NULL && args[i].description[0] != '\0')
			write_text(out, "description", args[i].description);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void write_sources(struct buf *out, const struct job *job)
{
	buf_text(out, ",\"sources\":[");
	for (int i = 0; i < job->problem.input_count; i++) {
		const struct input_source *source = &job->inputs[i];
		char hex[DIGEST_HEX];

		buf_printf(out, "%s{\"kind\":%d", i > 0 ? "," : "", (int)source->kind);
		if (source->kind == SOURCE_SCALAR) {
			buf_printf(out, ",\"scalar\":%d,\"integer\":\"%" PRId64 "\"", (int)source->scalar_kind, source->integer);
			write_number(out, "number", source->number);
		}
		if (source->kind == SOURCE_SAFETENSORS) {
			write_text(out, "path", source->path);
			write_text(out, "tensor_key", source->tensor_key);
			digest_hex(&source->content, hex);
			write_text(out, "content", hex);
		}
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void write_input_code(struct buf *out, const struct job *job)
{
	const struct input_code *code = job->input_code;

	buf_printf(out, ",\"input_code\":{\"kind\":%d", (int)code->kind);
	write_text(out, "function", code->function);
	write_text(out, "place", code->place);
	buf_text(out, ",\"given\":[");
	for (int i = 0; i < job->problem.axis_count; i++)
		buf_printf(out, "%s%s", i > 0 ? "," : "", code->given[i] ? "true" : "false");
	buf_text(out, "]}");
}

static void write_constants(struct buf *out, const struct job *job)
{
	buf_text(out, ",\"constants\":[");
	for (int i = 0; i < job->constant_count; i++) {
		const struct op_constant *constant = &job->constants[i];

		buf_text(out, i > 0 ? ",{\"name\":" : "{\"name\":");
		buf_json_string(out, constant->name);
		write_number(out, "value", constant->value);
		write_text(out, "source", constant->source);
		write_text(out, "conflict", constant->conflict);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void write_rules(struct buf *out, const char *key, const struct rule *rules, int count)
{
	buf_printf(out, ",\"%s\":[", key);
	for (int i = 0; i < count; i++) {
		buf_text(out, i > 0 ? ",{\"atol\":" : "{\"atol\":");
		buf_json_number(out, rules[i].atol);
		write_number(out, "rtol", rules[i].rtol);
		write_number(out, "hit_ratio", rules[i].hit_ratio);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

static void write_arguments(struct buf *out, const struct job *job)
{
	write_text(out, "fi_api", job->fi_api);
	buf_text(out, ",\"arguments\":[");
	for (int i = 0; job->fi_api != NULL && i < job->problem.input_count; i++) {
		buf_text(out, i > 0 ? "," : "");
		buf_json_string(out, job->arguments[i]);
	}
	buf_text(out, "]");
}

static void write_truths(struct buf *out, const struct truths *truths)
{
	buf_printf(out, ",\"all\":%s,\"truths\":[", truths->all ? "true" : "false");
	for (int i = 0; i < truths->count; i++) {
		buf_text(out, i > 0 ? ",{\"name\":" : "{\"name\":");
		buf_json_string(out, truths->items[i].name);
		write_text(out, "version", truths->items[i].version);
		write_text(out, "refused", truths->items[i].refused);
		write_text(out, "related", truths->items[i].related);
		write_text(out, "place", truths->items[i].place);
		buf_printf(out, ",\"program\":%s,\"chain\":%s}", truths->items[i].program ? "true" : "false",
			   truths->items[i].chain ? "true" : "false");
	}
	buf_text(out, "]");
}

void job_write(const struct job *job, struct buf *out)
{
	const struct op_problem *problem = &job->problem;

	buf_text(out, "{\"id\":");
	buf_json_string(out, job->id);
	write_text(out, "name", problem->name);
	write_text(out, "op_type", problem->op_type);
	write_text(out, "description", problem->description);
	write_texts(out, "tags", problem->tags, problem->tag_count);
	write_axes(out, job);
	write_args(out, "inputs", problem->inputs, problem->input_count);
	write_args(out, "outputs", problem->outputs, problem->output_count);
	write_text(out, "op", job->op);
	write_text(out, "no_truth", job->no_truth);
	buf_printf(out, ",\"seed\":\"%" PRIu64 "\"", job->seed);
	buf_printf(out, ",\"edge\":\"%d\"", job->edge);
	buf_printf(out, ",\"chosen_axes\":%s", job->chosen_axes ? "true" : "false");
	buf_printf(out, ",\"inputs_are_valid\":%s", job->inputs_are_valid ? "true" : "false");
	write_text(out, "chain", job->chain);
	write_arguments(out, job);
	buf_printf(out, ",\"runs\":\"%d\"", (int)job->runs);
	buf_printf(out, ",\"bench\":%s", job->bench ? "true" : "false");
	buf_printf(out, ",\"gradients\":%s", job->asks == JOB_GRADIENTS ? "true" : "false");
	write_sources(out, job);
	if (job->input_code != NULL)
		write_input_code(out, job);
	write_texts(out, "constraints", job->constraints, job->constraint_count);
	write_constants(out, job);
	write_rules(out, "rules", job->rules, job->problem.output_count);
	if (job->second_rules != NULL)
		write_rules(out, "second_rules", job->second_rules, job->problem.output_count);
	buf_printf(out, ",\"checks\":%s", job->checks ? "true" : "false");
	buf_printf(out, ",\"compare_bits\":%s", job->compare_bits ? "true" : "false");
	buf_printf(out, ",\"no_diagnosis\":%s", job->no_diagnosis ? "true" : "false");
	buf_printf(out, ",\"contiguous\":%s", job->contiguous ? "true" : "false");
	write_text(out, "save", job->save);
	write_number(out, "error_cap", job->error_cap);
	write_text(out, "root", job->root);
	write_truths(out, &job->truths);
	buf_text(out, "}");
}

/* The state of reading a job from JSON. Only the first error is reported. After an error, all further values are read
 * as empty. */
struct reader {
	struct arena *arena;
	const char *wrong; /* the key at which the first error occurred; NULL: there was no error */
};

static void wrong(struct reader *at, const char *what)
{
	if (at->wrong == NULL)
		at->wrong = what;
}

static const char *read_text(struct reader *at, const cJSON *object, const char *key)
{
	const char *text = json_text_of(object, key);

	return text == NULL ? NULL : arena_string(at->arena, text);
}

static const char *need_text(struct reader *at, const cJSON *object, const char *key)
{
	const char *text = read_text(at, object, key);

	if (text == NULL)
		wrong(at, key);
	return text == NULL ? "" : text;
}

static double read_number(struct reader *at, const cJSON *object, const char *key)
{
	const cJSON *value = json_member(object, key);

	if (cJSON_IsNumber(value))
		return value->valuedouble;
	if (cJSON_IsString(value) && strcmp(value->valuestring, "nan") == 0)
		return NAN;
	if (cJSON_IsString(value) && strcmp(value->valuestring, "inf") == 0)
		return INFINITY;
	if (cJSON_IsString(value) && strcmp(value->valuestring, "-inf") == 0)
		return -INFINITY;
	wrong(at, key);
	return 0;
}

/* Returns the array `key` and sets `count` to its length. If the key is missing, if its value is not an array, or if
 * the array has more than `most` members, returns NULL and sets `count` to 0. */
static const cJSON *read_array(struct reader *at, const cJSON *object, const char *key, int most, int *count)
{
	const cJSON *array = json_member(object, key);

	*count = cJSON_IsArray(array) ? cJSON_GetArraySize(array) : 0;
	if (!cJSON_IsArray(array) || *count > most) {
		wrong(at, key);
		*count = 0;
	}
	return *count > 0 ? array->child : NULL;
}

static const char *const *read_texts(struct reader *at, const cJSON *object, const char *key, int *count)
{
	const cJSON *item = read_array(at, object, key, INT32_MAX, count);
	const char **texts = arena_array(at->arena, (size_t)*count, sizeof *texts);

	for (int i = 0; i < *count; i++, item = item->next) {
		texts[i] = cJSON_IsString(item) ? arena_string(at->arena, item->valuestring) : "";
		if (!cJSON_IsString(item))
			wrong(at, key);
	}
	return texts;
}

static uint64_t read_whole(struct reader *at, const cJSON *object, const char *key, bool negative)
{
	const char *text = json_text_of(object, key);
	char *end = NULL;
	uint64_t value = 0;

	errno = 0;
	if (text != NULL)
		value = negative ? (uint64_t)strtoll(text, &end, 10) : strtoull(text, &end, 10);
	if (text == NULL || end == text || *end != '\0' || errno != 0)
		wrong(at, key);
	return value;
}

static void read_axes(struct reader *at, const cJSON *json, struct job *job)
{
	int count, values;
	const cJSON *item = read_array(at, json, "axes", INT32_MAX, &count);
	struct op_axis *axes = arena_array(at->arena, (size_t)count, sizeof *axes);
	int64_t *axis = arena_array(at->arena, (size_t)count, sizeof *axis);

	for (int i = 0; i < count; i++, item = item->next) {
		const cJSON *value = json_member(item, "value");

		axes[i].name = need_text(at, item, "name");
		axes[i].var = cJSON_IsNull(value);
		if (!axes[i].var && !json_integer(value, &axes[i].value))
			wrong(at, "axes");
	}
	item = read_array(at, json, "axis", INT32_MAX, &values);
	if (values != count)
		wrong(at, "axis");
	for (int i = 0; i < values && i < count; i++, item = item->next)
		if (!json_integer(item, &axis[i]) || axis[i] < 0)
			wrong(at, "axis");
	job->problem.axes = axes;
	job->problem.axis_count = count;
	job->axis = axis;
}

static void read_arg(struct reader *at, const cJSON *json, int axis_count, struct op_arg *arg)
{
	const cJSON *shape = json_member(json, "shape"), *item;
	int64_t axis = 0;

	arg->name = need_text(at, json, "name");
	arg->optional = cJSON_IsTrue(json_member(json, "optional"));
	arg->description = read_text(at, json, "description");
	if (!dtype_parse(need_text(at, json, "dtype"), &arg->dtype))
		wrong(at, "dtype");
	arg->rank = OP_SCALAR;
	if (cJSON_IsNull(shape))
		return;
	item = read_array(at, json, "shape", OP_RANK, &arg->rank);
	for (int d = 0; d < arg->rank; d++, item = item->next) {
		if (!json_integer(item, &axis) || axis < 0 || axis >= axis_count)
			wrong(at, "shape");
		else
			arg->axis[d] = (int)axis;
	}
}

static const struct op_arg *read_args(struct reader *at, const cJSON *json, const char *key, int axes, int *count)
{
	const cJSON *item = read_array(at, json, key, OP_ARGS, count);
	struct op_arg *args = arena_array(at->arena, (size_t)*count, sizeof *args);

	for (int i = 0; i < *count; i++, item = item->next)
		read_arg(at, item, axes, &args[i]);
	return args;
}

static void read_source(struct reader *at, const cJSON *json, struct input_source *source)
{
	int64_t kind = -1, scalar = -1;

	if (!json_integer(json_member(json, "kind"), &kind) || kind < SOURCE_RANDOM || kind > SOURCE_CUSTOM)
		wrong(at, "kind");
	source->kind = (enum source_kind)kind;
	if (source->kind == SOURCE_SCALAR) {
		if (!json_integer(json_member(json, "scalar"), &scalar) || scalar < SCALAR_INT || scalar > SCALAR_BOOL)
			wrong(at, "scalar");
		source->scalar_kind = (enum scalar_kind)scalar;
		source->integer = (int64_t)read_whole(at, json, "integer", true);
		source->number = read_number(at, json, "number");
	}
	if (source->kind == SOURCE_SAFETENSORS) {
		source->path = need_text(at, json, "path");
		source->tensor_key = need_text(at, json, "tensor_key");
		if (!digest_parse(need_text(at, json, "content"), &source->content))
			wrong(at, "content");
	}
}

static void read_sources(struct reader *at, const cJSON *json, struct job *job)
{
	int count;
	const cJSON *item = read_array(at, json, "sources", OP_ARGS, &count);
	struct input_source *sources = arena_array(at->arena, (size_t)count, sizeof *sources);

	for (int i = 0; i < count; i++, item = item->next)
		read_source(at, item, &sources[i]);
	if (count != job->problem.input_count)
		wrong(at, "sources");
	job->inputs = sources;
}

static void read_input_code(struct reader *at, const cJSON *json, struct job *job)
{
	struct input_code *code = arena_alloc(at->arena, sizeof *code);
	bool *given = arena_array(at->arena, (size_t)job->problem.axis_count, sizeof *given);
	int64_t kind = 0;
	int count;
	const cJSON *item = read_array(at, json, "given", INT32_MAX, &count);

	if (!json_integer(json_member(json, "kind"), &kind) ||
	    (kind != INPUT_CODE_INIT && kind != INPUT_CODE_ENTRYPOINT) || count != job->problem.axis_count)
		wrong(at, "input_code");
	for (int i = 0; i < count && i < job->problem.axis_count; i++, item = item->next)
		given[i] = cJSON_IsTrue(item);
	*code = (struct input_code){.kind = (enum input_code_kind)kind,
				    .function = need_text(at, json, "function"),
				    .place = need_text(at, json, "place"),
				    .given = given};
	job->input_code = code;
}

/* Returns true if the definition's code must make an input, but the job has no such code. */
static bool lacks_input_code(const struct job *job)
{
	for (int i = 0; i < job->problem.input_count; i++)
		if (job->inputs[i].kind == SOURCE_CUSTOM && job->input_code == NULL)
			return true;
	return false;
}

/* Copies a text and its NUL to a buffer of `size` bytes. If the text is too long, copies only the whole characters that
 * fit. */
static void copy_text(char *out, size_t size, const char *text)
{
	size_t length = 0, left = strlen(text), step;

	while ((step = utf8_length(text + length, left - length)) > 0 && length + step < size)
		length += step;
	memcpy(out, text, length);
	out[length] = '\0';
}

static void read_constants(struct reader *at, const cJSON *json, struct job *job)
{
	const cJSON *item = read_array(at, json, "constants", OP_CONSTANTS, &job->constant_count);

	for (int i = 0; i < job->constant_count; i++, item = item->next) {
		struct op_constant *constant = &job->constants[i];

		copy_text(constant->name, sizeof constant->name, need_text(at, item, "name"));
		copy_text(constant->source, sizeof constant->source, need_text(at, item, "source"));
		copy_text(constant->conflict, sizeof constant->conflict, need_text(at, item, "conflict"));
		constant->value = read_number(at, item, "value");
	}
}

static const struct rule *read_rules(struct reader *at, const cJSON *json, const char *key, const struct job *job)
{
	int count;
	const cJSON *item = read_array(at, json, key, OP_ARGS, &count);
	struct rule *rules = arena_array(at->arena, (size_t)count, sizeof *rules);

	for (int i = 0; i < count; i++, item = item->next)
		rules[i] = (struct rule){read_number(at, item, "atol"), read_number(at, item, "rtol"),
		                         read_number(at, item, "hit_ratio")};
	if (count != job->problem.output_count)
		wrong(at, key);
	return rules;
}

/* Reads the list "arguments", which names, for each input, the argument of the FlashInfer function. Call this after the
 * inputs have been read. */
static void read_arguments(struct reader *at, const cJSON *json, struct job *job)
{
	int count;
	const cJSON *item = read_array(at, json, "arguments", OP_ARGS, &count);
	const char **arguments = arena_array(at->arena, (size_t)count, sizeof *arguments);

	job->fi_api = read_text(at, json, "fi_api");
	for (int i = 0; i < count; i++, item = item->next) {
		if (!cJSON_IsString(item))
			wrong(at, "arguments");
		arguments[i] = cJSON_IsString(item) ? arena_string(at->arena, item->valuestring) : "";
	}
	if (job->fi_api != NULL && count != job->problem.input_count)
		wrong(at, "arguments");
	job->arguments = arguments;
}

static void read_truths(struct reader *at, const cJSON *json, struct job *job)
{
	const cJSON *item = read_array(at, json, "truths", GROUND_TRUTHS_MAX, &job->truths.count);
	struct truth *truths = arena_array(at->arena, (size_t)job->truths.count, sizeof *truths);

	for (int i = 0; i < job->truths.count; i++, item = item->next)
		truths[i] = (struct truth){.name = need_text(at, item, "name"),
					   .version = need_text(at, item, "version"),
					   .refused = read_text(at, item, "refused"),
					   .related = read_text(at, item, "related"),
					   .place = read_text(at, item, "place"),
					   .program = cJSON_IsTrue(json_member(item, "program")),
					   .chain = cJSON_IsTrue(json_member(item, "chain"))};
	job->truths.items = truths;
	job->truths.all = cJSON_IsTrue(json_member(json, "all"));
}

struct job *job_read(const cJSON *json, struct arena *arena, struct err *err)
{
	struct reader at = {arena, NULL};
	struct job *job = arena_alloc(arena, sizeof *job);
	struct op_problem *problem = &job->problem;

	job->id = need_text(&at, json, "id");
	problem->name = need_text(&at, json, "name");
	problem->op_type = need_text(&at, json, "op_type");
	problem->description = need_text(&at, json, "description");
	problem->tags = read_texts(&at, json, "tags", &problem->tag_count);
	read_axes(&at, json, job);
	problem->inputs = read_args(&at, json, "inputs", problem->axis_count, &problem->input_count);
	problem->outputs = read_args(&at, json, "outputs", problem->axis_count, &problem->output_count);
	job->op = read_text(&at, json, "op");
	job->no_truth = read_text(&at, json, "no_truth");
	job->seed = read_whole(&at, json, "seed", false);
	uint64_t edge = read_whole(&at, json, "edge", false);

	job->edge = edge <= OP_EDGES ? (int)edge : 0;
	if (edge > OP_EDGES)
		wrong(&at, "edge");
	job->chosen_axes = cJSON_IsTrue(json_member(json, "chosen_axes"));
	job->inputs_are_valid = cJSON_IsTrue(json_member(json, "inputs_are_valid"));
	job->chain = read_text(&at, json, "chain");
	read_arguments(&at, json, job);
	uint64_t runs = read_whole(&at, json, "runs", false);

	job->runs = runs < JOB_RUNS_COUNT ? (enum job_runs)runs : JOB_RUNS_ALL;
	if (runs >= JOB_RUNS_COUNT)
		wrong(&at, "runs");
	job->bench = cJSON_IsTrue(json_member(json, "bench"));
	job->asks = cJSON_IsTrue(json_member(json, "gradients")) ? JOB_GRADIENTS : JOB_OUTPUTS;
	read_sources(&at, json, job);
	if (json_member(json, "input_code") != NULL)
		read_input_code(&at, json_member(json, "input_code"), job);
	if (at.wrong == NULL && lacks_input_code(job))
		wrong(&at, "input_code");
	job->constraints = read_texts(&at, json, "constraints", &job->constraint_count);
	read_constants(&at, json, job);
	job->rules = read_rules(&at, json, "rules", job);
	if (json_member(json, "second_rules") != NULL)
		job->second_rules = read_rules(&at, json, "second_rules", job);
	job->checks = cJSON_IsTrue(json_member(json, "checks"));
	job->compare_bits = cJSON_IsTrue(json_member(json, "compare_bits"));
	job->no_diagnosis = cJSON_IsTrue(json_member(json, "no_diagnosis"));
	job->contiguous = cJSON_IsTrue(json_member(json, "contiguous"));
	job->save = read_text(&at, json, "save");
	job->error_cap = read_number(&at, json, "error_cap");
	job->root = need_text(&at, json, "root");
	read_truths(&at, json, job);
	if (at.wrong == NULL)
		return job;
	err_set(err, "cannot parse a case: \"%s\" is missing, malformed or has more than %d members", at.wrong, OP_ARGS);
	return NULL;
}
