/* coverage - compares the definitions and cases of a run with the checklists of their op families
 * (kernels/core/coverage.h). An axis of a checklist is not an axis of a tensor, but a property in which references of
 * the family differ, such as the layout of the state. For each axis, the checklist lists the values that a dataset
 * should contain. The result says which of these values have a case, and which have none.
 *
 * The run must have parsed its definitions and made their cases (run_options.thorough); no case needs to run. Coverage
 * says which cases exist, not whether a reference passes them. */
#ifndef REFTEST_ENGINE_COVERAGE_H
#define REFTEST_ENGINE_COVERAGE_H

#include "engine/run_state.h"
#include "kernels/core/coverage.h"

/* For one value of an axis: the number of definitions that have a case with this value, and the number of such
 * cases. */
struct coverage_count {
	int definitions, cases;
};

struct covered_family {
	const struct op *op;
	int axis_count; /* the number of axes in the family's checklist, op->coverage */
	int definitions, cases;
	struct coverage_count (*counts)[COVERAGE_VALUES]; /* one row for each axis */
};

struct covered_definition {
	const struct result *result;
	int family; /* index into coverage.families; -1: no family has a ground truth for the definition */
	int cases;  /* the number of the definition's cases for which the family computes the ground truth */
	const unsigned *values; /* one element for each axis of the family; bit i is set if a case has value i of the
				 * axis */
};

/* A value of an axis for which no definition of the family has a case. */
struct coverage_hole {
	int family, axis, value;
};

struct coverage {
	const struct covered_family *families; /* all families that reftest has, sorted by name */
	int family_count;
	const struct covered_definition *definitions; /* in the order of the run's results */
	int definition_count;
	/* The values without a case, for all families that have at least one definition in this run. */
	const struct coverage_hole *holes;
	int hole_count;
	/* True if the run selects only some of the dataset's definitions. Cases of the other definitions may then have
	 * the values in `holes`. */
	bool selected;
};

/* Returns the coverage of a finished run, in `arena`. */
struct coverage coverage_of_run(const struct run *run, struct arena *arena);

/* Appends, for example, "no definition of gdn has D != Dv", or "no selected definition …". */
void coverage_hole_says(const struct coverage *coverage, const struct coverage_hole *hole, struct buf *out);

#endif
