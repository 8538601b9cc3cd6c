#include "watcher/blob_path.h"

#include <string.h>

bool blob_path_is_watched(const char *path)
{
	int folders = -1; /* the number of folders between blob/ and the file */

	if (strncmp(path, "blob/", 5) != 0)
		return false;
	for (const char *at = path; (at = strchr(at, '/')) != NULL; at++)
		folders++;
	return folders <= BLOB_DEPTH;
}
