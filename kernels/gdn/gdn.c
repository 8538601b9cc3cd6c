/* gdn - computes the gated delta net: linear attention whose state decays, and whose update corrects the value that is
 * stored for a key.
 *
 * Each head has a state S [V, K]. The tokens of a sequence update it in order:
 *
 *   g = exp(-exp(A_log) softplus(a + dt_bias)),  beta = sigmoid(b)
 *   S <- g S;   S <- S + beta (v - S k) k^T;   output = scale S q
 *
 * S k is computed after the decay, and the output is computed after the correction. Value head h uses q of head h /
 * (H_v / H_q) and k of head h / (H_v / H_k). If the definition's name, a tag or a Python scalar says "l2norm", q and k
 * are normalised to q / |q| and k / |k|; otherwise q and k are not normalised. If the scale is 0 or absent, it is 1 /
 * sqrt(K). softplus(x) = log(1 + e^x).
 *
 * A definition has one of two forms, which differ in the shape of q (roles.h lists all shapes):
 *
 *   decode or multi-token   q is [batch, tokens, …], and all sequences have the same number of tokens.
 *   prefill                 q is [total, …], and cu_seqlens divides the tokens into sequences.
 *
 * If the definition has an input with the slot of each sequence, the states are stored in the slots of a pool;
 * otherwise, sequence n has state n. A state is [V, K] (k last). If V = K, the shape does not show the layout. The
 * state is then [K, V] only if the name, a tag or the description says "v-last" or "k-major".
 *
 * A multi-token pass over a pool of states verifies draft tokens (speculative decoding). Some implementations return
 * the pool unchanged; others return the pool with the new states in the slots of the sequences. The inputs and outputs
 * of a definition do not show which of the two its reference does. The Python scalar `disable_state_update` selects
 * whether the pool stays unchanged. If the definition has no such scalar, "disable_state_update=True" (or False) in a
 * tag or in the description shows whether the pool stays unchanged. If the definition does not mention
 * disable_state_update at all, reftest runs the reference and observes whether it returns the pool unchanged (the
 * hidden constant updates_state). Only a multi-token pass over a pool may return the states unchanged.
 *
 * A buffer of intermediate states receives the state after each token: at [sequence, token] if the buffer's first axis
 * is the batch, else at [slot, token]. The other entries of the buffer stay unchanged. A reference that gets a buffer
 * must write to it, even if the pool is not updated. The buffer is compared like an output, with the tolerance of
 * states.
 *
 * Tolerances. An output element is the product of the scale, |q| and the projection of a state's row on the direction
 * of q. The projection is around 1/2, and |q| is about sqrt(K / 3), or 1 if q is normalised. Therefore the atol of
 * outputs is 2^-12 * scale * sqrt(K / 3), or 2^-12 * scale if q is normalised. This is about a thousandth of a typical
 * output. The rtol of outputs is one ulp of the output's dtype, with a margin for the errors of float32 sums (1e-6).
 * States are float32 in most definitions. The recurrence is contracting, so rounding errors are not amplified: each
 * token adds an error of about 1e-7, and the errors of earlier tokens decay with the state. References that process
 * several tokens at a time (in chunks) also round sums of gates. The bounds of states, an rtol of 2^-12 and an atol of
 * 2^-15, are derived from these roundings in kernels/common/linear_attention/input_values.c. In the second set of
 * values, v and the states are RECURRENCE_LARGER times as large. All outputs are jointly linear in v and the states, so
 * each atol of the second set is larger by the same factor. A pool that is not updated must keep all its bits.
 *
 * A sequence without tokens keeps its state. Some implementations return a new state of zeros for such a sequence, or
 * do not write the new state. Therefore only cases of --edge have sequences without tokens. Implementations also differ
 * for slot numbers below 0, and for slots to which two sequences write states or intermediate states. Therefore no case
 * has such slots, and a workload that has them is invalid. */
#include "kernels/gdn/input_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/common/linear_attention/packed.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"
#include "kernels/gdn/mistakes.h"
#include "kernels/gdn/gradient_oracle.h"
#include "kernels/gdn/oracle.h"
#include "kernels/gdn/roles.h"

