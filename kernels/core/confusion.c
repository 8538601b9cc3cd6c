#include "kernels/core/confusion.h"

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

/* Replaces a tensor by a private copy, which is float64 if the tensor is of floats. */
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

/* Makes tensors for the outputs of the oracle: float64 for outputs of floats. */
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

/* Returns true if op.check would accept the inputs in a workload. */
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

/* Changes every element. Sets *unchanged to true if no element has a new value; `unchanged` may be NULL. */
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

static bool change_input(struct op_variation *v, const struct op_confusion *confusion, element_change *change)
{
	int at = variation_input(v, confusion->role);

	if (at < 0)
		return false;
	if (v->c.problem->inputs[at].rank == OP_SCALAR) {
		v->c.scalar[at] = change(v->c.scalar[at], confusion->by);
		v->c.absent &= ~(UINT64_C(1) << at);
		return true;
	}
	return change_elements(variation_change(v, at), change, confusion->by, &v->unchanged);
}

static struct tensor *output_of(struct op_variation *v, const char *role)
{
	int at = variation_output(v, role);

	return at < 0 ? NULL : &v->out[at];
}

static bool change_output(struct op_variation *v, const struct op_confusion *confusion, element_change *change)
{
	for (int i = 0; confusion->role == NULL && i < v->c.problem->output_count; i++)
		change_elements(&v->out[i], change, confusion->by, NULL);
	if (confusion->role == NULL)
		return true;
	return change_elements(output_of(v, confusion->role), change, confusion->by, NULL);
}

bool before_scale(struct op_variation *v, const struct op_confusion *confusion) { return change_input(v, confusion, scaled); }
bool before_add(struct op_variation *v, const struct op_confusion *confusion) { return change_input(v, confusion, added); }
bool before_set(struct op_variation *v, const struct op_confusion *confusion) { return change_input(v, confusion, replaced); }
bool before_clamp(struct op_variation *v, const struct op_confusion *confusion) { return change_input(v, confusion, limited); }

/* Returns the value of the input `role`, or NaN if it is not a Python scalar. */
static double scalar_of(const struct op_variation *v, const char *role)
{
	int at = variation_input(v, role);

	return at >= 0 && v->c.problem->inputs[at].rank == OP_SCALAR ? v->c.scalar[at] : NAN;
}

bool before_most(struct op_variation *v, const struct op_confusion *confusion)
{
	double x = scalar_of(v, confusion->role);

	v->vague = v->vague || (x > confusion->by && (round(x) == confusion->by || floor(x) == confusion->by));
	return change_input(v, confusion, at_most);
}

bool before_least(struct op_variation *v, const struct op_confusion *confusion)
{
	double x = scalar_of(v, confusion->role);

	v->vague = v->vague || (x < confusion->by && round(x) == confusion->by);
	return change_input(v, confusion, at_least);
}

bool before_flush(struct op_variation *v, const struct op_confusion *confusion) { return change_input(v, confusion, flushed); }
bool before_round(struct op_variation *v, const struct op_confusion *confusion) { return change_input(v, confusion, rounded); }
bool before_wrap(struct op_variation *v, const struct op_confusion *confusion) { return change_input(v, confusion, wrapped); }
bool before_not(struct op_variation *v, const struct op_confusion *confusion) { return change_input(v, confusion, negated); }
bool before_exp(struct op_variation *v, const struct op_confusion *confusion) { return change_input(v, confusion, power_of_e); }
bool before_log(struct op_variation *v, const struct op_confusion *confusion) { return change_input(v, confusion, logarithm); }
bool after_scale(struct op_variation *v, const struct op_confusion *confusion) { return change_output(v, confusion, scaled); }
bool after_add(struct op_variation *v, const struct op_confusion *confusion) { return change_output(v, confusion, added); }
bool after_set(struct op_variation *v, const struct op_confusion *confusion) { return change_output(v, confusion, replaced); }
bool after_clamp(struct op_variation *v, const struct op_confusion *confusion) { return change_output(v, confusion, limited); }
bool after_most(struct op_variation *v, const struct op_confusion *confusion) { return change_output(v, confusion, at_most); }
bool after_round(struct op_variation *v, const struct op_confusion *confusion) { return change_output(v, confusion, rounded); }
bool after_log(struct op_variation *v, const struct op_confusion *confusion) { return change_output(v, confusion, logarithm); }

/* ---- running ---- */

/* Returns true if the mistake limits or rounds the elements of one input. Such a mistake often changes no element. */
static bool may_change_nothing(const struct op_confusion *confusion)
{
	return confusion->before == before_clamp || confusion->before == before_most || confusion->before == before_least ||
	       confusion->before == before_flush || confusion->before == before_round || confusion->before == before_wrap;
}

