#include "kernels/page/page_table.h"

#include <stdlib.h>

#include "base/err.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/input_key.h"
#include "kernels/core/random_inputs.h"
#include "kernels/core/take.h"
#include "kernels/page/roles.h"

int64_t page_table_own_pages(int64_t pages)
{
	return pages - pages / 3 > 1 ? pages - pages / 3 : 1;
}

void page_table_close(struct page_table *table)
{
	free(table->indptr);
	free(table->length);
	free(table->appended);
}

/* Returns the number of non-empty sequences. If there are at least as many page indices as sequences, no sequence is
 * empty. If there are fewer page indices, there is one non-empty sequence for every four page indices. */
static int64_t filled_sequences(const struct page_table *table)
{
	return table->indices >= table->sequences ? table->sequences : (table->indices + 3) / 4;
}

/* Returns true if sequence `b` is non-empty. Non-empty sequences are evenly spaced, and the first sequence is one of
 * them. */
static bool is_filled(const struct page_table *table, int64_t b, int64_t filled)
{
	return filled > 0 && (b == 0 || b * filled / table->sequences != (b - 1) * filled / table->sequences);
}

/* Returns the number of tokens in the last page of sequence `b`. Depending on b, the page is full, or has one token, or
 * has a random number of tokens. */
static int64_t last_page(const struct page_table *table, int64_t b, uint32_t random)
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
static void share_pages(struct page_table *table, uint64_t key)
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
static int64_t shortest(const struct page_table *table)
{
	int64_t found = 0;

	for (int64_t b = 1; b < table->sequences; b++)
		if (table->length[b] > 0 && table->length[b] < table->length[found])
			found = b;
	return found;
}

/* Returns the number of tokens to append to the first sequence so that one of them is in the second-to-last page of
 * this sequence. Returns 0 if the first sequence has only one page. */
static int64_t across_pages(const struct page_table *table)
{
	int64_t before = (table->length[0] - 1) / table->page_size * table->page_size;

	return before > 0 ? table->length[0] - before + 1 : 0;
}

/* Distributes the appended tokens to the sequences in proportion to their lengths, with these exceptions. Tokens are
 * appended to the last two pages of the first sequence, if this takes at most half of all appended tokens. All tokens
 * of the shortest sequence are appended, from position 0 on, if the number of appended tokens allows this. If the other
 * sequences have room, no token is appended to the second sequence, and one token is appended to the third. */
static void share_tokens(struct page_table *table)
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

int page_table_open(const struct op_case *c, struct page_table *table, struct err *err)
{
	const struct op_problem *problem = c->problem;
	struct page_roles roles = page_roles_of(problem);
	struct page_extent e = page_extent_of(c, 0);
	int64_t room = 0;

	*table = (struct page_table){.sequences = c->axis[problem->inputs[roles.indptr].axis[0]] - 1,
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
		table->prefix = table->indices - page_table_own_pages(table->pages);
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
	page_table_close(table);
	return err_set(err, "page: %lld pages of %lld tokens cannot hold the %lld tokens to append; kv_indices must be "
			    "longer",
	               (long long)table->indices, (long long)table->page_size, (long long)table->tokens);
}

/* Returns the sequence with the most appended tokens, or -1 if there are no such tokens. Does not return `except`. */
static int64_t most_appended(const struct page_table *table, int64_t except)
{
	int64_t most = -1;

	for (int64_t b = 0; b < table->sequences; b++)
		if (b != except && table->appended[b] > (most < 0 ? 0 : table->appended[most]))
			most = b;
	return most;
}

/* Exchanges two pages so that the middle one of the tokens that are appended to sequence `b` is in the page `page`. */
static void place_page(const struct page_table *table, int64_t *pages, int64_t b, int64_t page)
{
	if (b < 0)
		return;
	int64_t token = table->length[b] - 1 - table->appended[b] / 2;

	order_place(pages, table->pages, page, table->indptr[b] + token / table->page_size);
}

/* Fills the page indices. The page indices of the prefix are random and may repeat. All other page indices are
 * different from each other and in random order. Tokens are written to the last page of the cache and, if several
 * sequences get tokens, to page 0. */
static void fill_indices(const struct op_case *c, int input, const struct page_table *table, struct tensor *out)
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
	int64_t most = most_appended(table, -1);

	place_page(table, pages, most, table->pages - 1);
	if (table->pages > 1)
		place_page(table, pages, most_appended(table, most), 0);
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
static int64_t place_in_batch(const struct page_table *table, int64_t token)
{
	int64_t at = (token + table->tokens / 3) % table->tokens;

	return table->contents == CONTENTS_SECOND ? table->tokens - 1 - at : at;
}

/* Which tokens are padding: none, one in the middle, or every third one, starting with the first. */
enum padding { PADDING_NONE, PADDING_MIDDLE, PADDING_THIRD };

static enum padding padding_of(const struct op_case *c)
{
	if (c->edge == PAGE_EDGE_PADDING)
		return PADDING_THIRD;
	return (c->variant & PAGE_PADDED) != 0 ? PADDING_MIDDLE : PADDING_NONE;
}

/* Fills the positions of the tokens if `positions` is true, else the numbers of the tokens' sequences. A token that is
 * padding has the sequence number -1. Its position is -1 in the first set of values, and valid in the second, because
 * the sequence number alone marks a token as padding. */
static void fill_tokens(const struct page_table *table, bool positions, enum padding padding, struct tensor *out)
{
	int64_t token = 0;

	for (int64_t b = 0; b < table->sequences; b++)
		for (int64_t i = table->length[b] - table->appended[b]; i < table->length[b]; i++, token++)
			dtype_store(out->data, out->dtype, place_in_batch(table, token),
			            (double)(!positions ? b : b == 0 ? table->prefix * table->page_size + i : i));
	if (positions && table->contents == CONTENTS_SECOND)
		return;
	for (token = 0; padding == PADDING_THIRD && token < table->tokens; token += 3)
		dtype_store(out->data, out->dtype, token, -1);
	if (padding == PADDING_MIDDLE && table->tokens > 2)
		dtype_store(out->data, out->dtype, table->tokens / 2, -1);
}

int page_table_fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct page_roles roles = page_roles_of(c->problem);
	struct page_table table;

	if (page_table_open(c, &table, err) != 0)
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
	page_table_close(&table);
	return 0;
}
