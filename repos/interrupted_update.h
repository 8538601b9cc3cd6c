/* interrupted_update - decides whether all changes in a working tree come from an interrupted update. */
#ifndef REFTEST_REPOS_INTERRUPTED_UPDATE_H
#define REFTEST_REPOS_INTERRUPTED_UPDATE_H

#include "base/arena.h"
#include "git/command.h"

/* Returns NULL if every tracked file of the working tree is absent or equals the file in the commit `old` or `new`. A
 * tracked file may also be an incomplete copy of the file in `new`, because git may have been killed while it wrote the
 * copy. Otherwise returns the path of a file that somebody else changed, or "" if git failed. */
const char *update_find_foreign_file(struct git_command *git, const char *old, const char *new, struct arena *arena);

#endif
