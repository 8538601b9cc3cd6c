/* doctor - what this machine has and lacks, and the command that mends it.
 *
 * Each examination adds one line to a list. What it examines is either needed to verify on the CPU, and then its absence
 * makes the exit code 3, or it is something reftest works without. Nothing is changed, and no reference is run. */
#include "commands/command.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "commands/options.h"
#include "commands/signing.h"
#include "commands/truths_matrix.h"
#include "dataset/dataset.h"
#include "remote/library.h"
#include "watcher/limits.h"
#include "workers/machine.h"
#include "workers/pool.h"

enum { LINES_MAX = 16, SMALL_FILE = 64 * 1024, TORCH_MAJOR = 2, TORCH_MINOR = 4 };

struct line {
	const char *name;
	bool needed, ok;
	const char *found; /* what is there, or that nothing is */
	const char *mend;  /* a command, NULL: nothing to mend */
};

struct doctor {
	struct reftest *reftest;
	struct arena arena;
	struct line lines[LINES_MAX];
	int count;
	const char *python; /* absolute path, NULL: none */
	char device_class[64]; /* of the device that verify would take */
	struct truths_matrix matrix;
	bool torch_cuda;    /* torch there is, and it was built for CUDA */
	int gpus;
	int files;          /* definitions and workloads of the dataset, 0 without one */
	int folders;        /* that `watch` would have to watch */
};

static void add(struct doctor *d, const char *name, bool needed, bool ok, const char *found, const char *mend)
{
	if (d->count < LINES_MAX)
		d->lines[d->count++] = (struct line){name, needed, ok, found, ok ? NULL : mend};
}

/* The first line of a small file, without its newline; NULL if it cannot be read. */
static const char *first_line(struct doctor *d, const char *path)
{
	struct buf bytes = {0};
	const char *line = NULL;

	if (file_read(AT_FDCWD, path, SMALL_FILE, &bytes, NULL, NULL) == FILE_OK)
		line = arena_copy(&d->arena, bytes.data, strcspn(bytes.length > 0 ? bytes.data : "", "\n"));
	buf_free(&bytes);
	return line;
}

/* Folders of a sorted list of files: as often as the op_type changes. */
static int count_folders(const struct dataset_file *files, int count)
{
	int folders = 0;

	for (int i = 0; i < count; i++)
		folders += i == 0 || strcmp(files[i].op_type, files[i - 1].op_type) != 0;
	return folders;
}

static void examine_dataset(struct doctor *d)
{
	struct dataset dataset;
	struct err err = {""};

	if (reftest_root(d->reftest, &err) < 0 || dataset_scan(d->reftest->root, &d->arena, &dataset, &err) < 0) {
		add(d, "dataset", false, false, arena_string(&d->arena, err.text), "reftest --root DIR doctor");
		return;
	}
	d->files = dataset.definition_count + dataset.workload_count;
	d->folders = 2 + count_folders(dataset.definitions, dataset.definition_count) +
	             count_folders(dataset.workloads, dataset.workload_count);
	add(d, "dataset", false, true, arena_printf(&d->arena, "%s: %d definitions, %d workload files", d->reftest->root,
	                                            dataset.definition_count, dataset.workload_count), NULL);
	dataset_close(&dataset);
}

static void examine_python(struct doctor *d, const char *given)
{
	char path[4096];
	struct err err = {""};

	if (machine_python(given, d->reftest->root, path, sizeof path, &err) < 0)
		add(d, "python", true, false, arena_string(&d->arena, err.text), "make verify");
	else
		add(d, "python", true, true, d->python = arena_string(&d->arena, path), NULL);
}

/* "2.13.0+cpu" is. What begins with no number is not. */
static bool new_enough(const char *version)
{
	char *end;
	long major = strtol(version, &end, 10), minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;

	return major > TORCH_MAJOR || (major == TORCH_MAJOR && minor >= TORCH_MINOR);
}

