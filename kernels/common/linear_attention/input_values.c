/* input_values - computes the sizes, bounds, edge cases and inputs of recurrences. The comment at the top of
 * input_values.h describes the input values.
 *
 * Bounds of outputs. An output is the product of the scale, |q| and a projection of the state. |q| is about sqrt(K /
 * 3), or 1 if q is normalised. If there is an initial state, the projection of a row of the state on q / |q| is around
 * 1/2. atol is then 2^-12 scale |q|, about 1/2000 of a typical output. If there is no initial state, the state is a sum
 * of a few terms k v^T. Each term contributes about a fifth of v to the projection. atol is then 2^-12 scale. rtol is
 * one ulp of bfloat16 or float16 plus a margin for the errors of float32 sums. For float32, rtol is 2^-12.
 *
 * Bounds of states. A reference that processes tokens one by one rounds each element once per token, with a relative
 * error of up to 2^-24, and these errors decay with the state. Chunked references sum gates, and compute exponentials
 * of the differences between these sums. Each of the last few additions to a sum of gates has a rounding error of at
 * most 2^-15 (input_values.h). rtol is 2^-12, which is eight of these errors. atol matters if an element of a state is
 * much smaller than the terms k v of which it is the sum. A term k v may be as large as a typical element of a state,
 * 1/4. Eight rounding errors change a term by at most 2^-12 of its size. As their signs and sizes are random, their sum
 * has a standard deviation of 1.6 times 2^-15, and rarely exceeds 2^-13. Hence, atol is 2^-13 times 1/4, which is 2^-15
 * (RECURRENCE_STATE_ATOL). With a constant gate, g_gamma, every token has the same rounding error of exp(g), up to
 * 2^-23 on a GPU. A term that is n tokens old has n times this error, instead of a sum of errors with random signs.
 * Therefore, in sequences of more than 512 tokens, atol grows with the number of tokens. It grows at most fourfold,
 * because the gates of default cases reduce older terms to almost nothing.
 *
 * Outputs and states are linear in v and the initial state. In the second set of input values, v and the initial state
 * are RECURRENCE_LARGER times as large, and so is each atol. */
#include "kernels/common/linear_attention/input_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/common/linear_attention/packed.h"
#include "kernels/core/input_check.h"
#include "kernels/core/shape_match.h"

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* The numbers of sequences and tokens of the cases. In packed cases, `tokens` is the total number of tokens; in other
 * cases, it is the number of tokens of each sequence. The total modulo 8 determines which switches, such as
 * beta_sigmoid, are on (recurrence_scalar). One small case has more than one chunk of 64 tokens, and lacks the optional
 * initial state. In the medium cases, the number of tokens is a multiple of 256, or one more than a multiple. One
 * sequence has 1025 tokens, because references have blocks or tables for up to 1024 tokens, and because errors are
 * possible where they pass the state from one whole chunk to the next. recurrence_fill_offsets sets the lengths of
 * packed sequences. */
enum { PRESETS = 4, BLOCK = -1, PAST_BLOCK = -2 }; /* the results of recurrence_block and recurrence_past_block */
static const struct preset {
	int64_t sequences, tokens;
} by_batch[SIZE_COUNT][PRESETS] = {{{1, 3}, {2, 81}}, {{1, 256}, {1, 1025}, {PAST_BLOCK, 1}, {BLOCK, 1}}, {{4, 2048}}},
  packed[SIZE_COUNT][PRESETS] = {{{1, 5}, {2, 130}}, {{65, 1281}, {64, 256}}, {{8, 16384}}},
  edges[] = {{0}, {0, 0}, {1, 1}, {2, 0}, {5, 12}, {2, 9}, {2, 7}};

const struct op_edge recurrence_edges[] = {
    {"no_sequences", "without sequences, the outputs are empty"},
    {"one_token", "a sequence may have a single token"},
    {"no_tokens", "the final state of a sequence without tokens is its initial state"},
    {"empty_sequences",
     "the final state of a sequence without tokens is its initial state, and no other sequence is affected"},
    {"forgets_all", "a gate of -100 erases the state: e^-100 is almost 0, and no NaN results"},
    {"rows_of_zeros", "a row of zeros stays a row of zeros when it is normalised"},
    {NULL, NULL},
};

