#include "extract/definition_of_module.h"

#include <stdio.h>
#include <string.h>

#include "extract/templates.h"
#include "kernels/core/published_models.h"

enum { VALUES = 40 };

/* The values that replace @NAME@ in the texts of a template. */
struct values {
	struct value {
		const char *name, *text;
	} list[VALUES];
	int count;
};

struct making {
	bool depends[2]; /* whether the length of any axis depends on tp (index 0) or on ep (index 1) */
	const struct rule *rule;
	struct degrees *degrees;
	struct values values;
	struct arena *arena;
	struct err *why;
};

static void set_value(struct making *m, const char *name, const char *text)
{
	if (m->values.count < VALUES)
		m->values.list[m->values.count++] = (struct value){name, text};
}

/* Returns a copy of the text in which each @NAME@ is replaced by the value of NAME. A name without a value stays as it
 * is. */
static const char *filled(struct making *m, const char *text, size_t length)
{
	struct buf out = {0};
	const char *end = text + length;

	while (text < end) {
		const char *at = memchr(text, '@', (size_t)(end - text));
		bool found = false;

		buf_add(&out, text, (size_t)((at != NULL ? at : end) - text));
		if (at == NULL)
			break;
		for (int i = 0; i < m->values.count && !found; i++) {
			size_t name = strlen(m->values.list[i].name);

			found = (size_t)(end - at) > name + 1 && strncmp(at + 1, m->values.list[i].name, name) == 0 && at[name + 1] == '@';
			if (found) {
				buf_text(&out, m->values.list[i].text);
				text = at + name + 2;
			}
		}
		if (!found) { /* a single '@' is part of the code, as in a decorator */
			buf_add(&out, at, 1);
			text = at + 1;
		}
	}
	const char *copy = arena_copy(m->arena, out.data != NULL ? out.data : "", out.length);

	buf_free(&out);
	return copy;
}

/* Sets the error message for a degree of parallelism that does not divide a field of the configuration. The message
 * names the field that was read last when the expression was evaluated. */
static void degree_does_not_divide(struct making *m, const char *expression)
{
	struct degrees *d = m->degrees;
	int64_t value;

	degrees_reset(d);
	degrees_evaluate(d, expression, &value);
	const struct used_field *field = d->field_count > 0 ? &d->fields[d->field_count - 1] : NULL;
	const char *size = field != NULL
			       ? arena_printf(m->arena, "%s of %s, which is %lld", field->name, d->model->name, (long long)field->value)
			       : arena_printf(m->arena, "a size of %s", d->model->name);

	err_set(m->why, "tp %lld, ep %lld: one of these degrees of parallelism does not divide %s (%s has the size %s)",
	    (long long)d->tp,
		(long long)d->ep, size, m->rule->module, expression);
}

/* Sets the reason why an expression has no value. Returns DRAFT_ERROR if the configuration or a degree of parallelism
 * is wrong, and DRAFT_LEFT_OUT if the model needs no such definition. */
static enum draft_answer no_value(struct making *m, enum expression_result result, const char *expression, int64_t value)
{
	struct degrees alone = *m->degrees;
	int64_t whole;

	if (result == EXPRESSION_MISSING) {
		if (model_member(m->degrees->model, m->degrees->missing, NULL) == NULL) {
			err_set(m->why, "the configuration has no '%s'", m->degrees->missing);
			return DRAFT_LEFT_OUT;
		}
		model_field_error(m->degrees->model, m->degrees->missing, "an integer above 0", m->why);
		return DRAFT_ERROR;
	}
	if (result == EXPRESSION_PARTIAL_BLOCK) {
		err_set(m->why, "at tp %lld, ep %lld, %lld is not a multiple of the block size (%s)", (long long)m->degrees->tp,
			(long long)m->degrees->ep, (long long)value, expression);
		return DRAFT_LEFT_OUT;
	}
	alone.tp = alone.ep = 1;
	if (result == EXPRESSION_INDIVISIBLE && degrees_evaluate(&alone, expression, &whole) == EXPRESSION_VALUE) {
		degree_does_not_divide(m, expression);
		return DRAFT_ERROR;
	}
	err_set(m->why, "%s is not an integer of at least 0", expression);
	return DRAFT_LEFT_OUT;
}

