/* generate - the dataset's pytest files: written, checked, or shown (commands/generated.h). */
#include "commands/command.h"

#include <stdio.h>
#include <string.h>

#include "commands/audited.h"
#include "commands/generated.h"
#include "commands/options.h"
#include "commands/pass.h"

struct generate_options {
	const char *root, *layout, *print;
	bool all, check, force, audit, hook;
	struct words op_types;
};

#define AT(member) offsetof(struct generate_options, member)
static const struct option_row rows[] = {
    {"--root", OPTION_TEXT, AT(root), "DIR", "the dataset"},
    {"--all", OPTION_FLAG, AT(all), NULL, "every definition (also what no name at all means)"},
    {"--op-type", OPTION_LIST, AT(op_types), "T", "the definitions of this op_type; may be repeated"},
    {"--layout", OPTION_TEXT, AT(layout), "L",
     "op-type: test_{op_type}.py; definition: test_{name}.py (default: as last time, else op-type)"},
    {"--check", OPTION_FLAG, AT(check), NULL, "write nothing; exit 1 and list what is out of date"},
    {"--hook", OPTION_FLAG, AT(hook), NULL,
     "for git hooks: exit 1 if anything had to be written, and say what to `git add`"},
    {"--force", OPTION_FLAG, AT(force), NULL, "also replace files that somebody wrote or edited"},
    {"--audit", OPTION_FLAG, AT(audit), NULL,
     "list hand-written tests that cannot fail, with file, line and reason; exit 1 if any"},
    {"--print", OPTION_TEXT, AT(print), "FILE", "show what this file would hold (\"test_gemm.py\"), and write nothing"},
};

enum { ROWS = sizeof rows / sizeof rows[0], FILES_NAMED = 8 };

static int read_layout(const struct generate_options *o, const char *root, enum layout *layout, struct err *err)
{
	*layout = LAYOUT_OP_TYPE;
	if (o->layout == NULL)
		generated_before(root, layout);
	else if (strcmp(o->layout, "definition") == 0)
		*layout = LAYOUT_DEFINITION;
	else if (strcmp(o->layout, "op-type") != 0)
		return err_set(err, "'%s' is no layout; --layout takes op-type or definition", o->layout);
	return 0;
}

static void print_summary(const struct generate_options *o, const struct generated *g)
{
	for (int i = 0; i < g->told_count; i++)
		printf("%s\n", g->told[i]);
	printf("%d definition%s: %d with a test (%d hand-written), %d without, %d stale; ", g->definitions,
	       g->definitions == 1 ? "" : "s", g->with_test, g->hand_written, g->without, g->stale);
	printf("%d file%s: %d %s, %d removed, %d current\n", g->files, g->files == 1 ? "" : "s", g->written,
	       o->check ? "out of date" : "written", g->removed, g->current);
}

/* The command after which the commit may be tried again. Many files are added by their folder. */
static void print_remedy(const struct generate_options *o, const struct generated *g, const char *root)
{
	const char *head = strcmp(root, ".") == 0 ? "" : root, *slash = *head != '\0' ? "/" : "";

	if (g->changed_count == 0 || (!o->check && !o->hook))
		return;
	printf("now: %s", o->check ? "reftest generate && " : "");
	if (g->changed_count > FILES_NAMED) {
		printf("git add '%s%stests/references'\n", head, slash);
		return;
	}
	printf("git add");
	for (int i = 0; i < g->changed_count; i++)
		printf(" '%s%s%s'", head, slash, g->changed[i]);
	printf("\n");
}

static int exit_code(const struct generate_options *o, const struct generated *g)
{
	if (g->refused > 0 || ((o->check || o->hook) && g->written + g->removed > 0))
		return EXIT_FAILED;
	return g->invalid > 0 ? EXIT_USAGE : EXIT_VERIFIED;
}

/* Selects and updates. `pass` is but a dataset and a selection: nothing runs. */
static int update(struct pass *pass, const struct generate_options *o, const struct words *names, struct err *err)
{
	bool every = names->count == 0 && o->op_types.count == 0;
	struct generated_options options = {.check = o->check, .force = o->force, .print = o->print};
	struct generated generated;

	if (read_layout(o, pass->reftest->root, &options.layout, err) < 0 ||
	    pass_select(pass, names->items, names->count, o->op_types.items, o->op_types.count, err) < 0)
		return EXIT_USAGE;
	if (!every) {
		options.selected = pass->selected;
		options.selected_count = pass->selected_count;
	}
	if (generated_update(pass->reftest, &pass->dataset, &options, &pass->arena, &generated, err) < 0)
		return EXIT_INTERNAL;
	if (o->print != NULL) {
		if (!generated.printed)
			err_set(err,
				"'%s' is no file that would be generated here; `reftest generate --check` lists those",
				o->print);
		return generated.printed ? EXIT_VERIFIED : EXIT_USAGE;
	}
	print_summary(o, &generated);
	print_remedy(o, &generated, pass->reftest->root);
	return exit_code(o, &generated);
}

static int audit(struct pass *pass, struct err *err)
{
	struct audited audited;

	if (audited_files(&pass->dataset, pass->reftest->root, &pass->arena, &audited, err) < 0)
		return EXIT_INTERNAL;
	for (int i = 0; i < audited.told_count; i++)
		printf("%s\n", audited.told[i]);
	printf("%d hand-written test file%s, %d finding%s\n", audited.files, audited.files == 1 ? "" : "s",
	       audited.told_count, audited.told_count == 1 ? "" : "s");
	return audited.told_count > 0 ? EXIT_FAILED : EXIT_VERIFIED;
}

static int act(struct pass *pass, const struct generate_options *o, const struct words *names, struct err *err)
{
	if (dataset_scan(pass->reftest->root, &pass->arena, &pass->dataset, err) < 0)
		return EXIT_INTERNAL;
	return o->audit ? audit(pass, err) : update(pass, o, names, err);
}

static int run(struct reftest *reftest, const struct generate_options *o, const struct words *names, struct err *err)
{
	struct pass pass = {.reftest = reftest};
	int code = EXIT_USAGE;

	pass.dataset.fd = -1;
	if (o->root != NULL)
		reftest->root_given = o->root;
	if (o->all && names->count > 0) {
		err_set(err, "--all and the name '%s' contradict each other; give one of them", names->items[0]);
		return EXIT_USAGE;
	}
	if (reftest_root(reftest, err) == 0)
		code = act(&pass, o, names, err);
	pass_close(&pass);
	return code;
}

int command_generate(struct reftest *reftest, int argc, char **argv)
{
	struct generate_options o = {.root = NULL};
	struct told told;

	if (options_begin(&told, "generate [options] [NAME…]", rows, ROWS, argc, argv, &o))
		told.code = run(reftest, &o, &told.names, &told.err);
	return options_end(&told);
}
