/* packed - see the header for the layout. Whoever reads it has bounds against a writer of another mind: every count is
 * held to what is left to read, every text to UTF-8, every number to what verdict_parse would take. */
#include "dataset/packed.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"

enum { FORM = 1, OUTPUTS = 1024, CONSTANTS = 64, FINDINGS = 4096, TEXT_BYTES = 16 << 20 };

static const int64_t EXACT_MAX = ((int64_t)1 << 53) - 1; /* of JSON's integers */

static void put_octet(struct buf *out, unsigned value)
{
	unsigned char octet = (unsigned char)value;

	buf_add(out, &octet, 1);
}

/* How many items follow; each takes an octet at least. */
static int get_count(struct octets *from, uint64_t most)
{
	uint64_t left = (uint64_t)(from->end - from->at);

	return (int)packed_most(from, left < most ? left : most);
}

/* --- Texts -------------------------------------------------------------------------------------------------------- */

/* 0 for NULL, else length + 1, the octets, and a NUL: whoever reads it may use it where it stands. */
static void put_text(struct buf *out, const char *text)
{
	size_t length = text != NULL ? strlen(text) : 0;

	packed_put(out, text != NULL ? length + 1 : 0);
	if (text != NULL)
		buf_add(out, text, length + 1);
}

static bool is_utf8(const char *text, size_t length)
{
	size_t at = 0, step;

	for (uint64_t eight; at + 8 <= length; at += 8) { /* as long as it is ASCII */
		memcpy(&eight, text + at, 8);
		if ((eight & 0x8080808080808080u) != 0)
			break;
	}
	for (; at < length; at += step)
		if ((step = (unsigned char)text[at] < 0x80 ? 1 : utf8_length(text + at, length - at)) == 0)
			return false;
	return true;
}

static const char *get_text(struct octets *from, bool nullable)
{
	uint64_t length = packed_get(from);

	if (length == 0) {
		from->bad = from->bad || !nullable;
		return nullable ? NULL : "";
	}
	const char *text = (const char *)packed_take(from, length);

	if (text == NULL || memchr(text, '\0', length) != text + length - 1 || !is_utf8(text, length - 1)) {
		from->bad = true;
		return "";
	}
	return text;
}

/* --- Skeletons ---------------------------------------------------------------------------------------------------- */

static void put_state(struct buf *out, enum status status, enum reason reason)
{
	put_octet(out, status);
	put_octet(out, reason);
}

static void get_state(struct octets *from, enum status *status, enum reason *reason)
{
	*status = (enum status)packed_most(from, STATUS_COUNT - 1);
	*reason = (enum reason)packed_most(from, REASON_COUNT - 1);
}

static void put_witnesses(const struct verdict *v, struct buf *out)
{
	packed_put(out, (uint64_t)v->witness_count);
	for (int i = 0; i < v->witness_count; i++) {
		const struct witness *w = &v->witnesses[i];

		put_octet(out, (unsigned)w->accident | (unsigned)w->coarse << 1);
		put_text(out, w->name);
		put_text(out, w->version);
		put_text(out, w->passed_over);
	}
}

static struct witness *get_witnesses(struct octets *from, struct arena *arena, struct verdict *out)
{
	out->witness_count = get_count(from, TRUTHS_MAX);
	struct witness *all = arena_array(arena, (size_t)out->witness_count, sizeof *all);

	for (int i = 0; i < out->witness_count; i++) {
		unsigned flags = (unsigned)packed_most(from, 3);

		all[i].accident = flags & 1;
		all[i].coarse = flags & 2;
		all[i].name = get_text(from, false);
		all[i].version = get_text(from, true);
		all[i].passed_over = get_text(from, true);
	}
	out->witnesses = all;
	return all;
}

static void put_output(const struct output_verdict *output, struct buf *out)
{
	struct sink rule = {.marks = out, .figures = out};

	put_text(out, output->name);
	put_text(out, output->ground_truth);
	put_state(out, output->status, output->reason);
	figure_put(&rule, output->atol);
	figure_put(&rule, output->rtol);
	figure_put(&rule, output->hit_ratio);
	put_octet(out, (unsigned)(output->rank - RANK_SCALAR));
	for (int i = 0; i < output->rank; i++)
		packed_put(out, (uint64_t)output->shape[i]);
}

/* Elements of the shape; -1: more than there can be. */
static int64_t elements_of(const struct output_verdict *output)
{
	int64_t elements = 1;

	for (int i = 0; i < output->rank; i++)
		if (__builtin_mul_overflow(elements, output->shape[i], &elements))
			return -1;
	return elements;
}

