/* exchange - a pass as CI systems read it: JUnit XML in a file, GitHub's annotations on standard output. */
#ifndef REFTEST_COMMANDS_EXCHANGE_H
#define REFTEST_COMMANDS_EXCHANGE_H

#include "commands/pass.h"

/* 0, or -1 with a sentence. The pass must have kept its outcomes with details. */
int exchange_junit(const struct pass *pass, const char *path, struct err *err);

/* At the line of each definition's JSON file where its reference stands. */
void exchange_github(const struct pass *pass);

#endif
