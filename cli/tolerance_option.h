/* tolerance_option - defines the options that replace the bounds of outputs: --tolerance, --atol, --rtol and
 * --hit-ratio. */
#ifndef REFTEST_CLI_TOLERANCE_OPTION_H
#define REFTEST_CLI_TOLERANCE_OPTION_H

#include "base/buf.h"
#include "cli/options.h"
#include "engine/cases.h"

/* A command that uses these rows has a struct with the members atol, rtol and hit_ratio (-1: not given) and `struct
 * words tolerances`. */
#define ROW_TOLERANCE_AT(offset)                                                      \
	{"--tolerance", OPTION_LIST, offset, "[DTYPE=]ATOL[,RTOL[,HIT]]", NULL,        \
	 "tolerance of every output, or of the outputs of one dtype; without RTOL, both are ATOL (repeatable)"}
#define ROW_TOLERANCE ROW_TOLERANCE_AT(AT(tolerances))
#define ROW_ATOL {"--atol", OPTION_REAL, AT(atol), "X", NULL, "absolute tolerance of every output"}
#define ROW_RTOL {"--rtol", OPTION_REAL, AT(rtol), "X", NULL, "relative tolerance of every output"}
#define ROW_HIT_RATIO                                   \
	{"--hit-ratio", OPTION_REAL, AT(hit_ratio), "X", NULL, \
	 "fraction of the elements that must be within tolerance, above 0 and at most 1"}

/* Writes the tolerances of the options to `out`; `single` has --atol, --rtol and --hit-ratio, which override
 * --tolerance. Returns 0, or -1 and sets `err`. */
int tolerance_options_read(const struct words *tolerances, struct tolerance single, struct case_options *out,
			   struct err *err);

#endif
