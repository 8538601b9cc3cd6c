/* dsa_paged - DeepSeek's sparse attention over a paged cache. The family has two variants: latent attention that reads
 * only selected keys, and the indexer that selects these keys.
 *
 *   attention  q_nope [queries, heads, c], q_pe [queries, heads, r], ckv_cache [pages, page size, c], kpe_cache [pages,
 *              page size, r], sparse_indices [queries, keys per query], sm_scale -> output [queries, heads, c], lse
 *              [queries, heads]. An entry of sparse_indices is the number of a key (page * page size + slot), or -1 for
 *              no key. Entries of -1 may be anywhere in a row. For the formulas, see
 *              kernels/common/attention/attention.h; for the input values and the tolerances, see input_values.h and
 *              input_values.c in the same folder.
 *
 *   indexer    q [sequences, heads, dim], cache [pages, page size, 1, dim + 4] bytes, weights [sequences, heads],
 *              seq_lens [sequences], block_table [sequences, pages per sequence] -> indices [sequences, chosen]. For
 *              the formulas and the conditions that a correct output must meet, see indexer.h; for the input values,
 *              see input_values.h. */
#include "kernels/core/coverage.h"
#include "kernels/core/op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/attention/attention.h"
#include "kernels/common/attention/forms.h"
#include "kernels/common/attention/input_values.h"
#include "kernels/common/attention/lengths.h"
#include "kernels/common/attention/sizes.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/take.h"
#include "kernels/dsa_paged/mistakes.h"
#include "kernels/dsa_paged/indexer.h"
#include "kernels/dsa_paged/input_values.h"

enum { PARALLEL_FROM = 1 << 20 }; /* if there are fewer elements, one thread is faster than several */

/* --- variants ----------------------------------------------------------------------------------------------------- */

static bool is_bytes(const struct op_arg *input)
{
	return input->rank == 4 && (input->dtype == DTYPE_INT8 || input->dtype == DTYPE_UINT8);
}

/* Returns the member of `roles` for an input of the indexer. The input's rank and dtype determine the member. Returns
 * NULL if no role has this rank and dtype. */
static int *indexer_place_of(struct indexer_roles *roles, const struct op_arg *input)
{
	if (is_bytes(input))
		return &roles->cache;
	if (attention_is_float(input))
		return input->rank == 3 ? &roles->query : input->rank == 2 ? &roles->weights : NULL;
	if (attention_is_integer(input))
		return input->rank == 1 ? &roles->lengths : input->rank == 2 ? &roles->table : NULL;
	return NULL;
}

struct indexer_roles indexer_roles_of(const struct op_problem *problem)
{
	struct indexer_roles roles = {-1, -1, -1, -1, -1, 0};

	for (int i = 0; i < problem->input_count; i++) {
		int *place = indexer_place_of(&roles, &problem->inputs[i]);

		if (place != NULL)
			*place = i;
	}
	return roles;
}

static int64_t const_of(const struct op_problem *problem, const struct op_arg *arg, int dimension)
{
	const struct op_axis *axis = &problem->axes[arg->axis[dimension]];

	return axis->var ? -1 : axis->value;
}

