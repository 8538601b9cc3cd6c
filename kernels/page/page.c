/* page - appends tokens to a paged cache: copies each vector to the slot that the page table assigns to its token.
 *
 *   page = kv_indices[kv_indptr[b] + position / page size], slot = position mod page size, for a token of sequence b
 *
 * append_key, append_value [tokens, heads, D] are copied to k_cache, v_cache [pages, page size, heads, D]. Other
 * variants have only keys or only values, have the head axis before the page size, or have keys and values in one cache
 * [pages, 2, …]. In multi-head latent attention, the tensors are ckv and kpe [tokens, width], with caches [pages, page
 * size, width]. The tables are int32 or int64: batch_indices and positions [tokens], kv_indptr [sequences + 1],
 * kv_indices, and kv_last_page_len [sequences] (which is not needed). The outputs are the new caches. The reference may
 * write to the cache inputs if the definition says so (op_in_place_as_said). FlashInfer calls these operations
 * page.append_paged_kv_cache and append_paged_mla_kv_cache.
 *
 * Tolerance: zero. Every element of the caches must equal the ground truth, including slots to which no token is
 * appended.
 *
 * Page tables. Sequences have different lengths, and the appended tokens are at the ends of the sequences. Some
 * sequences have no token to append, and one sequence has one token to append. If there are more sequences than pages,
 * most sequences are empty. The last page of a sequence is full, or holds one token, or holds a random number of
 * tokens. The lengths of some sequences are thus multiples of the page size, and those of others are one more than a
 * multiple. In the second set of values, the first sequence has one token in its last page, and tokens are appended to
 * its last two pages. Pages are in random order, and some are unused. No two tokens have the same slot. Some tokens are
 * written to the last page of the cache. If kv_indices has more entries than the cache has pages, the first sequence
 * starts with a long prefix in pages that other sequences also use, as in a prefix cache. The tokens that are appended
 * to the first sequence then have positions beyond 131072, although the cache has few pages. The tokens are not in the
 * order of their sequences. In the second set of values, the order of the tokens is reversed, and different sequences
 * have full last pages.
 *
 * A token of sequence -1 is padding and is not written. If a definition's description mentions padding, the token in
 * the middle of the batch is padding. If the description does not mention padding, only cases of --edge have padding. A
 * workload is invalid if a token's slot is outside the pages of its sequence. It is also invalid if two tokens have the
 * same slot, because the order of two writes to a slot is not defined. */
#include "kernels/page/mistakes.h"
#include "kernels/page/input_values.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "kernels/core/coverage.h"
#include "kernels/core/input_check.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"

/* In a medium case, the number of sequences and the number of tokens are multiples of BLOCK, or one more than a
 * multiple. In the first medium case, the prefix of the first sequence has at least PREFIX tokens and PREFIX_PAGES
 * pages, so that offsets in kv_indptr need more than 15 bits. */
enum { BLOCK = 256, MOST_SEQUENCES = 2 * BLOCK, MOST_TOKENS = 2 * BLOCK + 1, PREFIX = 1 << 17, PREFIX_PAGES = 1 << 15 };

/* The first medium case has at least POOL pages, so that page numbers need more than 8 bits. If 2 * POOL pages are
 * enough for more than POOL_PLACES slots (for example, if a page has 64 slots), the case also has more than POOL_PLACES
 * slots, so that slot numbers need more than 15 bits. These minimums do not apply if the cache would have more than
 * POOL_ELEMENTS elements. If LARGE_POOL pages have at most LARGE_POOL_ELEMENTS elements, this case has at least
 * LARGE_POOL pages, so that page numbers need more than 12 bits. */
enum { POOL = 321, POOL_ELEMENTS = 1 << 25, POOL_PLACES = 1 << 15 };
enum { LARGE_POOL = 6145, LARGE_POOL_ELEMENTS = 1 << 23 };

static bool is_table(const struct op_problem *problem, int input, int axis)
{
	const struct op_arg *arg = &problem->inputs[input];

	return arg->rank == 1 && (axis < 0 || arg->axis[0] == axis) &&
	       (arg->dtype == DTYPE_INT32 || arg->dtype == DTYPE_INT64);
}

static int match_tables(const struct op_problem *problem, const struct page_roles *roles, struct err *why)
{
	int tables = (roles->last_page_len >= 0) + 4;

	if (roles->positions < 0 || roles->batch_indices < 0 || roles->indptr < 0 || roles->indices < 0)
		return err_set(
		    why, "the inputs must include four tables of integers: batch indices, positions, an indptr and "
			 "page indices");
	int token = problem->inputs[roles->positions].axis[0];

	if (!is_table(problem, roles->positions, token) || !is_table(problem, roles->batch_indices, token) ||
	    !is_table(problem, roles->indptr, -1) || !is_table(problem, roles->indices, -1) ||
	    (roles->last_page_len >= 0 && !is_table(problem, roles->last_page_len, -1)))
		return err_set(
		    why,
		    "the tables must be int32 or int64 with one axis, and batch indices and positions must have one "
		    "entry per token");
	if (tables + roles->parts + roles->caches != problem->input_count)
		return err_set(why, "the definition has %d inputs, but only %d tables, %d appended tensors and %d "
				    "caches were found among them",
		               problem->input_count, tables, roles->parts, roles->caches);
	return 0;
}

