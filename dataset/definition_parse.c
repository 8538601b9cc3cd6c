#include "dataset/definition_parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/unsafe_character.h"
#include "dataset/definition_parse_internal.h"
#include "dataset/python_tokens.h"
#include "dataset/truth_chain.h"

/* --- errors and notes ---------------------------------------------------------------------------------------- */

int reader_expected(struct reader *r, const struct json_step *at, const char *what, const cJSON *found)
{
	return json_expected(&r->text, at, found, r->err, what);
}

static bool contains(const char *const *words, int count, const char *word)
{
	for (int i = 0; i < count; i++)
		if (strcmp(words[i], word) == 0)
			return true;
	return false;
}

static void note(struct reader *r, const struct json_step *at, const char *key, const char *near)
{
	const struct json_step step = {.up = at, .key = key};
	struct err sentence;

	if (r->out->note_count == NOTES - 1)
		json_error_at(&r->text, &step, &sentence,
		              "this field is unknown to the schema and ignored; reftest does not list further unknown fields");
	else if (near != NULL)
		json_error_at(&r->text, &step, &sentence,
		              "the field \"%s\" is unknown to the schema and ignored; did you mean \"%s\"?",
		              err_show(key).text, near);
	else
		json_error_at(&r->text, &step, &sentence, "the field \"%s\" is unknown to the schema and ignored",
		              err_show(key).text);
	r->notes[r->out->note_count++] = arena_string(r->arena, sentence.text);
}

void reader_note(struct reader *r, const struct json_step *at, const char *sentence)
{
	struct err text;

	if (r->out->note_count >= NOTES)
		return;
	json_error_at(&r->text, at, &text, "%s", sentence);
	r->notes[r->out->note_count++] = arena_string(r->arena, text.text);
}

void reader_note_unknown(struct reader *r, const struct json_step *at, const cJSON *object,
                                const char *const *known, int count)
{
	for (const cJSON *member = object->child; member != NULL && r->out->note_count < NOTES; member = member->next)
		if (!contains(known, count, member->string))
			note(r, at, member->string, suggest_word(member->string, known, count));
}

/* --- names --------------------------------------------------------------------------------------------------- */

static bool is_ascii_word(char c)
{
	return (unsigned char)c < 0x80 && (isalnum((unsigned char)c) || c == '_');
}

static bool is_identifier_start(char c)
{
	return is_ascii_word(c) && !isdigit((unsigned char)c);
}

/* Returns true if the name can be a Python identifier. Characters outside ASCII count as letters. */
static bool is_identifier(const char *name)
{
	if (isdigit((unsigned char)*name) || *name == '\0')
		return false;
	for (; *name != '\0'; name++)
		if (!isalnum((unsigned char)*name) && *name != '_' && (unsigned char)*name < 0x80)
			return false;
	return true;
}

int reader_check_printable(struct reader *r, const struct json_step *at, const char *what, const char *name)
{
	if (*name == '\0')
		return json_error_at(&r->text, at, r->err, "expected %s, found an empty string", what);
	if (strlen(name) > NAME_BYTES)
		return json_error_at(&r->text, at, r->err, "expected %s of at most %d bytes, found %zu", what,
		                     NAME_BYTES, strlen(name));
	if (!text_is_safe(name))
		return json_error_at(&r->text, at, r->err,
		                     "expected %s without control or invisible characters, found \"%s\"", what,
		                     err_show(name).text);
	return 0;
}

static int check_path_part(struct reader *r, const struct json_step *at, const char *what, const char *name)
{
	if (strchr(name, '/') != NULL)
		return json_error_at(&r->text, at, r->err, "expected %s without '/', found \"%s\"", what,
		                     err_show(name).text);
	return reader_check_printable(r, at, what, name);
}

static int check_identifier(struct reader *r, const struct json_step *at, const char *what, const char *name)
{
	if (reader_check_printable(r, at, what, name) != 0)
		return -1;
	if (!is_identifier(name))
		return json_error_at(
		    &r->text, at, r->err,
		    "expected %s that has only letters, digits and '_' and does not begin with a digit, found \"%s\"", what,
		    err_show(name).text);
	if (python_is_keyword(name, strlen(name)))
		return json_error_at(&r->text, at, r->err, "expected %s, found \"%s\", which is a Python keyword", what,
		                     name);
	return 0;
}

