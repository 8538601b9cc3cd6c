/* attested_dimensions - compares the dimensions of a definition with what its name, its description and its models
 * say.
 *
 * - The letters before a number in the name stand for axes, and the number states the length of these axes: in
 *   "gqa_paged_decode_h32_kv8_d128", kv8 states the number of key heads. The name contradicts the axes if the
 *   definition has axes for these letters, and none of them has the stated length.
 * - The description contradicts an axis if it states another length: "page_size=64".
 * - A `model:` tag, or hf_id, names a model. The modules of the model that have the definition's op_type are compared
 *   with the axes. All degrees of tensor and expert parallelism that the tags `tp:` and `ep:` allow are tried. The
 *   model contradicts the axes if no module has the lengths of the axes at any of these degrees.
 *
 * The check against the models leaves out three kinds of things: models that are not in models/models.json, op_types
 * that no module of the model has, and parts that the mapping does not describe, such as a vision tower. */
#ifndef REFTEST_MODELS_ATTESTED_DIMENSIONS_H
#define REFTEST_MODELS_ATTESTED_DIMENSIONS_H

#include "base/arena.h"
#include "dataset/definition.h"

struct architecture;
struct architectures;
struct model;

/* Returns NULL if nothing contradicts the axes. Otherwise returns a sentence with the axis, its length, and the stated
 * length. The sentence also says what states the length: the name, the description, or a model. For a model, the
 * sentence names the field of its configuration, the source of that field, and the degrees that were tried. */
const char *attest_definition(const struct definition *definition, struct architectures *all, struct arena *arena);

/* Sets explains[i] to true if rule i of the architecture gives the axes of the definition, otherwise to false. Returns
 * the number of rules that give the axes. Tries the degrees of the tags, or degree 1 without tags. If no rule gives the
 * axes at these degrees, tries all degrees. */
int attest_rules(const struct definition *definition, const struct model *model, const struct architecture *architecture, bool *explains);

#endif
