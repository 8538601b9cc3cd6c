#include "report/ci_export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "report/github.h"
#include "report/junit.h"

static struct junit_suite suite_of(const struct result *result, struct arena *arena)
{
	struct junit_case *cases = arena_array(arena, (size_t)result->case_count, sizeof *cases);

	for (int i = 0; i < result->case_count; i++) {
		const struct case_result *c = &result->cases[i];

		cases[i] = (struct junit_case){.name = c->test->id, .verdict = c->verdict, .why = c->why};
	}
	return (struct junit_suite){
	    .op_type = result->file->op_type,
	    .name = result->file->name,
	    .invalid = result->status == STATUS_INVALID && result->cases == NULL ? result->message : NULL,
	    .weak = result->reason == REASON_WEAK,
	    .cases = cases,
	    .case_count = result->case_count,
	};
}

int export_junit(const struct run *run, const char *path, struct err *err)
{
	struct arena arena = {0};
	struct junit_suite *suites = arena_array(&arena, (size_t)run->count, sizeof *suites);
	struct buf text = {0};
	int rc;

	for (int i = 0; i < run->count; i++)
		suites[i] = suite_of(run->results[i], &arena);
	junit_write(suites, run->count, run->seconds, &text);
	rc = file_replace(path, text.data, text.length, err);
	buf_free(&text);
	arena_free(&arena);
	return rc < 0 ? -1 : 0;
}

/* Returns the path of a file relative to the repository, because GitHub annotations require such a path. The repository
 * is checked out at $GITHUB_WORKSPACE. */
static const char *repository_path(const struct run *run, const char *path, struct arena *arena)
{
	const char *workspace = getenv("GITHUB_WORKSPACE");
	char *root = realpath(run->program->root, NULL),
	     *top = realpath(workspace != NULL && *workspace != '\0' ? workspace : ".", NULL);
	size_t length = top != NULL ? strlen(top) : 0;
	const char *shown = path;

	if (root != NULL && length > 0 && strncmp(root, top, length) == 0 && root[length] == '/')
		shown = arena_printf(arena, "%s/%s", root + length + 1, path);
	free(root);
	free(top);
	return shown;
}

/* Returns the line number 12 from a message such as "definitions/x/y.json:12:5: …", or 0 if the message has none. */
static int line_in(const char *message, const char *path)
{
	size_t length = strlen(path);

	return strncmp(message, path, length) == 0 && message[length] == ':' ? atoi(message + length + 1) : 0;
}

static const char *first_message(const struct result *result)
{
	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *v = result->cases[i].verdict;

		if (v != NULL && v->status == result->status && v->message != NULL)
			return v->message;
	}
	return NULL;
}

static struct annotation annotation_of(const struct result *result, struct arena *arena)
{
	const char *message = result->message != NULL ? result->message : first_message(result);
	const char *reason = reason_name(result->reason),
		   *word = result->known ? status_name(result->status) : "unknown";
	int line = result->definition != NULL ? result->definition->reference_line : 0;

	if (result->definition == NULL && message != NULL)
		line = line_in(message, result->file->path);
	return (struct annotation){
	    .error = result->known && status_group(result->status) > GROUP_UNVERIFIED,
	    .path = repository_path(result->run, result->file->path, arena),
	    .line = line,
	    .title = arena_printf(arena, "%s/%s: %s%s%s", result->file->op_type, result->file->name, word,
				  reason != NULL ? ": " : "", reason != NULL ? reason : ""),
	    .message = arena_printf(arena, "%u of %u cases passed\n%s", result->counts.passed, result->counts.cases,
				    message != NULL ? message : ""),
	};
}

/* Makes an annotation from a message such as "definitions/loop: cannot open the folder: …". */
static struct annotation annotation_of_problem(const struct run *run, const char *problem, struct arena *arena)
{
	const char *path = arena_copy(arena, problem, strcspn(problem, ":"));

	return (struct annotation){
	    .error = true, .path = repository_path(run, path, arena), .title = "left out", .message = problem};
}

void export_github(const struct run *run)
{
	struct arena arena = {0};
	struct annotation *annotations =
	    arena_array(&arena, (size_t)(run->count + run->problem_count), sizeof *annotations);
	struct buf text = {0};
	int count = 0;

	for (int i = 0; i < run->problem_count; i++)
		annotations[count++] = annotation_of_problem(run, run->problems[i], &arena);
	for (int i = 0; i < run->count; i++)
		if (!run->results[i]->known || run->results[i]->status != STATUS_PASSED)
			annotations[count++] = annotation_of(run->results[i], &arena);
	annotate_write(annotations, count, &text);
	if (text.length > 0)
		fwrite(text.data, 1, text.length, stdout);
	buf_free(&text);
	arena_free(&arena);
}
