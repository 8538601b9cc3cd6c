/* script_check - checks that this program's Python files have not changed since make built the program. */
#ifndef REFTEST_WORKERS_POOL_SCRIPT_CHECK_H
#define REFTEST_WORKERS_POOL_SCRIPT_CHECK_H

#include "base/err.h"

/* Checks all Python files in `folder` and in its folder libraries/. The digests of these files at the time of the build
 * are part of every verdict (tools/generate.sh), so other files must not run. A reference of an earlier run could have
 * changed files in the folder. The check is made before each start of an interpreter, which reads the files anew. At
 * that time, no reference of this run is alive: the first interpreters start before any reference, and when a zygote
 * dies, its runners die, too. Only a process that may write to the files of this user could change a file between the
 * check and the interpreter, and such a process could also replace this program. Returns -1 with a message that names
 * the first file that differs. */
int script_check(const char *folder, struct err *err);

#endif
