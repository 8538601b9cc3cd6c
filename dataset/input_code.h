/* input_code - decides which function of a definition makes inputs, and which axis values are passed to it. */
#ifndef REFTEST_DATASET_INPUT_CODE_H
#define REFTEST_DATASET_INPUT_CODE_H

#include "dataset/definition.h"

/* Finds the function of `init` that makes the inputs: the last function at top level with a name that ends with
 * "_init". If there is none, and `init` has only one function at top level, chooses this function. Sets all members of
 * `code` except `place`. If a parameter with the name of a var axis has a default value, reftest passes no value for
 * it, because the author of a function chooses its default values so that they fit together. Everything is allocated in
 * `arena`. */
void input_code_of_init(const struct definition *definition, struct arena *arena, struct input_code *code);

/* Finds the function of the reference that `custom_inputs_entrypoint` names. The values of all axes are passed to this
 * function. */
void input_code_of_entrypoint(const struct definition *definition, struct arena *arena, struct input_code *code);

#endif
