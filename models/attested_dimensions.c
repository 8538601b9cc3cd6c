#include "models/attested_dimensions.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "models/architecture.h"

/* The degrees of parallelism that are tried if no tag of the definition states one. */
static const int64_t common_degrees[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64, 72, 96, 128};

enum { COMMON_DEGREES = sizeof common_degrees / sizeof *common_degrees, DEGREE_LARGEST = 4096 };

/* If the name, the description or a tag has one of these words, the definition describes a part of a model that
 * architectures.json does not cover. */
static const char *const other_parts[] = {"vision", "visual", "image", "patch", "siglip", "encoder", "audio", "eagle"};

static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = text; *at != '\0'; at++)
		if (strncasecmp(at, word, length) == 0)
			return true;
	return false;
}

static bool is_other_part(const struct definition *d)
{
	for (size_t w = 0; w < sizeof other_parts / sizeof *other_parts; w++) {
		bool found = has_word(d->name, other_parts[w]) || has_word(d->description, other_parts[w]);

		for (int i = 0; i < d->tag_count; i++)
			found = found || has_word(d->tags[i], other_parts[w]);
		if (found)
			return true;
	}
	return false;
}

static const struct axis *const_axis(const struct definition *d, const char *name)
{
	int i = definition_axis(d, name);

	return i >= 0 && !d->axes[i].var ? &d->axes[i] : NULL;
}

/* The letters that stand before a number in a definition's name, and the axes that they may mean. */
static const struct token {
	const char *letters;
	const char *axes[10];
} tokens[] = {
    {"h", {"hidden_size", "intermediate_size", "num_qo_heads", "num_q_heads", "num_heads", "nheads", "num_index_heads", "channels"}},
    {"kv", {"num_kv_heads", "num_k_heads"}},
    {"d", {"head_dim", "head_size", "index_head_dim"}},
    {"ps", {"page_size"}},
    {"ckv", {"head_dim_ckv"}},
    {"kpe", {"head_dim_kpe"}},
    {"topk", {"topk", "top_k"}},
    {"qk", {"num_q_heads", "qk_dim"}},
    {"vo", {"vo_dim"}},
    {"v", {"vocab_size", "num_v_heads", "value_size"}},
    {"hv", {"num_v_heads"}},
    {"s", {"dstate"}},
    {"n", {"N"}},
    {"k", {"K", "key_size"}},
    {"e", {"num_local_experts", "num_experts"}},
    {"i", {"intermediate_size"}},
    {"rd", {"rotary_dim"}},
};

/* Some names use "h" for the head dimension, and "nh" for the number of heads. Returns whether "h" stands for the head
 * dimension in this name. */
static bool says_head_dim(const struct definition *d, const struct token *token, int64_t number)
{
	const struct axis *axis = const_axis(d, "head_dim");

	return strcmp(token->letters, "h") == 0 && axis != NULL && axis->value == number;
}

/* Checks one part of the name, such as "kv8". */
static const char *attest_token(const struct definition *d, const struct token *token, int64_t number, const char *part,
				struct arena *arena)
{
	const struct axis *other = NULL;

	if (says_head_dim(d, token, number))
		return NULL;
	for (const char *const *name = token->axes; *name != NULL; name++) {
		const struct axis *axis = const_axis(d, *name);

		if (axis != NULL && axis->value == number)
			return NULL;
		other = other == NULL ? axis : other;
	}
	return other == NULL ? NULL
			     : arena_printf(arena, "the definition's name says %s, but axis '%s' is "
						   "%lld", part, other->name, (long long)other->value);
}

/* Returns whether the name has a part such as "v128256" that begins before the byte `behind`. */
static bool has_v_part(const char *name, const char *behind)
{
	for (const char *at = strstr(name, "_v"); at != NULL && at < behind; at = strstr(at + 1, "_v"))
		if (isdigit((unsigned char)at[2]))
			return true;
	return false;
}

