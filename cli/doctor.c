/* doctor - lists the programs, libraries and devices that reftest found on this machine, and those that are missing.
 * Below each missing item, the command prints how to install or repair the item.
 *
 * Each check adds one line to the output. If a program or library that verification on the CPU needs is missing, the
 * exit status is 3. Other missing items do not change the exit status. The command changes no file and runs no
 * reference. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/fold_output.h"
#include "base/show.h"
#include "base/show_wrapped.h"
#include "cli/shared_options.h"
#include "dataset/dataset.h"
#include "engine/job_count.h"
#include "engine/settings.h"
#include "remote/remote_library.h"
#include "remote/signature.h"
#include "report/ground_truth_matrix.h"
#include "watcher/fs/limits.h"
#include "workers/judge/judge.h"
#include "workers/pool/machine_resources.h"
#include "workers/pool/pool.h"
#include "workers/pool/control_groups.h"
#include "workers/sandbox/containment.h"
#include "workers/sandbox/sandbox.h"

enum { LINES_MAX = 32, SMALL_FILE = 64 * 1024, TORCH_MAJOR = 2, TORCH_MINOR = 4 };

struct line {
	const char *name;
	bool needed, ok;
	const char *found; /* the version or path of the item, or a message that says what is missing */
	const char *mend;  /* the command that installs or repairs the item; NULL if there is nothing to repair */
};

struct doctor {
	struct program *program;
	struct arena arena;
	uint32_t layers; /* the sandbox layers that work on this machine */
	struct line lines[LINES_MAX];
	int count;
	const char *python; /* absolute path; NULL: none */
	char device_class[64]; /* class of the device that `verify` would use */
	struct ground_truths_matrix matrix;
	bool installed;     /* reftest does not run from a checkout, so make cannot repair it */
	bool torch_cuda;    /* torch is installed and built for CUDA */
	int gpus;
	int files;          /* number of all definition and workload files; 0 if there is no dataset */
	int folders;        /* number of folders for which `watch` would add an inotify watch */
};

static void add(struct doctor *d, const char *name, bool needed, bool ok, const char *found, const char *mend)
{
	assert(d->count < LINES_MAX);
	d->lines[d->count++] = (struct line){name, needed, ok, found, ok ? NULL : mend};
}

/* Returns how to repair a part of reftest itself. If this program runs from a checkout, the result is `command`, a make
 * command. If this program is installed, the result is the advice to install reftest again. */
static const char *mend_by_make(const struct doctor *d, const char *command)
{
	return d->installed ? "install reftest again: with `pip install --force-reinstall` and the wheel, or with "
			      "`make install` in a checkout"
			    : command;
}

static const char *mend_torch(struct doctor *d, bool upgrade)
{
	return d->installed || upgrade ? machine_pip_torch(d->python, upgrade, &d->arena) : "make verify";
}

/* Returns the first line of a small file, without its newline. Returns NULL if the file cannot be read. */
static const char *first_line(struct doctor *d, const char *path)
{
	struct buf bytes = {0};
	const char *line = NULL;

	if (file_read(AT_FDCWD, path, SMALL_FILE, &bytes, NULL, NULL) == FILE_OK)
		line = arena_copy(&d->arena, bytes.data, strcspn(bytes.length > 0 ? bytes.data : "", "\n"));
	buf_free(&bytes);
	return line;
}

/* Counts the folders that contain the files. Each op_type has one folder, and the files are sorted by op_type. */
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

	if (program_root(d->program, &err) < 0 || dataset_scan(d->program->root, &d->arena, &dataset, &err) < 0) {
		add(d, "dataset", false, false, arena_string(&d->arena, err.text), "reftest --root DIR doctor");
		return;
	}
	d->files = dataset.definition_count + dataset.workload_count;
	d->folders = 2 + count_folders(dataset.definitions, dataset.definition_count) +
	             count_folders(dataset.workloads, dataset.workload_count);
	add(d, "dataset", false, true, arena_printf(&d->arena, "%s: %d definitions, %d workload files", d->program->root,
	                                            dataset.definition_count, dataset.workload_count), NULL);
	dataset_close(&dataset);
}

