/* family_candidates - lists the op families that may compute the operation of a definition, and thus its ground truth.
 *
 * A family that lists the op_type of the definition and matches the shapes of the definition is the only candidate. If
 * there is no such family, for example because the op_type is empty or unknown, each family that matches the shapes is
 * a candidate. The caller tries these candidates in order, and accepts one only if the reference agrees with it on
 * every case. */
#ifndef REFTEST_KERNELS_CORE_FAMILY_CANDIDATES_H
#define REFTEST_KERNELS_CORE_FAMILY_CANDIDATES_H

#include "base/err.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why a family is a candidate. BY_TYPE: the family lists the definition's op_type. BY_WORDS: the definition's name,
 * fi_api tag or description names the family (op.words). BY_SHAPES: only the shapes match. If a reference disagrees
 * with a candidate BY_TYPE or BY_WORDS, the reference is wrong. If a reference disagrees with a candidate BY_SHAPES,
 * the reference computes another operation than this family. */
enum op_matched { MATCHED_BY_TYPE, MATCHED_BY_WORDS, MATCHED_BY_SHAPES };

struct op_candidate {
	const struct op_entry *entry;
	/* The op_type with which `entry` matches the problem (not owned). If `matched` is MATCHED_BY_TYPE, it is the
	 * op_type of the problem. */
	const char *op_type;
	int variant;
	enum op_matched matched;
};

enum { CANDIDATES_MAX = 16 };

/* Writes the candidates of a problem to `out`, in the order in which they are tried, and returns their number. `out`
 * has room for CANDIDATES_MAX candidates. All candidates have the same value of `matched`. If no family is a candidate,
 * returns 0 and writes a sentence that gives the reasons to `why`; `why` may be NULL. */
int op_candidates(const struct op_problem *problem, struct op_candidate *out, struct err *why);

#ifdef __cplusplus
}
#endif
#endif