/* Returns the layout of `cache`. After its first `at` axes, the cache must have the axis of the page size and all axes
 * of `append` except the token axis. Returns 0 if the page size comes first, PAGE_HND if the heads come first, and -1
 * for any other axes. */
static int layout_of(const struct op_arg *append, const struct op_arg *cache, int at)
{
	int heads = append->rank == 3 ? append->axis[1] : -1, width = append->axis[append->rank - 1];

	if (cache->rank != at + append->rank || cache->axis[cache->rank - 1] != width)
		return -1;
	if (heads < 0 || cache->axis[at + 1] == heads)
		return 0;
	return cache->axis[at] == heads ? PAGE_HND : -1;
}

static int match_caches(const struct op_problem *problem, const struct page_roles *roles, struct err *why)
{
	bool combined = roles->caches == 1 && roles->parts == 2;
	int variant = -1;
	char shape[256];

	for (int part = 0; part < roles->parts; part++) {
		const struct op_arg *append = &problem->inputs[roles->append[part]];
		const struct op_arg *cache = &problem->inputs[roles->cache[combined ? 0 : part]];
		bool pair =
		    cache->rank > 1 && !problem->axes[cache->axis[1]].var && problem->axes[cache->axis[1]].value == 2;
		int layout = append->rank > 3 || (combined && !pair) ? -1 : layout_of(append, cache, combined ? 2 : 1);

		if (layout < 0 || (part > 0 && layout != variant))
			return err_set(why, "cache '%s' has shape %s; its pages cannot hold the rows of '%s'",
			               cache->name, op_shape_text(problem, cache, shape, sizeof shape), append->name);
		if (append->dtype != cache->dtype || append->dtype == DTYPE_FLOAT4_E2M1)
			return err_set(why,
			               "'%s' is %s and cache '%s' is %s; only copies without conversion are supported",
			               append->name, dtype_name(append->dtype), cache->name, dtype_name(cache->dtype));
		variant = layout;
	}
	return combined ? variant | PAGE_COMBINED : variant;
}

static int match_outputs(const struct op_problem *problem, const struct page_roles *roles, struct err *why)
{
	if (problem->output_count != roles->caches || (roles->caches == 2 && roles->output[0] == roles->output[1]))
		return err_set(why, "the definition has %d outputs; it must return its %d caches",
		               problem->output_count, roles->caches);
	for (int j = 0; j < roles->caches; j++) {
		const struct op_arg *cache = &problem->inputs[roles->cache[j]],
				    *output = &problem->outputs[roles->output[j]];

		if (!match_same_shape(cache, output) || cache->dtype != output->dtype)
			return err_set(why, "output '%s' must have the shape and dtype of cache '%s'", output->name,
			               cache->name);
	}
	return 0;
}

static bool is_latent(const struct op_problem *problem, const struct page_roles *roles)
{
	for (int part = 0; part < roles->parts; part++)
		if (problem->inputs[roles->append[part]].rank != 2)
			return false;
	return true;
}

static int match(const struct op_problem *problem, struct err *why)
{
	struct page_roles roles = page_roles_of(problem);

	if (roles.parts < 1 || roles.caches < 1 || (roles.caches != roles.parts && roles.caches != 1))
		return err_set(
		    why,
		    "the definition has %d tensors with a row per token and %d caches; it must have one of each, two "
		    "of each, or two tensors and one cache",
		    roles.parts, roles.caches);
	if (match_tables(problem, &roles, why) != 0 || match_outputs(problem, &roles, why) != 0)
		return -1;
	int layout = match_caches(problem, &roles, why);
	bool padded = problem->description != NULL && strstr(problem->description, "padding") != NULL;

	return layout < 0 ? layout : layout | (padded ? PAGE_PADDED : 0) | (is_latent(problem, &roles) ? PAGE_LATENT : 0);
}

/* If there are more page indices than the cache has pages, the first page indices are those of a prefix. Returns the
 * number of page indices after the prefix: two thirds of `pages`, the number of pages. */
static int64_t own_pages(int64_t pages)
{
	return pages - pages / 3 > 1 ? pages - pages / 3 : 1;
}

/* Returns the number of pages of the first medium case: `pages`, or the minimum that the comment at POOL describes. */
static int64_t pool_of(const struct op_arg *cache, int64_t pages, int64_t page_size, const int64_t *axis)
{
	int64_t page = 1, all = POOL_PLACES / (page_size > 0 ? page_size : 1) + 1;
	int64_t most = all > POOL && all <= 2 * POOL ? all : POOL;

	for (int d = 1; d < cache->rank; d++) {
		int64_t extent = axis[cache->axis[d]] > 0 ? axis[cache->axis[d]] : 1;

		if (extent > POOL_ELEMENTS / most / page)
			return pages;
		page *= extent;
	}
	most = page <= LARGE_POOL_ELEMENTS / LARGE_POOL ? LARGE_POOL : most;
	return pages > most ? pages : most;
}

/* Writes the axes of a case. There are enough pages for 1.5 times `tokens` tokens in up to `filled` sequences, whatever
 * the lengths of the sequences are. At least a third of all pages is unused. If `prefix` is not 0, there may be more
 * pages (pool_of), and kv_indices also lists the pages of the prefix (at least PREFIX_PAGES). */
