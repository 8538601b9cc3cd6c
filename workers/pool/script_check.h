/* script_check - checks that this program's Python files have not changed since make built the program. */
#ifndef REFTEST_WORKERS_POOL_SCRIPT_CHECK_H
#define REFTEST_WORKERS_POOL_SCRIPT_CHECK_H

#include "base/err.h"

/* Checks all Python files in `folder` and in its folder libraries/. The digests of these files at the time of the build
 * are part of every verdict (tools/generate.sh), so other files must not run. A reference of an earlier run could have
 * changed them. Returns -1 with a message that names the first file that differs. */
int script_check(const char *folder, struct err *err);

#endif
