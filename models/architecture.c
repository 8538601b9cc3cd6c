/* architecture - finds the architecture of a model, and evaluates the expressions of its rules. */
#include "models/architecture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "kernels_digest.h" /* changes with architectures.json, so that make then compiles this file again */

__asm__(".pushsection .rodata\n"
        "architectures_begin:\n"
        ".incbin \"models/architectures.json\"\n"
        "architectures_end:\n"
        ".byte 0\n"
        ".popsection\n");

extern const char architectures_begin[] __attribute__((visibility("hidden")));
extern const char architectures_end[] __attribute__((visibility("hidden")));

static enum rule_pages pages_of(const char *text)
{
	if (text == NULL)
		return PAGES_ANY;
	return strcmp(text, "one") == 0 ? PAGES_ONE : PAGES_MORE;
}

/* Returns false if the model has a field for which the rule has null under "when". Such a rule applies only to models
 * without this field. */
static bool is_for_model(const cJSON *rule, const struct model *model)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, json_member(rule, "when"))
		if (cJSON_IsNull(item) && model_member(model, item->string, NULL) != NULL)
			return false;
	return true;
}

static void add_rules(struct architecture *architecture, const cJSON *block, const struct model *model)
{
	const cJSON *rule;

	cJSON_ArrayForEach(rule, block) if (is_for_model(rule, model))
		architecture->rules[architecture->rule_count++] = (struct rule){.module = json_text_of(rule, "module"),
								      .op_type = json_text_of(rule, "op_type"),
								      .template_name = json_text_of(rule, "template"),
								      .pages = pages_of(json_text_of(rule, "page_size")),
								      .all_experts = cJSON_IsTrue(json_member(rule, "all_experts")),
								      .when = json_member(rule, "when"),
								      .needs = json_member(rule, "needs"),
								      .axes = json_member(rule, "axes"),
								      .constants = json_member(rule, "constants")};
}

/* Returns the part of an architecture's name that tells models apart: "Qwen3Moe" of "Qwen3MoeForCausalLM". */
static const char *stem_of(const char *name, struct arena *arena)
{
	const char *rest = strstr(name, "For");

	return rest != NULL && rest > name ? arena_copy(arena, name, (size_t)(rest - name)) : name;
}

static int descending(const void *a, const void *b)
{
	return -strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns the longest of `stems` that `stem` begins with: for example, "Mistral" for "MistralSmall". Returns NULL if
 * `stem` begins with none of them. */
static const char *beginning_of(const char *stem, const char *const *stems, int count)
{
	const char *longest = NULL;

	for (int i = 0; i < count; i++)
		if (strncmp(stem, stems[i], strlen(stems[i])) == 0 && (longest == NULL || strlen(stems[i]) > strlen(longest)))
			longest = stems[i];
	return longest;
}

/* Returns the known stem that is nearest to an unknown one, or NULL. If several stems are equally near, returns the
 * stem that sorts last, which has the newest version: for "Gemma4", it returns "Gemma3" and not "Gemma2". */
static const char *nearest_stem(const char *stem, const char *const *stems, int count, struct arena *arena)
{
	const char **newest_first = arena_array(arena, (size_t)count, sizeof *newest_first);

	memcpy(newest_first, stems, (size_t)count * sizeof *stems);
	qsort(newest_first, (size_t)count, sizeof *newest_first, descending);
	const char *near = suggest_word(stem, newest_first, count);

	return near != NULL ? near : beginning_of(stem, stems, count);
}

/* Returns the known architecture whose stem is nearest to the stem of `name`. If several architectures have this stem,
 * returns the one whose whole name is nearest. */
static const char *nearest_architecture(const char *name, const cJSON *known, struct arena *arena)
{
	const int count = cJSON_GetArraySize(known);
	const char **stems = arena_array(arena, (size_t)count, sizeof *stems), **names = arena_array(arena, (size_t)count, sizeof *names);
	const cJSON *item;
	int i = 0, found = 0;

	cJSON_ArrayForEach(item, known) stems[i++] = stem_of(item->string, arena);
	const char *stem = nearest_stem(stem_of(name, arena), stems, count, arena);

	i = 0;
	cJSON_ArrayForEach(item, known) if (stem != NULL && strcmp(stems[i++], stem) == 0) names[found++] = item->string;
	const char *near = suggest_word(name, names, found);

	return near == NULL && found > 0 ? names[0] : near;
}

static int unknown_architecture(const char *name, const cJSON *known, struct arena *arena, struct err *err)
{
	const char *near = nearest_architecture(name, known, arena);

	return err_set(err, "reftest does not know the architecture '%s'%s%s%s; models/architectures.json lists the known "
			    "architectures",
		       err_show(name).text, near != NULL ? " (the nearest is '" : "", near != NULL ? near : "", near != NULL ? "')" : "");
}

int architecture_find(struct architectures *all, const struct model *model, struct architecture *architecture, struct arena *arena,
		      struct err *err)
{
	const cJSON *block, *item;
	int count = 0;

	if (all->root == NULL)
		all->root = cJSON_ParseWithLength(architectures_begin, (size_t)(architectures_end - architectures_begin));
	*architecture = (struct architecture){.root = all->root};
	architecture->own = json_member(json_member(architecture->root, "architectures"), model->architecture);
	if (architecture->own == NULL)
		return unknown_architecture(model->architecture, json_member(architecture->root, "architectures"), arena, err);
	const cJSON *blocks = json_member(architecture->root, "blocks");

	cJSON_ArrayForEach(block, blocks) count += cJSON_GetArraySize(block);
	architecture->rules = arena_array(arena, (size_t)count, sizeof *architecture->rules);
	cJSON_ArrayForEach(item, json_member(architecture->own, "blocks"))
		add_rules(architecture, json_member(blocks, item->valuestring), model);
	return 0;
}

void architectures_free(struct architectures *all)
{
	cJSON_Delete(all->root);
	*all = (struct architectures){0};
}

static void note_field(struct degrees *degrees, const char *name, int64_t value, const char *source)
{
	const cJSON *member = model_member(degrees->model, name, NULL); /* `name` may be freed before the model, so
									 * member->string is stored instead */

	for (int i = 0; i < degrees->field_count; i++)
		if (strcmp(degrees->fields[i].name, name) == 0)
			return;
	if (degrees->field_count < USED_FIELDS)
		degrees->fields[degrees->field_count++] = (struct used_field){member->string, source, value};
}

static const char *let_of(const struct architecture *architecture, const char *name)
{
	const cJSON *places[] = {json_member(architecture->own, "let"), json_member(architecture->root, "let")};

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		const cJSON *item = json_member(places[i], name);

		if (cJSON_IsString(item))
			return item->valuestring;
	}
	return NULL;
}

