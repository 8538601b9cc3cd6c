#include "dataset/workload.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/unsafe_character.h"
#include "dataset/axis_expressions.h"
#include "dataset/axis_length.h"
#include "dataset/constraint.h"

enum { UUID_BYTES = 200, PATH_BYTES = 4096, KEY_BYTES = 1024, TEXT_BYTES = 1024 };

/* The text of a line, which is kept until the uuids of all lines have been compared. */
struct line {
	const char *text;
	size_t length;
	bool bare; /* the line is the workload itself, without a member "workload" */
};

struct reader {
	struct json_text text;
	const struct definition *definition;
	struct arena *arena; /* allocates the result */
	int64_t *axis;
	struct input_source *inputs;
	bool trace;
	/* Where the workload, its axes and its inputs are in the line. `workload` is NULL if the whole line is the
	 * workload. */
	const struct json_step *workload;
	struct json_step axes, sources;
	struct err *err;
};

static const struct json_step at_workload = {.key = "workload"};

/* Writes a message "expected …, found …". Always returns -1. */
static int expected(struct reader *r, const struct json_step *at, const char *what, const cJSON *found)
{
	return json_expected(&r->text, at, found, r->err, what);
}

static bool is_null(const cJSON *value)
{
	return value == NULL || cJSON_IsNull(value);
}

/* --- axes ---------------------------------------------------------------------------------------------------- */

static int read_axis(struct reader *r, const cJSON *json)
{
	const struct json_step at = {.up = &r->axes, .key = json->string};
	int index = definition_axis(r->definition, json->string);
	int64_t value;

	if (index < 0)
		return json_error_at(&r->text, &at, r->err,
		                     "expected an axis of the definition, found \"%s\"; remove it",
		                     err_show(json->string).text);
	const struct axis *axis = &r->definition->axes[index];

	if (!axis_length_read(json, &value)) /* 0 is accepted, because a batch may be empty */
		return expected(r, &at, "an integer from 0 to 9007199254740991", json);
	if (!axis->var && value != axis->value)
		return json_error_at(&r->text, &at, r->err, "expected %lld, the value of the const axis %s, found %lld",
		                     (long long)axis->value, axis->name, (long long)value);
	r->axis[index] = value;
	return 0;
}

/* Reports that the expression of an axis cannot be evaluated, or that the line gives another length than the
 * expression. */
static int axis_error(struct reader *r, const cJSON *axes, int axis, const struct err *why)
{
	const struct json_step at = {.up = &r->axes, .key = r->definition->axes[axis].name};

	return json_error_at(&r->text, json_member(axes, at.key) != NULL ? &at : &r->axes, r->err, "%s", why->text);
}

static int read_axes(struct reader *r, const cJSON *workload)
{
	const cJSON *axes = json_member(workload, "axes");
	struct err why;
	int at;

	if (axes == NULL)
		return json_missing(&r->text, r->workload, "axes", r->err, "an object");
	if (!cJSON_IsObject(axes))
		return expected(r, &r->axes, "an object", axes);
	for (int i = 0; i < r->definition->axis_count; i++)
		r->axis[i] = r->definition->axes[i].var ? -1 : r->definition->axes[i].value;
	for (const cJSON *member = axes->child; member != NULL; member = member->next)
		if (read_axis(r, member) != 0)
			return -1;
	if (axis_expressions_compute(r->definition, r->axis, &at, &why) != 0)
		return axis_error(r, axes, at, &why);
	for (int i = 0; i < r->definition->axis_count; i++)
		if (r->axis[i] < 0)
			return json_error_at(&r->text, &r->axes, r->err,
			                     "expected a value for the axis \"%s\", found none",
			                     r->definition->axes[i].name);
	return 0;
}

/* --- inputs -------------------------------------------------------------------------------------------------- */

/* Returns the smallest and the largest value of an integer dtype. */
static void bounds_of(enum dtype dtype, int64_t *least, int64_t *most)
{
	bool is_signed = dtype != DTYPE_UINT8 && dtype != DTYPE_UINT32;
	int bits = dtype_bits(dtype);

	*most = bits == 64 ? INT64_MAX : ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1;
	*least = is_signed ? -*most - 1 : 0;
}