/* Lists the settings of the dataset's reftest.toml, each with the line of the file that sets it. */
static void examine_settings(struct doctor *d)
{
	struct err err = {""};
	struct buf text = {0};

	if (d->program->root[0] == '\0')
		return;
	if (program_settings(d->program, &err) < 0) {
		add(d, "settings", true, false, arena_string(&d->arena, err.text), "correct the file (docs/settings.md)");
		return;
	}
	settings_describe(d->program->settings, (1u << SETTING_COUNT) - 1, &text);
	add(d, "settings", false, true,
	    text.length > 0 ? arena_copy(&d->arena, text.data, text.length) : "the dataset has none (reftest.toml)", NULL);
	buf_free(&text);
}

static void examine_python(struct doctor *d, const char *given)
{
	char path[4096];
	struct err err = {""};

	if (machine_python(given, d->program->root, path, sizeof path, &err) < 0)
		add(d, "python", true, false, arena_string(&d->arena, err.text),
		    d->installed ? "sudo apt-get install python3 python3-venv" : "make verify");
	else
		add(d, "python", true, true, d->python = arena_string(&d->arena, path), NULL);
}

/* Returns whether this version of torch ("2.13.0+cpu") is new enough. A version that does not start with a number
 * counts as too old. */
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
	const char *mend = mend_torch(d, false);

	if (d->python == NULL) {
		add(d, "torch", true, false, "no interpreter to check", mend);
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
	                 facts.cuda != NULL ? facts.cuda : "", facts.python, enough ? "" : "; 2.4 or newer is required"),
	    mend_torch(d, true));
}

static void examine_kernels(struct doctor *d)
{
	struct err err = {""};

	if (program_kernels(d->program, &err) < 0)
		add(d, "kernels", true, false, arena_string(&d->arena, err.text), mend_by_make(d, "make"));
	else
		add(d, "kernels", true, true,
		    arena_printf(&d->arena, "%s, %d op families, build %.12s", d->program->kernels.path,
		                 d->program->kernels.api->op_count, d->program->kernels.api->digest), NULL);
}

/* Returns whether the CUDA library is in the folder of the CPU library, where make and an installation put it. */
static bool cuda_library_exists(const struct doctor *d)
{
	char path[4096];
	const char *slash = strrchr(d->program->kernels.path, '/');

	snprintf(path, sizeof path, "%.*s/libreftest_kernels_cuda.so",
	         slash != NULL ? (int)(slash - d->program->kernels.path) : 0, d->program->kernels.path);
	return access(path, F_OK) == 0;
}

/* The CUDA library must be of the same build as the CPU library: kernels_open_cuda returns an error if their digests
 * differ. */
static void examine_cuda_kernels(struct doctor *d)
{
	struct err err = {""};

	if (d->program->kernels.api == NULL)
		add(d, "cuda kernels", false, false, "not checked, because the CPU library is missing",
		    mend_by_make(d, "make"));
	else if (d->installed && !cuda_library_exists(d))
		add(d, "cuda kernels", false, false, "this copy of reftest was built without nvcc, so it has no CUDA kernels",
		    "install a wheel that was made where nvcc is (docs/getting-started.md)");
	else if (kernels_open_cuda(&d->program->kernels, &err) < 0)
		add(d, "cuda kernels", false, false, arena_string(&d->arena, err.text), mend_by_make(d, "make"));
	else
		add(d, "cuda kernels", false, true,
		    arena_printf(&d->arena, "%s, of the same build", d->program->kernels.cuda_path), NULL);
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
	    release[0] != '\0' ? arena_printf(&d->arena, "CUDA %s", release) : "nvcc is not on PATH, so make does "
									       "not build the CUDA library",
	    "sudo apt-get install nvidia-cuda-toolkit && make");
}

static void examine_driver(struct doctor *d)
{
	const char *version = first_line(d, "/proc/driver/nvidia/version");

	d->gpus = machine_gpus(&d->arena, NULL);
	add(d, "gpu driver", false, d->gpus > 0,
	    d->gpus > 0 ? arena_printf(&d->arena, "%d GPU%s, %s", d->gpus, d->gpus == 1 ? "" : "s",
	                               version != NULL ? version : "driver version unknown")
	                : "no NVIDIA GPU with a driver was found, so references run on the CPU",
	    NULL);
}

