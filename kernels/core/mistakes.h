/* mistakes - the functions that the tables op.mistakes use to change a case, its inputs or its outputs.
 *
 * Roles are strings: op_mistake.role, op_mistake.other and parameters named `role` contain the name of a role in
 * op.roles, or the name of an input or output of the definition. Tensors are copied before they are changed. A changed
 * float tensor becomes float64, so that the change is not rounded. Float outputs remain float64 until all changes are
 * made. A function returns false if the case has no tensor of the role, or if the change is not possible for the
 * tensor. */
#ifndef REFTEST_KERNELS_CORE_MISTAKES_H
#define REFTEST_KERNELS_CORE_MISTAKES_H

#include "kernels/core/op.h"
#include "kernels/core/roles.h"

/* A case with a mistake. */
struct op_variation {
	const struct op *op;
	struct op_names names;
	struct op_case c;
	struct tensor in[OP_ARGS], out[OP_PLACES];
	/* The case, the inputs and the correct outputs of the first set of input values, for mistakes that keep values
	 * between calls. NULL if this variation is of the first set. */
	const struct op_case *first_case;
	const struct tensor *first_in, *first_out;
	/* True if a narrower mistake would change these inputs in the same way as this mistake. Outputs that agree with
	 * this mistake are then no evidence for it. */
	bool vague;
	bool unchanged; /* whether the most recent change of an input changed none of its elements */
	void **memory; /* the memory of the changed tensors, owned */
	int memory_count;
};

struct op_variation variation_open(const struct op *op, const struct op_case *c, const struct tensor *in);
void variation_close(struct op_variation *v);
/* Calls op_mistake.before, the oracle and op_mistake.after. Returns false if there is nothing to change, or if op.check
 * (op_mistake.checked) or the oracle rejects the changed inputs. `right` contains the correct outputs; its float
 * tensors are float64. If the mistake changes only outputs, it changes a copy of `right`. If `right` is NULL, it
 * changes the outputs that the oracle computes. */
bool variation_run(struct op_variation *v, const struct op_mistake *mistake, const struct tensor *right);

/* Return the index of the input or output that has the role `role`, or -1. */
int variation_input(const struct op_variation *v, const char *role);
int variation_output(const struct op_variation *v, const char *role);
/* Replaces input `at` by a private copy, and returns the copy. Returns NULL if the input has no data. */
struct tensor *variation_change(struct op_variation *v, int at);

/* These functions change the case before the oracle runs. op_mistake.role names an input, and each comment says what
 * the function does to this input. */

/* Multiplies the elements, or the Python scalar, by op_mistake.by. */
bool before_scale(struct op_variation *v, const struct op_mistake *mistake);
/* Adds op_mistake.by to the elements, or to the Python scalar. */
bool before_add(struct op_variation *v, const struct op_mistake *mistake);
/* Sets all elements, or the Python scalar, to op_mistake.by. */
bool before_set(struct op_variation *v, const struct op_mistake *mistake);
/* Limits the elements to the range from -op_mistake.by to op_mistake.by. */
bool before_clamp(struct op_variation *v, const struct op_mistake *mistake);
/* Limits the elements to at most op_mistake.by. */
bool before_most(struct op_variation *v, const struct op_mistake *mistake);
/* Limits the elements to at least op_mistake.by. */
bool before_least(struct op_variation *v, const struct op_mistake *mistake);
/* Rounds the elements to the dtype op_mistake.by. */
bool before_round(struct op_variation *v, const struct op_mistake *mistake);
/* Replaces each element by its remainder modulo op_mistake.by, as if the elements had too few bits. */
bool before_wrap(struct op_variation *v, const struct op_mistake *mistake);
/* Replaces 0 by 1, and every other value by 0. */
bool before_not(struct op_variation *v, const struct op_mistake *mistake);
bool before_exp(struct op_variation *v, const struct op_mistake *mistake);
bool before_log(struct op_variation *v, const struct op_mistake *mistake);
/* Replaces the input by a copy of the input that op_mistake.other names. */
bool before_copy(struct op_variation *v, const struct op_mistake *mistake);
/* Exchanges the input with the input that op_mistake.other names. */
bool before_swap(struct op_variation *v, const struct op_mistake *mistake);
/* These functions change the elements along axis op_mistake.by (a negative axis counts from the last). before_flip
 * reverses the axis. before_next, before_previous, before_first and before_last replace each element by the next,
 * previous, first or last element along the axis. before_halves exchanges the two halves of the axis. */