static int match_indexer_shapes(const struct op_problem *problem, const struct indexer_roles *roles, struct err *why)
{
	const struct op_arg *query = &problem->inputs[roles->query], *cache = &problem->inputs[roles->cache];
	const struct op_arg *chosen = &problem->outputs[0];
	int64_t dim = const_of(problem, query, 2);

	if (const_of(problem, query, 1) < 0 || dim < 0)
		return match_refuse(problem, query,
				    "[sequences, heads, dim], where heads and dim are const axes", why);
	if (const_of(problem, cache, 1) < 0 || const_of(problem, cache, 1) > ATTENTION_PAGE ||
	    const_of(problem, cache, 2) != 1 || const_of(problem, cache, 3) != dim + 4)
		return match_refuse(problem, cache,
				    "bytes of shape [pages, page size, 1, dim + 4], where only the axis pages "
				    "may be var and a page has at most 65536 keys",
				    why);
	if (!attention_same_axes(problem, query, &problem->inputs[roles->weights], 0, 2))
		return match_refuse(problem, &problem->inputs[roles->weights],
				    "[sequences, heads], where both axes are the same as in the query", why);
	if (!attention_same_axes(problem, query, &problem->inputs[roles->lengths], 0, 1))
		return match_refuse(problem, &problem->inputs[roles->lengths],
				    "[sequences], where the axis of sequences is the same as in the query", why);
	if (!attention_same_axes(problem, query, &problem->inputs[roles->table], 0, 1))
		return match_refuse(problem, &problem->inputs[roles->table],
				    "[sequences, largest number of pages of a sequence], where the first axis is "
				    "the same as in the query", why);
	if (problem->output_count != 1 || chosen->rank != 2 || !attention_is_integer(chosen) ||
	    !attention_same_axes(problem, query, chosen, 0, 1))
		return match_refuse(problem, chosen, "a single output, an integer tensor [sequences, chosen]", why);
	return DSA_INDEXER;
}

static int match_indexer(const struct op_problem *problem, struct err *why)
{
	struct indexer_roles roles = indexer_roles_of(problem), seen = {-1, -1, -1, -1, -1, 0};

	for (int i = 0; i < problem->input_count; i++) {
		int *place = indexer_place_of(&seen, &problem->inputs[i]);

		if (place == NULL || *place >= 0 || problem->inputs[i].optional)
			return match_refuse_unknown(problem, &problem->inputs[i],
						    "a query [sequences, heads, dim], a cache of bytes, weights "
						    "[sequences, heads], lengths [sequences] and a page table "
						    "[sequences, largest number of pages of a sequence]", why);
		*place = i;
	}
	if (roles.query < 0 || roles.weights < 0 || roles.lengths < 0 || roles.table < 0 || problem->output_count < 1)
		return err_set(why, "the definition of an indexer needs a query, a cache, weights, lengths and a page "
				    "table");
	return match_indexer_shapes(problem, &roles, why);
}

