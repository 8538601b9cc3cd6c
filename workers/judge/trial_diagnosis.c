/* trial_diagnosis - describes a failure: finds a known mistake that explains the outputs (kernels/core/diagnosis.h),
 * finds the region in which they differ (kernels/core/miss_pattern.h), and draws a picture of the differences
 * (kernels/core/miss_map.h). If the reference passes, this module only records that it has passed. */
#include "workers/judge/trial_internal.h"

#include <stdlib.h>
#include <string.h>

/* A case with a larger job_bytes is not diagnosed. job_bytes counts each tensor at least three times. */
enum { DIAGNOSED_BYTES = 3 * (64 << 20) };
#define DIAGNOSIS_SECONDS 2.0 /* a diagnosis may use at most this many seconds of processor time */

/* Returns whether an output is compared element by element, and not by the family's own function. */
static bool is_compared(const struct trial *trial, const struct round *round, int output)
{
	return trial->op->judges == NULL || !trial->op->judges(&round->c, output);
}

/* Copies the inputs and outputs of one set of input values to the host. Returns false if the outputs were not compared
 * with builtin for this set, or on error. */
static bool read_set(struct trial *trial, struct round *round, struct arena *arena, struct diagnosis_set *set)
{
	const struct op_problem *problem = &trial->job->problem;
	struct rule *rules = arena_array(arena, (size_t)problem->output_count, sizeof *rules);
	struct err err = {""};
	int builtin = trial_builtin_at(trial);

	if (builtin < 0 || !round->answered[builtin] || trial_hold_inputs(trial, round) != 0)
		return false;
	for (int i = 0; i < problem->output_count; i++)
		rules[i] = trial_rule_for(trial, round, i, -1, -1);
	*set = (struct diagnosis_set){.c = &round->c,
				      .in = trial_on_host(trial, arena, round->in, problem->input_count, &err),
				      .found = trial_on_host(trial, arena, round->first, problem->output_count, &err),
				      .rules = rules};
	return set->in != NULL && set->found != NULL;
}

/* Writes a sentence about the region in which each output differs from the ground truth. */
static void find_regions(struct trial *trial, const struct round *round, const struct diagnosis_set *set,
			 const struct tensor *truth)
{
	const struct op_problem *problem = &trial->job->problem;

	for (int i = 0; i < problem->output_count; i++) {
		const struct op_arg *arg = &problem->outputs[i];
		const char *axes[OP_RANK], **regions;
		char text[512];

		for (int d = 0; d < arg->rank; d++)
			axes[d] = problem->axes[arg->axis[d]].name;
		if (!is_compared(trial, round, i) ||
		    !trial->context->kernels->api->miss_pattern(&set->found[i], &truth[i], set->rules[i], axes, text,
								sizeof text))
			continue;
		regions = arena_array(&trial->arena, (size_t)trial->verdict.region_count + 1, sizeof *regions);
		for (int k = 0; k < trial->verdict.region_count; k++)
			regions[k] = trial->verdict.regions[k];
		regions[trial->verdict.region_count++] =
		    arena_printf(&trial->arena, "output '%s' %s", arg->name, text);
		trial->verdict.regions = regions;
	}
}

/* Returns the character for a level in struct difference_map. */
static char letter(int level)
{
	return (char)(level < 10 ? '0' + level : 'a' + level - 10);
}

static const char *const *heat_of(const struct miss_map *map, struct arena *arena)
{
	const char **rows = arena_array(arena, (size_t)map->rows, sizeof *rows);

	for (int r = 0; r < map->rows; r++) {
		char *row = arena_array(arena, (size_t)map->columns + 1, 1);

		for (int c = 0; c < map->columns; c++)
			row[c] = letter(map->level[r][c]);
		rows[r] = row;
	}
	return rows;
}

