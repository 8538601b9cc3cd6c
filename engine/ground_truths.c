#include "engine/ground_truths.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/show.h"
#include "engine/solution_truth.h"
#include "workers/pool/machine_resources.h"

static const char *copy_of(const cJSON *object, const char *key, struct arena *arena)
{
	const char *text = json_text_of(object, key);

	return text == NULL ? NULL : arena_string(arena, text);
}

static int add_families(const cJSON *object, bool never, struct provider_family *to, struct arena *arena)
{
	const cJSON *item;
	int count = 0;

	if (!cJSON_IsObject(object))
		return 0;
	cJSON_ArrayForEach(item, object) to[count++] =
	    (struct provider_family){arena_string(arena, item->string),
				     cJSON_IsString(item) ? arena_string(arena, item->valuestring) : NULL, never,
				     false};
	return count;
}

static bool listed(const cJSON *names, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, names) if (cJSON_IsString(item) && strcmp(item->valuestring, name) == 0) return true;
	return false;
}

static void read_fact(const cJSON *json, struct arena *arena, struct provider_fact *out)
{
	const cJSON *families = json_member(json, "families"), *never = json_member(json, "never");
	size_t room = (size_t)(cJSON_GetArraySize(families) + cJSON_GetArraySize(never));
	struct provider_family *all = arena_array(arena, room, sizeof *all);
	const char *name = copy_of(json, "name", arena);

	*out = (struct provider_fact){.name = name == NULL ? "" : name,
				      .version = copy_of(json, "version", arena),
				      .why = copy_of(json, "why", arena),
				      .families = all};
	out->family_count = add_families(families, false, all, arena);
	out->family_count += add_families(never, true, all + out->family_count, arena);
	for (int i = 0; i < out->family_count; i++)
		all[i].on_request = listed(json_member(json, "on_request"), all[i].family);
}

static int read_facts(const char *answer, struct arena *arena, const struct provider_fact **out, int *count,
		      struct err *err)
{
	const struct json_text text = {"the provider's answer", answer, strlen(answer), 1};
	cJSON *json = json_parse(&text, err);
	const cJSON *list = json_member(json, "providers"), *item;
	struct provider_fact *facts = arena_array(arena, (size_t)cJSON_GetArraySize(list), sizeof *facts);

	*out = facts;
	*count = 0;
	cJSON_ArrayForEach(item, list) read_fact(item, arena, &facts[(*count)++]);
	cJSON_Delete(json);
	return json == NULL ? -1 : 0;
}

int ground_truths_facts(struct program *program, const char *python, const char *device_class, struct arena *arena,
			const struct provider_fact **out, int *count, struct err *err)
{
	const char *key = arena_printf(arena, "providers of %s", machine_providers_key(python, device_class, arena)),
		   *answer;

	if (program->store != NULL && store_fact(program->store, key, arena, &answer, NULL) == CACHE_HIT &&
	    machine_providers_hold(python, answer))
		return read_facts(answer, arena, out, count, err);
	if (machine_providers(python, device_class, arena, &answer, err) != 0 ||
	    read_facts(answer, arena, out, count, err) != 0)
		return -1;
	if (program->store != NULL && store_writable(program->store))
		store_put_fact(program->store, key, answer, NULL);
	return 0;
}

/* Splits the list of --ground-truth at commas. Returns -1 if the list is empty, has more than GROUND_TRUTHS_MAX names,
 * or contains a name twice. */
static int split_names(const char *text, struct arena *arena, struct truth_choice *out, struct err *err)
{
	out->names = arena_array(arena, GROUND_TRUTHS_MAX, sizeof *out->names);
	if (*text == '\0')
		return err_set(err, "--ground-truth names no ground truth (it takes auto, all, or names separated by "
				    "commas)");
	while (*text != '\0') {
		size_t length = strcspn(text, ",");
		const char *name = arena_copy(arena, text, length);

		for (int i = 0; i < out->name_count; i++)
			if (strcmp(out->names[i], name) == 0)
				return err_set(err, "--ground-truth names '%s' twice; remove one", err_show(name).text);
		if (out->name_count == GROUND_TRUTHS_MAX)
			return err_set(err, "--ground-truth names more than %d ground truths; remove some", GROUND_TRUTHS_MAX);
		out->names[out->name_count++] = name;
		text += length + (text[length] == ',');
	}
	return 0;
}

/* Checks that there is room for all ground truths that one case may use: all libraries of this machine, builtin, and
 * the dataset's own truth. Without this check, --ground-truth all could silently leave out a library, which would then
 * seem to agree with the other ground truths. */