/* A definition whose cache consists of bytes is an indexer. */
static int match(const struct op_problem *problem, struct err *why)
{
	for (int i = 0; i < problem->input_count; i++)
		if (is_bytes(&problem->inputs[i]))
			return match_indexer(problem, why);
	return attention_match(problem, ATTENTION_SPARSE, why) < 0 ? -1 : DSA_ATTENTION;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

static void start_row(const struct op_problem *problem, int64_t *row, int64_t count)
{
	op_start_axes(problem, count, row);
}

/* Writes the axes of an attention case. The cache holds `halves` / 2 times as many keys as a query may list. */
static void attention_row_axes(const struct op_problem *problem, int64_t queries, int64_t halves, int64_t *row)
{
	struct attention_roles roles = attention_roles_of(problem);
	const struct op_arg *cache = &problem->inputs[roles.key[0]], *sparse = &problem->inputs[roles.sparse];
	int64_t page_size = problem->axes[cache->axis[1]].value, most;

	start_row(problem, row, queries);
	op_set_axis(problem, sparse->axis[1], 64, row);
	most = row[sparse->axis[1]];
	op_set_axis(problem, cache->axis[0], (most * halves / 2 + page_size - 1) / page_size + 2, row);
}

/* Writes the axes of an indexer case. A row of the page table has room for `quarters` / 4 times as many keys as the
 * indexer selects. The cache has 1.5 times as many pages as a row of the page table lists, so several sequences use the
 * same pages. */
static void indexer_row_axes(const struct op_problem *problem, int64_t batch, int64_t quarters, int64_t *row)
{
	struct indexer_roles roles = indexer_roles_of(problem);
	const struct op_arg *cache = &problem->inputs[roles.cache], *table = &problem->inputs[roles.table];
	int64_t page_size = problem->axes[cache->axis[1]].value, pages, chosen;

	start_row(problem, row, batch);
	op_set_axis(problem, problem->outputs[0].axis[1], 64, row);
	chosen = row[problem->outputs[0].axis[1]];
	pages = (chosen * quarters / 4 + page_size - 1) / page_size + 1;
	op_set_axis(problem, table->axis[1], pages, row);
	op_set_axis(problem, cache->axis[0], pages + pages / 2 + 2, row);
}

/* The cases of each size preset. `count` is the number of sequences or queries; BLOCK and PAST_BLOCK stand for the
 * results of attention_block and attention_past_block. `parts` determines the number of keys: the cache of attention
 * has `parts` / 2 times as many keys as a query may list, and a row of the page table of the indexer has room for
 * `parts` / 4 times as many keys as the indexer selects. */
enum { BLOCK = -1, PAST_BLOCK = -2 };
static const struct dsa_preset {
	int64_t count, parts;
} attention_presets[SIZE_COUNT][2] = {{{1, 3}, {8, 3}}, {{PAST_BLOCK, 6}, {BLOCK, 3}}, {{1024, 64}}},
  indexer_presets[SIZE_COUNT][2] = {{{1, 5}, {5, 5}}, {{PAST_BLOCK, 8}, {BLOCK, 5}}, {{64, 64}}};

/* Returns the number of output elements of one query or sequence. */
static int64_t row_of(const struct op_problem *problem, int variant)
{
	struct attention_roles roles;

	if (variant == DSA_INDEXER)
		return problem->axes[problem->outputs[0].axis[1]].value;
	roles = attention_roles_of(problem);
	return problem->axes[problem->outputs[roles.output].axis[1]].value *
	       problem->axes[problem->outputs[roles.output].axis[2]].value;
}

/* The minimum numbers of pages and keys in the cache of a case with many sequences or queries. With these minimums,
 * page numbers need more than 8 bits, and key numbers need more than 15 bits. 577 pages of 64 keys are 36928 keys. */
enum { DSA_PAGES = 577, DSA_KEYS = 36928 };

/* Enlarges the cache to at least DSA_PAGES pages and DSA_KEYS keys. A cache whose pages have more than 64 keys is not
 * enlarged, because it would become too large. */
static void enlarge_pool(const struct op_problem *problem, int variant, int64_t *row)
{
	int input = variant == DSA_INDEXER ? indexer_roles_of(problem).cache : attention_roles_of(problem).key[0];
	const struct op_arg *cache = &problem->inputs[input];
	int64_t page_size = problem->axes[cache->axis[1]].value, pages = DSA_KEYS / (page_size > 0 ? page_size : 1);

	pages = pages > DSA_PAGES ? pages : DSA_PAGES;
	if (row[cache->axis[0]] < pages && page_size <= 64)
		op_set_axis(problem, cache->axis[0], pages, row);
}

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	const struct dsa_preset *presets = variant == DSA_INDEXER ? indexer_presets[size] : attention_presets[size];
	int count = 0;

	for (; count < 2 && presets[count].count != 0; count++) {
		int64_t rows = presets[count].count, elements = row_of(problem, variant);
		int64_t *row = axis + (int64_t)count * problem->axis_count;

		if (count == room)
			return -1;
		if (rows < 0)
			rows = rows == BLOCK ? attention_block(elements) : attention_past_block(elements);
		if (variant == DSA_INDEXER)
			indexer_row_axes(problem, rows, presets[count].parts, row);
		else
			attention_row_axes(problem, rows, presets[count].parts, row);
		if (presets[count].count == PAST_BLOCK)
			enlarge_pool(problem, variant, row);
	}
	return count;
}

/* --- the indexer's inputs ----------------------------------------------------------------------------------------- */

struct indexer_extent indexer_extent_of(const struct op_case *c, const struct indexer_roles *roles)
{
	const struct op_problem *problem = c->problem;
	const struct op_arg *query = &problem->inputs[roles->query], *cache = &problem->inputs[roles->cache];

	return (struct indexer_extent){
	    .batch = c->axis[query->axis[0]],
	    .heads = c->axis[query->axis[1]],
	    .dim = c->axis[query->axis[2]],
	    .pages = c->axis[cache->axis[0]],
	    .page_size = c->axis[cache->axis[1]],
	    .most_pages = c->axis[problem->inputs[roles->table].axis[1]],
	    .chosen = c->axis[problem->outputs[0].axis[1]],
	};
}

