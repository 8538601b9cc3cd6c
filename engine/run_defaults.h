/* run_defaults - fills in what a command line leaves open: from the dataset's settings, else reftest's own defaults. */
#ifndef REFTEST_ENGINE_RUN_DEFAULTS_H
#define REFTEST_ENGINE_RUN_DEFAULTS_H

#include "engine/run_state.h"
#include "engine/settings.h"

/* Sets the sizes unless sizes_given, the device if it is NULL, and so on; records in from_settings which settings took
 * effect. Doing it twice changes nothing. The options keep pointers into `settings`, which may be NULL. */
void run_defaults(const struct settings *settings, struct run_options *options);

/* Reads --sizes, or NULL without it: the settings of the dataset then decide. Returns -1 and sets `err` on error. */
int run_sizes_read(const char *list, struct case_options *cases, struct err *err);

#endif
