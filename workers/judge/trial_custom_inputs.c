/* trial_custom_inputs - gets the inputs that the definition's own code makes (SOURCE_CUSTOM).
 *
 * The code is untrusted, so a separate process, the maker, runs it. The maker is a child of the zygote, never runs the
 * reference, and is killed before the first run of the case. For each of the two sets of input values, the judge asks
 * the maker to call the code with a seed ({"make"}), and checks the names, dtypes and shapes of the results. Then the
 * judge asks for the values ({"store"}), and the maker writes them to memory that no runner maps. The judge copies the
 * values of the tensors. In the job, the source of a Python scalar becomes SOURCE_SCALAR, and the source of an optional
 * input that the code leaves out becomes SOURCE_ABSENT. The lengths of axes that are not passed to the code are taken
 * from the shapes. The rest of the trial is the same as for other cases.
 *
 * If the code makes equal values, or different shapes, for the two seeds, the case has one set of input values. */
#include "workers/judge/trial_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "dataset/constraint.h"
#include "workers/judge/case_inputs.h"
#include "workers/judge/message_text.h"

/* If the code returns names that no input has, a message shows at most this many of them. */
enum { OTHERS_SHOWN = 8 };

static bool is_custom(const struct trial *trial, int input)
{
	return trial->job->inputs[input].kind == SOURCE_CUSTOM;
}

bool trial_needs_custom_inputs(const struct trial *trial)
{
	return trial->job != NULL && trial->job->input_code != NULL && !trial->custom.done;
}

/* Sets the status of a case in which the code that makes inputs has failed. */
static void decide_bad_inputs(struct trial *trial, const char *sentence)
{
	trial_decide(trial, STATUS_ERROR, REASON_INPUTS, trial_inputs_message(trial, sentence));
}

const char *trial_inputs_message(struct trial *trial, const char *sentence)
{
	const struct input_code *code = trial->job->input_code;

	return arena_printf(&trial->arena, "%s: %s made no inputs for this case: %s", code->place, code->function,
			    sentence);
}

/* ---- {"make"} ---- */

static void write_axes(const struct trial *trial, struct buf *out)
{
	const struct job *job = trial->job;
	const char *comma = "";

	buf_text(out, "\"axes\":{");
	for (int i = 0; i < job->problem.axis_count; i++) {
		if (!job->input_code->given[i])
			continue;
		buf_text(out, comma);
		buf_json_string(out, job->problem.axes[i].name);
		buf_printf(out, ":%" PRId64, job->axis[i]);
		comma = ",";
	}
	buf_text(out, "}");
}

/* Appends the dtype and the shape of an input. If only the code knows a length, null is written instead. */
static void write_form(const struct trial *trial, const struct op_arg *arg, struct buf *out)
{
	buf_printf(out, ",\"dtype\":\"%s\",\"scalar\":%s,\"shape\":[", dtype_name(arg->dtype),
		   arg->rank == OP_SCALAR ? "true" : "false");
	for (int d = 0; d < arg->rank; d++) {
		buf_text(out, d > 0 ? "," : "");
		if (trial->job->input_code->given[arg->axis[d]])
			buf_printf(out, "%" PRId64, trial->job->axis[arg->axis[d]]);
		else
			buf_text(out, "null");
	}
	buf_text(out, "]}");
}

static void write_inputs(const struct trial *trial, struct buf *out)
{
	const struct job *job = trial->job;
	const char *comma = "";

	buf_text(out, "\"scalars\":{");
	for (int i = 0; i < job->problem.input_count; i++) {
		if (job->inputs[i].kind != SOURCE_SCALAR)
			continue;
		buf_text(out, comma);
		buf_json_string(out, job->problem.inputs[i].name);
		buf_text(out, ":");
		trial_write_value(out, &job->inputs[i]);
		comma = ",";
	}
	buf_text(out, "},\"inputs\":[");
	comma = "";
	for (int i = 0; i < job->problem.input_count; i++) {
		if (!is_custom(trial, i))
			continue;
		buf_text(out, comma);
		buf_text(out, "{\"name\":");
		buf_json_string(out, job->problem.inputs[i].name);
		write_form(trial, &job->problem.inputs[i], out);
		comma = ",";
	}
	buf_text(out, "]");
}

/* {"make": {"seed", "call": "init" | "entrypoint", "axes": {name: value}, "scalars": {name: value},
 *           "inputs": [{"name", "dtype", "scalar", "shape": [length | null]}]}} */
