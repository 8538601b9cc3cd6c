#include "kernels/common/attention/sizes.h"

#include "kernels/common/attention/forms.h"
#include "kernels/common/attention/lengths.h"

/* One case of a size preset: the total numbers of sequences, of queries (decode: one per sequence) and of keys. If the
 * preset has a list of lengths, and no const axis fixes the number of sequences, the list determines these totals. */
struct attention_preset {
	int64_t batch, queries, keys;
	enum attention_list list;
};

static void set_axis(const struct op_problem *problem, int64_t *row, int input, int dimension, int64_t value)
{
	int axis = input < 0 ? -1 : problem->inputs[input].axis[dimension];

	if (axis >= 0 && problem->axes[axis].var)
		row[axis] = value;
}

/* Returns the number of sequences if a const axis determines it, otherwise -1. */
static int64_t fixed_batch(const struct op_problem *problem, const struct attention_roles *roles)
{
	const struct op_axis *offsets = &problem->axes[problem->inputs[roles->kv_indptr].axis[0]];
	const struct op_axis *queries = &problem->axes[problem->inputs[roles->query[0]].axis[0]];

	if (!offsets->var)
		return offsets->value - 1;
	return roles->qo_indptr < 0 && !queries->var ? queries->value : -1;
}

/* Writes the axis values of a case with the totals `totals`. If an axis occurs in no tensor, such as a batch_size that
 * only a constraint mentions, its length is the number of sequences. The caches have more pages than the sequences
 * use. */
static void set_totals(const struct op_problem *problem, const struct attention_roles *roles,
                       const struct attention_totals *totals, int64_t *row)
{
	int64_t batch = totals->batch, entries = totals->entries;

	op_start_axes(problem, batch, row);
	set_axis(problem, row, roles->query[0], 0, roles->qo_indptr >= 0 ? totals->queries : batch);
	set_axis(problem, row, roles->kv_indptr, 0, batch + 1);
	set_axis(problem, row, roles->qo_indptr, 0, batch + 1);
	set_axis(problem, row, roles->kv_indices, 0, entries);
	set_axis(problem, row, roles->key[0], 0, roles->kv_indices >= 0 ? entries + entries / 4 + 3 : entries);
}

/* Returns the number of elements in the output of one query: heads times value dim. */
static int64_t row_of(const struct op_problem *problem, const struct attention_roles *roles)
{
	const struct op_arg *output = &problem->outputs[roles->output];

	return problem->axes[output->axis[1]].value * problem->axes[output->axis[2]].value;
}

/* The numbers of pages to which enlarge_pool enlarges a cache. Page numbers then need more than 15, 12 or 8 bits.
 * `elements` is the largest number of elements that the enlarged cache may have. */
static const struct {
	int64_t pages, elements;
} pools[] = {{36928, 1 << 25}, {6145, 1 << 23}, {321, 1 << 25}};

/* Returns the number of elements of a page, or INT64_MAX if a page is too large for all of `pools`. */
static int64_t page_elements(const struct op_arg *cache, const int64_t *row)
{
	int64_t page = 1;

	for (int d = 1; d < cache->rank; d++) {
		int64_t extent = row[cache->axis[d]] > 0 ? row[cache->axis[d]] : 1;

		if (extent > (INT64_C(1) << 25) / page)
			return INT64_MAX;
		page *= extent;
	}
	return page;
}

/* Enlarges the caches to pools[i].pages pages. i is the first row of `pools` for which such a cache has at most
 * pools[i].elements elements. */
static void enlarge_pool(const struct op_problem *problem, const struct attention_roles *roles, int64_t *row)
{
	const struct op_arg *cache = &problem->inputs[roles->key[0]];
	int64_t page = page_elements(cache, row);

	for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
		if (page > pools[i].elements / pools[i].pages)
			continue;
		if (row[cache->axis[0]] < pools[i].pages)
			set_axis(problem, row, roles->key[0], 0, pools[i].pages);
		return;
	}
}

