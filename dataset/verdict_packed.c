/* verdict_packed - reads the packed form of a verdict, which older versions of reftest stored and exported. The next
 * version deletes this file, dataset/packed_bytes.[ch], cache/fingerprint_older.c and cache/archive_v2.[ch].
 *
 *   packed   = 0x01 . time . length of skeleton . length of marks . skeleton . marks . numbers
 *   skeleton = the parts that many verdicts share: state, texts, rules, shapes, names of outputs, constants, findings
 *   marks    = the encoding of each number, one byte each
 *   numbers  = the encoded numbers: seconds, elements, metrics, worst elements
 *
 * Integers are LEB128, signed ones in zigzag. The reader does not trust the writer: it checks every count against the
 * bytes that are left, that every text is UTF-8, and every number by the rules of verdict_parse. */
#include "dataset/verdict_internal.h"

#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "dataset/packed_bytes.h"

enum { FORM = 1, OUTPUTS = 1024, CONSTANTS = 64, FINDINGS = 4096, TEXT_BYTES = 16 << 20 };

static const int64_t EXACT_MAX = ((int64_t)1 << 53) - 1; /* the largest exact integer of JSON */

/* The encoding of a double. A value from 0 to 8 is the number of its most significant bytes that are stored; the other
 * bytes are 0. */
enum mark {
	MARK_ONE = 9,
	MARK_BFLOAT16 = 10, /* the upper two bytes of a float */
	MARK_FLOAT_3 = 11,  /* the upper three bytes of a float; its last byte is 0 */
	MARK_FLOAT = 12,
	MARK_SAME = 13, /* the number is the same as the previous one */
	MARK_NAN = 14,
	MARK_NANOS = 15, /* a whole number of billionths */
	MARK_ULPS = 16,	 /* a signed byte: the distance in ULPs from the previous number, which is a bfloat16 */
	MARK_APART = 17, /* the number is |reference - ground truth|; used only in a worst element */
};

/* The positions in the marks and in the numbers; both may be in the same bytes. */
struct source {
	struct packed_bytes *marks, *numbers;
	double last;
};

/* --- Numbers ----------------------------------------------------------------------------------------------------- */

static unsigned get_byte(struct packed_bytes *from)
{
	const unsigned char *at = packed_take(from, 1);

	return at != NULL ? *at : 0;
}

static uint64_t get_most(struct packed_bytes *from, uint64_t most)
{
	uint64_t value = packed_get(from);

	if (value > most)
		from->bad = true;
	return from->bad ? 0 : value;
}

/* Reads a count of items; each item takes at least one byte. */
static int get_count(struct packed_bytes *from, uint64_t most)
{
	uint64_t left = (uint64_t)(from->end - from->at);

	return (int)get_most(from, left < most ? left : most);
}

static uint32_t float_bits(double value)
{
	float narrow = (float)value;
	uint32_t bits;

	memcpy(&bits, &narrow, sizeof bits);
	return bits;
}

static double of_bits(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

static double of_float_bits(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof value);
	return (double)value;
}

static uint64_t get_high(struct packed_bytes *from, int width, int count)
{
	const unsigned char *at = packed_take(from, (uint64_t)count);
	uint64_t bits = 0;

	for (int i = 0; at != NULL && i < count; i++)
		bits |= (uint64_t)at[i] << (8 * (width - 1 - i));
	return bits;
}

static double read_number(struct source *from, unsigned mark)
{
	if (mark < MARK_ONE)
		return of_bits(get_high(from->numbers, 8, (int)mark));
	switch (mark) {
	case MARK_ONE:
		return 1;
	case MARK_BFLOAT16:
	case MARK_FLOAT_3:
	case MARK_FLOAT:
		return of_float_bits((uint32_t)get_high(from->numbers, 4, (int)mark - MARK_BFLOAT16 + 2));
	case MARK_SAME:
		return from->last;
	case MARK_NAN:
		return NAN;
	case MARK_NANOS:
		return (double)get_most(from->numbers, (uint64_t)1 << 36) / 1e9;
	case MARK_ULPS:
		return of_float_bits((float_bits(from->last) & 0xFFFF0000u) +
				     ((uint32_t)(int8_t)get_byte(from->numbers) << 16));
	default:
		from->marks->bad = true;
		return 0;
	}
}

static double get_number(struct source *from)
{
	double value = read_number(from, get_byte(from->marks));

	/* All NaNs become one bit pattern. */
	return from->last = isnan(value) ? NAN : value;
}

/* --- Skeletons ---------------------------------------------------------------------------------------------------- */

