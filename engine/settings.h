/* settings - reads a dataset's own defaults from the file reftest.toml at its root. The example below shows its form.
 *
 * To add a key, add a value to enum setting_id, a member to struct settings and a row to `rows` in settings.c. Remove
 * the option's row from `user_rows`. Make run_defaults (engine/run_defaults.c) set the option. If the help text of the
 * option names the default, mention `reftest.toml` there. Also change docs/settings.md and tests/unit/test_settings.c.
 * The keys of the table [hook] are last in the enum; cli/verify.c reads their values.
 *
 *   sizes = ["small", "medium"]
 *   ground-truth = "auto,solution:baseline"
 *   tolerance = ["bfloat16=8e-3,1e-2"]
 *
 *   [hook]
 *   strict = true
 *
 * Each key is the name of an option, and its value is the default of the option. An option of the command line
 * overrides the file, and the file overrides reftest's own default. The tolerance of a definition overrides the
 * tolerance of the file, because it is more specific.
 *
 * The file comes with the dataset, whose author may be a stranger. A key that could send data away, start a program or
 * exhaust the machine is refused. A table in settings.c lists these keys. For each of these keys, the table says what
 * the user can do instead. Every result reports the settings that took effect (run_options.from_settings). The file is
 * read from the working tree, even for --staged.
 *
 * This version of reftest also reads reftest.json, an older form with the keys require_containment and ground_truth,
 * and then prints a note. The next version will not read reftest.json any more. */
#ifndef REFTEST_ENGINE_SETTINGS_H
#define REFTEST_ENGINE_SETTINGS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "dataset/definition.h"
#include "workers/protocol/job.h"

enum setting_id {
	SETTING_SIZES,
	SETTING_DEVICE,
	SETTING_GROUND_TRUTH,
	SETTING_TOLERANCE,
	SETTING_ACCEPT,
	SETTING_REQUIRE_CONTAINMENT,
	SETTING_HOOK_STRICT,
	SETTING_HOOK_ALL,
	SETTING_COUNT
};

/* One key of the settings file, and its value. */
struct setting {
	const char *key;  /* "sizes", "hook.strict"; NULL: the file does not have this key */
	const char *text; /* the value in the syntax of the option: "small,medium" */
	int line;
};

struct settings {
	const char *file; /* "reftest.toml" or "reftest.json"; NULL: there is none */
	const char *note; /* a sentence about the file for the user; NULL: none */
	struct setting of[SETTING_COUNT];
	bool size[SIZE_COUNT];
	const char *device, *ground_truth, *accept; /* NULL: the file does not set it */
	/* what references must not be able to access (containment_suffices); NULL: no requirement */
	const char *required;
	bool hook_strict, hook_all;
	struct tolerance by_dtype[DTYPE_COUNT]; /* the value of SETTING_TOLERANCE; negative: not given */
	struct arena arena;
};

/* Reads the settings of the dataset at `root`. A missing file is no error. Returns NULL with a message if the file is
 * invalid or cannot be read. The caller passes the result to settings_free. */
struct settings *settings_read(const char *root, struct err *err);
/* The names of the files that may contain the settings, relative to the root. */
enum { SETTINGS_FILES = 2 };
extern const char *const settings_files[SETTINGS_FILES];

/* Returns whether `path`, relative to the root, is the file with the settings. */
bool settings_is_path(const char *path);
void settings_free(struct settings *settings); /* NULL is allowed */

/* Reads the text of a file, for settings_read and tests. `json` is true for the text of a reftest.json. */
struct settings *settings_parse(const char *text, size_t length, bool json, struct err *err);

/* Returns the name of key number `index`, or NULL if there is none. If a dataset may not set the key, sets `user_only`
 * to what the user can do instead, otherwise to NULL. The name of a key in a table begins with the name of the table
 * and a dot. */
const char *settings_key(int index, const char **user_only);

/* Returns what references must not be able to access (workers/sandbox/containment.h), or NULL if nothing is required.
 * `option` is the value of --require-containment, or NULL if it is not given; "none" removes the requirement.
 * `settings` may be NULL. */
const char *settings_required(const struct settings *settings, const char *option);

/* Appends a text such as "reftest.toml sets sizes = small (line 1); …". The text lists the keys whose bits are set in
 * `which`. */
void settings_describe(const struct settings *settings, unsigned which, struct buf *out);

#endif
