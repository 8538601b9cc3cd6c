/* manual_page - writes the manual page from the tables of cli/command.h, and the scripts of shells. make runs the
 * hidden command `reftest document`. A new environment variable REFTEST_…, a new status (as REFTEST_PASSED) and a new
 * address scheme of REFTEST_REMOTE need a line in the tables of cli/manual_page.c. */
#ifndef REFTEST_CLI_MANUAL_PAGE_H
#define REFTEST_CLI_MANUAL_PAGE_H

#include "base/buf.h"

void document_man(struct buf *out);
extern const char completions_bash[], completions_zsh[], completions_fish[]; /* cli/completions.c */

#endif
