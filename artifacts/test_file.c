#include "artifacts/test_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "artifacts/python.h"
#include "artifacts/templates.h"

/* Begins the line above each class, and the one that ends the last; no text of a stranger can begin a line so. */
#define MARK "# definition: "
static const char mark[] = MARK;

enum { LINE = 88, ALIAS = 160, ALIASES = DEFINITION_AXES + 16 };

/* Names of class attributes, upper case, for axes and constants; "" where the value stands alone. */
struct aliases {
	char name[ALIASES][ALIAS];
	int count;
};

/* ---- names ------------------------------------------------------------------------------------------------------ */

static bool is_taken(const struct aliases *aliases, const char *name)
{
	/* What every class has; and I and O, which linters take for digits. */
	static const char *const reserved[] = {"OP_TYPE",	"NAME", "VARIANT",	     "AXES",  "CONSTANTS", "SIZES",
					       "GROUND_TRUTHS", "TOLERANCE", "JUDGE", "PROBE",	   "LEAVES",
					       "RULES",		"SCALARS",   "SAMPLES",	  "REFERENCE",
					       "I",		"O"};

	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		if (strcmp(reserved[i], name) == 0)
			return true;
	for (int i = 0; i < aliases->count; i++)
		if (strcmp(aliases->name[i], name) == 0)
			return true;
	return false;
}

