#include "kernels/core/ground_truth_api.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "kernels/core/described_default.h"
#include "kernels/core/device.h"
#include "kernels/core/op.h"
#include "kernels/core/roles.h"
#include "kernels/core/compare_truncation.h"

#define SHOWN __attribute__((visibility("default")))

enum { AXES = 128 };

/* A parsed request of a caller. `arena` owns all of its memory. */
struct request {
	struct arena arena;
	struct op_problem problem;
	struct op_case op_case;
	const struct op *op;
	const struct rule *tolerance; /* the definition's tolerance for each output; a negative member: the definition
				       * does not state this bound */
	bool sizes;                   /* whether the request must have a value for every var axis */
};

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static int malformed(struct err *err, const char *what)
{
	return err_set(err, "the case cannot be read: %s is missing or has a wrong form", what);
}

static const char *text_or(struct arena *arena, const cJSON *object, const char *key, const char *otherwise)
{
	const char *text = json_text_of(object, key);

	return text != NULL ? arena_string(arena, text) : otherwise;
}

static bool read_length(const cJSON *json, int64_t *out)
{
	return json_integer(json, out) && *out >= 0;
}

static int read_axes(struct request *request, const cJSON *definition, const cJSON *values, struct err *err)
{
	const cJSON *json = json_member(definition, "axes"), *item;
	int count = cJSON_IsObject(json) ? cJSON_GetArraySize(json) : -1, at = 0;
	struct op_axis *axes = arena_array(&request->arena, AXES, sizeof *axes);
	int64_t *axis = arena_array(&request->arena, AXES, sizeof *axis);

	if (count < 0 || count > AXES)
		return malformed(err, "\"axes\"");
	cJSON_ArrayForEach(item, json)
	{
		const char *type = json_text_of(item, "type");

		axes[at].name = arena_string(&request->arena, item->string);
		axes[at].var = type != NULL && strcmp(type, "var") == 0;
		if (axes[at].var ? request->sizes && !read_length(json_member(values, item->string), &axis[at])
				 : !read_length(json_member(item, "value"), &axis[at]))
			return err_set(err, "the case cannot be read: axis '%s' has no value",
				       err_show(item->string).text);
		axes[at].value = axes[at].var ? 0 : axis[at];
		at++;
	}
	request->problem.axes = axes;
	request->problem.axis_count = count;
	request->op_case.axis = axis;
	return 0;
}

static int read_shape(struct request *request, const cJSON *shape, struct op_arg *arg, struct err *err)
{
	const cJSON *item;

	arg->rank = OP_SCALAR;
	if (cJSON_IsNull(shape))
		return 0;
	if (!cJSON_IsArray(shape) || cJSON_GetArraySize(shape) > OP_RANK)
		return malformed(err, "a \"shape\"");
	arg->rank = 0;
	cJSON_ArrayForEach(item, shape)
	{
		int axis = cJSON_IsString(item) ? op_axis_index(&request->problem, item->valuestring) : -1;

		if (axis < 0)
			return malformed(err, "an axis of a \"shape\"");
		arg->axis[arg->rank++] = axis;
	}
	return 0;
}

static int read_args(struct request *request, const cJSON *definition, const char *key, const struct op_arg **out,
		     int *count, struct err *err)
{
	const cJSON *json = json_member(definition, key), *item;
	struct op_arg *args = arena_array(&request->arena, OP_ARGS, sizeof *args);

	*count = 0;
	*out = args;
	if (!cJSON_IsObject(json) || cJSON_GetArraySize(json) > OP_ARGS)
		return malformed(err, key);
	cJSON_ArrayForEach(item, json)
	{
		struct op_arg *arg = &args[(*count)++];
		const char *dtype = json_text_of(item, "dtype");

		arg->name = arena_string(&request->arena, item->string);
		arg->optional = cJSON_IsTrue(json_member(item, "optional"));
		arg->description = text_or(&request->arena, item, "description", NULL);
		if (dtype == NULL || !dtype_parse(dtype, &arg->dtype))
			return malformed(err, "a \"dtype\"");
		if (read_shape(request, json_member(item, "shape"), arg, err) < 0)
			return -1;
	}
	return 0;
}

