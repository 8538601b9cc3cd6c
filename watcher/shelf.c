#include "watcher/shelf.h"

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

/* As git has it: a write within the same tick of the filesystem's clock leaves the same stat. */
enum { RACY_SECONDS = 2 };

struct kept {
	char *name; /* owned */
	struct stat st;
	struct digest content;
	time_t read_at;
	bool here;  /* seen in this look */
};

struct shelf {
	struct kept *items; /* sorted by name, but for those that this look added */
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

/* The digest of a file that can be read; of another nothing but its stat counts. */
static struct digest content_of(int fd, const char *name, const struct stat *st)
{
	struct digest digest = {{0}};
	struct buf bytes = {0};

	if (S_ISREG(st->st_mode) && st->st_size <= SHELF_READ_MAX &&
	    file_read(fd, name, SHELF_READ_MAX, &bytes, NULL, NULL) == FILE_OK)
		digest = digest_of(bytes.data, bytes.length);
	buf_free(&bytes);
	return digest;
}

/* Brings one item up to date; true: it is not what it was. */
static bool refresh(struct kept *item, int fd, const struct stat *st, int round)
{
	bool still = same_stat(&item->st, st);
	bool racy = item->st.st_mtim.tv_sec + RACY_SECONDS >= item->read_at;

	item->here = true;
	if (still && !racy && (unsigned)(item->st.st_ino + (unsigned)round) % SHELF_ROUNDS != 0)
		return false;
	time_t now = time(NULL);
	struct digest content = content_of(fd, item->name, st);
	bool changed = !digest_equal(&content, &item->content) || item->st.st_mode != st->st_mode ||
	               (st->st_size > SHELF_READ_MAX && !still);

	item->st = *st;
	item->content = content;
	item->read_at = now;
	return changed;
}

static struct kept *find(const struct shelf *shelf, size_t sorted, const char *name)
{
	const struct kept key = {.name = (char *)name};

	return sorted == 0 ? NULL : bsearch(&key, shelf->items, sorted, sizeof key, compare_kept);
}

static struct kept *add(struct shelf *shelf, const char *name)
{
	if (shelf->count == shelf->room) {
		shelf->room = shelf->room * 2 + 16;
		shelf->items = realloc(shelf->items, shelf->room * sizeof *shelf->items);
		if (shelf->items == NULL)
			die_no_memory();
	}
	struct kept *item = &shelf->items[shelf->count++];

	*item = (struct kept){.name = strdup(name)};
	if (item->name == NULL)
		die_no_memory();
	return item;
}

static void drop_missing(struct shelf *shelf, shelf_told *told, void *context)
{
	size_t left = 0;

	for (size_t i = 0; i < shelf->count; i++) {
		if (shelf->items[i].here) {
			shelf->items[i].here = false;
			shelf->items[left++] = shelf->items[i];
			continue;
		}
		told(shelf->items[i].name, TOUCH_GONE, context);
		free(shelf->items[i].name);
	}
	shelf->count = left;
}

void shelf_look(struct shelf **at, int fd, bool announce, shelf_wanted *wanted, shelf_told *told, void *context)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = again < 0 ? NULL : fdopendir(again);
	struct shelf *shelf = *at;
	const struct dirent *entry;

	if (shelf == NULL && (shelf = *at = calloc(1, sizeof *shelf)) == NULL)
		die_no_memory();
	size_t sorted = shelf->count;

	if (stream == NULL && again >= 0)
		close(again);
	while (stream != NULL && (entry = readdir(stream)) != NULL) {
		struct stat st;

		if (!wanted(entry->d_name, context) || fstatat(fd, entry->d_name, &st, 0) != 0 || S_ISDIR(st.st_mode))
			continue;
		struct kept *item = find(shelf, sorted, entry->d_name);
		bool known = item != NULL;

		item = known ? item : add(shelf, entry->d_name);
		bool changed = refresh(item, fd, &st, shelf->round);

		if (known ? changed : announce)
			told(item->name, TOUCH_WRITTEN, context);
	}
	if (stream != NULL) /* a folder that cannot be listed now is no empty one */
		drop_missing(shelf, told, context);
	if (stream != NULL)
		closedir(stream);
	if (shelf->count > 1)
		qsort(shelf->items, shelf->count, sizeof *shelf->items, compare_kept);
	shelf->round++;
}

void shelf_free(struct shelf *shelf)
{
	for (size_t i = 0; shelf != NULL && i < shelf->count; i++)
		free(shelf->items[i].name);
	if (shelf != NULL)
		free(shelf->items);
	free(shelf);
}
