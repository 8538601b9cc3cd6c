#include "report/coverage_matrix.h"

#include <string.h>

enum { NAME_COLUMNS = 26 };

static const char *plural(int count)
{
	return count == 1 ? "" : "s";
}

/* ---- text ----------------------------------------------------------------------------------------------------- */

static void text_axis(const struct covered_family *family, int axis, struct buf *out)
{
	const struct op_coverage *row = &family->op->coverage[axis];
	const char *comma = "";

	buf_printf(out, "  %-*s", NAME_COLUMNS, row->name);
	for (int k = 0; k < COVERAGE_VALUES && row->values[k].name != NULL; k++) {
		if (family->counts[axis][k].definitions == 0 && row->values[k].says == NULL)
			continue;
		buf_printf(out, "%s%s: %d", comma, row->values[k].name, family->counts[axis][k].definitions);
		comma = ", ";
	}
	buf_text(out, *comma == '\0' ? "does not apply\n" : "\n");
}

/* Appends what one definition covers: "  name: sequences packed; state layout [V, K]; …" */
static void text_definition(const struct coverage *coverage, const struct covered_definition *d, struct buf *out)
{
	const struct op *op = coverage->families[d->family].op;

	buf_printf(out, "  %s/%s, %d case%s:", d->result->file->op_type, d->result->file->name, d->cases, plural(d->cases));
	for (int i = 0; i < coverage->families[d->family].axis_count; i++) {
		const struct op_coverage *row = &op->coverage[i];
		bool any = false;

		for (int k = 0; k < COVERAGE_VALUES && row->values[k].name != NULL; k++) {
			if ((d->values[i] >> k & 1) == 0)
				continue;
			if (any)
				buf_printf(out, " and %s", row->values[k].name);
			else
				buf_printf(out, " %s %s", row->name, row->values[k].name);
			any = true;
		}
		buf_text(out, any ? ";" : "");
	}
	if (out->data[out->length - 1] == ';')
		out->length--;
	buf_text(out, "\n");
}

static void text_family(const struct coverage *coverage, int f, bool each, struct buf *out)
{
	const struct covered_family *family = &coverage->families[f];

	buf_printf(out, "%s: %d definition%s, %d case%s\n", family->op->name, family->definitions, plural(family->definitions),
		   family->cases, plural(family->cases));
	for (int i = 0; i < family->axis_count; i++)
		text_axis(family, i, out);
	for (int i = 0; each && i < coverage->definition_count; i++)
		if (coverage->definitions[i].family == f)
			text_definition(coverage, &coverage->definitions[i], out);
	buf_text(out, "\n");
}

static void text_holes(const struct coverage *coverage, struct buf *out)
{
	const char *comma = "no definition of the op families ";
	bool any = false;

	for (int i = 0; i < coverage->hole_count; i++) {
		coverage_hole_says(coverage, &coverage->holes[i], out);
		buf_text(out, "\n");
	}
	for (int f = 0; f < coverage->family_count; f++) {
		if (coverage->families[f].definitions > 0 || coverage->selected)
			continue;
		buf_printf(out, "%s%s", comma, coverage->families[f].op->name);
		comma = ", ";
		any = true;
	}
	buf_text(out, any ? "\n" : "");
}

static int without_family(const struct coverage *coverage)
{
	int count = 0;

	for (int i = 0; i < coverage->definition_count; i++)
		count += coverage->definitions[i].family < 0;
	return count;
}

void coverage_matrix_text(const struct coverage *coverage, bool each, struct buf *out)
{
	int others = without_family(coverage);

	for (int f = 0; f < coverage->family_count; f++)
		if (coverage->families[f].definitions > 0)
			text_family(coverage, f, each, out);
	text_holes(coverage, out);
	if (others > 0)
		buf_printf(out, "%d definition%s without op family, and therefore without a "
				"checklist%s\n", others, plural(others),
			   each ? ":" : " (-v lists them)");
	for (int i = 0; each && i < coverage->definition_count; i++)
		if (coverage->definitions[i].family < 0)
			buf_printf(out, "  %s/%s\n", coverage->definitions[i].result->file->op_type,
				   coverage->definitions[i].result->file->name);
	buf_printf(out, "%d definition%s, %d hole%s\n", coverage->definition_count, plural(coverage->definition_count),
		   coverage->hole_count, plural(coverage->hole_count));
}

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