static int check_room(const struct truth_choice *choice, struct err *err)
{
	if ((choice->name_count > 0 && !choice->automatic && !choice->all) || choice->fact_count + 2 <= GROUND_TRUTHS_MAX)
		return 0;
	return err_set(err,
		       "this machine has %d ground truths, and one case can use at most %d of them; choose some with "
		       "--ground-truth NAME,NAME",
		       choice->fact_count + 2, GROUND_TRUTHS_MAX);
}

/* Returns the text after "solution:" in the name, or "" if the name is "solution". Returns NULL for other names. */
static const char *solution_word(const char *name)
{
	size_t length = strlen(SOLUTION_TRUTH);

	if (strncmp(name, SOLUTION_TRUTH, length) != 0)
		return NULL;
	return name[length] == '\0' ? "" : name[length] == ':' && name[length + 1] != '\0' ? name + length + 1 : NULL;
}

/* Returns whether `name` is the name of one of the dataset's own ground truths. */
static bool is_own(const char *name)
{
	return strcmp(name, TRUTH_NAME) == 0 || strcmp(name, CHAIN_TRUTH) == 0 || solution_word(name) != NULL;
}

bool ground_truths_use_solutions(const struct truth_choice *choice)
{
	for (int i = 0; i < choice->name_count; i++)
		if (solution_word(choice->names[i]) != NULL)
			return true;
	return false;
}

static const struct provider_fact *fact_named(const struct truth_choice *choice, const char *name)
{
	for (int i = 0; i < choice->fact_count; i++)
		if (strcmp(choice->facts[i].name, name) == 0)
			return &choice->facts[i];
	return NULL;
}

/* Each row has the two tables of python/libraries/ in which the calls of one library are. If --ground-truth names the
 * first of the two tables, the second table is used too, directly after it. */
static const char *const both[][2] = {{"sglang", "sgl_kernel"}};

static bool chosen(const struct truth_choice *choice, const char *name)
{
	for (int i = 0; i < choice->name_count; i++)
		if (strcmp(choice->names[i], name) == 0)
			return true;
	return false;
}

/* For each library with two tables, inserts the second table after the first one if the list does not contain it
 * yet. */
static void add_second_tables(struct truth_choice *choice)
{
	for (size_t k = 0; k < sizeof both / sizeof *both; k++)
		for (int i = 0; i < choice->name_count; i++) {
			if (strcmp(choice->names[i], both[k][0]) != 0 || chosen(choice, both[k][1]) ||
			    fact_named(choice, both[k][1]) == NULL || choice->name_count == GROUND_TRUTHS_MAX)
				continue;
			memmove(&choice->names[i + 2], &choice->names[i + 1],
				(size_t)(choice->name_count - i - 1) * sizeof *choice->names);
			choice->names[i + 1] = both[k][1];
			choice->name_count++;
		}
}

static int check_names(const struct truth_choice *choice, struct err *err)
{
	struct buf known = {0};
	int rc = 0;

	for (int i = 0; i < choice->fact_count; i++)
		buf_printf(&known, "%s, ", choice->facts[i].name);
	for (int i = 0; rc == 0 && i < choice->name_count; i++)
		if (strcmp(choice->names[i], "builtin") != 0 && !is_own(choice->names[i]) &&
		    fact_named(choice, choice->names[i]) == NULL)
			rc = choice->trouble != NULL
				 ? err_set(err, "ground truth '%s' cannot be used: %s",
					   err_show(choice->names[i]).text, choice->trouble)
				 : err_set(
				       err,
				       "unknown ground truth '%s' (--ground-truth takes auto, all, or names of %sbuiltin, "
				       TRUTH_NAME ", " CHAIN_TRUTH ", " SOLUTION_TRUTH ", " SOLUTION_TRUTH ":NAME)",
				       err_show(choice->names[i]).text, known.data == NULL ? "" : known.data);
	buf_free(&known);
	return rc;
}

/* Returns whether --ground-truth names ground truths, and none of them is a library. */
static bool names_no_library(const struct truth_choice *choice)
{
	for (int i = 0; i < choice->name_count; i++)
		if (!is_own(choice->names[i]) && strcmp(choice->names[i], "builtin") != 0)
			return false;
	return choice->name_count > 0;
}

/* Returns whether `word` is the first item of the list. */
static bool first_is(const char *list, const char *word)
{
	size_t length = strlen(word);

	return strncmp(list, word, length) == 0 && (list[length] == '\0' || list[length] == ',');
}

int ground_truths_choose(struct program *program, const char *text, const char *python, const char *device_class,
			 struct arena *arena, struct truth_choice *out, struct err *err)
{
	struct err why = {""};
	bool cpu = strncmp(device_class, "sm_", 3) != 0;