/* Returns the number of elements of one sequence's state. If the definition has no states, returns the number of
 * elements of one token's v. */
static int64_t elements_of_sequence(const struct op_problem *problem, const struct recurrence_roles *roles)
{
	const struct op_arg *q = &problem->inputs[roles->q], *v = &problem->inputs[roles->v];
	int64_t size = match_fixed_length(problem, v, v->rank - 2) * match_fixed_length(problem, v, v->rank - 1);

	return roles->state >= 0 || roles->new_state >= 0 ? size * match_fixed_length(problem, q, q->rank - 1) : size;
}

static void preset_axes(const struct op_problem *problem, const struct preset *preset, int64_t *row)
{
	struct recurrence_roles roles = recurrence_roles_of(problem);
	const struct op_arg *q = &problem->inputs[roles.q];
	int64_t elements = elements_of_sequence(problem, &roles), sequences = preset->sequences;

	if (sequences < 0)
		sequences = sequences == BLOCK ? recurrence_block(elements) : recurrence_past_block(elements);

	op_start_axes(problem, sequences, row);
	if (roles.cu_seqlens >= 0) {
		op_set_axis(problem, problem->inputs[roles.cu_seqlens].axis[0], sequences + 1, row);
		op_set_axis(problem, q->axis[q->rank - 3], preset->tokens, row);
		return;
	}
	op_set_axis(problem, q->axis[0], sequences, row);
	op_set_axis(problem, q->axis[1], preset->tokens, row);
}

int recurrence_sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	const struct preset *presets = recurrence_roles_of(problem).cu_seqlens >= 0 ? packed[size] : by_batch[size];
	int count = 0;

	(void)variant;
	for (; count < PRESETS && presets[count].sequences != 0; count++) {
		if (count == room)
			return -1;
		preset_axes(problem, &presets[count], axis + (int64_t)count * problem->axis_count);
	}
	return count;
}

bool recurrence_edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	struct recurrence_roles roles = recurrence_roles_of(problem);
	struct op_case c = {.problem = problem, .variant = variant, .axis = axis};

	preset_axes(problem, &edges[edge], axis);
	switch (edge) {
	case RECURRENCE_EMPTY_SEQUENCES:
		return roles.cu_seqlens >= 0;
	case RECURRENCE_FORGETS_ALL:
		return recurrence_modes_of(&c, &roles).gate == RECURRENCE_GATE_LOG;
	case RECURRENCE_ROWS_OF_ZEROS:
		return roles.l2norm >= 0 || (variant & RECURRENCE_L2NORM) != 0;
	default: {
		struct recurrence_extent e = recurrence_extent_of(&c, &roles);

		return e.sequences == edges[edge].sequences && e.total == edges[edge].sequences * edges[edge].tokens;
	}
	}
}

/* Returns the factor by which long sequences increase the atol of states. */
static double drift_of(const struct op_case *c, const struct recurrence_roles *roles)
{
	enum { FREE = 512, MOST = 2048 };
	struct recurrence_extent e = recurrence_extent_of(c, roles);
	int64_t tokens = roles->cu_seqlens >= 0 ? e.total - e.sequences + 1 : e.tokens;

	if (roles->gamma < 0 || tokens <= FREE)
		return 1;
	return (double)(tokens < MOST ? tokens : MOST) / FREE;
}

struct rule recurrence_rule(const struct op_case *c, int output)
{
	struct recurrence_roles roles = recurrence_roles_of(c->problem);
	struct recurrence_modes modes = recurrence_modes_of(c, &roles);
	enum dtype dtype = c->problem->outputs[output].dtype;
	double place = dtype == DTYPE_BFLOAT16 ? 1e-2 : dtype == DTYPE_FLOAT16 ? 0x1p-9 : 0x1p-12;
	double size = c->contents == CONTENTS_SECOND ? RECURRENCE_LARGER : 1;

