#include "watcher/exec.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

extern char **environ;

void exec_open(struct exec *exec, const char *command, int output)
{
	*exec = (struct exec){.command = command, .output = output, .process = {0, -1}};
}

void exec_name(struct exec *exec, const char *op_type, const char *name, enum status status)
{
	const struct last_status last = {.status = status};
	struct arena arena = {0};

	if (exec->command != NULL)
		last_statuses_set(&exec->names, arena_printf(&arena, "%s/%s", op_type, name), &last);
	arena_free(&arena);
}

void exec_forget(struct exec *exec, const char *op_type_and_name)
{
	last_statuses_forget(&exec->names, op_type_and_name);
}

struct variable {
	char name[32];
};

/* returns the name of the variable that has the number of definitions with this status, such as "REFTEST_PASSED=" */
static struct variable count_variable(enum status status)
{
	struct variable variable;

	snprintf(variable.name, sizeof variable.name, "REFTEST_%s=", status_name(status));
	for (char *at = variable.name; *at != '\0'; at++)
		*at = (char)toupper((unsigned char)*at);
	return variable;
}

static const char list[] = "REFTEST_NAMES=", number[] = "REFTEST_COUNT=";

enum { OURS = STATUS_COUNT + 2 };

static bool is_of(const char *variable, const char *name)
{
	return strncmp(variable, name, strlen(name)) == 0;
}

/* Returns whether make_environment sets the variable. If another watcher started this one with --exec, the environment
 * of this watcher already has such variables. They must not be copied to the environment of the command: of two
 * variables with the same name, some shells use the last one. */
static bool is_ours(const char *variable)
{
	bool ours = is_of(variable, list) || is_of(variable, number);

	for (int s = 0; s < STATUS_COUNT && !ours; s++)
		ours = is_of(variable, count_variable((enum status)s).name);
	return ours;
}

static void list_names(const struct exec *exec, struct buf *out)
{
	struct arena arena = {0};
	const char **all;
	int count = last_statuses_paths(&exec->names, "", &arena, &all);

	buf_text(out, list);
	for (int i = 0; i < count && out->length + strlen(all[i]) + 1 <= EXEC_NAMES; i++)
		buf_printf(out, "%s%s", i > 0 ? "\n" : "", all[i]);
	arena_free(&arena);
}

/* Builds the environment of the command, terminated by NULL. The first OURS elements are the variables whose names
 * is_ours recognizes. Call free_environment to free the result. */
static char **make_environment(const struct exec *exec)
{
	struct buf named = {0};
	size_t count = 0;

	while (environ[count] != NULL)
		count++;
	char **all = calloc(count + OURS + 1, sizeof *all);
	size_t at = 0;

	list_names(exec, &named);
	if (all == NULL || (all[at++] = strdup(named.data)) == NULL ||
	    asprintf(&all[at++], "%s%d", number, exec->names.count) < 0)
		die_no_memory();
	buf_free(&named);
	for (int s = 0; s < STATUS_COUNT; s++)
		if (asprintf(&all[at++], "%s%d", count_variable((enum status)s).name, exec->names.by_status[s]) < 0)
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

int exec_run(struct exec *exec, struct err *err)
{
	char shell[] = "/bin/sh", flag[] = "-c";
	const int fds[] = {-1, exec->output, STDERR_FILENO};

	if (exec->command == NULL)
		return 0;
	exec->wanted = true;
	if (exec->process.pid != 0)
		return 0;
	char **environment = make_environment(exec);
	char *argv[] = {shell, flag, (char *)exec->command, NULL};
	int rc = process_start(&exec->process, shell, argv, environment, fds, 3, err);

	free_environment(environment);
	last_statuses_free(&exec->names);
	exec->wanted = false;
	return rc;
}

int exec_fd(const struct exec *exec)
{
	return exec->process.pid != 0 ? exec->process.pidfd : -1;
}

bool exec_ended(struct exec *exec, int *status)
{
	return exec->process.pid != 0 && process_ended(&exec->process, status);
}

void exec_close(struct exec *exec)
{
	int status;

	if (exec->process.pid != 0) {
		struct pollfd end = {exec->process.pidfd, POLLIN, 0};

		process_kill(&exec->process);
		poll(&end, 1, 500);
		process_ended(&exec->process, &status);
	}
	last_statuses_free(&exec->names);
}
