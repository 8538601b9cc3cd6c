#include "commands/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/trace.h"
#include "commands/door.h"

/* ---- who asks --------------------------------------------------------------------------------------------------- */

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The rows are one text: "CASES PATH" on lines of their own. */
static bool read_rows(char *text, int most, struct arena *arena, struct vouched *out)
{
	struct vouched_row *rows = arena_array(arena, (size_t)most, sizeof *rows);

	while (*text != '\0' && out->row_count < most) {
		char *end = strchr(text, '\n'), *path;
		long cases = strtol(text, &path, 10);

		if (end == NULL || *path != ' ' || cases < 0 || cases > INT32_MAX)
			return false;
		*end = '\0';
		rows[out->row_count++] = (struct vouched_row){path + 1, (int)cases};
		text = end + 1;
	}
	out->rows = rows;
	return *text == '\0' && out->row_count == most;
}

/* {"definitions": N, "cases": N, "elements": N, "paths": [PATH…], "rows"?: TEXT}; false: it is no such
 * answer. */
static bool read_vouched(const cJSON *answer, struct arena *arena, struct vouched *out)
{
	const cJSON *paths = json_member(answer, "paths"), *path;
	const char *rows = json_text_of(answer, "rows");
	int64_t definitions, elements;

	*out = (struct vouched){0};
	if (!cJSON_IsArray(paths) || !json_integer(json_member(answer, "definitions"), &definitions) ||
	    !json_integer(json_member(answer, "cases"), &out->cases) ||
	    !json_integer(json_member(answer, "elements"), &elements) || definitions < 0 || definitions > INT32_MAX ||
	    elements < 0)
		return false;
	out->definitions = (int)definitions;
	out->elements = (uint64_t)elements;
	out->paths = arena_array(arena, (size_t)cJSON_GetArraySize(paths), sizeof *out->paths);
	cJSON_ArrayForEach(path, paths)
	{
		if (!cJSON_IsString(path))
			return false;
		out->paths[out->path_count++] = arena_string(arena, path->valuestring);
	}
	if (out->path_count > 1)
		qsort(out->paths, (size_t)out->path_count, sizeof *out->paths, compare_words);
	return rows == NULL || read_rows(arena_string(arena, rows), out->definitions, arena, out);
}

/* ", which has 12 of 300 definitions to verify yet (rmsnorm_h4096 now)"; "" of one that does not say. */
static void describe_progress(const char *root, struct buf *out)
{
	struct buf question = {0}, answer = {0};
	int64_t definitions, waiting;

	buf_text(&question, "{\"ask\": \"progress\"}\n");
	if (door_ask(root, &question, &answer, NULL)) {
		const struct json_text text = {"the watcher's answer", answer.data, answer.length, 1};
		cJSON *json = json_parse(&text, NULL);
		const char *name = json_text_of(json, "name");

		if (json_integer(json_member(json, "definitions"), &definitions) && json_integer(json_member(json, "waiting"), &waiting)) {
			if (waiting > 0)
				buf_printf(out, ", which has %lld of %lld definition%s to verify yet%s%s%s", (long long)waiting,
				           (long long)definitions, definitions == 1 ? "" : "s", name != NULL ? " (" : "",
				           name != NULL ? name : "", name != NULL ? " now)" : "");
			else
				buf_text(out, ", for which files have not settled yet");
		}
		cJSON_Delete(json);
	}
	buf_free(&question);
	buf_free(&answer);
}

static void say_waiting(const char *root, long process)
{
	struct buf progress = {0};

	buf_text(&progress, "");
	describe_progress(root, &progress);
	fprintf(stderr, "reftest: waiting for the watcher of %s (process %ld)%s; Ctrl-C ends this command alone, and with --alone it "
	        "asks no watcher\n", root, process, progress.length > 0 ? progress.data : "");
	fflush(stderr);
	buf_free(&progress);
}

/* Takes over the question. */
static bool ask(const char *root, struct buf *question, struct arena *arena, struct vouched *out)
{
	struct buf answer = {0};
	bool taken = false;

	if (door_ask(root, question, &answer, say_waiting)) {
		const struct json_text text = {"the watcher's answer", answer.data, answer.length, 1};
		cJSON *json = json_parse(&text, NULL);

		taken = json != NULL && read_vouched(json, arena, out);
		cJSON_Delete(json);
	}
	buf_free(question);
	buf_free(&answer);
	return taken;
}

bool ask_verified(const char *root, const struct digest *context, bool rows, struct arena *arena, struct vouched *out)
{
	struct buf question = {0};
	char hex[DIGEST_HEX];

	digest_hex(context, hex);
	buf_printf(&question, "{\"ask\": \"verified\", \"context\": \"%s\", \"rows\": %s}\n", hex, rows ? "true" : "false");
	if (!ask(root, &question, arena, out))
		return false;
	if (rows && out->row_count != out->definitions)
		return false;
	trace("ask", "the watcher vouches for %d definitions and leaves %d", out->definitions, out->path_count);
	return true;
}