/* Reads the value of a Python scalar. The type of the JSON value must match the dtype. For example, 1 is accepted as an
 * int or a float, but not as a bool. */
static int read_scalar(struct reader *r, const struct json_step *source, const cJSON *json,
                       const struct tensor_spec *spec, struct input_source *out)
{
	const struct json_step at = {.up = source, .key = "value"};
	const cJSON *value = json_member(json, "value");
	int64_t least, most;

	if (value == NULL)
		return json_missing(&r->text, source, "value", r->err, "of a scalar");
	out->scalar_kind = spec->dtype == DTYPE_BOOL     ? SCALAR_BOOL
	                   : dtype_is_float(spec->dtype) ? SCALAR_FLOAT
	                                                 : SCALAR_INT;
	if (out->scalar_kind == SCALAR_BOOL) {
		if (!cJSON_IsBool(value))
			return expected(r, &at, "true or false, because the input is bool", value);
		out->integer = cJSON_IsTrue(value);
		out->number = (double)out->integer;
		return 0;
	}
	if (!cJSON_IsNumber(value))
		return expected(r, &at, "a number", value);
	out->number = value->valuedouble;
	if (out->scalar_kind == SCALAR_FLOAT)
		return 0;
	bounds_of(spec->dtype, &least, &most);
	if (json_integer(value, &out->integer) && out->integer >= least && out->integer <= most)
		return 0;
	return expected(r, &at, arena_printf(r->arena, "an integer that fits %s", dtype_name(spec->dtype)), value);
}

/* Returns the path without "." components and double slashes, so that each file has only one path. Returns NULL if the
 * path may lead outside the root. */
static const char *clean_path(struct arena *arena, const char *path)
{
	char *clean = arena_alloc(arena, strlen(path) + 1);
	size_t length = 0;

	if (*path == '/')
		return NULL;
	while (*path != '\0') {
		size_t step = strcspn(path, "/");

		if (step == 2 && path[0] == '.' && path[1] == '.')
			return NULL;
		if (step > 0 && !(step == 1 && path[0] == '.')) {
			if (length > 0)
				clean[length++] = '/';
			memcpy(clean + length, path, step);
			length += step;
		}
		path += step;
		path += *path == '/';
	}
	return length == 0 ? NULL : clean;
}

static int read_safetensors(struct reader *r, const struct json_step *source, const cJSON *json,
                            struct input_source *out)
{
	const struct json_step at = {.up = source, .key = "path"};
	const char *path = json_read_text(&r->text, source, json, "path", PATH_BYTES, r->err);
	const char *key = path == NULL ? NULL : json_read_text(&r->text, source, json, "tensor_key", KEY_BYTES, r->err);

	if (key == NULL)
		return -1;
	out->path = clean_path(r->arena, path);
	if (out->path == NULL)
		return json_error_at(&r->text, &at, r->err,
		                     "expected a relative path that stays inside the dataset's folder, found \"%s\"",
		                     err_show(path).text);
	out->tensor_key = arena_string(r->arena, key);
	return 0;
}

static const char source_names[] = "\"random\", \"scalar\", \"safetensors\" or \"custom\"";

static int read_source(struct reader *r, const struct json_step *at, const cJSON *json, const struct tensor_spec *spec,
                       struct input_source *out)
{
	static const struct {
		const char *name;
		enum source_kind kind;
	} kinds[] = {{"random", SOURCE_RANDOM}, {"scalar", SOURCE_SCALAR}, {"safetensors", SOURCE_SAFETENSORS}, {"custom", SOURCE_CUSTOM}};
	const size_t kind_count = sizeof kinds / sizeof *kinds;
	const struct json_step type_at = {.up = at, .key = "type"};
	const cJSON *type = json_member(json, "type");
	const char *name = cJSON_GetStringValue(type);
	bool scalar = spec->rank == RANK_SCALAR;
	size_t i = 0;

