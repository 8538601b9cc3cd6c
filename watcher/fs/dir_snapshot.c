#include "watcher/fs/dir_snapshot.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"

/* If a file is written twice within one tick of the filesystem's clock, the second write does not change the file's
 * stat. Therefore a file that was read less than RACY_SECONDS after a write may have been written again, even if its
 * stat is the same. The next scan reads such a file once more. (git calls such files "racily clean".) */
enum { RACY_SECONDS = 2 };

struct kept {
	char *name; /* allocated for this item */
	struct stat st;
	struct digest content;
	time_t read_at;
	bool here;  /* true if the current scan has found the file */
};

struct dir_snapshot {
	struct kept *items; /* sorted by name; during a scan, new items are at the end, in any order */
	size_t count, room;
	int round;
};

static int compare_kept(const void *a, const void *b)
{
	return strcmp(((const struct kept *)a)->name, ((const struct kept *)b)->name);
}

static bool same_stat(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mode == b->st_mode &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Returns the digest of the file's content. Returns a digest of zeros if the file is too large or cannot be read. The
 * scan then compares only the stat. */
static struct digest content_of(int fd, const char *name, const struct stat *st)
{
	struct digest digest = {{0}};
	struct buf bytes = {0};

	if (S_ISREG(st->st_mode) && st->st_size <= DIR_SNAPSHOT_READ_MAX &&
	    file_read(fd, name, DIR_SNAPSHOT_READ_MAX, &bytes, NULL, NULL) == FILE_OK)
		digest = digest_of(bytes.data, bytes.length);
	buf_free(&bytes);
	return digest;
}

/* Updates the item of a file. Returns true if the file has changed. */
static bool refresh(struct kept *item, int fd, const struct stat *st, int round)
{
	bool still = same_stat(&item->st, st);
	bool racy = item->st.st_mtim.tv_sec + RACY_SECONDS >= item->read_at;

	item->here = true;
	if (still && !racy && (unsigned)(item->st.st_ino + (unsigned)round) % DIR_SNAPSHOT_ROUNDS != 0)
		return false;
	time_t now = time(NULL);
	struct digest content = content_of(fd, item->name, st);
	bool changed = !digest_equal(&content, &item->content) || item->st.st_mode != st->st_mode ||
		       (st->st_size > DIR_SNAPSHOT_READ_MAX && !still);

	item->st = *st;
	item->content = content;
	item->read_at = now;
	return changed;
}

static struct kept *find(const struct dir_snapshot *snapshot, size_t sorted, const char *name)
{
	const struct kept key = {.name = (char *)name};

	return sorted == 0 ? NULL : bsearch(&key, snapshot->items, sorted, sizeof key, compare_kept);
}

static struct kept *add(struct dir_snapshot *snapshot, const char *name)
{
	if (snapshot->count == snapshot->room) {
		snapshot->room = snapshot->room * 2 + 16;
		snapshot->items = realloc(snapshot->items, snapshot->room * sizeof *snapshot->items);
		if (snapshot->items == NULL)
			die_no_memory();
	}
	struct kept *item = &snapshot->items[snapshot->count++];

	*item = (struct kept){.name = strdup(name)};
	if (item->name == NULL)
		die_no_memory();
	return item;
}

static void drop_missing(struct dir_snapshot *snapshot, dir_snapshot_report *on_result, void *context)
{
	size_t left = 0;

	for (size_t i = 0; i < snapshot->count; i++) {
		if (snapshot->items[i].here) {
			snapshot->items[i].here = false;
			snapshot->items[left++] = snapshot->items[i];
			continue;
		}
		on_result(snapshot->items[i].name, TOUCH_GONE, context);
		free(snapshot->items[i].name);
	}
	snapshot->count = left;
}

void dir_snapshot_look(struct dir_snapshot **at, int fd, bool announce, dir_snapshot_wanted *wanted,
		       dir_snapshot_report *on_result, void *context)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = again < 0 ? NULL : fdopendir(again);
	struct dir_snapshot *snapshot = *at;
	const struct dirent *entry;

	if (snapshot == NULL && (snapshot = *at = calloc(1, sizeof *snapshot)) == NULL)
		die_no_memory();
	size_t sorted = snapshot->count;

	if (stream == NULL && again >= 0)
		close(again);
	while (stream != NULL && (entry = readdir(stream)) != NULL) {
		struct stat st;

		if (!wanted(entry->d_name, context) || fstatat(fd, entry->d_name, &st, 0) != 0 || S_ISDIR(st.st_mode))
			continue;
		struct kept *item = find(snapshot, sorted, entry->d_name);
		bool known = item != NULL;

		item = known ? item : add(snapshot, entry->d_name);
		bool changed = refresh(item, fd, &st, snapshot->round);

		if (known ? changed : announce)
			on_result(item->name, TOUCH_WRITTEN, context);
	}
	if (stream != NULL) /* if the listing failed, the missing files may still exist */
		drop_missing(snapshot, on_result, context);
	if (stream != NULL)
		closedir(stream);
	if (snapshot->count > 1)
		qsort(snapshot->items, snapshot->count, sizeof *snapshot->items, compare_kept);
	snapshot->round++;
}

void dir_snapshot_free(struct dir_snapshot *snapshot)
{
	for (size_t i = 0; snapshot != NULL && i < snapshot->count; i++)
		free(snapshot->items[i].name);
	if (snapshot != NULL)
		free(snapshot->items);
	free(snapshot);
}