bool ask_paths(const char *root, const char *const *names, int count, struct arena *arena, struct vouched *out)
{
	struct buf question = {0};

	buf_text(&question, "{\"ask\": \"paths\", \"names\": [");
	for (int i = 0; i < count; i++) {
		buf_text(&question, i > 0 ? ", " : "");
		buf_json_string(&question, names[i]);
	}
	buf_text(&question, "]}\n");
	if (!ask(root, &question, arena, out))
		return false;
	trace("ask", "the watcher names %d definitions", out->path_count);
	return true;
}

/* ---- who answers ------------------------------------------------------------------------------------------------ */

static void write_vouched(const struct vouched *vouched, struct buf *out)
{
	buf_printf(out, "{\"definitions\": %d, \"cases\": %lld, \"elements\": %llu, \"paths\": [", vouched->definitions,
	           (long long)vouched->cases, (unsigned long long)vouched->elements);
	for (int i = 0; i < vouched->path_count; i++) {
		buf_text(out, i > 0 ? ", " : "");
		buf_json_string(out, vouched->paths[i]);
	}
	buf_text(out, "]");
}

static void write_rows(const struct roll *roll, struct arena *arena, struct buf *out)
{
	const struct roll_entry **entries;
	int count = roll_passed(roll, arena, &entries);
	struct buf rows = {0};

	for (int i = 0; i < count; i++)
		buf_printf(&rows, "%u %s\n", entries[i]->word.cases, entries[i]->path);
	buf_text(out, ", \"rows\": ");
	buf_json_bytes(out, rows.length > 0 ? rows.data : "", rows.length);
	buf_free(&rows);
}

static const char refused[] = "{\"refused\": true}\n";

static bool answer_verified(struct batches *batches, bool idle, const cJSON *question, struct arena *arena,
                            struct buf *out)
{
	const char *hex = json_text_of(question, "context");
	const struct roll *roll = &batches->roll;
	struct digest context;

	if (hex == NULL || !digest_parse(hex, &context) || !digest_equal(&context, &batches->context)) {
		buf_text(out, refused);
		return true;
	}
	if (!idle || batches->first != NULL)
		return false;
	batches_keep(batches);
	if (batches->upkeep.failed) {
		buf_text(out, refused);
		return true;
	}
	struct vouched vouched = {.definitions = roll->by_status[STATUS_PASSED], .cases = roll->passed_cases,
	                          .elements = roll->passed_elements};

	vouched.path_count = roll_doubtful(roll, arena, &vouched.paths);
	write_vouched(&vouched, out);
	if (cJSON_IsTrue(json_member(question, "rows")))
		write_rows(roll, arena, out);
	buf_text(out, "}\n");
	return true;
}

/* "definitions/x/NAME.json" for NAME or x/NAME. */
static bool is_named(const char *path, const char *name)
{
	const char *full = path + strlen("definitions/"), *stem = strchr(full, '/');
	size_t length = strlen(name);

	if (strchr(name, '/') == NULL && stem != NULL)
		full = stem + 1;
	return strncmp(full, name, length) == 0 && strcmp(full + length, ".json") == 0;
}

/* Adds the definitions of one name; false: there is none, or the name is a pattern or a path, which others understand. */
static bool add_named(const cJSON *name, const char *const *all, int count, struct vouched *vouched)
{
	int before = vouched->path_count;

	if (!cJSON_IsString(name) || strpbrk(name->valuestring, "*?[") != NULL)
		return false;
	for (int i = 0; i < count; i++)
		if (is_named(all[i], name->valuestring) && vouched->path_count < count)
			vouched->paths[vouched->path_count++] = all[i];
	return vouched->path_count > before;
}

static bool answer_paths(struct batches *batches, bool idle, const cJSON *question, struct arena *arena, struct buf *out)
{
	struct vouched vouched = {0};
	const cJSON *name;
	const char **all;

	if (!idle || !batches_planned(batches))
		return false;
	int count = roll_paths(&batches->roll, "definitions/", arena, &all);

	vouched.paths = arena_array(arena, (size_t)count, sizeof *vouched.paths);
	cJSON_ArrayForEach(name, json_member(question, "names"))
	{
		if (!add_named(name, all, count, &vouched)) {
			buf_text(out, refused);
			return true;
		}
	}
	write_vouched(&vouched, out);
	buf_text(out, "}\n");
	return true;
}

static void answer_progress(const struct batches *batches, struct buf *out)
{
	const struct progress progress = batches_progress(batches);

	buf_printf(out, "{\"definitions\": %d, \"waiting\": %d", progress.definitions, progress.waiting);
	if (progress.name != NULL) {
		buf_text(out, ", \"name\": ");
		buf_json_string(out, progress.name);
	}
	buf_text(out, "}\n");
}

bool ask_answer(struct batches *batches, bool idle, const char *question, size_t length, struct buf *out)
{
	const struct json_text text = {"question", question, length, 1};
	cJSON *json = json_parse(&text, NULL);
	const char *what = json_text_of(json, "ask");
	struct arena arena = {0};
	bool answered = true;

	if (what != NULL && strcmp(what, "verified") == 0)
		answered = answer_verified(batches, idle, json, &arena, out);
	else if (what != NULL && strcmp(what, "paths") == 0)
		answered = answer_paths(batches, idle, json, &arena, out);
	else if (what != NULL && strcmp(what, "progress") == 0)
		answer_progress(batches, out);
	else
		buf_text(out, refused);
	cJSON_Delete(json);
	arena_free(&arena);
	return answered;
}