	if (!cJSON_IsObject(json))
		return expected(r, at, "an object with a \"type\"", json);
	if (type == NULL)
		return json_missing(&r->text, at, "type", r->err, source_names);
	while (i < kind_count && (name == NULL || strcmp(kinds[i].name, name) != 0))
		i++;
	if (i == kind_count)
		return expected(r, &type_at, source_names, type);
	out->kind = kinds[i].kind;
	if ((out->kind == SOURCE_SCALAR && !scalar) || (out->kind == SOURCE_SAFETENSORS && scalar))
		return json_error_at(&r->text, &type_at, r->err,
		                     "expected %s, because the definition declares %s as a %s, found \"%s\"",
		                     scalar ? "\"scalar\" or \"random\"" : "\"random\" or \"safetensors\"", spec->name,
		                     scalar ? "Python scalar" : "tensor", name);
	if (out->kind == SOURCE_CUSTOM && r->definition->custom_inputs_entrypoint == NULL)
		return json_error_at(&r->text, &type_at, r->err,
				     "expected \"random\", \"scalar\" or \"safetensors\", because the definition has no "
				     "custom_inputs_entrypoint, found \"custom\"");
	if (out->kind == SOURCE_SCALAR)
		return read_scalar(r, at, json, spec, out);
	return out->kind == SOURCE_SAFETENSORS ? read_safetensors(r, at, json, out) : 0;
}

static bool is_left_out(const struct definition *definition, const char *name)
{
	for (int i = 0; i < definition->left_out_count; i++)
		if (strcmp(definition->left_out[i], name) == 0)
			return true;
	return false;
}

static int read_input(struct reader *r, const cJSON *json)
{
	const struct json_step at = {.up = &r->sources, .key = json->string};
	int index = definition_input(r->definition, json->string);

	if (index < 0 && cJSON_IsNull(json) && is_left_out(r->definition, json->string))
		return 0;
	if (index < 0)
		return json_error_at(&r->text, &at, r->err,
		                     "expected an input of the definition, found \"%s\"; remove it",
		                     err_show(json->string).text);
	const struct tensor_spec *spec = &r->definition->inputs[index];

	if (cJSON_IsNull(json) && spec->optional)
		return 0;
	return read_source(r, &at, json, spec, &r->inputs[index]);
}

static int read_inputs(struct reader *r, const cJSON *workload)
{
	const cJSON *inputs = json_member(workload, "inputs");

	if (inputs == NULL)
		return json_missing(&r->text, r->workload, "inputs", r->err, "an object");
	if (!cJSON_IsObject(inputs))
		return expected(r, &r->sources, "an object", inputs);
	for (int i = 0; i < r->definition->input_count; i++)
		r->inputs[i].kind = SOURCE_ABSENT;
	for (const cJSON *member = inputs->child; member != NULL; member = member->next)
		if (read_input(r, member) != 0)
			return -1;
	for (int i = 0; i < r->definition->input_count; i++) {
		const struct tensor_spec *spec = &r->definition->inputs[i];

		if (r->inputs[i].kind == SOURCE_ABSENT && !spec->optional)
			return json_error_at(&r->text, &r->sources, r->err,
			                     "expected a source for the input \"%s\", found none", spec->name);
	}
	return 0;
}

/* --- tolerance ----------------------------------------------------------------------------------------------- */

/* The members of a tolerance that are numbers, and their defaults. SOL-ExecBench spells one of these members in two
 * ways. */
static const struct {
	const char *name;
	size_t at; /* the offset of a double in struct workload_tolerance */
	bool ratio;
} bounds[] = {
    {"max_atol", offsetof(struct workload_tolerance, bounds.atol), false},
    {"max_rtol", offsetof(struct workload_tolerance, bounds.rtol), false},
    {"required_matched_ratio", offsetof(struct workload_tolerance, bounds.hit_ratio), true},
    {"required_match_ratio", offsetof(struct workload_tolerance, bounds.hit_ratio), true},
    {"max_error_cap", offsetof(struct workload_tolerance, error_cap), false},
};
static const struct workload_tolerance tolerance_defaults = {
    .given = true, .bounds = {.atol = 1e-2, .rtol = 1e-2, .hit_ratio = 0.99}, .error_cap = -1};