static void add_difference(struct trial *trial, const struct op_arg *arg, const struct tensor *found,
			   const struct miss_map *map, struct difference_map *out)
{
	const struct op_problem *problem = &trial->job->problem;

	*out = (struct difference_map){.output = arg->name, .row_length = 1, .column_length = 1, .rows = map->rows};
	if (map->row_axis >= 0) {
		out->row_axis = problem->axes[arg->axis[map->row_axis]].name;
		out->row_length = found->shape[map->row_axis];
	}
	if (map->column_axis >= 0) {
		out->column_axis = problem->axes[arg->axis[map->column_axis]].name;
		out->column_length = found->shape[map->column_axis];
	}
	out->heat = heat_of(map, &trial->arena);
	memcpy(out->histogram, map->histogram, sizeof out->histogram);
}

_Static_assert((int)DIFFERENCE_LEVELS == (int)MISS_LEVELS && (int)DIFFERENCE_SIDE == (int)MISS_SIDE,
	       "a verdict has the whole map");

static void draw_differences(struct trial *trial, const struct round *round, const struct diagnosis_set *set,
			     const struct tensor *truth)
{
	const struct op_problem *problem = &trial->job->problem;
	struct difference_map *list = arena_array(&trial->arena, (size_t)problem->output_count, sizeof *list);

	for (int i = 0; i < problem->output_count; i++) {
		struct miss_map map;

		if (is_compared(trial, round, i) &&
		    trial->context->kernels->api->miss_map(&set->found[i], &truth[i], set->rules[i], &map))
			add_difference(trial, &problem->outputs[i], &set->found[i], &map,
				       &list[trial->verdict.difference_count++]);
	}
	trial->verdict.differences = list;
}

/* Describes and draws where the outputs differ. Uses the first set of input values for which the outputs differ. */
static void locate(struct trial *trial, const struct diagnosis_set *sets, struct arena *arena)
{
	int missed = trial->round[0].missed != REASON_NONE ? 0 : 1;
	const struct round *round = &trial->round[missed];
	struct err err = {""};
	const struct tensor *truth = trial_on_host(trial, arena, round->truth[trial_builtin_at(trial)],
						   trial->job->problem.output_count, &err);

	if (truth == NULL)
		return;
	find_regions(trial, round, &sets[missed], truth);
	draw_differences(trial, round, &sets[missed], truth);
}

static void find_mistakes(struct trial *trial, const struct diagnosis_set *sets)
{
	struct diagnosis *diagnosis = &trial->context->diagnosis;
	const char **list = arena_array(&trial->arena, DIAGNOSIS_MOST, sizeof *list);

	trial->context->kernels->api->diagnose(trial->op, sets, trial->rounds, DIAGNOSIS_SECONDS, diagnosis);
	trial->verdict.diagnosed = diagnosis->complete;
	for (int i = 0; i < diagnosis->count && i < DIAGNOSIS_MOST; i++)
		list[trial->verdict.diagnosis_count++] = arena_string(&trial->arena, diagnosis->says[i]);
	trial->verdict.diagnosis = list;
}

static void note_passed(struct trial *trial)
{
	const struct op_case *sets[CONTENTS_COUNT];

	for (int r = 0; r < trial->rounds; r++)
		sets[r] = &trial->round[r].c;
	trial->context->kernels->api->note_passed(&trial->context->diagnosis, sets, trial->rounds);
}

void trial_diagnose(struct trial *trial)
{
	struct diagnosis_set sets[CONTENTS_COUNT];
	struct arena arena = {0};
	bool whole = true;

	if (trial->job == NULL || trial->job->no_diagnosis || trial->op == NULL || trial->job->asks == JOB_GRADIENTS)
		return;
	if (trial->verdict.status == STATUS_PASSED && trial->rounds > 0 && trial_builtin_at(trial) >= 0)
		note_passed(trial);
	if (trial->verdict.status != STATUS_FAILED || trial->op->roles == NULL || job_bytes(trial->job) > DIAGNOSED_BYTES ||
	    (trial->verdict.reason != REASON_NUMERIC && trial->verdict.reason != REASON_NONFINITE))
		return;
	for (int r = 0; r < trial->rounds && whole; r++)
		whole = read_set(trial, &trial->round[r], &arena, &sets[r]);
	if (whole) {
		locate(trial, sets, &arena);
		find_mistakes(trial, sets);
	}
	arena_free(&arena);
}
