/* clone - clones or updates the repositories of the table in repos/known_repositories.h, and writes
 * repos_config.json. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fold_output.h"
#include "base/shell_word.h"
#include "base/show.h"
#include "repos/known_repositories.h"
#include "repos/repos_config.h"

struct clone_options {
	const char *root, *target, *only, *mirror;
	bool lfs;
};

#define AT(member) offsetof(struct clone_options, member)
static const struct option_row rows[] = {
    {"--root", OPTION_FOLDER, AT(root), "DIR", NULL,
     "folder of repos_config.json (default: the root folder of the dataset, or the working directory without a dataset)"},
    {"--target-dir", OPTION_FOLDER, AT(target), "DIR", NULL, "folder for the checkouts (default: ./repos)"},
    {"--only", OPTION_CHOICES, AT(only), "LIST", "sglang|flashinfer|flashinfer-trace",
     "clone or update only these repositories (default: all)"},
    {"--mirror", OPTION_TEXT, AT(mirror), "URL", NULL,
     "fetch from URL/NAME.git instead of the public server; URL may be a folder with bare repositories"},
    {"--lfs", OPTION_FLAG, AT(lfs), NULL, NULL,
     "also fetch the files that are stored in Git LFS (default: leave their pointers in the checkouts)"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static const char *absolute(const char *path, struct arena *arena)
{
	char here[PATH_MAX];

	if (path[0] == '/' || getcwd(here, sizeof here) == NULL)
		return path;
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	return strcmp(path, ".") == 0 ? arena_string(arena, here) : arena_printf(arena, "%s/%s", here, path);
}

static const char *config_folder(struct program *program, const struct clone_options *o, struct arena *arena)
{
	if (o->root != NULL)
		program->root_given = o->root;
	if (program->root_given != NULL)
		return absolute(program->root_given, arena);
	return program_root(program, NULL) == 0 ? absolute(program->root, arena) : absolute(".", arena);
}

static bool is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; at != NULL; at = strchr(at, ',')) {
		at += at != list;
		if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
			return true;
	}
	return list == NULL;
}

/* Returns the URL to clone: MIRROR/NAME.git or, without --mirror, the URL in the table. If MIRROR is a folder, its path
 * is made absolute, because git runs in another folder. */
static const char *url_of(const struct known_repository *known, const struct clone_options *o, struct arena *arena)
{
	struct stat st;

	if (o->mirror == NULL)
		return known->url;
	bool is_folder = stat(o->mirror, &st) == 0 && S_ISDIR(st.st_mode);

	return arena_printf(arena, "%s/%s.git", is_folder ? absolute(o->mirror, arena) : o->mirror, known->name);
}

static const char *retry_of(const struct known_repository *known, const struct clone_options *o, const char *target,
			    const char *folder, struct arena *arena)
{
	struct buf out = {0};

	buf_printf(&out, "reftest clone --only %s --target-dir ", known->name);
	buf_shell_word(&out, target);
	buf_text(&out, " --root ");
	buf_shell_word(&out, folder);
	if (o->mirror != NULL) {
		buf_text(&out, " --mirror ");
		buf_shell_word(&out, o->mirror);
	}
	buf_text(&out, o->lfs ? " --lfs" : "");
	const char *text = arena_string(arena, out.data);

	buf_free(&out);
	return text;
}

static int clone_one(const struct known_repository *known, const struct clone_options *o, const char *folder,
		     struct repos_config *config, struct arena *arena, struct err *err)
{
	const struct checkout_request request = {.name = known->name,
						 .url = url_of(known, o, arena),
						 .target = config->target_dir,
						 .retry = retry_of(known, o, config->target_dir, folder, arena),
						 .lfs = o->lfs};
	const char *path = arena_printf(arena, "%s/%s", request.target, request.name);
	struct checkout checkout = {CHECKOUT_INCOMPLETE, path, "", "not finished; run `reftest clone` again"};

	repos_config_set(config, known->name, &checkout, arena);
	if (repos_config_write(folder, config, err) < 0)
		return EXIT_INTERNAL;
	show_print(stderr, "reftest: %s: fetching\n", known->name);
	checkout = checkout_bring(&request, arena);
	repos_config_set(config, known->name, &checkout, arena);
	if (repos_config_write(folder, config, err) < 0)
		return EXIT_INTERNAL;
	show_print(stdout, "%-10s %-18s %.12s%s%s\n", checkout_status_name(checkout.status), known->name, checkout.commit,
		   checkout.commit[0] != '\0' ? "  " : "", checkout.message);
	return checkout.status == CHECKOUT_FAILED ? EXIT_FAILED : EXIT_VERIFIED;
}

static int run(struct program *program, const struct clone_options *o, struct arena *arena, struct err *err)
{
	const char *folder = config_folder(program, o, arena);
	struct repos_config config;
	int worst = EXIT_VERIFIED;

	if (o->mirror != NULL && (o->mirror[0] == '-' || o->mirror[0] == '\0'))
		return err_set(err, "--mirror takes a URL or a folder"), EXIT_USAGE;
	if (repos_config_read(folder, arena, &config, err) < 0)
		return EXIT_USAGE;
	config.target_dir = absolute(o->target, arena);
	for (int i = 0; i < known_repository_count; i++) {
		int code = is_listed(o->only, known_repositories[i].name)
			       ? clone_one(&known_repositories[i], o, folder, &config, arena, err)
			       : EXIT_VERIFIED;

		if (code == EXIT_INTERNAL)
			return code;
		worst = code > worst ? code : worst;
	}
	return worst;
}

static int start(struct program *program, int argc, char **argv)
{
	struct clone_options o = {.target = "./repos"};
	struct command_line line;

	if (command_line_begin(&line, &command_clone, argc, argv, &o)) {
		fold_output();
		line.code = run(program, &o, &line.arena, &line.err);
	}
	return command_line_end(&line);
}

const struct command command_clone = {
    .name = "clone",
    .summary = "clone or update SGLang, FlashInfer and the dataset",
    .synopsis = "[options]",
    .description =
	"Clones the repositories into the target folder, or updates existing checkouts in this folder. Writes the paths of "
	"the checkouts to `repos_config.json`. Downloads only the latest commit. After an interruption, run the same command "
	"again.\n"
	"\n"
	"A checkout with local changes or local commits is left unchanged. Nothing is installed.",
    .operands = OPERANDS_NONE,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
