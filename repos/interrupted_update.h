/* interrupted_update - decides whether a working tree is only the trace of an update that was killed. */
#ifndef REFTEST_REPOS_INTERRUPTED_UPDATE_H
#define REFTEST_REPOS_INTERRUPTED_UPDATE_H

#include "base/arena.h"
#include "git/command.h"

/* Returns NULL if every tracked file of the working tree is absent, has the contents that it has in the commit `old`,
 * or has the beginning of the contents that it has in the commit `new` (a file that git was writing). Otherwise returns
 * the path of a file that somebody else changed, or "" if git failed. */
const char *update_find_foreign_file(struct git_command *git, const char *old, const char *new, struct arena *arena);

#endif
