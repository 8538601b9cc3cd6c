/* script_check - checks that this program's Python files have not changed since make built the program. */
#ifndef REFTEST_WORKERS_POOL_SCRIPT_CHECK_H
#define REFTEST_WORKERS_POOL_SCRIPT_CHECK_H

#include "base/err.h"

/* Checks that all Python files in `folder` and in its folder libraries/ have the digests that they had when this
 * program was built (tools/generate.sh). Every verdict contains these digests, so a changed file must not run. A
 * reference of an earlier run could have changed a file. The files are checked before each start of an interpreter,
 * because each interpreter reads them again. During such a check, no reference of this run is alive: the first
 * interpreters start before any reference, and if a zygote dies, its runners die, too. The check does not protect
 * against a process that can write to the files of this user: such a process could change a file between the check and
 * the start of the interpreter. However, it could also replace this program. Returns -1 with a message that names the
 * first file that differs. */
int script_check(const char *folder, struct err *err);

#endif
