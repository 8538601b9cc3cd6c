#include "base/sealed_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { SEGMENTS_MAX = 64, SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

/* Returns the end of the last part of an ELF file that a loader maps, or `size` if the file has no usable list of these
 * parts. dlopen then says what is wrong with the file. */
static int64_t mapped_end(int fd, int64_t size)
{
	ElfW(Phdr) segments[SEGMENTS_MAX];
	ElfW(Ehdr) header;
	int64_t end = 0;

	if (!file_read_at(fd, &header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_phentsize != sizeof *segments || header.e_phnum > SEGMENTS_MAX || header.e_phoff > (uint64_t)size ||
	    !file_read_at(fd, segments, header.e_phnum * sizeof *segments, (int64_t)header.e_phoff))
		return size;
	for (int i = 0; i < header.e_phnum; i++) {
		uint64_t offset = segments[i].p_offset, length = segments[i].p_filesz;

		if (segments[i].p_type != PT_LOAD)
			continue;
		if (offset > (uint64_t)size || length > (uint64_t)size - offset)
			return size;
		end = (int64_t)(offset + length) > end ? (int64_t)(offset + length) : end;
	}
	return end > 0 ? end : size;
}

/* Copies the first `length` bytes of `from`. Returns -1 with errno set. */
static int copy_bytes(int from, int to, int64_t length)
{
	off_t at = 0;

	while (at < length) {
		ssize_t copied = sendfile(to, from, &at, (size_t)(length - at));

		if (copied < 0 && errno == EINTR)
			continue;
		if (copied == 0)
			errno = ESTALE; /* the file has become shorter */
		if (copied <= 0)
			return -1;
	}
	return 0;
}

int sealed_library_copy(const char *path, struct err *err)
{
	int from = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), to = -1;
	struct stat st;

	if (from < 0)
		return err_errno(err, "%s cannot be loaded", path);
	if (fstat(from, &st) != 0 || !S_ISREG(st.st_mode)) {
		close(from);
		return err_set(err, "%s is not a regular file", path);
	}
	to = memfd_create("reftest-library", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (to < 0 || copy_bytes(from, to, mapped_end(from, st.st_size)) != 0 || fcntl(to, F_ADD_SEALS, SEALS) != 0) {
		err_errno(err, "%s cannot be copied to memory", path);
		if (to >= 0)
			close(to);
		to = -1;
	}
	close(from);
	return to;
}

void *sealed_library_load(int fd, const char *path, struct err *err)
{
	char place[64];

	size_t length = (size_t)snprintf(place, sizeof place, "/proc/self/fd/%d", fd);
	void *handle = dlopen(place, RTLD_NOW | RTLD_LOCAL);

	if (handle != NULL)
		return handle;
	const char *why = dlerror();

	if (why != NULL && strncmp(why, place, length) == 0) /* the message begins with the name of the copy */
		why += length + strspn(why + length, ": ");
	err_set(err, "%s cannot be loaded (%s)", path, why == NULL ? "for an unknown reason" : why);
	return NULL;
}

void *sealed_library_open(const char *path, struct err *err)
{
	int fd = sealed_library_copy(path, err);
	void *handle = fd < 0 ? NULL : sealed_library_load(fd, path, err);

	if (fd >= 0)
		close(fd);
	return handle;
}
