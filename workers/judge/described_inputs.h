/* described_inputs - values for an input of a definition of no op family, by what its name and description say: an index
 * below the length of the axis that it indexes, non-decreasing pointers, lengths, masks, probabilities, positive numbers,
 * cosines and sines. Other inputs get generic values (kernels/core/random_inputs.h). The values are a guess: the input may
 * be something else. */
#ifndef REFTEST_WORKERS_JUDGE_DESCRIBED_INPUTS_H
#define REFTEST_WORKERS_JUDGE_DESCRIBED_INPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/core/op.h"

enum input_kind {
	INPUT_GENERIC,
	INPUT_POINTERS,	     /* from 0 to the length of an axis, never decreasing */
	INPUT_LENGTHS,	     /* 1 … the length of an axis */
	INPUT_INDICES,	     /* 0 … the length of an axis - 1 */
	INPUT_MASK,	     /* false and true */
	INPUT_PROBABILITIES, /* rows of positive numbers with the sum 1 */
	INPUT_POSITIVE,	     /* 0.5 … 1.5 */
	INPUT_COSINES,	     /* of the same angles as the sines of another input of this shape */
	INPUT_SINES,
	INPUT_KINDS
};

struct described_input {
	enum input_kind kind;
	int axis; /* the axis that bounds the values; -1: none */
};

struct described_input described_input(const struct op_problem *problem, int input);
const char *input_kind_name(enum input_kind kind); /* "pointers" */

/* Writes the values of a tensor in host memory. `kind` must not be INPUT_GENERIC. */
void described_input_fill(const struct op_case *c, int input, const struct described_input *described,
			  struct tensor *out);

#endif
