#include "commands/hook.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

extern char **environ;

void hook_open(struct hook *hook, const char *command, int output)
{
	*hook = (struct hook){.command = command, .output = output, .process = {0, -1}};
}

void hook_name(struct hook *hook, const char *op_type, const char *name, enum status status)
{
	const struct word word = {.status = status};
	struct arena arena = {0};

	if (hook->command != NULL)
		roll_set(&hook->names, arena_printf(&arena, "%s/%s", op_type, name), &word);
	arena_free(&arena);
}

void hook_forget(struct hook *hook, const char *op_type_and_name)
{
	roll_forget(&hook->names, op_type_and_name);
}

static const char *const names[STATUS_COUNT] = {
    [STATUS_PASSED] = "REFTEST_PASSED=", [STATUS_SKIPPED] = "REFTEST_SKIPPED=", [STATUS_ERROR] = "REFTEST_ERROR=",
    [STATUS_FAILED] = "REFTEST_FAILED=", [STATUS_INVALID] = "REFTEST_INVALID=",
};
static const char list[] = "REFTEST_NAMES=", number[] = "REFTEST_COUNT=";

enum { OURS = STATUS_COUNT + 2 };

static bool is_of(const char *variable, const char *name)
{
	return strncmp(variable, name, strlen(name)) == 0;
}

/* A watcher may be run by another's command, whose variables would be there twice: of two some shells take the last. */
static bool is_ours(const char *variable)
{
	bool ours = is_of(variable, list) || is_of(variable, number);

	for (int s = 0; s < STATUS_COUNT && !ours; s++)
		ours = is_of(variable, names[s]);
	return ours;
}

static void list_names(const struct hook *hook, struct buf *out)
{
	struct arena arena = {0};
	const char **all;
	int count = roll_paths(&hook->names, "", &arena, &all);

	buf_text(out, list);
	for (int i = 0; i < count && out->length + strlen(all[i]) + 1 <= HOOK_NAMES; i++)
		buf_printf(out, "%s%s", i > 0 ? "\n" : "", all[i]);
	arena_free(&arena);
}

/* The environment with our variables in front; ends in NULL. Freed with free_environment. */
static char **make_environment(const struct hook *hook)
{
	struct buf named = {0};
	size_t count = 0;

	while (environ[count] != NULL)
		count++;
	char **all = calloc(count + OURS + 1, sizeof *all);
	size_t at = 0;

	list_names(hook, &named);
	if (all == NULL || (all[at++] = strdup(named.data)) == NULL ||
	    asprintf(&all[at++], "%s%d", number, hook->names.count) < 0)
		die_no_memory();
	buf_free(&named);
	for (int s = 0; s < STATUS_COUNT; s++)
		if (asprintf(&all[at++], "%s%d", names[s], hook->names.by_status[s]) < 0)
			die_no_memory();
	for (size_t i = 0; i < count; i++)
		if (!is_ours(environ[i]))
			all[at++] = environ[i];
	return all;
}

static void free_environment(char **all)
{
	for (int i = 0; i < OURS; i++)
		free(all[i]);
	free(all);
}

int hook_run(struct hook *hook, struct err *err)
{
	char shell[] = "/bin/sh", flag[] = "-c";
	const int fds[] = {-1, hook->output, STDERR_FILENO};

	if (hook->command == NULL)
		return 0;
	hook->wanted = true;
	if (hook->process.pid != 0)
		return 0;
	char **environment = make_environment(hook);
	char *argv[] = {shell, flag, (char *)hook->command, NULL};
	int rc = process_start(&hook->process, shell, argv, environment, fds, 3, err);

	free_environment(environment);
	roll_free(&hook->names);
	hook->wanted = false;
	return rc;
}

int hook_fd(const struct hook *hook)
{
	return hook->process.pid != 0 ? hook->process.pidfd : -1;
}

bool hook_ended(struct hook *hook, int *status)
{
	return hook->process.pid != 0 && process_ended(&hook->process, status);
}

void hook_close(struct hook *hook)
{
	int status;

	if (hook->process.pid != 0) {
		struct pollfd end = {hook->process.pidfd, POLLIN, 0};

		process_kill(&hook->process);
		poll(&end, 1, 500);
		process_ended(&hook->process, &status);
	}
	roll_free(&hook->names);
}