static void read_bound(const cJSON *tolerance, const char *key, double *out)
{
	const cJSON *given = json_member(tolerance, key);

	if (cJSON_IsNumber(given) && given->valuedouble >= 0)
		*out = given->valuedouble;
}

static void read_tolerance(const cJSON *json, struct rule *out)
{
	const cJSON *tolerance = json_member(json, "tolerance");

	read_bound(tolerance, "atol", &out->atol);
	read_bound(tolerance, "rtol", &out->rtol);
	read_bound(tolerance, "hit_ratio", &out->hit_ratio);
}

/* Reads the definition's tolerance. If an output has a tolerance of its own, that tolerance replaces the definition's
 * tolerance. */
static void read_tolerances(struct request *request, const cJSON *definition)
{
	struct rule *rules = arena_array(&request->arena, (size_t)request->problem.output_count + 1, sizeof *rules);
	const cJSON *item;
	int at = 0;

	cJSON_ArrayForEach(item, json_member(definition, "outputs"))
	{
		rules[at] = (struct rule){-1, -1, -1};
		read_tolerance(definition, &rules[at]);
		read_tolerance(item, &rules[at++]);
	}
	request->tolerance = rules;
}

static void read_tags(struct request *request, const cJSON *definition)
{
	const cJSON *json = json_member(definition, "tags"), *item;
	const char **tags =
	    arena_array(&request->arena, (size_t)(cJSON_IsArray(json) ? cJSON_GetArraySize(json) : 0), sizeof *tags);

	if (!cJSON_IsArray(json))
		return;
	cJSON_ArrayForEach(item, json)
		if (cJSON_IsString(item))
			tags[request->problem.tag_count++] = arena_string(&request->arena, item->valuestring);
	request->problem.tags = tags;
}

static void read_scalars(struct request *request, const cJSON *json)
{
	struct op_case *c = &request->op_case;

	for (int i = 0; i < request->problem.input_count; i++) {
		const cJSON *given = json_member(json_member(json, "scalars"), request->problem.inputs[i].name);

		if (request->problem.inputs[i].rank != OP_SCALAR)
			continue;
		c->scalar[i] = dtype_is_float(request->problem.inputs[i].dtype) ? 1 : 0;
		if (request->op->scalar != NULL)
			c->scalar[i] = request->op->scalar(c, i);
		if ((c->absent >> i & 1) != 0)
			continue;
		if (cJSON_IsNumber(given))
			c->scalar[i] = given->valuedouble;
		else if (cJSON_IsBool(given))
			c->scalar[i] = cJSON_IsTrue(given);
		described_set_scalar(request->op, c, i, c->scalar[i]);
	}
}

static void read_constants(struct request *request, const cJSON *json)
{
	struct op_case *c = &request->op_case;

	for (int i = 0; i < c->constant_count; i++) {
		const cJSON *given = json_member(json_member(json, "constants"), c->constants[i].name);

		if (isnan(c->constants[i].value) && cJSON_IsNumber(given))
			c->constants[i].value = given->valuedouble;
	}
}

static int read_definition(struct request *request, const cJSON *json, struct err *err)
{
	const cJSON *member = json_member(json, "definition");
	const cJSON *definition = member == NULL && !request->sizes ? json : member;
	struct op_problem *problem = &request->problem;

	problem->name = text_or(&request->arena, definition, "name", NULL);
	problem->op_type = text_or(&request->arena, definition, "op_type", "");
	problem->description = text_or(&request->arena, definition, "description", "");
	if (problem->name == NULL)
		return malformed(err, "\"name\"");
	read_tags(request, definition);
	if (read_axes(request, definition, json_member(json, "axes"), err) < 0 ||
	    read_args(request, definition, "inputs", &problem->inputs, &problem->input_count, err) < 0 ||
	    read_args(request, definition, "outputs", &problem->outputs, &problem->output_count, err) < 0)
		return -1;
	read_tolerances(request, definition);
	return 0;
}

