#include "dataset/verdict_fields.h"

#include <stddef.h>

const struct verdict_field verdict_fields[] = {
    {"elements", FIELD_INTEGER, offsetof(struct metrics, elements)},
    {"hits", FIELD_INTEGER, offsetof(struct metrics, hits)},
    {"nan_reference", FIELD_INTEGER, offsetof(struct metrics, nan_reference)},
    {"nan_ground_truth", FIELD_INTEGER, offsetof(struct metrics, nan_ground_truth)},
    {"inf_reference", FIELD_INTEGER, offsetof(struct metrics, inf_reference)},
    {"inf_ground_truth", FIELD_INTEGER, offsetof(struct metrics, inf_ground_truth)},
    {"max_abs", FIELD_NUMBER, offsetof(struct metrics, max_abs)},
    {"mean_abs", FIELD_NUMBER, offsetof(struct metrics, mean_abs)},
    {"max_rel", FIELD_NUMBER, offsetof(struct metrics, max_rel)},
    {"mean_rel", FIELD_NUMBER, offsetof(struct metrics, mean_rel)},
    {"cosine", FIELD_NUMBER, offsetof(struct metrics, cosine)},
    {"mse", FIELD_NUMBER, offsetof(struct metrics, mse)},
    {"margin", FIELD_NUMBER, offsetof(struct metrics, margin)},
    {"zeros_would_pass", FIELD_BOOL, offsetof(struct metrics, zeros_would_pass)},
    {"passed", FIELD_BOOL, offsetof(struct metrics, passed)},
    {NULL, FIELD_INTEGER, 0},
};