static void get_output(struct octets *from, struct output_verdict *out)
{
	struct source rule = {.marks = from, .figures = from};

	out->name = get_text(from, false);
	out->ground_truth = get_text(from, true);
	get_state(from, &out->status, &out->reason);
	out->atol = figure_get(&rule);
	out->rtol = figure_get(&rule);
	out->hit_ratio = figure_get(&rule);
	out->rank = RANK_SCALAR + (int)packed_most(from, RANK_MAX - RANK_SCALAR);
	for (int i = 0; i < out->rank; i++)
		out->shape[i] = (int64_t)packed_most(from, (uint64_t)EXACT_MAX);
	if (elements_of(out) < 0)
		from->bad = true;
}

static void put_constants(const struct verdict *v, struct buf *out)
{
	struct sink value = {.marks = out, .figures = out};

	packed_put(out, (uint64_t)v->constant_count);
	for (int i = 0; i < v->constant_count; i++) {
		put_text(out, v->constants[i].name);
		put_text(out, v->constants[i].source);
		figure_put(&value, v->constants[i].value);
	}
}

static void get_constants(struct octets *from, struct arena *arena, struct verdict *out)
{
	struct source value = {.marks = from, .figures = from};

	out->constant_count = get_count(from, CONSTANTS);
	struct named_value *all = arena_array(arena, (size_t)out->constant_count, sizeof *all);

	for (int i = 0; i < out->constant_count; i++) {
		all[i].name = get_text(from, false);
		all[i].source = get_text(from, false);
		all[i].value = figure_get(&value);
	}
	out->constants = all;
}

static void put_findings(const struct verdict *v, struct buf *out)
{
	packed_put(out, (uint64_t)v->finding_count);
	for (int i = 0; i < v->finding_count; i++)
		put_text(out, v->findings[i]);
}

static void get_findings(struct octets *from, struct arena *arena, struct verdict *out)
{
	out->finding_count = get_count(from, FINDINGS);
	const char **all = arena_array(arena, (size_t)out->finding_count, sizeof *all);

	for (int i = 0; i < out->finding_count; i++)
		all[i] = get_text(from, false);
	out->findings = all;
}

static void put_skeleton(const struct verdict *v, struct buf *out)
{
	put_state(out, v->status, v->reason);
	put_octet(out, (unsigned)v->weak | (unsigned)v->all_witnesses << 1);
	put_text(out, v->message);
	put_text(out, v->device_class);
	put_text(out, v->device);
	put_text(out, v->ground_truth);
	put_text(out, v->ground_truth_version);
	put_text(out, v->torch);
	put_text(out, v->cuda);
	packed_put(out, (uint64_t)v->reference_line);
	put_witnesses(v, out);
	packed_put(out, (uint64_t)v->output_count);
	for (int i = 0; i < v->output_count; i++)
		put_output(&v->outputs[i], out);
	put_constants(v, out);
	put_findings(v, out);
}

/* Lists that get their figures afterwards. */
struct lists {
	struct witness *witnesses;
	struct output_verdict *outputs;
};

static struct lists get_skeleton(struct octets *from, struct arena *arena, struct verdict *out)
{
	struct lists lists;

	get_state(from, &out->status, &out->reason);
	unsigned flags = (unsigned)packed_most(from, 3);

	out->weak = flags & 1;
	out->all_witnesses = flags & 2;
	out->message = get_text(from, true);
	out->device_class = get_text(from, true);
	out->device = get_text(from, true);
	out->ground_truth = get_text(from, true);
	out->ground_truth_version = get_text(from, true);
	out->torch = get_text(from, true);
	out->cuda = get_text(from, true);
	out->reference_line = (int)packed_most(from, INT32_MAX);
	lists.witnesses = get_witnesses(from, arena, out);
	out->output_count = get_count(from, OUTPUTS);
	lists.outputs = arena_array(arena, (size_t)out->output_count, sizeof *lists.outputs);
	out->outputs = lists.outputs;
	for (int i = 0; i < out->output_count && !from->bad; i++)
		get_output(from, &lists.outputs[i]);
	get_constants(from, arena, out);
	get_findings(from, arena, out);
	return lists;
}

/* --- What is measured --------------------------------------------------------------------------------------------- */

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	return bits;
}

/* Integers of metrics; a bit of the first octet of their marks says that one is not what it would be expected to be. */
enum { INTEGERS = 6, NUMBERS = 7, ZEROS_BIT = 1 << INTEGERS, PASSED_BIT = 2 << INTEGERS };

