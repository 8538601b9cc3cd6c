#include "kernels/core/miss_pattern.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/dtype_convert.h"
#include "kernels/core/take.h"

/* The misses of an output, separately for each axis. */
struct misses {
	bool *at[OP_RANK]; /* at[d][i] is true if there is a miss at index i of axis d */
	int64_t count;
	bool all_nan, all_zero, all_infinite; /* whether all misses have the same value in the reference: NaN, 0, or
					       * infinity */
};

static bool missed(double found, double truth, struct rule rule)
{
	if (isinf(truth) || isinf(found))
		return !(found == truth);
	return !(fabs(found - truth) <= rule.atol + rule.rtol * fabs(truth));
}

static void note(struct misses *misses, const struct tensor *found, int64_t flat, double value)
{
	misses->count++;
	misses->all_nan = misses->all_nan && isnan(value);
	misses->all_zero = misses->all_zero && value == 0;
	misses->all_infinite = misses->all_infinite && isinf(value);
	for (int d = found->rank - 1; d >= 0; d--) {
		misses->at[d][flat % found->shape[d]] = true;
		flat /= found->shape[d];
	}
}

/* The indices of an axis at which there are misses: first, first + step, … last. There are `count` indices. */
struct span {
	int64_t first, last, step, count;
};

/* Finds the indices of an axis at which there are misses. Returns false if these indices are not evenly spaced. */
static bool read_span(const bool *at, int64_t length, struct span *span)
{
	*span = (struct span){.first = -1, .step = 1};
	for (int64_t i = 0; i < length; i++) {
		if (!at[i])
			continue;
		if (span->first < 0)
			span->first = i;
		else if (span->count == 1)
			span->step = i - span->first;
		else if (i != span->last + span->step)
			return false;
		span->last = i;
		span->count++;
	}
	if (span->count < 1)
		return false;
	/* If the step is above 1, there must be at least three indices, and they must reach from one end of the axis to
	 * the other. */
	return span->step == 1 || (span->count >= 3 && span->first < span->step && span->last + span->step >= length);
}

static void write_span(const struct span *span, int64_t length, const char *axis, char *out, size_t size)
{
	if (span->count == 1 && span->first == length - 1 && length > 2)
		snprintf(out, size, "%s = %" PRId64 " (the last)", axis, span->first);
	else if (span->count == 1)
		snprintf(out, size, "%s = %" PRId64 "%s", axis, span->first, span->first == 0 ? " (the first)" : "");
	else if (span->step == 2)
		snprintf(out, size, "%s is %s", axis, span->first == 0 ? "even" : "odd");
	else if (span->step > 1)
		snprintf(out, size, "%s = %" PRId64 " modulo %" PRId64, axis, span->first, span->step);
	else if (span->last == length - 1)
		snprintf(out, size, "%s >= %" PRId64 " (the last %" PRId64 " of %" PRId64 ")", axis, span->first, span->count, length);
	else if (span->first == 0)
		snprintf(out, size, "%s < %" PRId64 " (the first %" PRId64 " of %" PRId64 ")", axis, span->last + 1, span->count, length);
	else
		snprintf(out, size, "%" PRId64 " <= %s <= %" PRId64, span->first, axis, span->last);
}

/* Returns the verb of the sentence, which depends on whether all misses are NaN, 0 or infinite. */
static const char *verb_of(const struct misses *misses)
{
	return misses->all_nan ? "is NaN" : misses->all_zero ? "is 0" : misses->all_infinite ? "is infinite" : "differs";
}

/* Returns true if the reference has the same value, 0 or NaN, in the whole region. Not every element of such a region
 * is a miss: if the reference computes 0, elements pass where the truth is near 0. If an axis does not restrict the
 * region, its element of `spans` is the whole axis. */
static bool has_one_value(const struct misses *misses, const struct tensor *found, const struct span *spans)
{
	for (int64_t i = 0; i < found->elements; i++) {
		bool inside = true;
		int64_t flat = i;

		for (int d = found->rank - 1; d >= 0; d--) {
			int64_t at = flat % found->shape[d];

			inside = inside && at >= spans[d].first && at <= spans[d].last && (at - spans[d].first) % spans[d].step == 0;
			flat /= found->shape[d];
		}
		double value = inside ? dtype_load(found->data, found->dtype, i) : 0;

		if (inside && !(misses->all_nan ? isnan(value) : value == 0))
			return false;
	}
	return true;
}

static bool describe(const struct misses *misses, const struct tensor *found, const char *const *axes, char *out,
		     size_t size)
{
	int64_t region = 1;
	bool any = false;
	struct span spans[OP_RANK];

	snprintf(out, size, "%s", verb_of(misses));
	for (int d = 0; d < found->rank; d++) {
		struct span span;
		char text[160];

		if (!read_span(misses->at[d], found->shape[d], &span)) /* axis d does not restrict the region */
			span = (struct span){0, found->shape[d] - 1, 1, found->shape[d]};
		spans[d] = span;
		region *= span.count;
		if (span.count == found->shape[d])
			continue;
		write_span(&span, found->shape[d], axes[d], text, sizeof text);
		snprintf(out + strlen(out), size - strlen(out), "%s%s", any ? " and " : " only where ", text);
		any = true;
	}
	if (!any)
		snprintf(out + strlen(out), size - strlen(out), " everywhere");
	if (misses->count < region - region / 2 &&
	    !((misses->all_nan || misses->all_zero) && has_one_value(misses, found, spans)))
		return false;
	return any || misses->all_nan || misses->all_zero;
}

bool miss_pattern(const struct tensor *found, const struct tensor *truth, struct rule rule, const char *const *axes,
		  char *out, size_t size)
{
	struct misses misses = {.all_nan = true, .all_zero = true, .all_infinite = true};
	bool any;

	if (found->rank < 1 || found->elements < 2)
		return false;
	for (int d = 0; d < found->rank; d++)
		misses.at[d] = take(found->shape[d], sizeof *misses.at[d]);
	for (int64_t i = 0; i < found->elements; i++) {
		double value = dtype_load(found->data, found->dtype, i);

		if (missed(value, dtype_load(truth->data, truth->dtype, i), rule))
			note(&misses, found, i, value);
	}
	any = misses.count > 0 && describe(&misses, found, axes, out, size);
	for (int d = 0; d < found->rank; d++)
		free(misses.at[d]);
	return any;
}
