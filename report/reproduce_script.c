#include "report/reproduce_script.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/shell_word.h"
#include "base/show.h"

/* The first line of each script. A file without this line was not written by reftest. */
static const char mark[] = "# Written by `reftest verify --save`: ";
enum { SCRIPT_MAX = 16 << 20 };

__asm__(".pushsection .rodata\n"
	"reproduce_begin:\n"
	".incbin \"report/reproduce.py\"\n"
	"reproduce_end:\n"
	".byte 0\n"
	".popsection\n");

extern const char reproduce_begin[] __attribute__((visibility("hidden")));

/* Returns whether a file may be replaced: the file does not exist, or it begins with `mark`. */
static bool may_replace(const char *path)
{
	struct buf bytes = {0};
	enum file_answer answer = file_read(AT_FDCWD, path, SCRIPT_MAX, &bytes, NULL, NULL);
	bool own = answer == FILE_ABSENT ||
		   (answer == FILE_OK && bytes.length > sizeof mark && memcmp(bytes.data, mark, sizeof mark - 1) == 0);

	buf_free(&bytes);
	return own;
}

const char *reproduce_prepare(const char *folder, struct arena *arena, struct err *err)
{
	char absolute[PATH_MAX];
	const char *script = arena_printf(arena, "%s/" REPRODUCE_SCRIPT, folder), *tensors;

	if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
		err_errno(err, "cannot create %s", folder);
		return NULL;
	}
	if (realpath(folder, absolute) == NULL) {
		err_errno(err, "cannot use the folder %s", folder);
		return NULL;
	}
	tensors = arena_printf(arena, "%s/" REPRODUCE_TENSORS, absolute);
	if (!may_replace(script) || (access(script, F_OK) != 0 && access(tensors, F_OK) == 0)) {
		err_set(err, "%s has a " REPRODUCE_SCRIPT " or " REPRODUCE_TENSORS " that reftest did not write; choose another "
			     "folder", folder);
		return NULL;
	}
	if (remove(tensors) != 0 && errno != ENOENT) {
		err_errno(err, "cannot replace %s", tensors);
		return NULL;
	}
	if (access(absolute, W_OK) != 0) {
		err_errno(err, "cannot write to %s", folder);
		return NULL;
	}
	return tensors;
}

/* Writes an assignment to the Python variable `name`. The text is written as a JSON string, which is also a valid
 * Python string. */
static void write_constant(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, "%s = ", name);
	buf_json_string(out, text);
	buf_text(out, "\n");
}

static void write_script(const struct result *result, struct buf *out)
{
	const struct definition *definition = result->definition;
	const struct case_result *only = &result->cases[0];

	buf_printf(out, "%s%s/%s, case %s, %s\n", mark, definition->op_type, definition->name, only->test->id,
		   only->verdict != NULL ? status_name(only->verdict->status) : "without a verdict");
	buf_text(out, "#\n# Shows with torch alone what the reference computes on the inputs of this case, and how far that is from the "
		      "ground truth:\n#\n#   python " REPRODUCE_SCRIPT " [DEVICE]\n#\n# The reference is below; edit it and run the "
		      "script again. The tensors are in " REPRODUCE_TENSORS ".\n\n");
	if (strstr(definition->reference, "__future__") == NULL)
		buf_text(out, "__name__ = \"reference\"  # so that a block `if __name__ == \"__main__\"` does "
			      "not run\n\n");
	buf_text(out, definition->reference);
	buf_text(out, "\n\n\n# ---- The case ----\n\n");
	write_constant(out, "REFTEST_ENTRY_POINT", definition->entry_point);
	write_constant(out, "REFTEST_DEVICE", only->verdict == NULL || only->verdict->device_class == NULL || strcmp(only->verdict->device_class, "cpu") == 0 ? "cpu" : "cuda");
	buf_text(out, "REFTEST_INPUTS = [");
	for (int i = 0; i < definition->input_count; i++) {
		buf_text(out, i > 0 ? ", " : "");
		buf_json_string(out, definition->inputs[i].name);
	}
	buf_text(out, "]\n");
	buf_text(out, reproduce_begin);
}

int reproduce_write(const struct run *run, const char *folder, struct err *err)
{
	const struct result *result = run->count == 1 ? run->results[0] : NULL;
	struct buf script = {0}, path = {0}, word = {0};
	int rc = -1;

	if (result == NULL || result->definition == NULL || result->definition->entry_point == NULL || result->case_count != 1)
		return err_set(err, "--save needs exactly one case, and the case must be able to run; nothing was saved");
	buf_printf(&path, "%s/" REPRODUCE_TENSORS, folder);
	if (access(path.data, R_OK) != 0) {
		err_set(err, "nothing was saved: either the case has no tensors%s%s%s, or %s cannot be written (is the disk full?)",
			result->message != NULL ? " (" : "", result->message != NULL ? result->message : "",
			result->message != NULL ? ")" : "", path.data);
	} else {
		path.length = 0;
		buf_printf(&path, "%s/" REPRODUCE_SCRIPT, folder);
		write_script(result, &script);
		rc = file_replace(path.data, script.data, script.length, err) < 0 ? -1 : 0;
	}
	if (rc == 0) {
		buf_shell_word(&word, path.data);
		show_print(stderr, "reftest: saved; `python %s` repeats the case with torch alone\n", word.data);
	}
	buf_free(&script);
	buf_free(&path);
	buf_free(&word);
	return rc;
}
