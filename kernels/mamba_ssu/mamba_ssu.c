/* mamba_ssu - computes the selective state update of a Mamba-2 layer, for one token of each sequence.
 *
 *   d     = softplus(dt + dt_bias), for each sequence, head h and element i
 *   state <- state exp(A d) + d x B, for each of the S states n of element i
 *   y     = sum over n of state C + D x;  if there is z, times silu(z)
 *
 * Head h uses B and C of group h / (heads / groups). The output y is computed from the new state before this state is
 * rounded to its dtype. A sequence whose slot is pad_slot_id (-1 if there is no such scalar) is padding: its output is
 * 0, and it changes no slot. The state output contains all slots, most of which are unchanged. The inputs dt, A, D and
 * dt_bias may have one value per head.
 *
 * If the states are an output, this output is compared, and the reference may write to the input state only if the
 * definition says so (op_in_place_as_said). If the states are not an output, the reference may write to the input
 * state, and must do so if the description of the state says "in place" (SSU_IN_PLACE).
 *
 * Tolerances. A float32 sum of S products of magnitude 1 has an error of 1e-6. For dt = 96, the products have a
 * magnitude of a hundred, and their sum has an error of 1e-4. The gate multiplies y by at most 16. The atol of y is
 * 2^-12 sqrt(S), a thousandth of the typical magnitude of y; for S = 128 it is 3e-3. A new state is the sum of only two
 * products. Even if the two products have a magnitude of a hundred, an atol of 2^-16 suffices. The rtol is one ulp of
 * the dtype. In the second set of values x and the states are four times as large, and each atol is four times as
 * large, because all outputs are linear in x and the states together.
 *
 * A workload in which two sequences share a slot is invalid, because no kernel defines the result of two updates of one
 * slot. op.match refuses definitions with chunks of several tokens, with quantised states, or with states without heads
 * ([slots, dim, S]). */
#include "kernels/core/op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/core/coverage.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"
#include "kernels/mamba_ssu/input_values.h"
#include "kernels/mamba_ssu/mistakes.h"
#include "kernels/mamba_ssu/oracle.h"
#include "kernels/mamba_ssu/roles.h"

/* A medium case has BLOCK or BLOCK + 1 sequences. It has as many slots as sequences. However, if 257 slots together
 * have more than MOST_ELEMENTS elements, it has only 129 or 128 slots, and the last sequences are padding. If the
 * constraints of a definition demand a slot for each sequence, there are only as many sequences as slots. If there are
 * slot indices, the function `scalar` sets pad_slot_id to 0 in the second set of values, unless the number of sequences
 * is a multiple of five. Therefore none of the numbers of sequences above is a multiple of five. The edge case
 * many_sequences has MANY sequences. */
enum { BLOCK = 256, LARGE_BLOCK = 128, MANY = 129, MOST_ELEMENTS = 17 << 20 };
static const struct preset {
	int64_t batch, slots, large_slots;
} presets[SIZE_COUNT][2] = {{{1, 3, 3}, {5, 8, 8}},
			    {{BLOCK + 1, BLOCK + 1, LARGE_BLOCK + 1}, {BLOCK, BLOCK, LARGE_BLOCK}},
			    {{512, 768, 384}}};

/* Returns true if slots are so large that medium cases have fewer of them. */
static bool slots_are_large(const struct op_problem *problem, const struct ssu_roles *roles)
{
	const struct op_arg *state = &problem->inputs[roles->state];
	int64_t size = 1;

	for (int d = 1; d < 4; d++)
		size *= problem->axes[state->axis[d]].value;
	return (BLOCK + 1) * size > MOST_ELEMENTS;
}

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	struct ssu_roles roles = ssu_roles_of(problem);
	bool large = slots_are_large(problem, &roles);
	int count = 0;

	(void)variant;
	for (; count < 2 && presets[size][count].batch != 0; count++) {
		const struct preset *preset = &presets[size][count];
		int64_t *row = axis + (int64_t)count * problem->axis_count;

		if (count == room)
			return -1;
		int64_t slots = large ? preset->large_slots : preset->slots;

		op_start_axes(problem, roles.indices >= 0 || preset->batch < slots ? preset->batch : slots, row);
		if (roles.indices >= 0)
			op_set_axis(problem, problem->inputs[roles.state].axis[0], slots, row);
	}
	return count;
}

