#include "dataset/axis_length.h"

#include <stdlib.h>
#include <string.h>

/* Reads an integer in a string, as flashinfer-bench does. The string may have blanks around the integer, a sign, single
 * underscores between digits, and a point followed by zeros. */
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

bool axis_length_read(const cJSON *json, int64_t *out)
{
	const char *text = cJSON_GetStringValue(json);

	if (text != NULL)
		return integer_of_text(text, out);
	*out = cJSON_IsTrue(json) ? 1 : 0;
	return cJSON_IsBool(json) || (json_integer(json, out) && *out >= 0);
}