static int64_t at_most(int64_t value, int64_t limit)
{
	return value < limit ? value : limit;
}

/* The values of op_case.edge for the edge cases of the indexer. */
enum { EDGE_NO_SEQUENCES = ATTENTION_EDGE_COUNT + 1, EDGE_EMPTY_SEQUENCES, EDGE_FEW_KEYS, EDGE_EQUAL_SCORES, EDGE_LONG_SEQUENCE };

/* The number of keys in the edge case long_sequence. The largest power of two below 40960 is 32768. A reference that
 * reads only the first 32768 keys omits 8192 keys and therefore selects other keys. */
enum { LONG_SEQUENCE = 40960 };

static int64_t edge_length(const struct indexer_extent *e, int edge, int64_t room, int64_t b)
{
	const int64_t few[] = {e->chosen - 1, 1, e->page_size + 1};

	switch (edge) {
	case EDGE_EMPTY_SEQUENCES:
		return 0;
	case EDGE_FEW_KEYS:
		return at_most(at_most(few[b % 3], e->chosen - 1), room);
	case EDGE_LONG_SEQUENCE:
		return at_most(LONG_SEQUENCE, room);
	default:
		return room;
	}
}

static int64_t length_of(const struct op_case *c, const struct indexer_extent *e, uint64_t key, int64_t b)
{
	int64_t room = e->pages > 0 ? e->most_pages * e->page_size : 0;
	int second = c->contents == CONTENTS_SECOND;

	if (c->edge != 0)
		return edge_length(e, c->edge, room, b);
	if (second && e->batch > 1 && b < 2)
		b = 1 - b;
	if (b >= 8 + 15)
		return attention_near_power(b) || b + 1 == e->batch ? at_most(1 + b % 3, room) : 0;
	if (b >= 8)
		return at_most((16 << (b - 8) / 3) + (b - 8) % 3 - 1, room);
	switch (b) {
	case 1:
		return at_most(1, room);
	case 2:
		return at_most(e->chosen, room);
	case 3:
		return 0;
	case 4:
		return at_most(e->chosen + 1, room);
	case 5:
		return at_most(e->chosen / 2 + (second ? 0 : 5), room);
	case 6:
		return second ? at_most(e->chosen - 1, room) : room > 0 ? 1 + philox_bits(key, b) % room : 0;
	case 7:
		return at_most(e->page_size + second, room);
	default:
		return room > 3 && !second ? room - 3 : room;
	}
}

/* Returns the number of pages that sequences may use. All pages are shuffled, and sequences use only the first pages of
 * the shuffled order. */
static int64_t pages_in_use(const struct indexer_extent *e)
{
	int64_t nobodys = e->pages / 8;

	return nobodys > 0 ? e->pages - nobodys : e->pages;
}

/* Returns the value of the page table's entries after the last page of a sequence. The value is `nobodys`, the number
 * of a page that no sequence uses, in the first set of values, in edge cases, and if a workload provides the lengths of
 * the sequences. In all other cases, the value is -1. It is never the number of a page beyond the end of the cache,
 * because some correct references first gather all pages of the table and then mask the keys. */
static int64_t beyond(const struct op_case *c, const struct indexer_roles *roles, int64_t nobodys)
{
	if (c->contents == CONTENTS_FIRST || c->edge != 0 || (c->given >> roles->lengths & 1) != 0)
		return nobodys;
	return -1;
}

/* Returns the first place in the order of pages that sequence b uses. */
static int64_t start_of(const struct indexer_extent *e, uint64_t key, int64_t b)
{
	return philox_bits(key, e->pages + b) % pages_in_use(e);
}

/* Returns the page table of all sequences, allocated with malloc. All pages are shuffled, and each sequence uses
 * consecutive pages of the shuffled order, from a random place on. The first two pages of sequence 0 are page 0 and the
 * last page of the cache, which a reference may mistake for padding. */
