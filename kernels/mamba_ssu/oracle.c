#include "kernels/mamba_ssu/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/input_check.h"
#include "kernels/core/take.h"
#include "kernels/mamba_ssu/mistakes.h"
#include "kernels/mamba_ssu/roles.h"

/* --- checks ------------------------------------------------------------------------------------------------------- */

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
	/* z must also be finite in padding sequences, because some references multiply the output 0 of a padding
	 * sequence by the gate silu(z), and 0 times NaN is NaN. */
	return check_numbers(c, in, roles->z, true, "padding would have the output 0 * silu(z), which would not be 0", err);
}

int ssu_check(const struct op_case *c, const struct tensor *in, struct err *err)
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

/* --- the update --------------------------------------------------------------------------------------------------- */

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
static int64_t group_of(const struct computation *w, int64_t h, enum ssu_mistake tiled, enum ssu_mistake first)
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

int ssu_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
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

	if (ssu_check(c, in, err) != 0)
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