/* Sets the message for a configuration that contradicts itself, because the length of an axis is not an integer even
 * without parallelism. The message names the fields from which the length is computed. */
static enum draft_answer contradicts_itself(struct making *m, const char *axis, const char *expression)
{
	const struct degrees *d = m->degrees;
	const char *fields = "";

	for (int i = 0; i < d->field_count; i++)
		fields = arena_printf(m->arena, "%s%s%s = %lld", fields, i == 0 ? "" : i == d->field_count - 1 ? " and " : ", ", d->fields[i].name,
				      (long long)d->fields[i].value);
	err_set(m->why, "the configuration of %s is contradictory: with %s, the axis %s of %s has the length %s, which is not "
			"an integer",
		d->model->name, fields, axis, m->rule->module, expression);
	return DRAFT_ERROR;
}

/* Records which degrees change the value of an expression. */
static void note_dependence(struct making *m, const char *expression, int64_t value)
{
	for (int expert = 0; expert < 2; expert++) {
		struct degrees alone = *m->degrees;
		int64_t other = 0;

		*(expert ? &alone.ep : &alone.tp) = 1;
		if (degrees_evaluate(&alone, expression, &other) != EXPRESSION_VALUE || other != value)
			m->depends[expert] = true;
	}
}

/* Evaluates an expression. If it has no value, sets the reason (see no_value). */
static enum draft_answer value_of(struct making *m, const cJSON *expression, int64_t *value)
{
	enum expression_result result = degrees_evaluate(m->degrees, expression->valuestring, value);

	return result == EXPRESSION_VALUE ? DRAFT_MADE : no_value(m, result, expression->valuestring, *value);
}

/* Evaluates the length of an axis. */
static enum draft_answer length_of(struct making *m, const cJSON *axis, int64_t *value)
{
	degrees_reset(m->degrees);
	enum expression_result result = degrees_evaluate(m->degrees, axis->valuestring, value);
	enum draft_answer answer = result == EXPRESSION_VALUE ? DRAFT_MADE : no_value(m, result, axis->valuestring, *value);

	return answer == DRAFT_LEFT_OUT && result == EXPRESSION_INDIVISIBLE ? contradicts_itself(m, axis->string, axis->valuestring) : answer;
}

/* Computes the lengths of the const axes and writes them into the definition. */
static enum draft_answer fill_axes(struct making *m, cJSON *axes)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, m->rule->axes)
	{
		cJSON *axis = cJSON_GetObjectItemCaseSensitive(axes, item->string);
		int64_t value = 0;
		enum draft_answer answer = length_of(m, item, &value);

		if (answer != DRAFT_MADE)
			return answer;
		note_dependence(m, item->valuestring, value);
		set_value(m, item->string, arena_printf(m->arena, "%lld", (long long)value));
		if (axis != NULL && strcmp(json_text_of(axis, "type"), "const") == 0)
			cJSON_AddNumberToObject(axis, "value", (double)value);
	}
	return DRAFT_MADE;
}

/* Checks that each expression under "needs" of the rule, for example experts / n_group, has a value. */
static enum draft_answer check_needs(struct making *m)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, m->rule->needs)
	{
		int64_t value = 0;
		enum draft_answer answer = value_of(m, item, &value);

		if (answer != DRAFT_MADE)
			return answer;
	}
	return DRAFT_MADE;
}

static enum draft_answer fill_constants(struct making *m)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, m->rule->constants)
	{
		int64_t value = 0;
		enum draft_answer answer = value_of(m, item, &value);

		if (answer != DRAFT_MADE)
			return answer;
		set_value(m, item->string, arena_printf(m->arena, "%lld", (long long)value));
	}
	return DRAFT_MADE;
}

/* Returns the text of a small number, in a short form such as "1e-6" if there is one. */
static const char *number_text(double value, struct arena *arena)
{
	for (int exponent = 1; exponent < 20; exponent++)
		for (int digit = 1; digit < 10; digit++) {
			char text[32];
			double read;

			snprintf(text, sizeof text, "%de-%d", digit, exponent);
			if (sscanf(text, "%lf", &read) == 1 && read == value)
				return arena_string(arena, text);
		}
	return arena_printf(arena, "%.17g", value);
}