/* Returns whether the part of the name that begins at `at` is a version, like v2 in
 * "top_p_sampling_from_probs_v128256_v2". A version is the last part of the name, and is between v2 and v99. A part
 * such as "v8" could also state the length of an axis whose letter is v. "v8" is a version if the definition has no
 * axis whose letter is v, or if an earlier part of the name states the length of this axis. */
static bool is_version(const struct definition *d, const char *part, size_t at)
{
	if (d->name[at + strlen(part)] != '\0' || part[0] != 'v' || strlen(part) > 3 || atoi(part + 1) < 2)
		return false;
	return (const_axis(d, "value_size") == NULL && const_axis(d, "num_v_heads") == NULL) ||
	       (at > 0 && has_v_part(d->name, d->name + at - 1));
}

static const char *attest_name(const struct definition *d, struct arena *arena)
{
	char *copy = arena_string(arena, d->name), *rest = NULL;
	const char *found = NULL;

	for (char *part = strtok_r(copy, "_", &rest); part != NULL && found == NULL; part = strtok_r(NULL, "_", &rest)) {
		size_t letters = strcspn(part, "0123456789"), digits = strspn(part + letters, "0123456789");

		if (letters == 0 || digits == 0 || digits > 15 || part[letters + digits] != '\0' || is_version(d, part, (size_t)(part - copy)))
			continue;
		for (size_t i = 0; i < sizeof tokens / sizeof *tokens && found == NULL; i++)
			if (strlen(tokens[i].letters) == letters && memcmp(tokens[i].letters, part, letters) == 0)
				found = attest_token(d, &tokens[i], atoll(part + letters), part, arena);
	}
	return found;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) != 0 || c == '_';
}

/* Returns whether the text before `at` ends with an operator. For example, head_dim follows an operator in "heads *
 * head_dim = 4096", so 4096 is not the length of head_dim. */
static bool behind_operator(const char *text, const char *at)
{
	while (at > text && at[-1] == ' ')
		at--;
	return at > text && strchr("/*.-+=<>", at[-1]) != NULL;
}

/* Finds "name=NUMBER" or "name = NUMBER" in the text, where the name is a whole word. */
static bool stated_number(const char *text, const char *name, int64_t *number)
{
	size_t length = strlen(name);

	for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
		const char *behind = at + length;

		if ((at > text && is_word(at[-1])) || behind_operator(text, at))
			continue;
		behind += strspn(behind, " ");
		if (*behind != '=')
			continue;
		behind += 1 + strspn(behind + 1, "= ");
		size_t digits = strspn(behind, "0123456789");

		char next = behind[digits + strspn(behind + digits, " ")];

		/* "= 128/2" and "= 2 * n" do not state a length */
		if (digits == 0 || digits > 15 || is_word(behind[digits]) || next == '/' || next == '*' || next == '+')
			continue;
		*number = atoll(behind);
		return true;
	}
	return false;
}

static const char *attest_description(const struct definition *d, struct arena *arena)
{
	for (int i = 0; i < d->axis_count; i++) {
		int64_t number;

		if (!d->axes[i].var && strlen(d->axes[i].name) > 1 && stated_number(d->description, d->axes[i].name, &number) &&
		    number != d->axes[i].value)
			return arena_printf(arena, "the description says %s = %lld, but axis '%s' is %lld", d->axes[i].name,
					    (long long)number, d->axes[i].name, (long long)d->axes[i].value);
	}
	return NULL;
}

/* Returns the degree that a tag states ("tp:8"), or 0 if no tag states it. */
static int64_t tagged_degree(const struct definition *d, const char *prefix)
{
	for (int i = 0; i < d->tag_count; i++)
		if (strncmp(d->tags[i], prefix, strlen(prefix)) == 0) {
			int64_t degree = atoll(d->tags[i] + strlen(prefix));

			return degree > 0 && degree <= DEGREE_LARGEST ? degree : 0;
		}
	return 0;
}

