#include "kernels/core/mistakes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/dtype_convert.h"
#include "kernels/core/take.h"

struct op_variation variation_open(const struct op *op, const struct op_case *c, const struct tensor *in)
{
	struct op_variation v = {.op = op, .names = op_names_of(op, c->problem, c->variant), .c = *c};

	memcpy(v.in, in, (size_t)c->problem->input_count * sizeof *in);
	return v;
}

void variation_close(struct op_variation *v)
{
	for (int i = 0; i < v->memory_count; i++)
		free(v->memory[i]);
	free(v->memory);
}

/* Returns memory that lives as long as the variation. */
static void *hold(struct op_variation *v, int64_t bytes)
{
	void **list = realloc(v->memory, ((size_t)v->memory_count + 1) * sizeof *list);

	if (list == NULL)
		die_no_memory();
	v->memory = list;
	return v->memory[v->memory_count++] = take(bytes, 1);
}

static int find(const char *const *roles, const struct op_arg *args, int count, const char *role)
{
	for (int i = 0; role != NULL && i < count; i++)
		if (roles[i] != NULL && strcmp(roles[i], role) == 0)
			return i;
	for (int i = 0; role != NULL && i < count; i++)
		if (strcmp(args[i].name, role) == 0)
			return i;
	return -1;
}

int variation_input(const struct op_variation *v, const char *role)
{
	return find(v->names.inputs, v->c.problem->inputs, v->c.problem->input_count, role);
}

int variation_output(const struct op_variation *v, const char *role)
{
	return find(v->names.outputs, v->c.problem->outputs, v->c.problem->output_count, role);
}

/* Replaces a tensor by a private copy. The copy of a float tensor is float64. */
static void copy_tensor(struct op_variation *v, struct tensor *tensor)
{
	const struct tensor old = *tensor;
	bool widen = dtype_is_float(old.dtype);

	tensor->dtype = widen ? DTYPE_FLOAT64 : old.dtype;
	tensor->data = hold(v, dtype_bytes(tensor->dtype, old.elements));
	if (widen)
		dtype_load_run(old.data, old.dtype, 0, old.elements, tensor->data);
	else
		memcpy(tensor->data, old.data, (size_t)dtype_bytes(old.dtype, old.elements));
}

struct tensor *variation_change(struct op_variation *v, int at)
{
	if (at < 0 || v->in[at].data == NULL || v->in[at].rank == OP_SCALAR)
		return NULL;
	copy_tensor(v, &v->in[at]);
	return &v->in[at];
}

/* Makes tensors for the outputs of the oracle. The tensors of float outputs are float64. */
static void make_outputs(struct op_variation *v)
{
	const struct op_problem *problem = v->c.problem;

	for (int i = 0; i < problem->output_count; i++) {
		const struct op_arg *arg = &problem->outputs[i];
		struct tensor out = {.dtype = dtype_is_float(arg->dtype) ? DTYPE_FLOAT64 : arg->dtype,
				     .rank = arg->rank, .elements = 1};

		for (int d = 0; d < arg->rank; d++) {
			out.shape[d] = v->c.axis[arg->axis[d]];
			out.elements *= out.shape[d];
		}
		out.data = hold(v, dtype_bytes(out.dtype, out.elements));
		v->out[i] = out;
	}
}

/* Returns true if op.check accepts the inputs as inputs that a workload provides. */
static bool passes_check(const struct op_variation *v)
{
	struct op_case c = v->c;
	struct err err = {""};

	c.given = ~UINT64_C(0);
	return v->op->check == NULL || v->op->check(&c, v->in, &err) == 0;
}

/* ---- elements ---- */

typedef double element_change(double x, double by);