/* Finds the family of the definition. Returns TRUTH_OK, or the error code that the exported function must return. */
static int find_family(struct request *request, const cJSON *json, struct err *err)
{
	const struct op_entry *entry;

	if (json == NULL || read_definition(request, json, err) < 0)
		return TRUTH_BAD;
	entry = op_find(&request->problem, &request->op_case.variant, err);
	request->op = entry != NULL ? entry->op : NULL;
	return request->op != NULL ? TRUTH_OK : TRUTH_NONE;
}

/* Reads the name of an edge case from the member "edge", and sets op_case.edge to its number. Returns -1 and sets `err`
 * if the family has no edge case of that name. */
static int read_edge(struct request *request, const cJSON *json, struct err *err)
{
	const char *name = json_text_of(json, "edge");
	const struct op_edge *edges = request->op->edges;

	for (int i = 0; name != NULL && edges != NULL && edges[i].name != NULL; i++)
		if (strcmp(edges[i].name, name) == 0)
			request->op_case.edge = i + 1;
	if (name != NULL && request->op_case.edge == 0)
		return err_set(err, "the case cannot be read: family %s has no edge case '%s'", request->op->name,
			       err_show(name).text);
	return 0;
}

/* Reads an array of names of inputs from the member `key`, and sets the bits of these inputs in `bits`. */
static int read_input_names(const struct request *request, const cJSON *json, const char *key, uint64_t *bits,
			    struct err *err)
{
	const cJSON *names = json_member(json, key), *item;

	if (names != NULL && !cJSON_IsArray(names))
		return malformed(err, key);
	cJSON_ArrayForEach(item, names)
	{
		int input = cJSON_IsString(item) ? op_input_index(&request->problem, item->valuestring) : -1;

		if (input < 0)
			return err_set(err, "the case cannot be read: \"%s\" names no input of the definition", key);
		*bits |= UINT64_C(1) << input;
	}
	return 0;
}

/* Reads which inputs the workload provides, and which inputs the case omits. */
static int read_sources(struct request *request, const cJSON *json, struct err *err)
{
	struct op_case *c = &request->op_case;

	if (read_input_names(request, json, "given", &c->given, err) < 0 ||
	    read_input_names(request, json, "absent", &c->absent, err) < 0)
		return -1;
	for (int i = 0; i < request->problem.input_count; i++)
		if ((c->absent >> i & 1) != 0 && !request->problem.inputs[i].optional)
			return err_set(err, "the request omits input '%s', which is not optional",
				       request->problem.inputs[i].name);
	return 0;
}

static int read_values(struct request *request, const cJSON *json, struct err *err)
{
	struct op_case *c = &request->op_case;
	int64_t seed = 0, contents = CONTENTS_FIRST;

	json_integer(json_member(json, "seed"), &seed);
	json_integer(json_member(json, "contents"), &contents);
	op_case_set_contents(c, (uint64_t)seed, contents == CONTENTS_FIRST ? CONTENTS_FIRST : CONTENTS_SECOND);
	c->probe = cJSON_IsTrue(json_member(json, "probe"));
	if (request->op->constants != NULL)
		c->constant_count = request->op->constants(&request->problem, c->variant, c->constants);
	if (read_edge(request, json, err) < 0 || read_sources(request, json, err) < 0)
		return TRUTH_BAD;
	read_constants(request, json);
	read_scalars(request, json);
	return TRUTH_OK;
}

