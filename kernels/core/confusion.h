/* confusion - the changes to a case, its inputs and its outputs of which the tables op.confusions consist.
 *
 * A role is named as in op.roles; the name of an input or output of the definition is also accepted. Tensors are copied
 * before they are changed. Changed floats are in float64, so that a change is not rounded; outputs of floats are in
 * float64 until all changes are made. A function returns false if the case has no tensor of the role, or none of the
 * form that the change needs. */
#ifndef REFTEST_KERNELS_CORE_CONFUSION_H
#define REFTEST_KERNELS_CORE_CONFUSION_H

#include "kernels/core/op.h"
#include "kernels/core/roles.h"

/* A case with a mistake. */
struct op_variation {
	const struct op *op;
	struct op_names names;
	struct op_case c;
	struct tensor in[OP_ARGS], out[OP_PLACES];
	/* The case, the inputs and the right outputs of the first set of input values, for mistakes that keep values between
	 * calls. NULL: this is the first set. */
	const struct op_case *first_case;
	const struct tensor *first_in, *first_out;
	/* A change sets this if a narrower mistake would change these inputs in the same way. The mistake is then not told by
	 * them, and not refuted. */
	bool vague;
	bool unchanged; /* the last change of the elements of an input left all of them as they were */
	void **memory; /* of the changed tensors, owned */
	int memory_count;
};

struct op_variation variation_open(const struct op *op, const struct op_case *c, const struct tensor *in);
void variation_close(struct op_variation *v);
/* Runs the changes and the oracle. Returns false if there is nothing to change, or if the oracle refuses the inputs.
 * `right` has the outputs without a change, as a variation has them: a mistake that changes outputs alone, or no element
 * of an input, begins with copies of them. NULL: the oracle runs for each mistake. */
bool variation_run(struct op_variation *v, const struct op_confusion *confusion, const struct tensor *right);

/* Return the index of the input or output of a role, or -1. */
int variation_input(const struct op_variation *v, const char *role);
int variation_output(const struct op_variation *v, const char *role);
/* Returns input `at` as a private copy, or NULL if it has no data. */
struct tensor *variation_change(struct op_variation *v, int at);

/* Before the oracle. `role` is an input. */
bool before_scale(struct op_variation *v, const struct op_confusion *confusion); /* elements, or a scalar, times `by` */
bool before_add(struct op_variation *v, const struct op_confusion *confusion);   /* plus `by` */
bool before_set(struct op_variation *v, const struct op_confusion *confusion);   /* all elements, or a scalar, are `by` */
bool before_clamp(struct op_variation *v, const struct op_confusion *confusion); /* limited to -by … by */
bool before_most(struct op_variation *v, const struct op_confusion *confusion);  /* limited to at most `by` */
bool before_least(struct op_variation *v, const struct op_confusion *confusion); /* limited to at least `by` */
/* A limit of a scalar is vague if rounding to an integer gives the same. */
bool before_round(struct op_variation *v, const struct op_confusion *confusion); /* rounded to the dtype (enum dtype) by */
bool before_wrap(struct op_variation *v, const struct op_confusion *confusion);  /* modulo `by`: kept in too few bits */
bool before_not(struct op_variation *v, const struct op_confusion *confusion);   /* 1 where it is 0, 0 elsewhere */
bool before_exp(struct op_variation *v, const struct op_confusion *confusion);
bool before_log(struct op_variation *v, const struct op_confusion *confusion);
bool before_copy(struct op_variation *v, const struct op_confusion *confusion);  /* the elements of `other` */
bool before_swap(struct op_variation *v, const struct op_confusion *confusion);  /* exchanged with `other` */
/* Along axis `by` (below 0: from the last): reversed, the next element's, the first element's, the last element's, the
 * halves exchanged. */
bool before_flip(struct op_variation *v, const struct op_confusion *confusion);
bool before_next(struct op_variation *v, const struct op_confusion *confusion);
bool before_previous(struct op_variation *v, const struct op_confusion *confusion);
bool before_first(struct op_variation *v, const struct op_confusion *confusion);
bool before_last(struct op_variation *v, const struct op_confusion *confusion);
bool before_halves(struct op_variation *v, const struct op_confusion *confusion);
bool before_transpose(struct op_variation *v, const struct op_confusion *confusion); /* the last two axes, if equally long */
bool before_constant(struct op_variation *v, const struct op_confusion *confusion); /* the hidden constant `role` is `by` */
bool before_kept(struct op_variation *v, const struct op_confusion *confusion);     /* has its value of the first set */
/* Elements below `by` in magnitude are 0. */
bool before_flush(struct op_variation *v, const struct op_confusion *confusion);
/* The scalar `role` is 1 / sqrt of the last axis of `other`. Values of 0 and 1, which people take
 * for none, are vague. */
bool before_root_scale(struct op_variation *v, const struct op_confusion *confusion);
bool variation_scale(struct op_variation *v, const char *role, double scale); /* the same with this value */
bool before_variant(struct op_variation *v, const struct op_confusion *confusion); /* the variant's flags `by` are reversed */
bool before_iota(struct op_variation *v, const struct op_confusion *confusion);    /* the elements are 0, 1, 2, … */
/* With after_tile: query head h reads head h modulo the number of heads of `other`, not its own group's. Heads are axis 1
 * of `role` and of the outputs, and the last axis but one of `other`. */
bool before_tile(struct op_variation *v, const struct op_confusion *confusion);

/* After the oracle. `role` is an output; NULL: all outputs, for scale, add, set, clamp, most, round and log. */
bool after_scale(struct op_variation *v, const struct op_confusion *confusion);
bool after_add(struct op_variation *v, const struct op_confusion *confusion);
bool after_set(struct op_variation *v, const struct op_confusion *confusion);
bool after_clamp(struct op_variation *v, const struct op_confusion *confusion);
bool after_most(struct op_variation *v, const struct op_confusion *confusion);
bool after_round(struct op_variation *v, const struct op_confusion *confusion);
bool after_log(struct op_variation *v, const struct op_confusion *confusion);
bool after_input(struct op_variation *v, const struct op_confusion *confusion);     /* a copy of input `other` */
bool after_add_input(struct op_variation *v, const struct op_confusion *confusion); /* plus input `other` */
bool after_kept(struct op_variation *v, const struct op_confusion *confusion);      /* that of the first set */
bool after_swap(struct op_variation *v, const struct op_confusion *confusion);
bool after_flip(struct op_variation *v, const struct op_confusion *confusion);
bool after_next(struct op_variation *v, const struct op_confusion *confusion);
bool after_previous(struct op_variation *v, const struct op_confusion *confusion);
bool after_first(struct op_variation *v, const struct op_confusion *confusion);
bool after_halves(struct op_variation *v, const struct op_confusion *confusion);
bool after_neighbours(struct op_variation *v, const struct op_confusion *confusion); /* elements 2 i and 2 i + 1 are exchanged */
bool after_transpose(struct op_variation *v, const struct op_confusion *confusion);
bool after_tile(struct op_variation *v, const struct op_confusion *confusion);
/* `role` has a row of axis 0 for each slot, and `other` has the slots of sequences. Rows that are no sequence's are
 * 0. */
bool after_clear_others(struct op_variation *v, const struct op_confusion *confusion);
/* The same; the new row of a sequence is not in its slot, which keeps what the input "state" has, but, with `by` 0, in
 * the row of the sequence's number, and with `by` 1, in the row after its slot. */
bool after_places(struct op_variation *v, const struct op_confusion *confusion);
bool after_infinity(struct op_variation *v, const struct op_confusion *confusion); /* infinite elements are `by` */

#endif
