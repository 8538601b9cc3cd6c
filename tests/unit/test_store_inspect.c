/* test_store_inspect - `cache check` finds any single changed byte of any record, in its key or its value. LMDB tells
 * the test where the records are, so the test misses no record, and does not take a free page for a record. */
#include "tests/unit/program_world.h"

#include <lmdb.h>

enum { RANGES = 256, OCTETS_LEAST = 4000, TABLES = 5 };

static struct world w;

/* --- the addresses of the records --------------------------------------------------------------------------------- */

struct range {
	off_t at;
	size_t length;
};

struct ranges {
	struct range items[RANGES];
	int count, of_table[TABLES];
	const char *map;
};

static void add_range(struct ranges *ranges, const MDB_val *value)
{
	assert_true(ranges->count < RANGES);
	ranges->items[ranges->count++] = (struct range){(const char *)value->mv_data - ranges->map, value->mv_size};
}

/* Visits the records of one table. LMDB's main table also has an entry for each other table, and these entries are
 * skipped. */
static int walk_table(struct ranges *ranges, MDB_txn *txn, const char *name)
{
	MDB_cursor *cursor;
	MDB_val key, value;
	MDB_dbi dbi;
	int before = ranges->count;

	assert_int_equal(mdb_dbi_open(txn, name, 0, &dbi), 0);
	assert_int_equal(mdb_cursor_open(txn, dbi, &cursor), 0);
	while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
		if (value.mv_size > 4 && memcmp(value.mv_data, "rftr", 4) == 0) {
			add_range(ranges, &key);
			add_range(ranges, &value);
		}
	mdb_cursor_close(cursor);
	return (ranges->count - before) / 2;
}

/* Returns the address at which this process has mapped the data file. */
static const char *mapped_at(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 128];
	unsigned long long start = 0;

	assert_non_null(maps);
	while (start == 0 && fgets(line, sizeof line, maps) != NULL)
		if (strstr(line, "/data.mdb") != NULL)
			start = strtoull(line, NULL, 16);
	fclose(maps);
	assert_true(start != 0);
	return (const char *)(uintptr_t)start;
}

static void find_records(struct ranges *ranges)
{
	static const char *const tables[TABLES] = {NULL, "verdicts", "latest", "files", "facts"};
	MDB_env *env;
	MDB_txn *txn;

	assert_int_equal(mdb_env_create(&env), 0);
	assert_int_equal(mdb_env_set_maxdbs(env, 8), 0);
	assert_int_equal(mdb_env_open(env, in_root(&w, ".reftest/cache"), MDB_RDONLY | MDB_NOLOCK, 0), 0);
	ranges->map = mapped_at();
	assert_int_equal(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
	for (int i = 0; i < TABLES; i++)
		ranges->of_table[i] = walk_table(ranges, txn, tables[i]);
	mdb_txn_abort(txn);
	mdb_env_close(env);
}

/* --- Changing them ---------------------------------------------------------------------------------------------- */

static void tell(const char *sentence, void *context)
{
	*(struct err *)context = (struct err){""};
	err_set(context, "%s", sentence);
}

/* Checks the store as `reftest cache check` does. Returns true if damage was found. */
static bool found(struct err *said)
{
	struct store_options options = {.read_only = true};
	struct store_inspected seen;
	struct err note, err;

	if (store_damage(w.root, said) > 0)
		return true;
	struct store *store = store_open(w.root, &options, &note, said);

	if (store == NULL)
		return said->text[0] != '\0';
	assert_int_equal(store_inspect(store, tell, said, &seen, &err), 0);
	store_close(store);
	return seen.bad > 0;
}

static void change(off_t at, unsigned char bits)
{
	int fd = open(in_root(&w, ".reftest/cache/data.mdb"), O_RDWR | O_CLOEXEC);
	unsigned char byte;

	assert_true(fd >= 0 && pread(fd, &byte, 1, at) == 1);
	byte ^= bits;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void a_change_of_any_byte_of_any_record_is_found(void **state)
{
	struct ranges ranges = {.count = 0};
	struct err said = {""};
	int bytes = 0;

	(void)state;
	find_records(&ranges);
	for (int i = 0; i < TABLES; i++)
		if (ranges.of_table[i] == 0)
			fail_msg("there is no record in table %d of format, verdicts, cases, files, facts", i);
	if (found(&said))
		fail_msg("damage is reported before any byte was changed: %s", said.text);
	for (int i = 0; i < ranges.count; i++)
		for (size_t at = 0; at < ranges.items[i].length; at++, bytes++) {
			off_t place = ranges.items[i].at + (off_t)at;
			unsigned char bits = (unsigned char)(bytes % 3 == 0 ? 0xFF : 1 << bytes % 8);

			said.text[0] = '\0';
			change(place, bits);
			if (!found(&said) || said.text[0] == '\0')
				fail_msg("byte %zu of range %d, changed by %02x, is not found, or not reported", at, i,
					 bits);
			change(place, bits);
		}
	assert_false(found(&said));
	print_message("%d bytes of %d records\n", bytes, ranges.count / 2);
	assert_true(bytes >= OCTETS_LEAST);
}

static int make_store(void **state)
{
	(void)state;
	world_make(&w);
	define(&w, "one", "PRODUCT");
	define(&w, "three", "RAISES ");
	must_run(&w, run_verify, 1);
	return 0;
}

static int free_store(void **state)
{
	(void)state;
	world_free(&w);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(a_change_of_any_byte_of_any_record_is_found, make_store, free_store)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