static void set_axes(const struct op_problem *problem, int variant, int64_t sequences, int64_t filled, int64_t tokens,
                     int64_t prefix, int64_t *axis)
{
	struct page_roles roles = page_roles_of(problem);
	const struct op_arg *append = &problem->inputs[roles.append[0]], *cache = &problem->inputs[roles.cache[0]];
	int size = cache->axis[1 + (variant & PAGE_COMBINED ? 1 : 0) + (variant & PAGE_HND ? 1 : 0)];

	op_start_axes(problem, 1, axis);
	for (int part = 0; part < roles.parts; part++)
		op_set_axis(problem,
		           problem->inputs[roles.append[part]].axis[problem->inputs[roles.append[part]].rank - 1], 128,
		           axis);
	if (append->rank == 3)
		op_set_axis(problem, append->axis[1], 8, axis);
	op_set_axis(problem, size, 16, axis);
	int64_t pages = filled + (3 * tokens + 2 * axis[size] - 1) / (2 * axis[size]), pool = pages + pages / 2 + 2;

	pool = prefix > 0 ? pool_of(cache, pool, axis[size], axis) : pool;

	int64_t before = (prefix + axis[size] - 1) / axis[size];

	op_set_axis(problem, append->axis[0], tokens, axis);
	if (roles.last_page_len >= 0)
		op_set_axis(problem, problem->inputs[roles.last_page_len].axis[0], sequences, axis);
	op_set_axis(problem, problem->inputs[roles.indptr].axis[0], sequences + 1, axis);
	op_set_axis(problem, problem->inputs[roles.indices].axis[0],
	           prefix > 0 ? own_pages(pool) + (before > PREFIX_PAGES ? before : PREFIX_PAGES) : pages, axis);
	op_set_axis(problem, cache->axis[0], pool, axis);
}

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	static const int64_t sequences[SIZE_COUNT][2] = {{1, 3}, {BLOCK + 1, MOST_SEQUENCES}, {256, 0}},
			     filled[SIZE_COUNT][2] = {{1, 3}, {9, 9}, {256, 0}},
			     tokens[SIZE_COUNT][2] = {{1, 17}, {MOST_TOKENS, BLOCK}, {16384, 0}};
	int count = 0;

	for (int i = 0; i < 2 && tokens[size][i] > 0 && count < room; i++)
		set_axes(problem, variant, sequences[size][i], filled[size][i], tokens[size][i],
		         size == SIZE_MEDIUM && i == 0 ? PREFIX : 0, axis + (int64_t)count++ * problem->axis_count);
	return count;
}

/* The values of op_case.edge, in the order of the table `edges`. */
enum { EDGE_NO_TOKENS = 1, EDGE_PADDING };

