/* settings - the settings of a dataset, which its file reftest.json has:
 *
 *   {"require_containment": "full", "ground_truth": "auto,solution:baseline"}      or
 *   {"require_containment": ["files", "network"]}
 *
 * require_containment holds for every command that counts verdicts and every run, as the option --require-containment
 * does. ground_truth holds for the commands that have the option --ground-truth with the default auto. An option replaces
 * its setting. The file is read from the working tree, also for --staged. */
#ifndef REFTEST_ENGINE_SETTINGS_H
#define REFTEST_ENGINE_SETTINGS_H

#include "engine/program.h"

/* Reads the settings of the root, which must be known, into `program`. A missing file is no error. Returns -1
 * with a message if the file is invalid or cannot be read. */
int settings_read(struct program *program, struct err *err);

/* Returns what references must not reach (workers/sandbox/containment.h), or NULL if nothing is required. `option` is
 * the value of --require-containment, or NULL if it is not given; "none" removes the requirement. */
const char *settings_required(const struct program *program, const char *option);

#endif