	*out = (struct truth_choice){.automatic = text == NULL || first_is(text, "auto")};
	out->all = text != NULL && first_is(text, "all");
	if (!out->automatic && !out->all && split_names(text, arena, out, err) != 0)
		return -1;
	if ((out->automatic || out->all) && text != NULL && strchr(text, ',') != NULL &&
	    split_names(strchr(text, ',') + 1, arena, out, err) != 0)
		return -1;
	if ((out->automatic && cpu && out->name_count == 0) || (!out->all && (cpu || !out->automatic) && names_no_library(out)))
		return 0;
	if (python == NULL)
		out->trouble = "no Python interpreter was found";
	else if (ground_truths_facts(program, python, device_class, arena, &out->facts, &out->fact_count, &why) != 0)
		out->trouble = arena_string(arena, why.text);
	if (out->trouble != NULL && out->all)
		return err_set(err, "cannot list the ground truths of this machine: %s", out->trouble);
	if (out->trouble != NULL && out->automatic)
		show_print(stderr, "reftest: %s; the only ground truth of this run is `builtin`\n", out->trouble);
	add_second_tables(out);
	return check_room(out, err) != 0 ? -1 : check_names(out, err);
}

/* Returns whether --ground-truth auto or --ground-truth all uses the library for this op family. A library that
 * --ground-truth names is always used. */
static bool asks(const struct truth_choice *choice, const struct provider_fact *fact, const char *family)
{
	for (int i = 0; i < fact->family_count; i++) {
		const struct provider_family *entry = &fact->families[i];

		if (strcmp(entry->family, family) == 0)
			return fact->version != NULL && !entry->never && entry->why == NULL &&
			       !(choice->automatic && entry->on_request);
	}
	return false;
}

/* Appends a ground truth, unless the list contains it. If the list is full, marks its last ground truth as refused,
 * with the message that the definition has too many ground truths. */
static void add_truth(struct truths *truths, struct truth *items, struct truth truth, struct arena *arena)
{
	for (int i = 0; i < truths->count; i++)
		if (strcmp(items[i].name, truth.name) == 0)
			return;
	if (truths->count < GROUND_TRUTHS_MAX)
		items[truths->count++] = truth;
	else
		refuse_truth(&items[GROUND_TRUTHS_MAX - 1],
			     "the definition has more ground truths than one case can use; "
			     "choose some with --ground-truth NAME,NAME",
			     arena);
}

static void add(struct truths *truths, struct truth *items, const char *name, const char *version, struct arena *arena)
{
	add_truth(truths, items, (struct truth){.name = name, .version = version}, arena);
}

static void add_refused(struct truths *truths, struct truth *items, const char *name, const char *why,
			struct arena *arena)
{
	struct truth truth = {.name = name};

	refuse_truth(&truth, why, arena);
	add_truth(truths, items, truth, arena);
}

/* If --ground-truth names a library that this machine cannot use, this also returns true; the run reports later why the
 * library cannot be used. */
bool ground_truths_use_libraries(const struct truth_choice *choice)
{
	for (int i = 0; i < choice->name_count; i++)
		if (fact_named(choice, choice->names[i]) != NULL)
			return true;
	bool asked = choice->name_count == 0 || choice->automatic || choice->all;

	for (int i = 0; asked && i < choice->fact_count; i++)
		for (int k = 0; k < choice->facts[i].family_count; k++)
			if (asks(choice, &choice->facts[i], choice->facts[i].families[k].family))
				return true;
	return false;
}

/* The only key in the table of python/libraries/fi_api.py. The key "*" means every op family: fi_api calls the function
 * that the definition names, so it does not depend on the family. */
static const char any_family[] = "*";

/* Appends the ground truth that calls the function `fi_api`. The version of this ground truth contains the call,
 * because no other field of a fingerprint contains it. */
static void add_fi_api(const struct provider_fact *fact, const char *fi_api, struct truths *out, struct truth *items,
		       struct arena *arena)
{
	const char *version = fact->version == NULL ? "none" : fact->version;

	if (fi_api == NULL)
		add_refused(out, items, fact->name, "the definition has no tag \"fi_api:\" that names a function", arena);
	else
		add(out, items, fact->name, arena_printf(arena, "%s, %s", version, fi_api), arena);
}

/* Appends the ground truths of "auto" and "all". If the definition has no op family, "auto" uses first the definition's
 * chain (engine/dataset_truth.h) and then the dataset's own truth. The function that a tag "fi_api:" names is used only
 * if the definition has no op family, because the call cannot pass the constants of the reference, such as the base of
 * rope. */