/* Checks whether torch and the judge (the process that compares outputs) can use the GPU. */
static void examine_gpu(struct doctor *d)
{
	char class_name[64], product[256];
	struct err err = {""};

	if (d->gpus == 0 || d->program->kernels.api == NULL) /* another line, "kernels", reports missing kernels */
		return;
	program_cuda_kernels(d->program);
	const struct judge_program judge = judge_program(&d->program->kernels);

	if (pool_probe_device(&judge, "cuda:0", class_name, sizeof class_name, product, sizeof product, &err) < 0)
		add(d, "gpu", false, false, arena_string(&d->arena, err.text), d->installed ? "nvidia-smi" : "make && nvidia-smi");
	else if (!d->torch_cuda && d->python != NULL)
		add(d, "gpu", false, false, arena_printf(&d->arena, "%s (%s) is not used, because torch is a CPU build",
							 product, class_name),
		    arena_printf(&d->arena, "%s -m pip install --force-reinstall --index-url https://pypi.org/simple torch",
		                 d->python));
	else {
		snprintf(d->device_class, sizeof d->device_class, "%s", class_name);
		add(d, "gpu", false, d->torch_cuda, arena_printf(&d->arena, "cuda:0 is %s (%s)", product, class_name), NULL);
	}
}

static void examine_jobs(struct doctor *d)
{
	struct job_facts facts = job_facts_here(strcmp(d->device_class, "cpu") != 0);
	char why[JOB_COUNT_WHY];
	int jobs = job_count(&facts, why);

	add(d, "jobs", false, true,
	    arena_printf(&d->arena, "%d reference%s in parallel (%s); --jobs changes this", jobs, jobs == 1 ? " runs" : "s run", why),
	    NULL);
}

/* Finds the ground truths that are available on this machine for each op family. */
static void examine_truths(struct doctor *d)
{
	struct ground_truths_matrix *m = &d->matrix;
	struct err err = {""};

	m->device_class = d->device_class;
	if (d->program->kernels.api != NULL) {
		m->ops = d->program->kernels.api->ops;
		m->op_count = d->program->kernels.api->op_count;
	}
	if (d->python == NULL)
		m->trouble = "no Python interpreter was found";
	else if (ground_truths_facts(d->program, d->python, d->device_class, &d->arena, &m->facts, &m->fact_count,
				     &err) != 0)
		m->trouble = arena_string(&d->arena, err.text);
}

/* Checks whether verdicts can be stored. The folder of the cache, or its nearest existing parent, must be writable. */
static void examine_new_cache(struct doctor *d)
{
	const char *folder = arena_printf(&d->arena, "%s/.reftest", d->program->root);

	if (access(folder, F_OK) != 0)
		folder = d->program->root;
	bool writable = access(folder, W_OK | X_OK) == 0;

	add(d, "cache", false, writable,
	    arena_printf(&d->arena, "%s/.reftest/cache: %s", d->program->root,
	                 writable ? "there is no cache yet; the first verdict creates it"
				  : "the cache cannot be created, so no verdict is stored"),
	    arena_printf(&d->arena, "sudo chown -R \"$USER\" '%s'", folder));
}

static void examine_cache(struct doctor *d)
{
	struct err note = {""}, err = {""};
	struct store_stats stats;

	if (d->program->root[0] == '\0')
		return;
	program_store(d->program, true, &note);
	if (d->program->store == NULL && note.text[0] == '\0') {
		examine_new_cache(d);
		return;
	}
	const char *path = d->program->store != NULL ? store_path(d->program->store)
	                                             : arena_printf(&d->arena, "%s/.reftest/cache", d->program->root);
	const char *mend = arena_printf(&d->arena, "sudo chown -R \"$USER\" '%s'", path);

	if (d->program->store == NULL || store_stats(d->program->store, &stats, &err) < 0)
		add(d, "cache", false, false, arena_string(&d->arena, note.text[0] != '\0' ? note.text : err.text), mend);
	else
		add(d, "cache", false, access(path, W_OK) == 0,
		    arena_printf(&d->arena, "%s: %" PRId64 " verdicts, %.1f MB%s", path, stats.verdicts, (double)stats.bytes / 1e6,
		                 access(path, W_OK) == 0 ? "" : "; the cache is not writable, so no verdict is stored"),
		    mend);
}