/* Sets the epsilon of the model's norms, if the template uses it. */
static enum draft_answer fill_epsilon(struct making *m, const struct template_text *text)
{
	double eps;

	if (memmem(text->reference, text->reference_length, "@eps@", 5) == NULL)
		return DRAFT_MADE;
	for (int i = 0; rms_norm_field(i) != NULL; i++) {
		if (model_real(m->degrees->model, rms_norm_field(i), &eps)) {
			set_value(m, "eps", number_text(eps, m->arena));
			return DRAFT_MADE;
		}
		if (model_member(m->degrees->model, rms_norm_field(i), NULL) != NULL) {
			model_field_error(m->degrees->model, rms_norm_field(i), "a number above 0", m->why);
			return DRAFT_ERROR;
		}
	}
	err_set(m->why, "the configuration has no 'rms_norm_eps'");
	return DRAFT_LEFT_OUT;
}

static bool lists(const cJSON *names, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, names)
		if (cJSON_IsString(item) && strcmp(item->valuestring, name) == 0)
			return true;
	return false;
}

/* Returns whether the tags of the definition must state a degree (tp or ep). The tags state a degree if the template
 * always states it, or if the length of an axis depends on it. */
static bool states_degree(const struct making *m, const cJSON *always, bool expert)
{
	return lists(always, expert ? "ep" : "tp") || m->depends[expert];
}

static void set_degrees(struct making *m, const cJSON *always)
{
	const char *text = "";

	if (states_degree(m, always, true) && m->degrees->ep > 1)
		text = arena_printf(m->arena, "ep %lld", (long long)m->degrees->ep);
	if (states_degree(m, always, false) && m->degrees->tp > 1)
		text = arena_printf(m->arena, "%s%stp %lld", text, *text != '\0' ? ", " : "", (long long)m->degrees->tp);
	set_value(m, "degrees", *text != '\0' ? arena_printf(m->arena, " (%s)", text) : "");
}

static void add_tag(cJSON *tags, const char *tag)
{
	cJSON_AddItemToArray(tags, cJSON_CreateString(tag));
}

/* Returns the tags: the stage, the status, the model, the remaining tags of the template, and the degrees. */
static cJSON *make_tags(struct making *m, const cJSON *given, const cJSON *always)
{
	cJSON *tags = cJSON_CreateArray();
	const cJSON *item;

	cJSON_ArrayForEach(item, given)
		if (strncmp(item->valuestring, "stage:", 6) == 0)
			add_tag(tags, item->valuestring);
	add_tag(tags, "status:unverified");
	add_tag(tags, arena_printf(m->arena, "model:%s", m->degrees->model->name));
	cJSON_ArrayForEach(item, given)
		if (strncmp(item->valuestring, "stage:", 6) != 0)
			add_tag(tags, item->valuestring);
	if (states_degree(m, always, true))
		add_tag(tags, arena_printf(m->arena, "ep:%lld", (long long)m->degrees->ep));
	if (states_degree(m, always, false))
		add_tag(tags, arena_printf(m->arena, "tp:%lld", (long long)m->degrees->tp));
	return tags;
}

static void replace_text(struct making *m, cJSON *json, const char *key)
{
	const char *text = json_text_of(json, key);

	cJSON_ReplaceItemInObjectCaseSensitive(json, key, cJSON_CreateString(filled(m, text, strlen(text))));
}

static void finish(struct making *m, cJSON *json, const struct template_text *text)
{
	cJSON *always = cJSON_DetachItemFromObjectCaseSensitive(json, "degrees");

	set_degrees(m, always);
	set_value(m, "module", m->rule->module);
	set_value(m, "model", m->degrees->model->label);
	replace_text(m, json, "name");
	replace_text(m, json, "description");
	cJSON_ReplaceItemInObjectCaseSensitive(json, "tags", make_tags(m, json_member(json, "tags"), always));
	cJSON_AddStringToObject(json, "reference", filled(m, text->reference, text->reference_length));
	cJSON_Delete(always);
}