static const struct op_edge edges[] = {
    {"no_tokens", "without tokens to append, the caches stay unchanged"},
    {"padding", "a token of sequence -1 is padding and is not written"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	set_axes(problem, variant, 3, 3, edge == EDGE_NO_TOKENS ? 0 : 17, 0, axis);
	return problem->axes[problem->inputs[page_roles_of(problem).positions].axis[0]].var;
}

static struct rule rule(const struct op_case *c, int output)
{
	(void)c;
	(void)output;
	return (struct rule){0, 0, 1};
}

/* The reference may append to the caches in place if the definition says so. */
static struct op_in_place in_place(const struct op_case *c, int input)
{
	struct page_roles roles = page_roles_of(c->problem);

	for (int j = 0; j < roles.caches; j++)
		if (input == roles.cache[j])
			return op_in_place_as_said(c, input, roles.output[j]);
	return (struct op_in_place){OP_KEPT, true};
}

/* The member `indices` and the three arrays do not include the prefix of the first sequence. */
struct table {
	int64_t sequences, tokens, indices, pages, page_size;
	int64_t prefix;    /* number of pages in the prefix of the first sequence; other sequences may also use them */
	int64_t *indptr;   /* indptr[b]: the number of pages of all sequences before sequence b */
	int64_t *length;   /* length[b]: the number of tokens of sequence b */
	int64_t *appended; /* appended[b]: the number of tokens that are appended to sequence b */
	enum op_contents contents;
};

static void table_close(struct table *table)
{
	free(table->indptr);
	free(table->length);
	free(table->appended);
}

/* Returns the number of non-empty sequences. If there are at least as many page indices as sequences, no sequence is
 * empty. If there are fewer page indices, there is one non-empty sequence for every four page indices. */
static int64_t filled_sequences(const struct table *table)
{
	return table->indices >= table->sequences ? table->sequences : (table->indices + 3) / 4;
}

/* Returns true if sequence `b` is non-empty. Non-empty sequences are evenly spaced, and the first sequence is one of
 * them. */
static bool is_filled(const struct table *table, int64_t b, int64_t filled)
{
	return filled > 0 && (b == 0 || b * filled / table->sequences != (b - 1) * filled / table->sequences);
}

/* Returns the number of tokens in the last page of sequence `b`. Depending on b, the page is full, or has one token, or
 * has a random number of tokens. */
static int64_t last_page(const struct table *table, int64_t b, uint32_t random)
{
	switch ((b + (table->contents == CONTENTS_SECOND ? 2 : 0)) % 5) {
	case 0:
		return table->page_size;
	case 2:
		return 1;
	default:
		return 1 + (int64_t)(random % (uint64_t)table->page_size);
	}
}

/* Assigns one page to each non-empty sequence, and distributes the other pages to these sequences at random. The first
 * sequence gets at least one of the other pages. */
static void share_pages(struct table *table, uint64_t key)
{
	int64_t filled = filled_sequences(table), left = table->indices - filled, before = 0;

	for (int64_t b = 0; b < table->sequences; b++) {
		int64_t pages = 0;

		if (is_filled(table, b, filled)) {
			int64_t fair = 2 * left / (filled - before), more = (int64_t)(philox_bits(key, 2 * b) % (uint64_t)(fair + 1));

			before++;
			more = b == 0 && more == 0 ? 1 : more;
			more = before == filled || more > left ? left : more;
			left -= more;
			pages = 1 + more;
		}
		table->indptr[b + 1] = table->indptr[b] + pages;
		table->length[b] =
		    pages == 0 ? 0 : (pages - 1) * table->page_size + last_page(table, b, philox_bits(key, 2 * b + 1));
	}
}

/* Returns the index of the shortest sequence that is not empty. */
static int64_t shortest(const struct table *table)
{
	int64_t found = 0;

	for (int64_t b = 1; b < table->sequences; b++)
		if (table->length[b] > 0 && table->length[b] < table->length[found])
			found = b;
	return found;
}

/* Returns the number of tokens to append to the first sequence so that one of them is in the second-to-last page of
 * this sequence. Returns 0 if the first sequence has only one page. */
static int64_t across_pages(const struct table *table)
{
	int64_t before = (table->length[0] - 1) / table->page_size * table->page_size;

	return before > 0 ? table->length[0] - before + 1 : 0;
}

/* Distributes the appended tokens to the sequences in proportion to their lengths, with these exceptions. Tokens are
 * appended to the last two pages of the first sequence, if this takes at most half of all appended tokens. All tokens
 * of the shortest sequence are appended, from position 0 on, if the number of appended tokens allows this. If the other
 * sequences have room, no token is appended to the second sequence, and one token is appended to the third. */
static void share_tokens(struct table *table)
{
	int64_t room = 0, left = table->tokens, whole = shortest(table), across = across_pages(table);

	for (int64_t b = 0; b < table->sequences; b++)
		room += table->length[b];
	for (int64_t b = 0; b < table->sequences && room > 0; b++) {
		int64_t share = table->tokens * table->length[b] / room;

		share = b == 1 ? 0 : b == 2 && share > 1 ? 1 : share;
		share = b == 0 && share < across && across <= table->tokens / 2 ? across : share;
		share = b == whole ? table->length[b] : share;
		share = share < left ? share : left;
		table->appended[b] = share;
		left -= share;
	}
	for (int pass = 0; pass < 2; pass++) /* only the second pass adds tokens to the second and third sequence */
		for (int64_t b = 0; b < table->sequences; b++) {
			int64_t more = table->length[b] - table->appended[b];

			if ((b == 1 || b == 2) && pass == 0)
				continue;
			more = more < left ? more : left;
			table->appended[b] += more;
			left -= more;
		}
}

/* Computes the page table of a case. Returns -1 if the axes of the case allow no valid table. */
static int table_open(const struct op_case *c, struct table *table, struct err *err)
{
	const struct op_problem *problem = c->problem;
	struct page_roles roles = page_roles_of(problem);
	struct page_extent e = page_extent_of(c, 0);
	int64_t room = 0;

	*table = (struct table){.sequences = c->axis[problem->inputs[roles.indptr].axis[0]] - 1,
	                        .tokens = c->axis[problem->inputs[roles.positions].axis[0]],
	                        .indices = c->axis[problem->inputs[roles.indices].axis[0]],
	                        .pages = e.pages,
	                        .page_size = e.page_size,
	                        .contents = c->contents};
	if (table->sequences < 1 || table->page_size < 1 || (table->pages < 1 && table->indices > 0))
		return err_set(err, "page: no page table can have %lld sequences, %lld indices, %lld pages and a "
				    "page size of %lld",
		               (long long)table->sequences, (long long)table->indices, (long long)table->pages,
		               (long long)table->page_size);
	if (table->indices > table->pages) {
		table->prefix = table->indices - own_pages(table->pages);
		table->indices -= table->prefix;
	}
	table->indptr = take(table->sequences + 1, sizeof *table->indptr);
	table->length = take(table->sequences, sizeof *table->length);
	table->appended = take(table->sequences, sizeof *table->appended);
	share_pages(table, input_key(c, roles.indptr));
	for (int64_t b = 0; b < table->sequences; b++)
		room += table->length[b];
	if (room >= table->tokens) {
		share_tokens(table);
		return 0;
	}
	table_close(table);
	return err_set(err, "page: %lld pages of %lld tokens cannot hold the %lld tokens to append; kv_indices must be "
			    "longer",
	               (long long)table->indices, (long long)table->page_size, (long long)table->tokens);
}

/* Takes the sequence with the most appended tokens, and exchanges two pages so that the middle one of these tokens is
 * in the last page of the cache. */
static void place_last_page(const struct table *table, int64_t *pages)
{
	int64_t b = 0, at, other = 0;

	for (int64_t i = 1; i < table->sequences; i++)
		b = table->appended[i] > table->appended[b] ? i : b;
	if (table->appended[b] < 1)
		return;
	at = table->indptr[b] + (table->length[b] - 1 - table->appended[b] / 2) / table->page_size;
	while (pages[other] != table->pages - 1)
		other++;
	pages[other] = pages[at];
	pages[at] = table->pages - 1;
}

/* Fills the page indices. Those of the prefix are random and may repeat. The others are all different and in random
 * order. The last page of the cache is among the pages to which tokens are written. */
static void fill_indices(const struct op_case *c, int input, const struct table *table, struct tensor *out)
{
	uint64_t key = input_key(c, input);
	int64_t *pages = take(table->pages, sizeof *pages);

	for (int64_t i = 0; i < table->pages; i++)
		pages[i] = i;
	for (int64_t i = 0; i < table->indices; i++) {
		int64_t other = i + (int64_t)(((uint64_t)philox_bits(key, i) * (uint64_t)(table->pages - i)) >> 32),
			page = pages[other];

		pages[other] = pages[i];
		pages[i] = page;
	}
	place_last_page(table, pages);
	for (int64_t i = 0; i < table->indices; i++)
		dtype_store(out->data, out->dtype, table->prefix + i, (double)pages[i]);
	for (int64_t i = 0; i < table->prefix; i++)
		dtype_store(out->data, out->dtype, i,
		            (double)(philox_bits(key, table->indices + i) % (uint64_t)table->pages));
	free(pages);
}

/* Returns the index of a token in the batch. `token` is the index of the token in the order of the sequences. The batch
 * starts with the last third of the tokens in this order; the other tokens follow. In the second set of values, the
 * batch is reversed. */
static int64_t place_in_batch(const struct table *table, int64_t token)
{
	int64_t at = (token + table->tokens / 3) % table->tokens;

	return table->contents == CONTENTS_SECOND ? table->tokens - 1 - at : at;
}

/* Which tokens are padding: none, one in the middle, or every third one, starting with the first. */
enum padding { PADDING_NONE, PADDING_MIDDLE, PADDING_THIRD };

static enum padding padding_of(const struct op_case *c)
{
	if (c->edge == EDGE_PADDING)
		return PADDING_THIRD;
	return (c->variant & PAGE_PADDED) != 0 ? PADDING_MIDDLE : PADDING_NONE;
}

/* Fills the positions of the tokens if `positions` is true, else the numbers of the tokens' sequences. Both are -1 for
 * padding. */
static void fill_tokens(const struct table *table, bool positions, enum padding padding, struct tensor *out)
{
	int64_t token = 0;

	for (int64_t b = 0; b < table->sequences; b++)
		for (int64_t i = table->length[b] - table->appended[b]; i < table->length[b]; i++, token++)
			dtype_store(out->data, out->dtype, place_in_batch(table, token),
			            (double)(!positions ? b : b == 0 ? table->prefix * table->page_size + i : i));
	for (token = 0; padding == PADDING_THIRD && token < table->tokens; token += 3)
		dtype_store(out->data, out->dtype, token, -1);
	if (padding == PADDING_MIDDLE && table->tokens > 2)
		dtype_store(out->data, out->dtype, table->tokens / 2, -1);
}

static int fill_table(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct page_roles roles = page_roles_of(c->problem);
	struct table table;

	if (table_open(c, &table, err) != 0)
		return -1;
	if (input == roles.indices)
		fill_indices(c, input, &table, out);
	else if (input == roles.positions || input == roles.batch_indices)
		fill_tokens(&table, input == roles.positions, padding_of(c), out);
	for (int64_t i = 0; i < out->elements && input == roles.indptr; i++)
		dtype_store(out->data, out->dtype, i, (double)(table.indptr[i] + (i > 0 ? table.prefix : 0)));
	for (int64_t b = 0; b < out->elements && input == roles.last_page_len; b++) {
		int64_t length = b < table.sequences ? table.length[b] : 0;

		dtype_store(out->data, out->dtype, b, length > 0 ? (double)((length - 1) % table.page_size + 1) : 0);
	}
	table_close(&table);
	return 0;
}

/* In the default cases, the values of batch_indices and positions must reach the ends of their ranges. The other tables
 * have no range, because any valid entry is allowed. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct page_roles roles = page_roles_of(problem);
	enum dtype dtype = problem->inputs[input].dtype;

	(void)variant;
	if (input == roles.positions)
		*out = (struct op_range){0, PREFIX};
	else if (input == roles.batch_indices)
		*out = (struct op_range){0, 250};
	else if (dtype_is_float(dtype))
		*out = (struct op_range){-ldexp(1.9, page_reach(dtype)), ldexp(1.9, page_reach(dtype))};
	else
		return false;
	return true;
}

static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	struct page_roles roles = page_roles_of(problem);

	(void)variant;
	if (axis == problem->inputs[roles.positions].axis[0])
		return (struct op_reach){MOST_TOKENS, BLOCK};
	if (roles.last_page_len >= 0 && axis == problem->inputs[roles.last_page_len].axis[0])
		return (struct op_reach){MOST_SEQUENCES, BLOCK};
	return (struct op_reach){axis == problem->inputs[roles.indptr].axis[0] ? MOST_SEQUENCES + 1 : 0, 0};
}

WIDE static void make_elements(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                               float *values)
{
	int reached = *(const int *)recipe;

	(void)row;
	(void)column;
	for (int64_t i = 0; i < count; i++)
		values[i] = page_element(random[i], reached);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	int reached = page_reach(out->dtype);

	if (!dtype_is_float(out->dtype))
		return fill_table(c, input, out, err);
	input_fill(out, input_key(c, input), out->elements, make_elements, &reached);
	return 0;
}

/* Replaces the page and the place of a token by those to which a reference with the mistake writes the token. Returns
 * false if such a reference does not write the token. */
static bool mistaken_place(const struct op_case *c, const struct tensor *in, int64_t token, const struct page_extent *e,
			   int64_t *page, int64_t *place)
{
	struct page_roles roles = page_roles_of(c->problem);
	int64_t sequence = check_integer(&in[roles.batch_indices], token), position = check_integer(&in[roles.positions], token);
	bool padding = sequence < 0;
	int64_t size = c->mistake == PAGE_HALF_PAGE && e->page_size > 1 ? e->page_size / 2 : e->page_size;
	const struct tensor *indptr = &in[roles.indptr], *indices = &in[roles.indices];

	if (padding && c->mistake != PAGE_PADDING_FIRST)
		return false;
	if (padding)
		sequence = position = 0;
	if (sequence >= indptr->elements - 1 || position < 0 || indices->elements < 1)
		return false;
	int64_t first = c->mistake == PAGE_INDPTR_IGNORED ? 0 : check_integer(indptr, sequence), index = first + position / size;

	index = c->mistake == PAGE_NEXT_PAGE	  ? (index + 1) % indices->elements
		: c->mistake == PAGE_LAST_PAGE ? check_integer(indptr, sequence + 1) - 1
					  : index;
	if (index < 0 || index >= indices->elements)
		return false;
	*page = c->mistake == PAGE_TABLE_IGNORED ? index : check_integer(indices, index);
	*place = position % size;
	if (c->mistake == PAGE_NEXT_SLOT)
		*place = (position + 1) % size;
	else if (c->mistake == PAGE_LAST_SLOT)
		*place = roles.last_page_len < 0 ? -1 : check_integer(&in[roles.last_page_len], sequence) - 1;
	else if (c->mistake == PAGE_SLOT_IN_BATCH)
		*place = token % size;
	int64_t slot = c->mistake == PAGE_FIRST_SLOT ? *page : position % (e->pages * e->page_size);

	if (c->mistake == PAGE_FIRST_SLOT || c->mistake == PAGE_POSITION_AS_SLOT || c->mistake == PAGE_HALF_PAGE) {
		slot = c->mistake == PAGE_HALF_PAGE ? *page * size + *place : slot;
		*page = slot / e->page_size;
		*place = slot % e->page_size;
	}
	return *page >= 0 && *page < e->pages && *place >= 0 && *place < e->page_size;
}

/* Finds the page and the slot of a token. Returns false if the token has no slot, because it is padding. */
static bool find_place(const struct op_case *c, const struct tensor *in, int64_t token, const struct page_extent *e,
                       int64_t *page, int64_t *place)
{
	struct page_roles roles = page_roles_of(c->problem);
	const struct tensor *indptr = &in[roles.indptr], *indices = &in[roles.indices];
	int64_t sequence = check_integer(&in[roles.batch_indices], token),
		position = check_integer(&in[roles.positions], token);

	if (sequence < 0 || sequence >= indptr->elements - 1 || position < 0)
		return false;
	int64_t first = check_integer(indptr, sequence), end = check_integer(indptr, sequence + 1),
		index = position / e->page_size;

	if (first < 0 || end < first || end > indices->elements || index >= end - first)
		return false;
	*page = check_integer(indices, first + index);
	*place = position % e->page_size;
	return *page >= 0 && *page < e->pages;
}

/* Copies elements, and converts them if the dtypes differ. If `adds` is true, adds the elements of `from` to the
 * elements of `to` instead. */
static void copy_elements(const struct tensor *from, int64_t from_at, struct tensor *to, int64_t to_at, int64_t count,
			  bool adds)
{
	size_t bytes = (size_t)dtype_bits(from->dtype) / 8;

	if (from->dtype == to->dtype && !adds)
		memcpy((char *)to->data + (size_t)to_at * bytes, (const char *)from->data + (size_t)from_at * bytes,
		       (size_t)count * bytes);
	else
		for (int64_t i = 0; i < count; i++)
			dtype_store(to->data, to->dtype, to_at + i,
				    dtype_load(from->data, from->dtype, from_at + i) +
					(adds ? dtype_load(to->data, to->dtype, to_at + i) : 0));
}

/* Returns true if a reference with this mistake omits the token, or this head of the token. */
static bool is_left_out(int mistake, int part, bool last, int64_t head)
{
	if (mistake == (part == 0 ? PAGE_LAST_TOKEN_KEYS : PAGE_LAST_TOKEN_VALUES))
		return last;
	return mistake == (part == 0 ? PAGE_FIRST_HEAD_KEYS : PAGE_FIRST_HEAD_VALUES) && head > 0;
}

static void append_part(const struct op_case *c, const struct tensor *in, int part, struct tensor *out)
{
	struct page_roles roles = page_roles_of(c->problem);
	struct page_extent e = page_extent_of(c, part);
	const struct tensor *append = &in[roles.append[part]];
	int64_t page = 0, place = 0, half = e.halves > 1 ? part : 0;
	bool adds = c->mistake == PAGE_ADDED || (c->mistake == PAGE_ADDED_KEYS && part == 0);

	for (int64_t token = 0; token < append->shape[0]; token++) {
		bool found = c->mistake == PAGE_NO_MISTAKE ? find_place(c, in, token, &e, &page, &place)
						      : mistaken_place(c, in, token, &e, &page, &place);

		if (c->mistake == PAGE_PADDING_ENDS && check_integer(&in[roles.batch_indices], token) < 0)
			return;
		for (int64_t head = 0; found && head < e.heads; head++)
			if (!is_left_out(c->mistake, part, token == append->shape[0] - 1, head))
				copy_elements(append, (token * e.heads + head) * e.width, out,
					      page_offset(&e, page, half, place, head), e.width, adds);
	}
}

/* Checks that the offsets kv_indptr do not decrease and do not exceed the number of page indices, that every page index
 * is below the number of pages, and that kv_last_page_len is between 1 and page_size. */
static int check_table(const struct op_case *c, const struct tensor *in, int64_t pages, int64_t page_size,
                       struct err *err)
{
	struct page_roles roles = page_roles_of(c->problem);
	const struct op_arg *args = c->problem->inputs;
	const struct tensor *indptr = &in[roles.indptr], *indices = &in[roles.indices];
	int64_t end = 0;

	if (roles.last_page_len >= 0 && in[roles.last_page_len].elements != indptr->elements - 1)
		return err_set(err, "input '%s' has %lld lengths and '%s' has %lld offsets; there must be one more "
				    "offset than lengths",
		               args[roles.last_page_len].name, (long long)in[roles.last_page_len].elements,
		               args[roles.indptr].name, (long long)indptr->elements);
	for (int64_t b = 0; b < indptr->elements; b++) {
		int64_t from = end;

		end = check_integer(indptr, b);
		if (end < from || end > indices->elements)
			return err_set(
			    err,
			    "input '%s' holds %lld at [%lld]; expected a value from %lld to %lld, because offsets "
			    "into the %lld entries of '%s' must not decrease",
			    args[roles.indptr].name, (long long)end, (long long)b, (long long)from,
			    (long long)indices->elements, (long long)indices->elements, args[roles.indices].name);
		for (int64_t i = from; b > 0 && i < end; i++)
			if (check_integer(indices, i) < 0 || check_integer(indices, i) >= pages)
				return err_set(err,
					       "input '%s' holds %lld at [%lld], but the caches have only pages 0 "
					       "to %lld",
					       args[roles.indices].name, (long long)check_integer(indices, i),
					       (long long)i, (long long)pages - 1);
		int64_t last = roles.last_page_len >= 0 && b > 0 ? check_integer(&in[roles.last_page_len], b - 1) : 1;

		if (b > 0 && end > from && (last < 1 || last > page_size))
			return err_set(err, "input '%s' holds %lld at [%lld], but a last page holds at least 1 and "
					    "at most %lld tokens",
			               args[roles.last_page_len].name, (long long)last, (long long)b - 1,
			               (long long)page_size);
	}
	return 0;
}

/* Returns the index of a token's slot, counted over the slots of all pages. Returns -1 if the token is padding, and -2
 * with a message if it has no slot. The caller has checked the table. */
static int64_t check_token(const struct op_case *c, const struct tensor *in, int64_t token, const struct page_extent *e,
			   struct err *err)
{
	struct page_roles roles = page_roles_of(c->problem);
	const struct op_arg *args = c->problem->inputs;
	int64_t sequence = check_integer(&in[roles.batch_indices], token), page = 0, place = 0;
	int64_t position = check_integer(&in[roles.positions], token), sequences = in[roles.indptr].elements - 1;

	if (sequence == -1)
		return -1;
	if (sequence < 0 || sequence >= sequences) {
		err_set(err, "input '%s' holds %lld at [%lld], which is neither -1 (padding) nor the number of one of the %lld sequences",
		        args[roles.batch_indices].name, (long long)sequence, (long long)token, (long long)sequences);
		return -2;
	}
	int64_t pages = check_integer(&in[roles.indptr], sequence + 1) - check_integer(&in[roles.indptr], sequence);
	int64_t room = pages * e->page_size;

	if (pages > 0 && roles.last_page_len >= 0)
		room += check_integer(&in[roles.last_page_len], sequence) - e->page_size;
	if (position >= 0 && position < room && find_place(c, in, token, e, &page, &place))
		return page * e->page_size + place;
	err_set(err, "input '%s' holds %lld at [%lld], but the pages of sequence %lld have room for %lld tokens (%lld pages)",
	        args[roles.positions].name, (long long)position, (long long)token, (long long)sequence, (long long)room,
	        (long long)pages);
	return -2;
}

/* Checks that no two tokens share a slot. */
static int check_tokens(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct page_roles roles = page_roles_of(c->problem);
	struct page_extent e = page_extent_of(c, 0);
	int64_t tokens = in[roles.positions].elements, places = e.pages * e.page_size;
	int64_t *owner = take(places, sizeof *owner); /* for each slot, 1 + the number of the token that is written to
						       * it, or 0 if there is none */
	int rc = 0;

	for (int64_t token = 0; rc == 0 && token < tokens; token++) {
		int64_t place = check_token(c, in, token, &e, err);

		if (place == -2)
			rc = -1;
		else if (place >= 0 && owner[place] > 0)
			rc = err_set(err,
				     "tokens %lld and %lld are both assigned to slot %lld of page %lld; the "
				     "result would depend on the order of the two writes",
				     (long long)owner[place] - 1, (long long)token, (long long)(place % e.page_size),
				     (long long)(place / e.page_size));
		else if (place >= 0)
			owner[place] = token + 1;
	}
	free(owner);
	return rc;
}

static bool tables_at_hand(const struct op_case *c, const struct tensor *in)
{
	for (int i = 0; i < c->problem->input_count; i++)
		if (!dtype_is_float(c->problem->inputs[i].dtype) && in[i].data == NULL)
			return false;
	return true;
}

/* Checks that this family can compute tables with the axes of the case. If a workload provides a table, returns 0
 * without a check: the workload's tables may be valid even if this family can compute none with these axes. */
static int check_axes(const struct op_case *c, struct err *err)
{
	struct table table;

	for (int i = 0; i < c->problem->input_count; i++)
		if (!dtype_is_float(c->problem->inputs[i].dtype) && (c->given >> i & 1) != 0)
			return 0;
	if (table_open(c, &table, err) != 0)
		return -1;
	table_close(&table);
	return 0;
}

/* Checks all tables together. If a workload provides only some of the tables, these may be inconsistent with the tables
 * that the family computes. */
static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct page_extent e = page_extent_of(c, 0);

	for (int i = 0; i < c->problem->input_count; i++)
		if (check_numbers(c, in, i, false, "whole caches are compared, and NaN is not comparable", err) != 0)
			return -1;
	if (!tables_at_hand(c, in))
		return check_axes(c, err);
	if (check_table(c, in, e.pages, e.page_size, err) != 0)
		return -1;
	return check_tokens(c, in, err);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct page_roles roles = page_roles_of(c->problem);

	(void)err;
	for (int j = 0; j < roles.caches; j++) {
		const struct tensor *cache = &in[roles.cache[j]];

		struct tensor *to = &out[roles.output[j]];
		bool zeroed = c->mistake == PAGE_REST_ZEROED || (c->mistake == PAGE_REST_ZEROED_KEYS && j == 0);

		if (zeroed)
			memset(to->data, 0, (size_t)dtype_bytes(to->dtype, to->elements));
		else
			copy_elements(cache, 0, to, 0, cache->elements, false);
	}
	for (int part = 0; part < roles.parts; part++)
		append_part(c, in, part, &out[roles.output[c->variant & PAGE_COMBINED ? 0 : part]]);
	return 0;
}

