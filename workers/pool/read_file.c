#include "workers/pool/read_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sealed_library.h"

static int changed(const struct read_file *file, struct err *err)
{
	return err_set(err, "%s changed after it was read; run reftest again", file->path);
}

/* Returns a sealed copy of an open file, or -1. */
static int copy_open(int from, const struct stat *st, const struct digest *content)
{
	struct digest found;
	int copy = sealed_copy("reftest-read", from, st->st_size);

	if (copy >= 0 && file_digest_open(copy, st->st_size, &found) && digest_equal(&found, content))
		return copy;
	if (copy >= 0)
		close(copy);
	return -1;
}

int read_file_copy(const char *root, const struct read_file *file, struct err *err)
{
	int folder = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1, copy = -1;
	struct stat st;

	if (folder < 0)
		return err_errno(err, "cannot open %s", root);
	if (file_open_without_links(folder, file->file, &fd, &st, NULL) == FILE_OK && st.st_size <= READ_FILE_BYTES)
		copy = copy_open(fd, &st, &file->content);
	if (fd >= 0)
		close(fd);
	close(folder);
	return copy >= 0 ? copy : changed(file, err);
}
