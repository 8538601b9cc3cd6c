#include "testgen/test_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dataset/python_tokens.h"
#include "testgen/python_text.h"

/* The line above each class begins with `mark`, and so does the line after the last class. The text of a definition
 * cannot contain such a line, because python_text escapes the mark. */
#define MARK "# definition: "
static const char mark[] = MARK;

enum { LINE = 88, ALIAS = 160, ALIASES = DEFINITION_AXES + 16 };

/* The names of the class attributes for axes and constants, in upper case. The name is "" if the axis or constant has
 * no attribute. */
struct aliases {
	char name[ALIASES][ALIAS];
	int count;
};

/* ---- names ------------------------------------------------------------------------------------------------------ */

static bool is_taken(const struct aliases *aliases, const char *name)
{
	/* The attribute of an axis or constant must not get one of these names: they are the other attributes of a
	 * class, and I and O, which linters reject because they look like digits. */
	static const char *const reserved[] = {"OP_TYPE",   "NAME",  "FAMILY", "ROLES", "OUTPUT_ROLES", "MODES",
					       "AXES",	    "SIZES", "EDGES",  "PROBE", "CONSTANTS",    "LEAVES",
					       "RULES",	    "SCALARS", "SAMPLES", "REFERENCE", "OMITTED", "DEFAULT_NUMBERS",
					       "I",	    "O",     "ENTRY_POINT", "RUNS"};

	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		if (strcmp(reserved[i], name) == 0)
			return true;
	for (int i = 0; i < aliases->count; i++)
		if (strcmp(aliases->name[i], name) == 0)
			return true;
	return false;
}

/* Adds the attribute name for the axis or constant `name`, and returns it. The attribute name is "" if none can be made
 * from `name`. */