static bool is_utf8(const char *text, size_t length)
{
	size_t at = 0, step;

	for (uint64_t eight; at + 8 <= length; at += 8) { /* ASCII bytes are checked without decoding */
		memcpy(&eight, text + at, 8);
		if ((eight & 0x8080808080808080u) != 0)
			break;
	}
	for (; at < length; at += step)
		if ((step = (unsigned char)text[at] < 0x80 ? 1 : utf8_length(text + at, length - at)) == 0)
			return false;
	return true;
}

static const char *get_text(struct packed_bytes *from, bool nullable)
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

static void get_state(struct packed_bytes *from, enum status *status, enum reason *reason)
{
	*status = (enum status)get_most(from, STATUS_COUNT - 1);
	*reason = (enum reason)get_most(from, REASON_COUNT - 1);
}

static struct tried_truth *get_tried(struct packed_bytes *from, struct arena *arena, struct verdict *out)
{
	out->tried_count = get_count(from, GROUND_TRUTHS_MAX);
	struct tried_truth *all = arena_array(arena, (size_t)out->tried_count, sizeof *all);

	for (int i = 0; i < out->tried_count; i++) {
		unsigned flags = (unsigned)get_most(from, 7);

		all[i].accident = flags & 1;
		all[i].coarse = flags & 2;
		all[i].not_asked = flags & 4;
		all[i].name = get_text(from, false);
		all[i].version = get_text(from, true);
		all[i].passed_over = get_text(from, true);
	}
	out->tried = all;
	return all;
}

/* Returns the number of elements of the shape, or -1 if it is too large. */
static int64_t elements_of(const struct output_verdict *output)
{
	int64_t elements = 1;

	for (int i = 0; i < output->rank; i++)
		if (__builtin_mul_overflow(elements, output->shape[i], &elements))
			return -1;
	return elements;
}

static void get_output(struct packed_bytes *from, struct output_verdict *out)
{
	struct source rule = {.marks = from, .numbers = from};

	out->name = get_text(from, false);
	out->ground_truth = get_text(from, true);
	get_state(from, &out->status, &out->reason);
	out->atol = get_number(&rule);
	out->rtol = get_number(&rule);
	out->hit_ratio = get_number(&rule);
	out->rank = RANK_SCALAR + (int)get_most(from, RANK_MAX - RANK_SCALAR);
	for (int i = 0; i < out->rank; i++)
		out->shape[i] = (int64_t)get_most(from, (uint64_t)EXACT_MAX);
	if (elements_of(out) < 0)
		from->bad = true;
}

static void get_constants(struct packed_bytes *from, struct arena *arena, struct verdict *out)
{
	struct source value = {.marks = from, .numbers = from};

	out->constant_count = get_count(from, CONSTANTS);
	struct named_value *all = arena_array(arena, (size_t)out->constant_count, sizeof *all);

	for (int i = 0; i < out->constant_count; i++) {
		all[i].name = get_text(from, false);
		all[i].source = get_text(from, false);
		all[i].value = get_number(&value);
	}
	out->constants = all;
}

static void get_findings(struct packed_bytes *from, struct arena *arena, struct verdict *out)
{
	out->finding_count = get_count(from, FINDINGS);
	const char **all = arena_array(arena, (size_t)out->finding_count, sizeof *all);

	for (int i = 0; i < out->finding_count; i++)
		all[i] = get_text(from, false);
	out->findings = all;
}

/* The lists of the verdict, whose numbers are read after the skeleton. */
struct lists {
	struct tried_truth *tried;
	struct output_verdict *outputs;
};

static struct lists get_skeleton(struct packed_bytes *from, struct arena *arena, struct verdict *out)
{
	struct lists lists;

	get_state(from, &out->status, &out->reason);
	unsigned flags = (unsigned)get_most(from, 3);

	out->weak = flags & 1;
	out->all_tried = flags & 2;
	out->message = get_text(from, true);
	out->device_class = get_text(from, true);
	out->device = get_text(from, true);
	out->ground_truth = get_text(from, true);
	out->ground_truth_version = get_text(from, true);
	out->torch = get_text(from, true);
	out->cuda = get_text(from, true);
	out->reference_line = (int)get_most(from, INT32_MAX);
	lists.tried = get_tried(from, arena, out);
	out->output_count = get_count(from, OUTPUTS);
	lists.outputs = arena_array(arena, (size_t)out->output_count, sizeof *lists.outputs);
	out->outputs = lists.outputs;
	for (int i = 0; i < out->output_count && !from->bad; i++)
		get_output(from, &lists.outputs[i]);
	get_constants(from, arena, out);
	get_findings(from, arena, out);
	return lists;
}

