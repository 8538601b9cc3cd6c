#include "commands/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifacts/annotate.h"
#include "artifacts/junit.h"
#include "base/buf.h"
#include "base/file.h"

static struct junit_suite suite_of(const struct outcome *outcome, struct arena *arena)
{
	struct junit_case *cases = arena_array(arena, (size_t)outcome->case_count, sizeof *cases);

	for (int i = 0; i < outcome->case_count; i++) {
		const struct case_outcome *c = &outcome->cases[i];

		cases[i] = (struct junit_case){.name = c->test->id, .verdict = c->verdict, .why = c->why};
	}
	return (struct junit_suite){
	    .op_type = outcome->file->op_type,
	    .name = outcome->file->name,
	    .invalid = outcome->status == STATUS_INVALID && outcome->cases == NULL ? outcome->message : NULL,
	    .weak = outcome->reason == REASON_WEAK,
	    .cases = cases,
	    .case_count = outcome->case_count,
	};
}

int exchange_junit(const struct pass *pass, const char *path, struct err *err)
{
	struct arena arena = {0};
	struct junit_suite *suites = arena_array(&arena, (size_t)pass->count, sizeof *suites);
	struct buf text = {0};
	int rc;

	for (int i = 0; i < pass->count; i++)
		suites[i] = suite_of(pass->outcomes[i], &arena);
	junit_write(suites, pass->count, pass->seconds, &text);
	rc = file_replace(path, text.data, text.length, err);
	buf_free(&text);
	arena_free(&arena);
	return rc < 0 ? -1 : 0;
}

/* GitHub knows files by their path in the repository, which is checked out at $GITHUB_WORKSPACE. */
static const char *repository_path(const struct pass *pass, const char *path, struct arena *arena)
{
	const char *workspace = getenv("GITHUB_WORKSPACE");
	char *root = realpath(pass->reftest->root, NULL),
	     *top = realpath(workspace != NULL && *workspace != '\0' ? workspace : ".", NULL);
	size_t length = top != NULL ? strlen(top) : 0;
	const char *shown = path;

	if (root != NULL && length > 0 && strncmp(root, top, length) == 0 && root[length] == '/')
		shown = arena_printf(arena, "%s/%s", root + length + 1, path);
	free(root);
	free(top);
	return shown;
}

/* The line that a sentence "definitions/x/y.json:12:5: …" names; 0: none. */
static int line_in(const char *message, const char *path)
{
	size_t length = strlen(path);

	return strncmp(message, path, length) == 0 && message[length] == ':' ? atoi(message + length + 1) : 0;
}

static const char *first_message(const struct outcome *outcome)
{
	for (int i = 0; i < outcome->case_count; i++) {
		const struct verdict *v = outcome->cases[i].verdict;

		if (v != NULL && v->status == outcome->status && v->message != NULL)
			return v->message;
	}
	return NULL;
}

static struct annotation annotation_of(const struct outcome *outcome, struct arena *arena)
{
	const char *message = outcome->message != NULL ? outcome->message : first_message(outcome);
	const char *reason = reason_name(outcome->reason),
		   *word = outcome->known ? status_name(outcome->status) : "unknown";
	int line = outcome->definition != NULL ? outcome->definition->reference_line : 0;

	if (outcome->definition == NULL && message != NULL)
		line = line_in(message, outcome->file->path);
	return (struct annotation){
	    .error = outcome->known && outcome->status >= STATUS_ERROR,
	    .path = repository_path(outcome->pass, outcome->file->path, arena),
	    .line = line,
	    .title = arena_printf(arena, "%s/%s: %s%s%s", outcome->file->op_type, outcome->file->name, word,
				  reason != NULL ? ": " : "", reason != NULL ? reason : ""),
	    .message = arena_printf(arena, "%u of %u cases passed\n%s", outcome->counts.passed, outcome->counts.cases,
				    message != NULL ? message : ""),
	};
}

/* "definitions/loop: cannot open the folder: …" */
static struct annotation annotation_of_problem(const struct pass *pass, const char *problem, struct arena *arena)
{
	const char *path = arena_copy(arena, problem, strcspn(problem, ":"));

	return (struct annotation){
	    .error = true, .path = repository_path(pass, path, arena), .title = "left out", .message = problem};
}

void exchange_github(const struct pass *pass)
{
	struct arena arena = {0};
	struct annotation *annotations =
	    arena_array(&arena, (size_t)(pass->count + pass->problem_count), sizeof *annotations);
	struct buf text = {0};
	int count = 0;

	for (int i = 0; i < pass->problem_count; i++)
		annotations[count++] = annotation_of_problem(pass, pass->problems[i], &arena);
	for (int i = 0; i < pass->count; i++)
		if (!pass->outcomes[i]->known || pass->outcomes[i]->status != STATUS_PASSED)
			annotations[count++] = annotation_of(pass->outcomes[i], &arena);
	annotate_write(annotations, count, &text);
	if (text.length > 0)
		fwrite(text.data, 1, text.length, stdout);
	buf_free(&text);
	arena_free(&arena);
}
