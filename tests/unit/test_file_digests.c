/* test_file_digests - a run finds the stored record of each file of a dataset. In large datasets, two threads read the
 * records. The store is real. The files are fakes; for each file, the test keeps the record that the run finds. */
#include "engine/file_digests.h"

#include "engine/disk_store.h"
#include "tests/unit/store_world.h"

enum { FILES = 1300 };

/* A dataset of `definitions` definitions and `workloads` workload files. The store has a record for every second
 * file. */
struct scene {
	struct place *place;
	struct program program;
	struct dataset dataset;
	struct file_digests *digests;
};

static bool holds(void *self, const struct dataset_file *file, const struct file_seen *earlier)
{
	(void)self, (void)file, (void)earlier;
	return true;
}

static int cannot_read(void *self, const struct dataset_file *file, size_t limit, struct buf *bytes, struct stat_check *out,
		       struct err *err)
{
	(void)self, (void)limit, (void)bytes, (void)out;
	return err_set(err, "%s has no record", file->path);
}

static struct blob return_record(void *self, enum blob_use use, const char *path, const struct file_seen *earlier, bool to_run,
				 struct arena *arena, struct file_seen *seen, bool *read)
{
	struct blob blob = {.use = use, .path = path, .missing = earlier == NULL ? "no record" : NULL};

	(void)self, (void)to_run, (void)arena, (void)seen, (void)read;
	if (earlier != NULL)
		blob.content = earlier->content;
	return blob;
}

static struct file_entry entry_of(const char *path)
{
	return (struct file_entry){.path = path, .seen = {.read_ns = 1, .content = digest_of(path, strlen(path))}};
}

static const struct dataset_file *make_files(struct scene *scene, const char *pattern, int count, struct buf *entries)
{
	struct arena *arena = &scene->place->arena;
	struct dataset_file *files = arena_array(arena, (size_t)count, sizeof *files);

	for (int i = 0; i < count; i++) {
		files[i].path = arena_printf(arena, pattern, i);
		struct file_entry entry = entry_of(files[i].path);

		if (i % 2 == 0)
			buf_add(entries, &entry, sizeof entry);
	}
	return files;
}

/* The store also has records of these files, which are not in the dataset. In the order of names, these files are
 * before, between and after the files of the dataset. */
static const char *const others[] = {"a", "definitions/a/0/x", "u", "workloads/", "workloads/a/00001", "workloads/z", "x"};

static void make_scene(struct scene *scene, int definitions, int workloads)
{
	static const struct run_files_calls calls = {.holds = holds, .read = cannot_read, .blob = return_record};
	struct place *p = scene->place;
	struct buf entries = {0};

	scene->dataset.definitions = make_files(scene, "definitions/a/%05d.json", definitions, &entries);
	scene->dataset.definition_count = definitions;
	scene->dataset.workloads = make_files(scene, "workloads/a/%05d.jsonl", workloads, &entries);
	scene->dataset.workload_count = workloads;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		struct file_entry entry = entry_of(others[i]);

		buf_add(&entries, &entry, sizeof entry);
	}
	scene->program.store = open_here(p);
	assert_int_equal(store_put_files(scene->program.store, (const struct file_entry *)(const void *)entries.data,
					 (int)(entries.length / sizeof(struct file_entry)), NULL, 0, &p->err), 0);
	buf_free(&entries);
	scene->digests = file_digests_open(disk_store(&scene->program), &scene->dataset, (struct run_files){&calls, NULL},
					 &p->arena, &p->err);
	assert_non_null(scene->digests);
}

static void check_files(struct scene *scene, const struct dataset_file *files, int count)
{
	struct buf bytes = {0};
	struct stat_check found;

	for (int i = 0; i < count; i++) {
		const struct digest own = digest_of(files[i].path, strlen(files[i].path));
		int rc = file_digests_check(scene->digests, &files[i], 0, false, &bytes, &found, NULL);

		assert_int_equal(rc, i % 2 == 0 ? 0 : -1);
		if (rc == 0)
			assert_true(digest_equal(&found.seen.content, &own));
	}
	buf_free(&bytes);
}

static void check_scene(struct scene *scene)
{
	check_files(scene, scene->dataset.definitions, scene->dataset.definition_count);
	check_files(scene, scene->dataset.workloads, scene->dataset.workload_count);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		const struct digest own = digest_of(others[i], strlen(others[i]));
		struct blob blob = file_digests_blob(scene->digests, BLOB_READ, others[i], false, &scene->place->arena);

		assert_null(blob.missing);
		assert_true(digest_equal(&blob.content, &own));
	}
	assert_non_null(file_digests_blob(scene->digests, BLOB_READ, "workloads/b", false, &scene->place->arena).missing);
	store_close(scene->program.store);
}

static void each_file_of_a_small_dataset_gets_its_own_record(void **state)
{
	struct scene scene = {.place = *state};

	make_scene(&scene, 7, 5);
	check_scene(&scene);
}

static void each_file_of_a_large_dataset_gets_its_own_record(void **state)
{
	struct scene scene = {.place = *state};

	make_scene(&scene, FILES, FILES);
	check_scene(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(each_file_of_a_small_dataset_gets_its_own_record, place_make, place_remove),
	    cmocka_unit_test_setup_teardown(each_file_of_a_large_dataset_gets_its_own_record, place_make, place_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
