/* test_power_cut - after a power failure at any call, the cache is intact. tests/faults/shim.c logs the program's
 * calls. From the log, the test builds the states in which a disk may be if the power fails after a call:
 *
 *   contents   the disk has all bytes that were synced; of the sectors with unsynced bytes, it has all, some or none
 *   names      changes of names reach the disk in the order of the calls; the disk has all of them up to some call, at
 *              least those that the last sync of a folder or of a new file has written
 *
 * In each state, all verdicts that were stored before the run are in the cache. The verdicts of the run are also in the
 * cache if the cache was synced after the run. No verdict is wrong, an exported file has its old or its new content,
 * and the next run reports the right verdicts. */
#include "tests/unit/program_world.h"

enum { INODES = 64, NAMES = 128, OPS = 2048, RUNS = 3, SECTOR = 512, CUTS_LEAST = 1200, RANDOM_WAYS = 4 };

static struct world w;
static struct known_list first, second;

/* --- The log ---------------------------------------------------------------------------------------------------- */

struct op {
	enum logged what;
	uint64_t inode, offset, length;
	char name[WORLD_PATH], other[WORLD_PATH]; /* paths relative to the root; `other` is the new name of a renamed
						   * file */
	const char *bytes;
};

static struct op ops[OPS];
static int op_count;
static struct buf log_bytes;

/* Makes the path relative to the root. The program may call the root ".", so "./" is also removed. */
static void relative(char out[WORLD_PATH], const char *path, size_t length)
{
	size_t skip = strlen(w.root);
	const char *end = path + length;

	if (length > skip && strncmp(path, w.root, skip) == 0)
		path += skip + 1;
	while (end - path > 2 && strncmp(path, "./", 2) == 0)
		path += 2;
	assert_true(end - path < WORLD_PATH);
	snprintf(out, WORLD_PATH, "%.*s", (int)(end - path), path);
}

/* Returns a number that identifies the file which now has this inode number. The inode number itself is not enough,
 * because a new file may get the inode number of a deleted file. */
static uint64_t lasting_number(uint64_t number, bool made)
{
	static struct {
		uint64_t number, lasting;
	} made_ones[OPS];
	static int count;
	static uint64_t next = (uint64_t)1 << 48;

	if (op_count == 0)
		count = 0;
	for (int i = count - 1; i >= 0 && !made; i--)
		if (made_ones[i].number == number)
			return made_ones[i].lasting;
	if (!made)
		return number;
	made_ones[count].number = number;
	return made_ones[count++].lasting = next++;
}

static void read_log(void)
{
	assert_true(bytes_of(in_base(&w, "log"), &log_bytes));
	op_count = 0;
	for (const char *at = log_bytes.data; at < log_bytes.data + log_bytes.length; op_count++) {
		struct logged_head head;
		struct op *op = &ops[op_count];

		assert_true(op_count < OPS);
		memcpy(&head, at, sizeof head);
		at += sizeof head;
		*op = (struct op){
		    head.what, lasting_number(head.inode, head.what == LOGGED_CREATE), head.offset, head.length, "", "",
		    NULL};
		relative(op->name, at, head.name_length);
		relative(op->other, at + head.name_length, head.other_length);
		op->bytes = at + head.name_length + head.other_length;
		at = op->bytes + head.length;
	}
}

