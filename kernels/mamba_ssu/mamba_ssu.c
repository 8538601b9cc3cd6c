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
 * slot. Definitions with chunks of several tokens, with quantised states, or with states without heads ([slots, dim,
 * S]) are refused by op.match. */
#include "kernels/mamba_ssu/input_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/core/mistakes.h"
#include "kernels/core/coverage.h"
#include "kernels/core/input_check.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"

/* --- matching ----------------------------------------------------------------------------------------------------- */

/* Returns the member of `roles` to which an input belongs. Scalars, indices and the state are recognised by rank and
 * kind of dtype, and all other float inputs by name. */
static int *place_of(struct ssu_roles *roles, const struct op_arg *input)
{
	const struct {
		const char *name;
		int *place;
	} names[] = {{"x", &roles->x}, {"z", &roles->z}, {"dt", &roles->dt}, {"A", &roles->a},
	             {"B", &roles->b}, {"C", &roles->c}, {"D", &roles->d},   {"dt_bias", &roles->dt_bias}};

	if (input->rank == OP_SCALAR)
		return strstr(input->name, "softplus") != NULL ? &roles->softplus
		       : strstr(input->name, "pad") != NULL    ? &roles->pad
		                                               : NULL;
	if (match_is_index(input))
		return &roles->indices;
	if (!match_is_float(input))
		return NULL;
	if (input->rank == 4)
		return &roles->state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(input->name, names[i].name) == 0)
			return names[i].place;
	return NULL;
}

/* Returns true if this input may be absent. The scalar pad_slot_id may not be absent, because the slot number that
 * marks padding would not be known. */
static bool may_be_absent(const struct ssu_roles *roles, int input)
{
	return input == roles->z || input == roles->d || input == roles->dt_bias || input == roles->indices ||
	       input == roles->softplus;
}