/* The values of op_case.edge, in the order of the table `edges`. */
enum { EDGE_NO_SEQUENCES = 1, EDGE_ALL_PADDING, EDGE_MANY_SEQUENCES };

static const struct op_edge edges[] = {
    {"no_sequences", "without sequences, the states stay unchanged"},
    {"all_padding", "a padding sequence has output 0 and updates no state"},
    {"many_sequences", "many sequences, most of which are padding"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	struct ssu_roles roles = ssu_roles_of(problem);
	const struct op_arg *x = &problem->inputs[roles.x];

	(void)variant;
	if (!problem->axes[x->axis[0]].var || (edge != EDGE_NO_SEQUENCES && roles.indices < 0))
		return false;
	if (edge == EDGE_MANY_SEQUENCES) {
		op_start_axes(problem, MANY, axis);
		op_set_axis(problem, problem->inputs[roles.state].axis[0], MANY + MANY / 16, axis);
		return problem->axes[problem->inputs[roles.state].axis[0]].var;
	}
	op_start_axes(problem, 3, axis);
	axis[x->axis[0]] = edge == EDGE_NO_SEQUENCES ? 0 : 3;
	return true;
}

static struct rule rule(const struct op_case *c, int output)
{
	struct ssu_roles roles = ssu_roles_of(c->problem);
	bool states = output == ssu_states_place(c->problem, &roles);
	enum dtype dtype = states ? c->problem->inputs[roles.state].dtype : c->problem->outputs[output].dtype;
	double place = dtype == DTYPE_BFLOAT16 ? 1e-2 : dtype == DTYPE_FLOAT16 ? 0x1p-9 : 0x1p-12;
	double size = c->contents == CONTENTS_SECOND ? SSU_LARGER : 1;

	if (states)
		return (struct rule){0x1p-16 * size, place, 1};
	return (struct rule){0x1p-12 * size * sqrt((double)ssu_extent_of(c, &roles).states), place, 1};
}

static struct op_in_place in_place(const struct op_case *c, int input)
{
	struct ssu_roles roles = ssu_roles_of(c->problem);

	if (input == roles.state && roles.new_state >= 0)
		return op_in_place_as_said(c, input, roles.new_state);
	return (struct op_in_place){input == roles.state ? ssu_states_place(c->problem, &roles) : OP_KEPT,
	                            (c->variant & SSU_IN_PLACE) == 0};
}

/* Returns the value of a Python scalar. The value of pad_slot_id is -1, as in models, or another negative number. If
 * there are slot indices, pad_slot_id may also be the number of a slot, in some cases 0. In a batch of one sequence,
 * pad_slot_id is the same negative number in both sets of values. No case omits pad_slot_id. The value of dt_softplus
 * is true in one set of values and false in the other; an omitted dt_softplus is false. */
static double scalar(const struct op_case *c, int input)
{
	struct ssu_roles roles = ssu_roles_of(c->problem);
	struct ssu_extent e = ssu_extent_of(c, &roles);
	bool second = c->contents == CONTENTS_SECOND, fifth = e.batch % 5 == 0;
	bool indexed = roles.indices >= 0 && (c->absent >> roles.indices & 1) == 0;

	if ((c->absent >> input & 1) != 0)
		return input == roles.pad ? (double)NAN : 0;
	if (input != roles.pad)
		return fifth == second;
	if (!second || e.batch == 1)
		return fifth ? -9 : -1;
	return !indexed ? -7 : fifth ? (double)(e.slots / 2) : 0;
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

/* Returns true if the elements of padding sequences are NaN in this input. No element is NaN if a workload provides the
 * slots, or if the case has no slot indices: every sequence may then have a slot, and a reference reads each sequence
 * that has one. The elements of z are never NaN, because z must be finite (check_floats). */
static bool is_padded(const struct op_case *c, const struct ssu_roles *roles, enum ssu_part part)
{
	return (part == SSU_X || part == SSU_DT || part == SSU_B || part == SSU_C) && roles->indices >= 0 &&
	       ((c->given | c->absent) >> roles->indices & 1) == 0;
}

static bool has_half(const struct op_problem *problem)
{
	bool half = false;

	for (int i = 0; i < problem->input_count; i++)
		half |= problem->inputs[i].dtype == DTYPE_FLOAT16;
	for (int i = 0; i < problem->output_count; i++)
		half |= problem->outputs[i].dtype == DTYPE_FLOAT16;
	return half;
}

/* Sets the members that say which elements of an input are large (input_values.h). */
static void set_loud(struct ssu_fill *f)
{
	static const struct {
		int loud[CONTENTS_COUNT], at, every, turn;
	} parts[] = {[SSU_STATE] = {{6, 6}, 27, 32, -1}, [SSU_X] = {{6, 6}, 11, 64, 1}, [SSU_B] = {{5, 7}, 7, 32, 0},
	             [SSU_C] = {{5, 7}, 19, 32, 0},      [SSU_D] = {{6, 6}, 9, 16, -1}, [SSU_Z] = {{0, 0}, 59, 64, 1}};

	if (f->part >= (int)(sizeof parts / sizeof *parts))
		return;
	f->loud = parts[f->part].loud[f->second];
	f->at = parts[f->part].at;
	f->every = parts[f->part].every;
	f->turn = parts[f->part].turn;
}

static enum ssu_part part_of(const struct ssu_roles *roles, int input)
{
	return input == roles->state     ? SSU_STATE
	       : input == roles->x       ? SSU_X
	       : input == roles->b       ? SSU_B
	       : input == roles->c       ? SSU_C
	       : input == roles->dt      ? SSU_DT
	       : input == roles->dt_bias ? SSU_DT_BIAS
	       : input == roles->a       ? SSU_A
	       : input == roles->d       ? SSU_D
	       : input == roles->z       ? SSU_Z
	                                 : SSU_PLAIN;
}

struct ssu_fill ssu_fill_of(const struct op_case *c, int input)
{
	struct ssu_roles roles = ssu_roles_of(c->problem);
	const struct op_arg *arg = &c->problem->inputs[input];
	struct ssu_extent e = ssu_extent_of(c, &roles);
	struct ssu_fill f = {
	    .key = input_key(c, input), .softplus = ssu_softplus(c, &roles), .heads = e.heads, .dim = 1, .size = 1};

	if (c->problem->inputs[roles.dt].rank == 3)
		f.dim = e.dim;
	for (int d = 1; d < arg->rank; d++)
		f.size *= c->axis[arg->axis[d]];
	f.batch = e.batch;
	f.second = c->contents == CONTENTS_SECOND;
	f.part = part_of(&roles, input);
	f.padded = is_padded(c, &roles, (enum ssu_part)f.part);
	if (!has_half(c->problem))
		set_loud(&f);
	return f;
}

/* Writes the slot of each sequence. The slots are different. When no slot is left, the remaining sequences are padding.
 * If there is only one sequence, it has the same slot in both sets of values. */
static void fill_indices(const struct op_case *c, const struct ssu_roles *roles, struct tensor *out)
{
	struct op_case planned = out->elements == 1 ? op_case_first(c) : *c;
	uint64_t key = input_key(&planned, roles->indices);
	int64_t slots = ssu_extent_of(c, roles).slots, *order = take(slots, sizeof *order), next = 0, users = 0;
	int64_t pad = ssu_pad(c, roles);

	for (int64_t b = 0; b < out->elements; b++)
		users += !ssu_is_padding(out->elements, b);
	philox_shuffle_ends(key, slots, users, order);
	for (int64_t b = 0; b < out->elements; b++) {
		next += next < slots && order[next] == pad;
		bool padding = ssu_is_padding(out->elements, b) || next == slots || c->edge == EDGE_ALL_PADDING;
		int64_t slot = padding ? pad : order[next++];

		dtype_store(out->data, out->dtype, b, (double)slot);
	}
	free(order);
}

WIDE static void make_elements(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                               float *values)
{
	const struct ssu_fill *f = recipe;

	(void)row;
	for (int64_t i = 0; i < count; i++)
		values[i] = f->part == SSU_STATE ? ssu_state(f, column + i, uniform_signed(random[i], 20))
		                                 : ssu_element(f, column + i, random[i]);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct ssu_roles roles = ssu_roles_of(c->problem);
	struct ssu_fill f = ssu_fill_of(c, input);

	(void)err;
	if (input == roles.indices) {
		fill_indices(c, &roles, out);
		return 0;
	}
	input_fill(out, f.key, out->elements, make_elements, &f);
	return 0;
}

/* --- ranges that the cases cover --------------------------------------------------------------------------------- */

static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct ssu_roles roles = ssu_roles_of(problem);
	bool half = has_half(problem);
	double large = half ? 1 : 60, larger = half ? 1 : 128;
	const struct {
		int role;
		struct op_range range;
	} ranges[] = {
	    {roles.state, {-3.9 * large, 3.9 * large}},
	    {roles.x, {-3.9 * large, 3.9 * large}},
	    {roles.b, {-0.9 * larger, 0.9 * larger}},
	    {roles.c, {-0.9 * larger, 0.9 * larger}},
	    {roles.dt, {-24, 96}},
	    {roles.dt_bias, {-6.5, 1.5}},
	    {roles.a, {-15, -0.25}},
	    {roles.d, {-3.5, 3.5}},
	    {roles.z, {half ? -15.9 : -100, half ? 15.9 : 100}},
	    {roles.softplus, {0, 1}},
	    {roles.pad, {-9, 4}},
	};

	(void)variant;
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (ranges[i].role == input) {
			*out = ranges[i].range;
			return true;
		}
	return false;
}

static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	struct ssu_roles roles = ssu_roles_of(problem);
	int64_t block = slots_are_large(problem, &roles) ? LARGE_BLOCK : BLOCK;

	(void)variant;
	return axis == problem->inputs[roles.x].axis[0] ? (struct op_reach){block + 1, block} : (struct op_reach){0, 0};
}

