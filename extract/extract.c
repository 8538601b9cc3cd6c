#include "extract/extract.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "dataset/definition.h"
#include "extract/definition_of_module.h"

enum { KNOWN_STEP = 64, VERSIONS_MAX = 100 };

/* A definition that is in the dataset, or that this extraction writes. */
struct known {
	const char *op_type, *name, *path, *text;
	cJSON *json;
	struct meaning meaning;
	const char *new_text; /* the new text of the file; NULL: the file stays unchanged */
	bool created;
};

struct extraction {
	const struct extract_request *request;
	struct extract_result *result;
	struct architecture architecture;
	struct known *known;
	int known_count, known_room;
	struct string_list read; /* the op_types whose definitions were read */
	struct arena *arena;
	struct err *err;
};

static const char *full_name(struct extraction *e, const char *op_type, const char *name)
{
	return arena_printf(e->arena, "%s/%s", op_type, name);
}

static struct known *add_known(struct extraction *e)
{
	if (e->known_count == e->known_room) {
		struct known *more = arena_array(e->arena, (size_t)e->known_room + KNOWN_STEP, sizeof *more);

		if (e->known_count > 0)
			memcpy(more, e->known, (size_t)e->known_count * sizeof *more);
		e->known = more;
		e->known_room += KNOWN_STEP;
	}
	return &e->known[e->known_count++];
}

/* Reads one definition of the dataset. If the file is not a JSON object, it is ignored, but no new definition gets its
 * name. */
static void read_known(struct extraction *e, const char *op_type, const char *file)
{
	struct buf bytes = {0};
	struct known *k = add_known(e);
	struct err ignored;

	*k = (struct known){.op_type = op_type,
			    .name = arena_copy(e->arena, file, strlen(file) - strlen(".json")),
			    .path = arena_printf(e->arena, "%s/definitions/%s/%s", e->request->root, op_type, file)};
	if (file_read(AT_FDCWD, k->path, DEFINITION_BYTES, &bytes, NULL, &ignored) == FILE_OK && bytes.length > 0) {
		k->text = arena_copy(e->arena, bytes.data, bytes.length);
		k->json = json_parse(&(struct json_text){k->path, k->text, bytes.length, 1}, &ignored);
		k->meaning = meaning_of(k->json, e->arena);
	}
	buf_free(&bytes);
}

static bool is_listed(const struct string_list *list, const char *text)
{
	for (int i = 0; i < list->count; i++)
		if (strcmp(list->items[i], text) == 0)
			return true;
	return false;
}

/* Reads the definitions of an op_type, unless they were read already. If the dataset has no folder for the op_type,
 * there are no definitions to read. */
static int read_op_type(struct extraction *e, const char *op_type)
{
	const char *path = arena_printf(e->arena, "%s/definitions/%s", e->request->root, op_type);
	struct dirent *entry;

	if (is_listed(&e->read, op_type))
		return 0;
	string_list_add(&e->read, op_type);
	DIR *folder = opendir(path);

	if (folder == NULL)
		return errno == ENOENT ? 0 : err_errno(e->err, "cannot read %s", path);
	while ((entry = readdir(folder)) != NULL) {
		size_t length = strlen(entry->d_name);

		if (entry->d_name[0] != '.' && length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0)
			read_known(e, op_type, entry->d_name);
	}
	closedir(folder);
	return 0;
}

static struct known *same_meaning(struct extraction *e, const struct draft *draft)
{
	for (int i = 0; i < e->known_count; i++)
		if (strcmp(e->known[i].op_type, draft->op_type) == 0 && e->known[i].json != NULL &&
		    meaning_equal(&e->known[i].meaning, &draft->meaning))
			return &e->known[i];
	return NULL;
}

static struct known *same_name(struct extraction *e, const char *op_type, const char *name)
{
	for (int i = 0; i < e->known_count; i++)
		if (strcmp(e->known[i].op_type, op_type) == 0 && strcmp(e->known[i].name, name) == 0)
			return &e->known[i];
	return NULL;
}

static bool has_tag(const cJSON *json, const char *tag)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, json_member(json, "tags"))
		if (cJSON_IsString(item) && strcmp(item->valuestring, tag) == 0)
			return true;
	return false;
}

/* Returns a pointer to the byte after the last `model:` tag of a text. If the text has no such tag, returns a pointer
 * to the byte after the last tag. Sets `first` to the first byte of the chosen tag. */
