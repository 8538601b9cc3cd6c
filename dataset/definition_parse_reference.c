#include "dataset/definition_parse_internal.h"

#include <string.h>

#include "dataset/entry_point.h"
#include "dataset/input_code.h"
#include "dataset/python_names.h"

/* Reports that a reference is invalid because it has no function that reftest can call. */
static int no_entry_point(struct reader *r, const struct json_step *at, const struct python_outline *outline)
{
	static const char wanted[] = "expected Python source with a function run() or …_reference() at top level";

	if (outline->function_count == 0)
		return json_error_at(&r->text, at, r->err, "%s, found none", wanted);
	return json_error_at(&r->text, at, r->err,
			     outline->functions[0].is_async ? "%s, found only %s, which is async"
							    : "%s, found only %s; rename it to run",
			     wanted, err_show(outline->functions[0].name).text);
}

/* Adds notes about the names that the reference uses and does not define. Undefined names are not errors, because the
 * lines that use them may never run. */
static void note_undefined_names(struct reader *r, const struct json_step *at)
{
	enum { MOST = 8 };
	const struct definition *out = r->out;
	struct arena scratch = {0};
	struct python_name found[MOST];
	int count = python_names_undefined(out->reference, out->reference_length, &scratch, found, MOST);

	for (int i = 0; i < count; i++)
		reader_note(r, at,
			arena_printf(r->arena, "the reference uses '%s' at line %d, column %d, but does not define this name",
				     err_show(found[i].name).text, found[i].line, found[i].column));
	arena_free(&scratch);
}

/* Checks the syntax of the reference, and finds the function that reftest calls. If entry_point_find cannot tell
 * whether the reference is valid Python, accepts the reference. A syntax error is then reported by the cases, when they
 * run. */
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

/* Records why no case can run. FlashInfer's tracer writes such a definition if the traced function has no reference. */
static int note_no_reference(struct reader *r)
{
	struct err sentence;

	json_error_at(&r->text, NULL, &sentence,
	              "no case can run, because the definition has no \"reference\"; write one with a function run()");
	r->out->unverifiable = arena_string(r->arena, sentence.text);
	r->out->reference = "";
	r->out->reference_line = 1;
	return 0;
}

int read_reference(struct reader *r, const cJSON *json)
{
	const struct json_step at = {.key = "reference"};
	const cJSON *reference = json_member(json, "reference");
	int column;

	if ((reference == NULL || cJSON_IsNull(reference)) && r->out->fi_api != NULL)
		return note_no_reference(r);
	if (reader_text(r, json, "reference", true, &r->out->reference) != 0)
		return -1;
	r->out->reference_length = strlen(r->out->reference);
	json_place(&r->text, "reference", &r->out->reference_line, &column);
	if (r->out->reference[strspn(r->out->reference, " \t\r\n")] == '\0')
		return json_error_at(&r->text, &at, r->err,
		                     "expected Python source that defines run(), found an empty string");
	return check_source(r, &at);
}

void find_input_code(struct reader *r)
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
		reader_note(r, &at, code->missing);
}

const char *read_source(struct reader *r, const cJSON *json, const char *key)
{
	const struct json_step at = {.key = key};
	const cJSON *value = json_member(json, key);

	if (cJSON_IsString(value))
		return arena_string(r->arena, value->valuestring);
	if (value != NULL && !cJSON_IsNull(value))
		reader_note(r, &at, "expected Python source in a string; the field is ignored");
	return "";
}