static int find_inputs(const struct op_problem *problem, struct ssu_roles *roles, struct err *why)
{
	*roles = (struct ssu_roles){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
	for (int i = 0; i < problem->input_count; i++) {
		int *place = place_of(roles, &problem->inputs[i]);

		if (place == NULL || *place >= 0)
			return match_refuse_unknown(problem, &problem->inputs[i],
						    "a state [slots, heads, dim, S], the floats x, dt, z, A, B, C, D "
						    "and dt_bias, integer slots, and the scalars dt_softplus and "
						    "pad_slot_id", why);
		*place = i;
		if (problem->inputs[i].optional && !may_be_absent(roles, i))
			return match_refuse(problem, &problem->inputs[i],
					    "an input without \"optional\": true", why);
	}
	if (roles->state < 0 || roles->x < 0 || roles->dt < 0 || roles->a < 0 || roles->b < 0 || roles->c < 0)
		return err_set(why, "the inputs must include a state, x, dt, A, B and C");
	return 0;
}

static int find_outputs(const struct op_problem *problem, struct ssu_roles *roles, struct err *why)
{
	for (int i = 0; i < problem->output_count; i++) {
		int *place = problem->outputs[i].rank == 4 ? &roles->new_state : &roles->output;

		if (*place >= 0 || !match_is_float(&problem->outputs[i]))
			return match_refuse_unknown(problem, &problem->outputs[i],
						    "floats with the shape of x, and floats with the shape of the "
						    "state", why);
		*place = i;
	}
	return roles->output >= 0 ? 0 : err_set(why, "the definition needs an output with the shape of x");
}

/* Returns true if `arg` has the axes that `parts` lists, one letter per axis. The letters S, H, D and N in `parts` mean
 * the axes of the state (slots, heads, dim, and the last axis), b means the batch axis of x, and g means any const
 * axis. */
static bool is_shape(const struct op_problem *problem, const struct ssu_roles *roles, const struct op_arg *arg,
                     const char *parts)
{
	static const char of_state[] = "SHDN";
	const struct op_arg *state = &problem->inputs[roles->state], *x = &problem->inputs[roles->x];

	if (arg->rank != (int)strlen(parts))
		return false;
	for (int d = 0; d < arg->rank; d++) {
		const char *at = strchr(of_state, parts[d]);
		int wanted = at != NULL ? state->axis[at - of_state] : x->axis[0];

		if (parts[d] == 'g' ? problem->axes[arg->axis[d]].var : !match_same_axis(problem, arg->axis[d], wanted))
			return false;
	}
	return true;
}

static int match_shapes(const struct op_problem *problem, const struct ssu_roles *roles, struct err *why)
{
	const struct {
		int input;
		const char *one, *other, *expected;
	} shapes[] = {
	    {roles->state, "SHDN", "SHDN", "a state [slots, heads, dim, S]"},
	    {roles->x, "bHD", "bHD", "[batch, heads, dim], where heads and dim are the same axes as in the state"},
	    {roles->dt, "bHD", "bH", "[batch, heads, dim] or [batch, heads], where the axes are the same as in x"},
	    {roles->a, "HDN", "H", "[heads, dim, S] or [heads], where the axes are the same as in the state"},
	    {roles->b, "bgN", "bgN", "[batch, groups, S], where groups is a const axis"},
	    {roles->c, "bgN", "bgN", "[batch, groups, S], where groups is a const axis"},
	    {roles->z, "bHD", "bHD", "the shape of x"},
	    {roles->d, "HD", "H", "[heads, dim] or [heads], where heads and dim are the same axes as in the state"},
	    {roles->dt_bias, "HD", "H", "[heads, dim] or [heads], where heads and dim are the same axes as in the "
					"state"},
	    {roles->indices, "b", "b", "[batch], where batch is the first axis of x"},
	};

	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const struct op_arg *input = shapes[i].input < 0 ? NULL : &problem->inputs[shapes[i].input];

		if (input != NULL && !is_shape(problem, roles, input, shapes[i].one) &&
		    !is_shape(problem, roles, input, shapes[i].other))
			return match_refuse(problem, input, shapes[i].expected, why);
	}
	if (!is_shape(problem, roles, &problem->outputs[roles->output], "bHD"))
		return match_refuse(problem, &problem->outputs[roles->output], "the shape of x", why);
	if (roles->new_state >= 0 && !is_shape(problem, roles, &problem->outputs[roles->new_state], "SHDN"))
		return match_refuse(problem, &problem->outputs[roles->new_state], "the shape of the state",
				    why);
	return 0;
}

/* The bits of the variant that op.match returns. */
enum { SSU_IN_PLACE = 1 }; /* new states are not an output, so a reference must write them to the input state */

static bool says_in_place(const struct op_arg *state)
{
	return match_contains(state->description, "in place") || match_contains(state->description, "in-place");
}

static int match(const struct op_problem *problem, struct err *why)
{
	struct ssu_roles roles;

	if (find_inputs(problem, &roles, why) != 0 || find_outputs(problem, &roles, why) != 0 ||
	    match_shapes(problem, &roles, why) != 0)
		return -1;

	const struct op_arg *state = &problem->inputs[roles.state], *b = &problem->inputs[roles.b];
	const struct op_arg *c = &problem->inputs[roles.c];

	for (int d = 1; d < 4; d++)
		if (problem->axes[state->axis[d]].var)
			return match_refuse(problem, state,
					    "[slots, heads, dim, S], where only slots may be var", why);
	if (!match_same_axis(problem, b->axis[1], c->axis[1]) ||
	    problem->axes[state->axis[1]].value % problem->axes[b->axis[1]].value != 0)
		return match_refuse(problem, c,
				    "the same number of groups as in B; this number must divide the number of heads",
				    why);
	return roles.new_state < 0 && says_in_place(state) ? SSU_IN_PLACE : 0;
}

struct ssu_roles ssu_roles_of(const struct op_problem *problem)
{
	struct ssu_roles roles;

	find_inputs(problem, &roles, NULL);
	find_outputs(problem, &roles, NULL);
	return roles;
}