/* Returns whether the template fits this model and these degrees. If the template does not fit, sets the reason. */
static bool fits_template(struct making *m)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, m->rule->when)
	{
		const cJSON *member = model_member(m->degrees->model, item->string, NULL);
		char *has, *wanted;

		if (member == NULL || cJSON_Compare(member, item, true))
			continue;
		has = cJSON_PrintUnformatted(member);
		wanted = cJSON_PrintUnformatted(item);
		err_set(m->why, "the configuration has %s = %s, but the template is for %s", item->string, err_show(has != NULL ? has : "").text,
			wanted != NULL ? wanted : "");
		cJSON_free(has);
		cJSON_free(wanted);
		return false;
	}
	if (m->rule->all_experts && m->degrees->ep > 1)
		err_set(m->why, "at ep %lld, a device has only some of the experts, but the template is for all experts", (long long)m->degrees->ep);
	return !m->rule->all_experts || m->degrees->ep == 1;
}

enum draft_answer draft_make(const struct rule *rule, struct degrees *degrees, struct draft *draft, struct arena *arena, struct err *why)
{
	struct making m = {.rule = rule, .degrees = degrees, .arena = arena, .why = why};
	struct template_text text;

	if (!template_find(rule->template_name, &text)) {
		err_set(why, "there is no template '%s'", rule->template_name);
		return DRAFT_ERROR;
	}
	if (!fits_template(&m))
		return DRAFT_LEFT_OUT;
	cJSON *json = cJSON_ParseWithLength(text.definition, text.definition_length);

	degrees_reset(degrees);
	enum draft_answer answer = fill_axes(&m, cJSON_GetObjectItemCaseSensitive(json, "axes"));

	if (answer == DRAFT_MADE)
		answer = check_needs(&m);
	if (answer == DRAFT_MADE)
		answer = fill_constants(&m);
	if (answer == DRAFT_MADE)
		answer = fill_epsilon(&m, &text);
	if (answer != DRAFT_MADE) {
		cJSON_Delete(json);
		return answer;
	}
	finish(&m, json, &text);
	*draft = (struct draft){.op_type = rule->op_type,
				.name = arena_string(arena, json_text_of(json, "name")),
				.module = rule->module,
				.json = json,
				.meaning = meaning_of(json, arena)};
	return DRAFT_MADE;
}

void draft_free(struct draft *draft)
{
	cJSON_Delete(draft->json);
	draft->json = NULL;
}

/* Writes a value on one line, with spaces after commas and colons. */
static void write_line(const cJSON *value, struct buf *out)
{
	const cJSON *item;
	const char *comma = "";

	if (cJSON_IsArray(value) || cJSON_IsObject(value)) {
		buf_text(out, cJSON_IsArray(value) ? "[" : "{");
		cJSON_ArrayForEach(item, value)
		{
			buf_text(out, comma);
			if (cJSON_IsObject(value)) {
				buf_json_string(out, item->string);
				buf_text(out, ": ");
			}
			write_line(item, out);
			comma = ", ";
		}
		buf_text(out, cJSON_IsArray(value) ? "]" : "}");
	} else if (cJSON_IsString(value)) {
		buf_json_string(out, value->valuestring);
	} else if (cJSON_IsNumber(value)) {
		buf_printf(out, "%.17g", value->valuedouble);
	} else {
		buf_text(out, cJSON_IsNull(value) ? "null" : cJSON_IsTrue(value) ? "true" : "false");
	}
}

static void write_members(const cJSON *value, struct buf *out)
{
	const cJSON *item;

	buf_text(out, cJSON_IsArray(value) ? "[" : "{");
	cJSON_ArrayForEach(item, value)
	{
		buf_text(out, "\n    ");
		if (cJSON_IsObject(value)) {
			buf_json_string(out, item->string);
			buf_text(out, ": ");
		}
		write_line(item, out);
		buf_text(out, item->next != NULL ? "," : "");
	}
	buf_text(out, cJSON_IsArray(value) ? "\n  ]" : "\n  }");
}

void draft_write(const cJSON *definition, struct buf *out)
{
	const cJSON *item;

	buf_text(out, "{");
	cJSON_ArrayForEach(item, definition)
	{
		buf_text(out, "\n  ");
		buf_json_string(out, item->string);
		buf_text(out, ": ");
		if ((cJSON_IsArray(item) || cJSON_IsObject(item)) && item->child != NULL)
			write_members(item, out);
		else
			write_line(item, out);
		buf_text(out, item->next != NULL ? "," : "");
	}
	buf_text(out, "\n}\n");
}