/* --- strings ------------------------------------------------------------------------------------------------- */

int reader_text(struct reader *r, const cJSON *object, const char *key, bool required, const char **out)
{
	const struct json_step at = {.key = key};
	const cJSON *value = json_member(object, key);

	*out = "";
	if (value == NULL && required)
		return json_missing(&r->text, NULL, key, r->err, "a string");
	if (value == NULL || (cJSON_IsNull(value) && !required))
		return 0;
	if (!cJSON_IsString(value))
		return reader_expected(r, &at, "a string", value);
	*out = arena_string(r->arena, value->valuestring);
	return 0;
}

int reader_description(struct reader *r, const struct json_step *up, const cJSON *object, const char **out)
{
	const struct json_step at = {.up = up, .key = "description"};
	const cJSON *value = json_member(object, "description");

	if (value != NULL && !cJSON_IsNull(value) && !cJSON_IsString(value))
		return reader_expected(r, &at, "a string", value);
	*out = cJSON_IsString(value) ? arena_string(r->arena, value->valuestring) : "";
	return 0;
}

/* Reads "name" or "op_type", which must be present. If `place` is not NULL, the member must equal it. For "name",
 * `place` is the file's name without its suffix; for "op_type", it is the name of the file's folder. */
static int read_name(struct reader *r, const cJSON *json, const char *key, const char *place, const char *place_kind,
                     const char **out)
{
	const struct json_step at = {.key = key};

	if (reader_text(r, json, key, true, out) != 0 || check_path_part(r, &at, "a name", *out) != 0)
		return -1;
	if (place != NULL && strcmp(*out, place) != 0)
		return json_error_at(&r->text, &at, r->err, "expected \"%s\", the file's %s, found \"%s\"",
		                     err_show(place).text, place_kind, err_show(*out).text);
	return 0;
}

/* If "op_type" is absent or null, the folder of the file is the op_type. If the folder is also unknown, the op_type is
 * "". */
static int read_op_type(struct reader *r, const cJSON *json, const char *folder)
{
	const cJSON *value = json_member(json, "op_type");

	if (value != NULL && !cJSON_IsNull(value))
		return read_name(r, json, "op_type", folder, "folder", &r->out->op_type);
	r->out->op_type = folder != NULL ? arena_string(r->arena, folder) : "";
	return 0;
}

/* Reads an optional string. Sets `out` to NULL if the member is absent or null. */
static int read_optional_text(struct reader *r, const cJSON *json, const char *key, const char **out)
{
	if (reader_text(r, json, key, false, out) != 0)
		return -1;
	if (**out == '\0')
		*out = NULL;
	return 0;
}

static int read_custom_inputs(struct reader *r, const cJSON *json)
{
	static const char key[] = "custom_inputs_entrypoint";
	const struct json_step at = {.key = key};
	const char **name = &r->out->custom_inputs_entrypoint;

	if (read_optional_text(r, json, key, name) != 0)
		return -1;
	return *name == NULL ? 0 : check_identifier(r, &at, "the name of a function", *name);
}

int reader_strings(struct reader *r, const cJSON *json, const char *key, int most, const char *const **out,
                        int *count)
{
	const struct json_step list = {.key = key};
	const cJSON *value = json_member(json, key);

	if (value == NULL || cJSON_IsNull(value))
		return 0;
	if (!cJSON_IsArray(value))
		return reader_expected(r, &list, "a list of strings", value);
	int size = cJSON_GetArraySize(value);

	if (size > most)
		return json_error_at(&r->text, &list, r->err, "expected at most %d strings, found %d", most, size);
	const char **texts = arena_array(r->arena, (size_t)size, sizeof *texts);

	for (const cJSON *item = value->child; item != NULL; item = item->next) {
		const struct json_step at = {.up = &list, .index = *count};

		if (!cJSON_IsString(item) || *item->valuestring == '\0')
			return reader_expected(r, &at, "a non-empty string", item);
		texts[(*count)++] = arena_string(r->arena, item->valuestring);
	}
	*out = texts;
	return 0;
}

/* --- tensors ------------------------------------------------------------------------------------------------- */

