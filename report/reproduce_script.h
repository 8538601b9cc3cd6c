/* reproduce_script - writes a Python script that reproduces the failure of one case and needs only torch. The tensors
 * of the case are in a file beside the script (workers/judge/trial_save.c). */
#ifndef REFTEST_REPORT_REPRODUCE_SCRIPT_H
#define REFTEST_REPORT_REPRODUCE_SCRIPT_H

#include "engine/run_state.h"

#define REPRODUCE_SCRIPT "reproduce.py"
#define REPRODUCE_TENSORS "tensors.safetensors"

/* Creates the folder if it does not exist, and removes a file with old tensors from it. Returns the absolute path of
 * the file for the new tensors. Refuses a folder with a REPRODUCE_SCRIPT or REPRODUCE_TENSORS that reftest did not
 * write. Returns NULL with a message on error. */
const char *reproduce_prepare(const char *folder, struct arena *arena, struct err *err);

/* The run must have one result with one case. Writes the script for this case, and prints on stderr the command that
 * starts the script. Returns 0, or -1 with a message if the case has no tensors or the script cannot be written. */
int reproduce_write(const struct run *run, const char *folder, struct err *err);

#endif