/* --- a case ------------------------------------------------------------------------------------------------------- */

struct ssu_extent ssu_extent_of(const struct op_case *c, const struct ssu_roles *roles)
{
	const struct op_arg *state = &c->problem->inputs[roles->state];

	return (struct ssu_extent){
	    .batch = c->axis[c->problem->inputs[roles->x].axis[0]],
	    .slots = c->axis[state->axis[0]],
	    .heads = c->axis[state->axis[1]],
	    .dim = c->axis[state->axis[2]],
	    .groups = c->axis[c->problem->inputs[roles->b].axis[1]],
	    .states = c->axis[state->axis[3]],
	};
}

bool ssu_softplus(const struct op_case *c, const struct ssu_roles *roles)
{
	return roles->softplus < 0 || c->scalar[roles->softplus] != 0;
}

int64_t ssu_pad(const struct op_case *c, const struct ssu_roles *roles)
{
	double given = roles->pad < 0 ? -1 : c->scalar[roles->pad];

	return given >= -0x1p53 && given <= 0x1p53 ? (int64_t)given : -1;
}

/* The number of sequences of a medium case is a block size, or one more than a block size. There are as many slots, but
 * if 257 slots have more than MOST_ELEMENTS elements together, only 129 or 128. The last sequences are then padding. If
 * the constraints of a definition demand a slot for each sequence, there are only as many sequences as slots. If there
 * are slot indices, the function `scalar` sets pad_slot_id to 0 in the second set of values, unless the number of
 * sequences is a multiple of five. Therefore none of these numbers is a multiple of five. The edge case many_sequences
 * has MANY sequences. */
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

/* Returns true if the elements of padding sequences are NaN in this input. If a workload provides the slots, or if the
 * case has none, no element is NaN, because then every sequence may have a slot, and a reference must read the
 * sequences that have slots. The elements of z are never NaN, because z must be finite (check_floats). */
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

/* Writes the slot of each sequence. The slots are different and in random order. When no slot is left, the remaining
 * sequences are padding. */
static void fill_indices(const struct op_case *c, const struct ssu_roles *roles, uint64_t key, struct tensor *out)
{
	int64_t slots = ssu_extent_of(c, roles).slots, *order = take(slots, sizeof *order), next = 0;
	int64_t pad = ssu_pad(c, roles);

	philox_shuffle(key, slots, order);
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
		fill_indices(c, &roles, f.key, out);
		return 0;
	}
	input_fill(out, f.key, out->elements, make_elements, &f);
	return 0;
}

static int check_indices(const char *name, const struct ssu_extent *e, int64_t pad, const struct tensor *indices,
                         struct err *err)
{
	int64_t *owner = take(e->slots, sizeof *owner); /* for each slot, 1 + the number of the sequence that uses it,
							 * or 0 if no sequence uses it */
	int rc = 0;

	for (int64_t b = 0; b < indices->elements && rc == 0; b++) {
		int64_t slot = check_integer(indices, b);

		if (slot == pad)
			continue;
		if (slot < 0 || slot >= e->slots)
			rc = err_set(
			    err, "%s[%lld] is %lld, but must be at least 0 and less than %lld (the number of slots), "
				 "or %lld for padding",
			    name, (long long)b, (long long)slot, (long long)e->slots, (long long)pad);
		else if (owner[slot] != 0)
			rc = err_set(err, "%s[%lld] is slot %lld, which sequence %lld also updates", name, (long long)b,
			             (long long)slot, (long long)owner[slot] - 1);
		else
			owner[slot] = b + 1;
	}
	free(owner);
	return rc;
}

/* If there are no slot indices, there must be as many states as sequences. */
static int check_states(const struct ssu_extent *e, struct err *err)
{
	if (e->slots >= e->batch)
		return 0;
	return err_set(err, "there are only %lld states for %lld sequences; each sequence needs a state of its own",
	               (long long)e->slots, (long long)e->batch);
}

