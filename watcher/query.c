#include "watcher/query.h"

#include <string.h>

#include "base/json.h"
#include "engine/watcher_answers.h"

static void write_up_to_date(const struct up_to_date *found, struct buf *out)
{
	buf_printf(out, "{\"definitions\": %d, \"cases\": %lld, \"elements\": %llu, \"paths\": [", found->definitions,
		   (long long)found->cases, (unsigned long long)found->elements);
	for (int i = 0; i < found->path_count; i++) {
		buf_text(out, i > 0 ? ", " : "");
		buf_json_string(out, found->paths[i]);
	}
	buf_text(out, "]");
}

static void write_rows(const struct last_statuses *table, struct arena *arena, struct buf *out)
{
	const struct status_row **entries;
	int count = last_statuses_answering(table, arena, &entries);
	struct buf rows = {0};

	for (int i = 0; i < count; i++)
		buf_printf(&rows, "%u %s\n", entries[i]->last.cases, entries[i]->path);
	buf_text(out, ", \"rows\": ");
	buf_json_bytes(out, rows.length > 0 ? rows.data : "", rows.length);
	buf_free(&rows);
}

static const char refused[] = "{\"refused\": true}\n";

static bool answer_verified(struct batches *session, bool idle, const cJSON *question, struct arena *arena,
			    struct buf *out)
{
	const char *hex = json_text_of(question, "context");
	const struct last_statuses *table = &session->table;
	struct digest context;

	if (hex == NULL || !digest_parse(hex, &context) || !digest_equal(&context, &session->context)) {
		buf_text(out, refused);
		return true;
	}
	if (!idle || session->first != NULL)
		return false;
	batches_update_tests(session);
	if (session->autoupdate.failed) {
		buf_text(out, refused);
		return true;
	}
	struct up_to_date found = {.definitions = table->answering,
				   .cases = table->answered_cases,
				   .elements = table->answered_elements};

	found.path_count = last_statuses_unanswered(table, arena, &found.paths);
	write_up_to_date(&found, out);
	if (cJSON_IsTrue(json_member(question, "rows")))
		write_rows(table, arena, out);
	buf_text(out, "}\n");
	return true;
}

/* Returns whether the definition at `path` ("definitions/x/NAME.json") has the name `name`, which is NAME or x/NAME. */
static bool is_named(const char *path, const char *name)
{
	const char *full = path + strlen("definitions/"), *stem = strchr(full, '/');
	size_t length = strlen(name);

	if (strchr(name, '/') == NULL && stem != NULL)
		full = stem + 1;
	return strncmp(full, name, length) == 0 && strcmp(full + length, ".json") == 0;
}

/* Adds the definitions with the name `name`. Returns false if there is none, or if `name` is a pattern or a path, which
 * the client must resolve itself. */
static bool add_named(const cJSON *name, const char *const *all, int count, struct up_to_date *found)
{
	int before = found->path_count;

	if (!cJSON_IsString(name) || strpbrk(name->valuestring, "*?[") != NULL)
		return false;
	for (int i = 0; i < count; i++)
		if (is_named(all[i], name->valuestring) && found->path_count < count)
			found->paths[found->path_count++] = all[i];
	return found->path_count > before;
}

static bool answer_paths(struct batches *session, bool idle, const cJSON *question, struct arena *arena,
			 struct buf *out)
{
	struct up_to_date found = {0};
	const cJSON *name;
	const char **all;

	if (!idle || !batches_planned(session))
		return false;
	int count = last_statuses_paths(&session->table, "definitions/", arena, &all);

	found.paths = arena_array(arena, (size_t)count, sizeof *found.paths);
	cJSON_ArrayForEach(name, json_member(question, "names")) {
		if (!add_named(name, all, count, &found)) {
			buf_text(out, refused);
			return true;
		}
	}
	write_up_to_date(&found, out);
	buf_text(out, "}\n");
	return true;
}

static void answer_progress(const struct batches *session, struct buf *out)
{
	const struct progress progress = batches_progress(session);

	buf_printf(out, "{\"definitions\": %d, \"waiting\": %d", progress.definitions, progress.waiting);
	if (progress.name != NULL) {
		buf_text(out, ", \"name\": ");
		buf_json_string(out, progress.name);
	}
	buf_text(out, "}\n");
}

bool query_answer(struct batches *session, bool idle, const char *question, size_t length, struct buf *out)
{
	const struct json_text text = {"question", question, length, 1};
	cJSON *json = json_parse(&text, NULL);
	const char *what = json_text_of(json, "ask");
	struct arena arena = {0};
	bool answered = true;

	if (what != NULL && strcmp(what, "verified") == 0)
		answered = answer_verified(session, idle, json, &arena, out);
	else if (what != NULL && strcmp(what, "paths") == 0)
		answered = answer_paths(session, idle, json, &arena, out);
	else if (what != NULL && strcmp(what, "progress") == 0)
		answer_progress(session, out);
	else
		buf_text(out, refused);
	cJSON_Delete(json);
	arena_free(&arena);
	return answered;
}
