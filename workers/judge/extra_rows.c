/* extra_rows - the extra runs for the check `rows`. These runs show whether a row of the outputs depends only on the
 * same row of the inputs, or also on other rows.
 *
 * A row axis is a var axis (an axis whose length the workload gives) with a length of at least 2. At least one input
 * and at least one output must have it, and no tensor may have it twice. There are two runs for each row axis. In the
 * first run, all rows of the inputs are in reverse order, and the rows of the outputs must be in reverse order, too. In
 * the second run, the inputs have only their last row, and each output must equal the last row of the same output in a
 * run with all rows. If rows depend on each other, this is a property of the operation, not a mistake. If rows depend
 * on each other in one case but not in another, the engine reports it (engine/learnt_rows.h). */
#include "workers/judge/trial_internal.h"

#include <string.h>

/* If a tensor has more rows than this along an axis, the check skips this axis: each row is copied separately, which
 * would take too long. */
enum { PIECES = 1 << 16 };
enum { FEW_COPIES = 64 }; /* if a tensor has more rows than this, the host reorders them */

enum { NOWHERE = -1, TWICE = -2 };

/* Returns the index of the argument's dimension that has this axis, NOWHERE if no dimension has it, or TWICE if several
 * dimensions have it. */
static int place_of(const struct op_arg *arg, int axis)
{
	int found = NOWHERE;

	for (int d = 0; d < arg->rank; d++)
		if (arg->axis[d] == axis)
			found = found == NOWHERE ? d : TWICE;
	return found;
}

static bool is_row_axis(const struct trial *trial, int axis)
{
	const struct op_problem *problem = &trial->job->problem;
	bool input = false, output = false, twice = !problem->axes[axis].var || trial->job->axis[axis] < 2;

	for (int i = 0; i < problem->input_count; i++) {
		twice = twice || place_of(&problem->inputs[i], axis) == TWICE;
		input = input || place_of(&problem->inputs[i], axis) >= 0;
	}
	for (int i = 0; i < problem->output_count; i++) {
		twice = twice || place_of(&problem->outputs[i], axis) == TWICE;
		output = output || place_of(&problem->outputs[i], axis) >= 0;
	}
	return input && output && !twice;
}

/* Returns row axis `number` (counted from 0), or -1 if there are fewer row axes. */
static int row_axis(const struct trial *trial, int number)
{
	for (int i = 0; i < trial->job->problem.axis_count; i++)
		if (is_row_axis(trial, i) && number-- == 0)
			return i;
	return -1;
}

static int count_axes(const struct trial *trial)
{
	int axes = 0;

	while (axes < ROW_AXES && row_axis(trial, axes) >= 0)
		axes++;
	return axes;
}

int extra_rows_count(const struct trial *trial)
{
	return 2 * count_axes(trial);
}

static int64_t product(const int64_t *shape, int from, int to)
{
	int64_t product = 1;

	for (int d = from; d < to; d++)
		product *= shape[d];
	return product;
}

/* If the run uses only the last row, reduces the shape of a tensor to one row. Returns false if the rows of the tensor
 * cannot be copied. */
static bool take_rows(const struct trial *trial, struct tensor *tensor, int place)
{
	int64_t rows = tensor->shape[place];

	if (dtype_bits(tensor->dtype) < 8 || product(tensor->shape, 0, place + 1) > PIECES)
		return false;
	if (trial->extra.rows_alone) {
		tensor->elements /= rows;
		tensor->shape[place] = 1;
	}
	return true;
}

bool extra_rows_prepare(struct trial *trial, int item)
{
	const struct op_problem *problem = &trial->job->problem;
	struct round *round = &trial->extra.round;
	int axis = row_axis(trial, item / 2);
	bool whole = true;

	if (item == 0) {
		memset(trial->extra.rows, 0, sizeof trial->extra.rows);
		trial->extra.mixed_rows = NULL;
	}
	trial->extra.rows_axis = axis;
	trial->extra.rows_alone = item % 2 == 1;
	for (int i = 0; i < problem->input_count; i++)
		if (place_of(&problem->inputs[i], axis) >= 0 && round->in[i].data != NULL)
			whole = whole && take_rows(trial, &round->in[i], place_of(&problem->inputs[i], axis));
	for (int i = 0; i < problem->output_count; i++)
		if (place_of(&problem->outputs[i], axis) >= 0)
			whole = whole && take_rows(trial, &round->first[i], place_of(&problem->outputs[i], axis));
	return whole;
}