/* Checks that an input has no NaN outside padding sequences. The operation does not use the elements of padding
 * sequences. */
static int check_tokens(const struct op_case *c, const struct ssu_roles *roles, const struct ssu_extent *e, int input,
                        const struct tensor *in, struct err *err)
{
	int64_t size = e->batch > 0 && input >= 0 ? in[input].elements / e->batch : 0;
	const struct tensor *slots = roles->indices >= 0 ? &in[roles->indices] : NULL;
	char place[160];

	for (int64_t i = 0; check_brought(c, in, input) && i < e->batch * size; i++)
		if (isnan(dtype_load(in[input].data, in[input].dtype, i)) &&
		    (slots == NULL || slots->data == NULL || check_integer(slots, i / size) != ssu_pad(c, roles)))
			return err_set(err, "input '%s' holds NaN at %s; the result would be NaN, which is not "
					    "comparable",
			               c->problem->inputs[input].name, check_place(&in[input], i, place, sizeof place));
	return 0;
}

static int check_floats(const struct op_case *c, const struct ssu_roles *roles, const struct ssu_extent *e,
                        const struct tensor *in, struct err *err)
{
	const int whole[] = {roles->state, roles->a, roles->d, roles->dt_bias};
	const int by_sequence[] = {roles->x, roles->dt, roles->b, roles->c};

	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		if (check_numbers(c, in, whole[i], false, "the result would be NaN, which is not comparable",
		                  err) != 0)
			return -1;
	for (size_t i = 0; i < sizeof by_sequence / sizeof *by_sequence; i++)
		if (check_tokens(c, roles, e, by_sequence[i], in, err) != 0)
			return -1;
	/* z must also be finite in padding sequences, because some references multiply the output of padding, 0, by the
	 * gate silu(z), and 0 times NaN is NaN. */
	return check_numbers(c, in, roles->z, true, "padding would have the output 0 * silu(z), which would not be 0", err);
}

/* Implements op.check: checks the axes, and the tensors that are loaded (data is not NULL). Returns 0, or -1 with a
 * message if the case is invalid. */
static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct ssu_roles roles = ssu_roles_of(c->problem);
	struct ssu_extent e = ssu_extent_of(c, &roles);

	if (roles.indices < 0 && check_states(&e, err) != 0)
		return -1;
	if (check_floats(c, &roles, &e, in, err) != 0)
		return -1;
	if (roles.indices < 0 || in[roles.indices].data == NULL)
		return 0;
	return check_indices(c->problem->inputs[roles.indices].name, &e, ssu_pad(c, &roles), &in[roles.indices], err);
}

/* --- the truth ---------------------------------------------------------------------------------------------------- */

/* A case for which the ground truth is being computed. */
struct computation {
	struct ssu_roles roles;
	struct ssu_extent e;
	const struct tensor *in;
	struct tensor *out, *new_state; /* `new_state` has no data if the new state is not requested */
	bool softplus;
	int64_t pad;
	int mistake;
	double by; /* op_case.mistake_by */
};

enum mistake {
	NO_MISTAKE, NO_STEP_IN_DECAY, NO_EXP, A_LOG, NO_STEP_IN_X, RAW_STEP_IN_X, READ_FIRST, X_FIRST, STEP_ON_D, TILED,
	FIRST_GROUP, SIGMOID_GATE, PLAIN_GATE, NO_GATE, GATE_FIRST, OTHER_SOFTPLUS, SOFTPLUS_FIRST, SOFTPLUS_UP_TO, LINEAR_DECAY,
	NO_DECAY, FIRST_STEP, FIRST_DECAY, NO_X, TILED_B, TILED_C, FIRST_GROUP_B, FIRST_GROUP_C, ROUNDED_STEP, STEP_AT_LEAST_0,
	STEP_MAGNITUDE, LAST_STATE, NO_STATE, READ_DECAYED, GATE_TWICE
};