/* Checks the libraries for shared caches, and whether REFTEST_REMOTE and REFTEST_CACHE_KEY have usable values. No
 * remote is contacted. */
static void examine_remote(struct doctor *d)
{
	const char *place = d->program->secrets.text[SECRET_REMOTE];
	struct err err = {""};
	struct remote_url parsed;
	char versions[128] = "";
	const struct remote_api *api = remote_library(&err);

	if (api != NULL)
		api->versions(versions, sizeof versions);
	if (api == NULL)
		add(d, "remote cache", false, false, arena_string(&d->arena, err.text),
		    d->installed ? "sudo apt-get install libcurl4"
				 : "sudo apt-get install libhiredis-dev libcurl4-openssl-dev libsodium-dev && make");
	else if (place != NULL && *place != '\0' && remote_url_parse(place, &parsed, &err) < 0)
		add(d, "remote cache", false, false, arena_string(&d->arena, err.text), "unset REFTEST_REMOTE");
	else
		add(d, "remote cache", false, true,
		    arena_printf(&d->arena, "%s, %s", place == NULL || *place == '\0' ? "REFTEST_REMOTE is not set" : parsed.shown,
		                 versions), NULL);
}

static void examine_key(struct doctor *d)
{
	struct err err = {""};
	struct signing_key *signer;
	int found = signature_open(d->program->secrets.text[SECRET_CACHE_KEY], &signer, &err);

	if (found < 0)
		add(d, "cache key", false, false, arena_string(&d->arena, err.text), "reftest key");
	else if (found > 0)
		add(d, "cache key", false, true,
		    arena_printf(&d->arena, "%s: a record from another machine counts only if it is signed with "
					    "this key%s",
				 signing_key_kind(signer) == SIGNING_KEY_ED25519 ? "Ed25519" : "HMAC-SHA-256",
				 signing_key_signs(signer)
				     ? ""
				     : "; this is only the public half of a key, so reftest cannot sign records"),
		    NULL);
	signing_key_close(signer);
}

/* Compares an inotify limit of the kernel with the number that `watch` needs. */
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
	enum { EVENTS_A_FILE = 4 }; /* events per file if all files are replaced at once: create, modify, close, move */

	const char *queue = first_line(d, "/proc/sys/fs/inotify/max_queued_events");
	struct limit watches = limit_of("watches", "/proc"), events = {.outside = watches.outside};

	snprintf(events.name, sizeof events.name, "fs.inotify.max_queued_events");
	events.value = queue != NULL ? strtol(queue, NULL, 10) : 0;
	examine_limit(d, &watches, d->folders + 1, "this dataset needs as many watches as it has folders:");
	examine_limit(d, &events, (int64_t)EVENTS_A_FILE * d->files + 1, "replacing all files of the dataset at once causes this number of events:");
}

/* Tries the sandbox of references. If some layers of the sandbox do not work on this machine, references run without
 * these layers, and the output says what the references can then access. */
static void examine_containment(struct doctor *d)
{
	char sentences[CONTAINMENT_SENTENCES];
	uint32_t layers = sandbox_with_sum(sandbox_probe(strcmp(d->device_class, "cpu") != 0));
	const char *missing = "";

	for (int i = 0; i < SANDBOX_LAYERS; i++)
		if ((layers >> i & 1) == 0 && ((uint32_t)1 << i & SANDBOX_OF_POOL) == 0)
			missing = arena_printf(&d->arena, "%s%s%s", missing, missing[0] == '\0' ? "" : ", ",
					       sandbox_layer_name((uint32_t)1 << i));
	bool groups = control_groups_delegated();

	if (groups)
		layers |= SANDBOX_MEMORY_GROUP | SANDBOX_PROCESS_GROUP;
	d->layers = layers;
	containment_write_sentences(layers, sentences);
	add(d, "containment", false, sentences[0] == '\0',
	    arena_printf(&d->arena, "%s%s%s%s", sentences[0] == '\0' ? "references reach only their inputs and outputs" : sentences,
			 missing[0] == '\0' ? "" : "; missing layers: ", missing,
			 groups ? "; a control group limits the memory of each reference as a whole"
			 : (layers & SANDBOX_MEMORY_SUM) != 0
			     ? "; reftest adds up the memory of each reference's processes, because no control group is delegated"
			     : "; the limit of memory is that of each process, because no control group is delegated"),
	    (layers & SANDBOX_USER) == 0 ? "sudo sysctl user.max_user_namespaces=15000 (docs/containment.md has more)" : NULL);
}

