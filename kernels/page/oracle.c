#include "kernels/page/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/input_check.h"
#include "kernels/core/take.h"
#include "kernels/page/input_values.h"
#include "kernels/page/mistakes.h"
#include "kernels/page/page_table.h"
#include "kernels/page/roles.h"

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
	struct page_table table;

	for (int i = 0; i < c->problem->input_count; i++)
		if (!dtype_is_float(c->problem->inputs[i].dtype) && (c->given >> i & 1) != 0)
			return 0;
	if (page_table_open(c, &table, err) != 0)
		return -1;
	page_table_close(&table);
	return 0;
}

int page_check(const struct op_case *c, const struct tensor *in, struct err *err)
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

int page_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
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