static const char *const op_types[] = {"mamba_ssu", NULL};

static const struct op_coverage coverage[] = {
    COVERAGE_OPTION("gate z", "z", "given", "has a gate z", "none", "has no gate z"),
    COVERAGE_OPTION("skip D", "d", "given", "has a skip connection D", "none", "has no skip connection D"),
    COVERAGE_OPTION("bias of dt", "dt_bias", "given", "has a bias of dt", "none", "has no bias of dt"),
    COVERAGE_OPTION("slots", "indices", "given", "has slot indices", "none", "has a state for each sequence"),
    COVERAGE_OPTION("new state", "new_state", "returned", "returns the new state", "in place", "updates the state in place"),
    {"dt", coverage_rank, .role = "dt",
     .values = {{"of heads", 2, 2, "has one dt for each head"}, {"of channels", 3, 3, "has one dt for each channel"}}},
    {"A", coverage_rank, .role = "a",
     .values = {{"of heads", 1, 1, "has one A for each head"}, {"full", 3, 3, "has A of shape [heads, dim, states]"}}},
    {"groups of B and C", coverage_length, .role = "b", .axis = 1,
     .values = {{"one", 1, 1, "has one group of B and C"}, {"several", 2, 0x1p62, "has several groups of B and C"}}},
    COVERAGE_DTYPES("x"),
    {"state dtype", coverage_dtype, .role = "state",
     .values = {{"float32", DTYPE_FLOAT32, DTYPE_FLOAT32, "has float32 states"},
		{"bfloat16", DTYPE_BFLOAT16, DTYPE_BFLOAT16, "has bfloat16 states"}, {"other", 0, DTYPE_COUNT, NULL}}},
    {.name = NULL},
};

const struct op mamba_ssu_op = {
    .name = "mamba_ssu",
    .op_types = op_types,
    .match = ssu_match,
    .mistakes = ssu_mistakes,
    .roles = ssu_role_names,
    .bind = ssu_bind,
    .coverage = coverage,
    .sizes = sizes,
    .medium_runs = LAST_MEDIUM_RUNS_TWICE,
    .edges = edges,
    .edge_axes = edge_axes,
    .rule = rule,
    .in_place = in_place,
    .scalar = scalar,
    .range = range,
    .reach = reach,
    .fill = fill,
    .check = ssu_check,
    .oracle = ssu_oracle,
};
