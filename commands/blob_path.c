#include "commands/blob_path.h"

#include <string.h>

bool blob_path_is_watched(const char *path)
{
	int folders = -1; /* blob/ itself is none of those below it */

	if (strncmp(path, "blob/", 5) != 0)
		return false;
	for (const char *at = path; (at = strchr(at, '/')) != NULL; at++)
		folders++;
	return folders <= BLOB_DEPTH;
}