/* Parses the text, and finds the family of the definition that the text contains. Returns TRUTH_OK, or the error code
 * that the exported function must return. If `sizes` is false, the text may be a definition without a case, and only
 * the problem, the family and the variant are read. The caller must always free the request. */
static int read_request(struct request *request, bool sizes, const char *text, struct err *err)
{
	struct json_text source = {.name = "the case", .text = text, .length = strlen(text), .first_line = 1};
	cJSON *json = json_parse(&source, err);
	int code;

	*request = (struct request){.op_case = {.problem = &request->problem}, .sizes = sizes};
	code = find_family(request, json, err);
	if (code == TRUTH_OK && sizes)
		code = read_values(request, json, err);
	cJSON_Delete(json);
	return code;
}

static int read_case(struct request *request, const char *text, struct err *err)
{
	return read_request(request, true, text, err);
}

/* Returns TRUTH_OK if every constant of the family has a value. */
static int constants_known(const struct request *request, struct err *err)
{
	for (int i = 0; i < request->op_case.constant_count; i++)
		if (isnan(request->op_case.constants[i].value)) {
			err_set(err,
				"the value of the constant '%s' of %s is unknown; give the value in the description or "
				"by a \"model:…\" tag",
				request->op_case.constants[i].name, request->problem.name);
			return TRUTH_NONE;
		}
	return TRUTH_OK;
}

/* Makes a tensor that uses the memory at `place`. Returns -1 if the size of `place` is not the size of the tensor. */
static int tensor_at(const struct request *request, const struct op_arg *arg, const struct truth_place *place,
		     struct tensor *out, struct err *err)
{
	*out = (struct tensor){.data = place->data, .dtype = arg->dtype, .rank = arg->rank, .elements = 1};
	if (arg->rank == OP_SCALAR)
		return 0;
	for (int d = 0; d < arg->rank; d++) {
		out->shape[d] = request->op_case.axis[arg->axis[d]];
		if (out->shape[d] > 0 && out->elements > (INT64_MAX >> 4) / out->shape[d])
			return err_set(err, "tensor '%s' has too many elements", arg->name);
		out->elements *= out->shape[d];
	}
	if (place->data == NULL && arg->optional)
		return 0;
	if (place->data == NULL && out->elements > 0)
		return err_set(err, "the tensor '%s' is missing", arg->name);
	if (place->bytes != dtype_bytes(arg->dtype, out->elements))
		return err_set(err, "the tensor '%s' needs %lld bytes, but the caller passed %lld", arg->name,
			       (long long)dtype_bytes(arg->dtype, out->elements), (long long)place->bytes);
	return 0;
}

static int tensors_at(const struct request *request, const struct op_arg *args, int count,
		      const struct truth_place *places, struct tensor *out, struct err *err)
{
	for (int i = 0; i < count; i++)
		if (tensor_at(request, &args[i], &places[i], &out[i], err) < 0)
			return TRUTH_BAD;
	return TRUTH_OK;
}

static int inputs_at(const struct request *request, const struct truth_place *places, struct tensor *out,
		     struct err *err)
{
	return tensors_at(request, request->problem.inputs, request->problem.input_count, places, out, err);
}

static int outputs_at(const struct request *request, const struct truth_place *places, struct tensor *out,
		      struct err *err)
{
	return tensors_at(request, request->problem.outputs, request->problem.output_count, places, out, err);
}

static int answer(struct request *request, int code, const struct err *err, char *why, size_t room)
{
	if (room > 0)
		snprintf(why, room, "%s", err->text);
	arena_free(&request->arena);
	return code;
}

static struct rule rule_override(struct rule rule, const struct rule *by)
{
	return (struct rule){by->atol >= 0 ? by->atol : rule.atol, by->rtol >= 0 ? by->rtol : rule.rtol,
			     by->hit_ratio >= 0 ? by->hit_ratio : rule.hit_ratio};
}

/* ---- exported functions ----------------------------------------------------------------------------------------- */

