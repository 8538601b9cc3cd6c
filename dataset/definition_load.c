#include "dataset/definition_load.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/suggest.h"
#include "base/unsafe_character.h"
#include "dataset/axis_expressions.h"
#include "dataset/constraint.h"
#include "dataset/entry_point.h"
#include "dataset/input_code.h"
#include "dataset/python_names.h"
#include "dataset/python_tokens.h"
#include "dataset/truth_chain.h"

/* Limits of a file. Real definitions have about twenty axes and tensors and a few constraints. */
enum { NAME_BYTES = 200, CONSTRAINTS = 256, TAGS = 256, NOTES = 20 };

struct reader {
	struct json_text text;
	struct arena *arena;
	struct definition *out;
	/* The axes of `out`, their descriptions and their expressions, with room for `axis_room` axes. */
	struct axis *axes;
	const char **descriptions, **expressions;
	int axis_room;
	const char **notes; /* space for NOTES */
	struct err *err;
};

/* --- errors and notes ---------------------------------------------------------------------------------------- */

/* Writes a message "expected …, found …". Always returns -1, like the error functions below. */
static int expected(struct reader *r, const struct json_step *at, const char *what, const cJSON *found)
{
	return json_expected(&r->text, at, found, r->err, what);
}

static int missing(struct reader *r, const struct json_step *at, const char *key, const char *what)
{
	return json_error_at(&r->text, at, r->err, "expected a field \"%s\" (%s), found none", key, what);
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
		              "this field is unknown to the schema and ignored; more such fields may follow");
	else if (near != NULL)
		json_error_at(&r->text, &step, &sentence,
		              "the field \"%s\" is unknown to the schema and ignored; did you mean \"%s\"?",
		              err_show(key).text, near);
	else
		json_error_at(&r->text, &step, &sentence, "the field \"%s\" is unknown to the schema and ignored",
		              err_show(key).text);
	r->notes[r->out->note_count++] = arena_string(r->arena, sentence.text);
}

/* Adds a note with a position, unless there are NOTES notes already. */
static void note_at(struct reader *r, const struct json_step *at, const char *sentence)
{
	struct err text;

	if (r->out->note_count >= NOTES)
		return;
	json_error_at(&r->text, at, &text, "%s", sentence);
	r->notes[r->out->note_count++] = arena_string(r->arena, text.text);
}

/* Adds a note for each unknown field. There are at most NOTES notes, because the text is scanned again for the position
 * of each note. */