/* Returns the next alias, which is "" if `name` makes none. */
static const char *add_alias(struct aliases *aliases, const char *name)
{
	char upper[ALIAS] = "";
	size_t length = strlen(name);

	for (size_t i = 0; length < sizeof upper && i <= length; i++)
		upper[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
	if (name[0] == '_' || is_taken(aliases, upper))
		upper[0] = '\0';
	memcpy(aliases->name[aliases->count], upper, sizeof upper);
	return aliases->name[aliases->count++];
}

/* ---- a class ---------------------------------------------------------------------------------------------------- */

static void write_axes(const struct definition *d, struct aliases *aliases, struct buf *out)
{
	for (int i = 0; i < d->axis_count; i++) {
		const char *alias = add_alias(aliases, d->axes[i].var ? "_" : d->axes[i].name);

		if (alias[0] != '\0')
			buf_printf(out, "    %s = %lld\n", alias, (long long)d->axes[i].value);
	}
	buf_text(out, d->axis_count > 0 ? "    AXES = conftest.constants(\n" : "    AXES = conftest.constants()\n");
	for (int i = 0; i < d->axis_count; i++) {
		if (d->axes[i].var)
			buf_printf(out, "        %s=None,\n", d->axes[i].name);
		else if (aliases->name[i][0] != '\0')
			buf_printf(out, "        %s=%s,\n", d->axes[i].name, aliases->name[i]);
		else
			buf_printf(out, "        %s=%lld,\n", d->axes[i].name, (long long)d->axes[i].value);
	}
	if (d->axis_count > 0)
		buf_text(out, "    )\n");
}

/* The comment that says where a constant comes from, and the end of its line. */
static void write_source(const struct test_constant *constant, const struct template *t, struct buf *out)
{
	buf_text(out, "  # ");
	python_comment(out, constant->source);
	if (isnan(constant->value) && t->owner[TEMPLATE_PROBE] != NULL)
		buf_printf(out, ": %s_probe asks the reference", t->owner[TEMPLATE_PROBE]);
	buf_text(out, "\n");
}

static void write_constants(const struct test_class *c, const struct template *t, struct aliases *aliases,
			    struct buf *out)
{
	int first = aliases->count;

	for (int i = 0; i < c->constant_count; i++) {
		const char *alias = add_alias(aliases, c->constants[i].name);

		if (alias[0] == '\0')
			continue;
		buf_printf(out, "    %s = ", alias);
		python_number(out, c->constants[i].value);
		write_source(&c->constants[i], t, out);
	}
	buf_text(out, c->constant_count > 0 ? "    CONSTANTS = conftest.constants(\n"
					    : "    CONSTANTS = conftest.constants()\n");
	for (int i = 0; i < c->constant_count; i++) {
		buf_printf(out, "        %s=", c->constants[i].name);
		if (aliases->name[first + i][0] != '\0') {
			buf_printf(out, "%s,\n", aliases->name[first + i]);
			continue;
		}
		python_number(out, c->constants[i].value);
		buf_text(out, ",");
		write_source(&c->constants[i], t, out);
	}
	if (c->constant_count > 0)
		buf_text(out, "    )\n");
}

/* Which inputs may hold something else afterwards. A class of no family knows of none, and says so. */
static void write_left(const struct test_class *c, struct buf *out)
{
	if (c->family == NULL) {
		buf_text(out, "    LEAVES = None\n");
		return;
	}
	buf_text(out, c->left_count > 0 ? "    LEAVES = conftest.constants(\n" : "    LEAVES = conftest.constants()\n");
	for (int i = 0; i < c->left_count; i++) {
		buf_printf(out, "        %s=", c->left[i].input);
		if (c->left[i].output != NULL)
			python_string(out, c->left[i].output);
		else
			buf_text(out, c->left[i].may_keep ? "conftest.KEPT_OR_WRITTEN" : "conftest.WRITTEN");
		buf_text(out, ",\n");
	}
	if (c->left_count > 0)
		buf_text(out, "    )\n");
}

static bool any_unattested(const struct test_class *c)
{
	for (int i = 0; i < c->constant_count; i++)
		if (isnan(c->constants[i].value))
			return true;
	return false;
}

/* conftest.size("small", batch_size=1): its arguments with `between` before each but the first. */
static void write_size_words(const struct definition *d, const struct test_size *size, const char *between,
			     struct buf *out)
{
	buf_printf(out, "\"%s\"", size->label);
	for (int i = 0; i < d->axis_count; i++)
		if (d->axes[i].var)
			buf_printf(out, ",%s%s=%lld", between, d->axes[i].name, (long long)size->axis[i]);
}

static void write_size(const struct definition *d, const struct test_size *size, struct buf *out)
{
	size_t begin = out->length;

	buf_text(out, "        conftest.size(");
	write_size_words(d, size, " ", out);
	buf_text(out, "),\n");
	if (out->length - begin <= LINE + 1)
		return;
	out->length = begin;
	buf_text(out, "        conftest.size(\n            ");
	write_size_words(d, size, "\n            ", out);
	buf_text(out, ",\n        ),\n");
}

/* A tuple of one stands on one line where it fits. */
static void write_sizes(const struct test_class *c, struct buf *out)
{
	size_t begin = out->length;

	if (c->size_count == 0) {
		buf_text(out, "    SIZES = ()\n");
		return;
	}
	if (c->size_count == 1) {
		buf_text(out, "    SIZES = (conftest.size(");
		write_size_words(c->definition, &c->sizes[0], " ", out);
		buf_text(out, "),)\n");
		if (out->length - begin <= LINE + 1)
			return;
		out->length = begin;
	}
	buf_text(out, "    SIZES = (\n");
	for (int i = 0; i < c->size_count; i++)
		write_size(c->definition, &c->sizes[i], out);
	buf_text(out, "    )\n");
}

static void write_scalar(enum dtype dtype, double value, struct buf *out)
{
	if (dtype == DTYPE_BOOL)
		buf_text(out, value != 0 ? "True" : "False");
	else if (dtype_is_float(dtype))
		python_number(out, value);
	else
		buf_printf(out, "%lld", (long long)value);
}

/* Of an input: one value where it has that at all sizes, else one for each. */
static void write_scalars_of(const struct test_class *c, int input, struct buf *out)
{
	const struct tensor_spec *spec = &c->definition->inputs[input];
	int width = c->definition->input_count, rows = 1;

	for (int i = 1; i < c->size_count; i++)
		if (c->scalars[i * width + input] != c->scalars[input])
			rows = c->size_count;
	buf_printf(out, "        %s=[", spec->name);
	for (int i = 0; i < rows; i++) {
		buf_text(out, rows > 1 ? "\n            " : "");
		write_scalar(spec->dtype, c->scalars[i * width + input], out);
		buf_text(out, rows > 1 ? "," : "");
	}
	buf_text(out, rows > 1 ? "\n        ],\n" : "],\n");
}

/* The values that verify gives to Python scalars. */
static void write_scalars(const struct test_class *c, struct buf *out)
{
	int count = 0;

	for (int i = 0; i < c->definition->input_count && c->scalars != NULL && c->size_count > 0; i++) {
		if (c->definition->inputs[i].rank != RANK_SCALAR)
			continue;
		buf_text(out, count++ == 0 ? "    SCALARS = conftest.constants(\n" : "");
		write_scalars_of(c, i, out);
	}
	buf_text(out, count > 0 ? "    )\n" : "    SCALARS = conftest.constants()\n");
}

static bool same_rule(const struct tolerance *a, const struct tolerance *b)
{
	return a->atol == b->atol && a->rtol == b->rtol && a->hit_ratio == b->hit_ratio;
}

/* Has an output one rule at all sizes? */
static bool one_rule(const struct test_class *c, int output)
{
	int width = c->definition->output_count;

	for (int i = 1; i < c->size_count; i++)
		if (!same_rule(&c->rules[i * width + output], &c->rules[output]))
			return false;
	return true;
}

static void write_rule_words(const struct tolerance *rule, const char *between, struct buf *out)
{
	python_number(out, rule->atol);
	buf_printf(out, ",%s", between);
	python_number(out, rule->rtol);
	buf_printf(out, ",%s", between);
	python_number(out, rule->hit_ratio);
}

/* A line with one rule, which is four lines where it is too long. */
static void write_rule(const struct tolerance *rule, struct buf *out)
{
	size_t begin = out->length;

	buf_text(out, "            (");
	write_rule_words(rule, " ", out);
	buf_text(out, "),\n");
	if (out->length - begin <= LINE + 1)
		return;
	out->length = begin;
	buf_text(out, "            (\n                ");
	write_rule_words(rule, "\n                ", out);
	buf_text(out, ",\n            ),\n");
}

/* atol, rtol and hit ratio of each output, as verify holds it to them: one rule, or one for each of SIZES. */
static void write_rules(const struct test_class *c, struct buf *out)
{
	int width = c->definition->output_count;

	if (c->rules == NULL || c->size_count == 0) {
		buf_text(out, "    RULES = conftest.rules()\n");
		return;
	}
	buf_text(out, "    RULES = conftest.rules(\n");
	for (int output = 0; output < width; output++) {
		int rows = one_rule(c, output) ? 1 : c->size_count;

		buf_text(out, "        [  # ");
		python_comment(out, c->definition->outputs[output].name);
		buf_text(out, "\n");
		for (int i = 0; i < rows; i++)
			write_rule(&c->rules[i * width + output], out);
		buf_text(out, "        ],\n");
	}
	buf_text(out, "    )\n");
}

static void write_ground_truths(const struct template *t, struct buf *out)
{
	int count = 0;

	for (int part = 0; part < TEMPLATE_TRUTHS; part++)
		count += t->owner[part] != NULL;
	buf_text(out, "    GROUND_TRUTHS = (");
	for (int part = 0; part < TEMPLATE_TRUTHS; part++)
		if (t->owner[part] != NULL)
			buf_printf(out, count == 1 ? "%s_%s," : "\n        %s_%s,", t->owner[part],
				   template_part_name((enum template_part)part));
	buf_text(out, count > 1 ? "\n    )\n" : ")\n");
}

static void write_part(const struct template *t, enum template_part part, const char *attribute, struct buf *out)
{
	if (t->owner[part] != NULL)
		buf_printf(out, "    %s = staticmethod(%s_%s)\n", attribute, t->owner[part], template_part_name(part));
	else
		buf_printf(out, "    %s = None\n", attribute);
}

static const char tests_head[] = "\n"
				 "    def test_definition_is_unchanged(self):\n"
				 "        conftest.check_definition(self)\n"
				 "\n"
				 "    @torch.no_grad()\n"
				 "    def test_output_shape(self, device):\n"
				 "        conftest.check_output_shape(self, device)\n"
				 "\n"
				 "    @torch.no_grad()\n"
				 "    def test_output_dtype(self, device):\n"
				 "        conftest.check_output_dtype(self, device)\n"
				 "\n"
				 "    @torch.no_grad()\n"
				 "    def test_inputs_are_kept(self, device):\n"
				 "        conftest.check_inputs_are_kept(self, device)\n"
				 "\n"
				 "    @pytest.mark.parametrize(\"case\", conftest.cases(OP_TYPE, NAME, SIZES))\n"
				 "    @torch.no_grad()\n"
				 "    def test_numerical_correctness(self, case, device):\n"
				 "        conftest.check_numerical_correctness(self, case, device)\n"
				 "\n"
				 "    @torch.no_grad()\n"
				 "    def test_determinism(self, device):\n"
				 "        conftest.check_determinism(self, device)\n"
				 "\n"
				 "    @torch.no_grad()\n"
				 "    def test_calls_are_independent(self, device):\n"
				 "        conftest.check_calls_are_independent(self, device)\n"
				 "\n";

static const char tests_tail[] = "    @torch.no_grad()\n"
				 "    def test_edge_cases(self, case, device):\n"
				 "        conftest.check_edge_case(self, case, device)\n"
				 "\n"
				 "    @pytest.mark.parametrize(\"case\", conftest.some_cases(SIZES))\n"
				 "    @pytest.mark.parametrize(\"name\", conftest.truth_names(GROUND_TRUTHS))\n"
				 "    @torch.no_grad()\n"
				 "    def test_against_ground_truth(self, name, case, device):\n"
				 "        conftest.check_against(self, case, name, device)\n"
				 "\n"
				 "    @pytest.mark.parametrize(\"case\", conftest.some_cases(SIZES))\n"
				 "    @torch.no_grad()\n"
				 "    def test_ground_truths_agree(self, case, device):\n"
				 "        conftest.check_ground_truths_agree(self, case, device)\n";

static void write_edges(const struct template *t, struct buf *out)
{
	if (t->owner[TEMPLATE_EDGES] != NULL)
		buf_printf(out,
			   "    @pytest.mark.parametrize(\n"
			   "        \"case\", conftest.edge_cases(OP_TYPE, NAME, SIZES, %s_edges)\n"
			   "    )\n",
			   t->owner[TEMPLATE_EDGES]);
	else
		buf_text(out, "    @pytest.mark.parametrize(\"case\", conftest.edge_cases(OP_TYPE, NAME, SIZES))\n");
}

static void write_inputs(const struct template *t, struct buf *out)
{
	size_t begin;

	buf_text(out, "\n    @classmethod\n"
		      "    def generate_random_inputs(cls, axes, device=\"cpu\", seed=0):\n");
	begin = out->length;
	if (t->owner[TEMPLATE_INPUTS] == NULL) {
		buf_text(out, "        definition = conftest.definition_of(cls)\n"
			      "        return conftest.generic_inputs(definition, axes, device, seed)\n");
		return;
	}
	buf_printf(out, "        return %s_inputs(conftest.definition_of(cls), axes, device, seed)\n",
		   t->owner[TEMPLATE_INPUTS]);
	if (out->length - begin <= LINE + 1)
		return;
	out->length = begin;
	buf_printf(out,
		   "        definition = conftest.definition_of(cls)\n"
		   "        return %s_inputs(definition, axes, device, seed)\n",
		   t->owner[TEMPLATE_INPUTS]);
}

static void write_class(const struct test_class *c, struct buf *out)
{
	const struct definition *d = c->definition;
	struct aliases aliases = {.count = 0};
	struct template t = {.name = "", .index = -1};

	if (c->family != NULL)
		template_of(c->family, &t);
	buf_text(out, "    OP_TYPE = ");
	python_string(out, d->op_type);
	buf_text(out, "\n    NAME = ");
	python_string(out, d->name);
	buf_text(out, "\n");
	if (c->family != NULL)
		buf_printf(out, "    VARIANT = %d  # of op family %s\n", c->variant, c->family);
	write_axes(d, &aliases, out);
	write_constants(c, &t, &aliases, out);
	write_left(c, out);
	write_sizes(c, out);
	write_scalars(c, out);
	write_rules(c, out);
	buf_text(out, c->samples ? "    SAMPLES = True\n" : "    SAMPLES = False\n");
	write_ground_truths(&t, out);
	write_part(&t, TEMPLATE_TOLERANCE, "TOLERANCE", out);
	write_part(&t, TEMPLATE_JUDGE, "JUDGE", out);
	if (t.owner[TEMPLATE_PROBE] != NULL && any_unattested(c))
		write_part(&t, TEMPLATE_PROBE, "PROBE", out);
	buf_text(out, "    REFERENCE = ");
	python_text(out, d->reference, d->reference_length, mark);
	buf_text(out, "\n");
	write_inputs(&t, out);
	buf_text(out, tests_head);
	write_edges(&t, out);
	buf_text(out, tests_tail);
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

/* Class names without their "Test", one after the other, each with its NUL; `at` gets where each begins. */
static void class_names(const struct test_class *classes, int count, struct buf *names, size_t *at)
{
	for (int i = 0; i < count; i++) {
		at[i] = names->length;
		python_class_name(names, classes[i].name);
		buf_add(names, "", 1);
	}
}

/* Two definitions may come to the same name ("a_b" and "a__b"): the later gets a number, which no name ends in. */
static int namesakes_before(const struct buf *names, const size_t *at, int index)
{
	int same = 0;

	for (int i = 0; i < index; i++)
		same += strcmp(names->data + at[i], names->data + at[index]) == 0;
	return same;
}

/* Does a text of ours name a function of this family? They stand behind a blank or a bracket. */
static bool names_family(const char *text, size_t length, const char *family)
{
	char words[128];
	size_t width = (size_t)snprintf(words, sizeof words, "%s_", family);

	for (const char *at = text; (at = memmem(at, length - (size_t)(at - text), words, width)) != NULL; at++)
		if (at > text && (at[-1] == ' ' || at[-1] == '('))
			return true;
	return false;
}

/* Marks the families that a class belongs to, by index. Of an old class its text tells; one too many is no harm. */
static void mark_families(const struct test_class *c, bool *families)
{
	struct template t;

	if (c->definition != NULL) {
		if (c->family != NULL && template_of(c->family, &t))
			families[t.index] = true;
		return;
	}
	for (int i = 0; template_at(i, &t); i++)
		families[i] |= names_family(c->kept, c->kept_length, t.name);
}

/* Does one of these families stand on that template? */
static bool is_needed(const bool *families, int count, const struct template *t)
{
	struct template family;

	for (int i = 0; i < count; i++)
		if (families[i] && template_at(i, &family) && template_needs(&family, t))
			return true;
	return false;
}

/* The functions of each family that a class uses. */
static void write_templates(const struct test_class *classes, int count, struct arena *arena, struct buf *out)
{
	int templates = 0;
	struct template t;
	const char *text;

	while (template_at(templates, &t))
		templates++;
	bool *families = arena_array(arena, (size_t)templates, sizeof *families);

	for (int i = 0; i < count; i++)
		mark_families(&classes[i], families);
	for (int i = 0; template_at(i, &t); i++) {
		size_t length = is_needed(families, templates, &t) ? template_text(&t, &text) : 0;

		if (length == 0)
			continue; /* nobody's, or one that only imports */
		buf_text(out, "\n\n");
		buf_add(out, text, length);
	}
}

static void write_mark(const char *name, struct buf *out)
{
	buf_text(out, mark);
	python_string(out, name);
	buf_text(out, "\n");
}

static void write_classes(const struct test_class *classes, int count, struct arena *arena, struct buf *out)
{
	size_t *at = arena_array(arena, (size_t)count, sizeof *at);
	struct buf names = {0};

	class_names(classes, count, &names, at);
	for (int i = 0; i < count; i++) {
		int before = namesakes_before(&names, at, i);
		char number[16] = "";

		buf_text(out, "\n\n");
		if (classes[i].definition == NULL) {
			buf_add(out, classes[i].kept, classes[i].kept_length);
			continue;
		}
		if (before > 0)
			snprintf(number, sizeof number, "_%d", before + 1);
		write_mark(classes[i].name, out);
		buf_printf(out, "class Test%s%s:\n", names.data + at[i], number);
		write_class(&classes[i], out);
	}
	buf_free(&names);
}

void test_file_write(const char *about, const struct test_class *classes, int count, struct buf *out)
{
	struct arena arena = {0};

	buf_text(out, "\"\"\"Tests of ");
	python_comment(out, about);
	buf_text(out, ". conftest.py says how they run.\"\"\"\n\n"
		      "import pytest\nimport torch\n\n# isort: split\nimport conftest\n");
	write_templates(classes, count, &arena, out);
	write_classes(classes, count, &arena, out);
	buf_printf(out,
		   "\n\n%snone\ndef main():\n    return conftest.main(__file__)\n\n\n"
		   "if __name__ == \"__main__\":\n    raise SystemExit(main())\n",
		   mark);
	arena_free(&arena);
}

/* The newline before the next line that begins with a mark; within a line a stranger may have written one. */
static const char *next_mark(const char *text, size_t length)
{
	static const char line[] = "\n" MARK;

	return memmem(text, length, line, sizeof line - 1);
}

bool test_file_class(const char *body, size_t length, const char *name, const char **text, size_t *text_length)
{
	struct buf line = {0};
	const char *begin, *end = NULL;

	buf_text(&line, "\n");
	write_mark(name, &line);
	begin = memmem(body, length, line.data, line.length);
	if (begin != NULL) {
		size_t skipped = (size_t)(begin - body) + line.length;

		end = next_mark(body + skipped - 1, length - skipped + 1);
	}
	buf_free(&line);
	if (end == NULL)
		return false;
	while (end[-1] == '\n')
		end--;
	*text = begin + 1;
	*text_length = (size_t)(end - begin); /* with one newline at its end */
	return true;
}

bool test_file_drops(const char *body, size_t length, const char *other, size_t other_length)
{
	const char *at = body, *from = other, *end = body + length;

	while (at < end && (at = next_mark(at, (size_t)(end - at))) != NULL) {
		const char *newline = memchr(at + 1, '\n', (size_t)(end - at) - 1);
		size_t line = (size_t)((newline != NULL ? newline + 1 : end) - at);

		from = other_length > 0 ? memmem(from, other_length - (size_t)(from - other), at, line) : NULL;
		if (from == NULL)
			return true;
		from += line - 1; /* its newline may be the one before the next */
		at += line - 1;
	}
	return false;
}
