/* lock_wait - starts one thread for each wait. The thread blocks all signals, and sleeps until the wait ends or has to
 * be reported. */
#include "cache/lock_wait.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/process_suspended.h"

enum { STACK = 256 << 10, LINE = 256 };

struct holder {
	long process; /* the process ID; 0 if it is unknown (another PID namespace, or no /proc) */
	bool stopped;
};

/* Parses a line of /proc/locks, such as "7: POSIX ADVISORY READ 4711 fe:00:3194966 0 0". A line about a process that
 * only waits for a lock has "->" before the kind of the lock. If the line describes a lock that is held on this file,
 * returns the process that holds it, otherwise 0. */
static long holder_in(const char *line, const struct stat *file)
{
	char kind[16], how[16], what[16];
	unsigned major_number, minor_number;
	unsigned long long inode;
	long process;

	if (sscanf(line, "%*d: %15s %15s %15s %ld %x:%x:%llu", kind, how, what, &process, &major_number, &minor_number,
		   &inode) != 7)
		return 0;
	return process > 0 && makedev(major_number, minor_number) == file->st_dev && inode == file->st_ino ? process
													   : 0;
}

/* Returns a process that holds a lock on the file: a stopped process if there is one, otherwise the last one in
 * /proc/locks. LMDB's locks show which processes have the store open, but not which of them is writing. */
static struct holder find_holder(const char *locked)
{
	struct holder found = {0};
	struct stat st;
	char line[LINE];
	FILE *locks = stat(locked, &st) == 0 ? fopen("/proc/locks", "re") : NULL;

	while (locks != NULL && !found.stopped && fgets(line, sizeof line, locks) != NULL) {
		long process = holder_in(line, &st);

		if (process != 0 && process != (long)getpid())
			found = (struct holder){process, process_is_stopped(process)};
	}
	if (locks != NULL)
		fclose(locks);
	return found;
}

/* A single call writes the message, so that other output cannot come between its parts. */
static void report(const struct lock_wait *waiting)
{
	const struct holder holder = find_holder(waiting->locked);
	char who[192] = "an unknown process (`fuser -v` on the files of the cache lists the processes that have them "
			"open)", text[8192];

	if (holder.process != 0 && holder.stopped)
		snprintf(who, sizeof who,
			 "process %ld, which is stopped: `kill -CONT %ld` continues the process; `kill -KILL %ld` ends the process without "
			 "loss of stored verdicts",
			 holder.process, holder.process, holder.process);
	else if (holder.process != 0)
		snprintf(who, sizeof who, "another process (perhaps process %ld, which has the cache open)", holder.process);
	int length =
	    snprintf(text, sizeof text, "reftest: waiting for the cache %s, which is locked by "
					"%s\n", waiting->cache, who);

	if (length > 0 &&
	    write(STDERR_FILENO, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1) < 0)
		return; /* a failed write only loses the message */
}

static void *wait_and_report(void *context)
{
	struct lock_wait *waiting = context;
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += LOCK_WAIT_REPORT_MS / 1000;
	if (sem_clockwait(&waiting->over, CLOCK_MONOTONIC, &end) != 0 && errno == ETIMEDOUT)
		report(waiting);
	return NULL;
}

static bool start_reporter(struct lock_wait *waiting)
{
	pthread_attr_t how;
	sigset_t all, before;

	if (pthread_attr_init(&how) != 0)
		return false;
	pthread_attr_setstacksize(&how, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	bool begun = pthread_create(&waiting->reporter, &how, wait_and_report, waiting) == 0;

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&how);
	return begun;
}

void lock_wait_begin(struct lock_wait *waiting, const char *cache, const char *locked)
{
	*waiting = (struct lock_wait){.cache = cache, .locked = locked};
	waiting->begun = sem_init(&waiting->over, 0, 0) == 0 && start_reporter(waiting);
}

void lock_wait_end(struct lock_wait *waiting)
{
	sem_post(&waiting->over);
	if (waiting->begun)
		pthread_join(waiting->reporter, NULL);
	sem_destroy(&waiting->over);
}