static void json_family(const struct covered_family *family, struct buf *out)
{
	buf_text(out, "{");
	buf_json_member(out, "family", family->op->name);
	buf_printf(out, ", \"definitions\": %d, \"cases\": %d, \"axes\": [", family->definitions, family->cases);
	for (int i = 0; i < family->axis_count; i++) {
		const struct op_coverage *row = &family->op->coverage[i];

		buf_text(out, i > 0 ? ",\n   {" : "\n   {");
		buf_json_member(out, "axis", row->name);
		buf_text(out, ", \"values\": [");
		for (int k = 0; k < COVERAGE_VALUES && row->values[k].name != NULL; k++) {
			buf_text(out, k > 0 ? ", {" : "{");
			buf_json_member(out, "value", row->values[k].name);
			buf_printf(out, ", \"definitions\": %d, \"cases\": %d, \"wanted\": %s}", family->counts[i][k].definitions,
				   family->counts[i][k].cases, row->values[k].says != NULL ? "true" : "false");
		}
		buf_text(out, "]}");
	}
	buf_text(out, "]}");
}

static void json_values(const struct op_coverage *row, unsigned values, struct buf *out)
{
	const char *comma = "";

	buf_json_string(out, row->name);
	buf_text(out, ": [");
	for (int k = 0; k < COVERAGE_VALUES && row->values[k].name != NULL; k++) {
		if ((values >> k & 1) == 0)
			continue;
		buf_text(out, comma);
		buf_json_string(out, row->values[k].name);
		comma = ", ";
	}
	buf_text(out, "]");
}

static void json_definition(const struct coverage *coverage, const struct covered_definition *d, struct buf *out)
{
	const struct covered_family *family = d->family >= 0 ? &coverage->families[d->family] : NULL;

	buf_text(out, "{");
	buf_json_member(out, "name", d->result->file->name);
	buf_json_next_member(out, "op_type", d->result->file->op_type);
	buf_json_next_member(out, "family", family != NULL ? family->op->name : NULL);
	buf_json_next_member(out, "matched_by", d->result->made != NULL ? cases_matched(d->result->made) : NULL);
	buf_printf(out, ", \"cases\": %d, \"axes\": {", d->cases);
	for (int i = 0; family != NULL && i < family->axis_count; i++) {
		buf_text(out, i > 0 ? ", " : "");
		json_values(&family->op->coverage[i], d->values[i], out);
	}
	buf_text(out, "}}");
}

static void json_hole(const struct coverage *coverage, const struct coverage_hole *hole, struct buf *out)
{
	const struct op *op = coverage->families[hole->family].op;
	struct buf says = {0};

	coverage_hole_says(coverage, hole, &says);
	buf_text(out, "{");
	buf_json_member(out, "family", op->name);
	buf_json_next_member(out, "axis", op->coverage[hole->axis].name);
	buf_json_next_member(out, "value", op->coverage[hole->axis].values[hole->value].name);
	buf_json_next_member(out, "message", says.data);
	buf_text(out, "}");
	buf_free(&says);
}

void coverage_matrix_families(const struct coverage *coverage, struct buf *out)
{
	buf_text(out, "\"families\": [");
	for (int f = 0; f < coverage->family_count; f++) {
		buf_text(out, f > 0 ? ",\n  " : "\n  ");
		json_family(&coverage->families[f], out);
	}
	buf_text(out, "]");
}

void coverage_matrix_json(const struct coverage *coverage, struct buf *out)
{
	coverage_matrix_families(coverage, out);
	buf_text(out, ",\n \"definitions\": [");
	for (int i = 0; i < coverage->definition_count; i++) {
		buf_text(out, i > 0 ? ",\n  " : "\n  ");
		json_definition(coverage, &coverage->definitions[i], out);
	}
	buf_text(out, "],\n \"holes\": [");
	for (int i = 0; i < coverage->hole_count; i++) {
		buf_text(out, i > 0 ? ",\n  " : "\n  ");
		json_hole(coverage, &coverage->holes[i], out);
	}
	buf_text(out, "]");
}