SHOWN int reftest_family(const char *text, char *why, size_t room)
{
	struct request request;
	struct err err = {""};
	int code = read_case(&request, text, &err);

	if (code == TRUTH_OK)
		err_set(&err, "%s", request.op->name);
	return answer(&request, code, &err, why, room);
}

SHOWN int reftest_roles(const char *text, char *out, size_t room)
{
	struct request request;
	struct buf json = {0};
	struct err err = {""};
	int code = read_request(&request, false, text, &err);

	if (code == TRUTH_OK) {
		struct op_names names = op_names_of(request.op, &request.problem, request.op_case.variant);

		buf_text(&json, "{");
		op_names_write(&names, &request.problem, &json);
		buf_text(&json, "}");
		if (json.length >= room)
			code = err_set(&err, "the JSON text needs a buffer of %zu bytes, but the caller's buffer has %zu bytes",
				       json.length + 1, room);
	}
	code = answer(&request, code, &err, out, room);
	if (code == TRUTH_OK)
		memcpy(out, json.data, json.length + 1);
	buf_free(&json);
	return code;
}

/* Returns true if this input has a truth of its own, because the operation writes to it and does not return it. */
static bool has_own_truth(const struct request *request, int input)
{
	const struct op_problem *problem = &request->problem;

	return input >= 0 && input < problem->input_count && problem->inputs[input].rank != OP_SCALAR &&
	       request->op->in_place != NULL &&
	       request->op->in_place(&request->op_case, input).place == op_own_place(problem, input);
}

/* Writes the family's tolerance rule for an output, or for an input that the operation writes to. */
static int find_rule(const struct request *request, int output, struct rule *out, struct err *err)
{
	if (output < 0 || (output >= request->problem.output_count &&
			   !has_own_truth(request, output - request->problem.output_count))) {
		err_set(err, "definition %s has no output %d", request->problem.name, output);
		return TRUTH_BAD;
	}
	*out = request->op->rule(&request->op_case, output);
	return TRUTH_OK;
}

/* Writes the family's tolerance rule of an output. If `overridden` is true, the tolerance that the definition itself
 * states replaces the rule. */
static int answer_rule(const char *text, int output, bool overridden, double rule[3], char *why, size_t room)
{
	struct request request;
	struct rule found;
	struct err err = {""};
	int code = read_case(&request, text, &err);

	if (code == TRUTH_OK)
		code = find_rule(&request, output, &found, &err);
	if (code == TRUTH_OK && overridden && output < request.problem.output_count)
		found = rule_override(found, &request.tolerance[output]);
	if (code == TRUTH_OK) {
		rule[0] = found.atol;
		rule[1] = found.rtol;
		rule[2] = found.hit_ratio;
	}
	return answer(&request, code, &err, why, room);
}

SHOWN int reftest_rule(const char *text, int output, double rule[3], char *why, size_t room)
{
	return answer_rule(text, output, false, rule, why, room);
}

SHOWN int reftest_bounds(const char *text, int output, double rule[3], char *why, size_t room)
{
	return answer_rule(text, output, true, rule, why, room);
}

static int check_input(const struct request *request, int input, bool scalar, struct err *err)
{
	if (input < 0 || input >= request->problem.input_count)
		err_set(err, "definition %s has no input %d", request->problem.name, input);
	else if ((request->problem.inputs[input].rank == OP_SCALAR) != scalar)
		err_set(err, "input '%s' is %sa Python scalar", request->problem.inputs[input].name,
			scalar ? "not " : "");
	else
		return TRUTH_OK;
	return TRUTH_BAD;
}