static int probe(const struct op_case *c, const struct tensor *in, const struct tensor *out,
                 struct op_constant *constants, struct err *err)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	const struct tensor *before = &in[roles.state], *after = &out[roles.new_state];
	bool same = true;

	(void)err;
	for (int64_t i = 0; i < after->elements && same; i++)
		same = dtype_load(before->data, before->dtype, i) == dtype_load(after->data, after->dtype, i);
	constants[0].value = same ? 0 : 1;
	return 0;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* The sizes of the cases of each preset: the numbers of sequences, tokens and slots. `packed` is for packed sequences,
 * and has the number of tokens of all sequences together. `one_token` and `by_batch` have the number of tokens of each
 * sequence; `one_token` is for definitions in which this number is always 1. In one small case, all slots are used, in
 * random order. In one small case of `by_batch`, each sequence has only one token. The function recurrence_fill_offsets
 * divides packed tokens into sequences. */
enum { PRESETS = 4, BLOCK = -1, PAST_BLOCK = -2, POOL = -1 }; /* the negative numbers stand for the results of
							       * recurrence_block, recurrence_past_block and
							       * recurrence_pool */
static const struct preset {
	int64_t sequences, tokens, slots;
} by_batch[SIZE_COUNT][PRESETS] = {{{1, 2, 3}, {2, 1, 5}, {3, 5, 3}},
				   {{1, 17, 3}, {2, 16, 5}, {PAST_BLOCK, 2, POOL}, {BLOCK, 2, POOL}},
				   {{64, 8, 96}}},
  one_token[SIZE_COUNT][PRESETS] = {{{1, 1, 3}, {3, 1, 3}}, {{PAST_BLOCK, 1, POOL}, {BLOCK, 1, POOL}}, {{512, 1, 640}}},
  packed[SIZE_COUNT][PRESETS] = {{{1, 5, 3}, {2, 130, 7}}, {{65, 1281, POOL}, {64, 256, POOL}}, {{8, 16384, 12}}};

/* Returns the number of elements in all states of one sequence. In a case with many sequences, a sequence has at most
 * two tokens. If there is a buffer of intermediate states, a sequence thus has three states: its own and two
 * intermediate ones. */
static int64_t slot_elements(const struct op_problem *problem, const struct gdn_roles *roles)
{
	const struct op_arg *q = &problem->inputs[roles->q], *v = &problem->inputs[roles->v];
	int64_t size = match_fixed_length(problem, q, q->rank - 1) * match_fixed_length(problem, v, v->rank - 1) *
		       match_fixed_length(problem, v, v->rank - 2);

	return roles->buffer >= 0 ? 3 * size : size;
}

static void preset_axes(const struct op_problem *problem, const struct gdn_roles *roles, const struct preset *preset,
                        int64_t *row)
{
	const struct op_arg *q = &problem->inputs[roles->q];
	int64_t elements = slot_elements(problem, roles), sequences = preset->sequences, slots = preset->slots;

	if (sequences < 0)
		sequences = sequences == BLOCK ? recurrence_block(elements) : recurrence_past_block(elements);
	if (slots == POOL)
		slots = recurrence_pool(sequences, elements);

	op_start_axes(problem, sequences, row);
	if (roles->buffer >= 0)
		op_set_axis(problem, problem->inputs[roles->buffer].axis[0], slots, row);
	if (roles->state >= 0)
		op_set_axis(problem, problem->inputs[roles->state].axis[0], roles->indices >= 0 ? slots : sequences,
			    row);
	if (roles->cu_seqlens >= 0) {
		op_set_axis(problem, problem->inputs[roles->cu_seqlens].axis[0], sequences + 1, row);
		op_set_axis(problem, q->axis[0], preset->tokens, row);
		return;
	}
	op_set_axis(problem, q->axis[0], sequences, row);
	op_set_axis(problem, q->axis[1], preset->tokens, row);
}

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	struct gdn_roles roles = gdn_roles_of(problem);
	const struct preset *presets = roles.cu_seqlens >= 0				       ? packed[size]
				       : match_fixed_length(problem, &problem->inputs[roles.q], 1) == 1 ? one_token[size]
											       : by_batch[size];
	int count = 0;

	(void)variant;
	for (; count < PRESETS && presets[count].sequences != 0; count++) {
		if (count == room)
			return -1;
		preset_axes(problem, &roles, &presets[count], axis + (int64_t)count * problem->axis_count);
	}
	return count;
}

