#include "kernels/truth.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "kernels/device.h"
#include "kernels/op.h"

#define SHOWN __attribute__((visibility("default")))

enum { AXES = 128 };

/* What a text asks for, once it has been read. Everything is in `arena`. */
struct asked {
	struct arena arena;
	struct op_problem problem;
	struct op_case op_case;
	const struct op *op;
	const struct rule *tolerance; /* what the definition says itself of each output; of a member that is negative nothing */
};

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static int malformed(struct err *err, const char *what)
{
	return err_set(err, "the case cannot be read: %s is missing or not as a definition has it", what);
}

static const char *text_or(struct arena *arena, const cJSON *object, const char *key, const char *otherwise)
{
	const char *text = json_text_of(object, key);

	return text != NULL ? arena_string(arena, text) : otherwise;
}

static int read_axes(struct asked *asked, const cJSON *definition, const cJSON *values, struct err *err)
{
	const cJSON *json = json_member(definition, "axes"), *item;
	int count = cJSON_IsObject(json) ? cJSON_GetArraySize(json) : -1, at = 0;
	struct op_axis *axes = arena_array(&asked->arena, AXES, sizeof *axes);
	int64_t *axis = arena_array(&asked->arena, AXES, sizeof *axis);

	if (count < 0 || count > AXES)
		return malformed(err, "\"axes\"");
	cJSON_ArrayForEach(item, json)
	{
		const char *type = json_text_of(item, "type");

		axes[at].name = arena_string(&asked->arena, item->string);
		axes[at].var = type != NULL && strcmp(type, "var") == 0;
		if (!json_integer(axes[at].var ? json_member(values, item->string) : json_member(item, "value"),
				  &axis[at]) ||
		    axis[at] < 0)
			return err_set(err, "the case cannot be read: axis '%s' has no value",
				       err_show(item->string).text);
		axes[at].value = axes[at].var ? 0 : axis[at];
		at++;
	}
	asked->problem.axes = axes;
	asked->problem.axis_count = count;
	asked->op_case.axis = axis;
	return 0;
}

static int read_shape(struct asked *asked, const cJSON *shape, struct op_arg *arg, struct err *err)
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
		int axis = cJSON_IsString(item) ? op_axis_index(&asked->problem, item->valuestring) : -1;

		if (axis < 0)
			return malformed(err, "an axis of a \"shape\"");
		arg->axis[arg->rank++] = axis;
	}
	return 0;
}

