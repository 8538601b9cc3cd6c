#include "commands/hook.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

void hook_open(struct hook *hook, const char *command, int output)
{
	*hook = (struct hook){.command = command, .output = output, .process = {0, -1}};
}

void hook_name(struct hook *hook, const char *op_type, const char *name, enum status status)
{
	if (hook->command == NULL)
		return;
	hook->count++;
	hook->by_status[status]++;
	if (hook->names.length + strlen(op_type) + strlen(name) + 2 <= HOOK_NAMES)
		buf_printf(&hook->names, "%s%s/%s", hook->names.length > 0 ? "\n" : "", op_type, name);
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

/* The environment with our variables in front; ends in NULL. Freed with free_environment. */
static char **make_environment(const struct hook *hook)
{
	size_t count = 0;

	while (environ[count] != NULL)
		count++;
	char **all = calloc(count + OURS + 1, sizeof *all);
	size_t at = 0;

	if (all == NULL || asprintf(&all[at++], "%s%s", list, hook->names.length > 0 ? hook->names.data : "") < 0 ||
	    asprintf(&all[at++], "%s%d", number, hook->count) < 0)
		die_no_memory();
	for (int s = 0; s < STATUS_COUNT; s++)
		if (asprintf(&all[at++], "%s%d", names[s], hook->by_status[s]) < 0)
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
	buf_clear(&hook->names);
	memset(hook->by_status, 0, sizeof hook->by_status);
	hook->count = 0;
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
	buf_free(&hook->names);
}
