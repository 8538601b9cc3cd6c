#include "testgen/support_files.h"

#include <string.h>

#include "shipped_digest.h" /* changes whenever an embedded file changes, so that make compiles this file again */

#define BYTES(symbol, path)                                                                                            \
	__asm__(".pushsection .rodata\n" symbol "_begin:\n.incbin \"" path "\"\n" symbol                               \
		"_end:\n.byte 0\n.popsection\n")

/* The parts of conftest.py, in their order: PART(name, folder below python/) */
#define PARTS                                                                                                          \
	PART(conftest, "testing/")                                                                                     \
	PART(conftest_definitions, "testing/")                                                                         \
	PART(arguments, "")                                                                                            \
	PART(conftest_calls, "testing/")                                                                               \
	PART(conftest_cases, "testing/")                                                                               \
	PART(conftest_plain_inputs, "testing/")                                                                        \
	PART(conftest_truths, "testing/")                                                                              \
	PART(conftest_checks, "testing/")

#define PART(name, folder) BYTES("part_" #name, "python/" folder #name ".py");
PARTS
#undef PART
#define LIBRARY(name) BYTES("library_" #name, "python/libraries/" #name ".py");
#include "libraries.inc"
#undef LIBRARY

#define HIDDEN __attribute__((visibility("hidden")))
#define PART(name, folder) extern const char part_##name##_begin[] HIDDEN, part_##name##_end[] HIDDEN;
PARTS
#undef PART
#define LIBRARY(name) extern const char library_##name##_begin[] HIDDEN, library_##name##_end[] HIDDEN;
#include "libraries.inc"
#undef LIBRARY

static const struct {
	const char *begin, *end;
} parts[] = {
#define PART(name, folder) {part_##name##_begin, part_##name##_end},
    PARTS
#undef PART
};

static const struct {
	const char *name, *begin, *end;
} libraries[] = {
#define LIBRARY(name) {LIBRARIES_FOLDER #name ".py", library_##name##_begin, library_##name##_end},
#include "libraries.inc"
#undef LIBRARY
};

enum { LIBRARIES = sizeof libraries / sizeof *libraries };

const char *shipped_name(int index)
{
	if (index == 0)
		return "conftest.py";
	return index <= LIBRARIES ? libraries[index - 1].name : NULL;
}

/* Appends conftest.py, which is the concatenation of its parts. Omits the first lines of each part except the first
 * part: the lines before the first line that begins with "# ---- ". */
static void conftest_text(struct buf *out)
{
	static const char rule[] = "\n# ---- ";

	buf_add(out, parts[0].begin, (size_t)(parts[0].end - parts[0].begin));
	for (size_t i = 1; i < sizeof parts / sizeof *parts; i++) {
		const char *end = parts[i].end, *at = memmem(parts[i].begin, (size_t)(end - parts[i].begin), rule, sizeof rule - 1);

		buf_text(out, "\n");
		if (at != NULL)
			buf_add(out, at, (size_t)(end - at));
	}
}

/* The files from python/libraries/ are not formatted like generated files. Therefore the copy of each begins with
 * comments that make the formatters and linters of the dataset's repository ignore it. */
void shipped_text(int index, struct buf *out)
{
	if (index == 0) {
		conftest_text(out);
		return;
	}
	buf_text(out, "# fmt: off\n# ruff: noqa\n");
	buf_add(out, libraries[index - 1].begin, (size_t)(libraries[index - 1].end - libraries[index - 1].begin));
}

const char *shipped_digest(void)
{
	return SHIPPED_DIGEST;
}
