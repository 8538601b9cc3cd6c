#include "engine/program.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/show_wrapped.h"
#include "dataset/dataset.h"
#include "dataset/linked_dataset.h"
#include "engine/remembered_libraries.h"
#include "engine/settings.h"

/* Returns whether a folder exists and is not a dataset. Such a folder may contain definitions in another layout. */
static bool holds_definitions_elsewhere(const char *folder)
{
	char definitions[PATH_MAX];
	struct stat st;

	return stat(folder, &st) == 0 && S_ISDIR(st.st_mode) &&
	       snprintf(definitions, sizeof definitions, "%s/definitions", folder) < (int)sizeof definitions &&
	       stat(definitions, &st) != 0;
}

int program_root(struct program *program, struct err *err)
{
	if (program->root[0] != '\0')
		return 0;
	const char *named = dataset_named_root(program->root_given);

	if (named != NULL && holds_definitions_elsewhere(named))
		return linked_dataset_make(&named, 1, program->root, sizeof program->root, err) < 0 ? -1 : 0;
	return dataset_find_root(program->root_given, program->root, sizeof program->root, err);
}

int program_root_by_path(struct program *program, struct err *err)
{
	char here[PATH_MAX], given[PATH_MAX];

	if (program_root(program, err) < 0)
		return -1;
	if (program->root[0] == '/')
		return 0;
	memcpy(given, program->root, strlen(program->root) + 1);
	if (getcwd(here, sizeof here) == NULL)
		return err_errno(err, "cannot get the working directory; name the dataset with --root and an absolute path");
	bool is_here = strcmp(given, ".") == 0;

	if (snprintf(program->root, sizeof program->root, "%s%s%s", here, is_here ? "" : "/", is_here ? "" : given) >=
	    (int)sizeof program->root)
		return err_set(err, "%s/%s: the path is too long", here, given);
	return 0;
}

int program_settings(struct program *program, struct err *err)
{
	if (program->settings != NULL)
		return 0;
	program->settings = settings_read(program->root, err);
	if (program->settings == NULL)
		return -1;
	if (program->settings->note != NULL) {
		struct arena arena = {0};

		show_wrapped(stderr, arena_printf(&arena, "reftest: %s\n", program->settings->note));
		arena_free(&arena);
	}
	return 0;
}

int program_kernels(struct program *program, struct err *err)
{
	const struct digest_memory memory = remembered_libraries(program->store);

	return program->kernels.api != NULL ? 0 : kernels_open(&program->kernels, &memory, err);
}

void program_cuda_kernels(struct program *program)
{
	const struct digest_memory memory = remembered_libraries(program->store);

	kernels_seal_cuda(&program->kernels, &memory, NULL);
}

void program_store(struct program *program, bool read_only, struct err *note)
{
	struct store_options options = {.read_only = read_only};
	struct err err = {""};

	note->text[0] = '\0';
	if (program->store != NULL)
		return;
	program->store = store_open(program->root, &options, note, &err);
	if (program->store == NULL && err.text[0] != '\0')
		err_set(note, "%s", err.text);
}

int program_signals(struct program *program, struct err *err)
{
	sigset_t set;

	if (program->signals >= 0)
		return 0;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_errno(err, "cannot block signals");
	program->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return program->signals < 0 ? err_errno(err, "cannot create a signalfd") : 0;
}

void program_close(struct program *program)
{
	if (program->store != NULL)
		store_close(program->store);
	if (program->kernels.api != NULL)
		kernels_close(&program->kernels);
	if (program->signals >= 0)
		close(program->signals);
	free(program->torch_key);
	free(program->torch_fact);
	program->torch_key = program->torch_fact = NULL;
	settings_free(program->settings);
	program->settings = NULL;
	secrets_forget(&program->secrets);
}