/* Turns some sequences into padding: the sequences with slot 0 if op_mistake.by is 0, and all sequences after the first
 * padding sequence if op_mistake.by is 1. */
static bool change_slots(struct op_variation *v, const struct op_mistake *mistake)
{
	struct ssu_roles roles = ssu_roles_of(v->c.problem);
	struct tensor *slots = variation_change(v, roles.indices);
	int64_t pad = ssu_pad(&v->c, &roles);
	bool ended = false;

	for (int64_t n = 0; slots != NULL && n < slots->elements; n++) {
		int64_t slot = check_integer(slots, n);

		ended = ended || (mistake->by > 0 && slot == pad);
		if (ended || (mistake->by == 0 && slot == 0))
			dtype_store(slots->data, slots->dtype, n, (double)pad);
	}
	return slots != NULL;
}

static const struct op_mistake mistakes[] = {
    {.says = "the decay was exp(A), not exp(A dt)", .in_oracle = NO_STEP_IN_DECAY},
    {.says = "the decay was A dt, not exp(A dt)", .in_oracle = NO_EXP},
    {.says = "A was used as a logarithm: the decay was exp(-exp(A) dt)", .in_oracle = A_LOG},
    {.says = "softplus was not applied to dt, or it was applied although the definition does not do so", .in_oracle = OTHER_SOFTPLUS},
    {.says = "softplus was applied to dt although dt_softplus is false", .before = before_set, .role = "softplus", .by = 1},
    {.says = "softplus was not applied to dt although dt_softplus is true", .before = before_set, .role = "softplus", .by = 0},
    {.says = "softplus was not applied to values of dt above 5", .in_oracle = SOFTPLUS_UP_TO, .by = 5},
    {.says = "the bias was added to dt after the softplus", .in_oracle = SOFTPLUS_FIRST},
    {.says = "dt with its bias was rounded to bfloat16", .in_oracle = ROUNDED_STEP},
    {.says = "negative values of dt were set to 0", .in_oracle = STEP_AT_LEAST_0},
    {.says = "negative values of dt lost their sign", .in_oracle = STEP_MAGNITUDE},
    {.says = "all elements of a head used the dt of the head's first element", .in_oracle = FIRST_STEP},
    {.says = "the decay was left out", .in_oracle = NO_DECAY},
    {.says = "the decay was 1 + A dt, not exp(A dt)", .in_oracle = LINEAR_DECAY},
    {.says = "all elements of a head used the A of the head's first element", .in_oracle = FIRST_DECAY},
    {.says = "the product dt B, without the factor x, was added to the state", .in_oracle = NO_X},
    {.says = "the last element of the state was not read", .in_oracle = LAST_STATE},
    {.says = "the groups of B, but not those of C, were tiled instead of interleaved", .in_oracle = TILED_B},
    {.says = "the groups of C, but not those of B, were tiled instead of interleaved", .in_oracle = TILED_C},
    {.says = "all heads used the first group of B, but the correct groups of C", .in_oracle = FIRST_GROUP_B},
    {.says = "all heads used the first group of C, but the correct groups of B", .in_oracle = FIRST_GROUP_C},
    {.says = "the product x B, without the factor dt, was added to the state", .in_oracle = NO_STEP_IN_X},
    {.says = "the term dt x B that is added to the state used dt without its softplus", .in_oracle = RAW_STEP_IN_X},
    {.says = "the output was computed from the old state, before the decay and before x was added to the state", .in_oracle = READ_FIRST},
    {.says = "the output was computed after the decay, but before x was added to the state", .in_oracle = READ_DECAYED},
    {.says = "x was added to the state before the decay was applied", .in_oracle = X_FIRST},
    {.says = "the skip was D dt x, not D x", .in_oracle = STEP_ON_D},
    {.says = "the groups of B and C were tiled, not interleaved", .in_oracle = TILED},
    {.says = "the first group of B and C was used for all heads", .in_oracle = FIRST_GROUP},
    {.says = "the gate was sigmoid(z), not silu(z)", .in_oracle = SIGMOID_GATE},
    {.says = "the gate was z, not silu(z)", .in_oracle = PLAIN_GATE},
    {.says = "the gate was left out", .in_oracle = NO_GATE},
    {.says = "the gate was applied before the skip", .in_oracle = GATE_FIRST},
    {.says = "the gate was applied before the skip, and once more after it", .in_oracle = GATE_TWICE},
    {.says = "the dt bias was left out", .before = before_set, .role = "dt_bias", .by = 0},
    {.says = "the skip D x was left out", .before = before_set, .role = "d", .by = 0},
    {.says = "B and C were swapped", .before = before_swap, .role = "b", .other = "c"},
    {.says = "the initial state was ignored", .in_oracle = NO_STATE},
    {.says = "the state was not updated", .after = after_input, .role = "new_state", .other = "state"},
    {.says = "the slot indices were ignored: sequence i used slot i", .before = before_iota, .role = "indices"},
    {.says = "slot 0 was treated as padding", .before = change_slots, .by = 0},
    {.says = "the sequences after the first padding sequence were ignored", .before = change_slots, .by = 1},
    {.says = "states that no sequence uses were set to 0", .after = after_clear_others, .role = "new_state", .other = "indices"},
    {.says = "the new state of a sequence was stored at the sequence's index, not in its slot", .after = after_places, .role = "new_state", .other = "indices"},
    {.says = "the new state of a sequence was stored in the slot after its own", .after = after_places, .role = "new_state", .other = "indices", .by = 1},
    {.says = NULL},
};