static const char *add_alias(struct aliases *aliases, const char *name)
{
	char upper[ALIAS] = "";
	size_t length = strlen(name);

	for (size_t i = 0; length < sizeof upper && python_is_argument(name) && i <= length; i++)
		upper[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
	if (name[0] == '_' || is_taken(aliases, upper))
		upper[0] = '\0';
	memcpy(aliases->name[aliases->count], upper, sizeof upper);
	return aliases->name[aliases->count++];
}

/* Writes the part of a keyword argument before its value; end_argument writes the part after the value. If the name
 * cannot be a keyword argument in Python, writes the argument in the form **{"batch size": 3}. */
static void begin_argument(const char *name, struct buf *out)
{
	if (python_is_argument(name)) {
		buf_printf(out, "%s=", name);
		return;
	}
	buf_text(out, "**{");
	python_string(out, name);
	buf_text(out, ": ");
}

static void end_argument(const char *name, struct buf *out)
{
	buf_text(out, python_is_argument(name) ? "" : "}");
}

/* ---- a class ---------------------------------------------------------------------------------------------------- */

static void write_axes(const struct definition *d, struct aliases *aliases, struct buf *out)
{
	for (int i = 0; i < d->axis_count; i++) {
		const char *alias = add_alias(aliases, d->axes[i].var ? "_" : d->axes[i].name);

		if (alias[0] != '\0')
			buf_printf(out, "    %s = %lld\n", alias, (long long)d->axes[i].value);
	}
	if (d->axis_count == 0)
		return;
	buf_text(out, "    AXES = conftest.constants(\n");
	for (int i = 0; i < d->axis_count; i++) {
		buf_text(out, "        ");
		begin_argument(d->axes[i].name, out);
		if (d->axes[i].var)
			buf_text(out, "None");
		else if (aliases->name[i][0] != '\0')
			buf_text(out, aliases->name[i]);
		else
			buf_printf(out, "%lld", (long long)d->axes[i].value);
		end_argument(d->axes[i].name, out);
		buf_text(out, ",\n");
	}
	buf_text(out, "    )\n");
}

/* Ends the line with a comment that names the source of a constant. */
static void write_source(const struct test_class *c, const struct test_constant *constant, struct buf *out)
{
	buf_text(out, "  # ");
	python_comment(out, constant->source);
	if (isnan(constant->value) && c->probe != NULL)
		buf_text(out, ": PROBE asks the reference");
	buf_text(out, "\n");
}

static void write_constants(const struct test_class *c, struct aliases *aliases, struct buf *out)
{
	int first = aliases->count;

	if (c->constant_count == 0)
		return;
	for (int i = 0; i < c->constant_count; i++) {
		const char *alias = add_alias(aliases, c->constants[i].name);

		if (alias[0] == '\0')
			continue;
		buf_printf(out, "    %s = ", alias);
		python_number(out, c->constants[i].value);
		write_source(c, &c->constants[i], out);
	}
	buf_text(out, "    CONSTANTS = conftest.constants(\n");
	for (int i = 0; i < c->constant_count; i++) {
		buf_printf(out, "        %s=", c->constants[i].name);
		if (aliases->name[first + i][0] != '\0') {
			buf_printf(out, "%s,\n", aliases->name[first + i]);
			continue;
		}
		python_number(out, c->constants[i].value);
		buf_text(out, ",");
		write_source(c, &c->constants[i], out);
	}
	buf_text(out, "    )\n");
}

static void write_role_names(const char *attribute, const struct test_role *roles, int count, struct buf *out)
{
	if (count == 0)
		return;
	buf_printf(out, "    %s = conftest.constants(\n", attribute);
	for (int i = 0; i < count; i++) {
		buf_printf(out, "        %s=", roles[i].role);
		python_string(out, roles[i].name);
		buf_text(out, ",\n");
	}
	buf_text(out, "    )\n");
}

/* Writes each name as a Python string. Writes the text `between` after each string except the last, and the text
 * `after` at the end. */
static void write_names(const char *const *names, int count, const char *between, const char *after, struct buf *out)
{
	for (int i = 0; i < count; i++) {
		buf_text(out, i > 0 ? between : "");
		python_string(out, names[i]);
	}
	buf_text(out, after);
}

/* Writes a class attribute with a tuple of names, on one line if it fits. Writes nothing if there are no names. */
static void write_tuple(const char *attribute, const char *const *names, int count, struct buf *out)
{
	size_t begin = out->length;

	if (count == 0)
		return;
	buf_printf(out, "    %s = (", attribute);
	write_names(names, count, ", ", count == 1 ? ",)\n" : ")\n", out);
	if (out->length - begin <= LINE + 1)
		return;
	out->length = begin;
	buf_printf(out, "    %s = (\n        ", attribute);
	write_names(names, count, ",\n        ", ",\n    )\n", out);
}

/* Writes the op family, the modes, and the roles of inputs and outputs. */
static void write_roles(const struct test_class *c, struct buf *out)
{
	if (c->family == NULL) {
		buf_text(out, "    FAMILY = None\n");
		return;
	}
	buf_printf(out, "    FAMILY = \"%s\"\n", c->family);
	write_role_names("ROLES", c->roles, c->role_count, out);
	write_role_names("OUTPUT_ROLES", c->output_roles, c->output_role_count, out);
	write_tuple("MODES", c->modes, c->mode_count, out);
}

/* Writes the entry for one input in the class attribute LEAVES. The entry says which values the input has after the
 * call: the values of an output, or other values that the operation computes. It also says whether the input may keep
 * its old values. */
static void write_left_values(const struct test_left *left, struct buf *out)
{
	if (left->output == NULL) {
		buf_text(out, left->may_keep ? "conftest.KEPT_OR_WRITTEN" : "conftest.WRITTEN");
		return;
	}
	buf_text(out, left->may_keep ? "" : "conftest.written(");
	python_string(out, left->output);
	buf_text(out, left->may_keep ? "" : ")");
}

/* Writes LEAVES, the list of inputs that the operation may write to. Writes None if the class has no op family, because
 * reftest then does not know these inputs. */
static void write_left(const struct test_class *c, struct buf *out)
{
	if (c->family == NULL) {
		buf_text(out, "    LEAVES = None\n");
		return;
	}
	if (c->left_count == 0)
		return;
	buf_text(out, "    LEAVES = conftest.constants(\n");
	for (int i = 0; i < c->left_count; i++) {
		buf_text(out, "        ");
		begin_argument(c->left[i].input, out);
		write_left_values(&c->left[i], out);
		end_argument(c->left[i].input, out);
		buf_text(out, ",\n");
	}
	buf_text(out, "    )\n");
}

/* Writes the arguments of a call like conftest.size("small", batch_size=1), with the text `between` after each
 * comma. */
static void write_size_words(const struct definition *d, const struct test_size *size, const char *between,
			     struct buf *out)
{
	buf_printf(out, "\"%s\"", size->label);
	for (int i = 0; i < d->axis_count; i++) {
		if (!d->axes[i].var)
			continue;
		buf_printf(out, ",%s", between);
		begin_argument(d->axes[i].name, out);
		buf_printf(out, "%lld", (long long)size->axis[i]);
		end_argument(d->axes[i].name, out);
	}
}

/* Writes `head`, then a call of conftest's function `function`, then `tail`. The first line is indented by `indent`
 * spaces. Writes all this on one line if it fits. */
static void write_size(const struct definition *d, int indent, const char *head, const char *function,
		       const struct test_size *size, const char *tail, struct buf *out)
{
	size_t begin = out->length;
	char between[32];

	buf_printf(out, "%*s%sconftest.%s(", indent, "", head, function);
	write_size_words(d, size, " ", out);
	buf_printf(out, ")%s\n", tail);
	if (out->length - begin <= LINE + 1)
		return;
	out->length = begin;
	snprintf(between, sizeof between, "\n%*s", indent + 4, "");
	buf_printf(out, "%*s%sconftest.%s(%s", indent, "", head, function, between);
	write_size_words(d, size, between, out);
	buf_printf(out, ",\n%*s)%s\n", indent, "", tail);
}

/* Writes a class attribute with a tuple of cases. Writes a tuple with one case on one line if it fits. */
static void write_cases(const struct definition *d, const char *attribute, const char *function,
			const struct test_size *cases, int count, struct buf *out)
{
	size_t begin = out->length;

	if (count == 0)
		return;
	if (count == 1) {
		buf_printf(out, "    %s = (conftest.%s(", attribute, function);
		write_size_words(d, &cases[0], " ", out);
		buf_text(out, "),)\n");
		if (out->length - begin <= LINE + 1)
			return;
		out->length = begin;
	}
	buf_printf(out, "    %s = (\n", attribute);
	for (int i = 0; i < count; i++)
		write_size(d, 8, "", function, &cases[i], ",", out);
	buf_text(out, "    )\n");
}

/* Writes RUNS. For each size, RUNS has a tuple with one element per run of the reference: 1 for a run on the first set
 * of input values, 2 for a run on the second set. */
static void write_runs(const struct test_class *c, struct buf *out)
{
	static const char *const sets[JOB_RUNS_COUNT] = {[JOB_RUNS_ALL] = "(1, 2, 1)", [JOB_RUNS_BOTH] = "(1, 2)",
							 [JOB_RUNS_FIRST] = "(1,)", [JOB_RUNS_SECOND] = "(2,)"};
	size_t begin = out->length;

	if (c->size_count == 0)
		return;
	for (int i = 0; i < c->size_count; i++)
		buf_printf(out, "%s%s", i == 0 ? "    RUNS = (" : ", ", sets[c->sizes[i].runs]);
	buf_text(out, c->size_count == 1 ? ",)\n" : ")\n");
	if (out->length - begin <= LINE + 1)
		return;
	out->length = begin;
	buf_text(out, "    RUNS = (\n");
	for (int i = 0; i < c->size_count; i++)
		buf_printf(out, "        %s,\n", sets[c->sizes[i].runs]);
	buf_text(out, "    )\n");
}

static void write_probe(const struct test_class *c, struct buf *out)
{
	const struct test_size probe = {"probe", c->probe, JOB_RUNS_ALL};

	if (c->probe != NULL)
		write_size(c->definition, 4, "PROBE = ", "probe", &probe, "", out);
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

/* Writes OMITTED and DEFAULT_NUMBERS, which list additional cases of the last small size. Each case either omits one
 * optional input, or passes for one Python scalar the number that means "use the default". */
static void write_repeats(const struct test_class *c, struct buf *out)
{
	write_tuple("OMITTED", c->omitted, c->omitted_count, out);
	if (c->number_count > 0)
		buf_text(out, "    DEFAULT_NUMBERS = conftest.constants(\n");
	for (int i = 0; i < c->number_count; i++) {
		buf_text(out, "        ");
		begin_argument(c->numbers[i].input, out);
		write_scalar(c->numbers[i].dtype, c->numbers[i].number, out);
		end_argument(c->numbers[i].input, out);
		buf_text(out, ",\n");
	}
	buf_text(out, c->number_count > 0 ? "    )\n" : "");
}

/* Writes the values of a Python scalar: one value per size, or a single value if it is the same for all sizes. */
static void write_scalars_of(const struct test_class *c, int input, struct buf *out)
{
	const struct tensor_spec *spec = &c->definition->inputs[input];
	int width = c->definition->input_count, rows = 1;

	for (int i = 1; i < c->size_count; i++)
		if (c->scalars[i * width + input] != c->scalars[input])
			rows = c->size_count;
	buf_text(out, "        ");
	begin_argument(spec->name, out);
	buf_text(out, "[");
	for (int i = 0; i < rows; i++) {
		buf_text(out, rows > 1 ? "\n            " : "");
		write_scalar(spec->dtype, c->scalars[i * width + input], out);
		buf_text(out, rows > 1 ? "," : "");
	}
	buf_text(out, rows > 1 ? "\n        ]" : "]");
	end_argument(spec->name, out);
	buf_text(out, ",\n");
}

/* Writes the values that `reftest verify` passes for Python scalars. */
static void write_scalars(const struct test_class *c, struct buf *out)
{
	int count = 0;

	for (int i = 0; i < c->definition->input_count && c->scalars != NULL && c->size_count > 0; i++) {
		if (c->definition->inputs[i].rank != RANK_SCALAR)
			continue;
		buf_text(out, count++ == 0 ? "    SCALARS = conftest.constants(\n" : "");
		write_scalars_of(c, i, out);
	}
	buf_text(out, count > 0 ? "    )\n" : "");
}

static bool same_rule(const struct tolerance *a, const struct tolerance *b)
{
	return a->atol == b->atol && a->rtol == b->rtol && a->hit_ratio == b->hit_ratio;
}

/* Returns whether the output has the same tolerance rule at all sizes. */
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

/* Writes a tolerance rule on one line, or on four lines if it is too long for one. */
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

/* For each output, writes the tolerance rules (atol, rtol, hit ratio) that `reftest verify` applies: a single rule, or
 * one rule for each size in SIZES. If op.judge judges the output, writes None, because the output has no tolerance
 * rule. */
static void write_rules(const struct test_class *c, struct buf *out)
{
	int width = c->definition->output_count;

	if (c->rules == NULL || c->size_count == 0)
		return;
	buf_text(out, "    RULES = conftest.rules(\n");
	for (int output = 0; output < width; output++) {
		int rows = one_rule(c, output) ? 1 : c->size_count;

		if (c->judged != NULL && c->judged[output]) {
			buf_text(out, "        None,  # ");
			python_comment(out, c->definition->outputs[output].name);
			buf_text(out, ": reftest's kernels judge it\n");
			continue;
		}
		buf_text(out, "        [  # ");
		python_comment(out, c->definition->outputs[output].name);
		buf_text(out, "\n");
		for (int i = 0; i < rows; i++)
			write_rule(&c->rules[i * width + output], out);
		buf_text(out, "        ],\n");
	}
	buf_text(out, "    )\n");
}

static void write_entry_point(const struct definition *d, struct buf *out)
{
	if (d->entry_point == NULL || strcmp(d->entry_point, "run") == 0)
		return;
	buf_text(out, "    ENTRY_POINT = ");
	python_string(out, d->entry_point);
	buf_text(out, "\n");
}

/* Writes the attributes of a class. Omits an attribute if it has the default value, which the class inherits from
 * conftest.DefinitionTests. */
static void write_class(const struct test_class *c, struct buf *out)
{
	const struct definition *d = c->definition;
	struct aliases aliases = {.count = 0};

	buf_text(out, "    OP_TYPE = ");
	python_string(out, d->op_type);
	buf_text(out, "\n    NAME = ");
	python_string(out, d->name);
	buf_text(out, "\n");
	write_roles(c, out);
	write_axes(d, &aliases, out);
	write_constants(c, &aliases, out);
	write_probe(c, out);
	write_left(c, out);
	write_cases(d, "SIZES", "size", c->sizes, c->size_count, out);
	write_runs(c, out);
	write_repeats(c, out);
	write_cases(d, "EDGES", "edge", c->edges, c->edge_count, out);
	write_scalars(c, out);
	write_rules(c, out);
	buf_text(out, c->samples ? "    SAMPLES = True\n" : "");
	write_entry_point(d, out);
	buf_text(out, "    REFERENCE = ");
	python_text(out, d->reference, d->reference_length, mark);
	buf_text(out, "\n");
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

/* Appends the name of each class to `names`, without the prefix "Test" and with a NUL at its end. Sets at[i] to the
 * position of name i. */
static void class_names(const struct test_class *classes, int count, struct buf *names, size_t *at)
{
	for (int i = 0; i < count; i++) {
		at[i] = names->length;
		python_class_name(names, classes[i].name);
		buf_add(names, "", 1);
	}
}

/* Counts the classes before class `index` that have the same name. The class names of two definitions, such as "a_b"
 * and "a__b", can be the same. In that case, the caller adds a number to the name of the later class. */
static int namesakes_before(const struct buf *names, const size_t *at, int index)
{
	int same = 0;

	for (int i = 0; i < index; i++)
		same += strcmp(names->data + at[i], names->data + at[index]) == 0;
	return same;
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
		buf_printf(out, "class Test%s%s(conftest.DefinitionTests):\n", names.data + at[i], number);
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
		      "import conftest\n");
	write_classes(classes, count, &arena, out);
	buf_printf(out,
		   "\n\n%snone\ndef main():\n    return conftest.main(__file__)\n\n\n"
		   "if __name__ == \"__main__\":\n    raise SystemExit(main())\n",
		   mark);
	arena_free(&arena);
}

/* Finds the newline before the next line that starts with MARK. Ignores a MARK inside a line, because untrusted text
 * may contain it there. */
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
	*text_length = (size_t)(end - begin); /* the text ends with one newline */
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
		from += line - 1; /* continues the search at the newline that ends this line, because the next mark may
				   * directly follow this newline */
		at += line - 1;
	}
	return false;
}
