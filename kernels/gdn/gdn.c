/* gdn - the gated delta net: linear attention whose state forgets, and corrects what it holds under a key.
 *
 * A head's state S [V, K] meets the tokens of its sequence in order:
 *
 *   g = exp(-exp(A_log) softplus(a + dt_bias)),  beta = sigmoid(b)
 *   S <- g S;   S <- S + beta (v - S k) k^T;   output = scale S q
 *
 * S k is read after the decay, the output after the correction. Value head h has q and k of heads h / (H_v / H_q) and
 * h / (H_v / H_k). Nothing is normalised unless the name, a tag or a Python scalar says "l2norm": then q / |q| and
 * k / |k|. Scale 0, or none, is 1 / sqrt(K). softplus(x) = log(1 + e^x).
 *
 * Three forms, told apart by their tensors (roles.h has the shapes):
 *   decode, multi-token   q [batch, tokens, …]: each sequence has as many tokens
 *   prefill               q [total, …] and cu_seqlens
 * States lie by sequence, or, with indices, in slots of a pool. They are [V, K] (k last); where V = K, so that shapes
 * do not tell, they are [K, V] if the name, a tag or the description says "v-last" or "k-major".
 *
 * A multi-token pass over a pool serves verification of drafts: its output of states is the pool as it came in, if
 * nothing is to be updated, else with the new states in the slots of its sequences. Both are in use for one schema. A
 * scalar `disable_state_update` decides, else "disable_state_update=True" (or False) in a tag or the description; if
 * nothing speaks, the hidden constant updates_state is found by probing: is the pool that the reference answers the
 * one it got? All other forms update.
 *
 * A buffer of intermediate states takes the state after each token, at [slot, token] or, where its first axis is the
 * batch's, at [sequence, token]; the rest of it stays as it was. A reference that got one has to fill it: it is
 * compared like an output, by the rule of states, whether the pool is updated or not.
 *
 * Bounds. An output is scale |q| times a projection of the state, whose rows are around 1/2 in every direction that is
 * read: atol is 2^-12 scale sqrt(K / 3) (of a normalised q: 2^-12 scale), about a thousandth of a typical output;
 * rtol is one place of bfloat16 with room for what float32 sums lose (1e-6). States are float32 in most definitions: a
 * recurrence that contracts does not grow its roundings, so that they stay near 1e-7 for each token's decay, which a
 * state remembers: rtol 2^-12 is good for 4000 tokens, atol 2^-16 is 2^-14 of a typical element. The second contents have
 * four times the values and states, which all is linear in, and four times each atol. A pool that is not updated is the
 * same bits.
 *
 * Sequences without tokens keep their state, but implementations differ (the old one, zero, or not written?): --edge
 * alone has such. Left out for the same reason: slots below 0, slots that two sequences update or whose intermediate states both write. Workloads that
 * bring them are invalid. */
#include "kernels/gdn/inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/fit.h"
#include "kernels/gdn/gradient.h"
#include "kernels/gdn/oracle.h"
#include "kernels/gdn/roles.h"
#include "kernels/recurrence_packed.h"
#include "kernels/wide.h"

static int probe(const struct op_case *c, const struct tensor *in, const struct tensor *out,
                 struct op_constant *constants, struct err *err)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	const struct tensor *before = &in[roles.state], *after = &out[roles.new_state];
	bool same = true;

	(void)err;
	for (int64_t i = 0; i < after->elements && same; i++)
		same = number_get(before->data, before->dtype, i) == number_get(after->data, after->dtype, i);
	constants[0].value = same ? 0 : 1;
	return 0;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* Sequences, tokens of each (packed: in all), slots. Packed sequences: recurrence_fill_offsets. */