static double softplus(double x)
{
	return x > 40 ? x : log1p(exp(x));
}

/* Returns element `index` of an input, or 0 if the input is absent. */
static double value_of(const struct computation *w, int input, int64_t index)
{
	return input < 0 || w->in[input].data == NULL ? 0 : dtype_load(w->in[input].data, w->in[input].dtype, index);
}

/* Returns an element of an input. The input has one value per head and element if its rank is `by_element`, else one
 * value per head. `row` is the index of the head, counted over all sequences if the input has a batch axis. */
static double weight_of(const struct computation *w, int input, int by_element, int64_t row, int64_t i)
{
	if (input >= 0 && w->in[input].rank == by_element)
		return value_of(w, input, row * w->e.dim + i);
	return value_of(w, input, row);
}

static double silu(double z)
{
	return z / (1 + exp(-z));
}

static double decay_of(const struct computation *w, double a, double step)
{
	switch (w->mistake) {
	case NO_STEP_IN_DECAY:
		return exp(a);
	case NO_EXP:
		return a * step;
	case A_LOG:
		return exp(-exp(a) * step);
	case LINEAR_DECAY:
		return 1 + a * step;
	case NO_DECAY:
		return 1;
	default:
		return exp(a * step);
	}
}

static double gate_of(const struct computation *w, double z)
{
	switch (w->mistake) {
	case SIGMOID_GATE:
		return 1 / (1 + exp(-z));
	case PLAIN_GATE:
		return z;
	case NO_GATE:
	case GATE_FIRST:
		return 1;
	default:
		return silu(z);
	}
}

/* Returns the step d of element i: dt plus its bias, or softplus of this sum if the case applies softplus. */
static double step_of(const struct computation *w, int64_t n, int64_t h, int64_t i)
{
	int64_t at = w->mistake == FIRST_STEP ? 0 : i;
	double raw = weight_of(w, w->roles.dt, 3, n * w->e.heads + h, at), bias = weight_of(w, w->roles.dt_bias, 2, h, at);
	double sum = w->mistake == ROUNDED_STEP ? (double)float_from_bf16(bf16_from_float((float)(raw + bias))) : raw + bias;
	bool soft = w->softplus != (w->mistake == OTHER_SOFTPLUS);

	if (w->mistake == SOFTPLUS_FIRST && soft)
		return softplus(raw) + bias;
	if (w->mistake == SOFTPLUS_UP_TO && sum > w->by)
		soft = false;
	double step = soft ? softplus(sum) : sum;

	return w->mistake == STEP_AT_LEAST_0 ? fmax(step, 0) : w->mistake == STEP_MAGNITUDE ? fabs(step) : step;
}

