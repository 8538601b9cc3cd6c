/* tree - lists the files below a folder. */
#ifndef REFTEST_CHECK_TREE_H
#define REFTEST_CHECK_TREE_H

#include "base/string_list.h"
#include "check/findings.h"

/* Limits on the depth of folders and on the number of folders that are listed. The limits are needed because symbolic
 * links may form a cycle. */
enum { TREE_DEPTH = 8, TREE_FOLDERS = 20000 };

/* Lists the files below `folder` whose names end in `suffix` (NULL: .json or .jsonl), sorted by path. Paths begin with
 * `folder`, which is relative to the descriptor `root`. Hidden names are omitted; symbolic links are followed. A
 * missing folder counts as empty. Adds a finding for each name with unsafe characters and for each folder that cannot
 * be listed. Adds one more finding if there are more than TREE_FOLDERS folders. */
struct string_list tree_files(int root, const char *folder, const char *suffix, struct findings *findings);

/* Divides a path at its slashes. For example, "solutions/a/b.json" has three parts. Copies the parts into `arena`.
 * Returns the number of parts, at most `most`. If the path has more than `most` parts, the last part contains
 * slashes. */
int tree_split(const char *path, int most, const char **parts, struct arena *arena);

/* Returns the path's last part without its suffix (".json"), or NULL if the path has another suffix. */
const char *tree_stem(const char *part, const char *suffix, struct arena *arena);

#endif