static int read_bound(struct reader *r, const struct json_step *tolerance, const cJSON *json, struct workload_tolerance *out)
{
	const struct json_step at = {.up = tolerance, .key = json->string};
	size_t i = 0, count = sizeof bounds / sizeof *bounds;

	while (i < count && strcmp(bounds[i].name, json->string) != 0)
		i++;
	if (i == count)
		return json_error_at(&r->text, &at, r->err,
				     "expected \"max_atol\", \"max_rtol\", \"required_matched_ratio\", \"max_error_cap\" or "
				     "\"allow_negative_inf\", found \"%s\"",
				     err_show(json->string).text);
	if (cJSON_IsNull(json))
		return 0;
	if (!cJSON_IsNumber(json) || json->valuedouble < 0 ||
	    (bounds[i].ratio && (json->valuedouble <= 0 || json->valuedouble > 1)))
		return expected(r, &at, bounds[i].ratio ? "a number above 0 and at most 1" : "a number of at least 0", json);
	memcpy((char *)out + bounds[i].at, &json->valuedouble, sizeof json->valuedouble);
	return 0;
}

/* Reads the tolerance of a line, if the line has one. An unknown member is an error: a misspelt member would silently
 * change how strictly the outputs are checked. */
static int read_tolerance(struct reader *r, const cJSON *workload, struct workload_tolerance *out)
{
	static const char infinity[] = "allow_negative_inf";
	const struct json_step at = {.up = r->workload, .key = "tolerance"}, infinity_at = {.up = &at, .key = infinity};
	const cJSON *tolerance = json_member(workload, "tolerance"), *allows = json_member(tolerance, infinity);

	if (is_null(tolerance))
		return 0;
	if (!cJSON_IsObject(tolerance))
		return expected(r, &at, "an object", tolerance);
	*out = tolerance_defaults;
	if (!is_null(allows) && !cJSON_IsBool(allows))
		return expected(r, &infinity_at, "true or false", allows);
	out->allows_negative_infinity = cJSON_IsTrue(allows);
	if (json_member(tolerance, "required_matched_ratio") != NULL && json_member(tolerance, "required_match_ratio") != NULL)
		return json_error_at(&r->text, &at, r->err,
				     "expected either \"required_matched_ratio\" or \"required_match_ratio\", found both");
	for (const cJSON *member = tolerance->child; member != NULL; member = member->next)
		if (member != allows && read_bound(r, &at, member, out) != 0)
			return -1;
	return 0;
}

/* --- checks that need the axes ------------------------------------------------------------------------------- */

static int check_sizes(struct reader *r)
{
	const struct definition *d = r->definition;

	for (int i = 0; i < d->input_count + d->output_count; i++) {
		const struct tensor_spec *spec = i < d->input_count ? &d->inputs[i] : &d->outputs[i - d->input_count];

		if (definition_bytes(spec, r->axis) < 0)
			return json_error_at(
			    &r->text, &r->axes, r->err,
			    "expected tensors of at most 2^48 bytes, but these axes make %s larger",
			    err_show(spec->name).text);
	}
	return 0;
}

static int check_constraints(struct reader *r)
{
	for (int i = 0; i < r->definition->constraint_count; i++) {
		struct err why;
		enum constraint_answer answer =
		    constraint_evaluate(r->definition, r->definition->constraints[i], r->axis, NULL, &why);

		if (answer == CONSTRAINT_BROKEN)
			return json_error_at(&r->text, &r->axes, r->err, "expected axis values that satisfy the constraint %s",
			                     why.text);
		if (answer == CONSTRAINT_ERROR)
			return json_error_at(&r->text, &r->axes, r->err, "%s", why.text);
	}
	return 0;
}

/* --- lines --------------------------------------------------------------------------------------------------- */

