#include "extract/sglang_witness.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "models/architecture.h"

#define SOURCE_FOLDER "python/sglang/srt"
#define MODELS_FOLDER SOURCE_FOLDER "/models"

enum { FILE_BYTES = 4 << 20, FILES_MOST = 2000, IMPORTS_MOST = 16, PACKAGES_MOST = 4 };

struct asking {
	const char *checkout;
	const struct model *model;
	const struct architecture *architecture;
	struct sglang_witness *out;
	struct string_list read; /* names, without ".py", of the files whose text is in `all` */
	struct buf own, all;	 /* own: text of the model file; all: also the texts of the files that it imports */
	struct arena *arena;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* ---- the files --------------------------------------------------------------------------------------------------- */

/* Reads SOURCE_FOLDER/{path}.py. */
static bool read_source(const struct asking *a, const char *path, struct buf *out)
{
	struct err ignored;
	const char *file = arena_printf(a->arena, "%s/" SOURCE_FOLDER "/%s.py", a->checkout, path);

	return file_read(AT_FDCWD, file, FILE_BYTES, out, NULL, &ignored) == FILE_OK && out->length > 0 &&
	       memchr(out->data, '\0', out->length) == NULL;
}

static bool read_file(const struct asking *a, const char *name, struct buf *out)
{
	return read_source(a, arena_printf(a->arena, "models/%s", name), out);
}

/* Returns whether the text has "class NAME(" or "class NAME:" at the beginning of a line. */
static bool has_class(const char *text, const char *name)
{
	const size_t length = strlen(name);

	for (const char *at = strstr(text, "class "); at != NULL; at = strstr(at + 1, "class ")) {
		const char *word = at + strlen("class ");

		if ((at == text || at[-1] == '\n') && strncmp(word, name, length) == 0 && (word[length] == '(' || word[length] == ':'))
			return true;
	}
	return false;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lists the names of the model files, sorted and without ".py". */
static struct string_list list_files(const struct asking *a)
{
	struct string_list names = {.arena = a->arena};
	DIR *folder = opendir(arena_printf(a->arena, "%s/" MODELS_FOLDER, a->checkout));
	struct dirent *entry;

	while (folder != NULL && names.count < FILES_MOST && (entry = readdir(folder)) != NULL) {
		size_t length = strlen(entry->d_name);

		if (entry->d_name[0] != '.' && length > 3 && strcmp(entry->d_name + length - 3, ".py") == 0)
			string_list_add(&names, arena_copy(a->arena, entry->d_name, length - 3));
	}
	if (folder != NULL)
		closedir(folder);
	if (names.count > 0)
		qsort(names.items, (size_t)names.count, sizeof *names.items, by_text);
	return names;
}

/* Finds the model file that defines the class of the architecture, and reads this file. */
static bool find_file(struct asking *a)
{
	const struct string_list names = list_files(a);

	for (int i = 0; i < names.count; i++)
		if (read_file(a, names.items[i], &a->own) && has_class(a->own.data, a->model->architecture)) {
			string_list_add(&a->read, names.items[i]);
			return true;
		}
	return false;
}

static bool was_read(const struct asking *a, const char *name)
{
	for (int i = 0; i < a->read.count; i++)
		if (strcmp(a->read.items[i], name) == 0)
			return true;
	return false;
}

/* Adds the texts of the model files that `text` imports directly or indirectly. */
static void add_imports(struct asking *a, const char *text)
{
	static const char head[] = "from sglang.srt.models.";
	struct buf bytes = {0};

	for (const char *at = strstr(text, head); at != NULL && a->read.count < IMPORTS_MOST; at = strstr(at + 1, head)) {
		const char *word = at + strlen(head);
		size_t length = 0;

		while (is_word(word[length]))
			length++;
		const char *name = arena_copy(a->arena, word, length);

		if (was_read(a, name) || !read_file(a, name, &bytes))
			continue;
		string_list_add(&a->read, name);
		buf_add(&a->all, bytes.data, bytes.length);
		add_imports(a, arena_string(a->arena, bytes.data));
	}
	buf_free(&bytes);
}

static bool has_word(const char *text, const char *word)
{
	const size_t length = strlen(word);

	for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
		if ((at == text || !is_word(at[-1])) && !is_word(at[length]))
			return true;
	return false;
}

/* Returns the module from which the text imports a name, as a path below SOURCE_FOLDER. Returns NULL if the text does
 * not import the name. */
static const char *imported_from(const char *text, const char *name, struct arena *arena)
{
	static const char head[] = "from sglang.srt.";

	for (const char *at = strstr(text, head); at != NULL; at = strstr(at + 1, head)) {
		const char *module = at + strlen(head), *names = module + strcspn(module, " \n");
		char *path = arena_copy(arena, module, (size_t)(names - module));

		if (strncmp(names, " import ", 8) != 0)
			continue;
		names += 8;
		if (!has_word(arena_copy(arena, names, strcspn(names, *names == '(' ? ")" : "\n")), name))
			continue;
		for (char *c = path; *c != '\0'; c++)
			*c = *c == '.' ? '/' : *c;
		return path;
	}
	return NULL;
}

/* Adds the text of the file that defines an imported class. If the text imports the class from a package, follows the
 * import in the package's __init__.py. */
static void add_class(struct asking *a, const char *name)
{
	struct buf bytes = {0};
	const char *text = a->all.data;

	for (int i = 0; text != NULL && i < PACKAGES_MOST; i++) {
		const char *path = imported_from(text, name, a->arena);

		if (path != NULL && read_source(a, path, &bytes)) {
			buf_add(&a->all, bytes.data, bytes.length);
			break;
		}
		text = path != NULL && read_source(a, arena_printf(a->arena, "%s/__init__", path), &bytes)
			   ? arena_string(a->arena, bytes.data)
			   : NULL;
	}
	buf_free(&bytes);
}

/* ---- what the text says ------------------------------------------------------------------------------------------ */

/* Checks whether the text at `at` assigns to a name on one line, as in "name = …" or "name: type = …". If so, returns
 * the text after the '=' and sets `length` to the length of the name; else returns NULL. */
static const char *assigned(const char *at, size_t *length)
{
	for (*length = 0; is_word(at[*length]); (*length)++)
		;
	const char *rest = at + *length;

	rest += strspn(rest, " ");
	if (*rest == ':')
		rest += strcspn(rest, "=\n");
	return *length > 0 && rest[0] == '=' && rest[1] != '=' ? rest + 1 : NULL;
}


/* Returns the name of the class that the value calls, for example "RMSNorm" for "RMSNorm(x)" and for "(RMSNorm(x) if
 * y". Returns NULL if the name does not end with Linear or Norm. */
static const char *layer_class(const char *value, struct arena *arena)
{
	size_t length = 0;

	value += strspn(value, " ");
	value += *value == '(';
	value += strspn(value, " \n");
	while (is_word(value[length]))
		length++;
	const char *name = arena_copy(arena, value, length);
	bool linear = length >= 6 && strcmp(name + length - 6, "Linear") == 0, norm = length >= 4 && strcmp(name + length - 4, "Norm") == 0;

	return value[length] == '(' && (linear || norm) ? name : NULL;
}

static const char *last_part(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot != NULL ? dot + 1 : path;
}

/* Returns the member "names" or "classes" of "sglang" in architectures.json. */
static const cJSON *of_sglang(const struct asking *a, const char *member)
{
	return json_member(json_member(a->architecture->own, "sglang"), member);
}

/* Returns whether `name` is the last part of a module's path in the architecture. Several models have this
 * architecture, so the function also returns true for a module that only other models have. */
static bool is_module(const struct asking *a, const char *name)
{
	const cJSON *block, *rule, *blocks = json_member(a->architecture->root, "blocks");

	cJSON_ArrayForEach(block, json_member(a->architecture->own, "blocks"))
		cJSON_ArrayForEach(rule, json_member(blocks, block->valuestring))
			if (strcmp(last_part(json_text_of(rule, "module")), name) == 0)
				return true;
	return false;
}

/* Returns whether the text assigns to self.NAME. A longer name that begins with NAME also counts, unless another module
 * has this longer name. For example, self.attn_mqa counts as a layer of `attn`. */
static bool has_layer(const struct asking *a, const char *name)
{
	const size_t own = strlen(name);
	size_t length;

	for (const char *at = strstr(a->all.data, "self."); at != NULL; at = strstr(at + 1, "self."))
		if (strncmp(at + 5, name, own) == 0 && assigned(at + 5, &length) != NULL &&
		    (length == own || !is_module(a, arena_copy(a->arena, at + 5, length))))
			return true;
	return false;
}

/* ---- disagreements ----------------------------------------------------------------------------------------------- */

static void disagree(struct asking *a, const char *text)
{
	for (int i = 0; i < a->out->disagreements.count; i++)
		if (strcmp(a->out->disagreements.items[i], text) == 0)
			return;
	string_list_add(&a->out->disagreements, text);
}

/* Evaluates the axis lengths of a rule, and checks that the model file reads each field of the configuration on which
 * these lengths depend. */
static void check_fields(struct asking *a, const struct rule *rule)
{
	struct degrees degrees = {.model = a->model, .architecture = a->architecture, .tp = 1, .ep = 1, .page_size = 1};
	const cJSON *item;
	int64_t value;

	cJSON_ArrayForEach(item, rule->axes) degrees_evaluate(&degrees, item->valuestring, &value);
	for (int i = 0; i < degrees.field_count; i++)
		if (!has_word(a->all.data, degrees.fields[i].name))
			disagree(a, arena_printf(a->arena, "the model file does not read %s, but reftest's mapping "
			    "uses this field for %s",
						 degrees.fields[i].name, rule->module));
}

/* Compares a rule with the model file. Skips samplers, because they are not part of SGLang's model files. */
static void check_rule(struct asking *a, const struct rule *rule)
{
	const char *name = last_part(rule->module);

	if (rule->template_name == NULL || strcmp(name, "sampler") == 0)
		return;
	const char *other = json_text_of(of_sglang(a, "names"), rule->module);

	if (!has_layer(a, name) && (other == NULL || !has_layer(a, other)))
		disagree(a, arena_printf(a->arena, "the model file has no %s, which is %s in reftest's mapping",
		    name, rule->module));
	check_fields(a, rule);
}

/* Returns whether the mapping contains this name as the name of a layer, as SGLang's name for a layer, or as the name
 * of a part under "not_covered". */
static bool in_mapping(const struct asking *a, const char *name)
{
	const cJSON *block, *rule, *item, *blocks = json_member(a->architecture->root, "blocks");

	cJSON_ArrayForEach(block, json_member(a->architecture->own, "blocks"))
		cJSON_ArrayForEach(rule, json_member(blocks, block->valuestring))
		{
			const char *known = last_part(json_text_of(rule, "module"));

			if (strncmp(name, known, strlen(known)) == 0)
				return true;
		}
	cJSON_ArrayForEach(item, of_sglang(a, "names"))
		if (strcmp(name, item->valuestring) == 0)
			return true;
	cJSON_ArrayForEach(item, json_member(a->architecture->own, "not_covered"))
		if (has_word(item->valuestring, name))
			return true;
	return false;
}

/* Reports each linear layer and norm that is in the model file but not in the mapping. */
static void check_layers(struct asking *a)
{
	for (const char *at = strstr(a->own.data, "self."); at != NULL; at = strstr(at + 1, "self.")) {
		size_t length;
		const char *value = assigned(at + 5, &length), *name = arena_copy(a->arena, at + 5, length),
			   *layer = value != NULL ? layer_class(value, a->arena) : NULL;

		if (layer != NULL && !in_mapping(a, name))
			disagree(a, arena_printf(a->arena, "the model file has %s (%s), which is not in reftest's "
			    "mapping", name, layer));
	}
}

void sglang_witness_ask(const char *checkout, const struct model *model, const struct architecture *architecture,
			struct sglang_witness *out, struct arena *arena)
{
	struct asking a = {.checkout = checkout, .model = model, .architecture = architecture, .out = out, .read = {.arena = arena}, .arena = arena};

	const cJSON *item;

	*out = (struct sglang_witness){.disagreements = {.arena = arena}};
	if (checkout != NULL && find_file(&a)) {
		out->file = arena_printf(arena, MODELS_FOLDER "/%s.py", a.read.items[0]);
		buf_add(&a.all, a.own.data, a.own.length);
		add_imports(&a, a.own.data);
		cJSON_ArrayForEach(item, of_sglang(&a, "classes")) add_class(&a, item->valuestring);
		for (int i = 0; i < architecture->rule_count; i++)
			check_rule(&a, &architecture->rules[i]);
		check_layers(&a);
	}
	buf_free(&a.own);
	buf_free(&a.all);
}
