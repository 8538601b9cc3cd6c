#include "commands/present.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES = 64 << 20 };

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool present_is_test(const char *name)
{
	size_t length = strlen(name);

	return strncmp(name, "test_", 5) == 0 && length > 8 && strcmp(name + length - 3, ".py") == 0;
}

static int refuse_links(const struct present *p, const char *root, struct err *err)
{
	static const char *const parts[] = {"tests", "tests/references"};

	for (int i = 0; i < 2; i++) {
		struct stat st;

		if (fstatat(p->root_fd, parts[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
			return err_set(
			    err,
			    "%s/%s is no folder of the dataset but a link or a file: generated tests go into a real "
			    "folder of that name",
			    root, parts[i]);
	}
	return 0;
}

int present_list(struct present *p, int root_fd, const char *root, struct arena *arena, struct err *err)
{
	int room = 0;

	*p = (struct present){.root_fd = root_fd, .arena = arena};
	if (refuse_links(p, root, err) < 0)
		return -1;
	int fd = openat(root_fd, "tests/references", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;

	if (directory == NULL) {
		bool absent = errno == ENOENT;

		if (fd >= 0)
			close(fd);
		return absent ? 0 : err_errno(err, "%s/%s cannot be read", root, PRESENT_FOLDER);
	}
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
		if (!present_is_test(entry->d_name))
			continue;
		if (p->count == room) {
			const char **more = arena_array(arena, (size_t)room * 2 + 64, sizeof *more);

			if (room > 0)
				memcpy(more, p->names, (size_t)room * sizeof *more);
			p->names = more;
			room = room * 2 + 64;
		}
		p->names[p->count++] = arena_string(arena, entry->d_name);
	}
	closedir(directory);
	if (p->count > 1)
		qsort(p->names, (size_t)p->count, sizeof *p->names, by_text);
	return 0;
}

bool present_has(const struct present *p, const char *file)
{
	return p->count > 0 && bsearch(&file, p->names, (size_t)p->count, sizeof *p->names, by_text) != NULL;
}

/* An empty file is what a crash leaves of one that was being written: nobody's work. */
enum file_answer present_read(const struct present *p, const char *file, struct buf *bytes, enum owner *owner,
			      struct err *err)
{
	char *path = arena_printf(p->arena, "%s%s", PRESENT_FOLDER, file);
	enum file_answer answer = file_read(p->root_fd, path, FILE_BYTES, bytes, NULL, err);
	struct stat st;

	*owner = OWNER_REFTEST;
	if (answer == FILE_OK && bytes->length > 0)
		*owner = owned_by(bytes->data, bytes->length);
	if (answer != FILE_ERROR && fstatat(p->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode)) {
		*owner = OWNER_STRANGER;
		answer = FILE_OK; /* one that leads nowhere is a link all the same */
	}
	return answer;
}

bool present_hand_written(const struct present *p, const char *name)
{
	const char *file = arena_printf(p->arena, "test_%s.py", name);
	struct buf bytes = {0};
	enum owner owner;
	bool found =
	    present_has(p, file) && present_read(p, file, &bytes, &owner, NULL) == FILE_OK && owner != OWNER_REFTEST;

	buf_free(&bytes);
	return found;
}