static void preset_axes(const struct op_problem *problem, const struct attention_roles *roles,
                        const struct attention_preset *preset, int64_t *row)
{
	bool paged = roles->kv_indices >= 0;
	int64_t page_size = paged ? problem->axes[problem->inputs[roles->key[0]].axis[1]].value : 1;
	int64_t batch = fixed_batch(problem, roles);
	struct attention_totals totals;

	if (batch < 0 && preset->list != LIST_NONE) {
		totals = attention_list_totals(preset->list, page_size, row_of(problem, roles));
	} else {
		batch = batch >= 0 ? batch : preset->batch;
		totals = (struct attention_totals){.batch = batch, .queries = preset->queries, .page_size = page_size};
		totals.entries = (preset->keys + batch * (page_size - 1)) / page_size;
		if (paged && totals.entries <= batch)
			totals.entries = batch + 1;
	}
	set_totals(problem, roles, &totals, row);
	if (paged && preset->list >= LIST_BLOCKS_DECODE && preset->list <= LIST_BLOCKS_LATENT_DECODE)
		enlarge_pool(problem, roles, row);
}

/* Writes one row of axis values for each preset. Returns -1 if `room` is too small. */
static int write_presets(const struct op_problem *problem, const struct attention_roles *roles,
			 const struct attention_preset *presets, int count, int64_t *axis, int room)
{
	if (room < count)
		return -1;
	for (int i = 0; i < count; i++)
		preset_axes(problem, roles, &presets[i], axis + (int64_t)i * problem->axis_count);
	return count;
}

enum { MOST_PRESETS = 2 };

/* The presets of prefill. With latent heads, the medium preset has a MANY list instead of a CHUNK list, because each
 * pair of a query and a key costs ten times as much with latent heads. */
static const struct attention_preset prefill_sizes[SIZE_COUNT][MOST_PRESETS] = {
    [SIZE_SMALL] = {{1, 16, 33, LIST_SINGLE_PREFILL}, {4, 16, 64, LIST_NONE}},
    [SIZE_MEDIUM] = {{8, 160, 640, LIST_BLOCKS_PREFILL}, {2, 520, 536, LIST_CHUNK_FULL}},
    [SIZE_LARGE] = {{8, 4096, 16384, LIST_NONE}},
};

static const struct attention_preset decode_sizes[SIZE_COUNT][MOST_PRESETS] = {
    [SIZE_SMALL] = {{1, 0, 33, LIST_SINGLE_DECODE}, {4, 0, 60, LIST_NONE}},
    [SIZE_MEDIUM] = {{13, 0, 2048, LIST_BLOCKS_DECODE}, {13, 0, 256, LIST_MANY_DECODE}},
    [SIZE_LARGE] = {{64, 0, 131072, LIST_NONE}},
};

/* Writes the presets of a size to `presets`, and returns their number, at most MOST_PRESETS. */
static int presets_of(const struct op_problem *problem, const struct attention_roles *roles, enum op_size size,
                      struct attention_preset *presets)
{
	bool decode = roles->qo_indptr < 0, latent = roles->query[1] >= 0;
	int count = 0;

	for (; count < MOST_PRESETS; count++) {
		presets[count] = decode ? decode_sizes[size][count] : prefill_sizes[size][count];
		if (presets[count].batch == 0)
			break;
		if (latent && presets[count].list == LIST_CHUNK_FULL)
			presets[count].list = LIST_MANY_PREFILL;
		if (latent && presets[count].list == LIST_BLOCKS_PREFILL)
			presets[count].list = LIST_BLOCKS_LATENT;
		if (latent && presets[count].list == LIST_BLOCKS_DECODE)
			presets[count].list = LIST_BLOCKS_LATENT_DECODE;
		if (presets[count].list == LIST_CHUNK_FULL && attention_is_causal(problem, roles))
			presets[count].list = LIST_CHUNK_CAUSAL;
	}
	return count;
}

