/* attested_dimensions - compares the dimensions of a definition with what its name, its description and its models
 * say.
 *
 * - In a name such as "gqa_paged_decode_h32_kv8_d128", letters stand for axes, and the number after them states a
 *   length: kv8 states that there are 8 key heads. The name contradicts the axes if the letters stand for some axes of
 *   the definition, and none of these axes has the stated length.
 * - The description contradicts an axis if it states another length: "page_size=64".
 * - A `model:` tag, or hf_id, names a model. reftest compares the axes with each module of this model that has the
 *   definition's op_type, at all degrees of tensor and expert parallelism that the tags `tp:` and `ep:` allow. The
 *   model contradicts the axes if no module has the lengths of the axes at any of these degrees.
 *
 * In three cases, the axes are not compared with a model: models/models.json lacks the model, no module of the model
 * has the op_type, or the definition is for a part that architectures.json does not describe, such as a vision
 * tower. */
#ifndef REFTEST_MODELS_ATTESTED_DIMENSIONS_H
#define REFTEST_MODELS_ATTESTED_DIMENSIONS_H

#include "base/arena.h"
#include "dataset/definition.h"

struct architecture;
struct architectures;
struct model;

/* Returns NULL if nothing contradicts the axes. Otherwise returns a sentence with the axis, its length, the stated
 * length, and where the length is stated: in the name, in the description, or by a model. For a model, the sentence
 * names the field of its configuration, the source of that field, and the degrees that were tried. */
const char *attest_definition(const struct definition *definition, struct architectures *all, struct arena *arena);

/* Sets explains[i] to true if rule i of the architecture gives the axes of the definition, else to false. Returns the
 * number of rules that give the axes. Tries the tagged degrees first; without tags, degree 1. If no rule gives the axes
 * at these degrees, tries all common degrees. */
int attest_rules(const struct definition *definition, const struct model *model, const struct architecture *architecture, bool *explains);

#endif
