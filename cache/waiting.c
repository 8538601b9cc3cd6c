/* A thread for each wait: it sleeps, unless it has something to tell. Signals are none of its business. */
#include "cache/waiting.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/stopped.h"

enum { STACK = 256 << 10, LINE = 256 };

struct holder {
	long process; /* 0: nobody is known (another PID namespace, no /proc) */
	bool stopped;
};

/* A line of /proc/locks: "7: POSIX  ADVISORY  READ 4711 fe:00:3194966 0 0"; of one who only waits for the lock, with
 * "->" before its kind. The process that holds a lock on that file; 0: it is of another. */
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

/* The one that is stopped, if one is: LMDB shows who uses a store, and not which of them writes. */
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

/* One write, so that no other line gets into it. */
static void tell(const struct waiting *waiting)
{
	const struct holder holder = find_holder(waiting->locked);
	char who[192] = "another process (`fuser -v` on the files in it lists who has them open)", text[8192];

	if (holder.process != 0 && holder.stopped)
		snprintf(who, sizeof who,
			 "process %ld, which is stopped: `kill -CONT %ld` lets it go on, `kill -KILL %ld` ends it and "
			 "costs no "
			 "verdict that is stored",
			 holder.process, holder.process, holder.process);
	else if (holder.process != 0)
		snprintf(who, sizeof who, "another process, perhaps %ld, which uses it", holder.process);
	int length =
	    snprintf(text, sizeof text, "reftest: waiting for the cache %s, held by %s\n", waiting->cache, who);

	if (length > 0 &&
	    write(STDERR_FILENO, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1) < 0)
		return; /* there is nobody to tell */
}

static void *wait_and_tell(void *context)
{
	struct waiting *waiting = context;
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += WAITING_TOLD_MS / 1000;
	if (sem_clockwait(&waiting->over, CLOCK_MONOTONIC, &end) != 0 && errno == ETIMEDOUT)
		tell(waiting);
	return NULL;
}

static bool begin_teller(struct waiting *waiting)
{
	pthread_attr_t how;
	sigset_t all, before;

	if (pthread_attr_init(&how) != 0)
		return false;
	pthread_attr_setstacksize(&how, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	bool begun = pthread_create(&waiting->teller, &how, wait_and_tell, waiting) == 0;

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&how);
	return begun;
}

void waiting_begin(struct waiting *waiting, const char *cache, const char *locked)
{
	*waiting = (struct waiting){.cache = cache, .locked = locked};
	waiting->begun = sem_init(&waiting->over, 0, 0) == 0 && begin_teller(waiting);
}

void waiting_end(struct waiting *waiting)
{
	sem_post(&waiting->over);
	if (waiting->begun)
		pthread_join(waiting->teller, NULL);
	sem_destroy(&waiting->over);
}