static void log_end(void)
{
	struct logged_head head = {.what = LOGGED_END};
	int fd = open(in_base(&w, "log"), O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_int_equal(write(fd, &head, sizeof head), sizeof head);
	close(fd);
}

/* --- A disk ----------------------------------------------------------------------------------------------------- */

struct inode {
	uint64_t number;
	char *bytes;
	size_t length;
};

struct name {
	char path[WORLD_PATH];
	int inode; /* the index of the inode; -1: the name is that of a folder */
};

struct disk {
	struct inode inodes[INODES];
	struct name names[NAMES];
	int inode_count, name_count;
};

static struct disk before; /* the files that exist when the first run begins */
static struct disk disk;

static int inode_of(struct disk *d, uint64_t number)
{
	for (int i = 0; i < d->inode_count; i++)
		if (d->inodes[i].number == number)
			return i;
	assert_true(d->inode_count < INODES);
	d->inodes[d->inode_count] = (struct inode){.number = number};
	return d->inode_count++;
}

static void add_name(struct disk *d, const char *path, int inode)
{
	assert_true(d->name_count < NAMES);
	snprintf(d->names[d->name_count].path, WORLD_PATH, "%s", path);
	d->names[d->name_count++].inode = inode;
}

static int note_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	struct buf bytes = {0};

	if (walk->level == 0)
		return 0;
	path += strlen(w.root) + 1;
	if (type == FTW_D) {
		add_name(&before, path, -1);
		return 0;
	}
	int inode = inode_of(&before, st->st_ino);

	if (!bytes_of(in_root(&w, path), &bytes))
		return -1;
	before.inodes[inode].length = bytes.length;
	before.inodes[inode].bytes = bytes.data; /* `before` now owns the bytes */
	add_name(&before, path, inode);
	return 0;
}

static void free_disk(struct disk *d)
{
	for (int i = 0; i < d->inode_count; i++)
		free(d->inodes[i].bytes);
	*d = (struct disk){.inode_count = 0};
}

static void copy_disk(void)
{
	free_disk(&disk);
	disk = before;
	for (int i = 0; i < disk.inode_count; i++) {
		struct inode *inode = &disk.inodes[i];

		inode->bytes = malloc(inode->length + 1);
		if (inode->length > 0)
			memcpy(inode->bytes, before.inodes[i].bytes, inode->length);
	}
}

static void set_length(struct inode *inode, size_t length)
{
	inode->bytes = realloc(inode->bytes, length + 1);
	assert_non_null(inode->bytes);
	if (length > inode->length)
		memset(inode->bytes + inode->length, 0, length - inode->length);
	inode->length = length;
}

static void write_inode(const struct op *op, size_t from, size_t to)
{
	struct inode *inode = &disk.inodes[inode_of(&disk, op->inode)];

	if (op->offset + to > inode->length)
		set_length(inode, op->offset + to);
	memcpy(inode->bytes + op->offset + from, op->bytes + from, to - from);
}

/* --- What survives ---------------------------------------------------------------------------------------------- */

enum way { WAY_NOTHING, WAY_NAMES, WAY_CONTENTS, WAY_RANDOM };

static unsigned noise;

static unsigned draw(unsigned below)
{
	noise = noise * 1664525 + 1013904223;
	return (noise >> 8) % below;
}

static bool synced(int which, int cut)
{
	for (int i = which + 1; i < cut; i++)
		if (ops[i].what == LOGGED_SYNC && ops[i].inode == ops[which].inode)
			return true;
	return false;
}

static bool is_content(const struct op *op)
{
	return op->what == LOGGED_WRITE || op->what == LOGGED_SIZE;
}

static bool is_name(const struct op *op)
{
	return !is_content(op) && op->what != LOGGED_SYNC && op->what != LOGGED_END;
}

static void apply_content(const struct op *op, bool kept, enum way way)
{
	if (!kept && (way == WAY_NOTHING || way == WAY_NAMES))
		return;
	if (op->what == LOGGED_SIZE) {
		set_length(&disk.inodes[inode_of(&disk, op->inode)], op->offset);
	} else if (kept || way == WAY_CONTENTS) {
		write_inode(op, 0, op->length);
	} else if (draw(3) != 0) { /* any of the sectors of an unsynced write may reach the disk */
		for (size_t at = 0; at < op->length; at += SECTOR)
			if (draw(3) != 0)
				write_inode(op, at, at + SECTOR < op->length ? at + SECTOR : op->length);
	}
}

/* Returns a number n: if the power fails before operation `cut`, all changes of names by the first n operations are
 * certainly on the disk. Changes of names reach the disk in the order of the operations. The sync of a folder writes
 * all earlier changes to the disk. The sync of a file writes at least the change that created the file, and all changes
 * before it. */
static int names_synced(int cut)
{
	int certain = 0;

	for (int i = 0; i < cut; i++) {
		if (ops[i].what != LOGGED_SYNC)
			continue;
		bool folder = ops[i].offset != 0;

		for (int k = folder ? i : 0; k < i && !folder; k++)
			if (ops[k].what == LOGGED_CREATE && ops[k].inode == ops[i].inode && k + 1 > certain)
				certain = k + 1;
		if (folder)
			certain = i;
	}
	return certain;
}