static const char *behind_tag(const struct known *k, const char **first)
{
	const cJSON *tags = json_member(k->json, "tags"), *item;
	const struct json_text text = {k->path, k->text, strlen(k->text), 1};
	int chosen = cJSON_GetArraySize(tags) - 1, i = 0, line, column;
	char path[32];

	cJSON_ArrayForEach(item, tags)
	{
		if (cJSON_IsString(item) && strncmp(item->valuestring, "model:", 6) == 0)
			chosen = i;
		i++;
	}
	snprintf(path, sizeof path, "tags/%d", chosen);
	if (!cJSON_IsArray(tags) || chosen < 0 || !json_place(&text, path, &line, &column))
		return NULL;
	const char *at = k->text;

	for (; line > 1 && at != NULL; line--)
		at = strchr(at, '\n') != NULL ? strchr(at, '\n') + 1 : NULL;
	for (; at != NULL && column > 1 && *at != '\0'; at++)
		column -= (at[1] & 0xC0) != 0x80; /* the column counts characters, not the bytes of UTF-8 */
	if (at == NULL || *at != '"')
		return NULL;
	*first = at;
	for (at++; *at != '\0' && *at != '"'; at++)
		at += *at == '\\' && at[1] != '\0';
	return *at == '"' ? at + 1 : NULL;
}

/* Returns the text of a definition with one more tag; all other bytes stay the same. Returns NULL if the text has no
 * tags. */
static const char *with_tag(struct extraction *e, const struct known *k, const char *tag)
{
	const char *first = NULL, *behind = behind_tag(k, &first), *line = first;

	if (behind == NULL)
		return NULL;
	while (line > k->text && (line[-1] == ' ' || line[-1] == '\t'))
		line--;
	bool own_line = line > k->text && line[-1] == '\n';

	return arena_printf(e->arena, "%.*s,%s%.*s\"%s\"%s", (int)(behind - k->text), k->text, own_line ? "\n" : " ",
			    own_line ? (int)(first - line) : 0, line, tag, behind);
}

/* Adds the model's tag to a definition that is already in the dataset. */
static void take_known(struct extraction *e, struct known *k)
{
	const char *tag = arena_printf(e->arena, "model:%s", e->request->model->name), *name = full_name(e, k->op_type, k->name);

	if (k->created)
		return;
	if (has_tag(k->json, tag)) {
		if (!is_listed(&e->result->unchanged, name) && !is_listed(&e->result->tagged, name))
			string_list_add(&e->result->unchanged, name);
		return;
	}
	k->new_text = with_tag(e, k, tag);
	if (k->new_text == NULL) {
		string_list_add(&e->result->left_out, arena_printf(e->arena, "%s is equivalent to the new definition, "
		    "but has no list of tags to which the tag %s could be added", k->path, tag));
		return;
	}
	cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(k->json, "tags"), cJSON_CreateString(tag));
	string_list_add(&e->result->tagged, name);
}

static void note_conflict(struct extraction *e, const struct draft *draft, const struct known *other, const char *name)
{
	struct extract_conflict *more = arena_array(e->arena, (size_t)e->result->conflict_count + 1, sizeof *more);
	struct buf text = {0};

	if (e->result->conflict_count > 0)
		memcpy(more, e->result->conflicts, (size_t)e->result->conflict_count * sizeof *more);
	buf_text(&text, "[");
	meaning_write_differences(&draft->meaning, &other->meaning, &text);
	buf_text(&text, "]");
	more[e->result->conflict_count++] = (struct extract_conflict){.name = full_name(e, draft->op_type, name),
								      .existing = full_name(e, other->op_type, other->name),
								      .existing_text = other->json != NULL ? other->text : NULL,
								      .differences = arena_string(e->arena, text.data),
								      .same_interface = meaning_same_interface(&draft->meaning, &other->meaning)};
	e->result->conflicts = more;
	buf_free(&text);
}

/* Returns the first of the names NAME, NAME_v2, NAME_v3, … that no definition has yet. */
static const char *free_name(struct extraction *e, const struct draft *draft)
{
	const char *name = draft->name;

	for (int version = 2; version < VERSIONS_MAX && same_name(e, draft->op_type, name) != NULL; version++)
		name = arena_printf(e->arena, "%s_v%d", draft->name, version);
	return name;
}

static void take_new(struct extraction *e, struct draft *draft)
{
	const struct known *other = same_name(e, draft->op_type, draft->name);
	const char *name = free_name(e, draft);
	struct buf text = {0};

	if (other != NULL) {
		note_conflict(e, draft, other, name);
		cJSON_ReplaceItemInObjectCaseSensitive(draft->json, "name", cJSON_CreateString(name));
	}
	draft_write(draft->json, &text);
	struct known *k = add_known(e);

	*k = (struct known){.op_type = draft->op_type,
			    .name = name,
			    .path = arena_printf(e->arena, "%s/definitions/%s/%s.json", e->request->root, draft->op_type, name),
			    .json = draft->json,
			    .meaning = draft->meaning,
			    .new_text = arena_string(e->arena, text.data),
			    .created = true};
	draft->json = NULL;
	buf_free(&text);
}

