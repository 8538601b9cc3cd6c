/* lmdb_locks - file locks that a process takes before it takes a mutex of LMDB.
 *
 * LMDB has two mutexes, one for writing and one for its table of readers. They lie in lock.mdb, which all processes
 * map. When a process releases a mutex, the kernel wakes one of the processes that wait for it. Suppose that a third
 * process takes the mutex before the woken process does, and that the woken process is killed before it has taken the
 * mutex. The wakeup is then lost, and all processes that wait for the mutex wait for ever. File locks do not have this
 * fault, because the kernel itself passes them on. Processes therefore wait for a file lock, and a process that has the
 * file lock finds the mutex free.
 *
 * The locks are open file description locks (fcntl(2)) on lock.mdb. The kernel releases them when their process dies. */
#ifndef REFTEST_CACHE_LMDB_LOCKS_H
#define REFTEST_CACHE_LMDB_LOCKS_H

/* A process that needs both locks takes them in this order. */
enum lmdb_lock {
	LMDB_LOCK_WRITE,   /* held from before a write transaction begins until after it has ended */
	LMDB_LOCK_READERS, /* held while a read transaction begins, and while the entries of dead readers are removed */
};

enum { LMDB_LOCKS_NONE = -1 };

/* Opens lock.mdb for the two functions below. Returns a descriptor, or LMDB_LOCKS_NONE if the file cannot be opened for
 * writing. Call this function after mdb_env_open, and close the descriptor only after mdb_env_close. If a process
 * closes any descriptor of lock.mdb, the kernel releases LMDB's own lock on lock.mdb, and LMDB no longer knows that the
 * process uses the store. */
int lmdb_locks_open(const char *lock_file);

/* Waits until no other process has the lock, and takes it. After two seconds, a message on standard error reports the
 * wait (cache/lock_wait.h); `cache` and `lock_file` are the paths that this message needs. The lock is not taken if
 * `locks` is LMDB_LOCKS_NONE or the filesystem has no locks; LMDB's mutex is then the only lock. */
void lmdb_lock(int locks, enum lmdb_lock lock, const char *cache, const char *lock_file);
void lmdb_unlock(int locks, enum lmdb_lock lock);

#endif