/* The values of op_case.edge, in the order of the table `edges`. */
enum { EDGE_NO_SEQUENCES = 1, EDGE_EMPTY_SEQUENCE };

static const struct op_edge edges[] = {
    {"no_sequences", "without sequences, outputs are empty, and a pool of states stays unchanged"},
    {"empty_sequence", "a sequence without tokens keeps its state"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	static const struct preset none = {0, 0, 3}, none_by_batch = {0, 2, 3}, middle = {3, 5, 5};
	struct gdn_roles roles = gdn_roles_of(problem);
	const struct op_arg *q = &problem->inputs[roles.q];
	bool packs = roles.cu_seqlens >= 0;

	(void)variant;
	if (!problem->axes[q->axis[0]].var || (packs && !problem->axes[problem->inputs[roles.cu_seqlens].axis[0]].var) ||
	    (edge == EDGE_EMPTY_SEQUENCE && !packs))
		return false;
	preset_axes(problem, &roles, edge == EDGE_EMPTY_SEQUENCE ? &middle : packs ? &none : &none_by_batch, axis);
	return true;
}

static void probe_axes(const struct op_problem *problem, int variant, int64_t *axis)
{
	struct gdn_roles roles = gdn_roles_of(problem);

	(void)variant;
	preset_axes(problem, &roles, &by_batch[SIZE_SMALL][0], axis);
}

static struct rule rule(const struct op_case *c, int output)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	bool buffer = roles.buffer >= 0 && output == op_own_place(c->problem, roles.buffer);
	enum dtype dtype = buffer ? c->problem->inputs[roles.buffer].dtype : c->problem->outputs[output].dtype;
	double place = dtype == DTYPE_BFLOAT16 ? 1e-2 : dtype == DTYPE_FLOAT16 ? 0x1p-9 : 0x1p-12;
	double size = c->contents == CONTENTS_SECOND ? RECURRENCE_LARGER : 1;

	if (output == roles.new_state && !gdn_updates(c, &roles))
		return (struct rule){0, 0, 1};
	if (buffer || output == roles.new_state)
		return (struct rule){RECURRENCE_STATE_ATOL * size, place, 1};
	if (!gdn_l2norm(c, &roles))
		size *= sqrt((double)gdn_extent_of(c, &roles).k_dim / 3);
	return (struct rule){0x1p-12 * fabs(gdn_scale(c, &roles)) * size, place, 1};
}

static struct op_in_place in_place(const struct op_case *c, int input)
{
	bool buffer = input == gdn_roles_of(c->problem).buffer;

	return (struct op_in_place){buffer ? op_own_place(c->problem, input) : OP_KEPT, false};
}

/* Returns the value of a Python scalar that a case omits. An omitted scale is 0, and an omitted boolean (l2norm or
 * disable_state_update) is false. If the definition's name or a tag mentions l2norm, however, the value of an omitted
 * l2norm is not known (NaN). */
static double left_out(const struct op_case *c, const struct gdn_roles *roles, int input)
{
	return input == roles->l2norm && (c->variant & GDN_L2NORM) != 0 ? (double)NAN : 0;
}

/* If a case has one sequence with at most this number of tokens, its second set of values has a scale of 0, which means
 * the default scale. */
enum { NO_SCALE_TOKENS = 5 };

/* Returns the value of a Python scalar. The cases of the presets cover all four combinations of l2norm and
 * disable_state_update. */
static double scalar(const struct op_case *c, int input)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct gdn_extent e = gdn_extent_of(c, &roles);
	bool second = c->contents == CONTENTS_SECOND;

	if ((c->absent >> input & 1) != 0)
		return left_out(c, &roles, input);
	if (input == roles.scale)
		return second && e.sequences <= 1 && e.total <= NO_SCALE_TOKENS ? 0 : recurrence_scale(c, e.k_dim, e.sequences);
	return (input == roles.l2norm ? e.sequences % 2 != 0 : e.sequences % 3 == 0) != second;
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