static bool wants_op_type(const char *list, const char *op_type)
{
	size_t length = strlen(op_type);

	for (const char *at = list; at != NULL && *at != '\0'; at += *at == ',') {
		size_t part = strcspn(at, ",");

		if (part == length && memcmp(at, op_type, length) == 0)
			return true;
		at += part;
	}
	return list == NULL;
}

static void leave_out(struct extraction *e, const struct rule *rule, const char *why)
{
	const char *text = arena_printf(e->arena, "%s (%s): %s", rule->module, rule->template_name, why);

	if (!is_listed(&e->result->left_out, text))
		string_list_add(&e->result->left_out, text);
}

/* Makes the kernel definition that a rule describes, for these degrees of parallelism. */
static int extract_one(struct extraction *e, const struct rule *rule, struct degrees *degrees)
{
	struct err why = {""};
	struct draft draft = {0};
	enum draft_answer answer = draft_make(rule, degrees, &draft, e->arena, &why);

	if (answer == DRAFT_ERROR)
		return err_set(e->err, "%s", why.text);
	if (answer == DRAFT_LEFT_OUT) {
		leave_out(e, rule, why.text);
		return 0;
	}
	struct known *known = same_meaning(e, &draft);

	if (known != NULL)
		take_known(e, known);
	else
		take_new(e, &draft);
	draft_free(&draft);
	return 0;
}

static bool fits_page_size(const struct rule *rule, int64_t page_size)
{
	return rule->pages == PAGES_ANY || (rule->pages == PAGES_ONE) == (page_size == 1);
}

static int extract_rule(struct extraction *e, const struct rule *rule)
{
	const struct extract_request *r = e->request;

	if (rule->template_name == NULL || !wants_op_type(r->op_types, rule->op_type))
		return 0;
	if (read_op_type(e, rule->op_type) < 0)
		return -1;
	for (int t = 0; t < r->tp.count; t++)
		for (int x = 0; x < r->ep.count; x++)
			for (int p = 0; p < r->page_sizes.count; p++) {
				struct degrees degrees = {.model = r->model,
							  .architecture = &e->architecture,
							  .tp = r->tp.values[t],
							  .ep = r->ep.values[x],
							  .page_size = r->page_sizes.values[p]};

				if (fits_page_size(rule, degrees.page_size) && extract_one(e, rule, &degrees) < 0)
					return -1;
			}
	return 0;
}

static int check_required(struct extraction *e)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, json_member(e->architecture.own, "required"))
	{
		int64_t value;
		const char *source;

		if (!model_integer(e->request->model, item->valuestring, &value, &source))
			return model_field_error(e->request->model, item->valuestring, "an integer above 0", e->err);
	}
	return 0;
}

/* Checks that each degree of expert parallelism divides the number of experts, if the model has experts. */
static int check_expert_degrees(struct extraction *e)
{
	for (int i = 0; i < e->request->ep.count; i++) {
		struct degrees degrees = {
		    .model = e->request->model, .architecture = &e->architecture, .tp = 1, .ep = e->request->ep.values[i], .page_size = 1};
		int64_t value;

		if (degrees_evaluate(&degrees, "experts / ep", &value) == EXPRESSION_INDIVISIBLE && degrees.field_count > 0)
			return err_set(e->err, "ep %lld does not divide %s of %s, which is %lld", (long long)degrees.ep,
				       degrees.fields[0].name, e->request->model->name, (long long)degrees.fields[0].value);
	}
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lists the definitions that have the tags of several models. Sorts the definitions, because the system lists the files
 * of a folder in no fixed order. */
static void note_shared(struct extraction *e)
{
	for (int i = 0; i < e->known_count; i++) {
		const struct known *k = &e->known[i];
		const char *models = "";
		const cJSON *item;
		int count = 0;

		cJSON_ArrayForEach(item, json_member(k->json, "tags"))
			if (cJSON_IsString(item) && strncmp(item->valuestring, "model:", 6) == 0)
				models = arena_printf(e->arena, "%s%s%s", models, count++ > 0 ? ", " : "", item->valuestring + 6);
		if (count > 1)
			string_list_add(&e->result->shared, arena_printf(e->arena, "%s/%s: %s", k->op_type, k->name, models));
	}
	if (e->result->shared.count > 0)
		qsort(e->result->shared.items, (size_t)e->result->shared.count, sizeof *e->result->shared.items, by_text);
}

static void note_not_covered(struct extraction *e)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, json_member(e->architecture.own, "not_covered"))
		string_list_add(&e->result->not_covered, arena_string(e->arena, item->valuestring));
}