int attention_sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	const struct attention_roles found = attention_roles_of(problem), *roles = &found;
	struct attention_preset presets[MOST_PRESETS];

	(void)variant;
	return write_presets(problem, roles, presets, presets_of(problem, roles, size, presets), axis, room);
}

/* --- block sizes and lengths that default cases reach --------------------------------------------------------------- */

static bool is_axis(const struct op_problem *problem, int input, int dimension, int axis)
{
	return input >= 0 && problem->inputs[input].axis[dimension] == axis;
}

/* Returns the largest total number of queries in a case of the medium preset. */
static int64_t most_queries(const struct op_problem *problem, const struct attention_roles *roles)
{
	struct attention_preset presets[MOST_PRESETS];
	int64_t most = 0;

	for (int i = presets_of(problem, roles, SIZE_MEDIUM, presets) - 1; i >= 0; i--) {
		int64_t queries = attention_list_totals(presets[i].list, 1, row_of(problem, roles)).queries;

		most = queries > most ? queries : most;
	}
	return most;
}

/* Returns zeros for the number of pages of a cache, because it follows from other axes. */
struct op_reach attention_reach(const struct op_problem *problem, int variant, int axis)
{
	const struct attention_roles found = attention_roles_of(problem), *roles = &found;
	bool decode = roles->qo_indptr < 0, paged = roles->kv_indices >= 0;
	int64_t row = row_of(problem, roles), block = attention_block(row), batch = attention_past_block(row);
	int64_t longest = roles->query[1] >= 0 ? LIST_LATENT_LONGEST : LIST_LONGEST;
	int64_t page_size = paged ? problem->axes[problem->inputs[roles->key[0]].axis[1]].value : 1;

	(void)variant;
	if (roles->kv_indptr >= 0 && fixed_batch(problem, roles) >= 0)
		return (struct op_reach){0, 0};
	if (is_axis(problem, roles->query[0], 0, axis))
		return (struct op_reach){decode ? batch : most_queries(problem, roles), block};
	if (is_axis(problem, roles->kv_indptr, 0, axis))
		return (struct op_reach){batch + 1, 0};
	if (!paged && roles->sparse < 0 && is_axis(problem, roles->key[0], 0, axis))
		return (struct op_reach){LIST_LONGEST, 256};
	if (is_axis(problem, roles->kv_indices, 0, axis)) /* one sequence has at least this many pages */
		return (struct op_reach){longest / page_size + 1, page_size == 1 ? 256 : 0};
	return (struct op_reach){0, 0};
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

/* The values of op_case.edge, in the order of ATTENTION_EDGES. */
enum { EDGE_NO_QUERIES = 1, EDGE_NO_KEYS, EDGE_BLIND_QUERIES, EDGE_ONE_OF_EACH, EDGE_MANY_KEYS };

const struct op_edge attention_edges[] = {ATTENTION_EDGES, {NULL, NULL}};

static bool is_var(const struct op_problem *problem, int input, int dimension)
{
	return input < 0 || problem->axes[problem->inputs[input].axis[dimension]].var;
}

/* The maximum number of elements of the keys and values in the edge case many_keys. */
enum { MANY_KEYS_ELEMENTS = 13 << 22 };

/* Returns the number of keys of the edge case many_keys. The number is 5/4 of a power of two, so a reference that omits
 * the keys beyond the power of two gives a wrong output. */
static int64_t many_keys(const struct op_problem *problem, const struct attention_roles *roles)
{
	const int tensors[] = {roles->key[0], roles->key[1], roles->value == roles->key[0] ? -1 : roles->value};
	bool paged = roles->kv_indices >= 0 || roles->sparse >= 0;
	int64_t elements = 0, keys = 5 << 14;

	for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
		const struct op_arg *arg = tensors[i] < 0 ? NULL : &problem->inputs[tensors[i]];
		int64_t size = 1;

		for (int d = paged ? 2 : 1; arg != NULL && d < arg->rank; d++)
			size *= problem->axes[arg->axis[d]].value > 0 ? problem->axes[arg->axis[d]].value : 1;
		elements += arg != NULL ? size : 0;
	}
	while (keys > 5 << 10 && keys > MANY_KEYS_ELEMENTS / elements)
		keys /= 2;
	return keys;
}