static int64_t *table_of(const struct op_case *c, const struct indexer_roles *roles)
{
	struct indexer_extent e = indexer_extent_of(c, roles);
	uint64_t key = input_key(c, roles->table);
	int64_t *table = take(e.batch * e.most_pages, sizeof *table);
	int64_t *order = take(e.pages, sizeof *order), use = pages_in_use(&e);

	philox_shuffle(key, e.pages, order);
	if (use > 1) {
		order_place(order, e.pages, 0, start_of(&e, key, 0));
		order_place(order, e.pages, e.pages - 1, (start_of(&e, key, 0) + 1) % use);
	}
	for (int64_t b = 0; b < e.batch && e.pages > 0; b++) {
		int64_t pages = (length_of(c, &e, key, b) + e.page_size - 1) / e.page_size;
		int64_t start = start_of(&e, key, b);

		for (int64_t i = 0; i < e.most_pages; i++)
			table[b * e.most_pages + i] =
			    i < pages ? order[(start + i) % use] : beyond(c, roles, order[e.pages - 1]);
	}
	free(order);
	return table;
}

uint8_t *indexer_used(const struct op_case *c, const struct indexer_roles *roles)
{
	struct indexer_extent e = indexer_extent_of(c, roles);
	uint64_t key = input_key(c, roles->table);
	uint8_t *used;
	int64_t *table;

	if ((c->given >> roles->lengths & 1) != 0 || (c->given >> roles->table & 1) != 0)
		return NULL;
	table = table_of(c, roles);
	used = take(e.pages * e.page_size, 1);
	for (int64_t b = 0; b < e.batch; b++)
		for (int64_t j = 0; j < length_of(c, &e, key, b); j++)
			used[table[b * e.most_pages + j / e.page_size] * e.page_size + j % e.page_size] = 1;
	free(table);
	return used;
}

struct indexer_cache indexer_cache_of(const struct op_case *c, const struct indexer_roles *roles)
{
	struct indexer_extent e = indexer_extent_of(c, roles);

	return (struct indexer_cache){.key = input_key(c, roles->cache),
				      .page_size = e.page_size,
				      .dim = e.dim,
				      .equal = c->contents == CONTENTS_SECOND ? 8 : 1,
				      .loud = c->contents == CONTENTS_SECOND ? INDEXER_LOUD_SCALES : 0};
}

int64_t indexer_heads_of(const struct op_case *c, const struct indexer_roles *roles, int input)
{
	return input == roles->weights ? indexer_extent_of(c, roles).heads : 0;
}

/* For a byte of any key in the cache, returns the index of the same byte of the first key in the cache. For a byte of
 * the scale of a key, returns the index of the same byte of the first key's scale. `index` and the result are indices
 * of bytes in the cache. */
static int64_t of_first_key(const struct indexer_cache *f, int64_t index)
{
	int64_t place = index % (f->page_size * (f->dim + 4)), keys_end = f->page_size * f->dim;

	return place < keys_end ? place % f->dim : keys_end + (place - keys_end) % 4;
}

static void fill_cache(const struct op_case *c, const struct indexer_roles *roles, struct tensor *out)
{
	uint8_t *used = indexer_used(c, roles);
	struct indexer_cache f = indexer_cache_of(c, roles);

	f.used = c->edge == EDGE_EQUAL_SCORES ? NULL : used;

#pragma omp parallel for if (out->elements >= PARALLEL_FROM)
	for (int64_t i = 0; i < out->elements; i++)
		((uint8_t *)out->data)[i] = indexer_byte(&f, c->edge == EDGE_EQUAL_SCORES ? of_first_key(&f, i) : i);
	free(used);
}