/* The module and the degrees, among all that were tried, whose lengths are nearest to the lengths of the definition. */
struct nearest {
	int wrong; /* the number of axes whose length in the definition differs from the length in the rule */
	double distance;
	const struct rule *rule;
	struct degrees degrees;
	const char *axis, *expression;
	int64_t value, expected;
};

struct attempt {
	const struct definition *d;
	struct degrees degrees;
	enum degree_choice { DEGREES_TAGGED, DEGREES_ANY, DEGREES_ONE } choice;
	bool unknown; /* the module might fit, but a field of the configuration that it needs is unknown */
	const struct rule *indivisible; /* a rule with a length that a tried degree does not divide, or NULL */
	struct nearest nearest;
};

/* Returns the number of const axes that a rule and the definition have in common. */
static int common_axes(const struct definition *d, const struct rule *rule)
{
	const cJSON *item;
	int count = 0;

	cJSON_ArrayForEach(item, rule->axes)
		count += const_axis(d, item->string) != NULL && strcmp(item->valuestring, "page_size") != 0;
	return count;
}

static void note_wrong(struct nearest *now, const struct axis *axis, const char *expression, int64_t expected)
{
	double a = (double)axis->value + 1, b = (double)expected + 1;

	now->distance += a > b ? a / b : b / a;
	if (now->wrong++ > 0)
		return;
	now->axis = axis->name;
	now->expression = expression;
	now->value = axis->value;
	now->expected = expected;
}

static bool is_nearer(const struct nearest *a, const struct nearest *b)
{
	return b->rule == NULL || a->wrong < b->wrong || (a->wrong == b->wrong && a->distance < b->distance);
}

/* Compares the axes that a rule and the definition have in common, at one pair of degrees. Returns whether all agree.
 * Sets `unknown` if all known lengths agree, but some length depends on a field that models.json lacks. */
static bool compare_axes(struct attempt *a, const struct rule *rule)
{
	struct nearest now = {.rule = rule};
	const cJSON *item;
	bool unknown = false;

	degrees_reset(&a->degrees);
	cJSON_ArrayForEach(item, rule->axes)
	{
		const struct axis *axis = const_axis(a->d, item->string);
		int64_t expected = 0;

		if (axis == NULL || strcmp(item->valuestring, "page_size") == 0)
			continue;
		enum expression_result result = degrees_evaluate(&a->degrees, item->valuestring, &expected);

		if (result == EXPRESSION_INDIVISIBLE)
			a->indivisible = rule;
		if (result != EXPRESSION_VALUE && result != EXPRESSION_MISSING)
			return false;
		if (result == EXPRESSION_MISSING)
			unknown = true;
		else if (expected != axis->value)
			note_wrong(&now, axis, item->valuestring, expected);
	}
	now.degrees = a->degrees;
	if (now.wrong > 0 && !unknown && is_nearer(&now, &a->nearest))
		a->nearest = now;
	a->unknown = a->unknown || (unknown && now.wrong == 0);
	return now.wrong == 0 && !unknown;
}

/* Tries a rule at each degree of expert parallelism. */
static bool try_expert_degrees(struct attempt *a, const struct rule *rule, int64_t tagged, bool *used_tp)
{
	bool found = false, more = true;

	for (int i = 0; i < COMMON_DEGREES && more && !found; i++) {
		a->degrees.ep = tagged > 0 ? tagged : common_degrees[i];
		found = compare_axes(a, rule);
		*used_tp = *used_tp || a->degrees.used_tp;
		more = tagged == 0 && a->degrees.used_ep;
	}
	return found;
}

/* Returns the only degree to try, or 0 if all degrees in common_degrees are to be tried. */
static int64_t chosen_degree(const struct attempt *a, const char *prefix)
{
	return a->choice == DEGREES_TAGGED ? tagged_degree(a->d, prefix) : a->choice == DEGREES_ONE ? 1 : 0;
}