static void examine_torch(struct doctor *d)
{
	struct torch_facts facts;
	struct err err = {""};
	const char *mend = "make verify";

	if (d->python == NULL) {
		add(d, "torch", true, false, "no interpreter to look into", mend);
		return;
	}
	int found = machine_torch(d->python, &d->arena, &facts, &err);

	if (found <= 0) {
		add(d, "torch", true, false, found < 0 ? arena_string(&d->arena, err.text)
		                                       : arena_printf(&d->arena, "%s has none", d->python), mend);
		return;
	}
	bool enough = new_enough(facts.version);

	d->torch_cuda = facts.cuda != NULL;
	add(d, "torch", true, enough,
	    arena_printf(&d->arena, "%s, %s%s; Python %s%s", facts.version, facts.cuda != NULL ? "for CUDA " : "a CPU build",
	                 facts.cuda != NULL ? facts.cuda : "", facts.python, enough ? "" : "; 2.4 or newer is needed"),
	    arena_printf(&d->arena, "%s -m pip install --upgrade torch", d->python));
}

static void examine_kernels(struct doctor *d)
{
	struct err err = {""};

	if (reftest_kernels_library(d->reftest, &err) < 0)
		add(d, "kernels", true, false, arena_string(&d->arena, err.text), "make");
	else
		add(d, "kernels", true, true,
		    arena_printf(&d->arena, "%s, %d op families, build %.12s", d->reftest->kernels.path,
		                 d->reftest->kernels.face->op_count, d->reftest->kernels.face->digest), NULL);
}

/* kernels_open_cuda refuses a library whose digest is not the CPU library's, and says so. */
static void examine_cuda_kernels(struct doctor *d)
{
	struct err err = {""};

	if (d->reftest->kernels.face == NULL)
		add(d, "cuda kernels", false, false, "the CPU library comes first", "make");
	else if (kernels_open_cuda(&d->reftest->kernels, &err) < 0)
		add(d, "cuda kernels", false, false, arena_string(&d->arena, err.text), "make");
	else
		add(d, "cuda kernels", false, true,
		    arena_printf(&d->arena, "%s, of the same build", d->reftest->kernels.cuda_path), NULL);
}

static void examine_nvcc(struct doctor *d)
{
	FILE *pipe = popen("{ nvcc --version || /usr/local/cuda/bin/nvcc --version; } 2>/dev/null", "re");
	char line[256], release[64] = "";

	while (pipe != NULL && fgets(line, sizeof line, pipe) != NULL) {
		const char *at = strstr(line, "release ");

		if (at != NULL)
			sscanf(at, "release %63[0-9.]", release);
	}
	if (pipe != NULL)
		pclose(pipe);
	add(d, "nvcc", false, release[0] != '\0',
	    release[0] != '\0' ? arena_printf(&d->arena, "CUDA %s", release) : "not on PATH; make leaves the CUDA library out",
	    "sudo apt-get install nvidia-cuda-toolkit && make");
}

static void examine_driver(struct doctor *d)
{
	const char *version = first_line(d, "/proc/driver/nvidia/version");

	d->gpus = machine_gpus(&d->arena, NULL);
	add(d, "gpu driver", false, d->gpus > 0,
	    d->gpus > 0 ? arena_printf(&d->arena, "%d GPU%s, %s", d->gpus, d->gpus == 1 ? "" : "s",
	                               version != NULL ? version : "driver version unknown")
	                : "no NVIDIA GPU with a driver: references run on the CPU",
	    NULL);
}

/* A GPU counts when the judge can use it and torch can run on it. */
static void examine_gpu(struct doctor *d)
{
	char class_name[64], product[256];
	struct err err = {""};

	if (d->gpus == 0)
		return;
	if (pool_probe_device("cuda:0", class_name, sizeof class_name, product, sizeof product, &err) < 0)
		add(d, "gpu", false, false, arena_string(&d->arena, err.text), "make && nvidia-smi");
	else if (!d->torch_cuda && d->python != NULL)
		add(d, "gpu", false, false, arena_printf(&d->arena, "%s (%s), but torch is a CPU build", product, class_name),
		    arena_printf(&d->arena, "%s -m pip install --force-reinstall --index-url https://pypi.org/simple torch",
		                 d->python));
	else {
		snprintf(d->device_class, sizeof d->device_class, "%s", class_name);
		add(d, "gpu", false, d->torch_cuda, arena_printf(&d->arena, "cuda:0 is %s (%s)", product, class_name), NULL);
	}
}

/* What could verify each op family here. */
static void examine_truths(struct doctor *d)
{
	struct truths_matrix *m = &d->matrix;
	struct err err = {""};

	m->device_class = d->device_class;
	if (d->reftest->kernels.face != NULL) {
		m->ops = d->reftest->kernels.face->ops;
		m->op_count = d->reftest->kernels.face->op_count;
	}
	if (d->python == NULL)
		m->trouble = "there is no interpreter";
	else if (truths_facts(d->reftest, d->python, d->device_class, &d->arena, &m->facts, &m->fact_count, &err) != 0)
		m->trouble = arena_string(&d->arena, err.text);
}