static int fill_indexer(const struct op_case *c, int input, struct tensor *out)
{
	struct indexer_roles roles = indexer_roles_of(c->problem);
	struct indexer_extent e = indexer_extent_of(c, &roles);
	uint64_t key = input_key(c, input), table_key = input_key(c, roles.table);
	int64_t heads = indexer_heads_of(c, &roles, input);

	if (input == roles.cache) {
		fill_cache(c, &roles, out);
	} else if (input == roles.lengths) {
		for (int64_t b = 0; b < out->elements; b++)
			dtype_store(out->data, out->dtype, b, (double)length_of(c, &e, table_key, b));
	} else if (input == roles.table) {
		int64_t *table = table_of(c, &roles);

		for (int64_t i = 0; i < out->elements; i++)
			dtype_store(out->data, out->dtype, i, (double)table[i]);
		free(table);
	} else {
		for (int64_t i = 0; i < out->elements; i++)
			dtype_store_float(out->data, out->dtype, i,
				          indexer_element(heads, (int)c->contents, i, philox_bits(key, i)));
	}
	return 0;
}

/* --- the family --------------------------------------------------------------------------------------------------- */

/* The edge cases of attention, followed by the edge cases of the indexer. */
static const struct op_edge edges[] = {
    ATTENTION_EDGES,
    {"no_sequences", "if the input has no sequences, the output has no sequences"},
    {"empty_sequences", "every entry of a sequence without keys is -1"},
    {"few_keys",
     "if a sequence has fewer keys than the indexer selects, each key is listed once, and the other entries are -1"},
    {"equal_scores", "if keys have the same score, any of them may be selected, but none twice; equal scores do "
		     "not change the number of selected keys"},
    {"long_sequence", "all keys of a sequence may be selected, however many there are"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	int64_t batch = edge == EDGE_NO_SEQUENCES ? 0 : edge == EDGE_LONG_SEQUENCE ? 1 : 3;

	if ((variant == DSA_INDEXER) != (edge > ATTENTION_EDGE_COUNT))
		return false;
	if (variant == DSA_INDEXER) {
		const struct op_arg *query = &problem->inputs[indexer_roles_of(problem).query];

		indexer_row_axes(problem, batch, 5, axis);
		if (edge == EDGE_LONG_SEQUENCE)
			indexer_row_axes(problem, batch, 4 * LONG_SEQUENCE / axis[problem->outputs[0].axis[1]], axis);
		return axis[query->axis[0]] == batch;
	}
	return attention_edge_axes(problem, variant, edge, axis);
}

static struct rule rule(const struct op_case *c, int output)
{
	if (c->variant == DSA_INDEXER)
		return (struct rule){0, 0, 1}; /* not used, because op.judge judges the output of the indexer */
	return attention_rule(c, output);
}

static double scalar(const struct op_case *c, int input)
{
	(void)input;
	return attention_scale(c, sizes);
}

/* Returns false for the page table, because every valid page number is allowed. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	if (variant != DSA_INDEXER)
		return attention_range(problem, variant, input, out);

	struct indexer_roles indexer = indexer_roles_of(problem);
	int64_t chosen = problem->axes[problem->outputs[0].axis[1]].value;

	if (input == indexer.query)
		*out = (struct op_range){-7.5, 7.5};
	else if (input == indexer.weights)
		*out = (struct op_range){-1500, 1500};
	else if (input == indexer.lengths) /* sequences have from 0 to more than 2 * chosen keys */
		*out = (struct op_range){0, 2 * (double)chosen};
	else if (input == indexer.cache) /* the bytes of keys include the largest and the smallest e4m3 number */
		*out = (struct op_range){problem->inputs[input].dtype == DTYPE_INT8 ? -128 : 0,
					 problem->inputs[input].dtype == DTYPE_INT8 ? 127 : 255};
	return input != indexer.table;
}

static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	int64_t row = row_of(problem, variant);

	if (axis == problem->outputs[0].axis[0])
		return (struct op_reach){attention_past_block(row), attention_block(row)};
	return variant == DSA_INDEXER ? (struct op_reach){0, 0} : attention_reach(problem, variant, axis);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	if (c->variant == DSA_INDEXER)
		return fill_indexer(c, input, out);
	return attention_fill(c, input, out, err);
}

static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	return c->variant == DSA_INDEXER ? indexer_check(c, in, err) : attention_check(c, in, err);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	return c->variant == DSA_INDEXER ? indexer_oracle(c, in, out, err) : attention_oracle(c, in, out, err);
}

static bool judges(const struct op_case *c, int output)
{
	(void)output;
	return c->variant == DSA_INDEXER;
}

