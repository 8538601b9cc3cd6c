/* manual_page - writes the manual page from the tables of cli/command.h. Also writes the completion scripts of shells.
 * make runs the hidden command `reftest document` for this. */
#ifndef REFTEST_CLI_MANUAL_PAGE_H
#define REFTEST_CLI_MANUAL_PAGE_H

#include "base/buf.h"

void document_man(struct buf *out);
extern const char completions_bash[], completions_zsh[], completions_fish[]; /* cli/completions.c */

#endif
