#include "git/index.h"

#include <stdlib.h>
#include <string.h>

/* An entry consists of ten 32-bit stat fields (the seventh is the mode), the object id, 16 bits of flags, and the path.
 * In version 3 and later, an entry may have 16 more bits of flags before the path. In versions 2 and 3, NULs pad each
 * entry to a multiple of 8 bytes. Version 4 compresses paths. A path is stored in two parts: the number of bytes to
 * remove from the end of the previous path, and the bytes to append. */
enum {
	HEAD_BYTES = 12,
	STAT_BYTES = 40,
	MODE_AT = 24,
	FLAG_EXTENDED = 0x4000,
	FLAG_STAGE = 0x3000,
	FLAG_INTENT = 0x2000, /* a bit of the second 16 bits of flags */
	FLAG_SKIPPED = 0x4000, /* a bit of the second 16 bits of flags */
	MODE_KIND = 0170000,
	MODE_FILE = 0100000,
	MODE_LINK = 0120000,
	MODE_FOLDER = 040000, /* an entry that represents a whole directory, as in a sparse index */
	MODE_SUBMODULE = 0160000,
	PATH_BYTES = 4096
};

struct cursor {
	const unsigned char *at, *end;
};

static uint32_t get_u32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static unsigned get_u16(const unsigned char *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static size_t left(const struct cursor *from)
{
	return (size_t)(from->end - from->at);
}

/* Reads a variable-length number in git's encoding: 7 bits per byte, and one is added for each byte after the first. */
static bool get_offset(struct cursor *from, size_t *out)
{
	size_t value = 0;

	for (bool more = true, first = true; more; first = false) {
		if (left(from) == 0 || value > SIZE_MAX >> 8)
			return false;
		unsigned char byte = *from->at++;

		value = first ? byte & 0x7Fu : ((value + 1) << 7) | (byte & 0x7Fu);
		more = (byte & 0x80) != 0;
	}
	*out = value;
	return true;
}

/* Reads the path of an entry in an index file of version 2 or 3. Returns a pointer into the file, and moves the cursor
 * to the byte after the padding. */
static const char *plain_path(struct cursor *from, const unsigned char *entry)
{
	const unsigned char *path = from->at, *nul = memchr(path, '\0', left(from));

	if (nul == NULL)
		return NULL;
	size_t whole = ((size_t)(nul - entry) + 8) & ~(size_t)7; /* an entry is padded with 1 to 8 NULs */

	if (whole > (size_t)(from->end - entry))
		return NULL;
	from->at = entry + whole;
	return (const char *)path;
}

static const char *packed_path(struct cursor *from, const char *before, struct arena *arena)
{
	size_t drop, kept = strlen(before);

	if (!get_offset(from, &drop) || drop > kept)
		return NULL;
	const unsigned char *nul = memchr(from->at, '\0', left(from));

	if (nul == NULL || (size_t)(nul - from->at) > PATH_BYTES)
		return NULL;
	kept -= drop;
	size_t tail = (size_t)(nul - from->at);

	if (kept + tail > PATH_BYTES)
		return NULL;
	char *path = arena_alloc(arena, kept + tail + 1);

	memcpy(path, before, kept);
	memcpy(path + kept, from->at, tail);
	from->at = nul + 1;
	return path;
}

static bool kind_of(unsigned mode, enum entry_kind *kind)
{
	switch (mode & MODE_KIND) {
	case MODE_FILE:
		*kind = ENTRY_FILE;
		return true;
	case MODE_LINK:
		*kind = ENTRY_LINK;
		return true;
	case MODE_SUBMODULE:
		*kind = ENTRY_SUBMODULE;
		return true;
	}
	return false;
}

/* Appends the entry. Skips the second and third stage of a path with a merge conflict. Returns false if the entries are
 * not sorted by path, or if a path without a merge conflict appears twice. */
static bool add_entry(struct index_entry *entries, int *count, const struct index_entry *entry)
{
	struct index_entry *last = *count > 0 ? &entries[*count - 1] : NULL;
	int order = last == NULL ? -1 : strcmp(last->path, entry->path);

	if (order > 0 || (order == 0 && !last->conflict))
		return false;
	if (order != 0)
		entries[(*count)++] = *entry;
	return true;
}

/* Reads one entry. An entry without content (from `git add --intent-to-add`) is skipped, and INDEX_OK is returned. */
static enum index_answer read_entry(struct cursor *from, unsigned version, int object_bytes, const char **before,
				    struct arena *arena, struct index_entry *entries, int *count)
{
	const unsigned char *entry = from->at;
	size_t fixed = STAT_BYTES + (size_t)object_bytes + 2;
	struct index_entry out = {.path = NULL};
	unsigned more = 0;

	if (left(from) < fixed + 2)
		return INDEX_BAD;
	unsigned mode = get_u32(entry + MODE_AT), flags = get_u16(entry + fixed - 2);

	from->at += fixed;
	if ((flags & FLAG_EXTENDED) != 0) {
		if (version < 3)
			return INDEX_BAD;
		more = get_u16(from->at);
		from->at += 2;
	}
	out.path = version == 4 ? packed_path(from, *before, arena) : plain_path(from, entry);
	if (out.path == NULL)
		return INDEX_BAD;
	*before = out.path;
	if ((mode & MODE_KIND) == MODE_FOLDER || out.path[0] == '\0') /* an entry with an empty path is part of a split
								       * index */
		return INDEX_OTHER;
	if (!kind_of(mode, &out.kind))
		return INDEX_BAD;
	if ((more & FLAG_INTENT) != 0)
		return INDEX_OK;
	out.conflict = (flags & FLAG_STAGE) != 0;
	out.skipped = (more & FLAG_SKIPPED) != 0;
	memcpy(out.object, entry + STAT_BYTES, (size_t)object_bytes);
	return add_entry(entries, count, &out) ? INDEX_OK : INDEX_BAD;
}

/* Skips the extensions. Returns INDEX_OTHER if the file has a mandatory extension. The names of optional extensions
 * begin with a capital letter. */
static enum index_answer pass_extensions(struct cursor *from)
{
	while (left(from) > 0) {
		if (left(from) < 8 || get_u32(from->at + 4) > left(from) - 8)
			return INDEX_BAD;
		if (from->at[0] < 'A' || from->at[0] > 'Z')
			return INDEX_OTHER;
		from->at += 8 + get_u32(from->at + 4);
	}
	return INDEX_OK;
}

static enum index_answer read_all(struct cursor *from, unsigned version, uint32_t count, int object_bytes,
				  struct arena *arena, struct index *out)
{
	struct index_entry *entries = arena_array(arena, count, sizeof *entries);
	const char *before = "";

	out->entries = entries;
	for (uint32_t i = 0; i < count; i++) {
		enum index_answer answer =
		    read_entry(from, version, object_bytes, &before, arena, entries, &out->count);

		if (answer != INDEX_OK)
			return answer;
	}
	return pass_extensions(from);
}

enum index_answer index_parse(const char *bytes, size_t length, int object_bytes, struct arena *arena,
			      struct index *out, struct err *err)
{
	const unsigned char *head = (const unsigned char *)bytes;
	enum index_answer answer = INDEX_BAD;

	*out = (struct index){0};
	if (length < HEAD_BYTES + (size_t)object_bytes || memcmp(bytes, "DIRC", 4) != 0) {
		err_set(err, "the file does not begin with the signature of a git index");
		return INDEX_BAD;
	}
	uint32_t version = get_u32(head + 4), count = get_u32(head + 8);
	struct cursor from = {head + HEAD_BYTES, head + length - object_bytes};

	if (version < 2 || version > 4)
		return INDEX_OTHER;
	/* The count of entries is checked against the file's length before memory is allocated, because a damaged file
	 * may have a huge count. */
	if (count <= left(&from) / (STAT_BYTES + (size_t)object_bytes + 4))
		answer = read_all(&from, version, count, object_bytes, arena, out);
	if (answer == INDEX_BAD)
		err_set(err, "the contents of the file are invalid at byte %zu", (size_t)(from.at - head));
	return answer;
}

/* ---- the output of git ls-files --------------------------------------------------------------------------------- */

static bool get_hex(const char *text, int bytes, unsigned char *out)
{
	for (int i = 0; i < 2 * bytes; i++) {
		const char *digits = "0123456789abcdef", *digit = text[i] != '\0' ? strchr(digits, text[i]) : NULL;

		if (digit == NULL)
			return false;
		out[i / 2] = (unsigned char)(out[i / 2] << 4 | (digit - digits));
	}
	return true;
}

/* Parses a line "S 100644 OBJECT STAGE\tPATH", which ends with a NUL. The first letter is S if the entry is marked
 * skip-worktree, otherwise another letter. */
static bool read_line(const char *line, int object_bytes, struct arena *arena, struct index_entry *entries, int *count)
{
	struct index_entry entry = {.path = NULL};
	size_t hex = 2 * (size_t)object_bytes;
	char *end;

	if (line[0] == '\0' || line[1] != ' ')
		return false;
	unsigned long mode = strtoul(line + 2, &end, 8);

	if (*end != ' ' || strlen(end) < hex + 5 || !get_hex(end + 1, object_bytes, entry.object) ||
	    end[1 + hex] != ' ' || end[3 + hex] != '\t' || !kind_of((unsigned)mode, &entry.kind))
		return false;
	entry.conflict = end[2 + hex] != '0';
	entry.skipped = line[0] == 'S';
	entry.path = arena_string(arena, end + 4 + hex);
	return add_entry(entries, count, &entry);
}

int index_parse_listing(const char *text, size_t length, int object_bytes, struct arena *arena, struct index *out,
			struct err *err)
{
	size_t lines = 0;

	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\0';
	struct index_entry *entries = arena_array(arena, lines, sizeof *entries);

	*out = (struct index){.entries = entries};
	for (size_t at = 0; at < length; at += strlen(text + at) + 1)
		if (memchr(text + at, '\0', length - at) == NULL ||
		    !read_line(text + at, object_bytes, arena, entries, &out->count))
			return err_set(err, "unknown format in the output of git ls-files: %.*s",
			               (int)(length - at < 60 ? length - at : 60), text + at);
	return 0;
}

static int compare_path(const void *path, const void *entry)
{
	return strcmp(path, ((const struct index_entry *)entry)->path);
}

const struct index_entry *index_find(const struct index *index, const char *path)
{
	return index->count == 0
		   ? NULL
		   : bsearch(path, index->entries, (size_t)index->count, sizeof *index->entries, compare_path);
}