/* Will there be verdicts to keep? The folder, or the nearest one above it that exists, must be writable. */
static void examine_new_cache(struct doctor *d)
{
	const char *folder = arena_printf(&d->arena, "%s/.reftest", d->reftest->root);

	if (access(folder, F_OK) != 0)
		folder = d->reftest->root;
	bool writable = access(folder, W_OK | X_OK) == 0;

	add(d, "cache", false, writable,
	    arena_printf(&d->arena, "%s/.reftest/cache: %s", d->reftest->root,
	                 writable ? "none yet; the first verdict makes it" : "cannot be made, so no verdict is kept"),
	    arena_printf(&d->arena, "sudo chown -R \"$USER\" '%s'", folder));
}

static void examine_cache(struct doctor *d)
{
	struct err note = {""}, err = {""};
	struct store_stats stats;

	if (d->reftest->root[0] == '\0')
		return;
	reftest_store(d->reftest, true, &note);
	if (d->reftest->store == NULL && note.text[0] == '\0') {
		examine_new_cache(d);
		return;
	}
	const char *path = d->reftest->store != NULL ? store_path(d->reftest->store)
	                                             : arena_printf(&d->arena, "%s/.reftest/cache", d->reftest->root);
	const char *mend = arena_printf(&d->arena, "sudo chown -R \"$USER\" '%s'", path);

	if (d->reftest->store == NULL || store_stats(d->reftest->store, &stats, &err) < 0)
		add(d, "cache", false, false, arena_string(&d->arena, note.text[0] != '\0' ? note.text : err.text), mend);
	else
		add(d, "cache", false, access(path, W_OK) == 0,
		    arena_printf(&d->arena, "%s: %" PRId64 " verdicts, %.1f MB%s", path, stats.verdicts, (double)stats.bytes / 1e6,
		                 access(path, W_OK) == 0 ? "" : ", not writable: no verdict is kept"),
		    mend);
}

/* What shared caches need, and whether what the environment names can be used. No remote is asked. */
static void examine_remote(struct doctor *d)
{
	const char *place = getenv("REFTEST_REMOTE");
	struct err err = {""};
	struct place parsed;
	const struct remote_face *face = remote_library(&err);

	if (face == NULL)
		add(d, "remote cache", false, false, arena_string(&d->arena, err.text),
		    "sudo apt-get install libhiredis-dev libcurl4-openssl-dev libsodium-dev && make");
	else if (place != NULL && *place != '\0' && place_parse(place, &parsed, &err) < 0)
		add(d, "remote cache", false, false, arena_string(&d->arena, err.text), "unset REFTEST_REMOTE");
	else
		add(d, "remote cache", false, true,
		    arena_printf(&d->arena, "%s, %s", place == NULL || *place == '\0' ? "REFTEST_REMOTE is not set" : parsed.shown,
		                 face->versions()), NULL);
}

static void examine_key(struct doctor *d)
{
	struct err err = {""};
	struct seal *seal;
	int found = signing_open(&seal, &err);

	if (found < 0)
		add(d, "cache key", false, false, arena_string(&d->arena, err.text), "reftest key");
	else if (found > 0)
		add(d, "cache key", false, true,
		    arena_printf(&d->arena, "%s: records from elsewhere count if they are signed with it%s",
		                 seal_kind(seal) == SEAL_ED25519 ? "Ed25519" : "HMAC-SHA-256",
		                 seal_signs(seal) ? "" : "; it has the public half alone, so nothing can be signed here"), NULL);
	seal_close(seal);
}

/* A limit of the kernel's against what `watch` needs of it. */
static void examine_limit(struct doctor *d, const struct limit *limit, int64_t need, const char *what)
{
	const char *name = strrchr(limit->name, '.') + 1;

	add(d, "inotify", false, limit->value >= need,
	    arena_printf(&d->arena, "%s is %ld; %s %" PRId64, name, limit->value, what, need),
	    arena_printf(&d->arena, "sudo sysctl %s=%" PRId64 "%s", limit->name, 2 * need,
	                 limit->outside ? " outside of this user namespace" : ""));
}

