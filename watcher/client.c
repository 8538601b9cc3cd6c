#include "watcher/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/show.h"
#include "base/trace.h"
#include "watcher/server.h"

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Parses `text`, which has one line "CASES PATH" for each verified definition. CASES is the number of the
 * definition's cases. Returns false if the text is malformed or does not have exactly `most` lines. */
static bool read_rows(char *text, int most, struct arena *arena, struct up_to_date *out)
{
	struct up_to_date_row *rows = arena_array(arena, (size_t)most, sizeof *rows);

	while (*text != '\0' && out->row_count < most) {
		char *end = strchr(text, '\n'), *path;
		long cases = strtol(text, &path, 10);

		if (end == NULL || *path != ' ' || cases < 0 || cases > INT32_MAX)
			return false;
		*end = '\0';
		rows[out->row_count++] = (struct up_to_date_row){path + 1, (int)cases};
		text = end + 1;
	}
	out->rows = rows;
	return *text == '\0' && out->row_count == most;
}

/* Parses an answer of the watcher: {"definitions": N, "cases": N, "elements": N, "paths": [PATH…], "rows"?: TEXT}.
 * Returns false if the answer is malformed. */
static bool read_answer(const cJSON *answer, struct arena *arena, struct up_to_date *out)
{
	const cJSON *paths = json_member(answer, "paths"), *path;
	const char *rows = json_text_of(answer, "rows");
	int64_t definitions, elements;

	*out = (struct up_to_date){0};
	if (!cJSON_IsArray(paths) || !json_integer(json_member(answer, "definitions"), &definitions) ||
	    !json_integer(json_member(answer, "cases"), &out->cases) ||
	    !json_integer(json_member(answer, "elements"), &elements) || definitions < 0 || definitions > INT32_MAX ||
	    elements < 0)
		return false;
	out->definitions = (int)definitions;
	out->elements = (uint64_t)elements;
	out->paths = arena_array(arena, (size_t)cJSON_GetArraySize(paths), sizeof *out->paths);
	cJSON_ArrayForEach(path, paths) {
		if (!cJSON_IsString(path))
			return false;
		out->paths[out->path_count++] = arena_string(arena, path->valuestring);
	}
	if (out->path_count > 1)
		qsort(out->paths, (size_t)out->path_count, sizeof *out->paths, compare_words);
	return rows == NULL || read_rows(arena_string(arena, rows), out->definitions, arena, out);
}

/* Appends a description of the watcher's progress, such as ", which still has to verify 12 of 300 definitions
 * (rmsnorm_h4096 now)". If the watcher does not answer, appends nothing. */
static void describe_progress(const char *root, struct buf *out)
{
	struct buf question = {0}, answer = {0};
	int64_t definitions, waiting;

	buf_text(&question, "{\"ask\": \"progress\"}\n");
	if (server_ask(root, &question, &answer, NULL)) {
		const struct json_text text = {"the watcher's answer", answer.data, answer.length, 1};
		cJSON *json = json_parse(&text, NULL);
		const char *name = json_text_of(json, "name");

		if (json_integer(json_member(json, "definitions"), &definitions) &&
		    json_integer(json_member(json, "waiting"), &waiting)) {
			if (waiting > 0)
				buf_printf(out, ", which still has to verify %lld of %lld definition%s%s%s%s",
					   (long long)waiting, (long long)definitions, definitions == 1 ? "" : "s",
					   name != NULL ? " (" : "", name != NULL ? name : "",
					   name != NULL ? " now)" : "");
			else
				buf_text(out, ", whose files are still changing");
		}
		cJSON_Delete(json);
	}
	buf_free(&question);
	buf_free(&answer);
}

static void report_waiting(const char *root, long process)
{
	struct buf progress = {0};

	buf_text(&progress, "");
	describe_progress(root, &progress);
	show_print(stderr,
		"reftest: waiting for the watcher of %s (process %ld)%s; Ctrl-C ends only this command, not the "
		"watcher; add --alone to work without the watcher\n",
		root, process, progress.length > 0 ? progress.data : "");
	fflush(stderr);
	buf_free(&progress);
}

/* Sends a query and parses the answer. Frees `question`, the text of the query. */
static bool ask(const char *root, struct buf *question, struct arena *arena, struct up_to_date *out)
{
	struct buf answer = {0};
	bool parsed = false;

	if (server_ask(root, question, &answer, report_waiting)) {
		const struct json_text text = {"the watcher's answer", answer.data, answer.length, 1};
		cJSON *json = json_parse(&text, NULL);

		parsed = json != NULL && read_answer(json, arena, out);
		cJSON_Delete(json);
	}
	buf_free(question);
	buf_free(&answer);
	return parsed;
}

static bool ask_verified(const char *root, const struct digest *context, bool rows, struct arena *arena,
			 struct up_to_date *out)
{
	struct buf question = {0};
	char hex[DIGEST_HEX];

	digest_hex(context, hex);
	buf_printf(&question, "{\"ask\": \"verified\", \"context\": \"%s\", \"rows\": %s}\n", hex,
		   rows ? "true" : "false");
	if (!ask(root, &question, arena, out))
		return false;
	if (rows && out->row_count != out->definitions)
		return false;
	trace("ask", "the watcher reports %d definitions as verified and %d to check", out->definitions, out->path_count);
	return true;
}

static bool ask_paths(const char *root, const char *const *names, int count, struct arena *arena,
		      struct up_to_date *out)
{
	struct buf question = {0};

	buf_text(&question, "{\"ask\": \"paths\", \"names\": ");
	buf_json_strings(&question, names, count);
	buf_text(&question, "}\n");
	if (!ask(root, &question, arena, out))
		return false;
	trace("ask", "the watcher names %d definitions", out->path_count);
	return true;
}

const struct up_to_date_calls watcher_client = {ask_verified, ask_paths};
