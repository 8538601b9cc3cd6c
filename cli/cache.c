/* cache - the subcommands that work on the stored verdicts of a dataset, for example `cache export` and `cache gc`.
 *
 * The table at the end lists the subcommands. The code in cache/ does the work; this file parses arguments and prints
 * results. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fold_output.h"
#include "base/show.h"
#include "cache/export_import.h"
#include "cache/hit_counts.h"
#include "cli/cached_run.h"
#include "cli/shared_options.h"
#include "engine/definition_files.h"
#include "engine/settings.h"
#include "engine/sparse_checkout.h"
#include "fleet/merge.h"
#include "remote/signature.h"
#include "workers/sandbox/containment.h"

enum { TOLD_MAX = 20, DAYS = 30 };

struct cache_options {
	struct shared_options shared;
	int days;
	bool dry_run;
};

#define AT(field) offsetof(struct cache_options, field)
static const struct option_row rows[] = {
    ROW_ROOT,
    {"--days", OPTION_INT, AT(days), "N", NULL,
     "gc: keep verdicts that are at most N days older than the newest verdict (default: 30)"},
    {"--dry-run", OPTION_FLAG, AT(dry_run), NULL, NULL,
     "gc: print how many verdicts would be removed, and remove none"},
    {"--require-containment", OPTION_CHOICES, SHARED(required), "LIST", GAPS,
     "import, merge: reject a verdict if its reference could reach anything in LIST; `full` stands for everything that "
     "LIST can contain (default: full if REFTEST_CACHE_KEY is set, else the setting in reftest.toml)"},
    {"--format", OPTION_CHOICE, SHARED(format), "F", "text|json", "stats: output format (default: text)"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* Opens the store of the dataset. On failure, returns NULL and sets the exit status `code`. If a read-only command
 * finds no cache, sets `code` to EXIT_UNVERIFIED, because a missing cache is neither a success nor an error. */
static struct store *open_store(struct program *program, bool read_only, int *code, struct err *err)
{
	struct err note = {""};

	program_store(program, read_only, &note);
	if (program->store != NULL) {
		if (note.text[0] != '\0')
			show_print(stderr, "reftest: %s\n", note.text);
		return program->store;
	}
	*code = note.text[0] != '\0' ? EXIT_INTERNAL : EXIT_UNVERIFIED;
	if (note.text[0] != '\0')
		err_set(err, "%s", note.text);
	else
		err_set(err, "there is no cache below %s yet; `reftest verify` or `reftest cache import` creates one",
			program->root);
	return NULL;
}

/* --- path -------------------------------------------------------------------------------------------------------- */

static int run_path(struct program *program, const void *options, const struct words *names, struct err *err)
{
	(void)options, (void)names, (void)err;
	show_print(stdout, "%s/.reftest/cache\n", program->root);
	return EXIT_VERIFIED;
}

/* --- stats ------------------------------------------------------------------------------------------------------- */

/* Texts for the reasons of a cache miss, in the order of enum lack (engine/rerun_reason.h). */
static const struct {
	const char *key, *words;
} reasons[LACK_COUNT] = {
    [LACK_NOTHING_STORED] = {"nothing_stored", "no verdict for this version of the case is stored"},
    [LACK_DEVICE] = {"device", "a verdict is stored, but for another device class"},
    [LACK_TRUTH] = {"ground_truth", "a verdict is stored, but from another ground truth"},
    [LACK_VERSION] = {"ground_truth_version", "a verdict is stored, but from another version of the ground truth"},
    [LACK_TORCH] = {"torch", "a verdict is stored, but from another version of torch, CUDA or Python"},
    [LACK_CONTAINMENT] = {"containment", "a verdict is stored, but its reference could reach more than "
        "--require-containment allows"},
    [LACK_ORDER] = {"order", "a verdict is stored, but other cases had run before the case in the same process"},
    [LACK_NONE] = {"forced", "a verdict is stored, but --force ran the case again"},
};
_Static_assert((int)LACK_COUNT == (int)HIT_COUNTS_REASONS, "cache/hit_counts.h has a counter for each reason");