enum trial_answer trial_ask_custom_inputs(struct trial *trial, struct buf *out)
{
	struct op_case c = {0};

	op_case_set_contents(&c, trial->job->seed, trial->custom.contents);
	buf_printf(out, "{\"make\":{\"seed\":%" PRIu64 ",\"call\":\"%s\",", c.seed,
		   trial->job->input_code->kind == INPUT_CODE_INIT ? "init" : "entrypoint");
	write_axes(trial, out);
	buf_text(out, ",");
	write_inputs(trial, out);
	buf_text(out, "}}");
	return TRIAL_MAKE;
}

/* ---- {"made"} ---- */

/* The value or the tensor that the code made for one input. */
struct made {
	bool absent;
	bool scalar;
	struct input_source value; /* the value, if the input is a Python scalar */
	const char *dtype;
	int rank;
	int64_t shape[RANK_MAX];
};

static bool read_shape(const cJSON *said, struct made *made)
{
	const cJSON *dims = json_member(said, "shape"), *dim;

	made->dtype = json_text_of(said, "dtype");
	if (!cJSON_IsArray(dims) || made->dtype == NULL)
		return false;
	cJSON_ArrayForEach(dim, dims)
		if (made->rank == RANK_MAX || !json_integer(dim, &made->shape[made->rank++]) ||
		    made->shape[made->rank - 1] < 0)
			return false;
	return true;
}

static bool read_scalar(const char *kind, const char *text, struct input_source *value)
{
	char *end;

	value->kind = SOURCE_SCALAR;
	errno = 0;
	if (strcmp(kind, "float") == 0) {
		value->scalar_kind = SCALAR_FLOAT;
		value->number = strtod(text, &end);
		return end != text && *end == '\0';
	}
	value->scalar_kind = strcmp(kind, "bool") == 0 ? SCALAR_BOOL : SCALAR_INT;
	value->integer = strtoll(text, &end, 10);
	value->number = (double)value->integer;
	return end != text && *end == '\0' && errno == 0;
}

/* Reads the maker's answer about an input: {"absent": true}, {"kind", "value"} for a Python scalar, or {"dtype",
 * "shape"}. Returns false if the answer is malformed. */
static bool read_made(const cJSON *said, struct made *made)
{
	const char *kind = json_text_of(said, "kind"), *value = json_text_of(said, "value");

	*made = (struct made){.absent = cJSON_IsTrue(json_member(said, "absent"))};
	if (made->absent)
		return true;
	made->scalar = kind != NULL && value != NULL;
	return made->scalar ? read_scalar(kind, value, &made->value) : read_shape(said, made);
}

static const char *form_text(struct trial *trial, const struct made *made)
{
	static const char *const kinds[] = {[SCALAR_INT] = "an int", [SCALAR_FLOAT] = "a float", [SCALAR_BOOL] = "a bool"};

	if (made->scalar)
		return kinds[made->value.scalar_kind];
	return tensor_type_text(&trial->arena, made->rank, made->shape, err_show(made->dtype).text);
}

/* Returns the declared shape and dtype of an input as text, such as "['batch_size', 'hidden_size'] float32". */
static const char *declared_text(struct trial *trial, const struct op_arg *arg)
{
	struct buf text = {0};
	const char *out;

	if (arg->rank == OP_SCALAR)
		return arena_printf(&trial->arena, "a Python scalar of dtype %s", dtype_name(arg->dtype));
	buf_text(&text, "[");
	for (int d = 0; d < arg->rank; d++)
		buf_printf(&text, "%s%s", d > 0 ? ", " : "", trial->job->problem.axes[arg->axis[d]].name);
	buf_printf(&text, "] %s", dtype_name(arg->dtype));
	out = arena_string(&trial->arena, text.data);
	buf_free(&text);
	return out;
}

static void decide_other_form(struct trial *trial, const struct op_arg *arg, const struct made *made)
{
	decide_bad_inputs(trial, arena_printf(&trial->arena, "input '%s' is %s, but it is declared as %s", arg->name,
					      form_text(trial, made), declared_text(trial, arg)));
}

/* Returns whether the value is valid for a Python scalar of this dtype. An int is a valid float, a bool is a valid int,
 * and 0 and 1 are valid bools. */
