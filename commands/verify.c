/* verify - the main job: have a verdict that counts for every case asked for, and run only those that have none. */
#include "commands/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "commands/commit.h"
#include "commands/exchange.h"
#include "commands/generated.h"
#include "commands/options.h"
#include "commands/pass.h"
#include "commands/report.h"
#include "commands/shard.h"
#include "commands/touched.h"

struct verify_options {
	const char *root, *device, *device_class, *python, *sizes, *format, *case_id, *ground_truth, *junit, *shard;
	bool all, changed, index, force, edge, backward, no_workloads, strict, cached_only, dry_run, staged, quiet, hook, alone;
	int jobs;
	double atol, rtol, hit_ratio, timeout;
	uint64_t seed;
	struct words op_types, tolerances;
};

#define AT(member) offsetof(struct verify_options, member)
static const struct option_row rows[] = {
    {"--root", OPTION_TEXT, AT(root), "DIR", "the dataset"},
    {"--all", OPTION_FLAG, AT(all), NULL, "every definition (also what no name at all means)"},
    {"--changed", OPTION_FLAG, AT(changed), NULL, "every definition, but tell only what has no valid verdict"},
    {"--staged", OPTION_FLAG, AT(index), NULL,
     "what git's index holds, as a commit would have it, not the working tree"},
    {"--hook", OPTION_FLAG, AT(hook), NULL,
     "with --staged, for git hooks: what cannot be verified here is told, and refuses no commit"},
    {"--op-type", OPTION_LIST, AT(op_types), "T", "the definitions of this op_type; may be repeated"},
    {"--case", OPTION_TEXT, AT(case_id), "ID", "only this case, as a failure line names it"},
    {"--shard", OPTION_TEXT, AT(shard), "I/N", "only the Ith of N parts of the cases, for N processes side by side"},
    {"--sizes", OPTION_TEXT, AT(sizes), "LIST", "small,medium,large (default: small,medium)"},
    {"--no-workloads", OPTION_FLAG, AT(no_workloads), NULL, "leave the lines of workload files out"},
    {"--edge", OPTION_FLAG, AT(edge), NULL, "also what is empty, single or a matter of convention; shows findings"},
    {"--backward", OPTION_FLAG, AT(backward), NULL, "also the gradients that autograd takes through each reference"},
    {"--alone", OPTION_FLAG, AT(alone), NULL, "do not ask a watcher of this root, which may be busy"},
    {"--device", OPTION_TEXT, AT(device), "D", "auto, cpu, cuda or cuda:N (default: auto)"},
    {"--device-class", OPTION_TEXT, AT(device_class), "C",
     "only verdicts of this class count, whoever made them: cpu, sm_90, …"},
    {"--ground-truth", OPTION_TEXT, AT(ground_truth), "NAMES", "auto: the best there is; all: each, and they agree; or by name"},
    {"--force", OPTION_FLAG, AT(force), NULL, "run everything, whatever is stored"},
    {"--cached-only", OPTION_FLAG, AT(cached_only), NULL, "run nothing; what has no verdict makes the exit code 3"},
    {"--dry-run", OPTION_FLAG, AT(dry_run), NULL, "say what would run, and why; change nothing"},
    {"--strict", OPTION_FLAG, AT(strict), NULL, "findings count as failures; with --hook: and what the commit changes and cannot be verified"},
    {"--seed", OPTION_SEED, AT(seed), "N", "of the inputs (default: 0)"},
    {"--atol", OPTION_REAL, AT(atol), "X", "absolute tolerance of every output"},
    {"--rtol", OPTION_REAL, AT(rtol), "X", "relative tolerance of every output"},
    {"--hit-ratio", OPTION_REAL, AT(hit_ratio), "X", "part of the elements that must be within tolerance"},
    {"--tolerance", OPTION_LIST, AT(tolerances), "DTYPE=ATOL,RTOL[,HIT]", "for outputs of one dtype; may be repeated"},
    {"--timeout", OPTION_REAL, AT(timeout), "S", "seconds a case may take (default: 120)"},
    {"--jobs", OPTION_INT, AT(jobs), "N", "references side by side (default: half the cores, at most 4)"},
    {"--python", OPTION_TEXT, AT(python), "PATH", "interpreter with torch; else $REFTEST_PYTHON, .venv, python3"},
    {"--staged-arena", OPTION_FLAG, AT(staged), NULL, "copy tensors through the host even where CUDA IPC works"},
    {"--format", OPTION_TEXT, AT(format), "F", "text, json, or github: annotations of a workflow (default: text)"},
    {"--junit", OPTION_TEXT, AT(junit), "FILE", "also write the verdicts there, as JUnit XML"},
    {"--quiet", OPTION_FLAG, AT(quiet), NULL, "text: only what is not passed, and the totals"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static int bad_tolerance(const char *word, struct err *err)
{
	return err_set(err, "'%s' is no tolerance; --tolerance takes DTYPE=ATOL,RTOL or DTYPE=ATOL,RTOL,HIT_RATIO, as in "
	               "bfloat16=8e-3,1e-2", word);
}

static int read_tolerance(const char *word, struct tolerance *by_dtype, struct err *err)
{
	char name[32];
	size_t length = strcspn(word, "=");
	double values[3] = {-1, -1, -1};
	enum dtype dtype;

	if (length >= sizeof name || word[length] != '=')
		return bad_tolerance(word, err);
	memcpy(name, word, length);
	name[length] = '\0';
	if (!dtype_parse(name, &dtype))
		return bad_tolerance(word, err);
	const char *at = word + length + 1;

	for (int i = 0; i < 3; i++) {
		char *end;

		values[i] = strtod(at, &end);
		if (end == at || !(values[i] >= 0) || (*end != ',' && *end != '\0') || (i == 0 && *end == '\0') ||
		    (i == 2 && (*end != '\0' || !(values[i] > 0 && values[i] <= 1))))
			return bad_tolerance(word, err);
		if (*end == '\0')
			break;
		at = end + 1;
	}
	by_dtype[dtype] = (struct tolerance){values[0], values[1], values[2]};
	return 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);

	return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static int read_case_options(const struct verify_options *o, struct case_options *out, struct err *err)
{
	*out = case_options_default();
	out->workloads = !o->no_workloads;
	out->edge = o->edge || (o->case_id != NULL && strncmp(o->case_id, "edge:", 5) == 0);
	out->backward = o->backward || (o->case_id != NULL && ends_with(o->case_id, CASE_BACKWARD));
	out->seed = o->seed;
	out->only = o->case_id;
	out->tolerance = (struct tolerance){o->atol, o->rtol, o->hit_ratio};
	memset(out->size, 0, sizeof out->size);
	if (o->hit_ratio > 1 || o->hit_ratio == 0)
		return err_set(err, "--hit-ratio takes a part above 0 and at most 1, not %g", o->hit_ratio);
	for (int i = 0; i < o->tolerances.count; i++)
		if (read_tolerance(o->tolerances.items[i], out->by_dtype, err) < 0)
			return -1;
	if (o->shard != NULL && shard_read(o->shard, &out->shard, err) < 0)
		return -1;
	/* A case is named by its size; asking for one asks for its size. */
	return case_sizes_read(o->case_id != NULL ? "small,medium,large" : o->sizes, out->size, err);
}

static int check_words(const struct verify_options *o, const struct words *names, struct err *err)
{
	if (strcmp(o->format, "text") != 0 && strcmp(o->format, "json") != 0 && strcmp(o->format, "github") != 0)
		return err_set(err, "'%s' is no format; --format takes text, json or github", o->format);
	if (o->all && names->count > 0)
		return err_set(err, "--all and the name '%s' contradict each other; give one of them", names->items[0]);
	if (o->force && o->cached_only)
		return err_set(err, "--force runs everything and --cached-only nothing; give one of them");
	if (o->hook && (!o->index || strcmp(o->format, "text") != 0))
		return err_set(err, "--hook is about what a commit would hold, told as text: it takes --staged, and no --format");
	if (o->timeout <= 0)
		return err_set(err, "--timeout takes a number of seconds above 0");
	return 0;
}

/* The options that a pasted-back command needs to meet the same case again. */
static char *repeat_words(const struct verify_options *o, struct arena *arena)
{
	struct buf words = {0};

	if (o->index)
		buf_text(&words, " --staged");
	if (o->seed != 0)
		buf_printf(&words, " --seed %llu", (unsigned long long)o->seed);
	if (o->atol >= 0)
		buf_printf(&words, " --atol %g", o->atol);
	if (o->rtol >= 0)
		buf_printf(&words, " --rtol %g", o->rtol);
	if (o->hit_ratio >= 0)
		buf_printf(&words, " --hit-ratio %g", o->hit_ratio);
	if (strcmp(o->ground_truth, "auto") != 0)
		buf_printf(&words, " --ground-truth %s", o->ground_truth);
	for (int i = 0; i < o->tolerances.count; i++)
		buf_printf(&words, " --tolerance %s", o->tolerances.items[i]);
	char *text = arena_copy(arena, words.data, words.length);

	buf_free(&words);
	return text;
}

/* What hooks say is shown by programs that do not fold lines: 80 columns where there is no terminal to ask. */
static int terminal_columns(void)
{
	struct winsize size = {0};

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40 ? size.ws_col : 80;
}

/* The report's options, where the pass's callback finds them. */
struct verify {
	struct pass pass; /* first: the callback gets it */
	struct report_options report;
	bool hook;
	struct commit commit; /* with `hook` */
};

static void told(struct pass *pass, struct outcome *outcome)
{
	struct verify *verify = (struct verify *)pass;

	if (verify->hook && !commit_counts(&verify->commit, outcome))
		return;
	report_outcome(outcome, &verify->report);
	fflush(stdout);
}

/* Where pytest files were generated, they are kept true; a watcher that vouched for the rest of the dataset has done so.
 * What goes wrong with them is said and changes no verdict. */
static void keep_generated(struct pass *pass)
{
	struct generated_options options = {.layout = LAYOUT_OP_TYPE, .untold = true};
	struct generated generated;
	struct err err = {""};

	if (pass->options->dry_run || pass->options->cached_only || pass->options->from_index || pass->interrupted ||
	    pass->options->cases.shard.count > 0 || pass->dataset.some ||
	    !generated_before(pass->reftest->root, &options.layout))
		return;
	if (generated_update(pass->reftest, &pass->dataset, &options, &pass->arena, &generated, &err) < 0)
		fprintf(stderr, "reftest: %s\n", err.text);
	for (int i = 0; i < generated.told_count; i++)
		fprintf(stderr, "reftest: %s\n", generated.told[i]);
}

/* A word with a dot in its last part is no name of a definition but a file's. */
static bool is_file(const char *word)
{
	const char *slash = strrchr(word, '/');

	return strpbrk(word, "*?[") == NULL && strchr(slash != NULL ? slash + 1 : word, '.') != NULL;
}

/* Hooks name the files that are committed, whatever they are: with --staged those select the definitions that they
 * touch, and a file that touches none is passed over. 1: so are all of them; 0; -1 with a sentence. */
static int select_files(struct pass *pass, const struct verify_options *o, const struct words *names,
			struct arena *arena, struct err *err)
{
	const char **files = arena_array(arena, (size_t)names->count, sizeof *files);
	struct words selected = {.items = arena_array(arena, (size_t)names->count, sizeof *selected.items)};
	struct touched touched = {0};
	int count = 0;

	for (int i = 0; i < names->count; i++)
		if (o->index && is_file(names->items[i]))
			files[count++] = touched_path(pass->reftest->root, names->items[i], arena);
		else
			selected.items[selected.count++] = names->items[i];
	if (count > 0) {
		if (touched_by(pass->reftest, &pass->dataset, pass->contents, files, count, arena, &touched, err) < 0)
			return -1;
		const char **more =
		    arena_array(arena, (size_t)(selected.count + touched.definition_count), sizeof *more);

		memcpy(more, selected.items, (size_t)selected.count * sizeof *more);
		for (int i = 0; i < touched.definition_count; i++)
			more[selected.count++] = touched.definitions[i].file->path;
		selected.items = more;
		if (selected.count == 0 && o->op_types.count == 0)
			return 1;
	}
	return pass_select(pass, selected.items, selected.count, o->op_types.items, o->op_types.count, err);
}

static int run(struct reftest *reftest, const struct verify_options *o, const struct words *names, struct arena *arena,
               struct err *err)
{
	struct pass_options options = {.device = o->device, .device_class = o->device_class, .python = o->python,
	                               .jobs = o->jobs, .timeout_s = o->timeout,
	                               .force = o->force, .cached_only = o->cached_only, .dry_run = o->dry_run,
	                               .staged = o->staged, .from_index = o->index, .share = true,
	                               .ground_truth = o->ground_truth};
	struct verify verify = {.report = {.strict = o->strict, .only_changed = o->changed || o->quiet,
	                                   .width = o->index ? terminal_columns() : 0,
	                                   .command = repeat_words(o, arena)},
	                        .hook = o->hook, .commit.strict = o->strict};
	bool json = strcmp(o->format, "json") == 0, github = strcmp(o->format, "github") == 0;

	options.details = options.each = json || github || o->junit != NULL || !verify.report.only_changed;
	options.ask_verified = o->changed && !o->alone && !options.details && !o->edge && !o->backward && names->count == 0 &&
	                       o->op_types.count == 0 && o->case_id == NULL && !o->force && !o->index && o->shard == NULL;
	if (read_case_options(o, &options.cases, err) < 0)
		return EXIT_USAGE;
	if (o->root != NULL)
		reftest->root_given = o->root;
	int code = pass_open(&verify.pass, reftest, &options, err);

	if (code == 0) {
		verify.pass.told = json || github ? NULL : told;
		int selected = select_files(&verify.pass, o, names, arena, err);

		if (selected < 0) {
			code = EXIT_USAGE;
		} else if (selected > 0 && !json) {
			printf("none of these files touches a definition of %s\n", reftest->root);
			code = EXIT_VERIFIED;
		} else if (pass_run(&verify.pass, err) < 0) {
			code = EXIT_INTERNAL;
		} else {
			report_problems(&verify.pass);
			if (github)
				exchange_github(&verify.pass);
			(json ? report_json : report_summary)(&verify.pass, &verify.report);
			code = report_exit_code(&verify.pass, &verify.report);
			if (o->hook)
				code = commit_exit_code(&verify.commit, &verify.pass, code, verify.report.width);
			if (o->junit != NULL && exchange_junit(&verify.pass, o->junit, err) < 0)
				code = EXIT_INTERNAL;
			keep_generated(&verify.pass);
		}
	}
	pass_close(&verify.pass);
	return code;
}

int command_verify(struct reftest *reftest, int argc, char **argv)
{
	struct verify_options o = {.device = "auto", .sizes = "small,medium", .format = "text", .ground_truth = "auto",
	                           .atol = -1, .rtol = -1, .hit_ratio = -1, .timeout = 120};
	struct told told;

	if (options_begin(&told, "verify [options] [NAME…]", rows, ROWS, argc, argv, &o) &&
	    check_words(&o, &told.names, &told.err) == 0)
		told.code = run(reftest, &o, &told.names, &told.arena, &told.err);
	return options_end(&told);
}
