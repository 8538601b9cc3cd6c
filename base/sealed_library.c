#include "base/sealed_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sha256.h"

enum { SEGMENTS_MAX = 64, SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

/* A loader maps only some segments of an ELF file. Returns the offset at which the last mapped segment ends. If the
 * file has no usable list of segments, returns `size`; dlopen then reports what is wrong with the file. */
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

/* Does the same as copy_bytes, but ignores the user's soft limit for the size of files, because the copy is not on a
 * disk. */
static int copy_to_memory(int from, int to, int64_t length)
{
	struct rlimit limit;
	bool raised = getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
		      setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit.rlim_max, limit.rlim_max}) == 0;
	int rc = copy_bytes(from, to, length), problem = errno;

	if (raised)
		setrlimit(RLIMIT_FSIZE, &limit);
	errno = problem;
	return rc;
}

/* Writes the digest of a sealed copy. Returns false if the copy cannot be mapped. */
static bool digest_of_copy(int fd, char hex[2 * SHA256_BYTES + 1])
{
	unsigned char digest[SHA256_BYTES];
	struct stat st;

	if (fstat(fd, &st) != 0 || st.st_size == 0)
		return false;
	void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (bytes == MAP_FAILED)
		return false;
	sha256_of(bytes, (size_t)st.st_size, digest);
	munmap(bytes, (size_t)st.st_size);
	for (int i = 0; i < SHA256_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	return true;
}

int sealed_copy(const char *name, int from, int64_t length)
{
	int to = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (to >= 0 && copy_to_memory(from, to, length) == 0 && fcntl(to, F_ADD_SEALS, SEALS) == 0)
		return to;
	int error = errno;

	if (to >= 0)
		close(to);
	errno = error;
	return -1;
}

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* Copies the library at `path`, which is open as `from`, and checks the copy's digest. Skips the check if `memory`
 * knows that the file has this digest, and if the file has not changed during the copy. */
static int copy_checked(int from, const char *path, const char *digest, const struct digest_memory *memory,
			struct err *err)
{
	struct stat before, after, shown;
	int64_t read_ns = clock_ns();
	char found[2 * SHA256_BYTES + 1];

	if (fstat(from, &before) != 0 || !S_ISREG(before.st_mode))
		return err_set(err, "%s cannot be loaded: it is not a regular file", path);
	bool known = memory != NULL && memory->known(memory->self, path, &before, digest);
	bool shows = memory != NULL && !known && file_shows_changes(AT_FDCWD, path, &shown) && same_file(&before, &shown);
	int to = sealed_copy("reftest-library", from, mapped_end(from, before.st_size));

	if (to < 0)
		return err_errno(err, "%s cannot be copied to memory", path);
	if (known && fstat(from, &after) == 0 && memory->known(memory->self, path, &after, digest))
		return to;
	if (digest_of_copy(to, found) && strcmp(found, digest) == 0) {
		if (shows)
			memory->remember(memory->self, path, &before, read_ns, digest);
		return to;
	}
	close(to);
	return err_set(err, "%s cannot be loaded: the library was not built with this program, or the library has "
	    "changed since the build; run make", path);
}

int sealed_library_copy(const char *path, const char *digest, const struct digest_memory *memory, struct err *err)
{
	int from = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (from < 0)
		return err_errno(err, "%s cannot be loaded", path);
	int to = copy_checked(from, path, digest, memory, err);

	close(from);
	return to;
}

enum { PLACE = 32 };

static void name_place(int fd, char place[PLACE])
{
	snprintf(place, PLACE, "/proc/self/fd/%d", fd);
}

/* Returns a descriptor N (`fd` or a duplicate of it) such that no library is loaded under the name /proc/self/fd/N. If
 * a library were loaded under this name, dlopen would return that library and not load the sealed copy. An older
 * library can have the name, because the kernel reuses the number N of a closed descriptor. Returns -1 on failure. */
static int with_free_name(int fd)
{
	char place[PLACE];
	void *taken;
	int number = fd;

	for (name_place(number, place); number >= 0 && (taken = dlopen(place, RTLD_LAZY | RTLD_NOLOAD)) != NULL;
	     name_place(number, place)) {
		int next = fcntl(fd, F_DUPFD_CLOEXEC, number + 1);

		dlclose(taken);
		if (number != fd)
			close(number);
		number = next;
	}
	return number;
}

void *sealed_library_load(int fd, const char *path, struct err *err)
{
	int number = with_free_name(fd);
	char place[PLACE];

	if (number < 0) {
		err_errno(err, "%s cannot be loaded", path);
		return NULL;
	}
	name_place(number, place);
	void *handle = dlopen(place, RTLD_NOW | RTLD_LOCAL);
	const char *why = handle == NULL ? dlerror() : NULL;

	if (number != fd)
		close(number);
	if (handle != NULL)
		return handle;
	if (why != NULL && strncmp(why, place, strlen(place)) == 0) /* the message begins with the name of the copy */
		why += strlen(place) + strspn(why + strlen(place), ": ");
	err_set(err, "%s cannot be loaded (%s)", path, why == NULL ? "for an unknown reason" : why);
	return NULL;
}

void *sealed_library_open(const char *path, const char *digest, const struct digest_memory *memory, struct err *err)
{
	int fd = sealed_library_copy(path, digest, memory, err);
	void *handle = fd < 0 ? NULL : sealed_library_load(fd, path, err);

	if (fd >= 0)
		close(fd);
	return handle;
}
