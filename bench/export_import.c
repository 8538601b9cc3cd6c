/* export_import - measures the time of an export and an import of N verdicts (100 000 by default), the bytes per
 * verdict, the lookups per second in the store, and the start-up time of the program. The results depend on the machine
 * and its load. The verdicts are synthetic: 6 cases per definition, 22 fields per case, about 1.2 KB of JSON. There are
 * two kinds of verdicts. In verdicts of the kind `alike`, reference and ground truth agree bit for bit in most outputs,
 * as on a CPU. In verdicts of the kind `noisy`, the worst elements of each output differ by one ULP of bfloat16, and
 * all other numbers are random. */
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cache/export_import.h"
#include "cache/fingerprint.h"
#include "cache/witness.h"
#include "cache/store.h"
#include "dataset/verdict.h"

enum { CASES = 6, BATCH = 600, LOOKUPS = 200000, STARTS = 101 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the processor time of all threads in seconds. */
static double processor(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static double uniform(void)
{
	return (double)(draw() >> 11) * 0x1p-53;
}

/* Returns a random bfloat16 value. Sets `unit` to the exponent of the value's lowest bit. */
static double coarse(int *unit)
{
	*unit = (int)(draw() % 8) - 10;
	return ldexp(128 + (double)(draw() % 128), *unit) * (draw() % 2 == 0 ? 1 : -1);
}

static void make_metrics(struct metrics *m, int64_t elements, bool noisy)
{
	*m = (struct metrics){.elements = elements, .hits = elements, .cosine = 1, .passed = true, .worst_count = 5};
	if (noisy) {
		m->max_abs = uniform();
		m->mean_abs = uniform() * 1e-3;
		m->max_rel = uniform();
		m->mean_rel = uniform() * 1e-3;
		m->cosine = 1 - uniform() * 1e-6;
		m->mse = uniform() * 1e-6;
		m->margin = uniform();
	}
	for (int i = 0; i < 5; i++) {
		m->worst[i].index = noisy ? (int64_t)(draw() % (uint64_t)elements) : i;
		int unit;

		m->worst[i].reference = m->worst[i].ground_truth = coarse(&unit);
		if (noisy)
			m->worst[i].ground_truth += ldexp(m->worst[i].reference < 0 ? -1 : 1, unit);
		m->worst[i].diff = fabs(m->worst[i].reference - m->worst[i].ground_truth);
	}
}

static void make_verdict(int number, bool noisy, struct buf *text)
{
	struct output_verdict output = {.name = "output",
					.ground_truth = "builtin",
					.atol = 0x1p-126,
					.rtol = 0x1p-7,
					.hit_ratio = 1,
					.rank = 2,
					.shape = {1 << number % CASES, 4096}};
	static const struct named_value eps = {"eps", "model:llama-3.1-8b", 1e-5};
	struct verdict verdict = {.device_class = "cpu",
				  .device = "cpu",
				  .ground_truth = "builtin",
				  .torch = "2.13.0+cpu",
				  .ground_truth_version = "981df1974586318d4f36e9aae39c151e",
				  .seconds = uniform() / 100,
				  .time = 1795314088 + number / 100,
				  .elements = (int64_t)4096 << number % CASES,
				  .outputs = &output,
				  .output_count = 1,
				  .constants = &eps,
				  .constant_count = 1};

	make_metrics(&output.metrics, verdict.elements, noisy || draw() % 8 == 0);
	buf_clear(text);
	verdict_write(&verdict, text);
}

/* Makes the fingerprint fields (cache/fingerprint.h) of a case of a norm. The fields that are equal in all cases of a
 * definition are derived from the definition's number. */
static void make_fields(int number, struct arena *arena, struct fields *subject, struct fields *witness)
{
	static const char *const shared[] = {"axes.batch_size",
					     "constants.eps",
					     "constraints",
					     "family",
					     "family.inputs",
					     "checker",
					     "inputs.hidden_states",
					     "inputs.weight",
					     "outputs.output",
					     "seed",
					     "op_type",
					     "tolerance.output.atol",
					     "tolerance.output.rtol",
					     "case.inputs.hidden_states",
					     "case.inputs.weight"};

	for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
		field_text(subject, arena, shared[i], "a value that all of them have");
	const char *size = arena_printf(arena, "const %d", 64 * (1 + number / CASES % 100));

	field_add(subject, arena, "axes.hidden_size", size + strlen("const "), size, strlen(size));
	field_add(subject, arena, "reference", NULL, arena_printf(arena, "the text of %d", number / CASES), 12);
	field_printf(subject, arena, "reference", "%d", number / CASES);
	field_printf(subject, arena, "case.axes.batch_size", "%d", 1 << number % CASES);
	witness_fields("builtin", "981df1974586318d4f36e9aae39c151e", "cpu", "2.13.0+cpu", NULL, NULL, arena, witness);
}

static void make_put(int number, bool noisy, struct arena *arena, struct store_put *put)
{
	struct fields subject = {0}, witness = {0};
	struct buf text = {0}, packed = {0};

	make_fields(number, arena, &subject, &witness);
	*put = (struct store_put){
	    .subject = fields_digest(&subject), .witness = fields_digest(&witness), .keep_verdict = true};
	for (int i = 0; i < witness.count; i++)
		field_add(&subject, arena, "", NULL, "", 0);
	memcpy(&subject.items[subject.count - witness.count], witness.items,
	       (size_t)witness.count * sizeof(struct field));
	make_verdict(number, noisy, &text);
	fields_write(&subject, &packed);
	put->text = arena_copy(arena, text.data, text.length);
	put->length = text.length;
	put->fields = arena_copy(arena, packed.data, packed.length);
	put->fields_length = packed.length;
	put->definition = arena_printf(arena, "rmsnorm/rmsnorm_h%d", number / CASES);
	put->case_id = arena_printf(arena, "small:batch_size=%d", 1 << number % CASES);
	buf_free(&text);
	buf_free(&packed);
}

static void give_up(const struct err *err)
{
	fprintf(stderr, "bench/travel: %s\n", err->text);
	exit(1);
}

static struct store *open_store(const char *root)
{
	struct store_options options = {0};
	struct err note, err;
	struct store *store = store_open(root, &options, &note, &err);

	if (store == NULL)
		give_up(&err);
	return store;
}

static void fill(struct store *store, int count, bool noisy, struct digest *subjects, struct digest *witness)
{
	struct store_put puts[BATCH];
	struct err err;

	for (int i = 0; i < count;) {
		struct arena arena = {0};
		int n = 0;

		for (; n < BATCH && i < count; n++, i++) {
			make_put(i, noisy, &arena, &puts[n]);
			subjects[i] = puts[n].subject;
			*witness = puts[n].witness;
		}
		if (store_put(store, puts, n, &err) != 0)
			give_up(&err);
		arena_free(&arena);
	}
}

static void complain(const char *sentence, int64_t count, void *context)
{
	(void)context;
	fprintf(stderr, "refused %lld: %s\n", (long long)count, sentence);
	exit(1);
}

static void look_up(struct store *store, const struct digest *subjects, int count, const struct digest *witness)
{
	double start = now();

	for (int i = 0; i < LOOKUPS; i++) {
		struct arena arena = {0};
		const char *text;
		size_t length;

		if (store_verdict(store, &subjects[draw() % (uint64_t)count], witness, &arena, &text, &length, NULL) !=
		    CACHE_HIT)
			exit(1);
		arena_free(&arena);
	}
	printf("  lookups: %.0f a second\n", LOOKUPS / (now() - start));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static void travel(const char *folder, int count, bool noisy)
{
	struct digest *subjects = calloc((size_t)count, sizeof *subjects), witness;
	char from[300], to[300], file[300];
	struct export_counts out;
	struct import_counts in, again;
	struct store_stats stats;
	struct err err;

	snprintf(from, sizeof from, "%s/from%d", folder, noisy);
	snprintf(to, sizeof to, "%s/to%d", folder, noisy);
	snprintf(file, sizeof file, "%s/file%d", folder, noisy);
	if (subjects == NULL || mkdir(from, 0755) != 0 || mkdir(to, 0755) != 0)
		exit(1);
	struct store *store = open_store(from);

	fill(store, count, noisy, subjects, &witness);
	double start = now(), busy = processor();

	if (export_verdicts(store, file, NULL, &out, &err) != 0)
		give_up(&err);
	double middle = now(), busy_middle = processor();
	struct store *other = open_store(to);

	if (import_verdicts(other, file, NULL, complain, NULL, &in, &err) != 0)
		give_up(&err);
	double end = now(), busy_end = processor();

	if (import_verdicts(other, file, NULL, complain, NULL, &again, &err) != 0)
		give_up(&err);
	double last = now();

	if (in.merged.taken != count || out.verdicts != count || again.merged.kept != count ||
	    store_stats(store, &stats, &err) != 0)
		exit(1);
	printf("%s, %d verdicts (%.0f MiB in the store):\n", noisy ? "noisy" : "alike", count,
	       (double)stats.bytes / 1048576);
	printf("  export: %.2f s, import: %.2f s, import of stored verdicts: %.2f s\n", middle - start, end - middle,
	       last - end);
	printf("  processor time: export %.2f s, import %.2f s\n", busy_middle - busy, busy_end - busy_middle);
	printf("  %.1f bytes a verdict (%.1f MiB)\n", (double)out.bytes / count, (double)out.bytes / 1048576);
	look_up(other, subjects, count, &witness);
	store_close(store);
	store_close(other);
	free(subjects);
}

static int by_size(const void *a, const void *b)
{
	const double *one = a, *two = b;

	return (*one > *two) - (*one < *two);
}

/* Measures the time from the fork to the exit of a process that runs `reftest --version`. The reftest binary is one
 * directory above this program. */
static void start_up(const char *self)
{
	const char *end = strrchr(self, '/');
	char path[4096];
	double took[STARTS];

	snprintf(path, sizeof path, "%.*s/../reftest", end != NULL ? (int)(end - self) : 1, end != NULL ? self : ".");
	for (int i = 0; i < STARTS; i++) {
		double start = now();
		pid_t child = fork();

		if (child == 0) {
			if (freopen("/dev/null", "w", stdout) != NULL)
				execl(path, "reftest", "--version", (char *)NULL);
			_exit(127);
		}
		int status;

		if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
			exit(1);
		took[i] = 1e3 * (now() - start);
	}
	qsort(took, STARTS, sizeof *took, by_size);
	printf("start-up (reftest --version, %d times): %.2f ms at the median, %.2f at most\n", STARTS, took[STARTS / 2],
	       took[STARTS - 1]);
}

/* Usage: export_import [N [FOLDER]]. FOLDER must exist and be empty; the stores and files remain in it. */
int main(int argc, char **argv)
{
	char own[] = "/tmp/reftest-travel-XXXXXX";
	int count = argc > 1 ? atoi(argv[1]) : 100000;
	const char *folder = argc > 2 ? argv[2] : mkdtemp(own);

	if (folder == NULL || count < 1)
		return 1;
	start_up(argv[0]);
	travel(folder, count, false);
	travel(folder, count, true);
	if (argc <= 2)
		nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
