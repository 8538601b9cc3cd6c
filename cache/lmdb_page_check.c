/* lmdb_page_check - checks the pages of an LMDB file (data format 1, which every LMDB 0.9 writes on 64-bit
 * little-endian machines).
 *
 *   file = meta page 0, meta page 1, pages; the meta page with the higher transaction number is valid
 *   page = number u64, pad u16, flags u16, lower u16, upper u16, offsets u16…, nodes
 *          in an overflow page, the number of overflow pages (u32) replaces lower and upper, and the data follows
 *   node = size low u16, size high u16, flags u16, key size u16, key, data (in a leaf page)
 *          in a branch page, the first three fields of a node contain the page number of a child instead
 *
 * A meta page is the root of two trees: the free list (transaction -> count u64, pages u64…) and the main tree. The
 * leaves of the main tree contain an entry for each table. The data of this entry, 48 bytes, describes the root of the
 * table's tree. Data that is too large for a page is stored in adjacent overflow pages.
 *
 * A bitmap marks every page in use and every free page. A page to which two pages refer is reported as damaged. Loops
 * are also detected in this way. The trees are traversed recursively, at most DEPTH_MAX deep, with one page buffer for
 * each level. */
#include "cache/lmdb_page_check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HEAD = 16,       /* number of bytes before the offsets of a page, and before the data of an overflow page */
	NODE = 8,        /* number of bytes before the key of a node */
	TREE = 48,       /* number of bytes that describe a tree */
	META = HEAD + 4 + 4 + 8 + 8 + 2 * TREE + 8 + 8,
	DEPTH_MAX = 32,  /* the value of LMDB's CURSOR_STACK */
	KEY_MAX = 511,
	TABLES_MAX = 64,
	/* how many pages may be missing at the end of the file, because LMDB allocated and freed them without writing
	 * them */
	SLACK = 1 << 20,
};

enum { PAGE_BRANCH = 1, PAGE_LEAF = 2, PAGE_OVERFLOW = 4, PAGE_META = 8 };
enum { NODE_BIG = 1, NODE_TABLE = 2 };
enum { FREE_FLAGS = 8 }; /* flags of the free list's tree, whose keys are numbers */

static const uint64_t no_page = UINT64_MAX;

struct tree {
	unsigned flags, depth;
	uint64_t root;
};

struct check {
	int fd;
	uint64_t size;     /* size of the file in bytes */
	size_t page_size;
	uint64_t last;     /* highest allocated page number */
	unsigned char *seen; /* one bit for each page from 0 to `last` */
	unsigned char *buffer[DEPTH_MAX];
	struct tree tables[TABLES_MAX];
	int table_count;
	struct err *why;
};

/* The kinds of trees that are traversed. Leaves of the free list contain page numbers. Leaves of the main tree may
 * contain the roots of tables. */
enum kind { KIND_FREE, KIND_MAIN, KIND_TABLE };

static uint16_t get16(const unsigned char *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof value);
	return value;
}

static uint32_t get32(const unsigned char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof value);
	return value;
}

static uint64_t get64(const unsigned char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof value);
	return value;
}

static enum lmdb_page_check_answer damaged(struct check *c, uint64_t page, const char *what)
{
	err_set(c->why, "page %llu %s", (unsigned long long)page, what);
	return LMDB_PAGE_CHECK_DAMAGED;
}

static enum lmdb_page_check_answer read_at(struct check *c, uint64_t offset, void *into, size_t length)
{
	size_t done = 0;

	while (done < length) {
		ssize_t got = pread(c->fd, (char *)into + done, length - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			/* `got` is 0 if the file was truncated after its size was read */
			errno = got == 0 ? EIO : errno;
			err_errno(c->why, "the file cannot be read");
			return LMDB_PAGE_CHECK_ERROR;
		}
		done += (size_t)got;
	}
	return LMDB_PAGE_CHECK_SOUND;
}

/* Marks pages as used. If `written` is true, the pages must be before the end of the file. */
static enum lmdb_page_check_answer take_pages(struct check *c, uint64_t first, uint64_t count, bool written)
{
	if (first < 2 || first > c->last || count == 0 || count > c->last - first + 1)
		return damaged(c, first, "does not exist, but another page refers to it");
	if (written && first + count > c->size / c->page_size)
		return damaged(c, first + count - 1, "is beyond the end of the file, which was truncated");
	for (uint64_t page = first; page < first + count; page++) {
		unsigned char bit = (unsigned char)(1u << (page % 8));

		if (c->seen[page / 8] & bit)
			return damaged(c, page, "is used twice");
		c->seen[page / 8] |= bit;
	}
	return LMDB_PAGE_CHECK_SOUND;
}

static struct tree get_tree(const unsigned char *at)
{
	return (struct tree){.flags = get16(at + 4), .depth = get16(at + 6), .root = get64(at + 40)};
}

/* --- Leaves ------------------------------------------------------------------------------------------------------ */

