#include "workers/judge/message_text.h"

#include <inttypes.h>
#include <math.h>

#include "base/buf.h"

static const char *finish(struct arena *arena, struct buf *text)
{
	const char *copy = arena_copy(arena, text->data, text->length);

	buf_free(text);
	return copy;
}

const char *format_index(struct arena *arena, int64_t flat, int rank, const int64_t *shape)
{
	int64_t index[RANK_MAX] = {0};
	struct buf text = {0};

	for (int d = rank - 1; d >= 0; d--) {
		index[d] = shape[d] > 0 ? flat % shape[d] : 0;
		flat = shape[d] > 0 ? flat / shape[d] : 0;
	}
	buf_text(&text, "[");
	for (int d = 0; d < rank; d++)
		buf_printf(&text, "%s%" PRId64, d > 0 ? ", " : "", index[d]);
	buf_text(&text, "]");
	return finish(arena, &text);
}

const char *format_value(struct arena *arena, double value, enum dtype dtype)
{
	int bits = dtype_bits(dtype);

	if (!dtype_is_float(dtype))
		return arena_printf(arena, "%.0f", value);
	return arena_printf(arena, "%.*g", bits == 64 ? 17 : bits == 32 ? 9 : 5, value);
}

const char *format_bytes(struct arena *arena, int64_t bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t unit = 0;

	if (bytes == INT64_MAX)
		return "more than 8 EiB";
	while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
		value /= 1024;
		unit++;
	}
	return arena_printf(arena, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

const char *format_miss(struct arena *arena, const struct output_verdict *output, enum dtype dtype)
{
	const struct metrics *m = &output->metrics;
	struct buf text = {0};

	buf_printf(&text, "output '%s': %" PRId64 " of %" PRId64 " elements exceed the bound %g + %g |ground truth|",
	           output->name, m->elements - m->hits, m->elements, output->atol, output->rtol);
	if (output->hit_ratio < 1)
		buf_printf(&text, " (%g %% may exceed it)", 100 * (1 - output->hit_ratio));
	if (isfinite(m->margin))
		buf_printf(&text, ", by a factor of up to %.3g", m->margin);
	if (m->nan_reference != m->nan_ground_truth)
		buf_printf(&text, ", %" PRId64 " are NaN (%" PRId64 " in the ground truth)", m->nan_reference,
		           m->nan_ground_truth);
	if (m->inf_reference != m->inf_ground_truth)
		buf_printf(&text, ", %" PRId64 " are infinite (%" PRId64 " in the ground truth)", m->inf_reference,
		           m->inf_ground_truth);
	if (m->worst_count > 0)
		buf_printf(&text, "; the worst at %s: %s, ground truth %s",
			   format_index(arena, m->worst[0].index, output->rank, output->shape),
			   format_value(arena, m->worst[0].reference, dtype),
			   format_value(arena, m->worst[0].ground_truth, dtype));
	return finish(arena, &text);
}
