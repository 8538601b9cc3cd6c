#include "cli/serve_verifier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/options.h"
#include "cli/shared_options.h"
#include "dataset/definition_parse.h"
#include "engine/ground_truths.h"
#include "engine/pool_case_runner.h"
#include "engine/run.h"
#include "engine/run_defaults.h"
#include "engine/run_pools.h"
#include "engine/settings.h"
#include "report/run_json.h"
#include "report/text.h"

/* The options of a request. serve/tools.c names the options of `reftest verify` that a request may have. */
struct request_options {
	struct shared_options shared; /* an option that the request lacks has the value that `reftest serve` got */
	bool force;
};

#define AT(member) offsetof(struct request_options, member)
static const struct option_row rows[] = {
    ROW_OP_TYPE, ROW_SIZES, ROW_GROUND_TRUTH, ROW_BACKWARD, ROW_SEED, ROW_TOLERANCE,
    {"--case", OPTION_TEXT, SHARED(case_id), "ID", NULL, NULL},
    {"--edge", OPTION_FLAG, SHARED(edge), NULL, NULL, NULL},
    {"--force", OPTION_FLAG, AT(force), NULL, NULL, NULL},
};

enum { ROWS = sizeof rows / sizeof rows[0], REQUEST_BYTES = 64 << 20 };

struct verifier {
	struct program program;
	const struct shared_options *options;
	struct pool *pool;
	/* The machine and the libraries for which the pool was opened (texts from describe_machine and
	 * describe_libraries). */
	struct buf machine, libraries;
	struct arena arena; /* of one request */
	struct err err;
	bool interrupted, failed; /* failed: the pool must be opened again */
};

/* ---- the pool ---------------------------------------------------------------------------------------------------- */

static void close_pool(struct verifier *v)
{
	pool_close(v->pool);
	v->pool = NULL;
	buf_free(&v->machine);
	buf_free(&v->libraries);
}

/* Describes the properties of a run's machine that a pool depends on. */
static void describe_machine(const struct verifier *v, const struct run_options *options,
			     const struct machine_policy *machine, struct buf *out)
{
	const struct policy *policy = &machine->policy;
	const char *required = settings_required(v->program.settings, options->required);

	buf_printf(out, "%s\n%s\n%s\n%s\n%s", policy->device, machine->python, policy->torch != NULL ? policy->torch : "",
		   policy->python != NULL ? policy->python : "", required != NULL ? required : "");
}

/* Describes the libraries that a run uses as ground truths; "" if it uses none. */
static void describe_libraries(const struct truth_choice *choice, struct buf *out)
{
	buf_text(out, "");
	for (int i = 0; ground_truths_use_libraries(choice) && i < choice->fact_count; i++)
		buf_printf(out, "%s %s\n", choice->facts[i].name,
			   choice->facts[i].version != NULL ? choice->facts[i].version : "none");
}

static bool pool_serves(const struct verifier *v, const struct buf *machine, const struct buf *libraries)
{
	return v->pool != NULL && strcmp(v->machine.data, machine->data) == 0 &&
	       (libraries->length == 0 || strcmp(v->libraries.data, libraries->data) == 0);
}

/* Opens the pool. Does nothing if the open pool fits the machine and the libraries of this run. The machine and the
 * libraries may change between two requests, for example because reftest.toml names another device or because torch was
 * replaced. Without a new pool, the run would then verify with the old device or torch, but report the new one. Returns
 * -1 with a message if no pool can be opened. */
static int need_pool(struct verifier *v, const struct run_options *options, const struct machine_policy *machine)
{
	struct buf here = {0}, libraries = {0};

	describe_machine(v, options, machine, &here);
	describe_libraries(&machine->truths, &libraries);
	if (!pool_serves(v, &here, &libraries)) {
		close_pool(v);
		v->machine = here;
		v->libraries = libraries;
		here = libraries = (struct buf){0};
		v->pool = run_open_pool(&v->program, options, machine, &v->err);
		if (v->pool != NULL)
			pool_warm(v->pool);
	}
	buf_free(&here);
	buf_free(&libraries);
	return v->pool != NULL ? 0 : -1;
}

/* ---- a request --------------------------------------------------------------------------------------------------- */

static int read_options(struct verifier *v, const struct request_options *o, struct run_options *out)
{
	if (shared_options_read(&o->shared, &v->program, out, &v->err) < 0)
		return -1;
	out->interactive = out->details = out->each = out->share = true;
	out->force = o->force;
	return 0;
}