/* Checks each op_type in the request: at least one rule of the architecture must have this op_type and a template. */
static int check_op_types(struct extraction *e)
{
	char *copy = arena_string(e->arena, e->request->op_types != NULL ? e->request->op_types : ""), *rest = NULL;

	for (char *name = strtok_r(copy, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
		bool found = false;

		for (int i = 0; i < e->architecture.rule_count; i++)
			found = found || (e->architecture.rules[i].template_name != NULL && strcmp(e->architecture.rules[i].op_type, name) == 0);
		if (!found)
			return err_set(e->err, "no module of %s has definitions of op_type '%s'", e->request->model->name, err_show(name).text);
	}
	return 0;
}

static const struct extract_file *file_named(const struct extraction *e, const char *name)
{
	for (int i = 0; i < e->result->file_count; i++)
		if (strcmp(arena_printf(e->arena, "%s/%s", e->result->files[i].op_type, e->result->files[i].name), name) == 0)
			return &e->result->files[i];
	return NULL;
}

/* Returns `path` with symbolic links resolved, so that a write changes the file and keeps the links. */
static const char *behind_links(struct extraction *e, const char *path)
{
	char *real = realpath(path, NULL);
	const char *copy = real != NULL ? arena_string(e->arena, real) : path;

	free(real);
	return copy;
}

static void list_files(struct extraction *e)
{
	struct extract_result *r = e->result;

	r->files = arena_array(e->arena, (size_t)e->known_count, sizeof *r->files);
	for (int i = 0; i < e->known_count; i++) {
		const struct known *k = &e->known[i];

		if (k->new_text != NULL)
			r->files[r->file_count++] =
			    (struct extract_file){.op_type = arena_string(e->arena, k->op_type), /* a copy, because the
												  * file list lives
												  * longer than the
												  * architecture */
						  .name = k->name,
						  .path = k->created ? k->path : behind_links(e, k->path),
						  .below = k->path + strlen(e->request->root) + 1,
						  .text = k->new_text,
						  .old_text = k->created ? NULL : k->text,
						  .keep = true};
	}
	for (int i = 0; i < r->conflict_count; i++)
		r->conflicts[i].file = file_named(e, r->conflicts[i].name);
}

static int extract_rules(struct extraction *e)
{
	if (check_required(e) < 0 || check_op_types(e) < 0 || check_expert_degrees(e) < 0)
		return -1;
	for (int i = 0; i < e->architecture.rule_count; i++)
		if (extract_rule(e, &e->architecture.rules[i]) < 0)
			return -1;
	note_shared(e);
	note_not_covered(e);
	list_files(e);
	return 0;
}

int extract_plan(const struct extract_request *request, struct extract_result *result, struct arena *arena, struct err *err)
{
	const struct string_list none = {.arena = arena};
	struct extraction e = {.request = request, .result = result, .arena = arena, .err = err, .read = none};

	*result = (struct extract_result){
	    .written = none, .tagged = none, .unchanged = none, .left_out = none, .not_covered = none, .shared = none};
	if (request->model->architecture == NULL)
		return err_set(err, "the table of models has no architecture for %s; pass the model's config.json with "
				    "--config", request->model->name);
	struct architectures all = {0};

	if (architecture_find(&all, request->model, &e.architecture, arena, err) < 0) {
		architectures_free(&all);
		return -1;
	}
	sglang_witness_ask(request->sglang, request->model, &e.architecture, &result->sglang, arena);
	int rc = extract_rules(&e);

	for (int i = 0; i < e.known_count; i++)
		cJSON_Delete(e.known[i].json);
	architectures_free(&all);
	return rc;
}

static const char *folder_of(const char *path, struct arena *arena)
{
	return arena_copy(arena, path, (size_t)(strrchr(path, '/') - path));
}

/* After a failed write, restores the files that were written, and removes the folders that were created for them. */
static void roll_back(const struct extract_result *result, int count, struct arena *arena)
{
	struct err ignored;

	for (int i = count - 1; i >= 0; i--) {
		const struct extract_file *file = &result->files[i];

		if (file->keep && file->old_text == NULL)
			unlink(file->path);
		else if (file->keep)
			file_replace(file->path, file->old_text, strlen(file->old_text), &ignored);
		if (file->in_new_folder)
			rmdir(folder_of(file->path, arena));
	}
}

int extract_write(struct extract_result *result, struct arena *arena, struct err *err)
{
	for (int i = 0; i < result->file_count; i++) {
		struct extract_file *file = &result->files[i];

		file->in_new_folder = file->keep && access(folder_of(file->path, arena), F_OK) != 0;
		if (file->keep && file_replace(file->path, file->text, strlen(file->text), err) < 0) {
			roll_back(result, i, arena);
			return -1;
		}
	}
	for (int i = 0; i < result->file_count; i++)
		if (result->files[i].keep && result->files[i].old_text == NULL)
			string_list_add(&result->written, arena_printf(arena, "%s/%s", result->files[i].op_type, result->files[i].name));
	return 0;
}
