/* lmdb_locks - each lock is one byte of lock.mdb, far behind the bytes that LMDB locks. */
#include "cache/lmdb_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>

#include "cache/lock_wait.h"

enum { FIRST_BYTE = 1 << 30 };

/* Returns false if the caller must try again, because another process has the lock or a signal interrupted fcntl.
 * Returns true if fcntl succeeded, or failed with any other error. */
static bool set_lock(int locks, enum lmdb_lock lock, int command, short type)
{
	struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = FIRST_BYTE + (int)lock, .l_len = 1};

	return fcntl(locks, command, &range) == 0 || (errno != EAGAIN && errno != EACCES && errno != EINTR);
}

int lmdb_locks_open(const char *lock_file)
{
	int fd = open(lock_file, O_RDWR | O_CLOEXEC);

	return fd >= 0 ? fd : LMDB_LOCKS_NONE;
}

void lmdb_lock(int locks, enum lmdb_lock lock, const char *cache, const char *lock_file)
{
	struct lock_wait waiting;

	if (locks == LMDB_LOCKS_NONE || set_lock(locks, lock, F_OFD_SETLK, F_WRLCK))
		return;
	lock_wait_begin(&waiting, cache, lock_file);
	while (!set_lock(locks, lock, F_OFD_SETLKW, F_WRLCK))
		;
	lock_wait_end(&waiting);
}

void lmdb_unlock(int locks, enum lmdb_lock lock)
{
	if (locks != LMDB_LOCKS_NONE)
		set_lock(locks, lock, F_OFD_SETLK, F_UNLCK);
}