static int run_and_report(struct verifier *v, struct run *run)
{
	static const struct report_options report = {.command = ""};

	int rc = run_to_end(run, &v->err);

	v->failed = rc < 0 || (run->lent && run->machine.cannot_run != NULL); /* the pool gave up */
	v->interrupted = run->interrupted;
	if (rc < 0)
		return -1;
	if (run->interrupted)
		return err_set(&v->err, "the request was interrupted");
	report_json(run, &report);
	return 0;
}

static int verify_names(struct verifier *v, const struct request_options *o, struct run_options *options,
			const struct words *names)
{
	struct run run;
	int rc = run_open(&run, &v->program, options, &v->err) == 0 ? 0 : -1;

	if (rc == 0 && run_select(&run, names->items, names->count, o->shared.op_types.items, o->shared.op_types.count, &v->err) < 0)
		rc = -1;
	if (rc == 0 && run.machine.cannot_run == NULL) {
		rc = need_pool(v, run.options, &run.machine);
		run_lend(&run, pool_runner(v->pool), NULL);
	}
	if (rc == 0)
		rc = run_and_report(v, &run);
	run_close(&run);
	return rc;
}

/* ---- a definition whose text is in the request ------------------------------------------------------------------- */

static bool text_holds(void *self, const struct dataset_file *file, const struct file_seen *earlier)
{
	(void)self, (void)file, (void)earlier;
	return false;
}

static int text_read(void *self, const struct dataset_file *file, size_t limit, struct buf *bytes, struct stat_check *out,
		     struct err *err)
{
	const char *text = self;

	*out = (struct stat_check){.read = true};
	if (strlen(text) > limit)
		return err_set(err, "%s: the definition has more than %zu bytes", file->path, limit);
	buf_clear(bytes);
	buf_text(bytes, text);
	return 0;
}

static bool text_unchanged(void *self, const struct dataset_file *file, const struct file_seen *earlier,
			   const struct digest *content)
{
	(void)self, (void)file, (void)earlier, (void)content;
	return true;
}

static struct blob text_blob(void *self, enum blob_use use, const char *path, const struct file_seen *earlier, bool to_run,
			     struct arena *arena, struct file_seen *seen, bool *read)
{
	(void)self, (void)earlier, (void)to_run, (void)seen, (void)read;
	return (struct blob){.use = use, .path = arena_string(arena, path),
			     .bad = "a definition that is given as text cannot read files"};
}

static bool text_blob_unchanged(void *self, const struct blob *blob, const struct file_seen *earlier)
{
	(void)self, (void)blob, (void)earlier;
	return true;
}

static const struct run_files_calls text_files = {
    .holds = text_holds, .read = text_read, .unchanged = text_unchanged, .blob = text_blob, .blob_unchanged = text_blob_unchanged};

/* Reads "name" and "op_type", from which the path of the definition is made. The loader checks the other members. */
static int read_place(struct verifier *v, const char *text, struct dataset_file *out)
{
	const struct json_text json = {"the definition", text, strlen(text), 1};
	cJSON *tree = json_parse(&json, &v->err);
	const char *name = json_text_of(tree, "name"), *op_type = json_text_of(tree, "op_type");
	int rc = tree == NULL ? -1 : 0;

	if (rc == 0 && (!cJSON_IsObject(tree) || name == NULL || op_type == NULL))
		rc = err_set(&v->err, "the definition needs the members \"name\" and \"op_type\"");
	if (rc == 0 && (strchr(name, '/') != NULL || strchr(op_type, '/') != NULL || strlen(name) + strlen(op_type) > 400))
		rc = err_set(&v->err, "\"name\" and \"op_type\" of a definition must contain no slash, and must have at most 400 "
				      "bytes together");
	if (rc == 0)
		*out = (struct dataset_file){
		    .op_type = arena_string(&v->arena, op_type),
		    .name = arena_string(&v->arena, name),
		    .path = arena_printf(&v->arena, "definitions/%s/%s.json", op_type, name)};
	cJSON_Delete(tree);
	return rc;
}

/* Finds the root, reads the settings, loads the kernels, and determines the machine's properties for a run. */
static int open_program(struct verifier *v, struct run_options *options, struct machine_policy *machine)
{
	if (program_root_by_path(&v->program, &v->err) < 0 || program_settings(&v->program, &v->err) < 0 ||
	    program_kernels(&v->program, &v->err) < 0)
		return -1;
	run_defaults(v->program.settings, options);
	return machine_policy(&v->program, options->device, options->python, options->ground_truth, &v->arena, machine, &v->err);
}