	if (output == roles.new_state)
		return (struct rule){RECURRENCE_STATE_ATOL * size * drift_of(c, &roles), place, 1};
	if (!modes.l2norm && roles.state >= 0 && (c->absent >> roles.state & 1) == 0)
		size *= sqrt((double)recurrence_extent_of(c, &roles).k_dim / 3);
	return (struct rule){0x1p-12 * fabs(modes.scale) * size, place, 1};
}

bool recurrence_is_doubtful(const struct op_case *c, int64_t tokens)
{
	enum { FEW_TOKENS = 5 }; /* the smallest cases have at most this many tokens */

	return c->contents == CONTENTS_SECOND && tokens <= FEW_TOKENS;
}

double recurrence_scale(const struct op_case *c, int64_t k_dim, int64_t sequences)
{
	if (c->contents == CONTENTS_FIRST)
		return (sequences <= 3 ? 1.25 : 0.3) / sqrt((double)k_dim);
	return sequences <= 1 ? 0.3 / sqrt((double)k_dim) : sequences <= 3 ? 1 : 1.75;
}

/* The case and the set of input values determine whether a sigmoid is applied to beta and whether beta is doubled. A
 * case has a doubled beta without a sigmoid only if the definition allows this. */
enum { RAW = 0, SIGMOID = 1, DOUBLED = 2, BOTH = SIGMOID | DOUBLED };

static int strength_of(const struct recurrence_extent *e, const struct op_case *c)
{
	static const int by_case[][CONTENTS_COUNT] = {{BOTH, RAW}, {SIGMOID, BOTH}, {RAW, SIGMOID}, {RAW, BOTH}};
	static const int alone[][CONTENTS_COUNT] = {{RAW, BOTH}, {DOUBLED, BOTH}, {RAW, SIGMOID}, {DOUBLED, SIGMOID}};

	return ((c->variant & RECURRENCE_DOUBLED_ALONE) != 0 ? alone : by_case)[e->total % 4][c->contents];
}

/* Returns the value of a scalar that the case omits. The value is 0: a scale of 0 means 1 / sqrt(K), a switch of 0 is
 * off, and a lower bound of 0 is no bound. Returns NaN if no case may omit the scalar. There are two such scalars: a
 * switch that the definition's name or a tag turns on, and the lower bound in a definition without A_log. */
static double left_out(const struct op_case *c, const struct recurrence_roles *roles, int input)
{
	int flag = input == roles->l2norm    ? RECURRENCE_L2NORM
	           : input == roles->sigmoid ? RECURRENCE_SIGMOID
	           : input == roles->doubled ? RECURRENCE_DOUBLED
	                                     : 0;

	if ((input == roles->lower_bound && roles->a_log < 0) || (c->variant & flag) != 0)
		return (double)NAN;
	return 0;
}