static int judge(const struct op_case *c, int output, const struct tensor *in, const struct tensor *reference,
		 const struct tensor *truth, struct metrics *metrics, double *evidence, struct err *why)
{
	(void)evidence;
	if (!judges(c, output))
		return 0;
	return indexer_judge(c, in, reference, truth, metrics, why);
}

static const char *const op_types[] = {"dsa_paged", NULL};

/* The roles of both variants. If the problem is an indexer, all roles of attention are -1; otherwise, all roles of the
 * indexer are -1. */
struct roles {
	struct attention_roles attention;
	struct indexer_roles indexer;
};

static const struct op_role roles[] = {
    OP_ROLE("q", struct roles, attention.query[0]),
    OP_ROLE("q_pe", struct roles, attention.query[1]),
    OP_ROLE("k", struct roles, attention.key[0]),
    OP_ROLE("k_pe", struct roles, attention.key[1]),
    OP_ROLE("scale", struct roles, attention.scale),
    OP_ROLE("sparse", struct roles, attention.sparse),
    OP_ROLE("query", struct roles, indexer.query),
    OP_ROLE("cache", struct roles, indexer.cache),
    OP_ROLE("weights", struct roles, indexer.weights),
    OP_ROLE("lengths", struct roles, indexer.lengths),
    OP_ROLE("table", struct roles, indexer.table),
    OP_ROLE_OUTPUT("output", struct roles, attention.output),
    OP_ROLE_OUTPUT("lse", struct roles, attention.lse),
    OP_ROLE_OUTPUT("indices", struct roles, indexer.indices),
    {NULL, 0, false},
};

static void bind(const struct op_problem *problem, int variant, void *out)
{
	struct roles *found = out;

	*found = (struct roles){attention_no_roles(), {-1, -1, -1, -1, -1, -1}};
	if (variant == DSA_INDEXER)
		found->indexer = indexer_roles_of(problem);
	else
		found->attention = attention_roles_of(problem);
}

static const struct op_mode modes[] = {
    {"indexer", ~0, DSA_INDEXER},
    {NULL, 0, 0},
};

static double page_size(const struct coverage_view *view, const struct op_coverage *row)
{
	struct op_coverage key = *row;

	key.role = view->c->variant == DSA_INDEXER ? "cache" : "k";
	key.axis = 1;
	return coverage_length(view, &key);
}

/* Measures whether lse is returned. Returns NaN for the indexer, which has no log-sum-exp. */
static double log_sum_exp(const struct coverage_view *view, const struct op_coverage *row)
{
	struct op_coverage lse = *row;

	lse.role = "lse";
	return view->c->variant == DSA_INDEXER ? (double)NAN : coverage_has(view, &lse);
}

static const struct op_coverage coverage[] = {
    {"operation", coverage_switch, .other = "indexer",
     .values = {{"attention", 0, 0, "attends to chosen keys"}, {"indexer", 1, 1, "chooses keys"}}},
    {"page size", page_size,
     .values = {{"1", 1, 1, "has pages of size 1"}, {"64", 64, 64, "has pages of size 64"}, {"other", 2, 0x1p62, NULL}}},
    {"log-sum-exp", log_sum_exp,
     .values = {{"returned", 1, 1, "returns the log-sum-exp"}, {"none", 0, 0, "returns no log-sum-exp"}}},
    COVERAGE_DTYPES("q"),
    {.name = NULL},
};

const struct op dsa_paged_op = {
    .name = "dsa_paged",
    .op_types = op_types,
    .match = match,
    .mistakes = dsa_mistakes,
    .roles = roles,
    .bind = bind,
    .modes = modes,
    .coverage = coverage,
    .sizes = sizes,
    .medium_runs = LAST_MEDIUM_RUNS_TWICE,
    .edges = edges,
    .edge_axes = edge_axes,
    .rule = rule,
    .scalar = scalar,
    .range = range,
    .reach = reach,
    .fill = fill,
    .check = check,
    .oracle = oracle,
    .judge = judge,
    .judges = judges,
};
