#include "commands/blob_path.h"

#include <string.h>

bool blob_path_plain(const char *named, char path[PATH_MAX])
{
	size_t used = 0;

	while (*named != '\0') {
		size_t length = strcspn(named, "/");
		bool counts = length > 0 && !(length == 1 && named[0] == '.');

		if (counts && used + length + 2 > PATH_MAX)
			return false;
		if (counts) {
			if (used > 0)
				path[used++] = '/';
			memcpy(path + used, named, length);
			used += length;
		}
		named += length + (named[length] == '/');
	}
	path[used] = '\0';
	return true;
}

bool blob_path_is_watched(const char *path)
{
	int folders = -1; /* blob/ itself is none of those below it */

	if (strncmp(path, "blob/", 5) != 0)
		return false;
	for (const char *at = path; (at = strchr(at, '/')) != NULL; at++)
		folders++;
	return folders <= BLOB_DEPTH;
}