/* Writes the axis values of an edge case of sparse attention. Returns false if there is no such case. */
static bool sparse_edge_axes(const struct op_problem *problem, const struct attention_roles *roles, int edge,
                             int64_t *axis)
{
	const struct op_arg *query = &problem->inputs[roles->query[0]], *key = &problem->inputs[roles->key[0]];

	op_start_axes(problem, 1, axis);
	if (edge == EDGE_BLIND_QUERIES || !problem->axes[query->axis[0]].var)
		return false;
	set_axis(problem, axis, roles->query[0], 0, edge == EDGE_NO_QUERIES ? 0 : edge == EDGE_MANY_KEYS ? 8 : 1);
	set_axis(problem, axis, roles->key[0], 0, edge == EDGE_NO_KEYS ? 0 : 1);
	if (edge == EDGE_MANY_KEYS)
		set_axis(problem, axis, roles->key[0], 0, many_keys(problem, roles) / axis[key->axis[1]]);
	return (edge != EDGE_NO_KEYS && edge != EDGE_MANY_KEYS) || problem->axes[key->axis[0]].var;
}

/* Writes the axis values of an edge case. The caches have `unused` pages that no sequence uses. */
static void set_edge(const struct op_problem *problem, const struct attention_roles *roles, int64_t batch,
                     int64_t queries, int64_t entries, int64_t unused, int64_t *axis)
{
	struct attention_preset preset = {batch, queries, 0, LIST_NONE};

	preset_axes(problem, roles, &preset, axis);
	set_axis(problem, axis, roles->query[0], 0, queries);
	if (roles->kv_indices >= 0) {
		set_axis(problem, axis, roles->kv_indices, 0, entries);
		set_axis(problem, axis, roles->key[0], 0, entries + unused);
	} else {
		set_axis(problem, axis, roles->key[0], 0, entries);
	}
}

bool attention_edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	const struct attention_roles found = attention_roles_of(problem), *roles = &found;
	bool decode = roles->qo_indptr < 0;

	(void)variant;
	if (roles->sparse >= 0)
		return sparse_edge_axes(problem, roles, edge, axis);

	const struct op_arg *key = &problem->inputs[roles->key[0]];
	int64_t page_size = roles->kv_indices >= 0 ? problem->axes[key->axis[1]].value : 1;

	if (fixed_batch(problem, roles) >= 0 || !is_var(problem, roles->query[0], 0) ||
	    !is_var(problem, roles->kv_indices >= 0 ? roles->kv_indices : roles->key[0], 0) ||
	    !is_var(problem, roles->kv_indptr, 0))
		return false;
	switch (edge) {
	case EDGE_NO_QUERIES:
		set_edge(problem, roles, decode ? 0 : 2, 0, decode ? 0 : 3, 1, axis);
		return true;
	case EDGE_NO_KEYS:
		set_edge(problem, roles, decode ? 3 : 2, decode ? 3 : 5, 0, 1, axis);
		return true;
	case EDGE_BLIND_QUERIES: /* there are more queries than keys, so some queries see no key */
		set_edge(problem, roles, 1, page_size + 4, page_size > 1 ? 1 : 2, 1, axis);
		return !decode && attention_is_causal(problem, roles);
	case EDGE_MANY_KEYS:
		set_edge(problem, roles, 1, 1, many_keys(problem, roles) / page_size, 1, axis);
		return true;
	default:
		set_edge(problem, roles, 1, 1, 1, 0, axis);
		return true;
	}
}
