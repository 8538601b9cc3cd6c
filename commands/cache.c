/* cache - the verdicts of a root as a thing of their own: counted, carried away and brought in, looked at, swept.
 *
 * One table of subcommands, each with its own few lines. What they do is done in cache/; here it is asked for and told.
 */
#include "commands/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/carry.h"
#include "cache/counts.h"
#include "commands/options.h"
#include "commands/pass.h"
#include "commands/signing.h"
#include "commands/sparse.h"

enum { TOLD_MAX = 20, DAYS = 30 };

struct cache_options {
	const char *root, *format;
	int days;
	bool dry_run;
};

#define AT(field) offsetof(struct cache_options, field)
static const struct option_row rows[] = {
    {"--root", OPTION_TEXT, AT(root), "DIR", "the dataset"},
    {"--days", OPTION_INT, AT(days), "N", "gc: keep verdicts made within N days before the newest (30)"},
    {"--dry-run", OPTION_FLAG, AT(dry_run), NULL, "gc: only say what would be removed"},
    {"--format", OPTION_TEXT, AT(format), "text|json", "stats: how to print"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* Opens the store of the root. NULL with the code to exit with. A read-only look at a root without a cache is
 * EXIT_UNVERIFIED: there is nothing, which is neither good nor an error. */
static struct store *open_store(struct reftest *reftest, bool read_only, int *code, struct err *err)
{
	struct err note = {""};

	reftest_store(reftest, read_only, &note);
	if (reftest->store != NULL) {
		if (note.text[0] != '\0')
			fprintf(stderr, "reftest: %s\n", note.text);
		return reftest->store;
	}
	*code = note.text[0] != '\0' ? EXIT_INTERNAL : EXIT_UNVERIFIED;
	if (note.text[0] != '\0')
		err_set(err, "%s", note.text);
	else
		err_set(err, "there is no cache below %s yet; `reftest verify` or `reftest cache import` makes one",
			reftest->root);
	return NULL;
}

/* --- path -------------------------------------------------------------------------------------------------------- */

static int run_path(struct reftest *reftest, const struct cache_options *o, const struct words *names, struct err *err)
{
	(void)o, (void)names, (void)err;
	printf("%s/.reftest/cache\n", reftest->root);
	return EXIT_VERIFIED;
}

/* --- stats ------------------------------------------------------------------------------------------------------- */

/* In the order of plan's `enum lack`. */
static const struct {
	const char *key, *words;
} reasons[LACK_COUNT] = {
    [LACK_NOTHING_STORED] = {"nothing_stored", "no verdict on the subject"},
    [LACK_DEVICE] = {"device", "only of another device class"},
    [LACK_TRUTH] = {"ground_truth", "only by another ground truth"},
    [LACK_VERSION] = {"ground_truth_version", "only by another version of the ground truth"},
    [LACK_TORCH] = {"torch", "only with another torch or CUDA"},
    [LACK_NONE] = {"forced", "there, but --force"},
};
_Static_assert((int)LACK_COUNT == (int)COUNTS_REASONS, "cache/counts.h has a place for each reason");

static void print_stats_text(const char *path, const struct store_stats *stats, const struct counts *counts)
{
	int64_t misses = 0;

	printf("%s\n", path);
	printf("  %-10s %" PRId64 "\n", "verdicts", stats->verdicts);
	printf("  %-10s %" PRId64 "\n", "cases", stats->latest);
	printf("  %-10s %" PRId64 "\n", "files", stats->files);
	printf("  %-10s %" PRId64 "\n", "facts", stats->facts);
	printf("  %-10s %.1f MB\n", "size", (double)stats->bytes / 1e6);
	if (stats->aside > 0)
		printf("  %-10s %" PRId64
		       " older or damaged caches, %.1f MB, in %s.aside-*: delete them when you like\n",
		       "aside", stats->aside, (double)stats->aside_bytes / 1e6, path);
	for (int i = 0; i < LACK_COUNT; i++)
		misses += counts->misses[i];
	printf("over %" PRId64 " run%s: %" PRId64 " hits, %" PRId64 " misses\n", counts->runs, counts->runs == 1 ? "" : "s",
	       counts->hits, misses);
	for (int i = 0; i < LACK_COUNT; i++)
		if (counts->misses[i] > 0)
			printf("  %8" PRId64 "  %s\n", counts->misses[i], reasons[i].words);
}

static void print_stats_json(const char *path, const struct store_stats *stats, const struct counts *counts)
{
	struct buf out = {0};

	buf_text(&out, "{\"schema\": 1, \"path\": ");
	buf_json_string(&out, path);
	buf_printf(&out,
		   ", \"verdicts\": %" PRId64 ", \"cases\": %" PRId64 ", \"files\": %" PRId64 ", \"facts\": %" PRId64
		   ", \"bytes\": %" PRId64 ", \"aside\": %" PRId64 ", \"aside_bytes\": %" PRId64 ", \"runs\": %" PRId64
		   ", \"hits\": %" PRId64 ", \"misses\": {",
		   stats->verdicts, stats->latest, stats->files, stats->facts, stats->bytes, stats->aside,
		   stats->aside_bytes, counts->runs, counts->hits);
	for (int i = 0; i < LACK_COUNT; i++)
		buf_printf(&out, "%s\"%s\": %" PRId64, i > 0 ? ", " : "", reasons[i].key, counts->misses[i]);
	buf_text(&out, "}}\n");
	fputs(out.data, stdout);
	buf_free(&out);
}

static int run_stats(struct reftest *reftest, const struct cache_options *o, const struct words *names, struct err *err)
{
	int code;
	struct store *store = open_store(reftest, true, &code, err);
	struct store_stats stats;
	struct counts counts;

	(void)names;
	if (store == NULL)
		return code;
	if (store_stats(store, &stats, err) != 0)
		return EXIT_INTERNAL;
	counts_read(reftest->root, &counts);
	(strcmp(o->format, "json") == 0 ? print_stats_json : print_stats_text)(store_path(store), &stats, &counts);
	return EXIT_VERIFIED;
}

/* --- export, import ---------------------------------------------------------------------------------------------- */

static int run_export(struct reftest *reftest, const struct cache_options *o, const struct words *names,
		      struct err *err)
{
	int code;
	struct store *store = open_store(reftest, true, &code, err);
	struct carried_out out;
	struct carry_seal carry;
	struct seal *seal;

	(void)o;
	if (store == NULL)
		return code;
	if (signing_open(&seal, err) < 0)
		return EXIT_USAGE;
	signing_carry(seal, &carry);
	int answer = carry_out(store, names->items[0], &carry, &out, err);

	seal_close(seal);
	if (answer != 0)
		return EXIT_INTERNAL;
	fprintf(strcmp(names->items[0], "-") == 0 ? stderr : stdout,
		"%" PRId64 " verdicts exported to %s, %" PRId64 " bytes\n", out.verdicts, names->items[0], out.bytes);
	if (out.left == 0)
		return EXIT_VERIFIED;
	fprintf(stderr,
		"reftest: %" PRId64 " rows of the cache do not check out and were left out; "
		"`reftest cache check` names them\n",
		out.left);
	return EXIT_FAILED;
}

/* What was refused: the first ones by name, all of them counted. */
struct refusals {
	const char *file;
	int told;
};

static void tell_refused(const char *sentence, int64_t count, void *context)
{
	struct refusals *refusals = context;

	(void)count;
	if (refusals->told++ < TOLD_MAX)
		fprintf(stderr, "reftest: %s: %s\n", refusals->file, sentence);
	else if (refusals->told == TOLD_MAX + 1)
		fprintf(stderr, "reftest: %s: and more\n", refusals->file);
}

static int import_file(struct store *store, const char *path, const struct carry_seal *carry, struct err *err)
{
	struct refusals refusals = {.file = path};
	struct carried_in in;

	if (carry_in(store, path, carry, tell_refused, &refusals, &in, err) != 0)
		return EXIT_INTERNAL;
	printf("%s: %" PRId64 " verdicts taken, %" PRId64 " newer ones replaced older, %" PRId64
	       " were here already, %" PRId64 " refused%s\n",
	       path, in.merged.taken, in.merged.replaced, in.merged.kept, in.refused,
	       in.whole || in.refused > 0
		   ? ""
		   : "; the file is not as it was written, but every record that was read is right");
	return in.whole ? EXIT_VERIFIED : EXIT_FAILED;
}

/* Every file is tried; the code is that of the worst. */
static int run_import(struct reftest *reftest, const struct cache_options *o, const struct words *names,
		      struct err *err)
{
	int code, worst = EXIT_VERIFIED;
	struct store *store = open_store(reftest, false, &code, err);
	struct carry_seal carry;
	struct seal *seal;

	(void)o;
	if (store == NULL)
		return code;
	if (signing_open(&seal, err) < 0) /* whose word counts is not known, so nobody's does */
		return EXIT_USAGE;
	signing_carry(seal, &carry);
	for (int i = 0; i < names->count; i++) {
		struct err why = {""};

		code = import_file(store, names->items[i], &carry, &why);
		if (why.text[0] != '\0')
			fprintf(stderr, "reftest: %s\n", why.text);
		worst = code > worst ? code : worst;
	}
	seal_close(seal);
	return worst;
}

/* --- check ------------------------------------------------------------------------------------------------------- */

static void tell_bad(const char *sentence, void *context)
{
	(void)context;
	printf("%s\n", sentence);
}

static int run_check(struct reftest *reftest, const struct cache_options *o, const struct words *names, struct err *err)
{
	struct store_inspected seen;
	struct store_options options = {.read_only = true};
	struct err note;

	(void)o, (void)names;
	if (store_damage(reftest->root, err) > 0)
		return EXIT_FAILED;
	if (err->text[0] != '\0')
		return EXIT_INTERNAL;
	reftest->store = store_open(reftest->root, &options, &note, err);
	if (reftest->store == NULL && err->text[0] != '\0')
		return EXIT_FAILED;
	if (reftest->store == NULL) {
		err_set(err, "there is no cache below %s yet", reftest->root);
		return EXIT_UNVERIFIED;
	}
	if (store_inspect(reftest->store, tell_bad, NULL, &seen, err) != 0)
		return EXIT_INTERNAL;
	printf("%s: %" PRId64 " rows looked at, %" PRId64 " damaged\n", store_path(reftest->store), seen.rows,
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

static void note_outcome(const struct outcome *outcome, struct buf *subjects, struct buf *definitions)
{
	struct arena arena = {0};
	const char *name = outcome_name(outcome, &arena);
	struct digest digest = digest_of(name, strlen(name));

	buf_add(definitions, &digest, sizeof digest);
	for (int i = 0; i < outcome->case_count; i++)
		buf_add(subjects, &outcome->cases[i].test->subject, sizeof(struct digest));
	arena_free(&arena);
}

/* What git has of the tree and does not want here, by a sparse checkout, is not gone. */
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

/* The subjects of every case of the present tree, at every size, edges and gradients included, and the names of its
 * definitions. */
static int present_tree(struct reftest *reftest, struct buf *subjects, struct buf *definitions, struct err *err)
{
	struct pass_options options = {.device = "auto",
				       .cached_only = true,
				       .dry_run = true,
				       .each = true,
				       .details = true,
				       .cases = case_options_default()};
	struct pass pass;

	for (int size = 0; size < SIZE_COUNT; size++)
		options.cases.size[size] = true;
	options.cases.edge = options.cases.backward = true;
	int code = pass_open(&pass, reftest, &options, err);

	if (code == 0 && (pass_select(&pass, NULL, 0, NULL, 0, err) < 0 || pass_run(&pass, err) < 0))
		code = EXIT_INTERNAL;
	if (code == 0 && pass.interrupted)
		code = EXIT_INTERRUPTED; /* what was not looked at must not be removed */
	for (int i = 0; code == 0 && i < pass.count; i++)
		note_outcome(pass.outcomes[i], subjects, definitions);
	if (code == 0 && note_sparse(&pass.dataset, definitions, err) < 0)
		code = EXIT_INTERNAL;
	pass_close(&pass);
	sort_digests(subjects);
	sort_digests(definitions);
	return code;
}

static int sweep_store(struct reftest *reftest, const struct cache_options *o, const struct buf *subjects,
		       const struct buf *definitions, struct err *err)
{
	struct store_needs needs = {.subjects = (const struct digest *)(const void *)subjects->data,
				    .subject_count = (int)(subjects->length / DIGEST_BYTES),
				    .definitions = (const struct digest *)(const void *)definitions->data,
				    .definition_count = (int)(definitions->length / DIGEST_BYTES),
				    .days = o->days};
	struct store_swept swept;
	int code;

	store_close(reftest->store); /* the pass only read it */
	reftest->store = NULL;
	struct store *store = open_store(reftest, false, &code, err);

	if (store == NULL)
		return code;
	if (store_sweep(store, &needs, o->dry_run, &swept, err) != 0)
		return EXIT_INTERNAL;
	printf("%s: %" PRId64
	       " verdicts%s removed that the tree does not need and that are older than %d days, with %" PRId64
	       " rows about cases and %" PRId64 " about files that are gone",
	       store_path(store), swept.verdicts, o->dry_run ? " would be" : "", o->days, swept.latest, swept.files);
	if (swept.damaged > 0)
		printf("; %" PRId64 " rows that did not check out", swept.damaged);
	if (swept.bytes_after < swept.bytes_before)
		printf("; %.1f MB, now %.1f MB", (double)swept.bytes_before / 1e6, (double)swept.bytes_after / 1e6);
	printf("\n");
	return EXIT_VERIFIED;
}

static int run_gc(struct reftest *reftest, const struct cache_options *o, const struct words *names, struct err *err)
{
	struct buf subjects = {0}, definitions = {0};
	int code;

	(void)names;
	if (open_store(reftest, true, &code, err) == NULL)
		return code;
	code = present_tree(reftest, &subjects, &definitions, err);
	if (code == 0)
		code = sweep_store(reftest, o, &subjects, &definitions, err);
	buf_free(&subjects);
	buf_free(&definitions);
	return code;
}

/* --- The table --------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name, *usage, *help;
	int names_least, names_most;
	int (*run)(struct reftest *reftest, const struct cache_options *o, const struct words *names, struct err *err);
} subcommands[] = {
    {"stats", "", "what it holds, and how often it had the answer", 0, 0, run_stats},
    {"export", " FILE", "write every verdict to FILE (- for standard output)", 1, 1, run_export},
    {"import", " FILE…", "merge exported files (- for standard input)", 1, INT32_MAX, run_import},
    {"check", "", "look at every page and row, and name what is damaged", 0, 0, run_check},
    {"gc", "", "remove what neither the present tree nor the last days need", 0, 0, run_gc},
    {"path", "", "where it lies", 0, 0, run_path},
};
enum { SUBCOMMANDS = sizeof subcommands / sizeof subcommands[0] };

/* The subcommands as help lines. `text` is the caller's to free. */
static const char *usage(struct buf *text)
{
	buf_text(text, "cache SUBCOMMAND [options]\n");
	for (int i = 0; i < SUBCOMMANDS; i++) {
		char left[32];

		snprintf(left, sizeof left, "%s%s", subcommands[i].name, subcommands[i].usage);
		buf_printf(text, "\n  %-14s %s", left, subcommands[i].help);
	}
	return text->data;
}

static int run(struct reftest *reftest, struct cache_options *o, struct words *names, struct err *err)
{
	const char *word = names->count > 0 ? names->items[0] : "";
	int i = 0;

	while (i < SUBCOMMANDS && strcmp(subcommands[i].name, word) != 0)
		i++;
	if (i == SUBCOMMANDS) {
		err_set(err,
			"cache takes one of stats, export, import, check, gc and path%s%s; `reftest cache --help` says "
			"what they do",
			*word != '\0' ? ", not " : "", *word != '\0' ? err_show(word).text : "");
		return EXIT_USAGE;
	}
	names->items++;
	names->count--;
	if (names->count < subcommands[i].names_least || names->count > subcommands[i].names_most) {
		err_set(err, "it is `reftest cache %s%s`", subcommands[i].name, subcommands[i].usage);
		return EXIT_USAGE;
	}
	reftest->root_given = o->root != NULL ? o->root : reftest->root_given;
	if (reftest_root(reftest, err) != 0)
		return EXIT_USAGE;
	return subcommands[i].run(reftest, o, names, err);
}

int command_cache(struct reftest *reftest, int argc, char **argv)
{
	struct cache_options o = {.format = "text", .days = DAYS};
	struct buf text = {0};
	struct told told;

	if (options_begin(&told, usage(&text), rows, ROWS, argc, argv, &o) && options_json(o.format, &told.err) >= 0)
		told.code = run(reftest, &o, &told.names, &told.err);
	buf_free(&text);
	return options_end(&told);
}