double recurrence_scalar(const struct op_case *c, int input)
{
	struct recurrence_roles roles = recurrence_roles_of(c->problem);
	struct recurrence_extent e = recurrence_extent_of(c, &roles);
	bool second = c->contents == CONTENTS_SECOND;
	bool named = (c->variant & RECURRENCE_SIGMOID) != 0;
	bool can_double = named || (c->variant & RECURRENCE_DOUBLED_ALONE) != 0;
	int strength = strength_of(&e, c);

	if ((c->absent >> input & 1) != 0)
		return left_out(c, &roles, input);
	if (input == roles.scale)
		return recurrence_scale(c, e.k_dim, e.sequences);
	if (input == roles.lower_bound)
		return !second ? -5 : e.total % 2 == 0 ? -2.25 : -0.75;
	if (input == roles.l2norm)
		return c->edge == RECURRENCE_ROWS_OF_ZEROS || ((e.total & 1) != 0) != second;
	if (input == roles.sigmoid)
		return (strength & SIGMOID) != 0;
	return roles.sigmoid >= 0 ? (strength & DOUBLED) != 0 : can_double && second == ((e.total & 4) != 0);
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

/* Returns the range of beta for similar keys. With a sigmoid, the member `beta` is a logit. It is rounded to a multiple
 * of 1/16, so that it is the same on machines whose log() rounds differently. */
struct recurrence_alike recurrence_alike_of(int64_t k_dim, bool sigmoid, bool doubled)
{
	double beta = fmax(1 - 8 / (double)k_dim, 0.5) / (doubled ? 2 : 1);

	if (!sigmoid)
		return (struct recurrence_alike){(float)beta, doubled ? 0x1p-6f : 0x1p-5f};
	return (struct recurrence_alike){(float)(round(16 * log(beta / (1 - beta))) / 16), doubled ? 0x1p-4f : 0x1p-2f};
}

static enum recurrence_erasing erasing_of(enum recurrence_gate gate, const struct recurrence_roles *roles)
{
	if (gate == RECURRENCE_GATE_LOG)
		return roles->gamma >= 0 ? RECURRENCE_ERASES_BY_CONSTANT : RECURRENCE_ERASES_BY_LOG;
	return gate == RECURRENCE_GATE_SOFTPLUS ? RECURRENCE_ERASES_BY_SOFTPLUS : RECURRENCE_ERASES_NOTHING;
}

int recurrence_short_query(enum dtype output, int64_t k_dim)
{
	int norm = output == DTYPE_BFLOAT16 ? -4 : output == DTYPE_FLOAT16 ? -3 : -2;

	return norm - (int)lround(log2(sqrt((double)k_dim / 3)));
}

struct recurrence_fill recurrence_fill_of(const struct op_case *c, int input)
{
	struct recurrence_roles roles = recurrence_roles_of(c->problem);
	struct recurrence_extent e = recurrence_extent_of(c, &roles);
	struct recurrence_modes modes = recurrence_modes_of(c, &roles);
	bool bounded = modes.gate == RECURRENCE_GATE_BOUNDED;
	const struct {
		int role;
		enum recurrence_part part;
		int64_t heads, dim;
	} parts[] = {
	    {roles.q, RECURRENCE_Q, e.q_heads, e.k_dim},
	    {roles.k, RECURRENCE_K, e.q_heads, e.k_dim},
	    {roles.v, RECURRENCE_V, e.v_heads, e.v_dim},
	    {roles.state, RECURRENCE_STATE, e.v_heads, e.k_dim * e.v_dim},
	    {roles.gate,
	     bounded                             ? RECURRENCE_LOW
	     : modes.gate == RECURRENCE_GATE_LOG ? RECURRENCE_LOG
	                                         : RECURRENCE_RAW,
	     e.v_heads, (c->variant & RECURRENCE_KEY_GATE) != 0 ? e.k_dim : 1},
	    {roles.gamma, c->edge == RECURRENCE_FORGETS_ALL ? RECURRENCE_LOG : RECURRENCE_CONSTANT, e.v_heads, 1},
	    {roles.a_log, bounded ? RECURRENCE_RATE : RECURRENCE_A_LOG, 1, 1},
	    {roles.dt_bias, bounded ? RECURRENCE_WIDE_BIAS : RECURRENCE_BIAS, e.v_heads,
	     (c->variant & RECURRENCE_KEY_GATE) != 0 ? e.k_dim : 1},
	    {roles.beta, modes.sigmoid ? RECURRENCE_LOGIT : RECURRENCE_BETA, e.v_heads, 1},
	};
	struct recurrence_fill f = {.key = input_key(c, input), .k_key = input_key(c, roles.k), .heads = 1, .dim = 1};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (parts[i].role == input) {
			f.part = parts[i].part;
			f.heads = parts[i].heads;
			f.dim = parts[i].dim;
		}
	f.l2norm = modes.l2norm;
	f.edge = c->edge;
	f.second = c->contents == CONTENTS_SECOND;
	f.doubtful = recurrence_is_doubtful(c, e.total);
	f.largest = (c->variant & RECURRENCE_DELTA) == 0 ? 8 : modes.doubled ? 4 : 5;
	f.spike = f.part != RECURRENCE_K                                     ? RECURRENCE_QUERY_SPIKE
		  : f.l2norm || (c->variant & RECURRENCE_DELTA) != 0 ? RECURRENCE_SPIKE
								     : RECURRENCE_LARGE_SPIKE;
	f.has_alike = (c->variant & RECURRENCE_DELTA) != 0 && (roles.cu_seqlens >= 0 ? e.total : e.tokens) > RECURRENCE_ALIKE;
	f.sharing = f.heads == e.v_heads ? e.v_heads / e.q_heads : 1;
	f.alike = recurrence_alike_of(e.k_dim, modes.sigmoid, modes.doubled);
	recurrence_size_keys(e.k_dim, &f.eighths, &f.exponent);
	f.erasing = erasing_of(modes.gate, &roles);
	f.single = roles.cu_seqlens < 0 && e.tokens == 1;
	f.beta_to_two = !modes.doubled;
	f.short_query = recurrence_short_query(c->problem->outputs[roles.output].dtype, e.k_dim);
	return f;
}

/* Writes the offsets of five sequences, of which the first, the third and the last are empty. */
static void fill_some_empty(struct tensor *out)
{
	static const int64_t offsets[] = {0, 0, 7, 7, 12, 12};

	for (int64_t n = 0; n < out->elements; n++)
		dtype_store(out->data, out->dtype, n, (double)offsets[n % 6]);
}

/* Writes offsets of packed sequences. If there are many sequences, sequence EMPTY leaves its tokens to the next
 * sequence, and is empty. */
static void fill_offsets(const struct op_case *c, const struct recurrence_extent *e, struct tensor *out)
{
	enum { EMPTY = 9 };

	recurrence_fill_offsets(c, e->sequences, e->total, out);
	if (e->sequences > EMPTY + 1)
		dtype_store(out->data, out->dtype, EMPTY + 1, dtype_load(out->data, out->dtype, EMPTY));
}

/* Computes consecutive elements of the tensor. The whole tensor is treated as one row. */
static void make_elements(const void *recipe, int64_t row, int64_t first, int64_t count, const uint32_t *random,
                          float *values)
{
	(void)row;
	for (int64_t i = 0; i < count; i++)
		values[i] = recurrence_element(recipe, first + i, random[i]);
}

static void fill_floats(const struct recurrence_fill *f, struct tensor *out)
{
	if (out->elements > 0)
		input_fill(out, f->key, out->elements, make_elements, f);
}

/* Rejects a case whose axes or scalars are invalid. Reads no tensor. */
static int check_axes(const struct op_case *c, const struct recurrence_roles *roles, const struct recurrence_extent *e,
                      struct err *err)
{
	const struct op_arg *const states[] = {
	    roles->state >= 0 ? &c->problem->inputs[roles->state] : NULL,
	    roles->new_state >= 0 ? &c->problem->outputs[roles->new_state] : NULL,
	};
	struct recurrence_modes modes = recurrence_modes_of(c, roles);
	bool brought = roles->cu_seqlens >= 0 && (c->given >> roles->cu_seqlens & 1) != 0;

	for (int i = 0; i < 2; i++)
		if (states[i] != NULL && c->axis[states[i]->axis[0]] != e->sequences)
			return err_set(err, "'%s' has %lld states for %lld sequences", states[i]->name,
			               (long long)c->axis[states[i]->axis[0]], (long long)e->sequences);
	if (roles->cu_seqlens >= 0 && !brought && c->edge == 0 && e->total < e->sequences)
		return err_set(err,
		               "%lld tokens cannot be distributed over %lld sequences with at least one token each",
		               (long long)e->total, (long long)e->sequences);
	if (e->sequences == 0 && e->total > 0)
		return err_set(err, "%lld tokens belong to no sequence, because there are no sequences",
			       (long long)e->total);
	if (modes.doubled && !modes.sigmoid && (c->variant & RECURRENCE_DOUBLED_ALONE) == 0)
		return err_set(err, "beta is doubled without a sigmoid, which only some implementations support; do "
		    "not use this combination");
	if (modes.gate == RECURRENCE_GATE_BOUNDED && !(modes.lower_bound < 0))
		return err_set(err, "the lower bound of the gates is %g; it must be below 0", modes.lower_bound);
	return 0;
}

static int fill(const struct op_case *c, int input, bool for_gradients, struct tensor *out, struct err *err)
{
	struct recurrence_roles roles = recurrence_roles_of(c->problem);
	struct recurrence_extent e = recurrence_extent_of(c, &roles);
	struct recurrence_fill f = recurrence_fill_of(c, input);

	f.for_gradients = for_gradients;
	if (check_axes(c, &roles, &e, err) != 0)
		return -1;
	if (input == roles.cu_seqlens && c->edge == RECURRENCE_EMPTY_SEQUENCES)
		fill_some_empty(out);
	else if (input == roles.cu_seqlens)
		fill_offsets(c, &e, out);
	else
		fill_floats(&f, out);
	return 0;
}

int recurrence_fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	return fill(c, input, false, out, err);
}