/* Returns the factor d x of the term d x B that is added to the state. */
static double enters_of(const struct computation *w, int64_t n, int64_t h, int64_t i, double x, double step)
{
	switch (w->mistake) {
	case NO_STEP_IN_X:
		return x;
	case NO_X:
		return step;
	case RAW_STEP_IN_X:
		return (weight_of(w, w->roles.dt, 3, n * w->e.heads + h, i) + weight_of(w, w->roles.dt_bias, 2, h, i)) * x;
	default:
		return step * x;
	}
}

/* Updates `state`, which contains the S states of element i in head h of sequence n. Returns y before it is multiplied
 * by the gate. `a`, `b` and `c` have S elements each. */
static double update(const struct computation *w, int64_t n, int64_t h, int64_t i, double z, double *state,
		     const double *a, const double *b, const double *c)
{
	double x = value_of(w, w->roles.x, (n * w->e.heads + h) * w->e.dim + i);
	double d = step_of(w, n, h, i), enters = enters_of(w, n, h, i, x, d), y = 0;

	for (int64_t j = 0; j < w->e.states; j++) {
		double decay = decay_of(w, w->mistake == FIRST_DECAY ? a[0] : a[j], d), before = state[j];

		if (w->mistake == READ_DECAYED)
			before *= decay;

		state[j] = w->mistake == X_FIRST ? (state[j] + enters * b[j]) * decay : state[j] * decay + enters * b[j];
		if (w->mistake != LAST_STATE || j + 1 < w->e.states)
			y += (w->mistake == READ_FIRST || w->mistake == READ_DECAYED ? before : state[j]) * c[j];
	}
	double skip = weight_of(w, w->roles.d, 2, h, i) * x * (w->mistake == STEP_ON_D ? d : 1);

	return w->mistake == GATE_FIRST || w->mistake == GATE_TWICE ? y * silu(z) + skip : y + skip;
}

static void read_decays(const struct computation *w, int64_t h, int64_t i, double *out)
{
	const struct tensor *a = &w->in[w->roles.a];

	if (a->rank == 3)
		dtype_load_run(a->data, a->dtype, (h * w->e.dim + (w->mistake == FIRST_DECAY ? 0 : i)) * w->e.states, w->e.states, out);
	for (int64_t j = 0; j < w->e.states && a->rank != 3; j++)
		out[j] = dtype_load(a->data, a->dtype, h);
}

/* Returns the group of B or C that head h reads. A mistake may change the group for B, for C, or for both. */
static int64_t group_of(const struct computation *w, int64_t h, enum mistake tiled, enum mistake first)
{
	if (w->mistake == TILED || w->mistake == (int)tiled)
		return h % w->e.groups;
	return w->mistake == FIRST_GROUP || w->mistake == (int)first ? 0 : h / (w->e.heads / w->e.groups);
}