/* --- Measurements ------------------------------------------------------------------------------------------------- */

/* The integers of metrics. The first byte of their marks has one bit for each integer, which is set if the integer
 * differs from its usual value. */
enum { INTEGERS = 6, NUMBERS = 7, ZEROS_BIT = 1 << INTEGERS, PASSED_BIT = 2 << INTEGERS };

static void get_worst(struct source *from, int64_t elements, struct worst *out)
{
	out->index = (int64_t)get_most(from->numbers, (uint64_t)elements - 1);
	out->reference = get_number(from);
	out->ground_truth = get_number(from);
	if (from->marks->at < from->marks->end && *from->marks->at == MARK_APART) {
		from->marks->at++;
		out->diff = fabs(out->reference - out->ground_truth);
	} else {
		out->diff = get_number(from);
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
	unsigned bits = get_byte(from->marks);

	for (int i = 0; i < INTEGERS; i++)
		*integers[i] = (bits >> i & 1) != 0 ? (int64_t)get_most(from->numbers, (uint64_t)EXACT_MAX)
			       : i == 0		    ? elements
			       : i == 1		    ? m->elements
						    : 0;
	m->zeros_would_pass = (bits & ZEROS_BIT) != 0;
	m->passed = (bits & PASSED_BIT) != 0;
	for (int i = 0; i < NUMBERS; i++)
		*numbers[i] = get_number(from);
	m->worst_count = (int)get_most(from->marks, elements > 0 ? METRICS_WORST : 0);
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

static void get_numbers(struct source *from, const struct lists *lists, struct verdict *out)
{
	out->seconds = get_number(from);
	bool together = get_most(from->marks, 1) != 0;

	out->elements = together ? 0 : (int64_t)get_most(from->numbers, (uint64_t)EXACT_MAX);
	for (int i = 0; i < out->tried_count; i++) {
		lists->tried[i].seconds = get_number(from);
		lists->tried[i].prepared = get_number(from);
		lists->tried[i].margin = get_number(from);
	}
	for (int i = 0; i < out->output_count && !from->marks->bad && !from->numbers->bad; i++)
		get_metrics(from, &lists->outputs[i]);
	if (together && !from->marks->bad)
		out->elements = elements_together(out);
	if (out->elements > EXACT_MAX)
		from->marks->bad = true;
}

/* --- The whole verdict -------------------------------------------------------------------------------------------- */

bool verdict_is_packed(const void *text, size_t length)
{
	return length > 0 && *(const unsigned char *)text == FORM;
}

bool packed_split(const void *bytes, size_t length, struct packed_parts *out)
{
	struct packed_bytes from = {bytes, (const unsigned char *)bytes + length, false};

	if (!verdict_is_packed(bytes, length) || length > TEXT_BYTES)
		return false;
	from.at++;
	out->time = packed_unfold(packed_get(&from));
	out->skeleton_length = packed_get(&from);
	out->marks_length = packed_get(&from);
	out->skeleton = packed_take(&from, out->skeleton_length);
	out->marks = packed_take(&from, out->marks_length);
	out->numbers = from.at;
	out->numbers_length = (size_t)(from.end - from.at);
	return !from.bad && out->time <= EXACT_MAX && out->time >= -EXACT_MAX;
}

const struct verdict *verdict_unpack(const void *bytes, size_t length, struct arena *arena)
{
	struct packed_parts parts;

	if (!packed_split(bytes, length, &parts))
		return NULL;
	const char *copy =
	    /* texts are not copied again: they point into this copy */
	    arena_copy(arena, parts.skeleton, parts.skeleton_length);
	struct packed_bytes skeleton = {(const unsigned char *)copy, (const unsigned char *)copy + parts.skeleton_length,
				  false};
	struct packed_bytes marks = {parts.marks, parts.marks + parts.marks_length, false};
	struct packed_bytes numbers = {parts.numbers, parts.numbers + parts.numbers_length, false};
	struct source from = {.marks = &marks, .numbers = &numbers};
	struct verdict *out = arena_alloc(arena, sizeof *out);

	out->time = parts.time;
	struct lists lists = get_skeleton(&skeleton, arena, out);

	if (skeleton.bad || skeleton.at != skeleton.end)
		return NULL;
	get_numbers(&from, &lists, out);
	if (marks.bad || numbers.bad || marks.at != marks.end || numbers.at != numbers.end)
		return NULL;
	return out;
}
