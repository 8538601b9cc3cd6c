#include "report/solutions.h"

#include <stdio.h>
#include <string.h>

#include "base/show.h"
#include "engine/solution_candidates.h"
#include "report/run_json.h"

/* Returns the first case that has the status of the result, or NULL. */
static const struct case_result *deciding_case(const struct result *result)
{
	for (int i = 0; i < result->case_count; i++) {
		const struct case_result *c = &result->cases[i];

		if (c->verdict != NULL && !c->test->beside && c->verdict->status == result->status)
			return c;
	}
	return NULL;
}

/* Replaces "the reference" in a message by "the solution", because the judge calls all code that it verifies "the
 * reference". */
static const char *in_words_of_solution(const char *message, struct arena *arena)
{
	static const char reference[] = "the reference ", solution[] = "the solution ";
	struct buf out = {0};
	const char *found;

	while ((found = strstr(message, reference)) != NULL) {
		buf_add(&out, message, (size_t)(found - message));
		buf_text(&out, solution);
		message = found + strlen(reference);
	}
	buf_text(&out, message);
	const char *copy = arena_copy(arena, out.data, out.length);

	buf_free(&out);
	return copy;
}

static const char *message_of(const struct result *result, struct arena *arena)
{
	const struct case_result *c = deciding_case(result);

	if (result->message != NULL)
		return result->message;
	return c != NULL && c->verdict->message != NULL ? in_words_of_solution(c->verdict->message, arena) : NULL;
}

static const char *path_of(const struct result *result)
{
	const struct own_truth *solution = candidate_of(result);

	return solution != NULL ? solution->path : result->file->path;
}

static const char *name_of(const struct result *result)
{
	const struct own_truth *solution = candidate_of(result);

	return solution != NULL ? strchr(solution->truth.name, ':') + 1 : "";
}

static void print_solution(const struct result *result, struct arena *arena)
{
	const struct case_result *c = deciding_case(result);
	const char *message = message_of(result, arena);
	const struct own_truth *solution = candidate_of(result);

	show_print(stdout, "%-8s solution %s of %s/%s, by %s: ", result->known ? status_name(result->status) : "unknown",
		   name_of(result), result->file->op_type, result->file->name, solution != NULL ? solution->author : "");
	if (c == NULL)
		show_print(stdout, "%s\n", message != NULL ? message : path_of(result));
	else
		show_print(stdout, "%d %s%s%s\n", result->case_count, result->case_count == 1 ? "case" : "cases",
			   c->verdict->output_count > 0 ? ", compared with " : "",
			   c->verdict->output_count > 0 ? c->verdict->ground_truth : "");
	if (c != NULL && message != NULL) {
		show_print(stdout, "         %s  %s\n", c->test->id, path_of(result));
		for (const char *line = message; *line != '\0';) {
			size_t length = strcspn(line, "\n");

			show_print(stdout, "           %.*s\n", (int)length, line);
			line += length + (line[length] == '\n');
		}
	}
}

void solutions_print(const struct run *run)
{
	int by_status[STATUS_COUNT] = {0};
	struct arena arena = {0};

	for (int i = 0; i < run->count; i++) {
		print_solution(run->results[i], &arena);
		by_status[run->results[i]->status]++;
	}
	show_print(stdout, "%d %s", run->count, run->count == 1 ? "solution" : "solutions");
	for (int s = 0, said = 0; s < STATUS_COUNT; s++)
		if (by_status[s] > 0)
			show_print(stdout, "%s%d %s", said++ == 0 ? ": " : ", ", by_status[s], status_name((enum status)s));
	show_print(stdout, "\n");
	arena_free(&arena);
}

static void json_solution(const struct result *result, struct arena *arena, struct buf *out)
{
	const struct case_result *c = deciding_case(result);
	const struct own_truth *solution = candidate_of(result);

	buf_text(out, "{");
	buf_json_member(out, "name", name_of(result));
	buf_json_next_member(out, "author", solution != NULL ? solution->author : NULL);
	buf_json_next_member(out, "path", path_of(result));
	buf_json_next_member(out, "definition", result->file->name);
	buf_json_next_member(out, "op_type", result->file->op_type);
	buf_json_next_member(out, "status", result->known ? status_name(result->status) : "unknown");
	buf_json_next_member(out, "reason", reason_name(result->reason));
	buf_json_next_member(out, "message", message_of(result, arena));
	buf_json_next_member(out, "ground_truth", c != NULL ? c->verdict->ground_truth : NULL);
	buf_text(out, ", \"cases\": [");
	for (int i = 0; i < result->case_count; i++) {
		buf_text(out, i > 0 ? ",\n  " : "\n  ");
		report_json_case(out, result, &result->cases[i]);
	}
	buf_text(out, "]}");
}

void solutions_json(const struct run *run, struct buf *out)
{
	struct arena arena = {0};

	buf_text(out, ",\n \"solutions\": [");
	for (int i = 0; i < run->count; i++) {
		buf_text(out, i > 0 ? ",\n " : "\n ");
		json_solution(run->results[i], &arena, out);
	}
	buf_text(out, "]");
	arena_free(&arena);
}