static const char *const op_types[] = {"page", "page_append", "append_paged_kv_cache", NULL};
static const char *const op_words[] = {"append_paged_kv_cache", "append_paged_mla_kv_cache", "page_append", NULL};

static const struct op_role roles[] = {
    OP_ROLE("append", struct page_roles, append[0]),
    OP_ROLE("append_other", struct page_roles, append[1]),
    OP_ROLE("cache", struct page_roles, cache[0]),
    OP_ROLE("cache_other", struct page_roles, cache[1]),
    OP_ROLE("batch_indices", struct page_roles, batch_indices),
    OP_ROLE("positions", struct page_roles, positions),
    OP_ROLE("indptr", struct page_roles, indptr),
    OP_ROLE("indices", struct page_roles, indices),
    OP_ROLE("last_page_len", struct page_roles, last_page_len),
    OP_ROLE_OUTPUT("output", struct page_roles, output[0]),
    OP_ROLE_OUTPUT("output_other", struct page_roles, output[1]),
    {NULL, 0, false},
};

static void bind(const struct op_problem *problem, int variant, void *out)
{
	(void)variant;
	*(struct page_roles *)out = page_roles_of(problem);
}

static const struct op_mode modes[] = {
    {"hnd", PAGE_HND, PAGE_HND},
    {"combined", PAGE_COMBINED, PAGE_COMBINED},
    {"padded", PAGE_PADDED, PAGE_PADDED},
    {"latent", PAGE_LATENT, PAGE_LATENT},
    {NULL, 0, 0},
};