static bool try_rule(struct attempt *a, const struct rule *rule)
{
	const int64_t tp = chosen_degree(a, "tp:"), ep = chosen_degree(a, "ep:");
	bool found = false, more = true, used_tp = false;

	for (int i = 0; i < COMMON_DEGREES && more && !found; i++) {
		a->degrees.tp = tp > 0 ? tp : common_degrees[i];
		found = try_expert_degrees(a, rule, ep, &used_tp);
		more = tp == 0 && used_tp;
	}
	return found;
}

static const char *fields_text(const struct degrees *degrees, struct arena *arena)
{
	const char *text = "";

	for (int i = 0; i < degrees->field_count; i++)
		text = arena_printf(arena, "%s%s%s = %lld", text, i > 0 ? ", " : "", degrees->fields[i].name,
				    (long long)degrees->fields[i].value);
	return text;
}

static const char *degree_text(const char *name, int64_t tagged, bool used, struct arena *arena)
{
	const char *text;

	if (tagged > 0)
		return arena_printf(arena, "%s %lld by its tag", name, (long long)tagged);
	if (!used)
		return "";
	text = arena_printf(arena, "%s", name);
	for (int i = 0; i < COMMON_DEGREES; i++)
		text = arena_printf(arena, "%s%s%lld", text, i > 0 ? ", " : " ", (long long)common_degrees[i]);
	return text;
}

static const char *contradiction(const struct attempt *a, const struct model *model, struct arena *arena)
{
	const struct nearest *n = &a->nearest;
	const char *tp = degree_text("tp", tagged_degree(a->d, "tp:"), n->degrees.used_tp, arena),
		   *ep = degree_text("ep", tagged_degree(a->d, "ep:"), n->degrees.used_ep, arena);
	const char *fields = fields_text(&n->degrees, arena);
	const char *known = *fields == '\0' ? ""
			    : strcmp(n->expression, n->degrees.fields[0].name) == 0
				? arena_printf(arena, " (%s)", n->degrees.fields[0].source)
				: arena_printf(arena, " with %s (%s)", fields, n->degrees.fields[0].source);

	return arena_printf(arena,
			    "axis '%s' is %lld, but no module of %s has an axis of this length; in the nearest "
			    "module, %s, the length is %s = %lld%s%s%s%s%s",
			    n->axis, (long long)n->value, model->name, n->rule->module, n->expression, (long long)n->expected, known,
			    *tp != '\0' || *ep != '\0' ? "; degrees tried: " : "", tp, *tp != '\0' && *ep != '\0' ? "; " : "", ep);
}

/* If the lengths in a rule are not divisible by the degrees that the tags `tp:` and `ep:` state, returns a sentence
 * that names a module with such a rule. Otherwise returns NULL. */
static const char *no_degree(const struct attempt *a, const struct model *model, struct arena *arena)
{
	const int64_t tp = tagged_degree(a->d, "tp:"), ep = tagged_degree(a->d, "ep:");
	const char *tags = arena_printf(arena, "%s%s%s", tp > 0 ? arena_printf(arena, "tp:%lld", (long long)tp) : "", tp > 0 && ep > 0 ? " and " : "",
					ep > 0 ? arena_printf(arena, "ep:%lld", (long long)ep) : "");

	return a->indivisible == NULL || *tags == '\0'
		   ? NULL
		   : arena_printf(arena, "the modules of %s cannot be divided evenly by %s: in %s, for example, "
					 "lengths would not be integers",
				  model->name, tags, a->indivisible->module);
}

/* Returns the largest number of axes that a rule of this op_type and the definition have in common. A rule with fewer
 * common axes describes another operation of the same op_type. */
static int most_common_axes(const struct definition *d, const struct architecture *architecture)
{
	int most = 0;

	for (int i = 0; i < architecture->rule_count; i++) {
		const struct rule *rule = &architecture->rules[i];
		int count = strcmp(rule->op_type, d->op_type) == 0 ? common_axes(d, rule) : 0;

		most = count > most ? count : most;
	}
	return most;
}