static void print_stats_text(const char *path, const struct store_stats *stats, const struct cache_stats *counts)
{
	int64_t misses = 0;

	show_print(stdout, "%s\n", path);
	show_print(stdout, "  %-10s %" PRId64 "\n", "verdicts", stats->verdicts);
	show_print(stdout, "  %-10s %" PRId64 "\n", "cases", stats->latest);
	show_print(stdout, "  %-10s %" PRId64 "\n", "files", stats->files);
	show_print(stdout, "  %-10s %" PRId64 "\n", "facts", stats->facts);
	show_print(stdout, "  %-10s %.1f MB\n", "size", (double)stats->bytes / 1e6);
	if (stats->aside > 0)
		show_print(stdout, "  %-10s %" PRId64
		       " older or damaged caches, %.1f MB, in %s.aside-*; you may delete them\n",
		       "aside", stats->aside, (double)stats->quarantine_bytes / 1e6, path);
	for (int i = 0; i < LACK_COUNT; i++)
		misses += counts->misses[i];
	show_print(stdout, "over %" PRId64 " run%s: %" PRId64 " hits, %" PRId64 " misses\n", counts->runs, counts->runs == 1 ? "" : "s",
	       counts->hits, misses);
	for (int i = 0; i < LACK_COUNT; i++)
		if (counts->misses[i] > 0)
			show_print(stdout, "  %8" PRId64 "  %s\n", counts->misses[i], reasons[i].words);
}