static double scaled(double x, double by) { return x * by; }
static double added(double x, double by) { return x + by; }
static double replaced(double x, double by) { return (void)x, by; }
static double limited(double x, double by) { return x > by ? by : x < -by ? -by : x; }
static double at_most(double x, double by) { return x > by ? by : x; }
static double at_least(double x, double by) { return x < by ? by : x; }
static double flushed(double x, double by) { return fabs(x) < by ? 0 : x; }
static double wrapped(double x, double by) { return x - by * floor(x / by); }
static double negated(double x, double by) { return (void)by, x == 0 ? 1 : 0; }
static double power_of_e(double x, double by) { return (void)by, exp(x); }
static double logarithm(double x, double by) { return (void)by, log(x); }

static double rounded(double x, double by)
{
	unsigned char bytes[8];

	dtype_store(bytes, (enum dtype)by, 0, x);
	return dtype_load(bytes, (enum dtype)by, 0);
}

/* Applies `change` to every element. If `unchanged` is not NULL, sets *unchanged to whether all elements keep their
 * values. */
static bool change_elements(struct tensor *tensor, element_change *change, double by, bool *unchanged)
{
	bool same = true;

	for (int64_t i = 0; tensor != NULL && i < tensor->elements; i++) {
		double old = dtype_load(tensor->data, tensor->dtype, i), new = change(old, by);

		dtype_store(tensor->data, tensor->dtype, i, new);
		same = same && (new == old || (isnan(new) && isnan(old)));
	}
	if (unchanged != NULL)
		*unchanged = same;
	return tensor != NULL;
}

static bool change_input(struct op_variation *v, const struct op_mistake *mistake, element_change *change)
{
	int at = variation_input(v, mistake->role);

	if (at < 0)
		return false;
	if (v->c.problem->inputs[at].rank == OP_SCALAR) {
		v->c.scalar[at] = change(v->c.scalar[at], mistake->by);
		v->c.absent &= ~(UINT64_C(1) << at);
		return true;
	}
	return change_elements(variation_change(v, at), change, mistake->by, &v->unchanged);
}

static struct tensor *output_of(struct op_variation *v, const char *role)
{
	int at = variation_output(v, role);

	return at < 0 ? NULL : &v->out[at];
}

static bool change_output(struct op_variation *v, const struct op_mistake *mistake, element_change *change)
{
	for (int i = 0; mistake->role == NULL && i < v->c.problem->output_count; i++)
		change_elements(&v->out[i], change, mistake->by, NULL);
	if (mistake->role == NULL)
		return true;
	return change_elements(output_of(v, mistake->role), change, mistake->by, NULL);
}

bool before_scale(struct op_variation *v, const struct op_mistake *mistake) { return change_input(v, mistake, scaled); }
bool before_add(struct op_variation *v, const struct op_mistake *mistake) { return change_input(v, mistake, added); }
bool before_set(struct op_variation *v, const struct op_mistake *mistake) { return change_input(v, mistake, replaced); }
bool before_clamp(struct op_variation *v, const struct op_mistake *mistake) { return change_input(v, mistake, limited); }

/* Returns the value of the input with the role `role` if the input is a Python scalar, else NaN. */
static double scalar_of(const struct op_variation *v, const char *role)
{
	int at = variation_input(v, role);

	return at >= 0 && v->c.problem->inputs[at].rank == OP_SCALAR ? v->c.scalar[at] : NAN;
}

bool before_most(struct op_variation *v, const struct op_mistake *mistake)
{
	double x = scalar_of(v, mistake->role);

	v->vague = v->vague || (x > mistake->by && (round(x) == mistake->by || floor(x) == mistake->by));
	return change_input(v, mistake, at_most);
}

bool before_least(struct op_variation *v, const struct op_mistake *mistake)
{
	double x = scalar_of(v, mistake->role);

	v->vague = v->vague || (x < mistake->by && round(x) == mistake->by);
	return change_input(v, mistake, at_least);
}

