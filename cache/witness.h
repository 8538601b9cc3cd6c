/* witness - the fields of a fingerprint that describe what a case was verified with: the ground truth and its version,
 * the device class, and the versions of torch, CUDA and Python. */
#ifndef REFTEST_CACHE_WITNESS_H
#define REFTEST_CACHE_WITNESS_H

#include "cache/fingerprint.h"

/* Adds the fields of the witness. The arguments describe either the ground truth of a stored verdict, or the ground
 * truth with which a run would verify the case now. If an argument other than `python` is NULL, its field contains the
 * text "(none)". If `python` is NULL, no field is added for it, because the verdicts of older versions of reftest have
 * no such field. */
void witness_fields(const char *ground_truth, const char *ground_truth_version, const char *device_class,
                    const char *torch, const char *cuda, const char *python, struct arena *arena, struct fields *out);

/* Returns the witness of a verdict, which is the digest of its witness_fields. */
struct digest verdict_witness(const struct verdict *verdict);

#endif