/* Checks an entry of the free list, which is a count followed by that many page numbers. */
static enum lmdb_page_check_answer check_free_list(struct check *c, uint64_t page, const unsigned char *list, size_t length)
{
	if (length < 8 || get64(list) > length / 8 - 1)
		return damaged(c, page, "contains a free list of a wrong length");
	uint64_t count = get64(list);

	for (uint64_t i = 0; i < count; i++) {
		enum lmdb_page_check_answer answer = take_pages(c, get64(list + 8 + 8 * i), 1, false);

		if (answer != LMDB_PAGE_CHECK_SOUND)
			return answer;
	}
	return LMDB_PAGE_CHECK_SOUND;
}

/* Checks adjacent overflow pages, which together must have room for `length` bytes. */
static enum lmdb_page_check_answer check_overflow(struct check *c, enum kind kind, uint64_t page, size_t length)
{
	unsigned char head[HEAD];
	enum lmdb_page_check_answer answer = take_pages(c, page, 1, true);

	if (answer == LMDB_PAGE_CHECK_SOUND)
		answer = read_at(c, page * c->page_size, head, sizeof head);
	if (answer != LMDB_PAGE_CHECK_SOUND)
		return answer;
	uint64_t count = get32(head + 12);

	if (get64(head) != page || get16(head + 10) != PAGE_OVERFLOW || count * c->page_size < HEAD + (uint64_t)length)
		return damaged(c, page, "is not a valid overflow page, but a leaf page uses the page as an overflow page");
	if (count > 1)
		answer = take_pages(c, page + 1, count - 1, true);
	if (answer != LMDB_PAGE_CHECK_SOUND || kind != KIND_FREE)
		return answer;
	unsigned char *list = malloc(length > 0 ? length : 1);

	if (list == NULL)
		die_no_memory();
	answer = read_at(c, page * c->page_size + HEAD, list, length);
	if (answer == LMDB_PAGE_CHECK_SOUND)
		answer = check_free_list(c, page, list, length);
	free(list);
	return answer;
}

static enum lmdb_page_check_answer check_data(struct check *c, enum kind kind, uint64_t page, const unsigned char *node)
{
	size_t length = get16(node) | (size_t)get16(node + 2) << 16;
	const unsigned char *data = node + NODE + get16(node + 6);
	unsigned flags = get16(node + 4);

	if (flags == NODE_BIG)
		return check_overflow(c, kind, get64(data), length);
	if (flags == NODE_TABLE && kind == KIND_MAIN && length == TREE && c->table_count < TABLES_MAX) {
		c->tables[c->table_count++] = get_tree(data);
		return LMDB_PAGE_CHECK_SOUND;
	}
	if (flags != 0)
		return damaged(c, page, "contains a row of an unknown kind");
	return kind == KIND_FREE ? check_free_list(c, page, data, length) : LMDB_PAGE_CHECK_SOUND;
}

/* --- Trees ------------------------------------------------------------------------------------------------------- */

/* Returns the size in bytes of the node at `offset`, or 0 if the node does not fit in its page. */
static size_t node_size(const struct check *c, const unsigned char *bytes, size_t offset, bool leaf)
{
	size_t room = c->page_size - offset, key, data;

	if (room < NODE || offset % 2 != 0)
		return 0;
	const unsigned char *node = bytes + offset;

	key = get16(node + 6);
	data = !leaf ? 0 : get16(node + 4) == NODE_BIG ? 8 : get16(node) | (size_t)get16(node + 2) << 16;
	if (key > KEY_MAX || (leaf && key == 0) || data > room || NODE + key + data > room)
		return 0;
	return (NODE + key + data + 1) & ~(size_t)1;
}

/* Checks the header of a tree page. Also checks that the nodes lie inside the page and fill exactly the space that the
 * header reserves for nodes. */
static bool page_is_whole(const struct check *c, const unsigned char *bytes, uint64_t page, bool leaf)
{
	size_t lower = get16(bytes + 12), upper = get16(bytes + 14), filled = 0;

	if (get64(bytes) != page || get16(bytes + 10) != (leaf ? PAGE_LEAF : PAGE_BRANCH))
		return false;
	if (lower <= HEAD || lower % 2 != 0 || lower > upper || upper > c->page_size)
		return false;
	for (size_t at = HEAD; at < lower; at += 2) {
		size_t offset = get16(bytes + at);
		size_t size = offset >= upper && offset < c->page_size ? node_size(c, bytes, offset, leaf) : 0;

		if (size == 0)
			return false;
		filled += size;
	}
	return filled == c->page_size - upper;
}

/* Checks the tree whose root is `page` and which has `depth` levels (1: `page` is a leaf). */
static enum lmdb_page_check_answer walk(struct check *c, enum kind kind, uint64_t page, unsigned depth)
{
	enum lmdb_page_check_answer answer = take_pages(c, page, 1, true);
	unsigned char *bytes = c->buffer[depth - 1];