static int unknown_axis(struct reader *r, const struct json_step *at, const char *name)
{
	const char *names[DEFINITION_AXES];

	for (int i = 0; i < r->out->axis_count; i++)
		names[i] = r->out->axes[i].name;
	const char *near = suggest_word(name, names, r->out->axis_count);

	if (near != NULL)
		return json_error_at(&r->text, at, r->err,
		                     "expected the name of an axis, found \"%s\"; did you mean \"%s\"?",
		                     err_show(name).text, near);
	return json_error_at(&r->text, at, r->err,
	                     "expected the name of an axis, found \"%s\"; declare it under \"axes\"",
	                     err_show(name).text);
}

/* Returns whether a text in a shape is a size or an expression. The caller has checked that the text is not the name of
 * an axis. If this function returns false, the text is probably a misspelt name of an axis. */
static bool is_expression(const char *text)
{
	return strpbrk(text, "+-*/%()") != NULL || (*text != '\0' && text[strspn(text, "0123456789 ")] == '\0');
}

/* Adds an axis for a size or an expression that is written in a shape. */
static int add_expression(struct reader *r, const struct json_step *at, const char *text, int *axis)
{
	int i = r->out->axis_count;

	if (i == DEFINITION_AXES)
		return json_error_at(&r->text, at, r->err, "expected at most %d axes and expressions, found more", DEFINITION_AXES);
	if (reader_check_printable(r, at, "an expression", text) != 0)
		return -1;
	if (r->axis_room < DEFINITION_AXES)
		reserve_axes(r, DEFINITION_AXES);
	r->axes[i] = (struct axis){.name = arena_string(r->arena, text), .var = true};
	r->descriptions[i] = "a size in a shape";
	r->expressions[i] = r->axes[i].name;
	r->out->axis_expressions = r->expressions;
	r->out->axis_count++;
	*axis = i;
	return fix_expression(r, at, i) < 0 ? -1 : 0;
}

static int read_dimension(struct reader *r, const struct json_step *at, const cJSON *item, int *axis)
{
	if (cJSON_IsNumber(item))
		return reader_expected(r, at, "the name of an axis (write a size as a string: \"1\")", item);
	if (!cJSON_IsString(item))
		return reader_expected(r, at, "the name of an axis", item);
	*axis = definition_axis(r->out, item->valuestring);
	if (*axis >= 0)
		return 0;
	return is_expression(item->valuestring) ? add_expression(r, at, item->valuestring, axis)
						: unknown_axis(r, at, item->valuestring);
}

static int read_shape(struct reader *r, const struct json_step *tensor, const cJSON *json, struct tensor_spec *out)
{
	const struct json_step at = {.up = tensor, .key = "shape"};
	const cJSON *shape = json_member(json, "shape");

	if (shape == NULL)
		return json_missing(&r->text, tensor, "shape", r->err, "a list of axes, or null for a Python scalar");
	out->rank = cJSON_IsNull(shape) ? RANK_SCALAR : 0;
	if (cJSON_IsNull(shape))
		return 0;
	if (!cJSON_IsArray(shape))
		return reader_expected(r, &at, "a list of axes, or null for a Python scalar", shape);
	if (cJSON_GetArraySize(shape) > RANK_MAX)
		return json_error_at(&r->text, &at, r->err, "expected at most %d dimensions, found %d", RANK_MAX,
		                     cJSON_GetArraySize(shape));
	for (const cJSON *item = shape->child; item != NULL; item = item->next, out->rank++) {
		const struct json_step dimension = {.up = &at, .index = out->rank};

		if (read_dimension(r, &dimension, item, &out->axis[out->rank]) != 0)
			return -1;
	}
	return 0;
}

/* Records the position of the first tensor of dtype "unknown". FlashInfer's tracer writes this dtype for tensors that
 * were absent in its example call. */
static int note_unknown_dtype(struct reader *r, const struct json_step *at)
{
	struct err sentence;

	if (r->out->unverifiable != NULL)
		return 0;
	json_error_at(&r->text, at, &sentence,
	              "no case can run, because the dtype is \"unknown\"; replace \"unknown\" by a dtype");
	r->out->unverifiable = arena_string(r->arena, sentence.text);
	return 0;
}

/* PAIRS is the name that torch uses for float4_e2m1. In a definition, the last dimension of a shape with this dtype is
 * a number of bytes, and each byte contains two values. In a tensor_spec, the last dimension is the number of
 * values. */
#define PAIRS "float4_e2m1fn_x2"

