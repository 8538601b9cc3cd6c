/* settings - a dataset's own defaults, which the file reftest.toml at its root has. A new key also needs: its row in
 * settings.c, its option in run_defaults (engine/run_defaults.c), docs/settings.md and tests/unit/test_settings.c.
 *
 *   sizes = ["small", "medium"]
 *   ground-truth = "auto,solution:baseline"
 *   tolerance = ["bfloat16=8e-3,1e-2"]
 *
 *   [hook]
 *   strict = true
 *
 * Each key is the name of an option, and its value is that option's default. An option of the command line wins over
 * the file, and the file over reftest's own default. A definition's tolerance wins over the file's, because it says
 * more.
 *
 * The file comes with the dataset, whose author may be a stranger. A key that could send something away, start a
 * program or use up the machine is refused; the table in settings.c has each with what the user can do. What remains
 * is reported with every result (run_options.from_settings). The file is read from the working tree, also for
 * --staged.
 *
 * For one version reftest.json, with the keys require_containment and ground_truth, is read too, with a note. */
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

/* One key that the file has. */
struct setting {
	const char *key;  /* "sizes", "hook.strict"; NULL: the file does not have it */
	const char *text; /* the value as the option takes it: "small,medium" */
	int line;
};

struct settings {
	const char *file; /* "reftest.toml" or "reftest.json"; NULL: there is none */
	const char *note; /* what the user should know about the file; NULL: nothing */
	struct setting of[SETTING_COUNT];
	bool size[SIZE_COUNT];
	const char *device, *ground_truth, *accept; /* NULL: the file does not say */
	const char *required; /* gaps, as containment_suffices takes them; NULL: none */
	bool hook_strict, hook_all;
	struct tolerance by_dtype[DTYPE_COUNT]; /* of SETTING_TOLERANCE; negative: not given */
	struct arena arena;
};

/* Reads the settings of the dataset at `root`. A missing file is no error. Returns NULL with a message if the file is
 * invalid or cannot be read. The caller passes the result to settings_free. */
struct settings *settings_read(const char *root, struct err *err);
void settings_free(struct settings *settings); /* NULL is allowed */

/* Reads the text of a file, for settings_read and tests. `json`: the text is that of a reftest.json. */
struct settings *settings_parse(const char *text, size_t length, bool json, struct err *err);

/* Returns the name of a key, or NULL beyond the last. `user_only`: what the user does instead, because a dataset may
 * not set it; NULL: a dataset may. Keys of a table have its name before a dot. */
const char *settings_key(int index, const char **user_only);

/* Returns what references must not reach (workers/sandbox/containment.h), or NULL if nothing is required. `option` is
 * the value of --require-containment, or NULL if it is not given; "none" removes the requirement. `settings` may be
 * NULL. */
const char *settings_required(const struct settings *settings, const char *option);

/* Appends "reftest.toml sets sizes = small (line 1); …" about the keys whose bit is set in `which`. */
void settings_describe(const struct settings *settings, unsigned which, struct buf *out);

#endif