static void add_available(const struct truth_choice *choice, const struct op_entry *op, const struct own_truth *own,
			  int own_count, const char *fi_api, struct truths *out, struct truth *items,
			  struct arena *arena)
{
	for (int i = 0; i < choice->fact_count && op != NULL; i++)
		if (asks(choice, &choice->facts[i], op->op->name))
			add(out, items, choice->facts[i].name, choice->facts[i].version, arena);
	if (op != NULL)
		add(out, items, "builtin", op->truth_digest, arena);
	for (int i = own_count < OWN_TRUTHS ? own_count - 1 : OWN_TRUTHS - 1; i >= 0; i--)
		if ((own[i].truth.program || own[i].truth.chain) && (op == NULL || choice->all))
			add_truth(out, items, own[i].truth, arena);
	for (int i = 0; i < choice->fact_count && fi_api != NULL; i++)
		if (op == NULL && asks(choice, &choice->facts[i], any_family))
			add_fi_api(&choice->facts[i], fi_api, out, items, arena);
}

/* Appends the solutions that `word` chooses; "" chooses all. If no solution matches `word`, appends a ground truth that
 * cannot be used, and whose message says that there is no such solution. With "auto", nothing is appended in this case,
 * because "auto" also uses other ground truths. */
static void add_solutions(const struct truth_choice *choice, const char *name, const char *word, const struct own_truth *own, int own_count,
			  struct truths *out, struct truth *items, struct arena *arena)
{
	bool found = false;

	for (int i = OWN_TRUTHS; i < own_count; i++) {
		if (*word != '\0' && !solution_is_named(&own[i], word))
			continue;
		add_truth(out, items, own[i].truth, arena);
		found = true;
	}
	if (!found && !choice->automatic)
		add_refused(out, items, name,
			    *word == '\0' ? "the definition has no solution"
					  : "the definition has no solution of this name or author",
			    arena);
}

/* Appends the ground truth `name`, one of the names in --ground-truth. Libraries and builtin are available only if the
 * definition has an op family. */
static void add_named(const struct truth_choice *choice, const char *name, const struct op_entry *op,
		      const struct own_truth *own, int own_count, const char *fi_api, struct truths *out,
		      struct truth *items, struct arena *arena)
{
	const struct provider_fact *fact = fact_named(choice, name);
	const char *word = solution_word(name);

	if (word != NULL)
		add_solutions(choice, name, word, own, own_count, out, items, arena);
	else if (is_own(name))
		add_truth(out, items, own[strcmp(name, CHAIN_TRUTH) == 0 && own_count > 1 ? 1 : 0].truth, arena);
	else if (fact != NULL && strcmp(fact->name, FI_API_TRUTH) == 0)
		add_fi_api(fact, fi_api, out, items, arena);
	else if (fact != NULL && op != NULL)
		add(out, items, fact->name, fact->version == NULL ? "none" : fact->version, arena);
	else if (op != NULL)
		add(out, items, "builtin", op->truth_digest, arena);
}

struct truths ground_truths_for(const struct truth_choice *choice, const struct op_entry *op, const struct own_truth *own,
				int own_count, const char *fi_api, struct arena *arena)
{
	struct truth *items = arena_array(arena, GROUND_TRUTHS_MAX, sizeof *items);
	bool named = choice->name_count > 0 && !choice->automatic && !choice->all;
	struct truths out = {items, 0, choice->all,
			     named ? TRUTHS_NAMED : choice->all ? TRUTHS_OF_ALL : TRUTHS_OF_AUTO};

	if (!named)
		add_available(choice, op, own, own_count, fi_api, &out, items, arena);
	for (int i = 0; i < choice->name_count; i++)
		add_named(choice, choice->names[i], op, own, own_count, fi_api, &out, items, arena);
	out.all = choice->all && out.count > 1;
	return out;
}

struct truths ground_truths_builtin(const struct op_entry *op, struct arena *arena)
{
	const struct truth_choice builtin = {.automatic = true};
	const struct own_truth none = {.truth = {.name = TRUTH_NAME}};
	struct truths out = ground_truths_for(&builtin, op, &none, 1, NULL, arena);

	out.option = TRUTHS_NAMED; /* no machine uses a library for these cases */
	return out;
}

const char *ground_truths_context(const struct truth_choice *choice, struct arena *arena)
{
	struct buf text = {0};
	const char *out;

	buf_text(&text, choice->all ? "all" : choice->automatic && choice->name_count > 0 ? "auto" : "first");
	for (int i = 0; i < choice->name_count; i++)
		buf_printf(&text, " %s", choice->names[i]);
	for (int i = 0; i < choice->fact_count; i++) {
		const struct provider_fact *fact = &choice->facts[i];

		buf_printf(&text, "; %s %s:", fact->name, fact->version == NULL ? "none" : fact->version);
		for (int k = 0; k < fact->family_count; k++)
			if (asks(choice, fact, fact->families[k].family))
				buf_printf(&text, " %s", fact->families[k].family);
	}
	out = arena_copy(arena, text.data, text.length);
	buf_free(&text);
	return out;
}
