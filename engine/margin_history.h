/* margin_history - reads the margin of every verdict that the store has for the subject of a case (the digest of what
 * is verified). The verdicts may be from other devices, and from other versions of torch, CUDA, the GPU driver and the
 * ground truths. The margin of a verdict is the largest ratio of an error to its bound. If the margin is 1, the largest
 * error is equal to its bound. */
#ifndef REFTEST_ENGINE_MARGIN_HISTORY_H
#define REFTEST_ENGINE_MARGIN_HISTORY_H

#include "engine/run_state.h"

struct margin_point {
	int64_t time;	/* time of the verdict in Unix seconds */
	double margin;	/* never NaN; infinite if a value is NaN or infinite */
	enum status status;
	/* what verified the case; "" if unknown */
	const char *torch, *cuda, *driver, *ground_truth, *version, *device_class;
};

/* Returns the complete verdict of a case, or NULL if the case has no verdict. If only a part of the verdict was parsed,
 * parses the verdict into `arena`. */
const struct verdict *margin_verdict(const struct case_result *c, struct arena *arena);

/* Sets `out` to the margins of a case, oldest first, allocated in `arena`. Returns the number of margins. */
int margin_history(const struct result *result, const struct case_result *c, struct arena *arena,
		   const struct margin_point **out);

#endif
