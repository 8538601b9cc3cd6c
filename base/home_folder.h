/* home_folder - creates .reftest, the folder of a dataset that git must not have. */
#ifndef REFTEST_BASE_HOME_FOLDER_H
#define REFTEST_BASE_HOME_FOLDER_H

#include "base/err.h"

/* Creates ROOT/.reftest if it is missing, with a .gitignore, so that the dataset's own .gitignore needs no entry. If
 * the folder exists, its .gitignore is left as it is, also if a user deleted it. Returns 0, or -1 and sets `err`. */
int home_folder_make(const char *root, struct err *err);

/* Writes ROOT/.reftest/.gitignore if it is missing. */
void home_folder_ignore(const char *root);

#endif