static const char *word_of(const struct line *line)
{
	return line->ok ? "ok" : line->needed ? "missing" : "without";
}

static void print_text(struct doctor *d, bool ready)
{
	struct arena *arena = &d->arena;

	for (int i = 0; i < d->count; i++) {
		const struct line *line = &d->lines[i];

		show_wrapped(stdout, arena_printf(arena, "%-8s %-13s %s\n", word_of(line), line->name, line->found));
		if (line->mend != NULL)
			show_wrapped(stdout, arena_printf(arena, "%-8s %-13s repair it with: %s\n", "", "", line->mend));
	}
	show_print(stdout, "%s\n", ready ? "Everything that verification on the CPU needs is installed."
	                     : "reftest cannot verify anything without the items marked as missing.");
	struct buf matrix = {0};

	ground_truths_matrix_text(&d->matrix, &matrix);
	show_print(stdout, "%s", matrix.data);
	buf_free(&matrix);
}

static void write_gaps(uint32_t layers, struct buf *out)
{
	const struct sandbox_gap *gap;
	const char *between = "";

	for (int i = 0; (gap = sandbox_gap(i)) != NULL; i++)
		if (sandbox_gap_is_open(gap, layers)) {
			buf_printf(out, "%s\"%s\"", between, gap->name);
			between = ", ";
		}
}

static void print_json(struct doctor *d, bool ready)
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
	buf_text(&out, "],\n \"gaps\": [");
	write_gaps(d->layers, &out);
	buf_text(&out, "],\n \"ground_truths\": ");
	ground_truths_matrix_json(&d->matrix, &out);
	buf_text(&out, "}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}

static int examine(struct program *program, const char *python, bool json)
{
	struct doctor doctor = {.program = program, .device_class = "cpu", .installed = machine_installed()};
	bool ready = true;

	examine_dataset(&doctor);
	examine_settings(&doctor);
	examine_python(&doctor, python);
	examine_torch(&doctor);
	examine_kernels(&doctor);
	examine_cuda_kernels(&doctor);
	if (!doctor.installed) /* only make uses nvcc */
		examine_nvcc(&doctor);
	examine_driver(&doctor);
	examine_gpu(&doctor);
	examine_jobs(&doctor);
	examine_cache(&doctor);
	examine_remote(&doctor);
	examine_key(&doctor);
	/* examine_containment forks this process, and other processes may read the memory of the child */
	secrets_forget(&program->secrets);
	examine_containment(&doctor);
	examine_inotify(&doctor);
	examine_truths(&doctor);
	for (int i = 0; i < doctor.count; i++)
		ready = ready && (doctor.lines[i].ok || !doctor.lines[i].needed);
	(json ? print_json : print_text)(&doctor, ready);
	arena_free(&doctor.arena);
	return ready ? EXIT_VERIFIED : EXIT_UNVERIFIED;
}

static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_PYTHON,
    ROW_TEXT_OR_JSON,
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static int start(struct program *program, int argc, char **argv)
{
	struct shared_options o = shared_options_default();
	struct command_line line;

	if (command_line_begin(&line, &command_doctor, argc, argv, &o)) {
		shared_options_root(&o, program);
		if (strcmp(o.format, "text") == 0)
			fold_output();
		line.code = examine(program, o.python, strcmp(o.format, "json") == 0);
	}
	return command_line_end(&line);
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "list missing programs and libraries with the commands that install them",
    .synopsis = "[options]",
    .description =
	"Prints one line for each program, library and device that reftest uses: ok, missing (reftest cannot "
	"verify anything) or without (reftest works without it). Below each missing item, prints the command that installs "
	"or repairs the item. If an item is missing, the exit code is 3. The command changes nothing.",
    .operands = OPERANDS_NONE,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