static int read_definition_name(struct reader *r, const cJSON *json)
{
	const struct json_step at = {.key = "definition"};
	const cJSON *name = json_member(json, "definition");

	if (name == NULL && r->workload == NULL)
		return 0;
	if (name == NULL)
		return json_missing(&r->text, NULL, "definition", r->err, "the name of the definition");
	if (cJSON_IsString(name) && strcmp(name->valuestring, r->definition->name) == 0)
		return 0;
	return expected(
	    r, &at, arena_printf(r->arena, "\"%s\", the file's name", err_show(r->definition->name).text), name);
}

/* Checks that the field `key`, which only a trace may have, is null or absent. A line with a solution or an evaluation
 * is a trace, and traces belong in files below traces/. */
static int check_null(struct reader *r, const cJSON *json, const char *key)
{
	const struct json_step at = {.key = key};
	const cJSON *value = json_member(json, key);

	return is_null(value) ? 0 : expected(r, &at, "null in a workload", value);
}

static const struct json_step at_evaluation = {.key = "evaluation"};

/* Checks that the object `key`, which contains measurements, is present if `needed`, and otherwise null or absent. */
static int check_measured(struct reader *r, const cJSON *evaluation, const char *key, bool needed, const char *status)
{
	const struct json_step at = {.up = &at_evaluation, .key = key};
	const cJSON *value = json_member(evaluation, key);
	bool absent = is_null(value);

	if (needed ? cJSON_IsObject(value) : absent)
		return 0;
	if (needed && absent)
		return json_error_at(&r->text, &at_evaluation, r->err,
				     "expected an object \"%s\", because the status is %s, found none", key, status);
	return expected(r, &at, needed ? "an object" : arena_printf(r->arena, "null, because the status is %s", status),
			value);
}

/* Reads the evaluation of a trace: its status and its measurements. */
static int read_evaluation(struct reader *r, const cJSON *json, bool *passed)
{
	static const struct {
		const char *name;
		bool correctness, performance;
	} statuses[] = {{"PASSED", true, true},	   {"INCORRECT_NUMERICAL", true, false}, {"INCORRECT_SHAPE", false, false},
			{"INCORRECT_DTYPE", false, false}, {"RUNTIME_ERROR", false, false},	 {"COMPILE_ERROR", false, false},
			{"TIMEOUT", false, false}};
	const struct json_step status_at = {.up = &at_evaluation, .key = "status"},
			       environment_at = {.up = &at_evaluation, .key = "environment"};
	const cJSON *evaluation = json_member(json, "evaluation"), *environment = json_member(evaluation, "environment");
	size_t i = 0, count = sizeof statuses / sizeof *statuses;

	if (evaluation == NULL)
		return json_missing(&r->text, NULL, "evaluation", r->err, "an object, in a trace");
	if (!cJSON_IsObject(evaluation))
		return expected(r, &at_evaluation, "an object, in a trace", evaluation);
	const char *status = json_read_text(&r->text, &at_evaluation, evaluation, "status", TEXT_BYTES, r->err);

	if (status == NULL)
		return -1;
	while (i < count && strcmp(status, statuses[i].name) != 0)
		i++;
	if (i == count)
		return expected(r, &status_at, "PASSED, INCORRECT_SHAPE, INCORRECT_NUMERICAL, INCORRECT_DTYPE, "
					       "RUNTIME_ERROR, COMPILE_ERROR or TIMEOUT", json_member(evaluation, "status"));
	*passed = i == 0;
	if (!cJSON_IsObject(environment))
		return environment == NULL ? json_missing(&r->text, &at_evaluation, "environment", r->err, "an object")
					   : expected(r, &environment_at, "an object", environment);
	if (json_read_text(&r->text, &environment_at, environment, "hardware", TEXT_BYTES, r->err) == NULL ||
	    json_read_text(&r->text, &at_evaluation, evaluation, "timestamp", TEXT_BYTES, r->err) == NULL)
		return -1;
	if (check_measured(r, evaluation, "correctness", statuses[i].correctness, status) != 0)
		return -1;
	return check_measured(r, evaluation, "performance", statuses[i].performance, status);
}