static void integers_of(const struct metrics *m, int64_t elements, int64_t is[INTEGERS], int64_t expected[INTEGERS])
{
	const int64_t found[INTEGERS] = {m->elements,	      m->hits,		m->nan_reference,
					 m->nan_ground_truth, m->inf_reference, m->inf_ground_truth};

	memcpy(is, found, sizeof found);
	memset(expected, 0, INTEGERS * sizeof *expected);
	expected[0] = elements;
	expected[1] = m->elements;
}

static void put_worst(struct sink *to, const struct worst *worst)
{
	packed_put(to->figures, (uint64_t)worst->index);
	figure_put(to, worst->reference);
	figure_put(to, worst->ground_truth);
	if (bits_of(worst->diff) == bits_of(fabs(worst->reference - worst->ground_truth)))
		put_octet(to->marks, MARK_APART);
	else
		figure_put(to, worst->diff);
}

static void put_metrics(struct sink *to, const struct output_verdict *output)
{
	const struct metrics *m = &output->metrics;
	const double numbers[NUMBERS] = {m->max_abs, m->mean_abs, m->max_rel, m->mean_rel,
					 m->cosine,  m->mse,	  m->margin};
	int64_t is[INTEGERS], expected[INTEGERS];
	unsigned bits = (m->zeros_would_pass ? ZEROS_BIT : 0u) | (m->passed ? PASSED_BIT : 0u);

	integers_of(m, elements_of(output), is, expected);
	for (int i = 0; i < INTEGERS; i++)
		bits |= (unsigned)(is[i] != expected[i]) << i;
	put_octet(to->marks, bits);
	for (int i = 0; i < INTEGERS; i++)
		if (is[i] != expected[i])
			packed_put(to->figures, (uint64_t)is[i]);
	for (int i = 0; i < NUMBERS; i++)
		figure_put(to, numbers[i]);
	put_octet(to->marks, (unsigned)m->worst_count);
	for (int i = 0; i < m->worst_count; i++)
		put_worst(to, &m->worst[i]);
}

static void get_worst(struct source *from, int64_t elements, struct worst *out)
{
	out->index = (int64_t)packed_most(from->figures, (uint64_t)elements - 1);
	out->reference = figure_get(from);
	out->ground_truth = figure_get(from);
	if (from->marks->at < from->marks->end && *from->marks->at == MARK_APART) {
		from->marks->at++;
		out->diff = fabs(out->reference - out->ground_truth);
	} else {
		out->diff = figure_get(from);
	}
}

static void get_metrics(struct source *from, struct output_verdict *output)
{
	struct metrics *m = &output->metrics;
	int64_t *integers[INTEGERS] = {&m->elements,	     &m->hits,		&m->nan_reference,
				       &m->nan_ground_truth, &m->inf_reference, &m->inf_ground_truth};
	double *numbers[NUMBERS] = {&m->max_abs, &m->mean_abs, &m->max_rel, &m->mean_rel,
				    &m->cosine,	 &m->mse,      &m->margin};
	int64_t elements = elements_of(output);
	unsigned bits = packed_octet(from->marks);

	for (int i = 0; i < INTEGERS; i++)
		*integers[i] = (bits >> i & 1) != 0 ? (int64_t)packed_most(from->figures, (uint64_t)EXACT_MAX)
			       : i == 0		    ? elements
			       : i == 1		    ? m->elements
						    : 0;
	m->zeros_would_pass = (bits & ZEROS_BIT) != 0;
	m->passed = (bits & PASSED_BIT) != 0;
	for (int i = 0; i < NUMBERS; i++)
		*numbers[i] = figure_get(from);
	m->worst_count = (int)packed_most(from->marks, elements > 0 ? METRICS_WORST : 0);
	for (int i = 0; i < m->worst_count; i++)
		get_worst(from, elements, &m->worst[i]);
	if (m->hits > m->elements || m->elements > EXACT_MAX)
		from->marks->bad = true;
}

static int64_t elements_together(const struct verdict *v)
{
	int64_t all = 0;

	for (int i = 0; i < v->output_count; i++)
		all += v->outputs[i].metrics.elements;
	return all;
}

static void put_figures(const struct verdict *v, struct sink *to)
{
	bool together = v->elements == elements_together(v);

	figure_put(to, v->seconds);
	put_octet(to->marks, together);
	if (!together)
		packed_put(to->figures, (uint64_t)v->elements);
	for (int i = 0; i < v->witness_count; i++) {
		figure_put(to, v->witnesses[i].seconds);
		figure_put(to, v->witnesses[i].prepared);
		figure_put(to, v->witnesses[i].margin);
	}
	for (int i = 0; i < v->output_count; i++)
		put_metrics(to, &v->outputs[i]);
}