enum { PRESETS = 2, MANY = -1 }; /* MANY: recurrence_many, and 7 slots more */
static const struct preset {
	int64_t sequences, tokens, slots;
} by_batch[SIZE_COUNT][PRESETS] = {{{1, 2, 3}, {3, 5, 8}}, {{1, 17, 3}, {MANY, 2, MANY}}, {{64, 8, 96}}},
  one_token[SIZE_COUNT][PRESETS] = {{{1, 1, 3}, {3, 1, 8}}, {{MANY, 1, MANY}}, {{512, 1, 640}}},
  packed[SIZE_COUNT][PRESETS] = {{{1, 5, 3}, {2, 33, 7}}, {{17, 226, 23}}, {{8, 16384, 12}}};

static void set_axis(const struct op_problem *problem, int64_t *row, const struct op_arg *arg, int dimension,
                     int64_t value)
{
	if (problem->axes[arg->axis[dimension]].var)
		row[arg->axis[dimension]] = value;
}

static int64_t many(const struct op_problem *problem, const struct gdn_roles *roles)
{
	const struct op_arg *q = &problem->inputs[roles->q], *v = &problem->inputs[roles->v];
	int64_t size = fit_fixed(problem, q, q->rank - 1) * fit_fixed(problem, v, v->rank - 1) *
		       fit_fixed(problem, v, v->rank - 2);

	return recurrence_many(roles->buffer >= 0 ? 3 * size : size);
}

static void preset_axes(const struct op_problem *problem, const struct gdn_roles *roles, const struct preset *preset,
                        int64_t *row)
{
	const struct op_arg *q = &problem->inputs[roles->q];
	int64_t sequences = preset->sequences == MANY ? many(problem, roles) : preset->sequences;
	int64_t slots = preset->slots == MANY ? sequences + 7 : preset->slots;

	for (int a = 0; a < problem->axis_count; a++)
		row[a] = problem->axes[a].var ? sequences : problem->axes[a].value;
	if (roles->buffer >= 0)
		set_axis(problem, row, &problem->inputs[roles->buffer], 0, slots);
	if (roles->state >= 0)
		set_axis(problem, row, &problem->inputs[roles->state], 0, roles->indices >= 0 ? slots : sequences);
	if (roles->cu_seqlens >= 0) {
		set_axis(problem, row, &problem->inputs[roles->cu_seqlens], 0, sequences + 1);
		set_axis(problem, row, q, 0, preset->tokens);
		return;
	}
	set_axis(problem, row, q, 0, sequences);
	set_axis(problem, row, q, 1, preset->tokens);
}

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	struct gdn_roles roles = gdn_roles_of(problem);
	const struct preset *presets = roles.cu_seqlens >= 0				       ? packed[size]
				       : fit_fixed(problem, &problem->inputs[roles.q], 1) == 1 ? one_token[size]
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

/* The cases of --edge; op_case.edge is one of these. */
enum { EDGE_NO_SEQUENCES = 1, EDGE_EMPTY_SEQUENCE };

static const struct op_edge edges[] = {
    {"no_sequences", "where there is no sequence, nothing comes out, and a pool of states stays as it is"},
    {"empty_sequence", "a sequence without tokens has for its new state the one that it had"},
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
		return (struct rule){0x1p-16 * size, place, 1};
	if (!gdn_l2norm(c, &roles))
		size *= sqrt((double)gdn_extent_of(c, &roles).k_dim / 3);
	return (struct rule){0x1p-12 * fabs(gdn_scale(c, &roles)) * size, place, 1};
}

static struct op_leaves leaves(const struct op_case *c, int input)
{
	bool buffer = input == gdn_roles_of(c->problem).buffer;

	return (struct op_leaves){buffer ? op_own_place(c->problem, input) : OP_KEPT, false};
}

/* What leaving a scalar out stands for: a switch that is off, unless a name or a tag speaks of it. */
static double left_out(const struct op_case *c, const struct gdn_roles *roles, int input)
{
	return input == roles->l2norm && (c->variant & GDN_L2NORM) != 0 ? (double)NAN : 0;
}

/* In the second contents of the smallest cases the scale is 0, which asks for the default as None does. */
enum { NO_SCALE_TOKENS = 5 };