/* Reads the members that only a trace has. In a workload, checks that these members are absent. */
static int read_result(struct reader *r, const cJSON *json, struct workload *out)
{
	if (!r->trace)
		return check_null(r, json, "solution") != 0 || check_null(r, json, "evaluation") != 0 ? -1 : 0;
	const char *solution = json_read_text(&r->text, NULL, json, "solution", UUID_BYTES, r->err);

	if (solution == NULL)
		return -1;
	out->solution = arena_string(r->arena, solution);
	return read_evaluation(r, json, &out->passed);
}

/* Returns the workload in a line. This is the member "workload". If the line has no such member, but has "uuid", "axes"
 * or "inputs", the whole line is the workload. Returns NULL with a message if the line has no workload. */
static const cJSON *find_workload(struct reader *r, const cJSON *json)
{
	const cJSON *workload = json_member(json, "workload");
	bool bare = workload == NULL && !r->trace &&
		    (json_member(json, "uuid") != NULL || json_member(json, "axes") != NULL || json_member(json, "inputs") != NULL);

	if (!cJSON_IsObject(json))
		expected(r, NULL, "a workload object", json);
	else if (workload == NULL && !bare)
		json_missing(&r->text, NULL, "workload", r->err, "an object");
	else if (!bare && !cJSON_IsObject(workload))
		expected(r, &at_workload, "an object", workload);
	else {
		r->workload = bare ? NULL : &at_workload;
		r->axes = (struct json_step){.up = r->workload, .key = "axes"};
		r->sources = (struct json_step){.up = r->workload, .key = "inputs"};
		return bare ? json : workload;
	}
	return NULL;
}

/* Reads one line. Sets every member of `out` except `error`. */
static int read_line(struct reader *r, const cJSON *json, struct workload *out)
{
	const cJSON *workload = find_workload(r, json);
	const char *uuid = workload != NULL ? json_read_text(&r->text, r->workload, workload, "uuid", UUID_BYTES, r->err) : NULL;

	if (uuid == NULL)
		return -1;
	out->uuid = arena_string(r->arena, uuid);
	if (read_definition_name(r, json) != 0 || read_result(r, json, out) != 0 || read_axes(r, workload) != 0 ||
	    read_inputs(r, workload) != 0 || read_tolerance(r, workload, &out->tolerance) != 0 || check_sizes(r) != 0 ||
	    check_constraints(r) != 0)
		return -1;
	out->axis = r->axis;
	out->inputs = r->inputs;
	return 0;
}

static void fail_line(struct workload *line, const struct err *err, struct arena *arena)
{
	line->error = arena_string(arena, err->text);
	line->axis = NULL;
	line->inputs = NULL;
}

static void load_line(const char *path, struct line *line, const struct definition *definition, bool trace,
		      struct arena *arena, struct workload *out)
{
	const struct json_text text = {.name = path, .text = line->text, .length = line->length, .first_line = out->line};
	struct err err;
	struct reader r = {.text = text, .definition = definition, .arena = arena, .trace = trace, .err = &err};
	cJSON *json = json_parse(&text, &err);
	int wrong = -1;

	if (json != NULL) {
		r.axis = arena_array(arena, (size_t)definition->axis_count, sizeof *r.axis);
		r.inputs = arena_array(arena, (size_t)definition->input_count, sizeof *r.inputs);
		wrong = read_line(&r, json, out);
		line->bare = r.workload == NULL;
	}
	cJSON_Delete(json);
	if (wrong)
		fail_line(out, &err, arena);
}

/* --- each uuid once ------------------------------------------------------------------------------------------ */

static int compare_uuids(const void *a, const void *b)
{
	const struct workload *left = *(struct workload *const *)a, *right = *(struct workload *const *)b;
	int order = strcmp(left->uuid, right->uuid);

	return order != 0 ? order : (left->line > right->line) - (left->line < right->line);
}

/* Marks a line as invalid if an earlier line has the same uuid. `lines` and `workloads` have the same order. */
static void refuse_duplicates(const char *path, struct workload *workloads, const struct line *lines, int count,
                              struct arena *arena)
{
	struct workload **sorted = malloc(((size_t)count + 1) * sizeof *sorted);
	int named = 0;

