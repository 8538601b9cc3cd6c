/* test_sealed_library - a library is loaded only from a sealed copy (a memfd that cannot change), and only if the copy
 * has the digest that the build recorded. */
#include "base/sealed_library.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"

#include "library_digests.h"

enum { LIBRARY_MAX = 256 << 20 };

static const char *kernels_path(void)
{
	static char path[4200];
	char folder[4096];

	assert_int_equal(file_program_directory(folder, sizeof folder, NULL), 0);
	snprintf(path, sizeof path, "%s/../../libreftest_kernels.so", folder);
	return path;
}

/* Copies the library to a temporary file, and changes the byte at `place` (-1: no byte). */
static void copy_with_change(char path[32], int64_t place)
{
	struct buf bytes = {0};

	assert_int_equal(file_read(AT_FDCWD, kernels_path(), LIBRARY_MAX, &bytes, NULL, NULL), FILE_OK);
	if (place >= 0)
		bytes.data[place] = (char)~bytes.data[place];
	strcpy(path, "/tmp/reftest-sealed-XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes.data, bytes.length), bytes.length);
	close(fd);
	buf_free(&bytes);
}

static void a_copy_cannot_be_changed(void **state)
{
	struct err err = {""};
	int fd = sealed_library_copy(kernels_path(), KERNELS_LIBRARY_DIGEST, NULL, &err);

	(void)state;
	if (fd < 0)
		fail_msg("%s", err.text);
	assert_int_equal(pwrite(fd, "x", 1, 100), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	close(fd);
}

static void another_byte_or_another_build_is_refused(void **state)
{
	char path[32];
	struct err err = {""};
	static const int64_t places[] = {-1, 600, 200000};

	(void)state;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		copy_with_change(path, places[i]);
		void *handle = sealed_library_open(path, KERNELS_LIBRARY_DIGEST, NULL, &err);

		assert_true((handle != NULL) == (places[i] < 0));
		if (handle == NULL)
			assert_non_null(strstr(err.text, "the library was not built with this program"));
		else
			dlclose(handle);
		unlink(path);
	}
	assert_null(sealed_library_open(kernels_path(), SIGN_LIBRARY_DIGEST, NULL, &err));
	assert_null(sealed_library_open(kernels_path(), "", NULL, &err)); /* the digest is "" if this build does not
									   * have the library */
	assert_null(sealed_library_open("/nowhere/lib.so", KERNELS_LIBRARY_DIGEST, NULL, &err));
	assert_non_null(strstr(err.text, "/nowhere/lib.so cannot be loaded: "));
	assert_null(sealed_library_open("/tmp", KERNELS_LIBRARY_DIGEST, NULL, &err));
	assert_non_null(strstr(err.text, "not a regular file"));
}

static void a_name_that_is_taken_is_not_used_again(void **state)
{
	struct err err = {""};
	char sign[4300], *slash;

	(void)state;
	if (SIGN_LIBRARY_DIGEST[0] == '\0')
		skip();
	snprintf(sign, sizeof sign, "%s", kernels_path());
	slash = strrchr(sign, '/');
	strcpy(slash, "/libreftest_sign.so");
	/* the two copies get the same descriptor number and path; dlopen must not take the second for the first */
	void *kernels = sealed_library_open(kernels_path(), KERNELS_LIBRARY_DIGEST, NULL, &err);
	void *signing = sealed_library_open(sign, SIGN_LIBRARY_DIGEST, NULL, &err);

	assert_non_null(kernels);
	assert_non_null(signing);
	assert_ptr_not_equal(kernels, signing);
	assert_non_null(dlsym(kernels, "reftest_kernels"));
	assert_non_null(dlsym(signing, "reftest_sign"));
	dlclose(signing);
	dlclose(kernels);
}

/* ---- the memory -------------------------------------------------------------------------------------------------- */

struct notes {
	bool is_known;
	int asked, remembered;
};

static bool known(void *self, const char *path, const struct stat *st, const char *digest)
{
	struct notes *notes = self;

	(void)path, (void)st, (void)digest;
	notes->asked++;
	return notes->is_known;
}

static void remember(void *self, const char *path, const struct stat *st, int64_t read_ns, const char *digest)
{
	struct notes *notes = self;

	assert_string_equal(digest, KERNELS_LIBRARY_DIGEST);
	assert_true(read_ns > 0 && st->st_size > 0 && path[0] == '/');
	notes->remembered++;
}

static void what_is_known_is_not_computed(void **state)
{
	struct notes notes = {0};
	const struct digest_memory memory = {known, remember, &notes};
	char path[32];
	struct err err = {""};

	(void)state;
	copy_with_change(path, -1);
	int fd = sealed_library_copy(path, KERNELS_LIBRARY_DIGEST, &memory, &err);

	assert_true(fd >= 0 && notes.asked == 1 && notes.remembered == 1);
	close(fd);
	/* The digest of a file that is open for writing is not remembered, because a change of the file may leave its
	 * stat unchanged. */
	int writer = open(path, O_RDWR | O_CLOEXEC);

	fd = sealed_library_copy(path, KERNELS_LIBRARY_DIGEST, &memory, &err);
	assert_true(fd >= 0 && notes.remembered == 1);
	close(fd);
	close(writer);
	unlink(path);
	/* Here the library was changed, but `known` says that its digest is still the old one, so the library is
	 * accepted. sealed_library_copy calls `known` a second time after it has copied the library. */
	copy_with_change(path, 200000);
	notes = (struct notes){.is_known = true};
	fd = sealed_library_copy(path, KERNELS_LIBRARY_DIGEST, &memory, &err);
	assert_true(fd >= 0 && notes.asked == 2 && notes.remembered == 0);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_copy_cannot_be_changed),
	    cmocka_unit_test(another_byte_or_another_build_is_refused),
	    cmocka_unit_test(a_name_that_is_taken_is_not_used_again),
	    cmocka_unit_test(what_is_known_is_not_computed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