static double page_size(const struct coverage_view *view, const struct op_coverage *row)
{
	(void)row;
	return (double)page_extent_of(view->c, 0).page_size;
}

static const struct op_coverage coverage[] = {
    {"layout", coverage_switch, .other = "hnd",
     .values = {{"NHD", 0, 0, "has pages [page size, heads, D]"}, {"HND", 1, 1, "has pages [heads, page size, D]"}}},
    {"keys and values", coverage_mode, .role = "latent|combined",
     .values = {{"two caches", 0, 0, "has a cache of keys and one of values"}, {"latent", 1, 1, "has latent caches (MLA)"},
		{"one cache", 2, 2, "has keys and values in one cache"}}},
    {"page size", page_size,
     .values = {{"1", 1, 1, "has pages of size 1"}, {"16", 16, 16, "has pages of size 16"},
		{"32", 32, 32, "has pages of size 32"}, {"64", 64, 64, "has pages of size 64"},
		{"other", 0, 0x1p62, NULL}}},
    {"padding", coverage_switch, .other = "padded",
     .values = {{"tokens", 1, 1, "has tokens that are padding"}, {"none", 0, 0, "has no tokens that are padding"}}},
    {"dtype", coverage_dtype, .role = "cache",
     .values = {COVERAGE_DTYPE(DTYPE_BFLOAT16, "bfloat16"), COVERAGE_DTYPE(DTYPE_FLOAT16, "float16"),
		COVERAGE_DTYPE(DTYPE_FLOAT8_E4M3FN, "float8_e4m3fn"), {"other", 0, DTYPE_COUNT, NULL}}},
    {.name = NULL},
};

const struct op page_op = {
    .name = "page",
    .op_types = op_types,
    .words = op_words,
    .match = match,
    .roles = roles,
    .bind = bind,
    .mistakes = page_mistakes,
    .modes = modes,
    .coverage = coverage,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .rule = rule,
    .range = range,
    .reach = reach,
    .in_place = in_place,
    .fill = fill,
    .check = check,
    .oracle = oracle,
};