bool before_flush(struct op_variation *v, const struct op_mistake *mistake) { return change_input(v, mistake, flushed); }
bool before_round(struct op_variation *v, const struct op_mistake *mistake) { return change_input(v, mistake, rounded); }
bool before_wrap(struct op_variation *v, const struct op_mistake *mistake) { return change_input(v, mistake, wrapped); }
bool before_not(struct op_variation *v, const struct op_mistake *mistake) { return change_input(v, mistake, negated); }
bool before_exp(struct op_variation *v, const struct op_mistake *mistake) { return change_input(v, mistake, power_of_e); }
bool before_log(struct op_variation *v, const struct op_mistake *mistake) { return change_input(v, mistake, logarithm); }
bool after_scale(struct op_variation *v, const struct op_mistake *mistake) { return change_output(v, mistake, scaled); }
bool after_add(struct op_variation *v, const struct op_mistake *mistake) { return change_output(v, mistake, added); }
bool after_set(struct op_variation *v, const struct op_mistake *mistake) { return change_output(v, mistake, replaced); }
bool after_clamp(struct op_variation *v, const struct op_mistake *mistake) { return change_output(v, mistake, limited); }
bool after_most(struct op_variation *v, const struct op_mistake *mistake) { return change_output(v, mistake, at_most); }
bool after_round(struct op_variation *v, const struct op_mistake *mistake) { return change_output(v, mistake, rounded); }
bool after_log(struct op_variation *v, const struct op_mistake *mistake) { return change_output(v, mistake, logarithm); }

/* ---- running ---- */

/* Returns true if the mistake limits or rounds the elements of one input. Such a mistake may leave all elements
 * unchanged. */
static bool may_change_nothing(const struct op_mistake *mistake)
{
	return mistake->before == before_clamp || mistake->before == before_most || mistake->before == before_least ||
	       mistake->before == before_flush || mistake->before == before_round || mistake->before == before_wrap;
}

bool variation_run(struct op_variation *v, const struct op_mistake *mistake, const struct tensor *right)
{
	bool of_outputs = right != NULL && mistake->before == NULL && mistake->in_oracle == 0;
	struct err err = {""};

	v->unchanged = false;
	v->c.mistake = mistake->in_oracle;
	v->c.mistake_by = mistake->by;
	if (mistake->before != NULL && !mistake->before(v, mistake))
		return false;
	if (mistake->checked && !passes_check(v))
		return false;
	of_outputs = of_outputs || (right != NULL && mistake->in_oracle == 0 && v->unchanged && may_change_nothing(mistake));
	make_outputs(v);
	for (int i = 0; of_outputs && i < v->c.problem->output_count; i++)
		memcpy(v->out[i].data, right[i].data, (size_t)dtype_bytes(right[i].dtype, right[i].elements));
	if (!of_outputs && v->op->oracle(&v->c, v->in, v->out, &err) != 0)
		return false;
	return mistake->after == NULL || mistake->after(v, mistake);
}

/* ---- two tensors ---- */

static bool same_shape(const struct tensor *a, const struct tensor *b)
{
	return a != NULL && b != NULL && a->data != NULL && b->data != NULL && a->rank == b->rank &&
	       memcmp(a->shape, b->shape, (size_t)(a->rank < 0 ? 0 : a->rank) * sizeof *a->shape) == 0;
}

static bool copy_elements(const struct tensor *from, struct tensor *to, double keep)
{
	if (!same_shape(from, to))
		return false;
	for (int64_t i = 0; i < to->elements; i++)
		dtype_store(to->data, to->dtype, i,
			    dtype_load(from->data, from->dtype, i) +
				(keep > 0 ? dtype_load(to->data, to->dtype, i) : 0));
	return true;
}

static bool exchange(struct tensor *a, struct tensor *b)
{
	struct tensor other;

	if (a == b || !same_shape(a, b) || dtype_is_float(a->dtype) != dtype_is_float(b->dtype))
		return false;
	other = *a, *a = *b, *b = other;
	return true;
}

bool before_copy(struct op_variation *v, const struct op_mistake *mistake)
{
	int from = variation_input(v, mistake->other);

	return from >= 0 && copy_elements(&v->in[from], variation_change(v, variation_input(v, mistake->role)), 0);
}

bool before_swap(struct op_variation *v, const struct op_mistake *mistake)
{
	return exchange(variation_change(v, variation_input(v, mistake->role)),
			variation_change(v, variation_input(v, mistake->other)));
}