static void examine_inotify(struct doctor *d)
{
	enum { EVENTS_A_FILE = 4 }; /* create, modify, close and move, when every file is replaced at once */

	const char *queue = first_line(d, "/proc/sys/fs/inotify/max_queued_events");
	struct limit watches = limit_of("watches", "/proc"), events = {.outside = watches.outside};

	snprintf(events.name, sizeof events.name, "fs.inotify.max_queued_events");
	events.value = queue != NULL ? strtol(queue, NULL, 10) : 0;
	examine_limit(d, &watches, d->folders + 1, "watching this dataset takes");
	examine_limit(d, &events, (int64_t)EVENTS_A_FILE * d->files + 1, "replacing every file at once queues up to");
}

static const char *word_of(const struct line *line)
{
	return line->ok ? "ok" : line->needed ? "missing" : "without";
}

static void print_text(const struct doctor *d, bool ready)
{
	for (int i = 0; i < d->count; i++) {
		const struct line *line = &d->lines[i];

		printf("%-8s %-13s %s\n", word_of(line), line->name, line->found);
		if (line->mend != NULL)
			printf("%-8s %-13s mend it with: %s\n", "", "", line->mend);
	}
	printf("%s\n", ready ? "Everything needed to verify on the CPU is here."
	                     : "What is marked missing is needed to verify anything.");
	struct buf matrix = {0};

	truths_matrix_text(&d->matrix, &matrix);
	fwrite(matrix.data, 1, matrix.length, stdout);
	buf_free(&matrix);
}

static void print_json(const struct doctor *d, bool ready)
{
	struct buf out = {0};

	buf_printf(&out, "{\"schema\": 1, \"ready\": %s, \"checks\": [", ready ? "true" : "false");
	for (int i = 0; i < d->count; i++) {
		const struct line *line = &d->lines[i];

		buf_printf(&out, "%s\n {\"name\": ", i > 0 ? "," : "");
		buf_json_string(&out, line->name);
		buf_printf(&out, ", \"state\": \"%s\", \"needed\": %s, \"found\": ", word_of(line),
		           line->needed ? "true" : "false");
		buf_json_string(&out, line->found);
		buf_text(&out, ", \"mend\": ");
		if (line->mend != NULL)
			buf_json_string(&out, line->mend);
		else
			buf_text(&out, "null");
		buf_text(&out, "}");
	}
	buf_text(&out, "],\n \"ground_truths\": ");
	truths_matrix_json(&d->matrix, &out);
	buf_text(&out, "}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}

static int examine(struct reftest *reftest, const char *python, bool json)
{
	struct doctor doctor = {.reftest = reftest, .device_class = "cpu"};
	bool ready = true;

	examine_dataset(&doctor);
	examine_python(&doctor, python);
	examine_torch(&doctor);
	examine_kernels(&doctor);
	examine_cuda_kernels(&doctor);
	examine_nvcc(&doctor);
	examine_driver(&doctor);
	examine_gpu(&doctor);
	examine_cache(&doctor);
	examine_remote(&doctor);
	examine_key(&doctor);
	examine_inotify(&doctor);
	examine_truths(&doctor);
	for (int i = 0; i < doctor.count; i++)
		ready = ready && (doctor.lines[i].ok || !doctor.lines[i].needed);
	(json ? print_json : print_text)(&doctor, ready);
	arena_free(&doctor.arena);
	return ready ? EXIT_VERIFIED : EXIT_UNVERIFIED;
}

struct doctor_options {
	const char *root, *python, *format;
};

#define AT(member) offsetof(struct doctor_options, member)
static const struct option_row rows[] = {
    {"--root", OPTION_TEXT, AT(root), "DIR", "the dataset"},
    {"--python", OPTION_TEXT, AT(python), "PATH", "the interpreter to look into; else $REFTEST_PYTHON, .venv, python3"},
    {"--format", OPTION_TEXT, AT(format), "F", "text or json (default: text)"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

int command_doctor(struct reftest *reftest, int argc, char **argv)
{
	struct doctor_options o = {.format = "text"};
	struct told told;

	if (options_begin(&told, "doctor [options]", rows, ROWS, argc, argv, &o)) {
		int json = options_json(o.format, &told.err);

		if (told.names.count > 0) {
			err_set(&told.err, "doctor takes no names; '%s' is one", told.names.items[0]);
		} else if (json >= 0) {
			reftest->root_given = o.root != NULL ? o.root : reftest->root_given;
			told.code = examine(reftest, o.python, json);
		}
	}
	return options_end(&told);
}