static void get_figures(struct source *from, const struct lists *lists, struct verdict *out)
{
	out->seconds = figure_get(from);
	bool together = packed_most(from->marks, 1) != 0;

	out->elements = together ? 0 : (int64_t)packed_most(from->figures, (uint64_t)EXACT_MAX);
	for (int i = 0; i < out->witness_count; i++) {
		lists->witnesses[i].seconds = figure_get(from);
		lists->witnesses[i].prepared = figure_get(from);
		lists->witnesses[i].margin = figure_get(from);
	}
	for (int i = 0; i < out->output_count && !from->marks->bad && !from->figures->bad; i++)
		get_metrics(from, &lists->outputs[i]);
	if (together && !from->marks->bad)
		out->elements = elements_together(out);
	if (out->elements > EXACT_MAX)
		from->marks->bad = true;
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

bool verdict_is_packed(const void *text, size_t length)
{
	return length > 0 && *(const unsigned char *)text == FORM;
}

void packed_join(const struct packed_parts *parts, struct buf *out)
{
	put_octet(out, FORM);
	packed_put(out, packed_fold(parts->time));
	packed_put(out, parts->skeleton_length);
	packed_put(out, parts->marks_length);
	buf_add(out, parts->skeleton, parts->skeleton_length);
	buf_add(out, parts->marks, parts->marks_length);
	buf_add(out, parts->figures, parts->figures_length);
}

bool packed_split(const void *bytes, size_t length, struct packed_parts *out)
{
	struct octets from = {bytes, (const unsigned char *)bytes + length, false};

	if (!verdict_is_packed(bytes, length) || length > TEXT_BYTES)
		return false;
	from.at++;
	out->time = packed_unfold(packed_get(&from));
	out->skeleton_length = packed_get(&from);
	out->marks_length = packed_get(&from);
	out->skeleton = packed_take(&from, out->skeleton_length);
	out->marks = packed_take(&from, out->marks_length);
	out->figures = from.at;
	out->figures_length = (size_t)(from.end - from.at);
	return !from.bad && out->time <= EXACT_MAX && out->time >= -EXACT_MAX;
}

static void pack(const struct verdict *v, struct buf *out)
{
	struct buf skeleton = {0}, marks = {0}, figures = {0};
	struct sink to = {.marks = &marks, .figures = &figures};

	put_skeleton(v, &skeleton);
	put_figures(v, &to);
	packed_join(&(struct packed_parts){.time = v->time,
					   .skeleton = (const unsigned char *)skeleton.data,
					   .skeleton_length = skeleton.length,
					   .marks = (const unsigned char *)marks.data,
					   .marks_length = marks.length,
					   .figures = (const unsigned char *)figures.data,
					   .figures_length = figures.length},
		    out);
	buf_free(&skeleton);
	buf_free(&marks);
	buf_free(&figures);
}

const struct verdict *verdict_unpack(const void *bytes, size_t length, struct arena *arena)
{
	struct packed_parts parts;

	if (!packed_split(bytes, length, &parts))
		return NULL;
	const char *copy =
	    arena_copy(arena, parts.skeleton, parts.skeleton_length); /* texts are used where they stand */
	struct octets skeleton = {(const unsigned char *)copy, (const unsigned char *)copy + parts.skeleton_length,
				  false};
	struct octets marks = {parts.marks, parts.marks + parts.marks_length, false};
	struct octets figures = {parts.figures, parts.figures + parts.figures_length, false};
	struct source from = {.marks = &marks, .figures = &figures};
	struct verdict *out = arena_alloc(arena, sizeof *out);

	out->time = parts.time;
	struct lists lists = get_skeleton(&skeleton, arena, out);

	if (skeleton.bad || skeleton.at != skeleton.end)
		return NULL;
	get_figures(&from, &lists, out);
	if (marks.bad || figures.bad || marks.at != marks.end || figures.at != figures.end)
		return NULL;
	return out;
}

bool verdict_pack(const char *text, size_t length, struct buf *out)
{
	struct arena arena = {0};
	struct buf again = {0};
	size_t begin = out->length;
	const struct verdict *v = verdict_is_packed(text, length) ? NULL : verdict_parse(text, length, &arena, NULL);

	if (v != NULL) {
		pack(v, out);
		v = verdict_unpack(out->data + begin, out->length - begin, &arena);
	}
	if (v != NULL)
		verdict_write(v, &again);
	bool same = v != NULL && again.length == length && memcmp(again.data, text, length) == 0;

	if (!same)
		out->length = begin;
	buf_free(&again);
	arena_free(&arena);
	return same;
}