static bool fits_scalar(const struct op_arg *arg, struct input_source *value)
{
	if (dtype_is_float(arg->dtype)) {
		if (value->scalar_kind == SCALAR_INT)
			value->scalar_kind = SCALAR_FLOAT;
		return value->scalar_kind == SCALAR_FLOAT;
	}
	if (arg->dtype == DTYPE_BOOL && value->scalar_kind == SCALAR_INT && (value->integer == 0 || value->integer == 1))
		value->scalar_kind = SCALAR_BOOL;
	return value->scalar_kind == SCALAR_BOOL || (value->scalar_kind == SCALAR_INT && arg->dtype != DTYPE_BOOL);
}

static void take_scalar(struct trial *trial, int input, const struct made *made, struct input_source *source)
{
	const struct op_arg *arg = &trial->job->problem.inputs[input];

	*source = made->value;
	if (arg->rank > 0 || !fits_scalar(arg, source))
		decide_other_form(trial, arg, made);
}

/* Compares the shape of an input with the lengths of the axes. The lengths of axes that are not passed to the code are
 * taken from the shape. All other axes must agree with the shape. */
static bool take_shape(struct trial *trial, const struct op_arg *arg, const struct made *made)
{
	int64_t *axis = trial->custom.axis;

	if (made->rank != arg->rank || strcmp(made->dtype, dtype_name(arg->dtype)) != 0)
		return false;
	for (int d = 0; d < arg->rank; d++) {
		if (axis[arg->axis[d]] < 0)
			axis[arg->axis[d]] = made->shape[d];
		if (axis[arg->axis[d]] != made->shape[d])
			return false;
	}
	return true;
}

static void decide_other_shape(struct trial *trial, const struct op_arg *arg, const struct made *made)
{
	struct buf sizes = {0};

	for (int d = 0; d < arg->rank && made->rank == arg->rank; d++) {
		int64_t wanted = trial->custom.axis[arg->axis[d]];

		if (wanted >= 0 && wanted != made->shape[d])
			buf_printf(&sizes, "%s%s = %" PRId64, sizes.length > 0 ? ", " : "",
				   trial->job->problem.axes[arg->axis[d]].name, wanted);
	}
	if (sizes.length == 0)
		decide_other_form(trial, arg, made);
	else
		decide_bad_inputs(trial, arena_printf(&trial->arena, "input '%s' is %s, but it is declared as %s, and %s",
						      arg->name, form_text(trial, made), declared_text(trial, arg),
						      sizes.data));
	buf_free(&sizes);
}

/* Returns the names in the code's answer that no input has, such as "'plan', 'run'". Returns NULL if there are none. */
static const char *other_names(struct trial *trial, const cJSON *message)
{
	const cJSON *name;
	struct buf text = {0};
	const char *out = NULL;
	int count = 0;

	cJSON_ArrayForEach(name, json_member(message, "others"))
		if (cJSON_IsString(name) && count++ < OTHERS_SHOWN)
			buf_printf(&text, "%s'%s'", text.length > 0 ? ", " : "", err_show(name->valuestring).text);
	if (text.length > 0)
		out = arena_string(&trial->arena, text.data);
	buf_free(&text);
	return out;
}

/* Returns whether the code may leave out inputs, which then get generic values. Usually a workload says which inputs
 * the entry point makes. A case that reftest adds has no workload, so the entry point may leave out any input. */
static bool may_leave_out(const struct trial *trial)
{
	return trial->job->input_code->kind == INPUT_CODE_ENTRYPOINT && trial->job->chosen_axes;
}

static void take_absent(struct trial *trial, int input, const char *others, struct input_source *source)
{
	const struct op_arg *arg = &trial->job->problem.inputs[input];
	bool generic = !arg->optional && others == NULL && may_leave_out(trial);

	*source = (struct input_source){.kind = generic ? SOURCE_RANDOM : SOURCE_ABSENT};
	if (!arg->optional && !generic)
		decide_bad_inputs(trial, others == NULL
					     ? arena_printf(&trial->arena, "it returned no input '%s'", arg->name)
					     : arena_printf(&trial->arena, "it returned no input '%s', but %s", arg->name,
							    others));
}

static void take_input(struct trial *trial, int input, const cJSON *said, const char *others)
{
	const struct op_arg *arg = &trial->job->problem.inputs[input];
	struct input_source *source = &trial->custom.sources[trial->custom.contents][input];
	struct made made;

	if (!read_made(said, &made))
		trial_decide(trial, STATUS_ERROR, REASON_INPUTS, "the process that makes inputs sent an invalid "
								 "answer");
	else if (made.absent)
		take_absent(trial, input, others, source);
	else if (made.scalar)
		take_scalar(trial, input, &made, source);
	else if (arg->rank == OP_SCALAR)
		decide_other_form(trial, arg, &made);
	else if (!take_shape(trial, arg, &made))
		decide_other_shape(trial, arg, &made);
}

