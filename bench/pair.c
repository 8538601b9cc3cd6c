/* pair - compares the times of two commands. The program runs the two commands alternately (A B A B …) and computes the
 * ratio of each pair of times. A change in the machine's load therefore affects both commands. Usage: pair RUNS NAME_A
 * COMMAND_A NAME_B COMMAND_B. The commands run with `sh -c "exec …"`. Prints the medians of wall and processor time,
 * the median ratios A/B with their quartiles, and the largest resident sets. */
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
	double ms[RUNS_MAX], cpu_ms[RUNS_MAX];
	long peak_kib;
	int status; /* exit status of the last run */
};

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static double time_ms(struct timeval t)
{
	return 1e3 * (double)t.tv_sec + 1e-3 * (double)t.tv_usec;
}

/* Runs the command once and stores its times at index `at`. */
static void run(struct side *side, int at)
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
	side->ms[at] = now_ms() - start;
	side->cpu_ms[at] = time_ms(usage.ru_utime) + time_ms(usage.ru_stime);
	side->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (usage.ru_maxrss > side->peak_kib)
		side->peak_kib = usage.ru_maxrss;
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

static void tell(struct side *side, int runs)
{
	printf("%-36s wall %8.2f ms  processor %8.2f ms  %6.1f MiB  exit %d\n", side->name, part(side->ms, runs, 0.5),
	       part(side->cpu_ms, runs, 0.5), (double)side->peak_kib / 1024, side->status);
}

static void tell_ratio(const char *what, double *ratio, int runs)
{
	double low = part(ratio, runs, 0.25), middle = part(ratio, runs, 0.5), high = part(ratio, runs, 0.75);

	printf("%-36s %.2f (quartiles %.2f to %.2f, %d pairs)\n", what, middle, low, high, runs);
}

int main(int argc, char **argv)
{
	static struct side a, b;
	static double ratio[RUNS_MAX], cpu_ratio[RUNS_MAX];
	int runs = argc == 6 ? atoi(argv[1]) : 0;

	if (runs < 1 || runs > RUNS_MAX) {
		fprintf(stderr, "usage: pair RUNS(1-%d) NAME_A COMMAND_A NAME_B COMMAND_B\n", RUNS_MAX);
		return 2;
	}
	a.name = argv[2], a.command = argv[3], b.name = argv[4], b.command = argv[5];
	run(&a, 0), run(&b, 0); /* warms the caches */
	for (int i = 0; i < runs; i++) {
		run(&a, i);
		run(&b, i);
		ratio[i] = a.ms[i] / b.ms[i];
		cpu_ratio[i] = a.cpu_ms[i] / b.cpu_ms[i];
	}
	tell(&a, runs);
	tell(&b, runs);
	tell_ratio("ratio of wall times", ratio, runs);
	tell_ratio("ratio of processor times", cpu_ratio, runs);
	return 0;
}
