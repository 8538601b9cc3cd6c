#include "base/reftest_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/trace.h"

enum { PATH_BYTES = 4096 };

void reftest_folder_ignore(const char *root)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/.reftest/.gitignore", root);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return;
	if (write(fd, "*\n", 2) != 2)
		trace("cache", "%s could not be written", path);
	close(fd);
}

int reftest_folder_make(const char *root, struct err *err)
{
	char folder[PATH_BYTES];

	snprintf(folder, sizeof folder, "%s/.reftest", root);
	if (mkdir(folder, 0777) == 0)
		reftest_folder_ignore(root);
	else if (errno != EEXIST)
		return err_errno(err, "%s cannot be created", folder);
	return 0;
}
