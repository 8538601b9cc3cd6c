/* attested_dimensions - compares the dimensions of a definition with what its name, its description and its models
 * say.
 *
 * - A number in the name belongs to the axes that its letters stand for: in "gqa_paged_decode_h32_kv8_d128", kv8 is the
 *   number of key heads. The name contradicts the axes if the definition has such an axis and none has this length.
 * - The description contradicts an axis if it states another length: "page_size=64".
 * - A `model:` tag, or hf_id, names a model. Every module of the model that has the op_type of the definition gives
 * lengths
 *   of its axes, for each degree of tensor and expert parallelism that the tags `tp:` and `ep:` allow. The model contradicts
 *   the axes if no module has them at any degree.
 *
 * Models that are not in models/models.json, op_types that no module of the model has, and definitions of parts that
 * the mapping does not describe, such as a vision tower, contradict nothing. */
#ifndef REFTEST_MODELS_ATTESTED_DIMENSIONS_H
#define REFTEST_MODELS_ATTESTED_DIMENSIONS_H

#include "base/arena.h"
#include "dataset/definition.h"

struct architecture;
struct model;

/* Returns NULL if nothing contradicts the axes. Otherwise returns a sentence with the axis and its length, the length
 * that is stated and by what, with the field of the configuration, its value and its source, and the degrees that were
 * tried. */
const char *attest_definition(const struct definition *definition, struct arena *arena);

/* Sets explains[i] to whether rule i of the architecture has the axes of the definition, and returns how many do. The
 * degrees are those of the tags, else 1; if no rule has the axes then, all degrees count. */
int attest_rules(const struct definition *definition, const struct model *model, const struct architecture *architecture, bool *explains);

#endif