struct gdn_fill gdn_fill_of(const struct op_case *c, int input)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct gdn_extent e = gdn_extent_of(c, &roles);
	const struct {
		int role;
		enum gdn_part part;
		int64_t heads, dim;
	} parts[] = {
	    {roles.q, GDN_Q, e.q_heads, e.k_dim}, {roles.k, GDN_K, e.k_heads, e.k_dim},
	    {roles.v, GDN_V, e.v_heads, e.v_dim}, {roles.state, GDN_STATE, e.v_heads, e.k_dim * e.v_dim},
	    {roles.a_log, GDN_A_LOG, 1, 1},       {roles.a, GDN_A, e.v_heads, 1},
	    {roles.dt_bias, GDN_DT_BIAS, 1, 1},   {roles.b, GDN_B, e.v_heads, 1},
	    {roles.buffer, GDN_BUFFER, 1, 1},
	};
	struct gdn_fill f = {.key = input_key(c, input), .k_key = input_key(c, roles.k), .heads = 1, .dim = 1};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (parts[i].role == input) {
			f.part = parts[i].part;
			f.heads = parts[i].heads;
			f.dim = parts[i].dim;
		}
	f.follows = e.q_heads == e.k_heads;
	f.l2norm = gdn_l2norm(c, &roles);
	f.second = c->contents == CONTENTS_SECOND;
	f.doubtful = recurrence_is_doubtful(c, e.total);
	f.has_alike = (roles.cu_seqlens >= 0 ? e.total : e.tokens) > RECURRENCE_ALIKE;
	f.sharing = f.heads == e.v_heads ? e.v_heads / e.k_heads : 1;
	f.alike = recurrence_alike_of(e.k_dim, true, false);
	recurrence_size_keys(e.k_dim, &f.eighths, &f.exponent);
	f.single = roles.cu_seqlens < 0 && roles.indices < 0 && e.tokens == 1;
	f.short_query = recurrence_short_query(c->problem->outputs[roles.output].dtype, e.k_dim);
	return f;
}

/* Writes cu_seqlens for three sequences: the second one has all tokens, and the first and the last are empty. */
static void fill_empty(const struct gdn_extent *e, struct tensor *out)
{
	for (int64_t n = 0; n < out->elements; n++)
		dtype_store(out->data, out->dtype, n, n < 2 ? 0 : (double)e->total);
}

/* Writes the slot of each sequence, in random order. Each slot is used by `sharing` consecutive sequences. If there is
 * only one sequence, it has the same slot in both sets of values. */
static void fill_indices(const struct op_case *c, int input, const struct gdn_extent *e, int64_t sharing,
                         struct tensor *out)
{
	struct op_case planned = out->elements == 1 ? op_case_first(c) : *c;
	int64_t *order = take(e->slots, sizeof *order);

	recurrence_shuffle_slots(input_key(&planned, input), e->slots, (out->elements + sharing - 1) / sharing, order);
	for (int64_t i = 0; i < out->elements; i++)
		dtype_store(out->data, out->dtype, i, (double)order[e->slots > 0 ? i / sharing % e->slots : 0]);
	free(order);
}

/* Fills states and buffers. This function is vectorised, because most elements of a case belong to states and buffers.
 * All elements of a row have the same range. */
WIDE static void make_states(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                             float *values)
{
	const struct gdn_fill *f = recipe;

	(void)column;
	if (f->part == GDN_STATE) {
		float size = gdn_state_size(f, row);

		for (int64_t i = 0; i < count; i++)
			values[i] = uniform_signed(random[i], 20) * size;
	} else
		for (int64_t i = 0; i < count; i++)
			values[i] = gdn_untouched(uniform_signed(random[i], 20));
}

WIDE static void make_row(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                          float *values)
{
	const struct gdn_fill *f = recipe;

	for (int64_t i = 0; i < count; i++)
		values[i] = gdn_at(f, row, row * f->dim + column + i, random[i]);
}

