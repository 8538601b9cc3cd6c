/* definition_parse_left_out - decides which inputs of a definition are never passed to the reference. */
#include "dataset/definition_parse_internal.h"

#include <string.h>

/* Returns whether an input of this dtype is an option (a string or a dtype) and not a tensor. FlashInfer's tracer
 * writes "string" and "str". */
static bool is_option(const char *dtype)
{
	return strcmp(dtype, "string") == 0 || strcmp(dtype, "str") == 0 || strcmp(dtype, "dtype") == 0;
}

const char *why_input_is_left_out(const cJSON *input)
{
	const char *dtype = cJSON_GetStringValue(json_member(input, "dtype"));

	if (dtype == NULL)
		return NULL;
	if (strcmp(dtype, "unknown") == 0 && cJSON_IsTrue(json_member(input, "optional")))
		return "this input is omitted in every case, because its dtype is \"unknown\"";
	if (is_option(dtype))
		return "this input is omitted in every case, because it is neither a tensor nor a number";
	return NULL;
}
