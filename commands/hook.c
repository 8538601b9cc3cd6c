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

static void list_names(const struct hook *hook, struct buf *out)
{
	struct arena arena = {0};
	const char **names;
	int count = roll_paths(&hook->names, "", &arena, &names);

	buf_text(out, "REFTEST_NAMES=");
	for (int i = 0; i < count && out->length + strlen(names[i]) + 1 <= HOOK_NAMES; i++)
		buf_printf(out, "%s%s", i > 0 ? "\n" : "", names[i]);
	arena_free(&arena);
}

/* The environment with our variables in front (the first of a name counts); ends in NULL. Freed with free_environment.
 */
static char **make_environment(const struct hook *hook)
{
	static const char *const names[STATUS_COUNT] = {
	    [STATUS_PASSED] = "PASSED", [STATUS_SKIPPED] = "SKIPPED", [STATUS_ERROR] = "ERROR",
	    [STATUS_FAILED] = "FAILED", [STATUS_INVALID] = "INVALID",
	};
	struct buf list = {0};
	size_t count = 0;

	while (environ[count] != NULL)
		count++;
	char **all = calloc(count + STATUS_COUNT + 3, sizeof *all);
	int at = 0;

	list_names(hook, &list);
	if (all == NULL || (all[at++] = strdup(list.data)) == NULL ||
	    asprintf(&all[at++], "REFTEST_COUNT=%d", hook->names.count) < 0)
		die_no_memory();
	buf_free(&list);
	for (int s = 0; s < STATUS_COUNT; s++)
		if (asprintf(&all[at++], "REFTEST_%s=%d", names[s], hook->names.by_status[s]) < 0)
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
