/* published_models - looks up numbers in the published configurations of models, on which ground truths depend.
 * kernels/core/published_models.json states each value and its source; a new model is added only there. The table is
 * part of the library: no verdict can depend on whether the file is present at run time. */
#ifndef REFTEST_KERNELS_CORE_PUBLISHED_MODELS_H
#define REFTEST_KERNELS_CORE_PUBLISHED_MODELS_H

#include <stdbool.h>

/* Writes a number of a model's configuration (`field`: "rms_norm_eps"). `model` is the model's name in lower case, as
 * in `model:` tags. Returns false if the table does not contain the number. */
bool model_number(const char *model, const char *field, double *out);

#endif
