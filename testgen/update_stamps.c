#include "testgen/update_stamps.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/reftest_folder.h"

static const char path[] = ".reftest/artifacts";
static const char head[] = "reftest-artifacts 1 ";
static const char *const layout_names[] = {[LAYOUT_OP_TYPE] = "op-type", [LAYOUT_DEFINITION] = "definition"};

enum { STAMPS_BYTES = 64 << 20 };

const char *layout_name(enum layout layout)
{
	return layout_names[layout];
}

/* Reads a record, which is a line "DIGEST COUNT… FILE". */
static bool read_note(char *line, struct note *note)
{
	const char *hex = strsep(&line, " ");

	if (line == NULL || !digest_parse(hex, &note->digest))
		return false;
	for (int i = 0; i < NOTE_COUNTS; i++) {
		const char *word = line != NULL ? strsep(&line, " ") : NULL;

		if (word == NULL)
			return false;
		note->counts[i] = atoi(word);
	}
	note->file = line;
	return line != NULL && *line != '\0';
}

void stamps_read(struct stamps *out, int root_fd, struct arena *arena)
{
	struct buf bytes = {0};
	int room = 0;

	*out = (struct stamps){0};
	if (file_read(root_fd, path, STAMPS_BYTES, &bytes, NULL, NULL) == FILE_OK && bytes.length > 0) {
		char *text = arena_copy(arena, bytes.data, bytes.length), *line;

		for (const char *c = text; *c != '\0'; c++)
			room += *c == '\n';
		out->items = arena_array(arena, (size_t)room + 1, sizeof *out->items);
		for (strsep(&text, "\n"); (line = strsep(&text, "\n")) != NULL && out->count <= room;)
			out->count += read_note(line, &out->items[out->count]);
	}
	buf_free(&bytes);
}

static int by_file(const void *a, const void *b)
{
	return strcmp(((const struct note *)a)->file, ((const struct note *)b)->file);
}

const struct note *stamps_find(const struct stamps *stamps, const char *file)
{
	struct note wanted = {.file = file};

	return stamps->count == 0 ? NULL
				  : bsearch(&wanted, stamps->items, (size_t)stamps->count, sizeof wanted, by_file);
}

int stamps_write(struct stamps *stamps, const char *root, enum layout layout, struct arena *arena, struct err *err)
{
	struct buf text = {0};
	int rc;

	if (stamps->count > 1)
		qsort(stamps->items, (size_t)stamps->count, sizeof *stamps->items, by_file);
	buf_printf(&text, "%s%s\n", head, layout_names[layout]);
	for (int i = 0; i < stamps->count; i++) {
		char hex[DIGEST_HEX];

		digest_hex(&stamps->items[i].digest, hex);
		buf_printf(&text, "%s", hex);
		for (int k = 0; k < NOTE_COUNTS; k++)
			buf_printf(&text, " %d", stamps->items[i].counts[k]);
		buf_printf(&text, " %s\n", stamps->items[i].file);
	}
	if (reftest_folder_make(root, err) < 0) {
		buf_free(&text);
		return -1;
	}
	/* The file of records need not be synced. A power failure can only lose records, and a test file without a
	 * record is checked again. */
	rc = file_replace_soon(arena_printf(arena, "%s/%s", root, path), text.data, text.length, err);
	buf_free(&text);
	return rc < 0 ? -1 : 0;
}

bool stamps_layout(const char *root, enum layout *layout)
{
	struct arena arena = {0};
	struct buf bytes = {0};
	bool found = false;

	if (file_read(AT_FDCWD, arena_printf(&arena, "%s/%s", root, path), STAMPS_BYTES, &bytes, NULL, NULL) ==
		FILE_OK &&
	    bytes.length > 0)
		for (int i = 0; i < 2; i++) {
			char *line = arena_printf(&arena, "%s%s\n", head, layout_names[i]);

			if (strncmp(bytes.data, line, strlen(line)) == 0) {
				*layout = (enum layout)i;
				found = true;
			}
		}
	buf_free(&bytes);
	arena_free(&arena);
	return found;
}
