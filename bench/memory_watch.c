/* memory_watch - measures how long it takes to add up the memory of all processes of a reference. The pool adds up this
 * memory every 50 ms while a reference runs. Calls memory_watch_sum on a folder that stands in for a runner's /proc.
 * The processes in this folder share pages with this program, as the processes of a reference share pages with its
 * runner. Usage: memory_watch [MIB [ROUNDS]]. Prints the medians for 1, 2, 10 and 100 processes, for the quick sum and
 * for the exact sum. (The pool computes the exact sum only if the quick sum is too large.) */
#include "workers/pool/memory_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 100, ROUNDS_MAX = 1000 };

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns the median processor time of a sum, in microseconds. */
static double median_us(int folder, bool exact, int rounds)
{
	double times[ROUNDS_MAX];

	for (int i = 0; i < rounds; i++) {
		double start = now_us();

		if (memory_watch_sum(folder, exact) <= 0) {
			fprintf(stderr, "memory_watch: there is no sum\n");
			exit(1);
		}
		times[i] = now_us() - start;
	}
	qsort(times, (size_t)rounds, sizeof *times, compare);
	return times[rounds / 2];
}

static pid_t start_process(int folder, const char *last)
{
	char name[16], target[32];
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			pause();
		_exit(0);
	}
	snprintf(name, sizeof name, "%d", (int)pid);
	snprintf(target, sizeof target, "/proc/%s", name);
	if (pid < 0 || symlinkat(target, folder, name) != 0) {
		perror(last);
		exit(1);
	}
	return pid;
}

int main(int argc, char **argv)
{
	static const int counts[] = {1, 2, 10, PROCESSES};
	size_t bytes = (size_t)(argc > 1 ? atoi(argv[1]) : 64) << 20;
	int rounds = argc > 2 && atoi(argv[2]) > 0 && atoi(argv[2]) < ROUNDS_MAX ? atoi(argv[2]) : 15, running = 0;
	char folder_name[] = "/tmp/reftest-memory-watch-XXXXXX", *memory = malloc(bytes + 1);
	pid_t pids[PROCESSES];
	int folder = mkdtemp(folder_name) == NULL ? -1 : open(folder_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (folder < 0 || memory == NULL)
		return 1;
	memset(memory, 1, bytes + 1);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		while (running < counts[i])
			pids[running++] = start_process(folder, folder_name);
		printf("%3d processes of %zu MiB: %8.1f us, exact %8.1f us\n", running, bytes >> 20,
		       median_us(folder, false, rounds), median_us(folder, true, rounds));
	}
	for (int i = 0; i < running; i++) {
		char name[32];

		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
		snprintf(name, sizeof name, "%d", (int)pids[i]);
		unlinkat(folder, name, 0);
	}
	rmdir(folder_name);
	free(memory);
	return 0;
}
