#include "engine/tolerance_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int bad_tolerance(const char *word, const char *source, struct err *err)
{
	return err_set(err, "invalid tolerance '%s' (%s takes [DTYPE=]ATOL[,RTOL[,HIT_RATIO]], as in 1e-4 or "
			    "bfloat16=8e-3,1e-2)", err_show(word).text, source);
}

/* Parses "ATOL[,RTOL[,HIT_RATIO]]". Returns false if the text is not of this form. */
static bool read_numbers(const char *text, struct tolerance *out)
{
	double values[3] = {-1, -1, -1};

	for (int i = 0;; i++) {
		char *end;

		values[i] = strtod(text, &end);
		if (end == text || !isfinite(values[i]) || values[i] < 0 || (*end != ',' && *end != '\0'))
			return false;
		if (*end == '\0')
			break;
		if (i == 2)
			return false;
		text = end + 1;
	}
	if (values[2] == 0 || values[2] > 1)
		return false;
	*out = (struct tolerance){values[0], values[1] >= 0 ? values[1] : values[0], values[2]};
	return true;
}

/* Sets the tolerance of one dtype, or of all dtypes if the text names no dtype. If the text has no RTOL, both bounds
 * are ATOL. */
static int read_text(const char *word, const char *source, struct tolerance by_dtype[DTYPE_COUNT], struct err *err)
{
	const char *equals = strchr(word, '=');
	struct tolerance read;
	char name[32] = "";
	enum dtype dtype;

	if (!read_numbers(equals != NULL ? equals + 1 : word, &read))
		return bad_tolerance(word, source, err);
	if (equals == NULL) {
		for (int i = 0; i < DTYPE_COUNT; i++)
			by_dtype[i] = read;
		return 0;
	}
	if ((size_t)(equals - word) < sizeof name)
		memcpy(name, word, (size_t)(equals - word));
	if (!dtype_parse(name, &dtype))
		return bad_tolerance(word, source, err);
	by_dtype[dtype] = read;
	return 0;
}

int tolerance_texts_read(const char *const *texts, int count, const char *source, struct tolerance by_dtype[DTYPE_COUNT],
			 struct err *err)
{
	for (int of_one = 0; of_one < 2; of_one++)
		for (int i = 0; i < count; i++)
			if ((strchr(texts[i], '=') != NULL) == (of_one == 1) &&
			    read_text(texts[i], source, by_dtype, err) < 0)
				return -1;
	return 0;
}
