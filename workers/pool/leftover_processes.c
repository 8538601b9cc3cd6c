#include "workers/pool/leftover_processes.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reads the parent, the process group and the session of a process from /proc/PID/stat, which has the form "PID (name)
 * state ppid pgrp session …". The name may contain any character, even parentheses, so the fields are read after the
 * last ')'. */
static bool relations_of(const char *pid, pid_t *parent, pid_t *group, pid_t *session)
{
	char path[64], text[1024];
	const char *end;
	size_t length;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	if ((file = fopen(path, "re")) == NULL)
		return false;
	length = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[length] = '\0';
	end = strrchr(text, ')');
	return end != NULL && sscanf(end + 1, " %*c %d %d %d", parent, group, session) == 3;
}

int leftover_processes_kill(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t self = getpid(), own = getsid(0), own_group = getpgrp(), parent, group, session;
	int found = 0;

	while (proc != NULL && (entry = readdir(proc)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    !relations_of(entry->d_name, &parent, &group, &session) || parent != self ||
		    (session == own && (group == pid || group == own_group)))
			continue;
		found++;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, WNOHANG);
	}
	if (proc != NULL)
		closedir(proc);
	return found;
}