bool variation_run(struct op_variation *v, const struct op_confusion *confusion, const struct tensor *right)
{
	bool of_outputs = right != NULL && confusion->before == NULL && confusion->mistake == 0;
	struct err err = {""};

	v->unchanged = false;
	v->c.mistake = confusion->mistake;
	v->c.mistake_by = confusion->by;
	if (confusion->before != NULL && !confusion->before(v, confusion))
		return false;
	if (confusion->checked && !passes_check(v))
		return false;
	of_outputs = of_outputs || (right != NULL && confusion->mistake == 0 && v->unchanged && may_change_nothing(confusion));
	make_outputs(v);
	for (int i = 0; of_outputs && i < v->c.problem->output_count; i++)
		memcpy(v->out[i].data, right[i].data, (size_t)dtype_bytes(right[i].dtype, right[i].elements));
	if (!of_outputs && v->op->oracle(&v->c, v->in, v->out, &err) != 0)
		return false;
	return confusion->after == NULL || confusion->after(v, confusion);
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

bool before_copy(struct op_variation *v, const struct op_confusion *confusion)
{
	int from = variation_input(v, confusion->other);

	return from >= 0 && copy_elements(&v->in[from], variation_change(v, variation_input(v, confusion->role)), 0);
}

bool before_swap(struct op_variation *v, const struct op_confusion *confusion)
{
	return exchange(variation_change(v, variation_input(v, confusion->role)),
			variation_change(v, variation_input(v, confusion->other)));
}

bool after_swap(struct op_variation *v, const struct op_confusion *confusion)
{
	return exchange(output_of(v, confusion->role), output_of(v, confusion->other));
}

bool after_input(struct op_variation *v, const struct op_confusion *confusion)
{
	int from = variation_input(v, confusion->other);

	return from >= 0 && copy_elements(&v->in[from], output_of(v, confusion->role), 0);
}

bool after_kept(struct op_variation *v, const struct op_confusion *confusion)
{
	int at = variation_output(v, confusion->role);

	return v->first_case == NULL || (v->first_out != NULL && at >= 0 && copy_elements(&v->first_out[at], &v->out[at], 0));
}

bool after_add_input(struct op_variation *v, const struct op_confusion *confusion)
{
	int from = variation_input(v, confusion->other);

	return from >= 0 && copy_elements(&v->in[from], output_of(v, confusion->role), 1);
}

/* ---- places ---- */

/* Returns the index along an axis of `length` elements from which element `i` is taken. */
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

static bool move_input(struct op_variation *v, const struct op_confusion *confusion, source_index *place)
{
	return move(v, variation_change(v, variation_input(v, confusion->role)), confusion->by, place);
}

static bool move_output(struct op_variation *v, const struct op_confusion *confusion, source_index *place)
{
	return move(v, output_of(v, confusion->role), confusion->by, place);
}

bool before_flip(struct op_variation *v, const struct op_confusion *confusion) { return move_input(v, confusion, reversed); }
bool before_next(struct op_variation *v, const struct op_confusion *confusion) { return move_input(v, confusion, next); }
bool before_previous(struct op_variation *v, const struct op_confusion *confusion) { return move_input(v, confusion, previous); }
bool before_first(struct op_variation *v, const struct op_confusion *confusion) { return move_input(v, confusion, origin); }
bool before_last(struct op_variation *v, const struct op_confusion *confusion) { return move_input(v, confusion, end); }
bool before_halves(struct op_variation *v, const struct op_confusion *confusion) { return move_input(v, confusion, other_half); }
bool after_flip(struct op_variation *v, const struct op_confusion *confusion) { return move_output(v, confusion, reversed); }
bool after_next(struct op_variation *v, const struct op_confusion *confusion) { return move_output(v, confusion, next); }
bool after_previous(struct op_variation *v, const struct op_confusion *confusion) { return move_output(v, confusion, previous); }
bool after_neighbours(struct op_variation *v, const struct op_confusion *confusion) { return move_output(v, confusion, neighbour); }
bool after_first(struct op_variation *v, const struct op_confusion *confusion) { return move_output(v, confusion, origin); }
bool after_halves(struct op_variation *v, const struct op_confusion *confusion) { return move_output(v, confusion, other_half); }

bool before_transpose(struct op_variation *v, const struct op_confusion *confusion)
{
	return transpose(v, variation_change(v, variation_input(v, confusion->role)));
}

bool after_transpose(struct op_variation *v, const struct op_confusion *confusion)
{
	return transpose(v, output_of(v, confusion->role));
}

/* ---- constants and scalars ---- */

bool before_constant(struct op_variation *v, const struct op_confusion *confusion)
{
	for (int i = 0; i < v->c.constant_count; i++)
		if (strcmp(v->c.constants[i].name, confusion->role) == 0) {
			v->c.constants[i].value = confusion->by;
			return true;
		}
	return false;
}

bool before_kept(struct op_variation *v, const struct op_confusion *confusion)
{
	int at = variation_input(v, confusion->role);

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

bool before_root_scale(struct op_variation *v, const struct op_confusion *confusion)
{
	int scale = variation_input(v, confusion->role), other = variation_input(v, confusion->other);

	if (scale < 0 || other < 0 || v->in[other].rank < 1)
		return false;
	return variation_scale(v, confusion->role, 1 / sqrt((double)v->in[other].shape[v->in[other].rank - 1]));
}

/* ---- variants and heads ---- */

bool before_variant(struct op_variation *v, const struct op_confusion *confusion)
{
	v->c.variant ^= (int)confusion->by;
	return true;
}

bool before_iota(struct op_variation *v, const struct op_confusion *confusion)
{
	struct tensor *tensor = variation_change(v, variation_input(v, confusion->role));

	for (int64_t i = 0; tensor != NULL && i < tensor->elements; i++)
		dtype_store(tensor->data, tensor->dtype, i, (double)i);
	return tensor != NULL;
}

/* Reorders axis `axis` from groups of neighbours to tiles, or back: element g * size + i becomes element
 * i * groups + g, or the reverse. */
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

static int64_t groups_of(const struct op_variation *v, const struct op_confusion *confusion)
{
	int keys = variation_input(v, confusion->other);

	return keys < 0 || v->in[keys].rank < 2 ? 0 : v->in[keys].shape[v->in[keys].rank - 2];
}

bool before_tile(struct op_variation *v, const struct op_confusion *confusion)
{
	return regroup(v, variation_change(v, variation_input(v, confusion->role)), 1, groups_of(v, confusion), false);
}

bool after_tile(struct op_variation *v, const struct op_confusion *confusion)
{
	bool any = false;

	for (int i = 0; i < v->c.problem->output_count; i++)
		any |= regroup(v, &v->out[i], 1, groups_of(v, confusion), true);
	return any;
}

/* Finds the rows of an output and the slots of sequences. */
static bool find_slots(struct op_variation *v, const struct op_confusion *confusion, struct tensor **rows,
		       const struct tensor **slots)
{
	int indices = variation_input(v, confusion->other);

	*rows = output_of(v, confusion->role);
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

bool after_clear_others(struct op_variation *v, const struct op_confusion *confusion)
{
	const struct tensor *slots;
	struct tensor *rows;

	if (!find_slots(v, confusion, &rows, &slots))
		return false;
	int64_t size = rows->elements / rows->shape[0];

	for (int64_t i = 0; i < rows->elements; i++)
		if (!has_slot(slots, i / size))
			dtype_store(rows->data, rows->dtype, i, 0);
	return true;
}

bool after_places(struct op_variation *v, const struct op_confusion *confusion)
{
	int state = variation_input(v, "state");
	const struct tensor *slots;
	struct tensor *rows, old;

	if (!find_slots(v, confusion, &rows, &slots) || state < 0 || !same_shape(&v->in[state], rows))
		return false;
	old = *rows;
	copy_tensor(v, rows);
	copy_elements(&v->in[state], rows, 0);
	int64_t size = rows->elements / rows->shape[0], count = rows->shape[0];

	for (int64_t n = 0; n < slots->elements; n++) {
		int64_t slot = (int64_t)dtype_load(slots->data, slots->dtype, n);
		int64_t to = confusion->by > 0 ? (slot + 1) % count : n;

		for (int64_t i = 0; slot >= 0 && slot < count && to < count && i < size; i++)
			dtype_store(rows->data, rows->dtype, to * size + i, dtype_load(old.data, old.dtype, slot * size + i));
	}
	return true;
}

bool after_infinity(struct op_variation *v, const struct op_confusion *confusion)
{
	struct tensor *tensor = output_of(v, confusion->role);
	bool any = false;

	for (int64_t i = 0; tensor != NULL && i < tensor->elements; i++)
		if (isinf(dtype_load(tensor->data, tensor->dtype, i))) {
			dtype_store(tensor->data, tensor->dtype, i, confusion->by);
			any = true;
		}
	return any;
}