static int read_pairs(struct reader *r, const struct json_step *tensor, struct tensor_spec *out)
{
	const struct json_step shape = {.up = tensor, .key = "shape"}, at = {.up = &shape, .index = out->rank - 1};

	out->dtype = DTYPE_FLOAT4_E2M1;
	if (out->rank < 1)
		return json_error_at(&r->text, &shape, r->err, "expected at least one dimension, because %s packs two values of the "
							       "last dimension into a byte",
				     PAIRS);
	const char *bytes = r->axes[out->axis[out->rank - 1]].name, *values = arena_printf(r->arena, "2 * (%s)", bytes);
	int *axis = &out->axis[out->rank - 1], known = definition_axis(r->out, values);

	if (known < 0)
		return add_expression(r, &at, values, axis);
	*axis = known;
	return 0;
}

static int read_dtype(struct reader *r, const struct json_step *tensor, const cJSON *json, struct tensor_spec *out)
{
	const struct json_step at = {.up = tensor, .key = "dtype"};
	const cJSON *dtype = json_member(json, "dtype");
	const char *names[DTYPE_COUNT];

	if (dtype == NULL)
		return json_missing(&r->text, tensor, "dtype", r->err, "\"bfloat16\", \"int32\", …");
	if (!cJSON_IsString(dtype))
		return reader_expected(r, &at, "the name of a dtype", dtype);
	if (dtype_parse(dtype->valuestring, &out->dtype))
		return 0;
	if (strcmp(dtype->valuestring, PAIRS) == 0)
		return read_pairs(r, tensor, out);
	if (strcmp(dtype->valuestring, "float8_e4m3") == 0) {
		reader_note(r, &at, "this dtype is read as float8_e4m3fn, which earlier versions of flashinfer-bench "
		                    "call float8_e4m3");
		out->dtype = DTYPE_FLOAT8_E4M3FN;
		return 0;
	}
	if (strcmp(dtype->valuestring, "unknown") == 0)
		return note_unknown_dtype(r, &at);
	for (int i = 0; i < DTYPE_COUNT; i++)
		names[i] = dtype_name((enum dtype)i);
	const char *near = suggest_word(dtype->valuestring, names, DTYPE_COUNT);

	if (near != NULL)
		return json_error_at(&r->text, &at, r->err, "expected a dtype, found \"%s\"; did you mean \"%s\"?",
		                     err_show(dtype->valuestring).text, near);
	return reader_expected(
	    r, &at,
	    "a dtype (float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, float8_e8m0fnu, float4_e2m1, "
	    "int64, int32, int16, int8, uint32, uint8, bool)",
	    dtype);
}

static int read_optional(struct reader *r, const struct json_step *tensor, const cJSON *json, struct tensor_spec *out)
{
	const struct json_step at = {.up = tensor, .key = "optional"};
	const cJSON *value = json_member(json, "optional");

	if (value != NULL && !cJSON_IsBool(value))
		return reader_expected(r, &at, "true or false", value);
	out->optional = cJSON_IsTrue(value);
	return 0;
}

static int read_bound(struct reader *r, const struct json_step *tolerance, const cJSON *json, double *out)
{
	const struct json_step at = {.up = tolerance, .key = json->string};
	bool ratio = strcmp(json->string, "hit_ratio") == 0;

	if (!cJSON_IsNumber(json) || json->valuedouble < 0 ||
	    (ratio && !(json->valuedouble > 0 && json->valuedouble <= 1)))
		return reader_expected(r, &at, ratio ? "a number above 0 and at most 1" : "a number of at least 0", json);
	*out = json->valuedouble;
	return 0;
}

/* An unknown field is an error and not a note. Otherwise a misspelt field would silently change how strictly the output
 * is checked. */
static int read_tolerance(struct reader *r, const struct json_step *up, const cJSON *json, struct tolerance *out)
{
	const struct json_step at = {.up = up, .key = "tolerance"};
	const cJSON *object = json_member(json, "tolerance");

	*out = (struct tolerance){-1, -1, -1};
	if (object == NULL || cJSON_IsNull(object))
		return 0;
	if (!cJSON_IsObject(object))
		return reader_expected(r, &at, "an object with \"atol\", \"rtol\", \"hit_ratio\"", object);
	for (const cJSON *member = object->child; member != NULL; member = member->next) {
		const struct json_step field = {.up = &at, .key = member->string};
		double *bound = strcmp(member->string, "atol") == 0        ? &out->atol
		                : strcmp(member->string, "rtol") == 0      ? &out->rtol
		                : strcmp(member->string, "hit_ratio") == 0 ? &out->hit_ratio
		                                                           : NULL;

		if (bound == NULL)
			return json_error_at(&r->text, &field, r->err,
			                     "expected \"atol\", \"rtol\" or \"hit_ratio\", found \"%s\"",
			                     err_show(member->string).text);
		if (read_bound(r, &at, member, bound) != 0)
			return -1;
	}
	return 0;
}