/* Returns the lengths of the axes that are passed to the code, and -1 for all other axes. */
static int64_t *axes_before(struct trial *trial)
{
	const struct job *job = trial->job;
	int64_t *axis = arena_array(&trial->arena, (size_t)job->problem.axis_count, sizeof *axis);

	for (int i = 0; i < job->problem.axis_count; i++)
		axis[i] = job->input_code->given[i] ? job->axis[i] : -1;
	return axis;
}

/* If the code returned the value of an input under another name, returns a sentence that says why reftest uses this
 * value. `why` comes from taken_instead in python/tensors.py. */
static const char *why_taken(const char *why)
{
	static const struct {
		const char *why, *sentence;
	} rows[] = {
	    {"name", "one of the two names is a part of the other, and the dtype and the shape are valid"},
	    {"order", "there is one returned tensor for each missing input of this dtype and shape, and reftest "
		      "matched them in order"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (strcmp(why, rows[i].why) == 0)
			return rows[i].sentence;
	return "no other returned tensor has the dtype and the shape of the missing input";
}

/* Adds a finding for each input that the code returned under another name. */
static void add_taken(struct trial *trial, const cJSON *message)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, json_member(message, "taken"))
	{
		const cJSON *name = cJSON_GetArrayItem(item, 0), *why = cJSON_GetArrayItem(item, 1);

		if (cJSON_IsString(name) && cJSON_IsString(why))
			trial_add_finding(trial, arena_printf(&trial->arena, "%s returns no input '%s'; '%s' is used instead, because %s",
							      trial->job->input_code->function, err_show(item->string).text,
							      err_show(name->valuestring).text, why_taken(why->valuestring)));
	}
}

/* Reads the dtypes and shapes of all inputs of one set of input values. */
static void take_forms(struct trial *trial, const cJSON *message)
{
	const cJSON *said = json_member(message, "made");
	const char *others = other_names(trial, message);

	said = cJSON_IsArray(said) ? said->child : NULL;
	for (int i = 0; i < trial->job->problem.input_count && !trial->decided; i++) {
		if (!is_custom(trial, i))
			continue;
		take_input(trial, i, said, others);
		said = said == NULL ? NULL : said->next;
	}
	if (trial->decided || trial->custom.contents != CONTENTS_FIRST)
		return;
	add_taken(trial, message);
	if (others != NULL)
		trial_add_finding(trial, arena_printf(&trial->arena, "%s returns %s, but the definition has no such input",
						      trial->job->input_code->function, others));
}

/* Sets the lengths of the axes that occur in no shape. If the constraints do not determine the length of such an axis,
 * the job's guess is used. */
static void complete_axes(struct trial *trial)
{
	const struct job *job = trial->job;
	bool *guessed = arena_array(&trial->arena, (size_t)job->problem.axis_count, sizeof *guessed);

	case_inputs_solve_axes(job, trial->custom.axis, &trial->arena);
	for (int i = 0; i < job->problem.axis_count; i++) {
		guessed[i] = trial->custom.axis[i] < 0;
		if (guessed[i])
			trial->custom.axis[i] = job->axis[i];
	}
	trial->guessed_axis = guessed;
}

static struct tensor custom_tensor(const struct trial *trial, int input)
{
	return job_tensor(&trial->job->problem.inputs[input], trial->custom.axis);
}

static bool is_stored(const struct trial *trial, int input)
{
	return trial->custom.sources[trial->custom.contents][input].kind == SOURCE_CUSTOM;
}

/* Returns a list with the size in bytes of each input that the maker stores, and 0 for each other input. */
static int64_t *stored_bytes(struct trial *trial, int64_t *total)
{
	int count = trial->job->problem.input_count;
	int64_t *bytes = arena_array(&trial->arena, (size_t)count, sizeof *bytes);

	*total = 0;
	for (int i = 0; i < count; i++) {
		struct tensor tensor = custom_tensor(trial, i);

		bytes[i] = is_stored(trial, i) ? job_tensor_bytes(&tensor) : 0;
		*total = layout_add(*total, layout_round(bytes[i]));
	}
	return bytes;
}