int recurrence_fill_for_gradients(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	return fill(c, input, true, out, err);
}

/* --- checks of a workload's inputs -------------------------------------------------------------------------------- */

int recurrence_check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct recurrence_roles roles = recurrence_roles_of(c->problem);
	struct recurrence_extent e = recurrence_extent_of(c, &roles);

	if (check_axes(c, &roles, &e, err) != 0 || check_all_finite(c, in, err) != 0)
		return -1;
	if (roles.cu_seqlens >= 0 && in[roles.cu_seqlens].data != NULL)
		return recurrence_check_offsets(c->problem->inputs[roles.cu_seqlens].name, e.total,
						&in[roles.cu_seqlens], err);
	return 0;
}

/* --- ranges that the cases cover --------------------------------------------------------------------------------- */

bool recurrence_range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct recurrence_roles roles = recurrence_roles_of(problem);
	struct op_case c = {.problem = problem, .variant = variant};
	const struct op_arg *q = &problem->inputs[roles.q];
	enum recurrence_gate gate = recurrence_gate_of(&c, &roles);
	bool softplus = gate == RECURRENCE_GATE_SOFTPLUS, bounded = gate == RECURRENCE_GATE_BOUNDED;
	const struct {
		int role;
		struct op_range range;
	} ranges[] = {
	    {roles.q, {-0.99, 0.99}},
	    {roles.k, {-0.19, 0.19}}, /* the range if K is 128 */
	    {roles.v, {-62, 62}},
	    {roles.gate, softplus ? (struct op_range){-24, 96} : bounded ? (struct op_range){-33, 96} : (struct op_range){-32, 0}},
	    {roles.gamma, {-10, -0.01}},
	    {roles.a_log, bounded ? (struct op_range){-1.6, 2.1} : (struct op_range){-6.6, 2.1}},
	    {roles.dt_bias, bounded ? (struct op_range){-7, 7} : (struct op_range){-6, 1}},
	    {roles.beta, {0, 1.9}}, /* the range is wider if a sigmoid is applied to beta */
	    {roles.state, {-31, 31}},
	    {roles.scale, {0.3001 / sqrt((double)match_fixed_length(problem, q, q->rank - 1)), 1.75}},
	    {roles.lower_bound, {-5, -0.75}},
	    {roles.l2norm, {0, 1}},
	    {roles.sigmoid, {0, 1}},
	    {roles.doubled, {0, 1}},
	};

	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (ranges[i].role == input) {
			*out = ranges[i].range;
			return true;
		}
	return false;
}

/* Returns the largest length of `axis` in the default cases. One sequence has more than 1024 tokens, and one case has
 * more sequences than a kernel usually processes in one block. */
struct op_reach recurrence_reach(const struct op_problem *problem, int variant, int axis)
{
	struct recurrence_roles roles = recurrence_roles_of(problem);
	const struct op_arg *q = &problem->inputs[roles.q];
	int64_t elements = elements_of_sequence(problem, &roles);

	(void)variant;
	if (roles.cu_seqlens >= 0)
		return axis == q->axis[q->rank - 3]                          ? (struct op_reach){1281, 256}
		       : axis == problem->inputs[roles.cu_seqlens].axis[0] ? (struct op_reach){66, 0}
		       : roles.state >= 0 && axis == problem->inputs[roles.state].axis[0]
			       ? (struct op_reach){65, 64}
		                                                             : (struct op_reach){0, 0};
	return axis == q->axis[0]   ? (struct op_reach){recurrence_past_block(elements), recurrence_block(elements)}
	       : axis == q->axis[1] ? (struct op_reach){1025, 256}
	                            : (struct op_reach){0, 0};
}
