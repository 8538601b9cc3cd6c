#include "testgen/support_files.h"

#include <string.h>

#include "shipped_digest.h" /* if an embedded file changes, make changes this header and compiles this file again */

#define BYTES(symbol, path)                                                                                            \
	__asm__(".pushsection .rodata\n" symbol "_begin:\n.incbin \"" path "\"\n" symbol                               \
		"_end:\n.byte 0\n.popsection\n")

BYTES("conftest", "python/testing/conftest.py");
BYTES("conftest_truths", "python/testing/conftest_truths.py");
BYTES("conftest_checks", "python/testing/conftest_checks.py");
#define LIBRARY(name) BYTES("library_" #name, "python/libraries/" #name ".py");
#include "libraries.inc"
#undef LIBRARY

#define HIDDEN __attribute__((visibility("hidden")))
extern const char conftest_begin[] HIDDEN, conftest_end[] HIDDEN;
extern const char conftest_truths_begin[] HIDDEN, conftest_truths_end[] HIDDEN;
extern const char conftest_checks_begin[] HIDDEN, conftest_checks_end[] HIDDEN;
#define LIBRARY(name) extern const char library_##name##_begin[] HIDDEN, library_##name##_end[] HIDDEN;
#include "libraries.inc"
#undef LIBRARY

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

/* Appends conftest.py, which is the concatenation of its parts. In all parts except the first, the lines before the
 * first line of dashes are omitted. */
static void conftest_text(struct buf *out)
{
	static const char rule[] = "\n# ---- ";
	static const char *const parts[][2] = {{conftest_truths_begin, conftest_truths_end},
					       {conftest_checks_begin, conftest_checks_end}};

	buf_add(out, conftest_begin, (size_t)(conftest_end - conftest_begin));
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		const char *end = parts[i][1],
			   *at = memmem(parts[i][0], (size_t)(end - parts[i][0]), rule, sizeof rule - 1);

		buf_text(out, "\n");
		if (at != NULL)
			buf_add(out, at, (size_t)(end - at));
	}
}

/* The tables of libraries are not formatted like generated files. Comments in them therefore tell the formatters and
 * linters of the dataset's repository to ignore them. */
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