/* Reserves memory for a set of inputs: the memory that the maker writes to, and the judge's copy. */
static int reserve(struct trial *trial, int64_t total)
{
	struct device *device = trial->device;
	struct err err = {""};
	int64_t free_bytes = device->calls->memory_free(device), need = layout_add(total, total);

	if (need > free_bytes) {
		trial_decide(trial, STATUS_SKIPPED, REASON_MEMORY,
			     arena_printf(&trial->arena, "the inputs that %s makes need %s on %s, but only %s are free",
					  trial->job->input_code->function, format_bytes(&trial->arena, need),
					  trial->context->device_name, format_bytes(&trial->arena, free_bytes)));
		return -1;
	}
	trial->custom.memory[trial->custom.contents] = device->calls->allocate(device, total > 0 ? total : 1, &err);
	if (trial->custom.memory[trial->custom.contents] == NULL ||
	    shared_memory_reserve(&trial->context->custom_memory, trial->layout.total, 0, &err) < 0) {
		trial_decide_error(trial, &err);
		return -1;
	}
	return 0;
}

/* {"store": {"arena", "inputs": [{"name", "dtype", "shape", "offset", "scalar"}]}} */
static enum trial_answer ask_values(struct trial *trial, struct buf *out)
{
	const struct op_problem *problem = &trial->job->problem;
	int64_t total;
	const int64_t *bytes = stored_bytes(trial, &total);

	trial->layout = layout_make(bytes, problem->input_count, 0, &trial->arena);
	if (reserve(trial, total) != 0)
		return trial_give_verdict(trial, out);
	buf_text(out, "{\"store\":{\"arena\":");
	shared_memory_describe(&trial->context->custom_memory, out);
	buf_text(out, ",\"inputs\":[");
	for (int i = 0; i < problem->input_count; i++) {
		struct tensor tensor = custom_tensor(trial, i);

		if (!is_stored(trial, i))
			continue;
		trial_write_place(trial, out, i, problem->inputs[i].name, &tensor);
		buf_text(out, ",\"scalar\":true}");
	}
	buf_text(out, "]}}");
	return TRIAL_STORE;
}

/* ---- both sets ---- */

/* Returns a copy of the job for one set of input values. In the copy, the sources of the inputs and the lengths of the
 * axes are those that follow from the values that the code returned. */
static const struct job *resolved(struct trial *trial, enum op_contents contents)
{
	struct job *job = arena_alloc(&trial->arena, sizeof *job);

	*job = *trial->job;
	job->inputs = trial->custom.sources[contents];
	job->axis = trial->custom.axis;
	return job;
}

/* Begins the case with the inputs that were made. */
static enum trial_answer finish(struct trial *trial, struct buf *out)
{
	struct custom_inputs *custom = &trial->custom;

	custom->done = true;
	shared_memory_renew(&trial->context->custom_memory);
	trial->set_job[CONTENTS_FIRST] = resolved(trial, CONTENTS_FIRST);
	trial->set_job[CONTENTS_SECOND] =
	    custom->sets > 1 ? resolved(trial, CONTENTS_SECOND) : trial->set_job[CONTENTS_FIRST];
	if (custom->sets == 1)
		trial_add_finding(trial, arena_printf(&trial->arena,
						      "%s makes %s, so the case has only one set of input values",
						      trial->job->input_code->function, custom->alike));
	trial->job = trial->set_job[CONTENTS_FIRST];
	return trial_begin(trial, out);
}

/* Returns whether the sources of an input are equal in both sets: the kind is the same, and a scalar has the same
 * value. Sets `same_kinds` to whether the kinds are the same. */
static bool same_sources(const struct input_source *a, const struct input_source *b, bool *same_kinds)
{
	*same_kinds = a->kind == b->kind;
	return a->kind == b->kind && (a->kind != SOURCE_SCALAR || (a->scalar_kind == b->scalar_kind &&
								   a->integer == b->integer &&
								   memcmp(&a->number, &b->number, sizeof a->number) == 0));
}