/* Reads the member "param" of an input or an output: the name of the argument through which the reference's function
 * gets the tensor. */
static int read_param(struct reader *r, const struct json_step *tensor, const cJSON *json, struct tensor_spec *out)
{
	const struct json_step at = {.up = tensor, .key = "param"};
	const cJSON *value = json_member(json, "param");

	out->param = NULL;
	if (value == NULL || cJSON_IsNull(value))
		return 0;
	if (!cJSON_IsString(value))
		return reader_expected(r, &at, "the name of an argument", value);
	if (check_identifier(r, &at, "the name of an argument", value->valuestring) != 0)
		return -1;
	out->param = arena_string(r->arena, value->valuestring);
	return 0;
}

static int check_size(struct reader *r, const struct json_step *tensor, const struct tensor_spec *spec)
{
	const struct json_step at = {.up = tensor, .key = "shape"};
	int64_t axis[DEFINITION_AXES];

	for (int i = 0; i < r->out->axis_count; i++)
		axis[i] = r->out->axes[i].var ? -1 : r->out->axes[i].value;
	if (definition_bytes(spec, axis) < 0)
		return json_error_at(
		    &r->text, &at, r->err,
		    "expected a tensor of at most 2^48 bytes, but the const axes alone make it larger");
	return 0;
}

/* If `tolerance` is NULL, the tensor is an input. */
static int read_tensor(struct reader *r, const struct json_step *up, const cJSON *json, struct tensor_spec *out,
                       struct tolerance *tolerance)
{
	static const char *const known[] = {"shape", "dtype", "description", "optional", "param", "tolerance"};
	const struct json_step at = {.up = up, .key = json->string};

	if (reader_check_printable(r, &at, tolerance == NULL ? "an input's name" : "an output's name", json->string) != 0)
		return -1;
	if (!cJSON_IsObject(json))
		return reader_expected(r, &at, "an object with \"shape\" and \"dtype\"", json);
	out->name = arena_string(r->arena, json->string);
	reader_note_unknown(r, &at, json, known, tolerance == NULL ? 5 : 6);
	if (read_shape(r, &at, json, out) != 0 || read_dtype(r, &at, json, out) != 0 || check_size(r, &at, out) != 0 ||
	    reader_description(r, &at, json, &out->description) != 0 || read_optional(r, &at, json, out) != 0 ||
	    read_param(r, &at, json, out) != 0)
		return -1;
	if (tolerance != NULL)
		return read_tolerance(r, &at, json, tolerance);
	r->out->has_other_names = r->out->has_other_names || !python_is_argument(out->name);
	if (out->param == NULL && (!is_identifier(out->name) || python_is_keyword(out->name, strlen(out->name))))
		reader_note(r, &at, "the name of this input is not a valid name of a Python argument, so the input is passed by "
				    "position");
	return 0;
}

/* Checks an input that no case passes to the reference. Its fields must follow the same rules as the fields of other
 * inputs. */
static int read_left_out(struct reader *r, const struct json_step *up, const cJSON *json, const char **names)
{
	const struct json_step at = {.up = up, .key = json->string};
	struct tensor_spec unused;

	if (reader_check_printable(r, &at, "an input's name", json->string) != 0 || read_shape(r, &at, json, &unused) != 0 ||
	    reader_description(r, &at, json, &unused.description) != 0 || read_optional(r, &at, json, &unused) != 0 ||
	    read_param(r, &at, json, &unused) != 0)
		return -1;
	reader_note(r, &at, why_input_is_left_out(json));
	names[r->out->left_out_count++] = arena_string(r->arena, json->string);
	if (unused.param != NULL)
		names[r->out->left_out_count++] = unused.param;
	return 0;
}

