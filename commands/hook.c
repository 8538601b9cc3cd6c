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

/* The environment with our variables in front (the first of a name counts); ends in NULL. Freed with free_environment. */
static char **make_environment(const struct hook *hook)
{
	static const char *const names[STATUS_COUNT] = {
	    [STATUS_PASSED] = "PASSED", [STATUS_SKIPPED] = "SKIPPED", [STATUS_ERROR] = "ERROR", [STATUS_FAILED] = "FAILED",
	    [STATUS_INVALID] = "INVALID",
	};
	size_t count = 0;

	while (environ[count] != NULL)
		count++;
	char **all = calloc(count + STATUS_COUNT + 3, sizeof *all);
	int at = 0;

	if (all == NULL || asprintf(&all[at++], "REFTEST_NAMES=%s", hook->names.length > 0 ? hook->names.data : "") < 0 ||
	    asprintf(&all[at++], "REFTEST_COUNT=%d", hook->count) < 0)
		die_no_memory();
	for (int s = 0; s < STATUS_COUNT; s++)
		if (asprintf(&all[at++], "REFTEST_%s=%d", names[s], hook->by_status[s]) < 0)
			die_no_memory();
	memcpy(all + at, environ, count * sizeof *all);
	return all;
}

static void free_environment(char **all)
{
	for (int i = 0; i < STATUS_COUNT + 2; i++)
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