static int verify_text(struct verifier *v, struct run_options *options, const char *text)
{
	static const struct dataset_file *const no_workload[] = {NULL};
	struct dataset_file file;
	struct dataset dataset = {.fd = -1, .definitions = &file, .definition_count = 1, .workload_of = no_workload};
	struct machine_policy machine;
	struct run run;

	options->share = false;
	if (read_place(v, text, &file) < 0 || open_program(v, options, &machine) < 0)
		return -1;
	if (machine.cannot_run != NULL)
		return err_set(&v->err, "%s", machine.cannot_run);
	if (need_pool(v, options, &machine) < 0)
		return -1;
	const struct run_parts parts = {.machine = &machine,
					.dataset = &dataset,
					.files = {&text_files, (void *)(uintptr_t)text},
					.runner = pool_runner(v->pool)};
	int rc = run_open_parts(&run, &v->program, options, &parts, &v->err) == 0 ? 0 : -1;

	if (rc == 0)
		rc = run_and_report(v, &run);
	run_close(&run);
	return rc;
}

/* ---- the process ------------------------------------------------------------------------------------------------- */

static int answer(struct verifier *v, int argc, char **argv)
{
	struct request_options o = {.shared = *v->options};
	struct run_options options;
	struct words names;

	/* reads the settings again, because they may have changed; need_pool checks whether the pool still fits */
	settings_free(v->program.settings);
	v->program.settings = NULL;
	if (options_read(rows, ROWS, argc, argv, &v->arena, &o, &names, &v->err) != 0 || read_options(v, &o, &options) < 0)
		return -1;
	return strcmp(argv[0], "verify_text") == 0 ? verify_text(v, &options, names.items[0])
						   : verify_names(v, &o, &options, &names);
}

/* Reads exactly `length` bytes. Returns false at the end of the requests. */
static bool read_bytes(void *into, size_t length)
{
	char *at = into;

	while (length > 0) {
		ssize_t got = read(VERIFIER_REQUESTS, at, length);

		if (got <= 0)
			return false;
		at += got;
		length -= (size_t)got;
	}
	return true;
}

/* Reads the words of a request. Returns the number of words, or -1 at the end of the requests. */
static int read_request(struct arena *arena, char ***argv)
{
	uint32_t length;
	int argc = 0;

	if (!read_bytes(&length, sizeof length) || length == 0 || length > REQUEST_BYTES)
		return -1;
	char *text = arena_alloc(arena, length);

	if (!read_bytes(text, length))
		return -1;
	for (uint32_t i = 0; i < length; i++)
		argc += text[i] == '\0';
	*argv = arena_array(arena, (size_t)argc + 1, sizeof **argv);
	for (int i = 0; i < argc; text += strlen(text) + 1)
		(*argv)[i++] = text;
	return argc;
}

/* Imports torch before the first request. If this fails, the first request reports the error. */
static void warm(struct verifier *v)
{
	const struct request_options o = {.shared = *v->options};
	struct run_options options;
	struct machine_policy machine;

	if (read_options(v, &o, &options) == 0 && open_program(v, &options, &machine) == 0 && machine.cannot_run == NULL)
		need_pool(v, &options, &machine);
}

static void end_request(struct verifier *v, int rc)
{
	if (rc != 0)
		fwrite(v->err.text, 1, strlen(v->err.text), stdout);
	if (v->failed)
		close_pool(v);
	v->failed = false;
	fputc('\0', stdout);
	fputc(rc != 0, stdout);
	fflush(stdout);
	arena_free(&v->arena);
	v->err.text[0] = '\0';
}

int verifier_main(void *context)
{
	const struct verifier_start *start = context;
	struct verifier v = {.program = *start->program, .options = start->options};
	char **argv;
	int argc;

	v.program.settings = NULL;
	v.program.signals = -1;
	v.program.repos = start->options->repos;
	if (program_signals(&v.program, &v.err) < 0)
		return EXIT_INTERNAL;
	warm(&v);
	arena_free(&v.arena);
	v.err.text[0] = '\0';
	while (!v.interrupted && (argc = read_request(&v.arena, &argv)) > 0)
		end_request(&v, answer(&v, argc, argv));
	close_pool(&v);
	program_close(&v.program);
	return EXIT_VERIFIED;
}
