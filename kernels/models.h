/* models - published configurations of models, as far as a truth hangs on them: kernels/models.json, each value with
 * where it was read. It is part of the library, so a file that goes missing cannot change a verdict. */
#ifndef REFTEST_KERNELS_MODELS_H
#define REFTEST_KERNELS_MODELS_H

#include <stdbool.h>

/* A number of a model's configuration (`field`: "rms_norm_eps"), by the model's name in lower case as `model:` tags
 * have it. false: the table does not say. */
bool model_number(const char *model, const char *field, double *out);

#endif