	if (sorted == NULL)
		die_no_memory();
	for (int i = 0; i < count; i++)
		if (workloads[i].uuid != NULL)
			sorted[named++] = &workloads[i];
	qsort(sorted, (size_t)named, sizeof *sorted, compare_uuids);
	for (int i = 1, first = 0; i < named; i++) {
		struct workload *w = sorted[i];
		const struct line *line = &lines[w - workloads];
		const struct json_text text = {
		    .name = path, .text = line->text, .length = line->length, .first_line = w->line};
		struct err err;

		if (strcmp(sorted[first]->uuid, w->uuid) != 0) {
			first = i;
		} else if (w->error == NULL) {
			json_error(&text, line->bare ? "uuid" : "workload/uuid", &err, "expected a unique uuid, found the uuid of line %d",
			           sorted[first]->line);
			fail_line(w, &err, arena);
		}
	}
	free(sorted);
}

/* --- the file ------------------------------------------------------------------------------------------------ */

static bool is_blank(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
			return false;
	return true;
}

/* Finds the lines that are not blank. Finds at most WORKLOAD_LINES + 1 lines. Line WORKLOAD_LINES + 1 is not parsed; it
 * shows that there are too many lines. */
static int split(const char *bytes, size_t length, struct line *lines, int *numbers)
{
	int count = 0, number = 0;

	for (size_t from = 0; from < length && count <= WORKLOAD_LINES;) {
		const char *end = memchr(bytes + from, '\n', length - from);
		size_t size = end == NULL ? length - from : (size_t)(end - (bytes + from));

		number++;
		if (!is_blank(bytes + from, size)) {
			if (lines != NULL) {
				lines[count] = (struct line){.text = bytes + from, .length = size};
				numbers[count] = number;
			}
			count++;
		}
		from += size + 1;
	}
	return count;
}

static struct workload_file too_large(const char *path, size_t length, struct arena *arena)
{
	struct workload *line = arena_alloc(arena, sizeof *line);

	line->line = 1;
	line->error = arena_printf(arena, "%s: the file has %zu bytes, more than the limit of %d", path, length,
	                           WORKLOAD_BYTES);
	return (struct workload_file){.lines = line, .count = 1, .invalid = 1};
}

static struct workload_file load_file(const char *path, const struct definition *definition, const void *bytes,
				      size_t length, bool traces, struct arena *arena)
{
	struct arena scratch = {0};

	if (length > WORKLOAD_BYTES)
		return too_large(path, length, arena);
	int count = split(bytes, length, NULL, NULL);
	struct line *lines = arena_array(&scratch, (size_t)count, sizeof *lines);
	int *numbers = arena_array(&scratch, (size_t)count, sizeof *numbers);
	struct workload *workloads = arena_array(arena, (size_t)count, sizeof *workloads);
	struct workload_file file = {.lines = workloads, .count = count};

	split(bytes, length, lines, numbers);
	for (int i = 0; i < count; i++) {
		workloads[i].line = numbers[i];
		if (i < WORKLOAD_LINES)
			load_line(path, &lines[i], definition, traces, arena, &workloads[i]);
		else
			workloads[i].error =
			    arena_printf(arena, "%s:%d:1: expected at most %d workloads, found more; split the file",
			                 path, numbers[i], WORKLOAD_LINES);
	}
	if (!traces)
		refuse_duplicates(path, workloads, lines, count, arena);
	for (int i = 0; i < count; i++)
		file.invalid += workloads[i].error != NULL;
	arena_free(&scratch);
	return file;
}

struct workload_file workloads_load(const char *path, const struct definition *definition, const void *bytes,
                                    size_t length, struct arena *arena)
{
	return load_file(path, definition, bytes, length, false, arena);
}

struct workload_file traces_load(const char *path, const struct definition *definition, const void *bytes, size_t length,
				 struct arena *arena)
{
	return load_file(path, definition, bytes, length, true, arena);
}
