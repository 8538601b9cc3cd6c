/* attested_dimensions - compares the dimensions of a definition with what its name, its description and its models
 * say.
 *
 * - In a name such as "gqa_paged_decode_h32_kv8_d128", letters stand for axes, and the number after them states a
 *   length: kv8 states that there are 8 KV heads. The name contradicts the definition if none of the axes that the
 *   letters may stand for has the stated length. Letters for which the definition has no axis are ignored.
 * - The description contradicts an axis if it states another length for this axis: "page_size=64".
 * - A `model:` tag, or the definition's hf_id, names a model. The axes are compared with the modules of this model that
 *   have the definition's op_type. The comparison tries all degrees of tensor and expert parallelism that the tags
 *   `tp:` and `ep:` allow. The model contradicts the definition if no module has the definition's lengths at any of
 *   these degrees.
 *
 * In three cases, the axes are not compared with a model: models/models.json lacks the model, no module of the model
 * has the definition's op_type, or the definition is for a part of a model that architectures.json does not describe,
 * such as a vision tower. */
#ifndef REFTEST_MODELS_ATTESTED_DIMENSIONS_H
#define REFTEST_MODELS_ATTESTED_DIMENSIONS_H

#include "base/arena.h"
#include "dataset/definition.h"

struct architecture;
struct architectures;
struct model;

/* Returns NULL if nothing contradicts the axes. Otherwise returns a sentence with the axis, its length, the length that
 * contradicts it, and the place where the contradicting length is stated: the name, the description or a model. If a
 * model states the length, the sentence also names the field of the model's configuration, the source of that field,
 * and the degrees that were tried. */
const char *attest_definition(const struct definition *definition, struct architectures *all, struct arena *arena);

/* For each rule i of the architecture, sets explains[i] to whether the lengths in the rule equal the lengths of the
 * definition's axes. Returns the number of rules for which explains[i] is true. First tries the degrees of parallelism
 * that the tags `tp:` and `ep:` state; without these tags, degree 1. If no rule has the definition's lengths at these
 * degrees, tries other degrees up to 128. */
int attest_rules(const struct definition *definition, const struct model *model, const struct architecture *architecture, bool *explains);

#endif