	if (answer == LMDB_PAGE_CHECK_SOUND)
		answer = read_at(c, page * c->page_size, bytes, c->page_size);
	if (answer != LMDB_PAGE_CHECK_SOUND)
		return answer;
	if (!page_is_whole(c, bytes, page, depth == 1))
		return damaged(c, page, "has a header with wrong values, or its nodes do not fit the header");
	for (size_t at = HEAD; at < get16(bytes + 12) && answer == LMDB_PAGE_CHECK_SOUND; at += 2) {
		const unsigned char *node = bytes + get16(bytes + at);
		uint64_t child = get16(node) | (uint64_t)get16(node + 2) << 16 | (uint64_t)get16(node + 4) << 32;

		answer = depth == 1 ? check_data(c, kind, page, node) : walk(c, kind, child, depth - 1);
	}
	return answer;
}

static enum lmdb_page_check_answer walk_tree(struct check *c, enum kind kind, struct tree tree)
{
	/* Any other flag would mean that the keys have another order, or that the map needs a fixed address. */
	if (tree.flags != (kind == KIND_FREE ? FREE_FLAGS : 0))
		return damaged(c, tree.root, "is the root of a tree with wrong flags");
	if (tree.root == no_page && tree.depth == 0)
		return LMDB_PAGE_CHECK_SOUND;
	if (tree.depth == 0 || tree.depth > DEPTH_MAX)
		return damaged(c, tree.root, "is the root of a tree of an impossible depth");
	for (unsigned i = 0; i < tree.depth; i++) {
		if (c->buffer[i] == NULL && (c->buffer[i] = malloc(c->page_size)) == NULL)
			die_no_memory();
	}
	return walk(c, kind, tree.root, tree.depth);
}

/* --- The file ---------------------------------------------------------------------------------------------------- */

/* Returns true if LMDB would accept this meta page. */
static bool meta_is_whole(const unsigned char *meta)
{
	return get16(meta + 10) == PAGE_META && get32(meta + HEAD) == 0xBEEFC0DE;
}

static enum lmdb_page_check_answer walk_metas(struct check *c, const unsigned char *first)
{
	unsigned char second[META];
	size_t trees = HEAD + 24;
	enum lmdb_page_check_answer answer = read_at(c, c->page_size, second, sizeof second);

	if (answer != LMDB_PAGE_CHECK_SOUND)
		return answer;
	if (!meta_is_whole(second) || get32(second + HEAD + 4) != 1 || get32(second + HEAD + 24) != c->page_size)
		return damaged(c, 1, "is not a valid meta page");
	const unsigned char *meta = get64(second + META - 8) > get64(first + META - 8) ? second : first;

	c->last = get64(meta + META - 16);
	if (c->last < 1 || c->last > c->size / c->page_size + SLACK)
		return damaged(c, c->last, "cannot be the last page of a file of this size");
	c->seen = calloc(1, (size_t)(c->last / 8 + 1));
	if (c->seen == NULL)
		die_no_memory();
	answer = walk_tree(c, KIND_MAIN, get_tree(meta + trees + TREE));
	for (int i = 0; i < c->table_count && answer == LMDB_PAGE_CHECK_SOUND; i++)
		answer = walk_tree(c, KIND_TABLE, c->tables[i]);
	return answer != LMDB_PAGE_CHECK_SOUND ? answer : walk_tree(c, KIND_FREE, get_tree(meta + trees));
}

static bool layout_is_known(void)
{
	return sizeof(size_t) == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
}

static enum lmdb_page_check_answer check_file(struct check *c)
{
	unsigned char meta[META];

	if (c->size == 0 || !layout_is_known())
		return LMDB_PAGE_CHECK_SOUND;
	if (c->size < sizeof meta)
		return damaged(c, 0, "is truncated");
	enum lmdb_page_check_answer answer = read_at(c, 0, meta, sizeof meta);

	if (answer != LMDB_PAGE_CHECK_SOUND)
		return answer;
	if (!meta_is_whole(meta))
		return damaged(c, 0, "is not a valid meta page: this is not an LMDB database");
	if (get32(meta + HEAD + 4) != 1) /* another data format, which LMDB will report */
		return LMDB_PAGE_CHECK_SOUND;
	uint32_t page_size = get32(meta + HEAD + 24);

	if (page_size < 256 || page_size > 32768 || (page_size & (page_size - 1)) != 0)
		return damaged(c, 0, "has an impossible page size");
	c->page_size = page_size;
	if (c->size < 2 * c->page_size)
		return damaged(c, 1, "is missing: the file was truncated");
	return walk_metas(c, meta);
}

enum lmdb_page_check_answer lmdb_page_check(int fd, struct err *why)
{
	struct check c = {.fd = fd, .why = why};
	struct stat st;

	if (fstat(fd, &st) != 0) {
		err_errno(why, "the file cannot be read");
		return LMDB_PAGE_CHECK_ERROR;
	}
	c.size = (uint64_t)st.st_size;
	enum lmdb_page_check_answer answer = check_file(&c);

	free(c.seen);
	for (int i = 0; i < DEPTH_MAX; i++)
		free(c.buffer[i]);
	return answer;
}
