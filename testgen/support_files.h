/* support_files - contains the Python files that all generated tests use. The files are embedded in the program. One of
 * them is conftest.py, which is the concatenation of the parts that support_files.c lists: the files in
 * python/testing/, and python/arguments.py, which the runner also loads. The other files are those in
 * python/libraries/, which compute ground truths with libraries; make writes their list to build/libraries.inc. */
#ifndef REFTEST_TESTGEN_SUPPORT_FILES_H
#define REFTEST_TESTGEN_SUPPORT_FILES_H

#include "base/buf.h"

#define LIBRARIES_FOLDER "reftest_libraries/" /* relative to tests/references */

/* Returns the path of file number `index` (from 0) below tests/references: "conftest.py", "reftest_libraries/torch.py".
 * Returns NULL if there is no file with this number. */
const char *shipped_name(int index);

/* Appends the text of file number `index`, without the header of generated files. */
void shipped_text(int index, struct buf *out);

/* Returns a digest of the embedded files and of the code in testgen/. */
const char *shipped_digest(void);

#endif