SHOWN int reftest_fill(const char *text, int input, struct truth_place to, char *why, size_t room)
{
	struct request request;
	struct tensor out;
	struct err err = {""};
	int code = read_case(&request, text, &err);

	if (code == TRUTH_OK)
		code = check_input(&request, input, false, &err);
	if (code == TRUTH_OK && !request.op_case.probe)
		code = constants_known(&request, &err);
	if (code == TRUTH_OK && tensor_at(&request, &request.problem.inputs[input], &to, &out, &err) < 0)
		code = TRUTH_BAD;
	if (code == TRUTH_OK && to.data != NULL && request.op->fill(&request.op_case, input, &out, &err) != 0)
		code = TRUTH_BAD;
	return answer(&request, code, &err, why, room);
}

SHOWN int reftest_scalar(const char *text, int input, double *value, char *why, size_t room)
{
	struct request request;
	struct err err = {""};
	int code = read_case(&request, text, &err);

	if (code == TRUTH_OK)
		code = check_input(&request, input, true, &err);
	if (code == TRUTH_OK)
		*value = request.op_case.scalar[input];
	return answer(&request, code, &err, why, room);
}

SHOWN int reftest_constant(const char *text, const char *name, double *value, char *why, size_t room)
{
	struct request request;
	struct err err = {""};
	int code = read_case(&request, text, &err);

	if (code == TRUTH_OK) {
		code = TRUTH_NONE;
		for (int i = 0; i < request.op_case.constant_count; i++)
			if (strcmp(request.op_case.constants[i].name, name) == 0) {
				*value = request.op_case.constants[i].value;
				code = isnan(*value) ? TRUTH_NONE : TRUTH_OK;
			}
		if (code == TRUTH_NONE)
			err_set(&err, "the value of the constant '%s' is unknown", err_show(name).text);
	}
	return answer(&request, code, &err, why, room);
}

/* Writes the constants that the probe has found, for example {"eps": 1e-06}. These constants had no value before the
 * probe, and have a value now. */
static void write_recovered(const struct op_constant *before, const struct op_constant *now, int count, struct buf *out)
{
	const char *comma = "";

	buf_text(out, "{");
	for (int i = 0; i < count; i++) {
		if (!isnan(before[i].value) || isnan(now[i].value))
			continue;
		buf_text(out, comma);
		buf_json_string(out, now[i].name);
		buf_text(out, ":");
		buf_json_number(out, now[i].value);
		comma = ",";
	}
	buf_text(out, "}");
}

static int recover(struct request *request, const struct truth_place *in, const struct truth_place *out,
		   struct buf *json, struct err *err)
{
	struct tensor inputs[OP_ARGS] = {0}, outputs[OP_ARGS] = {0};
	struct op_constant constants[OP_CONSTANTS];
	const struct op_case *c = &request->op_case;

	if (!c->probe)
		return malformed(err, "\"probe\"");
	if (request->op->probe == NULL) {
		err_set(err, "family %s has no case whose outputs reveal the unknown constants", request->op->name);
		return TRUTH_NONE;
	}
	if (inputs_at(request, in, inputs, err) != TRUTH_OK || outputs_at(request, out, outputs, err) != TRUTH_OK)
		return TRUTH_BAD;
	memcpy(constants, c->constants, sizeof constants);
	if (request->op->probe(c, inputs, outputs, constants, err) != 0)
		return TRUTH_REFUSED;
	write_recovered(c->constants, constants, c->constant_count, json);
	return TRUTH_OK;
}

SHOWN int reftest_probe(const char *text, const struct truth_place *in, const struct truth_place *out, char *why,
			size_t room)
{
	struct request request;
	struct buf json = {0};
	struct err err = {""};
	int code = read_case(&request, text, &err);

	if (code == TRUTH_OK)
		code = recover(&request, in, out, &json, &err);
	if (code == TRUTH_OK)
		err_set(&err, "%s", json.data);
	buf_free(&json);
	return answer(&request, code, &err, why, room);
}

static struct device *open_cpu(int index, struct err *err)
{
	(void)index;
	return device_open_cpu(err);
}