static int read_args(struct asked *asked, const cJSON *definition, const char *key, const struct op_arg **out,
		     int *count, struct err *err)
{
	const cJSON *json = json_member(definition, key), *item;
	struct op_arg *args = arena_array(&asked->arena, OP_ARGS, sizeof *args);

	*count = 0;
	*out = args;
	if (!cJSON_IsObject(json) || cJSON_GetArraySize(json) > OP_ARGS)
		return malformed(err, key);
	cJSON_ArrayForEach(item, json)
	{
		struct op_arg *arg = &args[(*count)++];
		const char *dtype = json_text_of(item, "dtype");

		arg->name = arena_string(&asked->arena, item->string);
		arg->optional = cJSON_IsTrue(json_member(item, "optional"));
		if (dtype == NULL || !dtype_parse(dtype, &arg->dtype))
			return malformed(err, "a \"dtype\"");
		if (read_shape(asked, json_member(item, "shape"), arg, err) < 0)
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

/* The definition's own, and in its place what an output says. */
static void read_tolerances(struct asked *asked, const cJSON *definition)
{
	struct rule *rules = arena_array(&asked->arena, (size_t)asked->problem.output_count + 1, sizeof *rules);
	const cJSON *item;
	int at = 0;

	cJSON_ArrayForEach(item, json_member(definition, "outputs"))
	{
		rules[at] = (struct rule){-1, -1, -1};
		read_tolerance(definition, &rules[at]);
		read_tolerance(item, &rules[at++]);
	}
	asked->tolerance = rules;
}

static void read_tags(struct asked *asked, const cJSON *definition)
{
	const cJSON *json = json_member(definition, "tags"), *item;
	const char **tags =
	    arena_array(&asked->arena, (size_t)(cJSON_IsArray(json) ? cJSON_GetArraySize(json) : 0), sizeof *tags);

	if (!cJSON_IsArray(json))
		return;
	cJSON_ArrayForEach(item, json)
		if (cJSON_IsString(item))
			tags[asked->problem.tag_count++] = arena_string(&asked->arena, item->valuestring);
	asked->problem.tags = tags;
}

static void read_scalars(struct asked *asked, const cJSON *json)
{
	struct op_case *c = &asked->op_case;

	for (int i = 0; i < asked->problem.input_count; i++) {
		const cJSON *given = json_member(json_member(json, "scalars"), asked->problem.inputs[i].name);

		if (asked->problem.inputs[i].rank != OP_SCALAR)
			continue;
		c->scalar[i] = dtype_is_float(asked->problem.inputs[i].dtype) ? 1 : 0;
		if (asked->op != NULL && asked->op->scalar != NULL)
			c->scalar[i] = asked->op->scalar(c, i);
		if (cJSON_IsNumber(given))
			c->scalar[i] = given->valuedouble;
		else if (cJSON_IsBool(given))
			c->scalar[i] = cJSON_IsTrue(given);
	}
}

/* Values for hidden constants that nothing attests. */
static void read_constants(struct asked *asked, const cJSON *json)
{
	struct op_case *c = &asked->op_case;

	for (int i = 0; i < c->constant_count; i++) {
		const cJSON *given = json_member(json_member(json, "constants"), c->constants[i].name);

		if (isnan(c->constants[i].value) && cJSON_IsNumber(given))
			c->constants[i].value = given->valuedouble;
	}
}

static int read_definition(struct asked *asked, const cJSON *json, struct err *err)
{
	const cJSON *definition = json_member(json, "definition");
	struct op_problem *problem = &asked->problem;

	problem->name = text_or(&asked->arena, definition, "name", NULL);
	problem->op_type = text_or(&asked->arena, definition, "op_type", NULL);
	problem->description = text_or(&asked->arena, definition, "description", "");
	if (problem->name == NULL || problem->op_type == NULL)
		return malformed(err, "\"name\" or \"op_type\"");
	read_tags(asked, definition);
	if (read_axes(asked, definition, json_member(json, "axes"), err) < 0 ||
	    read_args(asked, definition, "inputs", &problem->inputs, &problem->input_count, err) < 0 ||
	    read_args(asked, definition, "outputs", &problem->outputs, &problem->output_count, err) < 0)
		return -1;
	read_tolerances(asked, definition);
	return 0;
}

/* TRUTH_OK with a family; else what to return. `asked` is to be freed in any case. */
static int ask(struct asked *asked, const char *text, struct err *err)
{
	struct json_text source = {.name = "the case", .text = text, .length = strlen(text), .first_line = 1};
	struct op_case *c = &asked->op_case;
	cJSON *json = json_parse(&source, err);
	const struct op_entry *entry;
	int64_t seed = 0, contents = CONTENTS_FIRST;

	*asked = (struct asked){.op_case = {.problem = &asked->problem}};
	if (json == NULL || read_definition(asked, json, err) < 0) {
		cJSON_Delete(json);
		return TRUTH_BAD;
	}
	json_integer(json_member(json, "seed"), &seed);
	json_integer(json_member(json, "contents"), &contents);
	op_case_set_contents(c, (uint64_t)seed, contents == CONTENTS_FIRST ? CONTENTS_FIRST : CONTENTS_SECOND);
	entry = op_find(&asked->problem, &c->variant, err);
	asked->op = entry != NULL ? entry->op : NULL;
	if (asked->op != NULL && asked->op->constants != NULL)
		c->constant_count = asked->op->constants(&asked->problem, c->variant, c->constants);
	read_constants(asked, json);
	read_scalars(asked, json);
	cJSON_Delete(json);
	return asked->op != NULL ? TRUTH_OK : TRUTH_NONE;
}

/* TRUTH_OK when every hidden constant has a value. */
static int attested(const struct asked *asked, struct err *err)
{
	for (int i = 0; i < asked->op_case.constant_count; i++)
		if (isnan(asked->op_case.constants[i].value)) {
			err_set(err,
				"the constant '%s' of %s is attested by nothing; a \"model:…\" tag or a word in the "
				"description "
				"would",
				asked->op_case.constants[i].name, asked->problem.name);
			return TRUTH_NONE;
		}
	return TRUTH_OK;
}

/* The tensor that lies at a place; -1: the place does not fit it. */
static int tensor_at(const struct asked *asked, const struct op_arg *arg, const struct truth_place *place,
		     struct tensor *out, struct err *err)
{
	*out = (struct tensor){.data = place->data, .dtype = arg->dtype, .rank = arg->rank, .elements = 1};
	if (arg->rank == OP_SCALAR)
		return 0;
	for (int d = 0; d < arg->rank; d++) {
		out->shape[d] = asked->op_case.axis[arg->axis[d]];
		if (out->shape[d] > 0 && out->elements > (INT64_MAX >> 4) / out->shape[d])
			return err_set(err, "'%s' has more elements than can be counted", arg->name);
		out->elements *= out->shape[d];
	}
	if (place->data == NULL && arg->optional)
		return 0;
	if (place->data == NULL && out->elements > 0)
		return err_set(err, "'%s' is missing", arg->name);
	if (place->bytes != dtype_bytes(arg->dtype, out->elements))
		return err_set(err, "'%s' takes %lld bytes, and %lld are given", arg->name,
			       (long long)dtype_bytes(arg->dtype, out->elements), (long long)place->bytes);
	return 0;
}

static int tensors_at(const struct asked *asked, const struct op_arg *args, int count, const struct truth_place *places,
		      struct tensor *out, struct err *err)
{
	for (int i = 0; i < count; i++)
		if (tensor_at(asked, &args[i], &places[i], &out[i], err) < 0)
			return TRUTH_BAD;
	return TRUTH_OK;
}

static int inputs_at(const struct asked *asked, const struct truth_place *places, struct tensor *out, struct err *err)
{
	return tensors_at(asked, asked->problem.inputs, asked->problem.input_count, places, out, err);
}

static int outputs_at(const struct asked *asked, const struct truth_place *places, struct tensor *out, struct err *err)
{
	return tensors_at(asked, asked->problem.outputs, asked->problem.output_count, places, out, err);
}

static int answer(struct asked *asked, int code, const struct err *err, char *why, size_t room)
{
	if (room > 0)
		snprintf(why, room, "%s", err->text);
	arena_free(&asked->arena);
	return code;
}

static struct rule rule_override(struct rule rule, const struct rule *by)
{
	return (struct rule){by->atol >= 0 ? by->atol : rule.atol, by->rtol >= 0 ? by->rtol : rule.rtol,
			     by->hit_ratio >= 0 ? by->hit_ratio : rule.hit_ratio};
}

/* ---- what is shown ---------------------------------------------------------------------------------------------- */

SHOWN int reftest_family(const char *text, char *why, size_t room)
{
	struct asked asked;
	struct err err = {""};
	int code = ask(&asked, text, &err);

	if (code == TRUTH_OK)
		err_set(&err, "%s", asked.op->name);
	return answer(&asked, code, &err, why, room);
}

/* Does the operation write to this input without returning it, so that it has a truth of its own? */
static bool has_own_truth(const struct asked *asked, int input)
{
	const struct op_problem *problem = &asked->problem;

	return input >= 0 && input < problem->input_count && problem->inputs[input].rank != OP_SCALAR &&
	       asked->op->leaves != NULL &&
	       asked->op->leaves(&asked->op_case, input).place == op_own_place(problem, input);
}

/* The family's rule of an output, or of what is left in an input. */
static int find_rule(const struct asked *asked, int output, struct rule *out, struct err *err)
{
	if (output < 0 || (output >= asked->problem.output_count &&
			   !has_own_truth(asked, output - asked->problem.output_count))) {
		err_set(err, "%s has no output %d", asked->problem.name, output);
		return TRUTH_BAD;
	}
	*out = asked->op->rule(&asked->op_case, output);
	return TRUTH_OK;
}

static void tell_rule(struct rule found, double rule[3])
{
	rule[0] = found.atol;
	rule[1] = found.rtol;
	rule[2] = found.hit_ratio;
}

SHOWN int reftest_rule(const char *text, int output, double rule[3], char *why, size_t room)
{
	struct asked asked;
	struct rule found;
	struct err err = {""};
	int code = ask(&asked, text, &err);

	if (code == TRUTH_OK)
		code = find_rule(&asked, output, &found, &err);
	if (code == TRUTH_OK)
		tell_rule(found, rule);
	return answer(&asked, code, &err, why, room);
}

SHOWN int reftest_bounds(const char *text, int output, double rule[3], char *why, size_t room)
{
	struct asked asked;
	struct rule found;
	struct err err = {""};
	int code = ask(&asked, text, &err);

	if (code == TRUTH_OK)
		code = find_rule(&asked, output, &found, &err);
	if (code == TRUTH_OK && output < asked.problem.output_count)
		found = rule_override(found, &asked.tolerance[output]);
	if (code == TRUTH_OK)
		tell_rule(found, rule);
	return answer(&asked, code, &err, why, room);
}

static int check_input(const struct asked *asked, int input, bool scalar, struct err *err)
{
	if (input < 0 || input >= asked->problem.input_count)
		err_set(err, "%s has no input %d", asked->problem.name, input);
	else if ((asked->problem.inputs[input].rank == OP_SCALAR) != scalar)
		err_set(err, "input '%s' is %s Python scalar", asked->problem.inputs[input].name, scalar ? "no" : "a");
	else
		return TRUTH_OK;
	return TRUTH_BAD;
}

SHOWN int reftest_fill(const char *text, int input, struct truth_place to, char *why, size_t room)
{
	struct asked asked;
	struct tensor out;
	struct err err = {""};
	int code = ask(&asked, text, &err);

	if (code == TRUTH_OK)
		code = check_input(&asked, input, false, &err);
	if (code == TRUTH_OK)
		code = attested(&asked, &err);
	if (code == TRUTH_OK && tensor_at(&asked, &asked.problem.inputs[input], &to, &out, &err) < 0)
		code = TRUTH_BAD;
	if (code == TRUTH_OK && to.data != NULL && asked.op->fill(&asked.op_case, input, &out, &err) != 0)
		code = TRUTH_BAD;
	return answer(&asked, code, &err, why, room);
}

SHOWN int reftest_scalar(const char *text, int input, double *value, char *why, size_t room)
{
	struct asked asked;
	struct err err = {""};
	int code = ask(&asked, text, &err);

	if (code == TRUTH_OK)
		code = check_input(&asked, input, true, &err);
	if (code == TRUTH_OK)
		*value = asked.op_case.scalar[input];
	return answer(&asked, code, &err, why, room);
}

SHOWN int reftest_constant(const char *text, const char *name, double *value, char *why, size_t room)
{
	struct asked asked;
	struct err err = {""};
	int code = ask(&asked, text, &err);

	if (code == TRUTH_OK) {
		code = TRUTH_NONE;
		for (int i = 0; i < asked.op_case.constant_count; i++)
			if (strcmp(asked.op_case.constants[i].name, name) == 0) {
				*value = asked.op_case.constants[i].value;
				code = isnan(*value) ? TRUTH_NONE : TRUTH_OK;
			}
		if (code == TRUTH_NONE)
			err_set(&err, "nothing attests '%s'", err_show(name).text);
	}
	return answer(&asked, code, &err, why, room);
}

static struct device *open_cpu(int index, struct err *err)
{
	(void)index;
	return device_open_cpu(err);
}

/* Where the truth of inputs goes, behind that of the outputs. */
static int left_at(const struct asked *asked, const struct truth_place *left, struct tensor *outputs, struct err *err)
{
	const struct op_problem *problem = &asked->problem;

	for (int i = 0; left != NULL && i < problem->input_count; i++) {
		if (left[i].data == NULL)
			continue;
		if (!has_own_truth(asked, i)) {
			err_set(err, "%s leaves in its input '%s' what it held, or one of its outputs", problem->name,
				problem->inputs[i].name);
			return TRUTH_BAD;
		}
		if (tensor_at(asked, &problem->inputs[i], &left[i], &outputs[op_own_place(problem, i)], err) < 0)
			return TRUTH_BAD;
	}
	return TRUTH_OK;
}

static int compute(const struct asked *asked, struct device *device, const struct truth_place *in,
		   const struct truth_place *out, const struct truth_place *left, struct err *err)
{
	struct tensor inputs[OP_ARGS] = {0}, outputs[OP_PLACES] = {0};

	if (inputs_at(asked, in, inputs, err) != TRUTH_OK || outputs_at(asked, out, outputs, err) != TRUTH_OK ||
	    left_at(asked, left, outputs, err) != TRUTH_OK)
		return TRUTH_BAD;
	return device->calls->truth(device, asked->op, &asked->op_case, inputs, outputs, err) == 0 ? TRUTH_OK
												   : TRUTH_BAD;
}

int truth_on(struct device *(*open)(int index, struct err *err), int index, const char *text,
	     const struct truth_place *in, const struct truth_place *out, const struct truth_place *left, char *why,
	     size_t room)
{
	struct asked asked;
	struct err err = {""};
	int code = ask(&asked, text, &err);

	if (code == TRUTH_OK)
		code = attested(&asked, &err);
	if (code == TRUTH_OK) {
		struct device *device = open(index, &err);

		code = device != NULL ? compute(&asked, device, in, out, left, &err) : TRUTH_BAD;
		if (device != NULL)
			device->calls->close(device);
	}
	return answer(&asked, code, &err, why, room);
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

SHOWN int reftest_judge(const char *text, int output, const struct truth_place *in, const struct truth_place *reference,
			const struct truth_place *truth, char *why, size_t room)
{
	struct tensor inputs[OP_ARGS] = {0}, theirs[OP_ARGS] = {0}, ours[OP_ARGS] = {0};
	struct asked asked;
	struct metrics metrics;
	struct err err = {""};
	int code = ask(&asked, text, &err), judged = 0;

	if (code == TRUTH_OK &&
	    (output < 0 || output >= asked.problem.output_count || inputs_at(&asked, in, inputs, &err) != TRUTH_OK ||
	     outputs_at(&asked, reference, theirs, &err) != TRUTH_OK ||
	     outputs_at(&asked, truth, ours, &err) != TRUTH_OK))
		code = TRUTH_BAD;
	if (code == TRUTH_OK && asked.op->judge != NULL)
		judged = asked.op->judge(&asked.op_case, output, inputs, theirs, ours, &metrics, &err);
	if (code == TRUTH_OK)
		code = judged < 0 ? TRUTH_BAD : judged == 0 ? TRUTH_NONE : metrics.passed ? TRUTH_OK : TRUTH_REFUSED;
	return answer(&asked, code, &err, why, room);
}