bool after_swap(struct op_variation *v, const struct op_mistake *mistake)
{
	return exchange(output_of(v, mistake->role), output_of(v, mistake->other));
}

bool after_input(struct op_variation *v, const struct op_mistake *mistake)
{
	int from = variation_input(v, mistake->other);

	return from >= 0 && copy_elements(&v->in[from], output_of(v, mistake->role), 0);
}

bool after_kept(struct op_variation *v, const struct op_mistake *mistake)
{
	int at = variation_output(v, mistake->role);

	return v->first_case == NULL || (v->first_out != NULL && at >= 0 && copy_elements(&v->first_out[at], &v->out[at], 0));
}

bool after_add_input(struct op_variation *v, const struct op_mistake *mistake)
{
	int from = variation_input(v, mistake->other);

	return from >= 0 && copy_elements(&v->in[from], output_of(v, mistake->role), 1);
}

/* ---- places ---- */

/* Returns the index of the element that replaces element `i` of an axis with `length` elements. */
typedef int64_t source_index(int64_t i, int64_t length);

static int64_t reversed(int64_t i, int64_t length) { return length - 1 - i; }
static int64_t next(int64_t i, int64_t length) { return (i + 1) % length; }
static int64_t previous(int64_t i, int64_t length) { return (i + length - 1) % length; }
static int64_t neighbour(int64_t i, int64_t length) { return (i ^ 1) < length ? i ^ 1 : i; }
static int64_t origin(int64_t i, int64_t length) { return (void)i, (void)length, 0; }
static int64_t end(int64_t i, int64_t length) { return (void)i, length - 1; }
static int64_t other_half(int64_t i, int64_t length) { return length % 2 != 0 ? i : (i + length / 2) % length; }

static bool move(struct op_variation *v, struct tensor *tensor, double axis, source_index *place)
{
	int d = tensor == NULL ? 0 : (int)axis + (axis < 0 ? tensor->rank : 0);
	int64_t inner = 1, size, length;

	if (tensor == NULL || d < 0 || d >= tensor->rank || tensor->shape[d] < 2 || tensor->elements == 0)
		return false;
	size = dtype_bytes(tensor->dtype, 1);
	length = tensor->shape[d];
	for (int i = d + 1; i < tensor->rank; i++)
		inner *= tensor->shape[i];
	char *from = tensor->data, *to = hold(v, dtype_bytes(tensor->dtype, tensor->elements));

	for (int64_t row = 0; row < tensor->elements / inner; row++) {
		int64_t source = row - row % length + place(row % length, length);

		memcpy(to + row * inner * size, from + source * inner * size, (size_t)(inner * size));
	}
	tensor->data = to;
	return true;
}

static bool transpose(struct op_variation *v, struct tensor *tensor)
{
	int64_t n;

	if (tensor == NULL || tensor->rank < 2 || tensor->dtype != DTYPE_FLOAT64 ||
	    tensor->shape[tensor->rank - 1] != tensor->shape[tensor->rank - 2])
		return false;
	n = tensor->shape[tensor->rank - 1];
	double *from = tensor->data, *to = hold(v, tensor->elements * (int64_t)sizeof *to);

	for (int64_t i = 0; i < tensor->elements; i++)
		to[i] = from[i - i % (n * n) + i % n * n + i / n % n];
	tensor->data = to;
	return true;
}

static bool move_input(struct op_variation *v, const struct op_mistake *mistake, source_index *place)
{
	return move(v, variation_change(v, variation_input(v, mistake->role)), mistake->by, place);
}

static bool move_output(struct op_variation *v, const struct op_mistake *mistake, source_index *place)
{
	return move(v, output_of(v, mistake->role), mistake->by, place);
}

