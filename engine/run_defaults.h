/* run_defaults - fills in the options that are not on the command line. The values come from the dataset's settings or,
 * where the settings give no value, from reftest's own defaults. */
#ifndef REFTEST_ENGINE_RUN_DEFAULTS_H
#define REFTEST_ENGINE_RUN_DEFAULTS_H

#include "engine/run_state.h"
#include "engine/settings.h"

/* Sets every option that is not on the command line. For example, sets the sizes if `sizes_given` is false, and the
 * device if it is NULL. Records in from_settings which settings took effect. A second call changes nothing. `settings`
 * may be NULL; otherwise it must outlive the options, which keep pointers into it. */
void run_defaults(const struct settings *settings, struct run_options *options);

/* Reads the value of --sizes. If `list` is NULL, the option was not given. The sizes then come from the settings of the
 * dataset. Returns -1 and sets `err` on error. */
int run_sizes_read(const char *list, struct case_options *cases, struct err *err);

#endif
