#include "workers/protocol/layout.h"

#include <stdbool.h>

int64_t layout_add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int64_t layout_round(int64_t value)
{
	int64_t up = layout_add(value, LAYOUT_ALIGN - 1);

	return up == INT64_MAX ? INT64_MAX : up / LAYOUT_ALIGN * LAYOUT_ALIGN;
}

/* Returns the tensor at position `at` of a layout. Layout 0 has the caller's order, and layout 1 has the reverse
 * order. */
static int tensor_at(int at, int count, int run)
{
	return run == 0 ? at : count - 1 - at;
}

/* Assigns offsets to the tensors, one after the other, beginning with `first`. Returns the end of the last gap. */
static int64_t place(const int64_t *bytes, int count, int run, int64_t first, int64_t *offset)
{
	int64_t at = first;

	for (int i = 0; i < count; i++) {
		int tensor = tensor_at(i, count, run);

		offset[tensor] = at;
		at = layout_add(layout_round(layout_add(at, bytes[tensor])), LAYOUT_GAP);
	}
	return at;
}

static bool any_equal(const int64_t *a, const int64_t *b, int count)
{
	for (int i = 0; i < count; i++)
		if (a[i] == b[i])
			return true;
	return false;
}

static const struct layout_gap *gaps_of(const struct layout *layout, const int64_t *bytes, int run, struct arena *arena)
{
	struct layout_gap *gaps = arena_array(arena, (size_t)layout->gap_count, sizeof *gaps);
	int64_t end = 0;
	int before = -1;

	for (int i = 0; i < layout->count; i++) {
		int tensor = tensor_at(i, layout->count, run);

		gaps[i] = (struct layout_gap){end, layout->offset[tensor], before, tensor};
		end = layout_add(layout->offset[tensor], bytes[tensor]);
		before = tensor;
	}
	gaps[layout->count] = (struct layout_gap){end, layout->total, before, -1};
	return gaps;
}

/* Even in reverse order, a tensor can have the address that it has in layout 0, for example the middle one of three
 * tensors. Therefore layout 1 also shifts the tensors by 3, 5, 7, … times the alignment, until no tensor has the same
 * address as in layout 0. For each tensor, at most one shift gives the same address as in layout 0, so the loop
 * terminates. */
struct layout layout_make(const int64_t *bytes, int count, int run, struct arena *arena)
{
	struct layout out = {.count = count, .gap_count = count + 1};
	int64_t first = LAYOUT_GAP;

	out.offset = arena_array(arena, (size_t)count, sizeof *out.offset);
	out.total = place(bytes, count, 0, first, out.offset);
	if (run != 0) {
		int64_t *moved = arena_array(arena, (size_t)count, sizeof *moved);

		first += 3 * LAYOUT_ALIGN;
		out.total = place(bytes, count, run, first, moved);
		while (out.total != INT64_MAX && any_equal(moved, out.offset, count)) {
			first += 2 * LAYOUT_ALIGN;
			out.total = place(bytes, count, run, first, moved);
		}
		out.offset = moved;
	}
	out.gaps = gaps_of(&out, bytes, run, arena);
	return out;
}
