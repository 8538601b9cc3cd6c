#include "watcher/autoupdate.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "testgen/update.h"

static const char folder[] = "tests/references/";

/* The first change of a generated file sets the time of the next check. Later changes do not postpone this check. */
bool autoupdate_path_changed(struct autoupdate *autoupdate, const char *path, int64_t now_ms)
{
	if (strncmp(path, "tests/", 6) != 0)
		return false;
	if ((strncmp(path, folder, sizeof folder - 1) == 0 || strcmp(path, "tests/") == 0) && autoupdate->due_ms == 0)
		autoupdate->due_ms = now_ms + AUTOUPDATE_REST_MS;
	return true;
}

int64_t autoupdate_deadline(const struct autoupdate *autoupdate)
{
	return autoupdate->due_ms != 0 ? autoupdate->due_ms : INT64_MAX;
}

/* Prints the problems of an update, unless the last update had the same problems. Does not print which files were
 * written or removed, because the report of a batch states their number. */
static void print_problems(struct autoupdate *autoupdate, const struct watch_output *output, const struct update_result *generated,
		const char *failure)
{
	struct buf all = {0};

	buf_text(&all, failure);
	for (int i = 0; i < generated->problem_count; i++)
		buf_add(&all, generated->problems[i], strlen(generated->problems[i]) + 1);
	struct digest said = digest_of(all.data, all.length);
	bool news = all.length > 0 && !digest_equal(&said, &autoupdate->said);

	autoupdate->failed = all.length > 0;
	autoupdate->said = said;
	buf_free(&all);
	if (news && failure[0] != '\0')
		print_notice(output, failure);
	for (int i = 0; i < generated->problem_count && news; i++)
		print_notice(output, generated->problems[i]);
}

void autoupdate_update(struct autoupdate *autoupdate, struct program *program, const struct dataset *dataset,
		       const struct watch_output *output)
{
	struct update_options options = {.quiet = true};
	struct update_result generated = {0};
	struct dataset walked = {.fd = -1};
	struct arena arena = {0};
	struct err err = {""};
	bool there = generated_before(program->root, &options.layout), walk = there && dataset == NULL;

	autoupdate->due_ms = 0;
	autoupdate->there = there;
	if (!there)
		autoupdate->failed = false;
	else if (!walk || dataset_scan(program->root, &arena, &walked, &err) == 0)
		update_tests(program, walk ? &walked : dataset, &options, &arena, &generated, &err);
	if (there)
		print_problems(autoupdate, output, &generated, err.text);
	autoupdate->unreported += generated.written + generated.removed;
	if (walked.fd >= 0)
		dataset_close(&walked);
	arena_free(&arena);
}

int autoupdate_written(struct autoupdate *autoupdate)
{
	int written = autoupdate->unreported;

	autoupdate->unreported = 0;
	return written;
}

/* Returns true if, since the last check, a generated file has changed, all generated files were deleted, or `reftest
 * generate` wrote the first generated files. */
bool autoupdate_is_due(const struct autoupdate *autoupdate, const char *root)
{
	enum layout layout;

	return autoupdate->due_ms != 0 || generated_before(root, &layout) != autoupdate->there;
}
