/* described_inputs - makes values for the inputs of a definition without op family, according to the name and
 * description of each input. These values are, for example, indices below the length of the indexed axis,
 * non-decreasing pointers, lengths, permutations, masks, probabilities, positive numbers, cosines and sines, and rows
 * of different magnitudes. Other inputs get generic values (kernels/core/random_inputs.h). All these values are
 * guesses, which may be wrong. */
#ifndef REFTEST_WORKERS_JUDGE_DESCRIBED_INPUTS_H
#define REFTEST_WORKERS_JUDGE_DESCRIBED_INPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/core/op.h"

enum input_kind {
	INPUT_GENERIC,
	INPUT_POINTERS,	     /* integers that never decrease, from 0 to the length of an axis */
	INPUT_LENGTHS,	     /* integers from 1 to the length of an axis */
	INPUT_INDICES,	     /* integers from 0 to one less than the length of an axis */
	INPUT_PERMUTATION,   /* the integers from 0 to the number of elements - 1, each once */
	INPUT_MASK,	     /* the values false and true */
	INPUT_PROBABILITIES, /* rows of positive numbers with the sum 1 */
	INPUT_POSITIVE,	     /* numbers from 0.5 to 1.5 */
	INPUT_COSINES,	     /* the cosines of angles; another input of this shape has the sines of these angles */
	INPUT_SINES,
	INPUT_ROWS,	     /* generic values, with some small rows, some large rows, and some rows with one large
			      * element */
	INPUT_KINDS
};

struct described_input {
	enum input_kind kind;
	int axis; /* the axis that bounds the values; -1: none */
};

/* Returns the kind of an input. The kind is determined by a constraint such as `n == ptr[-1].item()` or `index.max() <
 * n`, or else by the input's name or description. `constraints` are the definition's constraints on tensor values. */
struct described_input described_input(const struct op_problem *problem, const char *const *constraints, int count, int input);
const char *input_kind_name(enum input_kind kind); /* returns a name such as "pointers" */

/* Returns the value of an input that is a Python scalar. The value of an integer that has the name of an axis is the
 * length of the axis. Other values are taken from a table of names. If the name is not in the table, the value is 1 for
 * floats and 0 for other types. `axis` has the lengths of the axes. */
double described_scalar(const struct op_problem *problem, const int64_t *axis, int input);

/* Returns whether a tensor with this number of elements gets generic values. Large tensors of the kind INPUT_ROWS get
 * generic values, too. */
bool described_input_is_generic(const struct described_input *described, int64_t elements);

/* Writes the values of a tensor in host memory. described_input_is_generic must be false for the tensor. */
void described_input_fill(const struct op_case *c, int input, const struct described_input *described,
			  struct tensor *out);

#endif