static void note_unknown_fields(struct reader *r, const struct json_step *at, const cJSON *object,
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

/* Checks that a name is printable text. */
static int check_printable(struct reader *r, const struct json_step *at, const char *what, const char *name)
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

/* Checks that a name can be part of a path. */
static int check_path_part(struct reader *r, const struct json_step *at, const char *what, const char *name)
{
	if (strchr(name, '/') != NULL)
		return json_error_at(&r->text, at, r->err, "expected %s without '/', found \"%s\"", what,
		                     err_show(name).text);
	return check_printable(r, at, what, name);
}

/* Checks that a name is a Python identifier. */
static int check_identifier(struct reader *r, const struct json_step *at, const char *what, const char *name)
{
	if (check_printable(r, at, what, name) != 0)
		return -1;
	if (!is_identifier(name))
		return json_error_at(
		    &r->text, at, r->err,
		    "expected %s of letters, digits and '_' that does not begin with a digit, found \"%s\"", what,
		    err_show(name).text);
	if (python_is_keyword(name, strlen(name)))
		return json_error_at(&r->text, at, r->err, "expected %s, found \"%s\", which is a Python keyword", what,
		                     name);
	return 0;
}

/* --- strings ------------------------------------------------------------------------------------------------- */

/* Copies a string member. If an optional member is absent or null, writes "". */
static int read_text(struct reader *r, const cJSON *object, const char *key, bool required, const char **out)
{
	const struct json_step at = {.key = key};
	const cJSON *value = json_member(object, key);

	*out = "";
	if (value == NULL && required)
		return missing(r, NULL, key, "a string");
	if (value == NULL || (cJSON_IsNull(value) && !required))
		return 0;
	if (!cJSON_IsString(value))
		return expected(r, &at, "a string", value);
	*out = arena_string(r->arena, value->valuestring);
	return 0;
}

/* Reads the member "description", which must be a string or null in every object of the file. */
static int read_description(struct reader *r, const struct json_step *up, const cJSON *object, const char **out)
{
	const struct json_step at = {.up = up, .key = "description"};
	const cJSON *value = json_member(object, "description");

	if (value != NULL && !cJSON_IsNull(value) && !cJSON_IsString(value))
		return expected(r, &at, "a string", value);
	*out = cJSON_IsString(value) ? arena_string(r->arena, value->valuestring) : "";
	return 0;
}

/* Reads "name" or "op_type", which must be there. `place` is the stem or the folder of the file, or NULL if it is
 * unknown. */
static int read_name(struct reader *r, const cJSON *json, const char *key, const char *place, const char *place_kind,
                     const char **out)
{
	const struct json_step at = {.key = key};

	if (read_text(r, json, key, true, out) != 0 || check_path_part(r, &at, "a name", *out) != 0)
		return -1;
	if (place != NULL && strcmp(*out, place) != 0)
		return json_error_at(&r->text, &at, r->err, "expected \"%s\", the file's %s, found \"%s\"",
		                     err_show(place).text, place_kind, err_show(*out).text);
	return 0;
}

/* Reads "op_type". If it is absent or null, the folder of the file is the op_type; without a folder, it is "". */
static int read_op_type(struct reader *r, const cJSON *json, const char *folder)
{
	const cJSON *value = json_member(json, "op_type");

	if (value != NULL && !cJSON_IsNull(value))
		return read_name(r, json, "op_type", folder, "folder", &r->out->op_type);
	r->out->op_type = folder != NULL ? arena_string(r->arena, folder) : "";
	return 0;
}

/* Reads an optional string; NULL when absent or null. */
static int read_optional_text(struct reader *r, const cJSON *json, const char *key, const char **out)
{
	if (read_text(r, json, key, false, out) != 0)
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

/* Reads a list of non-empty strings, which may be absent. */
static int read_strings(struct reader *r, const cJSON *json, const char *key, int most, const char *const **out,
                        int *count)
{
	const struct json_step list = {.key = key};
	const cJSON *value = json_member(json, key);

	if (value == NULL || cJSON_IsNull(value))
		return 0;
	if (!cJSON_IsArray(value))
		return expected(r, &list, "a list of strings", value);
	int size = cJSON_GetArraySize(value);

	if (size > most)
		return json_error_at(&r->text, &list, r->err, "expected at most %d strings, found %d", most, size);
	const char **texts = arena_array(r->arena, (size_t)size, sizeof *texts);

	for (const cJSON *item = value->child; item != NULL; item = item->next) {
		const struct json_step at = {.up = &list, .index = *count};

		if (!cJSON_IsString(item) || *item->valuestring == '\0')
			return expected(r, &at, "a non-empty string", item);
		texts[(*count)++] = arena_string(r->arena, item->valuestring);
	}
	*out = texts;
	return 0;
}

/* --- axes ---------------------------------------------------------------------------------------------------- */

/* Reads an integer in a string as flashinfer-bench does: with blanks around it, a sign, single underscores between digits,
 * and zeros after a point. */
static bool integer_of_text(const char *text, int64_t *out)
{
	char digits[20];
	size_t count = 0;

	text += strspn(text, " \t\n");
	bool negative = *text == '-';

	text += *text == '-' || *text == '+';
	for (; (*text >= '0' && *text <= '9') || (*text == '_' && count > 0 && text[1] >= '0' && text[1] <= '9'); text++) {
		if (*text == '_')
			continue;
		if (count == 18)
			return false;
		digits[count++] = *text;
	}
	digits[count] = '\0';
	if (count > 0 && *text == '.')
		text += 1 + strspn(text + 1, "0");
	text += strspn(text, " \t\n");
	*out = strtoll(digits, NULL, 10);
	return count > 0 && *text == '\0' && *out < (int64_t)1 << 53 && (!negative || *out == 0);
}

/* Reads the length of a const axis: an integer, or what flashinfer-bench converts to one (true, or a string). */
static bool axis_value(const cJSON *json, int64_t *out)
{
	const char *text = cJSON_GetStringValue(json);

	if (text != NULL)
		return integer_of_text(text, out);
	*out = 1;
	return cJSON_IsTrue(json) || json_integer(json, out);
}

static int read_axis_value(struct reader *r, const struct json_step *axis, const cJSON *json, struct axis *out)
{
	const struct json_step at = {.up = axis, .key = "value"};
	const cJSON *value = json_member(json, "value");

	if (value == NULL)
		return missing(r, axis, "value", "an integer, because the axis is const");
	if (!axis_value(value, &out->value) || out->value < 0)
		return expected(r, &at, "an integer from 0 to 9007199254740991", value);
	return 0;
}

/* Reads the expression of an axis. Whether it can be evaluated is checked after all axes are read. */
static int read_expression(struct reader *r, const struct json_step *axis, const cJSON *json, const char **out)
{
	const struct json_step at = {.up = axis, .key = "expression"};
	const cJSON *value = json_member(json, "expression");

	if (value == NULL)
		return missing(r, axis, "expression", "a string, because the type of the axis is \"expr\"");
	if (!cJSON_IsString(value))
		return expected(r, &at, "an expression in a string", value);
	*out = arena_string(r->arena, value->valuestring);
	return 0;
}

/* Reads whether the axis is const or var. Without a "type" it is const if it has a "value", as in flashinfer-bench. An
 * axis with an expression is var, until its value is known. */
static int read_axis_type(struct reader *r, const struct json_step *axis, const cJSON *json, struct axis *out,
			  const char **expression)
{
	const struct json_step at = {.up = axis, .key = "type"};
	const cJSON *type = json_member(json, "type");
	const char *text = cJSON_GetStringValue(type);

	out->var = type == NULL ? json_member(json, "value") == NULL
				: text != NULL && (strcmp(text, "var") == 0 || strcmp(text, "expr") == 0);
	if (type != NULL && !out->var && (text == NULL || strcmp(text, "const") != 0))
		return expected(r, &at, "\"const\", \"var\" or \"expr\"", type);
	return text != NULL && strcmp(text, "expr") == 0 ? read_expression(r, axis, json, expression) : 0;
}

static int read_axis(struct reader *r, const struct json_step *axes, const cJSON *json)
{
	static const char *const known[] = {"type", "description", "value"}, *const of_expression[] = {"type", "description", "expression"};
	const struct json_step at = {.up = axes, .key = json->string};
	int i = r->out->axis_count++;
	struct axis *out = &r->axes[i];

	if (check_printable(r, &at, "an axis name", json->string) != 0)
		return -1;
	if (!cJSON_IsObject(json))
		return expected(r, &at, "an object with a \"type\"", json);
	out->name = arena_string(r->arena, json->string);
	if (read_axis_type(r, &at, json, out, &r->expressions[i]) != 0)
		return -1;
	if (r->expressions[i] != NULL)
		note_unknown_fields(r, &at, json, of_expression, 3);
	else
		note_unknown_fields(r, &at, json, known, out->var ? 2 : 3);
	if (read_description(r, &at, json, &r->descriptions[i]) != 0)
		return -1;
	return out->var ? 0 : read_axis_value(r, &at, json, out);
}

/* Finds the object under `key`. Returns its number of members, at most `most`, or -1 with a message on error. */
static int members_of(struct reader *r, const cJSON *json, const char *key, int most, const cJSON **out)
{
	const struct json_step at = {.key = key};

	*out = json_member(json, key);
	if (*out == NULL)
		return missing(r, NULL, key, "an object");
	if (!cJSON_IsObject(*out))
		return expected(r, &at, "an object", *out);
	int count = cJSON_GetArraySize(*out);

	if (count > most)
		return json_error_at(&r->text, &at, r->err, "expected at most %d %s, found %d", most, key, count);
	return count;
}

/* Reserves memory for `room` axes and copies those that have been read. */
static void reserve_axes(struct reader *r, int room)
{
	struct axis *axes = arena_array(r->arena, (size_t)room, sizeof *axes);
	const char **descriptions = arena_array(r->arena, (size_t)room, sizeof *descriptions);
	const char **expressions = arena_array(r->arena, (size_t)room, sizeof *expressions);

	for (int i = 0; i < r->out->axis_count; i++) {
		axes[i] = r->axes[i];
		descriptions[i] = r->descriptions[i];
		expressions[i] = r->expressions[i];
	}
	r->axis_room = room;
	r->out->axes = r->axes = axes;
	r->out->axis_descriptions = r->descriptions = descriptions;
	r->expressions = expressions;
	if (r->out->axis_expressions != NULL)
		r->out->axis_expressions = expressions;
}

/* Makes an axis that has an expression const if the expression depends on const axes only. `at` is the expression. */
static int fix_expression(struct reader *r, const struct json_step *at, int i)
{
	const struct definition *d = r->out;
	int64_t axis[DEFINITION_AXES], value;
	struct err why;

	for (int k = 0; k < d->axis_count; k++)
		axis[k] = d->axes[k].var ? -1 : d->axes[k].value;
	enum constraint_answer answer = constraint_length(d, r->expressions[i], axis, &value, &why);

	if (answer == CONSTRAINT_ERROR)
		return json_error_at(&r->text, at, r->err, "the expression cannot be computed: %s", why.text);
	if (answer != CONSTRAINT_HOLDS)
		return 0;
	r->axes[i] = (struct axis){.name = r->axes[i].name, .value = value};
	return 1;
}

/* Checks the expressions of all axes, and computes those that depend on const axes only. */
static int read_expressions(struct reader *r, const struct json_step *axes)
{
	bool progress = true;
	int circular;

	while (progress) {
		progress = false;
		for (int i = 0; i < r->out->axis_count; i++) {
			const struct json_step axis = {.up = axes, .key = r->axes[i].name}, at = {.up = &axis, .key = "expression"};
			int fixed = r->axes[i].var && r->expressions[i] != NULL ? fix_expression(r, &at, i) : 0;

			r->out->axis_expressions = r->expressions[i] != NULL ? r->expressions : r->out->axis_expressions;
			if (fixed < 0)
				return -1;
			progress = progress || fixed > 0;
		}
	}
	circular = r->out->axis_expressions != NULL ? axis_expressions_circular(r->out) : -1;
	if (circular < 0)
		return 0;
	const struct json_step axis = {.up = axes, .key = r->axes[circular].name}, at = {.up = &axis, .key = "expression"};

	return json_error_at(&r->text, &at, r->err,
			     "expected an expression that does not need the axis itself, but \"%s\" is in a cycle of expressions",
			     err_show(r->axes[circular].name).text);
}

static int read_axes(struct reader *r, const cJSON *json)
{
	const struct json_step at = {.key = "axes"};
	const cJSON *object;
	int count = members_of(r, json, "axes", DEFINITION_AXES, &object);

	if (count < 0)
		return -1;
	reserve_axes(r, count);
	for (const cJSON *member = object->child; member != NULL; member = member->next)
		if (read_axis(r, &at, member) != 0)
			return -1;
	return read_expressions(r, &at);
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

/* Returns whether a text that is no axis can only be a size or an expression, and not a misspelt name. */
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
	if (check_printable(r, at, "an expression", text) != 0)
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
		return expected(r, at, "the name of an axis (write a size as a string: \"1\")", item);
	if (!cJSON_IsString(item))
		return expected(r, at, "the name of an axis", item);
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
		return missing(r, tensor, "shape", "a list of axes, or null for a Python scalar");
	out->rank = cJSON_IsNull(shape) ? RANK_SCALAR : 0;
	if (cJSON_IsNull(shape))
		return 0;
	if (!cJSON_IsArray(shape))
		return expected(r, &at, "a list of axes, or null for a Python scalar", shape);
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

/* FlashInfer's tracer writes "unknown" for the tensors that its example call did not have. Remembers the first one. */
static int note_unknown_dtype(struct reader *r, const struct json_step *at)
{
	struct err sentence;

	if (r->out->unverifiable != NULL)
		return 0;
	json_error_at(&r->text, at, &sentence,
	              "no case can run, because the dtype is \"unknown\"; replace it by a dtype");
	r->out->unverifiable = arena_string(r->arena, sentence.text);
	return 0;
}

/* PAIRS: torch's name of float4_e2m1. Its shapes count bytes of two values, and the shapes of a tensor_spec count values. */
#define PAIRS "float4_e2m1fn_x2"

static int read_pairs(struct reader *r, const struct json_step *tensor, struct tensor_spec *out)
{
	const struct json_step shape = {.up = tensor, .key = "shape"}, at = {.up = &shape, .index = out->rank - 1};

	out->dtype = DTYPE_FLOAT4_E2M1;
	if (out->rank < 1)
		return json_error_at(&r->text, &shape, r->err, "expected a last dimension, because %s packs two values of it in a byte",
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
		return missing(r, tensor, "dtype", "\"bfloat16\", \"int32\", …");
	if (!cJSON_IsString(dtype))
		return expected(r, &at, "the name of a dtype", dtype);
	if (dtype_parse(dtype->valuestring, &out->dtype))
		return 0;
	if (strcmp(dtype->valuestring, PAIRS) == 0)
		return read_pairs(r, tensor, out);
	if (strcmp(dtype->valuestring, "unknown") == 0)
		return note_unknown_dtype(r, &at);
	for (int i = 0; i < DTYPE_COUNT; i++)
		names[i] = dtype_name((enum dtype)i);
	const char *near = suggest_word(dtype->valuestring, names, DTYPE_COUNT);

	if (near != NULL)
		return json_error_at(&r->text, &at, r->err, "expected a dtype, found \"%s\"; did you mean \"%s\"?",
		                     err_show(dtype->valuestring).text, near);
	return expected(
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
		return expected(r, &at, "true or false", value);
	out->optional = cJSON_IsTrue(value);
	return 0;
}

/* Reads one field of a tolerance. If `most` is 0, there is no upper bound. */
static int read_bound(struct reader *r, const struct json_step *tolerance, const cJSON *json, double *out)
{
	const struct json_step at = {.up = tolerance, .key = json->string};
	bool ratio = strcmp(json->string, "hit_ratio") == 0;

	if (!cJSON_IsNumber(json) || json->valuedouble < 0 ||
	    (ratio && !(json->valuedouble > 0 && json->valuedouble <= 1)))
		return expected(r, &at, ratio ? "a number above 0 and at most 1" : "a number of at least 0", json);
	*out = json->valuedouble;
	return 0;
}

/* Reads a tolerance. An unknown field is an error and not a note: a misspelt field would otherwise silently change how
 * strictly the output is checked. */
static int read_tolerance(struct reader *r, const struct json_step *up, const cJSON *json, struct tolerance *out)
{
	const struct json_step at = {.up = up, .key = "tolerance"};
	const cJSON *object = json_member(json, "tolerance");

	*out = (struct tolerance){-1, -1, -1};
	if (object == NULL || cJSON_IsNull(object))
		return 0;
	if (!cJSON_IsObject(object))
		return expected(r, &at, "an object with \"atol\", \"rtol\", \"hit_ratio\"", object);
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

/* Reads the name of the argument of an input. Outputs have this field too, if an argument gets them. */
static int read_param(struct reader *r, const struct json_step *tensor, const cJSON *json, struct tensor_spec *out)
{
	const struct json_step at = {.up = tensor, .key = "param"};
	const cJSON *value = json_member(json, "param");

	out->param = NULL;
	if (value == NULL || cJSON_IsNull(value))
		return 0;
	if (!cJSON_IsString(value))
		return expected(r, &at, "the name of an argument", value);
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

/* Reads a tensor. If `tolerance` is NULL, the tensor is an input. */
static int read_tensor(struct reader *r, const struct json_step *up, const cJSON *json, struct tensor_spec *out,
                       struct tolerance *tolerance)
{
	static const char *const known[] = {"shape", "dtype", "description", "optional", "param", "tolerance"};
	const struct json_step at = {.up = up, .key = json->string};

	if (check_printable(r, &at, tolerance == NULL ? "an input's name" : "an output's name", json->string) != 0)
		return -1;
	if (!cJSON_IsObject(json))
		return expected(r, &at, "an object with \"shape\" and \"dtype\"", json);
	out->name = arena_string(r->arena, json->string);
	note_unknown_fields(r, &at, json, known, tolerance == NULL ? 5 : 6);
	if (read_shape(r, &at, json, out) != 0 || read_dtype(r, &at, json, out) != 0 || check_size(r, &at, out) != 0 ||
	    read_description(r, &at, json, &out->description) != 0 || read_optional(r, &at, json, out) != 0 ||
	    read_param(r, &at, json, out) != 0)
		return -1;
	if (tolerance != NULL)
		return read_tolerance(r, &at, json, tolerance);
	r->out->has_other_names = r->out->has_other_names || !python_is_argument(out->name);
	if (out->param == NULL && (!is_identifier(out->name) || python_is_keyword(out->name, strlen(out->name))))
		note_at(r, &at, "no argument can have the name of this input, which is passed by its place");
	return 0;
}

/* Returns why no case passes an input, or NULL. */
static const char *why_left_out(const cJSON *input)
{
	const char *dtype = cJSON_GetStringValue(json_member(input, "dtype"));

	if (dtype == NULL)
		return NULL;
	if (strcmp(dtype, "unknown") == 0 && cJSON_IsTrue(json_member(input, "optional")))
		return "every case leaves out this input, because its dtype is \"unknown\"";
	if (strcmp(dtype, "string") == 0 || strcmp(dtype, "dtype") == 0)
		return "every case leaves out this input, because it is no tensor and no number";
	return NULL;
}

/* Checks an input that no case passes. The fields that are read for other inputs must be valid here too. */
static int read_left_out(struct reader *r, const struct json_step *up, const cJSON *json, const char **names)
{
	const struct json_step at = {.up = up, .key = json->string};
	struct tensor_spec unused;

	if (check_printable(r, &at, "an input's name", json->string) != 0 || read_shape(r, &at, json, &unused) != 0 ||
	    read_description(r, &at, json, &unused.description) != 0 || read_optional(r, &at, json, &unused) != 0 ||
	    read_param(r, &at, json, &unused) != 0)
		return -1;
	note_at(r, &at, why_left_out(json));
	names[r->out->left_out_count++] = arena_string(r->arena, json->string);
	if (unused.param != NULL)
		names[r->out->left_out_count++] = unused.param;
	return 0;
}

static int read_inputs(struct reader *r, const cJSON *json)
{
	const struct json_step at = {.key = "inputs"};
	const cJSON *object;
	int count = members_of(r, json, "inputs", DEFINITION_TENSORS, &object);

	if (count < 0)
		return -1;
	struct tensor_spec *inputs = arena_array(r->arena, (size_t)count, sizeof *inputs);
	const char **left_out = arena_array(r->arena, 2 * (size_t)count, sizeof *left_out);

	r->out->inputs = inputs;
	r->out->left_out = left_out;
	for (const cJSON *member = object->child; member != NULL; member = member->next)
		if (why_left_out(member) != NULL
		        ? read_left_out(r, &at, member, left_out)
		        : read_tensor(r, &at, member, &inputs[r->out->input_count++], NULL))
			return -1;
	return 0;
}

/* Adds a note for each output that has the name of an input, as the outputs of operations in place do. */
static void note_shared_names(struct reader *r, const struct json_step *outputs)
{
	for (int i = 0; i < r->out->output_count; i++) {
		const char *name = r->out->outputs[i].name;
		const struct json_step at = {.up = outputs, .key = name};

		if (definition_input(r->out, name) >= 0)
			note_at(r, &at, arena_printf(r->arena, "\"%s\" is also the name of an input; newer versions of flashinfer-bench refuse that",
						     name));
	}
}

static int read_outputs(struct reader *r, const cJSON *json)
{
	const struct json_step at = {.key = "outputs"};
	const cJSON *object;
	int count = members_of(r, json, "outputs", DEFINITION_TENSORS, &object), i = 0;

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

/* --- constraints --------------------------------------------------------------------------------------------- */

/* Adds a note that the constraint cannot be checked. Any Python expression is a valid constraint. */
static void note_unchecked(struct reader *r, const struct json_step *at, const char *why)
{
	note_at(r, at, arena_printf(r->arena, "this constraint is not checked: %s", why));
}

/* Returns whether a text is certainly no Python expression. */
static bool is_no_expression(struct reader *r, const char *text)
{
	const char *source = arena_printf(r->arena, "_ = (%s\n)\n", text);
	struct python_outline outline;

	return text[strspn(text, " \t")] == '\0' ||
	       python_outline_read(source, strlen(source), NULL, r->arena, &outline, NULL) == PYTHON_OUTLINE_ERROR;
}

/* Checks that the values of the const axes alone do not violate the constraint. Returns 1 if the constraint can be
 * checked, 0 if it cannot, and -1 with a message on error. */
static int check_constraint(struct reader *r, const struct json_step *at, const char *text, const int64_t *axis)
{
	struct err why;

	switch (constraint_evaluate(r->out, text, axis, NULL, &why)) {
	case CONSTRAINT_BROKEN:
		return json_error_at(&r->text, at, r->err,
		                     "expected a constraint that can be satisfied, but the values of the const axes make "
		                     "it false: %s",
		                     why.text);
	case CONSTRAINT_ERROR:
		if (is_no_expression(r, text))
			return json_error_at(&r->text, at, r->err, "expected a Python expression, found \"%s\"",
					     err_show(text).text);
		note_unchecked(r, at, why.text);
		return 0;
	default:
		return 1;
	}
}

/* Makes the axes const that have only one value above 0, because constraints compute it from const axes: with `hidden ==
 * 2 * half` and a const `hidden`, the axis `half` is const too. `axis` has the values of the const axes. */
static void fix_axes(struct reader *r, int64_t *axis)
{
	const struct definition *d = r->out;

	if (constraint_solve(d, axis) == 0)
		return;
	for (int i = 0; i < d->input_count + d->output_count; i++)
		if (definition_bytes(i < d->input_count ? &d->inputs[i] : &d->outputs[i - d->input_count], axis) < 0)
			return; /* no machine has such a tensor, so the cases report the axis */
	for (int i = 0; i < d->axis_count; i++)
		if (axis[i] > 0)
			r->axes[i] = (struct axis){.name = r->axes[i].name, .value = axis[i]};
}

/* Returns the texts of the constraints, followed by "axis == expression" for each var axis that has an expression and a
 * name that constraints can contain. */
static const char *const *add_equations(struct reader *r, const char *const *texts, int *count)
{
	const struct definition *d = r->out;
	const char **all = arena_array(r->arena, (size_t)*count + (size_t)d->axis_count, sizeof *all);

	for (int i = 0; i < *count; i++)
		all[i] = texts[i];
	for (int i = 0; i < d->axis_count; i++)
		if (d->axes[i].var && r->expressions[i] != NULL && python_is_argument(d->axes[i].name))
			all[(*count)++] = arena_printf(r->arena, "%s == %s", d->axes[i].name, r->expressions[i]);
	return all;
}

static int read_constraints(struct reader *r, const cJSON *json)
{
	const struct json_step list = {.key = "constraints"};
	const char *const *texts;
	int64_t axis[DEFINITION_AXES];
	int count = 0;

	if (read_strings(r, json, "constraints", CONSTRAINTS, &texts, &count) != 0)
		return -1;
	texts = add_equations(r, texts, &count);
	const char **sorted = arena_array(r->arena, (size_t)count, sizeof *sorted);

	for (int i = 0; i < r->out->axis_count; i++)
		axis[i] = r->out->axes[i].var ? -1 : r->out->axes[i].value;
	for (int i = 0; i < count; i++) {
		const struct json_step at = {.up = &list, .index = i};
		int checkable = check_constraint(r, &at, texts[i], axis);

		if (checkable < 0)
			return -1;
		if (checkable > 0)
			sorted[r->out->constraint_count++] = texts[i];
		else
			sorted[count - ++r->out->unchecked_count] = texts[i];
	}
	r->out->constraints = sorted;
	fix_axes(r, axis);
	return 0;
}

/* --- files ---------------------------------------------------------------------------------------------------- */

/* Is this a relative path, in its shortest form, that names no hidden file and leads nowhere but down? */
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

	if (read_strings(r, json, "reads", DEFINITION_READS, &given, &r->out->read_count) != 0)
		return -1;
	paths = arena_array(r->arena, (size_t)r->out->read_count, sizeof *paths);
	r->out->reads = paths;
	for (int i = 0; i < r->out->read_count; i++) {
		const struct json_step at = {.up = &list, .index = i};

		if (!is_plain_path(given[i]))
			return json_error_at(&r->text, &at, r->err,
					     "expected the path of a file below the dataset's folder, relative to it and "
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

/* --- the reference ------------------------------------------------------------------------------------------- */

/* Reports why a reference without a function to call is none. */
static int no_entry_point(struct reader *r, const struct json_step *at, const struct python_outline *outline)
{
	static const char wanted[] = "expected Python source with a function run or …_reference at top level";

	if (outline->function_count == 0)
		return json_error_at(&r->text, at, r->err, "%s, found none", wanted);
	return json_error_at(&r->text, at, r->err,
			     outline->functions[0].is_async ? "%s, found only %s, which is async"
							    : "%s, found only %s; rename it to run",
			     wanted, err_show(outline->functions[0].name).text);
}

/* Notes the names that the reference uses and does not define. They do no harm if their lines never run. */
static void note_undefined_names(struct reader *r, const struct json_step *at)
{
	enum { MOST = 8 };
	const struct definition *out = r->out;
	struct arena scratch = {0};
	struct python_name found[MOST];
	int count = python_names_undefined(out->reference, out->reference_length, &scratch, found, MOST);

	for (int i = 0; i < count; i++)
		note_at(r, at,
			arena_printf(r->arena, "the reference uses '%s' at line %d, column %d, and nothing in it defines this name",
				     err_show(found[i].name).text, found[i].line, found[i].column));
	arena_free(&scratch);
}

/* Checks that the reference is Python, as far as the outline knows, and finds the function that is called. If in doubt,
 * accepts it: running the reference then reports the mistake. */
static int check_source(struct reader *r, const struct json_step *at)
{
	struct definition *out = r->out;
	struct arena scratch = {0};
	struct python_outline outline;
	struct err why;
	const char *entry_point;
	int rc = 0;

	if (entry_point_find(out->reference, out->reference_length, &scratch, &outline, &entry_point, &why) ==
	    PYTHON_OUTLINE_ERROR)
		rc = json_error_at(&r->text, at, r->err, "the reference is not valid Python at line %d, column %d: %s",
				   outline.line, outline.column, why.text);
	else if (entry_point == NULL)
		rc = no_entry_point(r, at, &outline);
	else
		out->entry_point = arena_string(r->arena, entry_point);
	arena_free(&scratch);
	if (rc == 0)
		note_undefined_names(r, at);
	return rc;
}

/* FlashInfer's tracer writes a definition without a reference for a function that has none. */
static int note_no_reference(struct reader *r)
{
	struct err sentence;

	json_error_at(&r->text, NULL, &sentence,
	              "no case can run, because the definition has no \"reference\"; write one with a function run");
	r->out->unverifiable = arena_string(r->arena, sentence.text);
	r->out->reference = "";
	r->out->reference_line = 1;
	return 0;
}

static int read_reference(struct reader *r, const cJSON *json)
{
	const struct json_step at = {.key = "reference"};
	const cJSON *reference = json_member(json, "reference");
	int column;

	if ((reference == NULL || cJSON_IsNull(reference)) && r->out->fi_api != NULL)
		return note_no_reference(r);
	if (read_text(r, json, "reference", true, &r->out->reference) != 0)
		return -1;
	r->out->reference_length = strlen(r->out->reference);
	json_place(&r->text, "reference", &r->out->reference_line, &column);
	if (r->out->reference[strspn(r->out->reference, " \t\r\n")] == '\0')
		return json_error_at(&r->text, &at, r->err,
		                     "expected Python source that defines run(), found an empty string");
	return check_source(r, &at);
}

/* Finds the code that makes inputs. If it has no function to call, notes that; only the cases that need it fail. */
static void find_input_code(struct reader *r)
{
	struct definition *out = r->out;
	struct input_code *code = &out->input_code;
	const char *key = out->custom_inputs_entrypoint != NULL ? "custom_inputs_entrypoint" : "init";
	const struct json_step at = {.key = key};
	int line = 1, column = 1;

	if (out->custom_inputs_entrypoint != NULL)
		input_code_of_entrypoint(out, r->arena, code);
	else if (*out->init != '\0')
		input_code_of_init(out, r->arena, code);
	if (code->kind == INPUT_CODE_NONE)
		return;
	json_place(&r->text, key, &line, &column);
	code->place = arena_printf(r->arena, "%s:%d:%d", r->text.name, line, column);
	if (code->missing != NULL)
		note_at(r, &at, code->missing);
}

/* Copies a source that may be absent. Returns "" if there is none. */
static const char *read_source(struct reader *r, const cJSON *json, const char *key)
{
	const struct json_step at = {.key = key};
	const cJSON *value = json_member(json, key);

	if (cJSON_IsString(value))
		return arena_string(r->arena, value->valuestring);
	if (value != NULL && !cJSON_IsNull(value))
		note_at(r, &at, "expected Python source in a string; the field is ignored");
	return "";
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

/* Finds the function that a tag "fi_api:flashinfer.norm.rmsnorm" names. */
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

		note_at(r, &at, "expected a dotted name after \"fi_api:\"; the tag is ignored");
	}
}

static const char *const *names_of(struct reader *r, const struct tensor_spec *specs, int count)
{
	const char **names = arena_array(r->arena, (size_t)count, sizeof *names);

	for (int i = 0; i < count; i++)
		names[i] = specs[i].name;
	return names;
}

/* Checks the chain of operations that is a ground truth, and keeps its text. */
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
		return expected(r, NULL, "a definition object", json);
	if (read_name(r, json, "name", stem, "name", &out->name) != 0 ||
	    read_op_type(r, json, folder) != 0 || read_optional_text(r, json, "hf_id", &out->hf_id) != 0 ||
	    read_custom_inputs(r, json) != 0 ||
	    read_text(r, json, "description", false, &out->description) != 0 ||
	    read_strings(r, json, "tags", TAGS, &out->tags, &out->tag_count) != 0)
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
	note_unknown_fields(r, NULL, json, known, sizeof known / sizeof *known);
	return 0;
}

const struct definition *definition_load(const char *path, const char *folder, const char *stem, const void *bytes,
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