static void print_stats_json(const char *path, const struct store_stats *stats, const struct cache_stats *counts)
{
	struct buf out = {0};

	buf_text(&out, "{\"schema\": 1, \"path\": ");
	buf_json_string(&out, path);
	buf_printf(&out,
		   ", \"verdicts\": %" PRId64 ", \"cases\": %" PRId64 ", \"files\": %" PRId64 ", \"facts\": %" PRId64
		   ", \"bytes\": %" PRId64 ", \"aside\": %" PRId64 ", \"aside_bytes\": %" PRId64 ", \"runs\": %" PRId64
		   ", \"hits\": %" PRId64 ", \"misses\": {",
		   stats->verdicts, stats->latest, stats->files, stats->facts, stats->bytes, stats->aside,
		   stats->quarantine_bytes, counts->runs, counts->hits);
	for (int i = 0; i < LACK_COUNT; i++)
		buf_printf(&out, "%s\"%s\": %" PRId64, i > 0 ? ", " : "", reasons[i].key, counts->misses[i]);
	buf_text(&out, "}}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}

static int run_stats(struct program *program, const void *options, const struct words *names, struct err *err)
{
	const struct cache_options *o = options;
	int code;
	struct store *store = open_store(program, true, &code, err);
	struct store_stats stats;
	struct cache_stats counts;

	(void)names;
	if (store == NULL)
		return code;
	if (store_stats(store, &stats, err) != 0)
		return EXIT_INTERNAL;
	hit_counts_read(program->root, &counts);
	(strcmp(o->shared.format, "json") == 0 ? print_stats_json : print_stats_text)(store_path(store), &stats, &counts);
	return EXIT_VERIFIED;
}

/* --- export, import ---------------------------------------------------------------------------------------------- */

static int run_export(struct program *program, const void *options, const struct words *names, struct err *err)
{
	int code;
	struct store *store = open_store(program, true, &code, err);
	struct export_counts out;
	struct signing_key *signer;

	(void)options;
	if (store == NULL)
		return code;
	if (signature_open(program->secrets.text[SECRET_CACHE_KEY], &signer, err) < 0)
		return EXIT_USAGE;
	struct record_signer how = signature_signer(signer);
	int answer = export_verdicts(store, names->items[0], &how, &out, err);

	signing_key_close(signer);
	if (answer != 0)
		return EXIT_INTERNAL;
	show_print(strcmp(names->items[0], "-") == 0 ? stderr : stdout,
		"%" PRId64 " verdicts exported to %s, %" PRId64 " bytes\n", out.verdicts, names->items[0], out.bytes);
	if (out.left_out == 0)
		return EXIT_VERIFIED;
	show_print(stderr,
		"reftest: %" PRId64 " rows of the cache are damaged and were not exported; `reftest cache check` "
				    "lists them\n",
		out.left_out);
	return EXIT_FAILED;
}

/* The rejected records of an import: the first TOLD_MAX records are printed. */
struct refusals {
	const char *file;
	int printed;
};

static void print_refused(const char *sentence, int64_t count, void *context)
{
	struct refusals *refusals = context;

	(void)count;
	if (refusals->printed++ < TOLD_MAX)
		show_print(stderr, "reftest: %s: %s\n", refusals->file, sentence);
	else if (refusals->printed == TOLD_MAX + 1)
		show_print(stderr, "reftest: %s: and more\n", refusals->file);
}

static int import_file(struct store *store, const char *path, const struct record_signer *signer, struct err *err)
{
	struct refusals refusals = {.file = path};
	struct import_counts in;

	if (import_verdicts(store, path, signer, print_refused, &refusals, &in, err) != 0)
		return in.unusable ? EXIT_USAGE : EXIT_INTERNAL;
	show_print(stdout, "%s: %" PRId64 " verdicts imported, %" PRId64 " stored verdicts replaced by newer ones, %" PRId64
	       " already stored, %" PRId64 " rejected%s\n",
	       path, in.merged.taken, in.merged.replaced, in.merged.kept, in.refused,
	       in.whole || in.refused > 0
		   ? ""
		   : "; the file was modified after the export, but every record that was read is valid");
	return in.whole ? EXIT_VERIFIED : EXIT_FAILED;
}

/* The conditions that an imported verdict must meet: its signature, and the containment in which its reference ran. */
struct import_rules {
	struct record_signer signer;
	const char *required; /* NULL: nothing */
};

static int check_rules(void *context, const struct verdict_line *record, struct err *err)
{
	const struct import_rules *rules = context;
	struct arena arena = {0};

	if (rules->signer.check(rules->signer.context, record, err) != 0)
		return -1;
	const struct verdict *verdict =
	    rules->required == NULL ? NULL : verdict_parse(record->text, record->length, &arena, NULL);
	const char *reached = verdict == NULL ? NULL : verdict->containment;
	bool suffices = containment_suffices(reached, rules->required);

	if (!suffices)
		err_set(err, "the reference could reach %s when it was verified; --require-containment none accepts "
		    "such verdicts",
			reached == NULL ? "an unknown part of the machine" : reached);
	arena_free(&arena);
	return suffices ? 0 : -1;
}

/* Returns the containment in which the references of imported verdicts must have run: the value of
 * --require-containment or, without this option, of the settings. If $REFTEST_CACHE_KEY is set and
 * --require-containment is not given, returns "full". A reference that was not fully contained could have read the key,
 * and could have signed any verdict. The settings of the dataset cannot change the requirement "full", because a
 * stranger may have written them. */
static const char *import_required(const struct program *program, const struct cache_options *o, bool keyed)
{
	return settings_required(program->settings, o->shared.required != NULL ? o->shared.required : keyed ? "full" : NULL);
}

/* Imports every file, even if an earlier file failed, and returns the highest exit status of all files. */
static int run_import(struct program *program, const void *options, const struct words *names, struct err *err)
{
	int code, worst = EXIT_VERIFIED;
	struct store *store = open_store(program, false, &code, err);
	struct signing_key *signer;

	if (store == NULL)
		return code;
	if (program_settings(program, err) < 0)
		return EXIT_USAGE;
	/* without the key, no signature can be checked */
	if (signature_open(program->secrets.text[SECRET_CACHE_KEY], &signer, err) < 0)
		return EXIT_USAGE;
	struct import_rules rules = {signature_signer(signer), import_required(program, options, signer != NULL)};
	const struct record_signer how = {.context = &rules, .check = check_rules};

	for (int i = 0; i < names->count; i++) {
		struct err why = {""};

		code = import_file(store, names->items[i], &how, &why);
		if (why.text[0] != '\0')
			show_print(stderr, "reftest: %s\n", why.text);
		worst = code > worst ? code : worst;
	}
	signing_key_close(signer);
	return worst;
}

/* --- merge ------------------------------------------------------------------------------------------------------- */

static int run_merge(struct program *program, const void *options, const struct words *names, struct err *err)
{
	int code;
	struct store *store = open_store(program, false, &code, err);
	struct signing_key *signer;

	(void)names;
	if (store == NULL)
		return code;
	if (program_settings(program, err) < 0)
		return EXIT_USAGE;
	if (program_kernels(program, err) < 0)
		return EXIT_INTERNAL;
	if (signature_open(program->secrets.text[SECRET_CACHE_KEY], &signer, err) < 0)
		return EXIT_USAGE;
	struct import_rules allowed = {signature_signer(signer), import_required(program, options, signer != NULL)};
	const struct merge_rules rules = {.signer = {.context = &allowed, .check = check_rules},
					  .checker = program->kernels.api->checker_digest};
	long refused = merge_answers(store, &rules, err);

	signing_key_close(signer);
	return refused < 0 ? EXIT_INTERNAL : refused > 0 ? EXIT_FAILED : EXIT_VERIFIED;
}

/* --- check ------------------------------------------------------------------------------------------------------- */

static void print_bad(const char *sentence, void *context)
{
	(void)context;
	show_print(stdout, "%s\n", sentence);
}

static int run_check(struct program *program, const void *options, const struct words *names, struct err *err)
{
	struct store_inspected seen;
	struct store_options how = {.read_only = true};
	struct err note;

	(void)options, (void)names;
	if (store_damage(program->root, err) > 0)
		return EXIT_FAILED;
	if (err->text[0] != '\0')
		return EXIT_INTERNAL;
	program->store = store_open(program->root, &how, &note, err);
	if (program->store == NULL && err->text[0] != '\0')
		return EXIT_FAILED;
	if (program->store == NULL) {
		err_set(err, "there is no cache below %s yet", program->root);
		return EXIT_UNVERIFIED;
	}
	if (store_inspect(program->store, print_bad, NULL, &seen, err) != 0)
		return EXIT_INTERNAL;
	show_print(stdout, "%s: %" PRId64 " rows checked, %" PRId64 " damaged\n", store_path(program->store), seen.rows,
	       seen.bad);
	return seen.bad == 0 ? EXIT_VERIFIED : EXIT_FAILED;
}

/* --- gc ---------------------------------------------------------------------------------------------------------- */

static int digest_order(const void *a, const void *b)
{
	return memcmp(a, b, DIGEST_BYTES);
}

static void sort_digests(struct buf *list)
{
	if (list->length > 0)
		qsort(list->data, list->length / DIGEST_BYTES, DIGEST_BYTES, digest_order);
}

static void note_result(const struct result *result, struct buf *subjects, struct buf *definitions)
{
	struct arena arena = {0};
	const char *name = result_name(result, &arena);
	struct digest digest = digest_of(name, strlen(name));

	buf_add(definitions, &digest, sizeof digest);
	for (int i = 0; i < result->case_count; i++)
		buf_add(subjects, &result->cases[i].test->subject, sizeof(struct digest));
	arena_free(&arena);
}

/* Adds the digests of the names of definitions that git's sparse checkout excludes. `gc` keeps the verdicts of these
 * definitions, because git still has them. */
static int note_sparse(const struct dataset *dataset, struct buf *definitions, struct err *err)
{
	struct sparse sparse = {.asked = false};
	struct arena arena = {0};
	int rc = sparse_ask(&sparse, dataset, &arena, err);

	for (int i = 0; i < sparse.count; i++) {
		const struct dataset_file *file = &sparse.definitions[i];
		const char *name = arena_printf(&arena, "%s/%s", file->op_type, file->name);
		struct digest digest = digest_of(name, strlen(name));

		buf_add(definitions, &digest, sizeof digest);
	}
	arena_free(&arena);
	return rc;
}

/* Appends to `definitions` the digest of the name of each definition in the working tree. Appends to `subjects` the
 * subject (cache/fingerprint.h) of each case of these definitions, including the cases of all sizes, the edge cases and
 * the gradient cases. */
static int present_tree(struct program *program, struct buf *subjects, struct buf *definitions, struct err *err)
{
	struct run_options options = {
	    .cached_only = true, .dry_run = true, .details = true, .each = true, .cases = case_options_default()};
	struct run run;

	for (int size = 0; size < SIZE_COUNT; size++)
		options.cases.size[size] = options.cases.sizes_given = true;
	options.cases.edge = options.cases.backward = true;
	int code = run_open(&run, program, &options, err);

	if (code == 0 && (run_select(&run, NULL, 0, NULL, 0, err) < 0 || run_to_end(&run, err) < 0))
		code = EXIT_INTERNAL;
	if (code == 0 && run.interrupted)
		code = EXIT_INTERRUPTED; /* the list of cases is incomplete, so `gc` must not remove any verdict */
	for (int i = 0; code == 0 && i < run.count; i++)
		note_result(run.results[i], subjects, definitions);
	if (code == 0 && note_sparse(&run.dataset, definitions, err) < 0)
		code = EXIT_INTERNAL;
	run_close(&run);
	sort_digests(subjects);
	sort_digests(definitions);
	return code;
}

static int sweep_store(struct program *program, const struct cache_options *o, const struct buf *stored,
		       const struct buf *subjects, const struct buf *definitions, struct err *err)
{
	struct store_needs needs = {.subjects = (const struct digest *)(const void *)subjects->data,
				    .subject_count = (int)(subjects->length / DIGEST_BYTES),
				    .definitions = (const struct digest *)(const void *)definitions->data,
				    .definition_count = (int)(definitions->length / DIGEST_BYTES),
				    .stored = stored,
				    .days = o->days};
	struct store_swept swept;
	int code;

	store_close(program->store); /* gc needs a store that it can write; the run opened the store read-only */
	program->store = NULL;
	struct store *store = open_store(program, false, &code, err);

	if (store == NULL)
		return code;
	if (store_gc(store, &needs, o->dry_run, &swept, err) != 0)
		return EXIT_INTERNAL;
	show_print(stdout, "%s: %s %" PRId64 " verdicts that the dataset does not need and that are older than %d days, "
			   "%" PRId64 " rows about cases of deleted definitions, and %" PRId64 " rows about deleted files",
	       store_path(store), o->dry_run ? "gc would remove" : "removed", swept.verdicts, o->days, swept.latest,
	       swept.files);
	if (swept.damaged > 0)
		show_print(stdout, "; %" PRId64 " damaged rows", swept.damaged);
	if (swept.bytes_after < swept.bytes_before)
		show_print(stdout, "; %.1f MB, now %.1f MB", (double)swept.bytes_before / 1e6, (double)swept.bytes_after / 1e6);
	show_print(stdout, "\n");
	return EXIT_VERIFIED;
}

static int run_gc(struct program *program, const void *options, const struct words *names, struct err *err)
{
	struct buf stored = {0}, subjects = {0}, definitions = {0};
	struct store *store;
	int code;

	(void)names;
	if ((store = open_store(program, true, &code, err)) == NULL)
		return code;
	code = store_verdict_keys(store, &stored, err) == 0 ? 0 : EXIT_INTERNAL;
	if (code == 0)
		code = present_tree(program, &subjects, &definitions, err);
	if (code == 0)
		code = sweep_store(program, options, &stored, &subjects, &definitions, err);
	buf_free(&stored);
	buf_free(&subjects);
	buf_free(&definitions);
	return code;
}

/* --- The table --------------------------------------------------------------------------------------------------- */

static const struct subcommand subcommands[] = {
    {"stats", "", "print the size of the cache, the number of hits, and the number of misses for each reason", 0, 0, run_stats},
    {"export", "FILE", "write every verdict to FILE (- for standard output)", 1, 1, run_export},
    {"import", "FILE…", "merge exported files into the cache (- for standard input)", 1, INT32_MAX, run_import},
    {"merge", "", "read the output of `reftest work` from standard input, and store its verdicts", 0, 0, run_merge},
    {"check", "", "read every page and row, and list the damaged ones", 0, 0, run_check},
    {"gc", "", "remove old verdicts that no file of the dataset needs any more", 0, 0, run_gc},
    {"path", "", "print the path of the cache", 0, 0, run_path},
};
enum { SUBCOMMANDS = sizeof subcommands / sizeof subcommands[0] };

static int start(struct program *program, int argc, char **argv)
{
	struct cache_options o = {.shared = shared_options_default(), .days = DAYS};
	struct command_line line;
	const struct subcommand *sub = NULL;

	if (command_line_begin(&line, &command_cache, argc, argv, &o))
		sub = command_line_subcommand(&line);
	if (sub != NULL && strcmp(o.shared.format, "text") == 0)
		fold_output();
	shared_options_root(&o.shared, program);
	if (sub != NULL && program_root(program, &line.err) == 0)
		line.code = sub->run(program, &o, &line.names, &line.err);
	return command_line_end(&line);
}

const struct command command_cache = {
    .name = "cache",
    .summary = "print statistics of the stored verdicts; export, import, check and remove them",
    .synopsis = "[options] SUBCOMMAND",
    .description =
	"The cache contains the verdicts of a dataset. It is in the folder .reftest/cache below the root of the "
	"dataset. `import` checks every record; if REFTEST_CACHE_KEY is set, it also checks the signatures.",
    .rows = rows,
    .row_count = ROWS,
    .subcommands = subcommands,
    .subcommand_count = SUBCOMMANDS,
    .run = start,
};