/* The rows of one input in the order of this run. The input has `outer` blocks of `rows` rows, and each row has `bytes`
 * bytes. */
struct staged_rows {
	const struct tensor *all;
	int64_t outer, rows, bytes;
	int64_t from, count; /* this run uses `count` rows of each block: row `from` and the rows before it */
};

static struct staged_rows rows_of(const struct trial *trial, int input, int place)
{
	const struct tensor *all = &trial->round[CONTENTS_FIRST].in[input];
	struct staged_rows out = {.all = all, .outer = product(all->shape, 0, place), .rows = all->shape[place]};

	out.bytes = out.outer * out.rows > 0 ? job_tensor_bytes(all) / (out.outer * out.rows) : 0;
	out.from = out.rows - 1;
	out.count = trial->extra.rows_alone ? 1 : out.rows;
	return out;
}

/* Returns the offset in bytes of a staged row from the beginning of the tensor. */
static int64_t offset_of(const struct staged_rows *r, int64_t block, int64_t number)
{
	return (block * r->rows + r->from - number) * r->bytes;
}

static int put_rows(struct trial *trial, const struct staged_rows *r, int64_t at, struct err *err)
{
	const unsigned char *memory = r->all->data;

	for (int64_t block = 0; block < r->outer; block++)
		for (int64_t number = 0; number < r->count; number++, at += r->bytes)
			if (shared_memory_put(&trial->context->shared, at, memory + offset_of(r, block, number), r->bytes, err) != 0)
				return -1;
	return 0;
}

/* Writes the rows to `to`, in host memory, in the order of this run. */
static int order_on_host(struct trial *trial, const struct staged_rows *r, unsigned char *to, struct err *err)
{
	struct arena arena = {0};
	unsigned char *memory = arena_alloc(&arena, (size_t)job_tensor_bytes(r->all));
	int rc = trial->device->calls->download(trial->device, memory, r->all->data, job_tensor_bytes(r->all), err);

	for (int64_t block = 0; rc == 0 && block < r->outer; block++)
		for (int64_t number = 0; number < r->count; number++, to += r->bytes)
			memcpy(to, memory + offset_of(r, block, number), (size_t)r->bytes);
	arena_free(&arena);
	return rc;
}

/* Does the same as put_rows, but reorders the rows on the host. */
static int put_ordered(struct trial *trial, const struct staged_rows *r, int64_t at, void *scratch, struct err *err)
{
	int64_t bytes = r->outer * r->count * r->bytes;
	struct arena arena = {0};
	unsigned char *ordered = arena_alloc(&arena, (size_t)bytes);
	int rc = order_on_host(trial, r, ordered, err);

	if (rc == 0)
		rc = trial->device->calls->upload(trial->device, scratch, ordered, bytes, err);
	if (rc == 0)
		rc = shared_memory_put(&trial->context->shared, at, scratch, bytes, err);
	arena_free(&arena);
	return rc;
}

/* Writes the rows of one input to the shared arena. If there are many rows, they are reordered on the host, because
 * each copy on a GPU takes ten microseconds, however small it is. */
static int stage_input(struct trial *trial, int input, int place, struct err *err)
{
	const struct device_calls *calls = trial->device->calls;
	const struct staged_rows r = rows_of(trial, input, place);
	struct err ignored = {""};
	void *scratch = NULL;
	int rc;

	if (r.bytes == 0)
		return 0;
	if (r.outer * r.count > FEW_COPIES)
		scratch = calls->allocate(trial->device, r.outer * r.count * r.bytes, &ignored);
	if (scratch == NULL)
		return put_rows(trial, &r, trial->layout.offset[input], err);
	rc = put_ordered(trial, &r, trial->layout.offset[input], scratch, err);
	calls->release(trial->device, scratch);
	return rc;
}