/* Finds the value of `tp`, `ep` or `page_size`. No field of a configuration has one of these names. */
static bool degree_value(struct degrees *degrees, const char *name, int64_t *value)
{
	const struct {
		const char *name;
		int64_t value;
		bool *used;
	} known[] = {{"tp", degrees->tp, &degrees->used_tp},
		     {"ep", degrees->ep, &degrees->used_ep},
		     {"page_size", degrees->page_size, &degrees->used_page_size}};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].name, name) == 0) {
			*known[i].used = true;
			*value = known[i].value;
			return true;
		}
	return false;
}

static const char *text_of_name(void *context, const char *name)
{
	struct degrees *degrees = context;
	const cJSON *member = model_member(degrees->model, name, NULL);

	if (cJSON_IsString(member))
		return member->valuestring;
	snprintf(degrees->missing, sizeof degrees->missing, "%s", name);
	return NULL;
}

/* Finds a number in the configuration or under "let". */
static bool real_of_name(void *context, const char *name, double *value)
{
	struct degrees *degrees = context;
	const char *let;

	if (model_real(degrees->model, name, value))
		return true;
	let = model_member(degrees->model, name, NULL) == NULL ? let_of(degrees->architecture, name) : NULL;
	if (let == NULL)
		snprintf(degrees->missing, sizeof degrees->missing, "%s", name);
	else
		*value = strtod(let, NULL);
	return let != NULL;
}

/* Returns whether the field is 0 and is listed under "may_be_zero". */
static bool is_zero(const struct degrees *degrees, const char *name)
{
	const cJSON *member = model_member(degrees->model, name, NULL), *item;

	cJSON_ArrayForEach(item, json_member(degrees->architecture->root, "may_be_zero"))
		if (strcmp(item->valuestring, name) == 0)
			return cJSON_IsNumber(member) && member->valuedouble == 0;
	return false;
}

static enum expression_result value_of_name(void *context, const char *name, int depth, int64_t *value)
{
	struct degrees *degrees = context;
	const struct expression_names names = {value_of_name, text_of_name, real_of_name, degrees};
	const char *source;

	if (degree_value(degrees, name, value))
		return EXPRESSION_VALUE;
	if (model_integer(degrees->model, name, value, &source)) {
		note_field(degrees, name, *value, source);
		return EXPRESSION_VALUE;
	}
	if (is_zero(degrees, name)) {
		*value = 0;
		return EXPRESSION_VALUE;
	}
	/* if the model has the field, the expression under "let" is not used, even if the field is not an integer; the
	 * name then has no value */
	const char *let = model_member(degrees->model, name, NULL) == NULL ? let_of(degrees->architecture, name) : NULL;

	if (let != NULL)
		return expression_evaluate(let, &names, depth, value);
	snprintf(degrees->missing, sizeof degrees->missing, "%s", name);
	return EXPRESSION_MISSING;
}

enum expression_result degrees_evaluate(struct degrees *degrees, const char *expression, int64_t *value)
{
	const struct expression_names names = {value_of_name, text_of_name, real_of_name, degrees};

	return expression_evaluate(expression, &names, 0, value);
}

void degrees_reset(struct degrees *degrees)
{
	degrees->used_tp = degrees->used_ep = degrees->used_page_size = false;
	degrees->field_count = 0;
	degrees->missing[0] = '\0';
}