bool before_flip(struct op_variation *v, const struct op_mistake *mistake) { return move_input(v, mistake, reversed); }
bool before_next(struct op_variation *v, const struct op_mistake *mistake) { return move_input(v, mistake, next); }
bool before_previous(struct op_variation *v, const struct op_mistake *mistake) { return move_input(v, mistake, previous); }
bool before_first(struct op_variation *v, const struct op_mistake *mistake) { return move_input(v, mistake, origin); }
bool before_last(struct op_variation *v, const struct op_mistake *mistake) { return move_input(v, mistake, end); }
bool before_halves(struct op_variation *v, const struct op_mistake *mistake) { return move_input(v, mistake, other_half); }
bool after_flip(struct op_variation *v, const struct op_mistake *mistake) { return move_output(v, mistake, reversed); }
bool after_next(struct op_variation *v, const struct op_mistake *mistake) { return move_output(v, mistake, next); }
bool after_previous(struct op_variation *v, const struct op_mistake *mistake) { return move_output(v, mistake, previous); }
bool after_neighbours(struct op_variation *v, const struct op_mistake *mistake) { return move_output(v, mistake, neighbour); }
bool after_first(struct op_variation *v, const struct op_mistake *mistake) { return move_output(v, mistake, origin); }
bool after_halves(struct op_variation *v, const struct op_mistake *mistake) { return move_output(v, mistake, other_half); }

bool before_transpose(struct op_variation *v, const struct op_mistake *mistake)
{
	return transpose(v, variation_change(v, variation_input(v, mistake->role)));
}

bool after_transpose(struct op_variation *v, const struct op_mistake *mistake)
{
	return transpose(v, output_of(v, mistake->role));
}

/* ---- constants and scalars ---- */

bool before_constant(struct op_variation *v, const struct op_mistake *mistake)
{
	for (int i = 0; i < v->c.constant_count; i++)
		if (strcmp(v->c.constants[i].name, mistake->role) == 0) {
			v->c.constants[i].value = mistake->by;
			return true;
		}
	return false;
}

bool before_kept(struct op_variation *v, const struct op_mistake *mistake)
{
	int at = variation_input(v, mistake->role);

	if (at < 0 || v->first_case == NULL)
		return at >= 0;
	v->c.scalar[at] = v->first_case->scalar[at];
	v->in[at] = v->first_in[at];
	return true;
}

bool variation_scale(struct op_variation *v, const char *role, double scale)
{
	int at = variation_input(v, role);

	if (at < 0)
		return false;
	double given = v->c.scalar[at];
	bool absent = (v->c.absent >> at & 1) != 0;

	v->vague = absent || given == 0 || given == 1 || fabs(given - scale) <= 1e-9 * scale;
	v->c.scalar[at] = scale;
	v->c.absent &= ~(UINT64_C(1) << at);
	return true;
}

bool before_root_scale(struct op_variation *v, const struct op_mistake *mistake)
{
	int scale = variation_input(v, mistake->role), other = variation_input(v, mistake->other);

	if (scale < 0 || other < 0 || v->in[other].rank < 1)
		return false;
	return variation_scale(v, mistake->role, 1 / sqrt((double)v->in[other].shape[v->in[other].rank - 1]));
}

/* ---- variants and heads ---- */

bool before_variant(struct op_variation *v, const struct op_mistake *mistake)
{
	v->c.variant ^= (int)mistake->by;
	return true;
}

bool before_iota(struct op_variation *v, const struct op_mistake *mistake)
{
	struct tensor *tensor = variation_change(v, variation_input(v, mistake->role));

	for (int64_t i = 0; tensor != NULL && i < tensor->elements; i++)
		dtype_store(tensor->data, tensor->dtype, i, (double)i);
	return tensor != NULL;
}

/* Reorders the `groups` * `size` elements of axis `axis`: moves element i * groups + g to index g * size + i. If `back`
 * is true, does the reverse. */