static bool is_about(const struct rule *rule, const struct definition *d, int most)
{
	return most > 0 && strcmp(rule->op_type, d->op_type) == 0 && common_axes(d, rule) == most;
}

static const char *attest_model(const struct definition *d, struct architectures *all, const struct model *model, bool any_degree,
				struct arena *arena)
{
	struct architecture architecture;
	struct attempt a = {.d = d,
			    .choice = any_degree ? DEGREES_ANY : DEGREES_TAGGED,
			    .degrees = {.model = model, .architecture = &architecture, .tp = 1, .ep = 1}};
	struct err err;
	bool found = false;

	if (model->architecture == NULL || architecture_find(all, model, &architecture, arena, &err) < 0)
		return NULL;
	const int most = most_common_axes(d, &architecture);

	for (int i = 0; i < architecture.rule_count && !found; i++)
		found = is_about(&architecture.rules[i], d, most) && try_rule(&a, &architecture.rules[i]);
	return found || a.unknown ? NULL : a.nearest.rule == NULL ? no_degree(&a, model, arena) : contradiction(&a, model, arena);
}

static const char *attest_name_of_model(const struct definition *d, struct architectures *all, const char *name, bool any_degree,
					struct arena *arena)
{
	struct model model;

	if (!model_find(name, &model, arena))
		return NULL;
	const char *text = attest_model(d, all, &model, any_degree, arena);

	model_close(&model);
	return text;
}

/* Several models may share a definition at different degrees, but a tag states only one degree. At the tagged degree,
 * at least one of the models must have axes of the definition's lengths. Each other model must have axes of these
 * lengths at some degree. */
static const char *attest_models(const struct definition *d, struct architectures *all, struct arena *arena)
{
	const char *first = NULL, *found = NULL;
	bool explained = false;

	if (is_other_part(d))
		return NULL;
	for (int i = 0; i < d->tag_count && found == NULL; i++) {
		if (strncmp(d->tags[i], "model:", 6) != 0)
			continue;
		const char *text = attest_name_of_model(d, all, d->tags[i] + 6, false, arena);

		explained = explained || text == NULL;
		first = first == NULL ? text : first;
		found = text != NULL && attest_name_of_model(d, all, d->tags[i] + 6, true, arena) != NULL ? text : NULL;
	}
	if (found == NULL && !explained)
		found = first;
	return found == NULL && d->hf_id != NULL ? attest_name_of_model(d, all, d->hf_id, false, arena) : found;
}

const char *attest_definition(const struct definition *definition, struct architectures *all, struct arena *arena)
{
	const char *found = attest_name(definition, arena);

	if (found == NULL)
		found = attest_description(definition, arena);
	return found != NULL ? found : attest_models(definition, all, arena);
}

int attest_rules(const struct definition *definition, const struct model *model, const struct architecture *architecture, bool *explains)
{
	const bool tagged = tagged_degree(definition, "tp:") > 0 || tagged_degree(definition, "ep:") > 0;
	const enum degree_choice choices[] = {tagged ? DEGREES_TAGGED : DEGREES_ONE, DEGREES_ANY};
	const int most = is_other_part(definition) ? 0 : most_common_axes(definition, architecture);
	int count = 0;

	for (size_t c = 0; c < sizeof choices / sizeof *choices && count == 0; c++) {
		struct attempt a = {.d = definition,
				    .choice = choices[c],
				    .degrees = {.model = model, .architecture = architecture, .tp = 1, .ep = 1}};

		for (int i = 0; i < architecture->rule_count; i++) {
			explains[i] = is_about(&architecture->rules[i], definition, most) && try_rule(&a, &architecture->rules[i]);
			count += explains[i];
		}
	}
	return count;
}