bool before_flip(struct op_variation *v, const struct op_mistake *mistake);
bool before_next(struct op_variation *v, const struct op_mistake *mistake);
bool before_previous(struct op_variation *v, const struct op_mistake *mistake);
bool before_first(struct op_variation *v, const struct op_mistake *mistake);
bool before_last(struct op_variation *v, const struct op_mistake *mistake);
bool before_halves(struct op_variation *v, const struct op_mistake *mistake);
bool before_transpose(struct op_variation *v, const struct op_mistake *mistake); /* the last two axes are transposed, if
										  * they have equal lengths */
/* Sets the constant that op_mistake.role names to op_mistake.by. */
bool before_constant(struct op_variation *v, const struct op_mistake *mistake);
/* Replaces the input by its values in the first set of input values. */
bool before_kept(struct op_variation *v, const struct op_mistake *mistake);
/* Sets elements to 0 if their magnitude is below op_mistake.by. */
bool before_flush(struct op_variation *v, const struct op_mistake *mistake);
/* Sets the scalar to 1 / sqrt(n), where n is the length of the last axis of the input that op_mistake.other names. If
 * the scalar was 0 or 1, the change is vague, because many references treat these values as an omitted scale. */
bool before_root_scale(struct op_variation *v, const struct op_mistake *mistake);
bool variation_scale(struct op_variation *v, const char *role, double scale); /* the scalar becomes `scale` */
/* Toggles the bits of op_case.variant that are set in op_mistake.by. */
bool before_variant(struct op_variation *v, const struct op_mistake *mistake);
bool before_iota(struct op_variation *v, const struct op_mistake *mistake); /* the elements are 0, 1, 2, … */
/* For use together with after_tile. The mistake: query head h reads head h % n of the keys instead of the head of its
 * group, where n is the number of heads of the keys. op_mistake.role names the queries, and op_mistake.other names the
 * keys. The heads are axis 1 of the queries and of the outputs, and the second-to-last axis of the keys. */
bool before_tile(struct op_variation *v, const struct op_mistake *mistake);

/* These functions change outputs after the oracle has run. op_mistake.role names an output; for the functions from
 * after_scale to after_log, NULL stands for all outputs. */
bool after_scale(struct op_variation *v, const struct op_mistake *mistake);
bool after_add(struct op_variation *v, const struct op_mistake *mistake);
bool after_set(struct op_variation *v, const struct op_mistake *mistake);
bool after_clamp(struct op_variation *v, const struct op_mistake *mistake);
bool after_most(struct op_variation *v, const struct op_mistake *mistake);
bool after_round(struct op_variation *v, const struct op_mistake *mistake);
bool after_log(struct op_variation *v, const struct op_mistake *mistake);
/* Replaces the output by a copy of the input that op_mistake.other names. */
bool after_input(struct op_variation *v, const struct op_mistake *mistake);
/* Adds the input that op_mistake.other names to the output. */
bool after_add_input(struct op_variation *v, const struct op_mistake *mistake);
/* Replaces the output by the output for the first set of input values. */
bool after_kept(struct op_variation *v, const struct op_mistake *mistake);
bool after_swap(struct op_variation *v, const struct op_mistake *mistake);
bool after_flip(struct op_variation *v, const struct op_mistake *mistake);
bool after_next(struct op_variation *v, const struct op_mistake *mistake);
bool after_previous(struct op_variation *v, const struct op_mistake *mistake);
bool after_first(struct op_variation *v, const struct op_mistake *mistake);
bool after_halves(struct op_variation *v, const struct op_mistake *mistake);
bool after_neighbours(struct op_variation *v, const struct op_mistake *mistake); /* elements 2 i and 2 i + 1 are exchanged */
bool after_transpose(struct op_variation *v, const struct op_mistake *mistake);
bool after_tile(struct op_variation *v, const struct op_mistake *mistake);
/* op_mistake.role names an output with one row for each slot (axis 0), and op_mistake.other names an input that
 * contains the slot of each sequence. Rows of slots that no sequence uses become 0. */
bool after_clear_others(struct op_variation *v, const struct op_mistake *mistake);
/* Writes the new row of each sequence to a wrong row: if op_mistake.by is 0, the row whose index is the number of the
 * sequence; if it is 1, the row after the sequence's slot. All other rows have the values of the input "state".
 * op_mistake.role and op_mistake.other are as in after_clear_others. */
bool after_places(struct op_variation *v, const struct op_mistake *mistake);
bool after_infinity(struct op_variation *v, const struct op_mistake *mistake); /* sets infinite elements to `by` */

#endif
