#include "dataset/truth_chain.h"

#include <string.h>

struct reader {
	const struct json_text *text;
	const struct chain_scope *scope;
	struct arena *arena;
	struct chain *out;
	/* For each tensor, the number of the step that makes it; 0 if no step has made it yet. */
	int made_by[CHAIN_STEPS * CHAIN_ARGS];
	int step;			       /* the number of the current step, from 1 */
	struct err *err;
};

static int index_of(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

/* Returns the index of the tensor with the name `name`, or -1. */
static int find_tensor(const struct reader *r, const char *name)
{
	const struct chain_scope *scope = r->scope;
	int at = index_of(scope->outputs, scope->output_count, name);

	if (at >= 0 && r->made_by[scope->input_count + at] > 0)
		return scope->input_count + at; /* if an input has the same name, the name now means the output */
	if (index_of(scope->inputs, scope->input_count, name) >= 0)
		return index_of(scope->inputs, scope->input_count, name);
	for (int i = 0; i < r->out->tensor_count; i++)
		if (strcmp(r->out->tensors[i].name, name) == 0)
			return scope->input_count + scope->output_count + i;
	return at < 0 ? -1 : scope->input_count + at;
}

static int expected(struct reader *r, const struct json_step *at, const char *what, const cJSON *found)
{
	return json_expected(r->text, at, found, r->err, what);
}

/* Returns whether an output of the step `step` or of a later step has the name `name`. */
static bool is_made_later(const cJSON *steps, int step, const char *name)
{
	int number = 0;

	for (const cJSON *item = steps->child; item != NULL; item = item->next)
		if (++number >= step)
			for (const cJSON *out = json_member(item, "outputs") != NULL ? json_member(item, "outputs")->child : NULL;
			     out != NULL; out = out->next) {
				const char *made = cJSON_IsString(out) ? out->valuestring : json_text_of(out, "name");

				if (made != NULL && strcmp(made, name) == 0)
					return true;
			}
	return false;
}

static int read_input(struct reader *r, const struct json_step *at, const cJSON *item, const cJSON *steps, int *tensor)
{
	if (!cJSON_IsString(item))
		return expected(r, at, "the name of a tensor", item);
	*tensor = find_tensor(r, item->valuestring);
	if (*tensor >= 0 && (*tensor < r->scope->input_count || r->made_by[*tensor] > 0))
		return 0;
	if (is_made_later(steps, r->step, item->valuestring))
		return json_error_at(r->text, at, r->err,
				     "the chain is circular: step %d needs \"%s\", which only this or a later step "
				     "produces",
				     r->step, err_show(item->valuestring).text);
	return json_error_at(r->text, at, r->err,
			     "no input of the definition and no output of an earlier step has the name \"%s\"",
			     err_show(item->valuestring).text);
}

/* Reads {"name", "shape", "dtype"} of a tensor that exists only between steps. */
static int read_tensor(struct reader *r, const struct json_step *at, const cJSON *json, int *tensor)
{
	const struct json_step dtype_at = {.up = at, .key = "dtype"}, shape_at = {.up = at, .key = "shape"};
	const struct json_step name_at = {.up = at, .key = "name"};
	struct chain_tensor *out = &r->out->tensors[r->out->tensor_count];
	const char *name = json_text_of(json, "name"), *dtype = json_text_of(json, "dtype");
	const cJSON *shape = json_member(json, "shape");

	if (!cJSON_IsObject(json) || name == NULL || *name == '\0')
		return expected(r, cJSON_IsObject(json) ? &name_at : at, "the name of an output of the definition, or an object with "
				"\"name\", \"shape\" and \"dtype\"", cJSON_IsObject(json) ? json_member(json, "name") : json);
	if (find_tensor(r, name) >= 0)
		return json_error_at(r->text, &name_at, r->err, "the name \"%s\" is already used; give this "
		    "intermediate tensor another name",
				     err_show(name).text);
	if (dtype == NULL || !dtype_parse(dtype, &out->dtype))
		return expected(r, &dtype_at, "a dtype", json_member(json, "dtype"));
	if (!cJSON_IsArray(shape) || cJSON_GetArraySize(shape) > CHAIN_RANK)
		return expected(r, &shape_at, "a list of at most 8 names of axes", shape);
	for (const cJSON *item = shape->child; item != NULL; item = item->next) {
		const struct json_step dim = {.up = &shape_at, .index = out->rank};
		int axis = cJSON_IsString(item) ? index_of(r->scope->axes, r->scope->axis_count, item->valuestring) : -1;

		if (axis < 0)
			return expected(r, &dim, "the name of an axis of the definition", item);
		out->axis[out->rank++] = axis;
	}
	out->name = arena_string(r->arena, name);
	*tensor = r->scope->input_count + r->scope->output_count + r->out->tensor_count++;
	return 0;
}

static int read_output(struct reader *r, const struct json_step *at, const cJSON *item, int *tensor)
{
	if (!cJSON_IsString(item)) {
		if (read_tensor(r, at, item, tensor) != 0)
			return -1;
	} else {
		int output = index_of(r->scope->outputs, r->scope->output_count, item->valuestring);

		if (output < 0)
			return json_error_at(r->text, at, r->err,
					     "the definition has no output \"%s\"; an intermediate tensor needs "
					     "\"shape\" and \"dtype\"",
					     err_show(item->valuestring).text);
		*tensor = r->scope->input_count + output;
	}
	if (r->made_by[*tensor] > 0)
		return json_error_at(r->text, at, r->err, "step %d already produces this output", r->made_by[*tensor]);
	return 0;
}

static int read_args(struct reader *r, const struct json_step *up, const cJSON *step, const char *key, const cJSON *steps,
		     struct chain_arg *out, int *count)
{
	const struct json_step at = {.up = up, .key = key};
	const cJSON *list = json_member(step, key);
	bool inputs = strcmp(key, "inputs") == 0;

	if ((!cJSON_IsObject(list) && !cJSON_IsArray(list)) || list->child == NULL)
		return expected(r, &at, "an object or a list with names of tensors", list);
	if (cJSON_GetArraySize(list) > CHAIN_ARGS)
		return json_error_at(r->text, &at, r->err, "expected at most %d tensors", CHAIN_ARGS);
	for (const cJSON *item = list->child; item != NULL; item = item->next, (*count)++) {
		const struct json_step place = {.up = &at, .key = item->string, .index = *count};
		const char *name = item->string != NULL ? item->string
				   : cJSON_IsString(item) ? item->valuestring : json_text_of(item, "name");
		struct chain_arg *arg = &out[*count];

		if ((inputs ? read_input(r, &place, item, steps, &arg->tensor) : read_output(r, &place, item, &arg->tensor)) != 0)
			return -1;
		arg->name = arena_string(r->arena, name);
	}
	return 0;
}

static int read_constants(struct reader *r, const struct json_step *up, const cJSON *step, struct chain_step *out)
{
	const struct json_step at = {.up = up, .key = "constants"};
	const cJSON *list = json_member(step, "constants");

	if (list == NULL)
		return 0;
	if (!cJSON_IsObject(list) || cJSON_GetArraySize(list) > CHAIN_CONSTANTS)
		return expected(r, &at, "an object with at most 8 numbers", list);
	for (const cJSON *item = list->child; item != NULL; item = item->next) {
		const struct json_step place = {.up = &at, .key = item->string};

		if (!cJSON_IsNumber(item))
			return expected(r, &place, "a number", item);
		out->constants[out->constant_count] = arena_string(r->arena, item->string);
		out->values[out->constant_count++] = item->valuedouble;
	}
	return 0;
}

static int read_step(struct reader *r, const struct json_step *at, const cJSON *json, const cJSON *steps)
{
	static const char *const known[] = {"op", "inputs", "outputs", "constants", "description"};
	struct chain_step *out = &r->out->steps[r->out->step_count++];
	const struct json_step op_at = {.up = at, .key = "op"};

	r->step = r->out->step_count;
	if (!cJSON_IsObject(json))
		return expected(r, at, "an object with \"op\", \"inputs\" and \"outputs\"", json);
	for (const cJSON *member = json->child; member != NULL; member = member->next) {
		const struct json_step place = {.up = at, .key = member->string};

		if (index_of(known, sizeof known / sizeof *known, member->string) < 0)
			return json_error_at(r->text, &place, r->err,
					     "a step has no field \"%s\" (the fields are op, inputs, outputs, constants, description)",
					     err_show(member->string).text);
	}
	if (json_text_of(json, "op") == NULL)
		return expected(r, &op_at, "an op_type", json_member(json, "op"));
	out->op = arena_string(r->arena, json_text_of(json, "op"));
	out->description = arena_string(r->arena, json_text_of(json, "description") != NULL ? json_text_of(json, "description") : "");
	if (read_args(r, at, json, "inputs", steps, out->inputs, &out->input_count) != 0 ||
	    read_args(r, at, json, "outputs", steps, out->outputs, &out->output_count) != 0)
		return -1;
	for (int i = 0; i < out->output_count; i++)
		r->made_by[out->outputs[i].tensor] = r->step;
	return read_constants(r, at, json, out);
}

const struct chain *chain_read(const struct json_text *text, const struct json_step *at, const cJSON *json,
			       const struct chain_scope *scope, struct arena *arena, struct err *err)
{
	struct reader r = {.text = text, .scope = scope, .arena = arena, .err = err};

	r.out = arena_alloc(arena, sizeof *r.out);
	memset(r.out, 0, sizeof *r.out);
	if (!cJSON_IsArray(json) || json->child == NULL)
		return expected(&r, at, "a list of steps", json), NULL;
	if (cJSON_GetArraySize(json) > CHAIN_STEPS)
		return json_error_at(text, at, err, "expected at most %d steps", CHAIN_STEPS), NULL;
	if (scope->input_count + scope->output_count > CHAIN_STEPS * CHAIN_ARGS - CHAIN_STEPS * CHAIN_ARGS / 2)
		return json_error_at(text, at, err, "the definition has too many inputs and outputs for a chain"), NULL;
	for (const cJSON *item = json->child; item != NULL; item = item->next) {
		const struct json_step place = {.up = at, .index = r.out->step_count};

		if (r.out->tensor_count > CHAIN_STEPS * CHAIN_ARGS / 2 - CHAIN_ARGS)
			return json_error_at(text, &place, err, "the chain has too many intermediate tensors"), NULL;
		if (read_step(&r, &place, item, json) != 0)
			return NULL;
	}
	for (int i = 0; i < scope->output_count; i++)
		if (r.made_by[scope->input_count + i] == 0)
			return json_error_at(text, at, err, "no step produces the output \"%s\" of the definition",
					     err_show(scope->outputs[i]).text), NULL;
	return r.out;
}
