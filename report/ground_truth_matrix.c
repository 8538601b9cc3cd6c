#include "report/ground_truth_matrix.h"

#include <string.h>

#include "base/json.h"

enum { FAMILIES_MAX = 128 };

static const char no_kernel[] = "it has no kernel for this family";

/* Returns the reason why the provider does not support the op family, or NULL if it does. */
static const char *why_not(const struct provider_fact *fact, const char *family)
{
	for (int i = 0; i < fact->family_count; i++)
		if (strcmp(fact->families[i].family, family) == 0)
			return fact->version == NULL && !fact->families[i].never ? fact->why : fact->families[i].why;
	return no_kernel;
}

static bool listed(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static int family_names(const struct ground_truths_matrix *m, const char *names[FAMILIES_MAX])
{
	int count = 0;

	for (int i = 0; i < m->op_count && count < FAMILIES_MAX; i++)
		names[count++] = m->ops[i].op->name;
	for (int i = 0; i < m->fact_count; i++)
		for (int k = 0; k < m->facts[i].family_count; k++)
			if (count < FAMILIES_MAX && !listed(names, count, m->facts[i].families[k].family))
				names[count++] = m->facts[i].families[k].family;
	return count;
}

static bool has_builtin(const struct ground_truths_matrix *m, const char *family)
{
	for (int i = 0; i < m->op_count; i++)
		if (strcmp(m->ops[i].op->name, family) == 0)
			return true;
	return false;
}

static void cell(struct buf *out, const char *word, const char *column)
{
	buf_printf(out, " %-*s", (int)strlen(column), word);
}

/* Writes a line with the op families for which an installed library has no kernel. */
static void list_unsupported(const struct provider_fact *fact, const char *const *names, int count, struct buf *out)
{
	int listed = 0;

	for (int k = 0; fact->version != NULL && k < count; k++)
		if (why_not(fact, names[k]) == no_kernel)
			buf_printf(out, "%s%s", listed++ == 0 ? "  no kernel for " : ", ", names[k]);
	buf_text(out, listed > 0 ? "\n" : "");
}

/* Writes a line with the op families for which the provider is used only if the user selects it (on_request). */
static void list_on_request(const struct provider_fact *fact, struct buf *out)
{
	int listed = 0;

	for (int i = 0; fact->version != NULL && i < fact->family_count; i++)
		if (fact->families[i].on_request && fact->families[i].why == NULL)
			buf_printf(out, "%s%s", listed++ == 0 ? "  used only with --ground-truth NAME or all: "
							: ", ",
				   fact->families[i].family);
	buf_text(out, listed > 0 ? "\n" : "");
}

static void reasons(const struct ground_truths_matrix *m, const char *const *names, int count, struct buf *out)
{
	for (int i = 0; i < m->fact_count; i++) {
		const struct provider_fact *fact = &m->facts[i];

		buf_printf(out, "%s: %s\n", fact->name, fact->version != NULL ? fact->version : fact->why);
		for (int k = 0; k < count; k++) {
			const char *why = why_not(fact, names[k]);

			if (why != NULL && why != no_kernel && why != fact->why)
				buf_printf(out, "  %s: %s\n", names[k], why);
		}
		list_on_request(fact, out);
		list_unsupported(fact, names, count, out);
	}
}

void ground_truths_matrix_text(const struct ground_truths_matrix *m, struct buf *out)
{
	const char *names[FAMILIES_MAX];
	int count = family_names(m, names), wide = 6;

	for (int i = 0; i < count; i++)
		wide = (int)strlen(names[i]) > wide ? (int)strlen(names[i]) : wide;
	buf_printf(out, "\nGround truths on %s, in order of preference%s:\n%-*s", m->device_class,
		   strncmp(m->device_class, "sm_", 3) == 0
		       ? "" : " (builtin is exact on a CPU, so the others are used only if --ground-truth names them)",
		   wide, "family");
	for (int i = 0; i < m->fact_count; i++)
		buf_printf(out, " %s", m->facts[i].name);
	buf_text(out, " builtin\n");
	for (int k = 0; k < count; k++) {
		buf_printf(out, "%-*s", wide, names[k]);
		for (int i = 0; i < m->fact_count; i++)
			cell(out, why_not(&m->facts[i], names[k]) == NULL ? "yes" : "-", m->facts[i].name);
		buf_text(out, has_builtin(m, names[k]) ? " yes\n" : " -\n");
	}
	if (m->trouble != NULL)
		buf_printf(out, "The list of available libraries could not be determined: %s\n", m->trouble);
	reasons(m, names, count, out);
}

static void json_text(struct buf *out, const char *text)
{
	if (text == NULL)
		buf_text(out, "null");
	else
		buf_json_string(out, text);
}

static void json_on_request(struct buf *out, const struct provider_fact *fact)
{
	const char *comma = "";

	buf_text(out, ", \"on_request\": [");
	for (int i = 0; i < fact->family_count; i++) {
		if (!fact->families[i].on_request)
			continue;
		buf_text(out, comma);
		json_text(out, fact->families[i].family);
		comma = ", ";
	}
	buf_text(out, "]");
}

void ground_truths_matrix_json(const struct ground_truths_matrix *m, struct buf *out)
{
	const char *names[FAMILIES_MAX];
	int count = family_names(m, names);

	buf_text(out, "{\"device_class\": ");
	json_text(out, m->device_class);
	buf_text(out, ", \"trouble\": ");
	json_text(out, m->trouble);
	buf_text(out, ", \"providers\": [");
	for (int i = 0; i < m->fact_count; i++) {
		buf_text(out, i > 0 ? ", {\"name\": " : "{\"name\": ");
		json_text(out, m->facts[i].name);
		buf_text(out, ", \"version\": ");
		json_text(out, m->facts[i].version);
		buf_text(out, ", \"why\": ");
		json_text(out, m->facts[i].why);
		json_on_request(out, &m->facts[i]);
		buf_text(out, "}");
	}
	buf_text(out, "], \"families\": {");
	for (int k = 0; k < count; k++) {
		buf_text(out, k > 0 ? ", " : "");
		json_text(out, names[k]);
		buf_printf(out, ": {\"builtin\": %s",
			   has_builtin(m, names[k]) ? "null" : "\"no such family\"");
		for (int i = 0; i < m->fact_count; i++) {
			buf_text(out, ", ");
			json_text(out, m->facts[i].name);
			buf_text(out, ": ");
			json_text(out, why_not(&m->facts[i], names[k]));
		}
		buf_text(out, "}");
	}
	buf_text(out, "}}");
}