/* Returns whether both sets are equal bit for bit. */
static bool sets_are_equal(struct trial *trial)
{
	struct custom_inputs *custom = &trial->custom;
	struct device *device = trial->device;
	struct err err = {""};
	bool same_kinds;

	for (int i = 0; i < trial->job->problem.input_count; i++) {
		const struct input_source *a = &custom->sources[CONTENTS_FIRST][i], *b = &custom->sources[CONTENTS_SECOND][i];
		struct tensor tensor = custom_tensor(trial, i);

		if (!same_sources(a, b, &same_kinds))
			return false;
		if (a->kind == SOURCE_CUSTOM && job_tensor_bytes(&tensor) > 0 &&
		    device->calls->first_difference(device, a->values, b->values, job_tensor_bytes(&tensor), &err) != -1)
			return false;
	}
	return true;
}

/* Returns whether both sets have the same shapes, as a case requires. Scalars may differ. */
static bool has_same_forms(struct trial *trial, const int64_t *axis)
{
	struct custom_inputs *custom = &trial->custom;
	bool same_kinds = true;

	for (int i = 0; i < trial->job->problem.input_count && same_kinds; i++)
		same_sources(&custom->sources[CONTENTS_FIRST][i], &custom->sources[CONTENTS_SECOND][i], &same_kinds);
	for (int i = 0; i < trial->job->problem.axis_count && same_kinds; i++)
		same_kinds = axis[i] == custom->axis[i];
	return same_kinds;
}

enum trial_answer trial_made(struct trial *trial, const cJSON *message, struct buf *out)
{
	struct custom_inputs *custom = &trial->custom;
	int64_t *first = custom->axis;

	if (trial->decided || !trial_needs_custom_inputs(trial))
		return trial_give_verdict(trial, out);
	custom->sources[custom->contents] =
	    arena_array(&trial->arena, (size_t)trial->job->problem.input_count, sizeof *trial->job->inputs);
	memcpy(custom->sources[custom->contents], trial->job->inputs,
	       (size_t)trial->job->problem.input_count * sizeof *trial->job->inputs);
	custom->axis = axes_before(trial);
	take_forms(trial, message);
	if (trial->decided)
		return trial_give_verdict(trial, out);
	complete_axes(trial);
	if (custom->contents == CONTENTS_FIRST || has_same_forms(trial, first))
		return ask_values(trial, out);
	custom->axis = first;
	custom->alike = "inputs whose shapes depend on the seed";
	return finish(trial, out);
}

/* Copies the values of a set from the memory to which the maker wrote them. */
static int copy_values(struct trial *trial, struct err *err)
{
	struct custom_inputs *custom = &trial->custom;
	unsigned char *at = custom->memory[custom->contents];

	for (int i = 0; i < trial->job->problem.input_count; i++) {
		struct tensor tensor = custom_tensor(trial, i);

		if (!is_stored(trial, i))
			continue;
		custom->sources[custom->contents][i].values = at;
		if (shared_memory_get(&trial->context->custom_memory, at, trial->layout.offset[i],
				      job_tensor_bytes(&tensor), err) != 0)
			return -1;
		at += layout_round(job_tensor_bytes(&tensor));
	}
	return 0;
}

/* Returns whether the two sets together are too large to stay in the judge's memory while a reference runs. */
static bool is_large(struct trial *trial)
{
	int64_t total;

	stored_bytes(trial, &total);
	return total > trial->context->keep / 2;
}

enum trial_answer trial_stored(struct trial *trial, struct buf *out)
{
	struct custom_inputs *custom = &trial->custom;
	struct err err = {""};

	if (!trial->decided && (!trial_needs_custom_inputs(trial) || custom->memory[custom->contents] == NULL))
		trial_decide(trial, STATUS_ERROR, REASON_INPUTS,
			     "the process that makes inputs sent an answer without a request");
	if (!trial->decided && copy_values(trial, &err) != 0)
		trial_decide_error(trial, &err);
	if (trial->decided)
		return trial_give_verdict(trial, out);
	custom->sets++;
	if (custom->contents == CONTENTS_SECOND && sets_are_equal(trial)) {
		custom->sets = 1;
		custom->alike = "the same inputs for another seed";
	}
	if (custom->contents == CONTENTS_SECOND)
		return finish(trial, out);
	if (is_large(trial)) {
		custom->alike = "large inputs, which are not made again";
		return finish(trial, out);
	}
	custom->contents = CONTENTS_SECOND;
	return trial_ask_custom_inputs(trial, out);
}

void trial_free_custom_inputs(struct trial *trial)
{
	for (int r = 0; r < CONTENTS_COUNT; r++)
		if (trial->custom.memory[r] != NULL)
			trial->device->calls->release(trial->device, trial->custom.memory[r]);
}