static int read_inputs(struct reader *r, const cJSON *json)
{
	const struct json_step at = {.key = "inputs"};
	const cJSON *object;
	int count = reader_members(r, json, "inputs", DEFINITION_TENSORS, &object);

	if (count < 0)
		return -1;
	struct tensor_spec *inputs = arena_array(r->arena, (size_t)count, sizeof *inputs);
	const char **left_out = arena_array(r->arena, 2 * (size_t)count, sizeof *left_out);

	r->out->inputs = inputs;
	r->out->left_out = left_out;
	for (const cJSON *member = object->child; member != NULL; member = member->next)
		if (why_input_is_left_out(member) != NULL
		        ? read_left_out(r, &at, member, left_out)
		        : read_tensor(r, &at, member, &inputs[r->out->input_count++], NULL))
			return -1;
	return 0;
}

/* Adds a note for each output that has the same name as an input. This is usual for operations that work in place. */
static void note_shared_names(struct reader *r, const struct json_step *outputs)
{
	for (int i = 0; i < r->out->output_count; i++) {
		const char *name = r->out->outputs[i].name;
		const struct json_step at = {.up = outputs, .key = name};

		if (definition_input(r->out, name) >= 0)
			reader_note(r, &at, arena_printf(r->arena, "an input and an output have the same name, \"%s\", "
			    "which newer versions of flashinfer-bench refuse",
						     name));
	}
}

static int read_outputs(struct reader *r, const cJSON *json)
{
	const struct json_step at = {.key = "outputs"};
	const cJSON *object;
	int count = reader_members(r, json, "outputs", DEFINITION_TENSORS, &object), i = 0;

	if (count < 0)
		return -1;
	if (count == 0)
		return json_error_at(&r->text, &at, r->err, "expected at least one output, found none");
	struct tensor_spec *outputs = arena_array(r->arena, (size_t)count, sizeof *outputs);
	struct tolerance *tolerance = arena_array(r->arena, (size_t)count, sizeof *tolerance);

	r->out->outputs = outputs;
	r->out->output_tolerance = tolerance;
	for (const cJSON *member = object->child; member != NULL; member = member->next, i++)
		if (read_tensor(r, &at, member, &outputs[i], &tolerance[i]) != 0)
			return -1;
	r->out->output_count = count;
	note_shared_names(r, &at);
	return 0;
}

/* --- files ---------------------------------------------------------------------------------------------------- */

/* Returns whether `path` is a relative path without "//", without a '/' at the end, and without components that begin
 * with '.'. */