static void run_head(const struct computation *w, int64_t n, int64_t h)
{
	const struct ssu_extent *e = &w->e;
	const struct tensor *state = &w->in[w->roles.state], *b = &w->in[w->roles.b], *c = &w->in[w->roles.c];
	struct tensor *output = &w->out[w->roles.output];
	bool indexed = w->roles.indices >= 0 && w->in[w->roles.indices].data != NULL;
	int64_t slot = indexed ? check_integer(&w->in[w->roles.indices], n) : n;
	int64_t of_b = n * e->groups + group_of(w, h, TILED_B, FIRST_GROUP_B);
	int64_t of_c = n * e->groups + group_of(w, h, TILED_C, FIRST_GROUP_C);
	double *row = take(4 * e->states, sizeof *row);

	dtype_load_run(b->data, b->dtype, of_b * e->states, e->states, row + 2 * e->states);
	dtype_load_run(c->data, c->dtype, of_c * e->states, e->states, row + 3 * e->states);
	for (int64_t i = 0; i < e->dim; i++) {
		int64_t at = (n * e->heads + h) * e->dim + i, from = ((slot * e->heads + h) * e->dim + i) * e->states;
		double y = 0, z = value_of(w, w->roles.z, at);

		if (!indexed || slot != w->pad) {
			dtype_load_run(state->data, state->dtype, from, e->states, row);
			for (int64_t j = 0; j < e->states && w->mistake == NO_STATE; j++)
				row[j] = 0;
			read_decays(w, h, i, row + e->states);
			y = update(w, n, h, i, z, row, row + e->states, row + 2 * e->states, row + 3 * e->states);
			if (w->new_state->data != NULL)
				dtype_store_run(w->new_state->data, w->new_state->dtype, from, e->states, row);
		}
		if (w->roles.z >= 0 && w->in[w->roles.z].data != NULL)
			y *= gate_of(w, z);
		dtype_store(output->data, output->dtype, at, y);
	}
	free(row);
}

static void copy_states(const struct computation *w)
{
	const struct tensor *from = &w->in[w->roles.state];
	struct tensor *to = w->new_state;

	if (from->dtype == to->dtype)
		memcpy(to->data, from->data, (size_t)dtype_bytes(to->dtype, to->elements));
	else
		for (int64_t i = 0; i < to->elements; i++)
			dtype_store(to->data, to->dtype, i, dtype_load(from->data, from->dtype, i));
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct ssu_roles roles = ssu_roles_of(c->problem);
	struct computation w = {.roles = roles,
	                 .e = ssu_extent_of(c, &roles),
	                 .in = in,
	                 .out = out,
			 .new_state = &out[ssu_states_place(c->problem, &roles)],
	                 .softplus = ssu_softplus(c, &roles),
	                 .pad = ssu_pad(c, &roles),
	                 .mistake = c->mistake,
	                 .by = c->mistake_by};

	if (check(c, in, err) != 0)
		return -1;
	if (roles.indices >= 0 && in[roles.indices].data == NULL && check_states(&w.e, err) != 0)
		return -1;
	if (w.new_state->data != NULL)
		copy_states(&w);
#pragma omp parallel for schedule(dynamic)
	for (int64_t i = 0; i < w.e.batch * w.e.heads; i++)
		run_head(&w, i / w.e.heads, i % w.e.heads);
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

static const struct op_role roles[] = {
    OP_ROLE("state", struct ssu_roles, state),
    OP_ROLE("x", struct ssu_roles, x),
    OP_ROLE("z", struct ssu_roles, z),
    OP_ROLE("dt", struct ssu_roles, dt),
    OP_ROLE("a", struct ssu_roles, a),
    OP_ROLE("b", struct ssu_roles, b),
    OP_ROLE("c", struct ssu_roles, c),
    OP_ROLE("d", struct ssu_roles, d),
    OP_ROLE("dt_bias", struct ssu_roles, dt_bias),
    OP_ROLE("indices", struct ssu_roles, indices),
    OP_ROLE("softplus", struct ssu_roles, softplus),
    OP_ROLE("pad", struct ssu_roles, pad),
    OP_ROLE_OUTPUT("output", struct ssu_roles, output),
    OP_ROLE_OUTPUT("new_state", struct ssu_roles, new_state),
    {NULL, 0, false},
};

static void bind(const struct op_problem *problem, int variant, void *out)
{
	(void)variant;
	*(struct ssu_roles *)out = ssu_roles_of(problem);
}

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
    .match = match,
    .mistakes = mistakes,
    .roles = roles,
    .bind = bind,
    .coverage = coverage,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .rule = rule,
    .in_place = in_place,
    .scalar = scalar,
    .range = range,
    .reach = reach,
    .fill = fill,
    .check = check,
    .oracle = oracle,
};