/* For each input i whose truth is requested (left[i].data is not NULL), stores in `outputs`, at op_own_place, the
 * tensor that receives this truth. */
static int left_at(const struct request *request, const struct truth_place *left, struct tensor *outputs,
		   struct err *err)
{
	const struct op_problem *problem = &request->problem;

	for (int i = 0; left != NULL && i < problem->input_count; i++) {
		if (left[i].data == NULL)
			continue;
		if (!has_own_truth(request, i)) {
			err_set(err, "input '%s' of %s stays unchanged or gets the values of an output, so it has no ground truth of its own",
				problem->inputs[i].name, problem->name);
			return TRUTH_BAD;
		}
		if (tensor_at(request, &problem->inputs[i], &left[i], &outputs[op_own_place(problem, i)], err) < 0)
			return TRUTH_BAD;
	}
	return TRUTH_OK;
}

static int compute(const struct request *request, struct device *device, const struct truth_place *in,
		   const struct truth_place *out, const struct truth_place *left, struct err *err)
{
	struct tensor inputs[OP_ARGS] = {0}, outputs[OP_PLACES] = {0};

	if (inputs_at(request, in, inputs, err) != TRUTH_OK || outputs_at(request, out, outputs, err) != TRUTH_OK ||
	    left_at(request, left, outputs, err) != TRUTH_OK)
		return TRUTH_BAD;
	return device->calls->truth(device, request->op, &request->op_case, inputs, outputs, err) == 0 ? TRUTH_OK
												   : TRUTH_BAD;
}

int truth_on(struct device *(*open)(int index, struct err *err), int index, const char *text,
	     const struct truth_place *in, const struct truth_place *out, const struct truth_place *left, char *why,
	     size_t room)
{
	struct request request;
	struct err err = {""};
	int code = read_case(&request, text, &err);

	if (code == TRUTH_OK)
		code = constants_known(&request, &err);
	if (code == TRUTH_OK) {
		struct device *device = open(index, &err);

		code = device != NULL ? compute(&request, device, in, out, left, &err) : TRUTH_BAD;
		if (device != NULL)
			device->calls->close(device);
	}
	return answer(&request, code, &err, why, room);
}

SHOWN int reftest_truth(const char *text, const struct truth_place *in, const struct truth_place *out, char *why,
			size_t room)
{
	return truth_on(open_cpu, 0, text, in, out, NULL, why, room);
}

SHOWN int reftest_truth_left(const char *text, const struct truth_place *in, const struct truth_place *out,
			     const struct truth_place *left, char *why, size_t room)
{
	return truth_on(open_cpu, 0, text, in, out, left, why, room);
}

/* An output that op.judge judges, with the tensors of its case. */
struct judged {
	struct request request;
	struct tensor inputs[OP_ARGS], theirs[OP_ARGS], ours[OP_ARGS];
	struct metrics metrics;
	double evidence[OP_EVIDENCE];
};

/* Reads the case, and finds its outputs. Returns TRUTH_OK, or the error code that the exported function must return. */
static int read_outputs(struct judged *judged, const char *text, int output, const struct truth_place *reference,
			const struct truth_place *truth, struct err *err)
{
	const struct request *request = &judged->request;
	int code = read_case(&judged->request, text, err);

	if (code != TRUTH_OK)
		return code;
	if (output < 0 || output >= request->problem.output_count) {
		err_set(err, "%s has %d outputs, so there is no output %d", request->problem.name,
			request->problem.output_count, output);
		return TRUTH_BAD;
	}
	if (outputs_at(request, reference, judged->theirs, err) != TRUTH_OK ||
	    outputs_at(request, truth, judged->ours, err) != TRUTH_OK)
		return TRUTH_BAD;
	return TRUTH_OK;
}

