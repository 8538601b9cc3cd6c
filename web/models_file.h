/* models_file - updates the entry of one model in a TypeScript file like flashinfer-bench's
 * web/apps/web/data/models.ts. The update replaces the modules in the entry, or adds an entry, and changes no other
 * byte.
 *
 * The parser accepts only literals: `const models` with an optional type, `=`, and an array of objects. Keys are names
 * or strings. Values are strings, numbers, true, false, null, arrays and objects. Comments may be anywhere. Every
 * object has a member `id` that is a string. Any text may be before and after the array. */
#ifndef REFTEST_WEB_MODELS_FILE_H
#define REFTEST_WEB_MODELS_FILE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "web/model_entry.h"

enum { MODELS_FILE_BYTES = 16 << 20 };

enum models_file_change {
	MODELS_FILE_ERROR = -1, /* the parser does not accept the file, and `err` says where */
	MODELS_FILE_SAME,	/* the entry already has these modules, byte for byte */
	MODELS_FILE_REPLACED,	/* the modules of the old entry were replaced; if it had no modules, the whole entry was
				 * replaced */
	MODELS_FILE_ADDED /* a new entry was added after the last one */
};

/* Replaces the contents of `out` by the new text of the file. `path` is for messages only. */
enum models_file_change models_file_set(const char *path, const char *text, size_t length, const struct web_model *model,
					struct buf *out, struct err *err);

#endif
