/* witness - the fields of a fingerprint that describe with what a case was verified: the ground truth and its version,
 * the device class, and the versions of torch, CUDA and Python. */
#ifndef REFTEST_CACHE_WITNESS_H
#define REFTEST_CACHE_WITNESS_H

#include "cache/fingerprint.h"

/* Adds the fields of the witness. The arguments describe either the ground truth of a stored verdict, or the ground
 * truth with which a run would verify the case now. If an argument is NULL, its field is hashed as absent. If `python`
 * is NULL, there is no field for it, as in the verdicts of older versions of reftest. */
void witness_fields(const char *ground_truth, const char *ground_truth_version, const char *device_class,
                    const char *torch, const char *cuda, const char *python, struct arena *arena, struct fields *out);

/* Returns the witness of a verdict, which is the digest of its witness_fields. */
struct digest verdict_witness(const struct verdict *verdict);

#endif
