#include "dataset/input_code.h"

#include <string.h>

#include "dataset/python_outline.h"

static const char init_suffix[] = "_init";

static bool ends_with(const char *name, const char *suffix)
{
	size_t length = strlen(name), end = strlen(suffix);

	return length >= end && strcmp(name + length - end, suffix) == 0;
}

static const struct python_function *function_of_init(const struct python_outline *outline)
{
	for (int i = outline->function_count - 1; i >= 0; i--)
		if (!outline->functions[i].is_async && ends_with(outline->functions[i].name, init_suffix))
			return &outline->functions[i];
	return outline->function_count == 1 && !outline->functions[0].is_async ? &outline->functions[0] : NULL;
}

/* Returns whether the value of the axis must be passed to the function. If a parameter has the name of the axis, the
 * value must be passed unless the parameter has a default. If no parameter has this name, the value must be passed if
 * the function has **kwargs. */
static bool needs(const struct python_function *function, const char *axis)
{
	bool takes_any = false;

	for (int i = 0; i < function->parameter_count; i++) {
		const struct python_parameter *parameter = &function->parameters[i];

		takes_any = takes_any || parameter->kind == PARAMETER_KWARGS;
		if (strcmp(parameter->name, axis) == 0)
			return !parameter->has_default;
	}
	return takes_any;
}

static const bool *axes_given(const struct definition *d, const struct python_function *function, struct arena *arena)
{
	bool *given = arena_array(arena, (size_t)d->axis_count, sizeof *given);

	for (int i = 0; i < d->axis_count; i++)
		given[i] = !d->axes[i].var || function == NULL || needs(function, d->axes[i].name);
	return given;
}

void input_code_of_init(const struct definition *definition, struct arena *arena, struct input_code *code)
{
	struct arena scratch = {0};
	struct python_outline outline;
	struct err why = {""};
	const struct python_function *function = NULL;
	enum python_outline_answer answer =
	    python_outline_read(definition->init, strlen(definition->init), NULL, &scratch, &outline, &why);

	code->kind = INPUT_CODE_INIT;
	if (answer == PYTHON_OUTLINE_OK)
		function = function_of_init(&outline);
	if (answer == PYTHON_OUTLINE_ERROR)
		code->missing = arena_printf(arena, "the field \"init\" is not valid Python at line %d, column %d: %s",
		    outline.line,
					     outline.column, why.text);
	else if (function == NULL)
		code->missing = "the field \"init\" defines no function at top level with a name that ends with _init";
	else
		code->function = arena_string(arena, function->name);
	code->given = axes_given(definition, function, arena);
	arena_free(&scratch);
}

void input_code_of_entrypoint(const struct definition *definition, struct arena *arena, struct input_code *code)
{
	const char *name = definition->custom_inputs_entrypoint;
	struct arena scratch = {0};
	struct python_outline outline;
	struct err why = {""};

	code->kind = INPUT_CODE_ENTRYPOINT;
	code->given = axes_given(definition, NULL, arena);
	if (python_outline_read(definition->reference, definition->reference_length, name, &scratch, &outline, &why) ==
		PYTHON_OUTLINE_OK &&
	    !python_outline_may_define(&outline, name))
		code->missing = arena_printf(arena, "custom_inputs_entrypoint names the function %s, but the reference does not "
						    "define it",
					     err_show(name).text);
	else
		code->function = name;
	arena_free(&scratch);
}
