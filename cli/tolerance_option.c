#include "cli/tolerance_option.h"

#include "engine/tolerance_text.h"

int tolerance_options_read(const struct words *tolerances, struct tolerance single, struct case_options *out,
			   struct err *err)
{
	if (single.hit_ratio > 1 || single.hit_ratio == 0)
		return err_set(err, "--hit-ratio takes a number above 0 and at most 1, not %g", single.hit_ratio);
	if (tolerance_texts_read(tolerances->items, tolerances->count, "--tolerance", out->by_dtype, err) < 0)
		return -1;
	out->tolerance = single;
	return 0;
}
