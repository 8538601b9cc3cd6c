#include "cli/tolerance_option.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int bad_tolerance(const char *word, struct err *err)
{
	return err_set(err, "invalid tolerance '%s' (--tolerance takes ATOL, ATOL,RTOL or ATOL,RTOL,HIT_RATIO, after DTYPE= if it "
			    "is for one dtype, as in 1e-4 or bfloat16=8e-3,1e-2)", err_show(word).text);
}

/* Parses "ATOL[,RTOL[,HIT_RATIO]]". Returns false if the text is something else. */
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

/* Sets the tolerance of one dtype, or of all dtypes if `word` names none. */
static int read_tolerance(const char *word, struct case_options *out, struct err *err)
{
	const char *equals = strchr(word, '=');
	struct tolerance read;
	char name[32] = "";
	enum dtype dtype;

	if (!read_numbers(equals != NULL ? equals + 1 : word, &read))
		return bad_tolerance(word, err);
	if (equals == NULL) {
		for (int i = 0; i < DTYPE_COUNT; i++)
			out->by_dtype[i] = read;
		return 0;
	}
	if ((size_t)(equals - word) < sizeof name)
		memcpy(name, word, (size_t)(equals - word));
	if (!dtype_parse(name, &dtype))
		return bad_tolerance(word, err);
	out->by_dtype[dtype] = read;
	return 0;
}

/* A tolerance of one dtype overrides one of all dtypes, in whatever order they are given. */
int tolerance_options_read(const struct words *tolerances, struct tolerance single, struct case_options *out,
			   struct err *err)
{
	if (single.hit_ratio > 1 || single.hit_ratio == 0)
		return err_set(err, "--hit-ratio takes a number above 0 and at most 1, not %g", single.hit_ratio);
	for (int of_one = 0; of_one < 2; of_one++)
		for (int i = 0; i < tolerances->count; i++)
			if ((strchr(tolerances->items[i], '=') != NULL) == (of_one == 1) &&
			    read_tolerance(tolerances->items[i], out, err) < 0)
				return -1;
	out->tolerance = single;
	return 0;
}
