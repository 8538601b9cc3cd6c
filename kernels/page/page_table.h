/* page_table - computes the page tables of a case: kv_indptr, kv_indices, kv_last_page_len, and the sequence and the
 * position of each appended token.
 *
 * Sequences have different lengths, and the appended tokens are at the ends of the sequences. Some sequences have no
 * token to append, and one sequence has one token to append. If there are more sequences than pages, most sequences are
 * empty. The last page of a sequence is full, or holds one token, or holds a random number of tokens. The lengths of
 * some sequences are thus multiples of the page size, and those of others are one more than a multiple. In the second
 * set of values, the first sequence has one token in its last page, and tokens are appended to its last two pages.
 * Pages are in random order, and some are unused. No two tokens have the same slot. Some tokens are written to the last
 * page of the cache and, if several sequences get tokens, to page 0. If kv_indices has more entries than the cache has
 * pages, the first sequence starts with a long prefix in pages that other sequences also use, as in a prefix cache. The
 * tokens that are appended to the first sequence then have positions beyond 131072, although the cache has few pages.
 * The tokens are not in the order of their sequences. In the second set of values, the order of the tokens is reversed,
 * and different sequences have full last pages. */
#ifndef REFTEST_KERNELS_PAGE_PAGE_TABLE_H
#define REFTEST_KERNELS_PAGE_PAGE_TABLE_H

#include "kernels/core/op.h"

/* The values of op_case.edge, in the order of the table `edges` in page.c. */
enum { PAGE_EDGE_NO_TOKENS = 1, PAGE_EDGE_PADDING };

/* The member `indices` and the three arrays do not include the prefix of the first sequence. */
struct page_table {
	int64_t sequences, tokens, indices, pages, page_size;
	int64_t prefix;    /* number of pages in the prefix of the first sequence; other sequences may also use them */
	int64_t *indptr;   /* indptr[b]: the number of pages of all sequences before sequence b */
	int64_t *length;   /* length[b]: the number of tokens of sequence b */
	int64_t *appended; /* appended[b]: the number of tokens that are appended to sequence b */
	enum op_contents contents;
};

/* If there are more page indices than the cache has pages, the first page indices are those of a prefix. Returns the
 * number of page indices after the prefix: two thirds of `pages`, which is the number of pages of the cache. */
int64_t page_table_own_pages(int64_t pages);

/* Computes the page table of a case. Returns -1 with a message in `err` if the axes of the case allow no valid table;
 * otherwise, the caller must close the table. */
int page_table_open(const struct op_case *c, struct page_table *table, struct err *err);
void page_table_close(struct page_table *table);

/* Fills an input that is not a float tensor. Returns 0, or -1 with a message in `err`. */
int page_table_fill(const struct op_case *c, int input, struct tensor *out, struct err *err);

#endif