/* The presets have both values of each switch beside both of the other. */
static double scalar(const struct op_case *c, int input)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct gdn_extent e = gdn_extent_of(c, &roles);
	bool second = c->contents == CONTENTS_SECOND;

	if ((c->absent >> input & 1) != 0)
		return left_out(c, &roles, input);
	if (input == roles.scale)
		return second && e.total <= NO_SCALE_TOKENS ? 0 : recurrence_scale(c, e.k_dim, e.total);
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
	    {roles.v, GDN_V, e.v_heads, e.v_dim}, {roles.state, GDN_STATE, 1, 1},
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
	recurrence_size_keys(e.k_dim, &f.eighths, &f.exponent);
	return f;
}

/* All tokens are those of the middle sequence of three. */
static void fill_empty(const struct gdn_extent *e, struct tensor *out)
{
	for (int64_t n = 0; n < out->elements; n++)
		number_set(out->data, out->dtype, n, n < 2 ? 0 : (double)e->total);
}

/* Slots in random order: the first so many of a shuffled pool, each for so many sequences. */
static void fill_indices(const struct gdn_extent *e, uint64_t key, int64_t sharing, struct tensor *out)
{
	int64_t *order = calloc((size_t)e->slots + 1, sizeof *order);

	if (order == NULL)
		die_no_memory();
	for (int64_t i = 0; i < e->slots; i++) {
		int64_t j = philox_bits(key, i) % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (int64_t i = 0; i < out->elements; i++)
		number_set(out->data, out->dtype, i, (double)order[e->slots > 0 ? i / sharing % e->slots : 0]);
	free(order);
}

/* States and buffers, which are most of all elements, do not depend on their place. */
WIDE static void make_states(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                             float *values)
{
	const struct gdn_fill *f = recipe;

	(void)row;
	(void)column;
	if (f->part == GDN_STATE)
		for (int64_t i = 0; i < count; i++)
			values[i] = gdn_state(f, uniform_signed(random[i], 20));
	else
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
	if (f->part == GDN_STATE || f->part == GDN_BUFFER)
		input_fill(out, f->key, out->elements, make_states, f);
	else
		input_fill(out, f->key, f->dim, make_row, f);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct gdn_extent e = gdn_extent_of(c, &roles);
	struct gdn_fill f = gdn_fill_of(c, input);

	if (gdn_check_axes(c, &roles, &e, err) != 0)
		return -1;
	if (input == roles.cu_seqlens && c->edge == EDGE_EMPTY_SEQUENCE)
		fill_empty(&e, out);
	else if (input == roles.cu_seqlens)
		recurrence_fill_offsets(c, e.sequences, e.total, out);
	else if (input == roles.indices)
		fill_indices(&e, f.key, f.second && !gdn_writes_slots(c, &roles) ? 2 : 1, out);
	else
		fill_floats(&f, out);
	return 0;
}

/* --- what the cases reach ----------------------------------------------------------------------------------------- */

static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct gdn_roles roles = gdn_roles_of(problem);
	const struct {
		int role;
		struct op_range range;
	} ranges[] = {
	    {roles.q, {-0.99, 0.99}},  {roles.k, {-0.19, 0.19}},
	    {roles.v, {-3.9, 3.9}},    {roles.state, {-1.9, 1.9}},
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

/* Tokens of packed sequences beyond two chunks; more sequences than blocks have. */
static int64_t reach(const struct op_problem *problem, int variant, int axis)
{
	struct gdn_roles roles = gdn_roles_of(problem);
	const struct op_arg *q = &problem->inputs[roles.q];

	(void)variant;
	if (roles.cu_seqlens >= 0)
		return axis == q->axis[0] ? 226 : axis == problem->inputs[roles.cu_seqlens].axis[0] ? 18 : 0;
	return axis == q->axis[0] ? many(problem, &roles) : axis == q->axis[1] ? 17 : 0;
}

static const char *const op_types[] = {"gdn", NULL};

const struct op gdn_op = {
    .name = "gdn",
    .op_types = op_types,
    .match = gdn_match,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .constants = gdn_constants,
    .rule = rule,
    .leaves = leaves,
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
