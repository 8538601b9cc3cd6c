/* pair - two commands in turn, A B A B …, and the ratio of their wall times pair by pair: what a shared machine's drift
 * does to one it does to the other. Usage: pair RUNS NAME_A COMMAND_A NAME_B COMMAND_B (commands go to `sh -c "exec …"`).
 * Prints medians in ms, the median ratio A/B with its quartiles, and the largest resident set of each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RUNS_MAX = 1000 };

struct side {
	const char *name, *command;
	double ms[RUNS_MAX];
	long peak_kib;
	int status; /* of the last run */
};

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static double run(struct side *side)
{
	char line[4096];
	struct rusage usage;
	int status;

	snprintf(line, sizeof line, "exec %s >/dev/null 2>&1", side->command);
	double start = now_ms();
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) < 0) {
		perror("pair");
		exit(4);
	}
	double ms = now_ms() - start;

	side->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (usage.ru_maxrss > side->peak_kib)
		side->peak_kib = usage.ru_maxrss;
	return ms;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double part(double *values, int count, double at)
{
	qsort(values, (size_t)count, sizeof *values, compare);
	return values[(int)(at * (count - 1) + 0.5)];
}

int main(int argc, char **argv)
{
	static struct side a, b;
	static double ratio[RUNS_MAX];
	int runs = argc == 6 ? atoi(argv[1]) : 0;

	if (runs < 1 || runs > RUNS_MAX) {
		fprintf(stderr, "usage: pair RUNS(1-%d) NAME_A COMMAND_A NAME_B COMMAND_B\n", RUNS_MAX);
		return 2;
	}
	a.name = argv[2], a.command = argv[3], b.name = argv[4], b.command = argv[5];
	run(&a), run(&b); /* caches warm */
	for (int i = 0; i < runs; i++) {
		a.ms[i] = run(&a);
		b.ms[i] = run(&b);
		ratio[i] = a.ms[i] / b.ms[i];
	}
	double low = part(ratio, runs, 0.25), middle = part(ratio, runs, 0.5), high = part(ratio, runs, 0.75);

	printf("%-44s %9.2f ms  %7.1f MiB  exit %d\n", a.name, part(a.ms, runs, 0.5), (double)a.peak_kib / 1024, a.status);
	printf("%-44s %9.2f ms  %7.1f MiB  exit %d\n", b.name, part(b.ms, runs, 0.5), (double)b.peak_kib / 1024, b.status);
	printf("%-44s %9.2f     (quartiles %.2f to %.2f, %d pairs)\n", "ratio", middle, low, high, runs);
	return 0;
}