int extra_rows_stage(struct trial *trial, struct err *err)
{
	const struct op_problem *problem = &trial->job->problem;
	int rc = 0;

	for (int i = 0; rc == 0 && i < problem->input_count; i++) {
		int place = place_of(&problem->inputs[i], trial->extra.rows_axis);

		if (place >= 0 && trial->extra.round.in[i].data != NULL)
			rc = stage_input(trial, i, place, err);
	}
	return rc;
}

void extra_rows_read(struct trial *trial, int item)
{
	const struct op_problem *problem = &trial->job->problem;
	struct extra *extra = &trial->extra;
	int axis = row_axis(trial, item / 2);

	for (int i = 0; i < problem->output_count; i++) {
		const struct tensor *all = &trial->round[CONTENTS_FIRST].first[i];
		int place = place_of(&problem->outputs[i], axis);

		if (place < 0 || all->elements == 0)
			continue;
		const struct row_order order = {all->shape[place], product(all->shape, place + 1, all->rank), extra->rows_alone};

		if (extra_output_distance(trial, i, &order) <= EXTRA_SAME_UNITS)
			continue;
		if (extra->mixed_rows == NULL)
			extra->mixed_rows =
			    arena_printf(&trial->arena,
					 extra->rows_alone ? "a row of '%s' depends on the other rows of the axis '%s'"
							   : "'%s' is not reversed if the inputs are reversed along the axis '%s'",
					 problem->outputs[i].name, problem->axes[axis].name);
		extra->rows[item / 2] = ROWS_MIXED;
		return;
	}
	if (extra->rows[item / 2] == ROWS_UNSEEN)
		extra->rows[item / 2] = ROWS_INDEPENDENT;
}

/* Returns the names of the axes with this result, such as "'n', 'batch'". Returns "" if there are none. */
static const char *axes_with(struct trial *trial, enum row_result result)
{
	const char *names = "";

	for (int i = 0; i < count_axes(trial); i++)
		if (trial->extra.rows[i] == result)
			names = arena_printf(&trial->arena, "%s%s'%s'", names, *names != '\0' ? ", " : "",
					     trial->job->problem.axes[row_axis(trial, i)].name);
	return names;
}

/* Adds the list of the tested axes to the check `rows`. */
static void list_axes(struct trial *trial)
{
	struct check *check = &trial->checks[TRIAL_CHECK_ROWS];
	struct check_axis *axes = arena_array(&trial->arena, ROW_AXES, sizeof *axes);

	for (int i = 0; i < count_axes(trial); i++)
		if (trial->extra.rows[i] != ROWS_UNSEEN)
			axes[check->axis_count++] = (struct check_axis){trial->job->problem.axes[row_axis(trial, i)].name,
									trial->extra.rows[i] == ROWS_INDEPENDENT};
	check->axes = axes;
}

void extra_rows_finish(struct trial *trial)
{
	struct extra *extra = &trial->extra;
	bool ran = extra->runs > 0;
	const char *free = ran ? axes_with(trial, ROWS_INDEPENDENT) : "", *mixed = ran ? axes_with(trial, ROWS_MIXED) : "";
	const char *sentence = "";

	if (*free == '\0' && *mixed == '\0') {
		trial_note_check(trial, TRIAL_CHECK_ROWS, CHECK_NOT_RUN,
				 extra->failures > 0 ? extra->failure
						     : "there is no var axis of inputs and outputs along which rows can be exchanged");
		return;
	}
	if (*free != '\0')
		sentence = arena_printf(&trial->arena,
					extra->failures == 0
					    ? "along %s, permuting the rows permutes the outputs, and each row gives "
					      "the same output alone as together with the other rows"
					    : "along %s, each row that the reference accepts alone gives the same "
					      "output as together with the other rows",
					free);
	if (*mixed != '\0')
		sentence = arena_printf(&trial->arena, "%s%s%s%s%s", extra->mixed_rows,
					strchr(mixed, ',') != NULL ? "; rows depend on each other along " : "",
					strchr(mixed, ',') != NULL ? mixed : "", *free != '\0' ? "; " : "", sentence);
	trial_note_check(trial, TRIAL_CHECK_ROWS, *mixed != '\0' ? CHECK_PROPERTY : CHECK_HOLDS, sentence);
	list_axes(trial);
}
