/* family_candidates - lists the op families that may have the ground truth of a definition.
 *
 * A family that lists the op_type of the definition and matches its shapes is the only candidate. A definition whose
 * op_type is empty or unknown, or whose op_type only names families that do not match, is offered to every family: each
 * family that matches its shapes is a candidate. The caller then tries the candidates in order. Such a candidate counts
 * only if the reference agrees with it on every case. */
#ifndef REFTEST_KERNELS_CORE_FAMILY_CANDIDATES_H
#define REFTEST_KERNELS_CORE_FAMILY_CANDIDATES_H

#include "base/err.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why a family is a candidate: it lists the definition's op_type; the name, the fi_api tag or the description of the
 * definition names it (op.words); or only the shapes match. A reference that disagrees with a candidate of the first
 * two kinds is wrong. A reference that disagrees with a candidate of the last kind computes another operation. */
enum op_matched { MATCHED_BY_TYPE, MATCHED_BY_WORDS, MATCHED_BY_SHAPES };

struct op_candidate {
	const struct op_entry *entry;
	const char *op_type; /* the op_type with which `entry` matches the problem, not owned; equals the problem's
			      * op_type if `matched` is MATCHED_BY_TYPE */
	int variant;
	enum op_matched matched;
};

enum { CANDIDATES_MAX = 16 };

/* Writes the candidates of a problem to `out`, which has room for CANDIDATES_MAX, in the order in which they are tried,
 * and returns their number. All of them have the same value of `matched`. If there is none, returns 0 and writes a
 * sentence with the reasons to `why`. `why` may be NULL. */
int op_candidates(const struct op_problem *problem, struct op_candidate *out, struct err *why);

#ifdef __cplusplus
}
#endif
#endif
