/* published_models - looks up the published configurations of models. models/models.json states each value and its
 * source. To add a model, change only that file. The build embeds models.json in the library, so that verdicts do not
 * depend on a file that is read at run time. */
#ifndef REFTEST_KERNELS_CORE_PUBLISHED_MODELS_H
#define REFTEST_KERNELS_CORE_PUBLISHED_MODELS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes a number of a model's configuration. `field` is the name of the number, such as "rms_norm_eps". `model` is the
 * model's name, as in `model:` tags, or one of its aliases. Case is ignored, and so is the part of the name up to the
 * last '/'. Returns false if models.json does not contain the number. */
bool model_number(const char *model, const char *field, double *out);

/* The epsilon of RMS norms has different names in the configurations of different models. Returns one of these names:
 * name 0 is "rms_norm_eps". Returns NULL if `number` is larger than the number of the last name. */
const char *rms_norm_field(int number);

/* Returns the next row of models.json that belongs to the model with the name or alias `model`. The row is a JSON
 * object, and is not NUL-terminated. To get the first row, pass NULL as `after`; then pass the row that the last call
 * returned. A model may have several rows, because its fields come from several sources. Returns NULL after the last
 * row, and for an unknown model. */
const char *model_row(const char *model, const char *after, size_t *length);

/* Returns the row that follows the row `after` in models.json, for any model, or NULL after the last row. */
const char *next_model_row(const char *after, size_t *length);

#endif
