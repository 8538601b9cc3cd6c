/* reftest_folder - creates the folder .reftest in the root of a dataset. git must ignore this folder. */
#ifndef REFTEST_BASE_REFTEST_FOLDER_H
#define REFTEST_BASE_REFTEST_FOLDER_H

#include "base/err.h"

/* Creates ROOT/.reftest if it is missing, and a .gitignore in it, so that the dataset's own .gitignore needs no entry.
 * Does nothing if the folder exists, because a user may have changed or deleted the .gitignore. Returns 0, or -1 and
 * sets `err`. */
int reftest_folder_make(const char *root, struct err *err);

/* Writes ROOT/.reftest/.gitignore if it is missing. */
void reftest_folder_ignore(const char *root);

#endif
