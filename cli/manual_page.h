/* manual_page - writes the manual page from the tables of cli/command.h. Also writes the completion scripts of shells.
 * make runs the hidden command `reftest document` for this. The tables of cli/manual_page.c need a new line for a new
 * environment variable REFTEST_…, for a new status (watch --exec passes it in a variable such as REFTEST_PASSED), and
 * for a new address scheme of REFTEST_REMOTE. */
#ifndef REFTEST_CLI_MANUAL_PAGE_H
#define REFTEST_CLI_MANUAL_PAGE_H

#include "base/buf.h"

void document_man(struct buf *out);
extern const char completions_bash[], completions_zsh[], completions_fish[]; /* cli/completions.c */

#endif