/* Reads the case, and finds its inputs and outputs. Returns the same codes as read_outputs. */
static int read_judged(struct judged *judged, const char *text, int output, const struct truth_place *in,
		       const struct truth_place *reference, const struct truth_place *truth, struct err *err)
{
	int code = read_outputs(judged, text, output, reference, truth, err);

	return code == TRUTH_OK && inputs_at(&judged->request, in, judged->inputs, err) != TRUTH_OK ? TRUTH_BAD : code;
}

/* Judges the output. Returns TRUTH_REFUSED if the output is wrong, and TRUTH_NONE if the elementwise rule applies to
 * the output. */
static int judge(struct judged *judged, int output, struct err *err)
{
	const struct request *request = &judged->request;
	int found = 0;

	if (request->op->judge != NULL)
		found = request->op->judge(&request->op_case, output, judged->inputs, &judged->theirs[output],
					   &judged->ours[output], &judged->metrics, judged->evidence, err);
	if (found == 0)
		err_set(err, "the op family of %s has no check of its own for this output: compare each element within "
		    "the tolerance",
			request->problem.name);
	return found < 0 ? TRUTH_BAD : found == 0 ? TRUTH_NONE : judged->metrics.passed ? TRUTH_OK : TRUTH_REFUSED;
}

SHOWN int reftest_judge(const char *text, int output, const struct truth_place *in, const struct truth_place *reference,
			const struct truth_place *truth, char *why, size_t room)
{
	struct judged judged = {0};
	struct err err = {""};
	int code = read_judged(&judged, text, output, in, reference, truth, &err);

	if (code == TRUTH_OK)
		code = judge(&judged, output, &err);
	return answer(&judged.request, code, &err, why, room);
}

SHOWN int reftest_rounding(const char *text, int output, const struct truth_place *reference,
			   const struct truth_place *truth, char *why, size_t room)
{
	struct judged judged = {0};
	const struct request *request = &judged.request;
	struct err err = {""};
	int code = read_outputs(&judged, text, output, reference, truth, &err);

	if (code == TRUTH_OK && output_is_truncated(request->problem.outputs[output].name, &judged.theirs[output],
						    &judged.ours[output], &err))
		code = TRUTH_REFUSED;
	return answer(&judged.request, code, &err, why, room);
}

/* Judges the output on both sets together. The caller has judged the output on each set, and the output passed both
 * times. */
static int judge_both(const struct judged *judged, int output, struct err *err)
{
	const struct op_case *cases[CONTENTS_COUNT];
	const struct tensor *outputs[CONTENTS_COUNT];
	const double *evidence[CONTENTS_COUNT];
	const struct op *op = judged[CONTENTS_FIRST].request.op;

	for (int i = 0; i < CONTENTS_COUNT; i++) {
		cases[i] = &judged[i].request.op_case;
		outputs[i] = &judged[i].theirs[output];
		evidence[i] = judged[i].evidence;
	}
	if (op->judge_both == NULL || op != judged[CONTENTS_SECOND].request.op) {
		err_set(err, "the op family has no check that combines the outputs for both sets of input values");
		return TRUTH_NONE;
	}
	return op->judge_both(cases, output, outputs, evidence, err) != 0 ? TRUTH_REFUSED : TRUTH_OK;
}

SHOWN int reftest_judge_both(const struct truth_judged sets[2], int output, char *why, size_t room)
{
	struct judged judged[CONTENTS_COUNT] = {0};
	struct err err = {""};
	int code = TRUTH_OK;

	for (int i = 0; i < CONTENTS_COUNT && code == TRUTH_OK; i++) {
		code = read_judged(&judged[i], sets[i].text, output, sets[i].in, sets[i].reference, sets[i].truth, &err);
		if (code == TRUTH_OK)
			code = judge(&judged[i], output, &err);
	}
	if (code == TRUTH_OK)
		code = judge_both(judged, output, &err);
	arena_free(&judged[CONTENTS_SECOND].request.arena);
	return answer(&judged[CONTENTS_FIRST].request, code, &err, why, room);
}
