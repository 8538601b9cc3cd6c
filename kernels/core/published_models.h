/* published_models - looks up the published configurations of models. models/models.json states each value and its
 * source. To add a model, change only that file. The file is embedded in the library, so that verdicts do not depend on
 * a file at run time. */
#ifndef REFTEST_KERNELS_CORE_PUBLISHED_MODELS_H
#define REFTEST_KERNELS_CORE_PUBLISHED_MODELS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes a number of a model's configuration. `field` is the name of the number, such as "rms_norm_eps". `model` is the
 * model's name, as in `model:` tags, or one of its aliases. Case is ignored, and so is the part of the name up to the
 * last '/'. Returns false if the table does not contain the number. */
bool model_number(const char *model, const char *field, double *out);

/* The epsilon of RMS norms has different names in the configurations of different models. Returns name number `number`,
 * or NULL after the last name. Name 0 is "rms_norm_eps". */
const char *rms_norm_field(int number);

/* Returns the next row of the table that belongs to the model with this name or alias. The row is a JSON object, and is
 * not NUL-terminated. To get the first row, pass NULL as `after`; then pass the row that the last call returned. A
 * model may have several rows, because its fields come from several sources. Returns NULL after the last row, and for
 * an unknown model. */
const char *model_row(const char *model, const char *after, size_t *length);

/* Returns the row that follows `after` in the table, whatever its model is, or NULL after the last row. */
const char *next_model_row(const char *after, size_t *length);

#endif
