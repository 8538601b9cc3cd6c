/* mistakes - the functions that the tables op.mistakes use to change a case, its inputs or its outputs.
 *
 * A parameter `role` is the name of a role in op.roles, or the name of an input or output of the definition. Tensors
 * are copied before they are changed. A changed float tensor becomes float64, so that the change is not rounded. Float
 * outputs remain float64 until all changes are made. A function returns false if the case has no tensor of the role, or
 * if the tensor does not have the form that the change needs. */
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
	/* Case, inputs and correct outputs of the first set of input values, for mistakes that keep values between
	 * calls. NULL: this variation is of the first set. */
	const struct op_case *first_case;
	const struct tensor *first_in, *first_out;
	/* A change sets `vague` if a narrower mistake would change these inputs in the same way. These inputs then neither
	 * confirm the mistake nor refute it. */
	bool vague;
	bool unchanged; /* the last change of the elements of an input left all of them as they were */
	void **memory; /* memory of the changed tensors, owned */
	int memory_count;
};

struct op_variation variation_open(const struct op *op, const struct op_case *c, const struct tensor *in);
void variation_close(struct op_variation *v);
/* Runs the changes and the oracle. Returns false if there is nothing to change, or if the oracle refuses the inputs.
 * `right` has the correct outputs, with floats as float64. If a mistake changes no input, its outputs are copied from
 * `right` before they are changed. If `right` is NULL, the oracle computes the correct outputs. */
bool variation_run(struct op_variation *v, const struct op_mistake *mistake, const struct tensor *right);

/* Return the index of the input or output of a role, or -1. */
int variation_input(const struct op_variation *v, const char *role);
int variation_output(const struct op_variation *v, const char *role);
/* Returns input `at` as a private copy, or NULL if it has no data. */
struct tensor *variation_change(struct op_variation *v, int at);

/* These functions change the case before the oracle runs; `role` is an input. */
bool before_scale(struct op_variation *v, const struct op_mistake *mistake); /* elements, or a scalar, times `by` */
bool before_add(struct op_variation *v, const struct op_mistake *mistake);   /* plus `by` */
bool before_set(struct op_variation *v, const struct op_mistake *mistake);   /* all elements, or a scalar, are `by` */
bool before_clamp(struct op_variation *v, const struct op_mistake *mistake); /* limited to -by … by */
bool before_most(struct op_variation *v, const struct op_mistake *mistake);  /* limited to at most `by` */
bool before_least(struct op_variation *v, const struct op_mistake *mistake); /* limited to at least `by` */
bool before_round(struct op_variation *v, const struct op_mistake *mistake); /* rounded to the dtype `by` */
bool before_wrap(struct op_variation *v, const struct op_mistake *mistake);  /* modulo `by`, as in too few bits */
bool before_not(struct op_variation *v, const struct op_mistake *mistake);   /* 1 where it is 0, 0 elsewhere */
bool before_exp(struct op_variation *v, const struct op_mistake *mistake);
bool before_log(struct op_variation *v, const struct op_mistake *mistake);
bool before_copy(struct op_variation *v, const struct op_mistake *mistake);  /* the elements of `other` */
bool before_swap(struct op_variation *v, const struct op_mistake *mistake);  /* exchanged with `other` */
/* Change the elements along axis `by` (a negative axis counts from the last). flip reverses the axis. next, previous,
 * first and last replace each element with that element of the axis. halves exchanges the two halves of the axis. */
bool before_flip(struct op_variation *v, const struct op_mistake *mistake);
bool before_next(struct op_variation *v, const struct op_mistake *mistake);
bool before_previous(struct op_variation *v, const struct op_mistake *mistake);
bool before_first(struct op_variation *v, const struct op_mistake *mistake);
bool before_last(struct op_variation *v, const struct op_mistake *mistake);
bool before_halves(struct op_variation *v, const struct op_mistake *mistake);
bool before_transpose(struct op_variation *v, const struct op_mistake *mistake); /* the last two axes, if equally long */
bool before_constant(struct op_variation *v, const struct op_mistake *mistake); /* hidden constant `role` := `by` */
bool before_kept(struct op_variation *v, const struct op_mistake *mistake);     /* the input of the first set */
/* Elements below `by` in magnitude are 0. */
bool before_flush(struct op_variation *v, const struct op_mistake *mistake);
/* The scalar `role` becomes 1 / sqrt of the last axis of `other`. If the scalar was 0 or 1, the change is vague,
 * because many references take these values for an omitted scale. */
bool before_root_scale(struct op_variation *v, const struct op_mistake *mistake);
bool variation_scale(struct op_variation *v, const char *role, double scale); /* the scalar becomes `scale` */
bool before_variant(struct op_variation *v, const struct op_mistake *mistake); /* toggles the flags `by` */
bool before_iota(struct op_variation *v, const struct op_mistake *mistake);    /* the elements are 0, 1, 2, … */
/* Used together with after_tile: query head h does not read the head of its group, but the head of `other` whose number
 * is h modulo the number of heads in `other`. Heads are axis 1 of `role` and of the outputs, and the last axis but one
 * of `other`. */
bool before_tile(struct op_variation *v, const struct op_mistake *mistake);

/* These functions change outputs after the oracle ran; `role` is an output. From after_scale to after_log, a NULL in
 * place of `role` means all outputs. */
bool after_scale(struct op_variation *v, const struct op_mistake *mistake);
bool after_add(struct op_variation *v, const struct op_mistake *mistake);
bool after_set(struct op_variation *v, const struct op_mistake *mistake);
bool after_clamp(struct op_variation *v, const struct op_mistake *mistake);
bool after_most(struct op_variation *v, const struct op_mistake *mistake);
bool after_round(struct op_variation *v, const struct op_mistake *mistake);
bool after_log(struct op_variation *v, const struct op_mistake *mistake);
bool after_input(struct op_variation *v, const struct op_mistake *mistake);     /* a copy of input `other` */
bool after_add_input(struct op_variation *v, const struct op_mistake *mistake); /* plus input `other` */
bool after_kept(struct op_variation *v, const struct op_mistake *mistake);      /* the output of the first set */
bool after_swap(struct op_variation *v, const struct op_mistake *mistake);
bool after_flip(struct op_variation *v, const struct op_mistake *mistake);
bool after_next(struct op_variation *v, const struct op_mistake *mistake);
bool after_previous(struct op_variation *v, const struct op_mistake *mistake);
bool after_first(struct op_variation *v, const struct op_mistake *mistake);
bool after_halves(struct op_variation *v, const struct op_mistake *mistake);
bool after_neighbours(struct op_variation *v, const struct op_mistake *mistake); /* elements 2 i and 2 i + 1 are exchanged */
bool after_transpose(struct op_variation *v, const struct op_mistake *mistake);
bool after_tile(struct op_variation *v, const struct op_mistake *mistake);
/* `role` has one row of axis 0 for each slot, and `other` has the slot of each sequence. Rows of slots that no sequence
 * uses become 0. */
bool after_clear_others(struct op_variation *v, const struct op_mistake *mistake);
/* Writes the new row of each sequence to a wrong row: if `by` is 0, to the row with the sequence's number; if `by` is
 * 1, to the row after the sequence's slot. All other rows have the values of the input "state". `role` and `other` are
 * as for after_clear_others. */
bool after_places(struct op_variation *v, const struct op_mistake *mistake);
bool after_infinity(struct op_variation *v, const struct op_mistake *mistake); /* infinite elements are `by` */

#endif