static bool lies_in(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static void drop_name(const char *path)
{
	for (int i = 0; i < disk.name_count; i++)
		if (lies_in(disk.names[i].path, path))
			disk.names[i--] = disk.names[--disk.name_count];
}

static void move_names(const char *from, const char *to)
{
	char moved[2 * WORLD_PATH];

	for (int i = 0; i < disk.name_count; i++)
		if (lies_in(disk.names[i].path, from)) {
			snprintf(moved, sizeof moved, "%s%s", to, disk.names[i].path + strlen(from));
			snprintf(disk.names[i].path, WORLD_PATH, "%.*s", WORLD_PATH - 1, moved);
		}
}

static int inode_named(const char *path)
{
	for (int i = 0; i < disk.name_count; i++)
		if (strcmp(disk.names[i].path, path) == 0)
			return disk.names[i].inode;
	return -1;
}

static void apply_name(const struct op *op)
{
	switch (op->what) {
	case LOGGED_CREATE:
		add_name(&disk, op->name, inode_of(&disk, op->inode));
		break;
	case LOGGED_FOLDER:
		add_name(&disk, op->name, -1);
		break;
	case LOGGED_LINK:
		add_name(&disk, op->other, inode_named(op->name));
		break;
	case LOGGED_RENAME:
		drop_name(op->other);
		move_names(op->name, op->other);
		break;
	case LOGGED_EXCHANGE:
		move_names(op->name, "exchanged");
		move_names(op->other, op->name);
		move_names("exchanged", op->other);
		break;
	default:
		drop_name(op->name);
	}
}

static int shorter_first(const void *a, const void *b)
{
	return strcmp(((const struct name *)a)->path, ((const struct name *)b)->path);
}

static void put_disk(void)
{
	remove_tree(w.root);
	assert_int_equal(mkdir(w.root, 0777), 0);
	qsort(disk.names, (size_t)disk.name_count, sizeof *disk.names, shorter_first);
	for (int i = 0; i < disk.name_count; i++) {
		const struct name *name = &disk.names[i];

		if (name->inode < 0) {
			if (mkdir(in_root(&w, name->path), 0777) != 0)
				fail_msg("%s cannot be made: %s", name->path, strerror(errno));
			continue;
		}
		int fd = open(in_root(&w, name->path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		const struct inode *inode = &disk.inodes[name->inode];

		assert_true(fd >= 0 &&
			    (inode->length == 0 || write(fd, inode->bytes, inode->length) == (ssize_t)inode->length));
		close(fd);
	}
}

/* Builds the root folder as a disk may contain it if the power fails before operation `cut`. */
static void cut_power(int cut, enum way way)
{
	int names = names_synced(cut);

	copy_disk();
	if (way == WAY_NAMES)
		names = cut;
	if (way == WAY_RANDOM)
		names += (int)draw((unsigned)(cut - names + 1));
	for (int i = 0; i < cut; i++) {
		if (is_content(&ops[i]))
			apply_content(&ops[i], synced(i, cut), way);
		else if (is_name(&ops[i]) && i < names)
			apply_name(&ops[i]);
	}
	put_disk();
}

/* --- the runs ----------------------------------------------------------------------------------------------------- */

static const char *const force[] = {"verify", "--force", "--device", "cpu", "--sizes", "small", "--jobs", "1", NULL};
static const char *const gc[] = {"cache", "gc", NULL};
static const char *const import[] = {"cache", "import", "../second.archive", NULL};
static const char *const export[] = {"cache", "export", "archive", NULL};
static const char *const generate[] = {"generate", NULL};

static const struct scenario {
	const char *name, *state;
	const char *const *runs[RUNS];
	const struct expected *expected;
	bool begun; /* a cache exists before the first run, so no run may find a damaged cache and set it aside */
	int cuts_least;
} scenarios[] = {
    {"verify after an edit", "edited", {run_verify, force}, second_texts, true, 150},
    {"the first verify", "fresh", {run_verify, force}, first_texts, false, 150},
    {"import, and a run", "edited", {import, force}, second_texts, true, 150},
    {"gc, and runs", "large.edited", {gc, run_verify, force}, second_texts, true, 300},
    {"export over a file", "exported", {export}, second_texts, true, 35},
    {"generate", "edited", {generate, run_verify}, second_texts, true, 150},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

static struct known_list after[RUNS + 1]; /* after[i]: the verdicts that are stored after the first i runs */

static void play(const struct scenario *s)
{
	begin_with(&w, s->state);
	free_disk(&before);
	assert_int_equal(nftw(w.root, note_one, 16, FTW_PHYS), 0);
	write_text(in_base(&w, "log"), "");
	snprintf(w.faults->log, sizeof w.faults->log, "%s", in_base(&w, "log"));
	for (int i = 0; i < RUNS; i++) {
		if (read_known(w.root, &after[i]) != 0)
			fail_msg("%s: the cache cannot be read before run %d", s->name, i);
		if (s->runs[i] == NULL)
			break;
		int code = run_plainly(&w, s->runs[i]);

		if (code != 0 && code != 1)
			fail_msg("%s: run %d ended with %d", s->name, i, code);
		log_end();
	}
	w.faults->log[0] = '\0';
	read_log();
}

/* Returns the number of runs whose verdicts must be in the cache, because the cache was synced after these runs
 * ended. */
static int runs_kept(int cut)
{
	int runs = 0, ended = 0;

	for (int i = 0; i < cut; i++) {
		ended += ops[i].what == LOGGED_END;
		if (ops[i].what == LOGGED_SYNC && strstr(ops[i].name, "data.mdb") != NULL)
			runs = ended;
	}
	return runs;
}

static const char *archive_whole(void)
{
	struct buf now = {0}, old = {0}, new = {0};
	bool there = bytes_of(in_root(&w, "archive"), &now);

	bytes_of(in_base(&w, "first.archive"), &old);
	bytes_of(in_base(&w, "second.archive"), &new);
	bool good = there && ((now.length == old.length && memcmp(now.data, old.data, old.length) == 0) ||
			      (now.length == new.length &&memcmp(now.data, new.data, new.length) == 0));

	buf_free(&now);
	buf_free(&old);
	buf_free(&new);
	return good ? NULL : "the exported file is neither the old nor the new one";
}

/* A generated file is synced before it gets its name. Therefore a power failure leaves no incomplete file, which the
 * program would treat as an edited one. The next run writes missing files again. */
static const char *made_again(void)
{
	static const char path[] = "tests/references/test_gemm.py";
	struct buf now = {0}, right = {0};
	int code = run_plainly(&w, generate);
	bool good = code == 0 && bytes_of(in_root(&w, path), &now) && bytes_of(in_base(&w, "test_gemm.py"), &right) &&
		    now.length == right.length && memcmp(now.data, right.data, right.length) == 0;

	buf_free(&now);
	buf_free(&right);
	return good ? NULL : "the generated file is not written again";
}

static const char *look_at(const struct scenario *s, int cut, bool thoroughly)
{
	static struct known_list right;
	const char *why = strcmp(s->name, "export over a file") == 0 ? archive_whole() : NULL;

	right = second;
	if (why == NULL && s->begun)
		why = wrong_store(&w, &after[runs_kept(cut)], &right);
	if (why == NULL && run_plainly(&w, run_cached) < 0)
		why = "the next run ends by a signal";
	if (why == NULL)
		why = wrong_status(&w, s->expected, true);
	if (why == NULL && (s->begun || runs_kept(cut) > 0))
		why = wrong_store(&w, &after[runs_kept(cut)], &right);
	if (why == NULL && thoroughly)
		why = run_plainly(&w, run_verify) != 1 ? "a run does not end as it should"
						       : wrong_status(&w, s->expected, false);
	if (why == NULL && s->runs[0] == generate)
		why = made_again();
	if (why == NULL && (s->begun || runs_kept(cut) > 0) && access(in_root(&w, ".reftest/cache.aside-1"), F_OK) == 0)
		why = "the cache was set aside";
	return why;
}

static int run_scenario(const struct scenario *s)
{
	int cuts = 0;

	play(s);
	for (int cut = 0; cut <= op_count; cut++)
		for (int way = 0; way < WAY_RANDOM + RANDOM_WAYS; way++, cuts++) {
			noise = (unsigned)(cut * 64 + way);
			cut_power(cut, way < WAY_RANDOM ? (enum way)way : WAY_RANDOM);
			const char *why = look_at(s, cut, cuts % 11 == 0);

			if (why != NULL)
				fail_msg("%s, power cut before %d of %d, way %d: %s\n%s%s", s->name, cut, op_count, way,
					 why, printed(&w.out), printed(&w.err));
		}
	print_message("%-24s %3d operations, %5d cuts\n", s->name, op_count, cuts);
	if (cuts < s->cuts_least)
		fail_msg("%s: only %d cuts", s->name, cuts);
	return cuts;
}

static void after_every_power_cut(void **state)
{
	const char *only = getenv("SCENARIO");
	int cuts = 0;

	(void)state;
	for (int i = 0; i < SCENARIOS; i++)
		if (only == NULL || strcmp(only, scenarios[i].name) == 0)
			cuts += run_scenario(&scenarios[i]);
	print_message("%d power cuts\n", cuts);
	assert_true(only != NULL || cuts >= CUTS_LEAST);
}

/* Returns true if the file was synced before the operation `made` renamed it. */
static bool synced_before(const struct op *made)
{
	for (const struct op *op = ops; op < made; op++)
		if (op->what == LOGGED_SYNC && strcmp(op->name, made->name) == 0)
			return true;
	return false;
}

static void of_many_generated_files_each_is_synced(void **state)
{
	static const char *const each[] = {"generate", "--layout", "definition", NULL};
	enum { MANY = 200 };
	int renamed = 0;

	(void)state;
	begin_with(&w, "edited");
	for (int i = 0; i < MANY; i++) {
		char name[32];

		snprintf(name, sizeof name, "many_%d", i);
		define(&w, name, "PRODUCT");
	}
	write_text(in_base(&w, "log"), "");
	snprintf(w.faults->log, sizeof w.faults->log, "%s", in_base(&w, "log"));
	assert_int_equal(run_plainly(&w, each), 0);
	w.faults->log[0] = '\0';
	read_log();
	for (int i = 0; i < op_count; i++) {
		if (ops[i].what != LOGGED_RENAME || strncmp(ops[i].other, "tests/references/", 17) != 0)
			continue;
		renamed++;
		if (!synced_before(&ops[i]))
			fail_msg("%s has its name before its content is on the disk", ops[i].other);
	}
	assert_true(renamed > MANY);
}

static int make_world(void **state)
{
	struct buf archive = {0};

	(void)state;
	world_make(&w);
	assert_int_equal(mkdir(w.root, 0777), 0);
	write_first_texts(&w);
	save_as(&w, "fresh");
	must_run(&w, run_verify, 1);
	assert_int_equal(read_known(w.root, &first), 0);
	export_to(&w, "first.archive");
	write_second_texts(&w);
	save_as(&w, "edited");
	must_run(&w, generate, 0);
	assert_int_equal(rename(in_root(&w, "tests/references/test_gemm.py"), in_base(&w, "test_gemm.py")), 0);
	begin_with(&w, "edited");
	fill_cache(&w);
	save_as(&w, "large.edited");
	begin_with(&w, "edited");
	must_run(&w, run_verify, 1);
	assert_int_equal(read_known(w.root, &second), 0);
	export_to(&w, "second.archive");
	assert_true(bytes_of(in_base(&w, "first.archive"), &archive));
	write_bytes(in_root(&w, "archive"), archive.data, archive.length);
	save_as(&w, "exported");
	buf_free(&archive);
	return 0;
}

static int free_world(void **state)
{
	(void)state;
	free_disk(&before);
	free_disk(&disk);
	buf_free(&log_bytes);
	world_free(&w);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(after_every_power_cut),
					   cmocka_unit_test(of_many_generated_files_each_is_synced)};

	return cmocka_run_group_tests(tests, make_world, free_world);
}
