/* input_code - decides which function of a definition makes inputs, and which axis values it gets. */
#ifndef REFTEST_DATASET_INPUT_CODE_H
#define REFTEST_DATASET_INPUT_CODE_H

#include "dataset/definition.h"

/* Finds the function of `init` that makes the inputs: the last function at top level with a name that ends with
 * "_init". If there is none, and `init` has only one function at top level, takes this function. Sets all members of
 * `code` except `place`. If a parameter of the function has the name of an axis and a default value, the call leaves
 * the parameter out, because the defaults of a definition's author suit each other. Everything is allocated in
 * `arena`. */
void input_code_of_init(const struct definition *definition, struct arena *arena, struct input_code *code);

/* Finds the function of the reference that `custom_inputs_entrypoint` names. The named function gets the values of all
 * axes. */
void input_code_of_entrypoint(const struct definition *definition, struct arena *arena, struct input_code *code);

#endif