static bool regroup(struct op_variation *v, struct tensor *tensor, int axis, int64_t groups, bool back)
{
	int64_t inner = 1, length;

	if (tensor == NULL || tensor->rank <= axis || tensor->dtype != DTYPE_FLOAT64 || groups < 2 ||
	    tensor->shape[axis] % groups != 0 || tensor->shape[axis] == groups)
		return false;
	length = tensor->shape[axis];
	for (int d = axis + 1; d < tensor->rank; d++)
		inner *= tensor->shape[d];
	double *from = tensor->data, *to = hold(v, tensor->elements * (int64_t)sizeof *to);

	for (int64_t row = 0; row < tensor->elements / inner; row++) {
		int64_t i = row % length, grouped = i % groups * (length / groups) + i / groups;
		int64_t target = row - i + grouped;

		memcpy(to + (back ? row : target) * inner, from + (back ? target : row) * inner, (size_t)inner * sizeof *to);
	}
	tensor->data = to;
	return true;
}

static int64_t groups_of(const struct op_variation *v, const struct op_mistake *mistake)
{
	int keys = variation_input(v, mistake->other);

	return keys < 0 || v->in[keys].rank < 2 ? 0 : v->in[keys].shape[v->in[keys].rank - 2];
}

bool before_tile(struct op_variation *v, const struct op_mistake *mistake)
{
	return regroup(v, variation_change(v, variation_input(v, mistake->role)), 1, groups_of(v, mistake), false);
}

bool after_tile(struct op_variation *v, const struct op_mistake *mistake)
{
	bool any = false;

	for (int i = 0; i < v->c.problem->output_count; i++)
		any |= regroup(v, &v->out[i], 1, groups_of(v, mistake), true);
	return any;
}

/* Finds the output whose rows belong to slots, and the input with the slot of each sequence. */
static bool find_slots(struct op_variation *v, const struct op_mistake *mistake, struct tensor **rows,
		       const struct tensor **slots)
{
	int indices = variation_input(v, mistake->other);

	*rows = output_of(v, mistake->role);
	*slots = indices < 0 ? NULL : &v->in[indices];
	return *rows != NULL && (*rows)->rank > 0 && (*rows)->shape[0] > 0 && *slots != NULL && (*slots)->data != NULL;
}

static bool has_slot(const struct tensor *slots, int64_t slot)
{
	for (int64_t n = 0; n < slots->elements; n++)
		if (dtype_load(slots->data, slots->dtype, n) == (double)slot)
			return true;
	return false;
}

bool after_clear_others(struct op_variation *v, const struct op_mistake *mistake)
{
	const struct tensor *slots;
	struct tensor *rows;

	if (!find_slots(v, mistake, &rows, &slots))
		return false;
	int64_t size = rows->elements / rows->shape[0];

	for (int64_t i = 0; i < rows->elements; i++)
		if (!has_slot(slots, i / size))
			dtype_store(rows->data, rows->dtype, i, 0);
	return true;
}

bool after_places(struct op_variation *v, const struct op_mistake *mistake)
{
	int state = variation_input(v, "state");
	const struct tensor *slots;
	struct tensor *rows, old;

	if (!find_slots(v, mistake, &rows, &slots) || state < 0 || !same_shape(&v->in[state], rows))
		return false;
	old = *rows;
	copy_tensor(v, rows);
	copy_elements(&v->in[state], rows, 0);
	int64_t size = rows->elements / rows->shape[0], count = rows->shape[0];

	for (int64_t n = 0; n < slots->elements; n++) {
		int64_t slot = (int64_t)dtype_load(slots->data, slots->dtype, n);
		int64_t to = mistake->by > 0 ? (slot + 1) % count : n;

		for (int64_t i = 0; slot >= 0 && slot < count && to < count && i < size; i++)
			dtype_store(rows->data, rows->dtype, to * size + i, dtype_load(old.data, old.dtype, slot * size + i));
	}
	return true;
}

bool after_infinity(struct op_variation *v, const struct op_mistake *mistake)
{
	struct tensor *tensor = output_of(v, mistake->role);
	bool any = false;

	for (int64_t i = 0; tensor != NULL && i < tensor->elements; i++)
		if (isinf(dtype_load(tensor->data, tensor->dtype, i))) {
			dtype_store(tensor->data, tensor->dtype, i, mistake->by);
			any = true;
		}
	return any;
}
