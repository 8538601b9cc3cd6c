/* test_store_processes - no stored verdict is lost because another process writes at the same time or is killed.
 *
 * LMDB does not allow the use of a handle after a fork, so each child process is forked before the store is opened. */
#include "tests/unit/store_world.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>

#include <lmdb.h>

/* --- Other processes ---------------------------------------------------------------------------------------------- */

/* A child process that runs `work`. The test controls the steps of the child through two pipes. */
struct child {
	pid_t pid;
	int to, from;
};

static void tell(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(98);
}

static void hear(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		_exit(97);
}

static struct child child_start(struct place *p, void (*work)(struct place *, int in_fd, int out_fd))
{
	struct child child;
	int to[2], from[2];

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	child.pid = fork();
	if (child.pid == 0) {
		close(to[1]);
		close(from[0]);
		work(p, to[0], from[1]);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	child.to = to[1];
	child.from = from[0];
	return child;
}

static int child_end(struct child child)
{
	int status = -1;

	close(child.to);
	waitpid(child.pid, &status, 0);
	close(child.from);
	return status;
}

/* The child that mdb_env_set_mapsize asks to write, once; NULL: none. */
static struct child *writes_while_a_map_is_adopted;

/* This function is called in place of LMDB's. A size of 0 stands for the size that another process chose. */
__attribute__((visibility("default"))) int mdb_env_set_mapsize(MDB_env *env, size_t size)
{
	struct child *child = size == 0 ? writes_while_a_map_is_adopted : NULL;
	int (*real)(MDB_env *, size_t);

	*(void **)&real = dlsym(RTLD_NEXT, "mdb_env_set_mapsize");
	int rc = real(env, size);

	if (child != NULL) {
		writes_while_a_map_is_adopted = NULL;
		tell(child->to);
		hear(child->from);
	}
	return rc;
}

static void write_some(struct place *p, int in_fd, int out_fd)
{
	tell(out_fd);
	hear(in_fd);
	struct store *store = try_open(p, false);

	if (store == NULL)
		_exit(1);
	for (int i = 0; i < 20; i++)
		if (put_number(p, store, (int)getpid() * 1000 + i, 500) != 0)
			_exit(2);
	for (int i = 0; i < 20; i++)
		if (get_number(p, store, (int)getpid() * 1000 + i, 500) != CACHE_HIT)
			_exit(3);
	store_close(store);
}

/* Several processes open the store at the same moment and write to it. The store must then have all their verdicts. */
static void open_at_once(struct place *p)
{
	enum { CHILDREN = 6 };
	struct child children[CHILDREN];

	for (int i = 0; i < CHILDREN; i++)
		children[i] = child_start(p, write_some);
	for (int i = 0; i < CHILDREN; i++)
		hear(children[i].from);
	for (int i = 0; i < CHILDREN; i++)
		tell(children[i].to);
	for (int i = 0; i < CHILDREN; i++)
		assert_int_equal(child_end(children[i]), 0);
	struct store *store = open_here(p);

	assert_string_equal(p->note.text, "");
	for (int i = 0; i < CHILDREN; i++)
		assert_there(p, store, (int)children[i].pid * 1000, (int)children[i].pid * 1000 + 20, 500);
	store_close(store);
}

static void several_processes_begin_and_write_one_store_at_once(void **state)
{
	struct place *p = *state;

	for (int round = 0; round < 10; round++) {
		nftw(in(p, ""), remove_one, 16, FTW_DEPTH | FTW_PHYS);
		open_at_once(p);
		assert_false(there(p, "cache.aside-1"));
	}
}

static void of_several_processes_that_find_garbage_one_sets_it_aside(void **state)
{
	struct place *p = *state;
	size_t length;

	fill(p, 500, 1500); /* a check of this many records takes so long that all processes check the store at the same
			     * time */
	char *bytes = slurp(p, &length);

	for (int round = 0; round < 10; round++) {
		nftw(in(p, ""), remove_one, 16, FTW_DEPTH | FTW_PHYS);
		fill(p, 1, 10);
		int fd = open(in(p, "cache/data.mdb"), O_WRONLY | O_TRUNC);

		assert_int_equal(write(fd, bytes, length - page_size()), length - page_size());
		close(fd);
		open_at_once(p);
		assert_true(there(p, "cache.aside-1"));
		assert_false(there(p, "cache.aside-2"));
	}
	free(bytes);
}

static void write_beyond_the_map(struct place *p, int in_fd, int out_fd)
{
	hear(in_fd);
	struct store *store = try_open(p, false);

	for (int i = 0; i < 24; i++)
		if (store == NULL || put_number(p, store, i, 1 << 20) != 0)
			_exit(1);
	tell(out_fd);
	hear(in_fd);
	store_close(store);
}

static void a_map_grown_by_another_process_is_adopted(void **state)
{
	struct place *p = *state;
	struct child child = child_start(p, write_beyond_the_map);
	struct store *store = open_here(p); /* at this moment, the memory map has LMDB's small initial size */

	assert_int_equal(get_number(p, store, 0, 1 << 20), CACHE_MISS);
	tell(child.to);
	hear(child.from);
	assert_there(p, store, 0, 24, 1 << 20);
	assert_int_equal(put_number(p, store, 24, 1 << 20), 0);
	assert_there(p, store, 0, 25, 1 << 20);
	tell(child.to);
	assert_int_equal(child_end(child), 0);
	store_close(store);
}

/* Stores 24 MiB each time that the test asks for it. The map must be enlarged for the first 24 MiB, and again for the
 * second. */
static void write_beyond_two_maps(struct place *p, int in_fd, int out_fd)
{
	hear(in_fd);
	struct store *store = try_open(p, false);

	for (int i = 0; i < 48; i++) {
		if (store == NULL || put_number(p, store, i, 1 << 20) != 0)
			_exit(1);
		if (i % 24 == 23) {
			tell(out_fd);
			hear(in_fd);
		}
	}
	store_close(store);
}

typedef void map_use(struct place *p, struct store *store);

static void use_a_map_that_grows_again(struct place *p, map_use *use)
{
	struct child child = child_start(p, write_beyond_two_maps);
	struct store *store = open_here(p);

	tell(child.to);
	hear(child.from);
	writes_while_a_map_is_adopted = &child;
	use(p, store);
	assert_null(writes_while_a_map_is_adopted); /* the child wrote its second 24 MiB meanwhile */
	assert_there(p, store, 0, 48, 1 << 20);
	tell(child.to);
	assert_int_equal(child_end(child), 0);
	store_close(store);
}

static void write_one(struct place *p, struct store *store)
{
	assert_int_equal(put_number(p, store, 48, 1 << 20), 0);
}

static void a_map_that_grows_again_while_it_is_adopted_is_written(void **state)
{
	use_a_map_that_grows_again(*state, write_one);
}

static void read_one(struct place *p, struct store *store)
{
	assert_int_equal(get_number(p, store, 0, 1 << 20), CACHE_HIT);
}

static void a_map_that_grows_again_while_it_is_adopted_is_read(void **state)
{
	use_a_map_that_grows_again(*state, read_one);
}

static void write_for_ever(struct place *p, int in_fd, int out_fd)
{
	struct store *store = try_open(p, false);

	(void)in_fd;
	for (int i = 0; store != NULL; i++) {
		if (put_number(p, store, i, 700) != 0)
			_exit(1);
		arena_free(&p->arena);
		tell(out_fd); /* tells the test that verdict i is stored */
	}
}

static void a_writer_killed_at_any_moment_leaves_all_that_it_reported(void **state)
{
	struct place *p = *state;
	int reported = 0;

	for (int round = 0; round < 20; round++) {
		struct child child = child_start(p, write_for_ever);
		char c;

		reported = 0;
		for (int i = 0; i <= round * 3; i++) {
			hear(child.from);
			reported++;
		}
		kill(child.pid, SIGKILL);
		while (read(child.from, &c, 1) == 1)
			reported++;
		child_end(child);
		struct store *store = open_here(p);

		assert_string_equal(p->note.text, "");
		assert_there(p, store, 0, reported, 700);
		/* the lock of the dead process does not block others */
		assert_int_equal(put_number(p, store, 100000 + round, 10), 0);
		store_close(store);
	}
}

static void open_and_hold(struct place *p, int in_fd, int out_fd)
{
	struct store *store = try_open(p, false);

	if (store == NULL || put_number(p, store, 1, 10) != 0)
		_exit(1);
	tell(out_fd);
	hear(in_fd);
	/* the verdict is added to the new store, not to the one that was set aside */
	if (put_number(p, store, 2, 10) != 0)
		_exit(2);
	store_close(store);
}

static void a_store_that_another_process_set_aside_is_left_behind(void **state)
{
	struct place *p = *state;
	struct child child = child_start(p, open_and_hold);

	hear(child.from);
	assert_int_equal(rename(in(p, "cache"), in(p, "cache.aside-1")), 0);
	struct store *store = open_here(p);

	assert_int_equal(get_number(p, store, 1, 10), CACHE_MISS);
	tell(child.to);
	assert_int_equal(child_end(child), 0);
	assert_int_equal(get_number(p, store, 2, 10), CACHE_HIT);
	store_close(store);
}

static void readers_and_a_writer_work_side_by_side(void **state)
{
	struct place *p = *state;
	struct child child = child_start(p, write_for_ever);
	struct store *store;

	struct store_stats stats;

	hear(child.from);
	store = try_open(p, true);
	assert_non_null(store);
	assert_int_equal(store_stats(store, &stats, &p->err), 0);
	assert_false(stats.checked); /* not checked, because another process has the store open */
	for (int i = 0; i < 100; i++) {
		assert_there(p, store, i, i + 1, 700);
		hear(child.from);
	}
	kill(child.pid, SIGKILL);
	child_end(child);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    HERE(several_processes_begin_and_write_one_store_at_once),
	    HERE(of_several_processes_that_find_garbage_one_sets_it_aside),
	    HERE(a_map_grown_by_another_process_is_adopted),
	    HERE(a_map_that_grows_again_while_it_is_adopted_is_written),
	    HERE(a_map_that_grows_again_while_it_is_adopted_is_read),
	    HERE(a_writer_killed_at_any_moment_leaves_all_that_it_reported),
	    HERE(a_store_that_another_process_set_aside_is_left_behind),
	    HERE(readers_and_a_writer_work_side_by_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