static bool is_plain_path(const char *path)
{
	if (*path == '\0' || strlen(path) > READ_PATH_BYTES || !text_is_safe(path))
		return false;
	for (const char *part = path;; part++) {
		size_t length = strcspn(part, "/");

		if (length == 0 || *part == '.')
			return false;
		part += length;
		if (*part == '\0')
			return true;
	}
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_reads(struct reader *r, const cJSON *json)
{
	const struct json_step list = {.key = "reads"};
	const char *const *given;
	const char **paths;

	if (reader_strings(r, json, "reads", DEFINITION_READS, &given, &r->out->read_count) != 0)
		return -1;
	paths = arena_array(r->arena, (size_t)r->out->read_count, sizeof *paths);
	r->out->reads = paths;
	for (int i = 0; i < r->out->read_count; i++) {
		const struct json_step at = {.up = &list, .index = i};

		if (!is_plain_path(given[i]))
			return json_error_at(&r->text, &at, r->err,
					     "expected a path relative to the dataset's folder, "
					     "without parts that begin with '.', found \"%s\"",
					     err_show(given[i]).text);
		if (contains(paths, i, given[i]))
			return json_error_at(&r->text, &at, r->err, "expected each file once, found \"%s\" again",
					     err_show(given[i]).text);
		paths[i] = given[i];
	}
	qsort(paths, (size_t)r->out->read_count, sizeof *paths, compare_text);
	return 0;
}

/* --- the traced function ------------------------------------------------------------------------------------- */

static bool is_dotted_name(const char *name)
{
	for (const char *part = name; is_identifier_start(*part); part++) {
		while (is_ascii_word(*part))
			part++;
		if (*part == '\0')
			return strlen(name) <= NAME_BYTES;
		if (*part != '.')
			return false;
	}
	return false;
}

/* Finds the function named by a tag such as "fi_api:flashinfer.norm.rmsnorm". */
static void find_fi_api(struct reader *r)
{
	static const char prefix[] = "fi_api:";

	for (int i = 0; i < r->out->tag_count; i++) {
		const char *name = r->out->tags[i] + sizeof prefix - 1;

		if (strncmp(r->out->tags[i], prefix, sizeof prefix - 1) != 0)
			continue;
		if (is_dotted_name(name)) {
			r->out->fi_api = name;
			return;
		}
		const struct json_step tags = {.key = "tags"}, at = {.up = &tags, .index = i};

		reader_note(r, &at, "expected a dotted name after \"fi_api:\"; the tag is ignored");
	}
}

static const char *const *names_of(struct reader *r, const struct tensor_spec *specs, int count)
{
	const char **names = arena_array(r->arena, (size_t)count, sizeof *names);

	for (int i = 0; i < count; i++)
		names[i] = specs[i].name;
	return names;
}

/* Checks the member "ground_truth", a chain of operations (dataset/truth_chain.h), and keeps its text. */
static int read_chain(struct reader *r, const cJSON *json)
{
	const struct json_step at = {.key = "ground_truth"};
	const cJSON *chain = json_member(json, at.key);
	struct definition *out = r->out;
	const char **axes = arena_array(r->arena, (size_t)out->axis_count, sizeof *axes);

	if (chain == NULL)
		return 0;
	for (int i = 0; i < out->axis_count; i++)
		axes[i] = out->axes[i].name;
	const struct chain_scope scope = {axes,
					  names_of(r, out->inputs, out->input_count),
					  names_of(r, out->outputs, out->output_count),
					  out->axis_count,
					  out->input_count,
					  out->output_count};

	if (chain_read(&r->text, &at, chain, &scope, r->arena, r->err) == NULL)
		return -1;
	char *text = cJSON_PrintUnformatted(chain);

	if (text == NULL)
		die_no_memory();
	out->chain = arena_string(r->arena, text);
	cJSON_free(text);
	return 0;
}

/* --- the whole ----------------------------------------------------------------------------------------------- */

static int read_definition(struct reader *r, const cJSON *json, const char *folder, const char *stem)
{
	static const char *const known[] = {"name",      "op_type", "axes",        "inputs",      "outputs",
	                                    "reference", "tags",    "description", "constraints", "tolerance", "reads",
	                                    "init",      "check",   "hf_id",       "custom_inputs_entrypoint", "ground_truth"};
	struct definition *out = r->out;

	if (!cJSON_IsObject(json))
		return reader_expected(r, NULL, "a definition object", json);
	if (read_name(r, json, "name", stem, "name", &out->name) != 0 ||
	    read_op_type(r, json, folder) != 0 || read_optional_text(r, json, "hf_id", &out->hf_id) != 0 ||
	    read_custom_inputs(r, json) != 0 ||
	    reader_text(r, json, "description", false, &out->description) != 0 ||
	    reader_strings(r, json, "tags", TAGS, &out->tags, &out->tag_count) != 0)
		return -1;
	find_fi_api(r);
	out->init = read_source(r, json, "init");
	out->check = read_source(r, json, "check");
	if (read_axes(r, json) != 0 ||
	    read_inputs(r, json) != 0 || read_outputs(r, json) != 0 || read_constraints(r, json) != 0 ||
	    read_reads(r, json) != 0 || read_reference(r, json) != 0 || read_tolerance(r, NULL, json, &out->tolerance) != 0)
		return -1;
	find_input_code(r);
	if (read_chain(r, json) != 0)
		return -1;
	reader_note_unknown(r, NULL, json, known, sizeof known / sizeof *known);
	return 0;
}

const struct definition *definition_parse(const char *path, const char *folder, const char *stem, const void *bytes,
                                         size_t length, struct arena *arena, struct err *err)
{
	struct reader r = {
	    .text = {.name = path, .text = bytes, .length = length, .first_line = 1}, .arena = arena, .err = err};

	if (length > DEFINITION_BYTES) {
		err_set(err, "%s: the file has %zu bytes, more than the limit of %d", path, length,
		        DEFINITION_BYTES);
		return NULL;
	}
	cJSON *json = json_parse(&r.text, err);

	if (json == NULL)
		return NULL;
	r.out = arena_alloc(arena, sizeof *r.out);
	r.notes = arena_array(arena, NOTES, sizeof *r.notes);
	r.out->notes = r.notes;
	int wrong = read_definition(&r, json, folder, stem);

	cJSON_Delete(json);
	return wrong ? NULL : r.out;
}