static void fill_floats(const struct gdn_fill *f, struct tensor *out)
{
	bool states = f->part == GDN_STATE || f->part == GDN_BUFFER;

	input_fill(out, f->key, f->part == GDN_BUFFER ? out->elements : f->dim, states ? make_states : make_row, f);
}

static int fill_case(const struct op_case *c, int input, bool for_gradients, struct tensor *out, struct err *err)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct gdn_extent e = gdn_extent_of(c, &roles);
	struct gdn_fill f = gdn_fill_of(c, input);

	f.for_gradients = for_gradients;
	if (gdn_check_axes(c, &roles, &e, err) != 0)
		return -1;
	if (input == roles.cu_seqlens && c->edge == EDGE_EMPTY_SEQUENCE)
		fill_empty(&e, out);
	else if (input == roles.cu_seqlens)
		recurrence_fill_offsets(c, e.sequences, e.total, out);
	else if (input == roles.indices)
		fill_indices(c, input, &e, f.second && !gdn_writes_slots(c, &roles) ? 2 : 1, out);
	else
		fill_floats(&f, out);
	return 0;
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	return fill_case(c, input, false, out, err);
}

int gdn_fill_for_gradients(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	return fill_case(c, input, true, out, err);
}

/* --- ranges that the cases cover --------------------------------------------------------------------------------- */

static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct gdn_roles roles = gdn_roles_of(problem);
	const struct {
		int role;
		struct op_range range;
	} ranges[] = {
	    {roles.q, {-0.99, 0.99}},  {roles.k, {-0.19, 0.19}},
	    {roles.v, {-62, 62}},      {roles.state, {-31, 31}},
	    {roles.a, {-24, 96}},      {roles.a_log, {-6.6, 2.1}},
	    {roles.b, {-32, 32}},      {roles.dt_bias, {-6, 1}},
	    {roles.scale, {0, 1.75}}, {roles.buffer, {-127, 127}},
	    {roles.l2norm, {0, 1}},    {roles.frozen, {0, 1}},
	};

	(void)variant;
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (ranges[i].role == input) {
			*out = ranges[i].range;
			return true;
		}
	return false;
}

/* Returns the largest length of `axis` in the default cases, and the block size that the lengths test. */
static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	struct gdn_roles roles = gdn_roles_of(problem);
	const struct op_arg *q = &problem->inputs[roles.q];
	int64_t elements = slot_elements(problem, &roles);

	(void)variant;
	if (roles.cu_seqlens >= 0)
		return axis == q->axis[0]                                  ? (struct op_reach){1281, 256}
		       : axis == problem->inputs[roles.cu_seqlens].axis[0] ? (struct op_reach){66, 0}
		       : roles.state >= 0 && roles.indices < 0 && axis == problem->inputs[roles.state].axis[0]
			       ? (struct op_reach){65, 64}
		                                                             : (struct op_reach){0, 0};
	return axis == q->axis[0]   ? (struct op_reach){recurrence_past_block(elements), recurrence_block(elements)}
	       : axis == q->axis[1] ? (struct op_reach){17, 16}
	                            : (struct op_reach){0, 0};
}

static const char *const op_types[] = {"gdn", NULL};

const struct op gdn_op = {
    .name = "gdn",
    .op_types = op_types,
    .match = gdn_match,
    .roles = gdn_role_names,
    .bind = gdn_bind,
    .modes = gdn_mode_names,
    .mistakes = gdn_mistakes,
    .coverage = gdn_coverage,
    .sizes = sizes,
    .medium_runs = LAST_MEDIUM_RUNS_TWICE,
    .edges = edges,
    .edge_axes = edge_axes,
    .constants = gdn_constants,
    .free_constants = true, /* the reference may update the returned pool or leave it unchanged */
    .rule = rule,
    .in_place = in_place,
    .scalar = scalar,
    .range = range,
    .reach = reach,
    .fill = fill,
    .check = gdn_check,
    .oracle = gdn_oracle,
    .gradient = &gdn_gradient,
    .probe = probe,
    .probe_axes = probe_axes,
};
