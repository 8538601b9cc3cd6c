/* faults - the memory that a test shares with shim.c, the library that is loaded in front of the C library. The memory
 * is a file that the test and the shim map. The test writes the process id, the fault, and the number of the call at
 * which the fault happens; only calls that change files are numbered. The shim writes what happened. */
#ifndef REFTEST_TESTS_FAULTS_H
#define REFTEST_TESTS_FAULTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum fault {
	FAULT_NONE,
	FAULT_BEFORE, /* the process is killed before the call */
	/* the process is killed during the call: a write has stored half of its sectors, any other call is complete */
	FAULT_TORN,
	/* a write writes half of its bytes and returns their number, and the process continues; other calls work
	 * normally */
	FAULT_SHORT,
	FAULT_EIO,    /* only this call fails */
	FAULT_ENOSPC, /* this call fails, and so do all later calls that need room on the disk */
	FAULT_AHEAD,  /* the clock jumps ten years ahead before the call */
	FAULT_BACK,   /* and back */
	FAULT_COUNT,
};

struct faults {
	volatile pid_t pid; /* the process whose calls are counted; calls of its children are not counted */
	volatile long calls, at;
	volatile enum fault fault;
	volatile bool struck;	  /* true after the fault has happened */
	char last[32];		  /* the name of the call at which the fault happened */
	volatile int64_t clock_s; /* seconds added to the wall clock that the process sees */
	char log[4096];		  /* the path of the log of the calls; "": no log */
};

#define FAULTS_ENV "REFTEST_FAULTS" /* name of the environment variable with the path of the shared file */

/* A record of the log consists of struct logged_head, `name_length` bytes of an absolute path, `other_length` bytes of
 * a second path, and `length` bytes of content. Numbers are in the byte order of the machine, because the same machine
 * reads the log. */
enum logged {
	LOGGED_WRITE = 1, /* inode, offset, content */
	LOGGED_SIZE,	  /* inode; `offset` is the new length of the file */
	LOGGED_SYNC,	  /* inode, path; `offset` is 1 if the path is a folder */
	LOGGED_CREATE,	  /* inode, path */
	LOGGED_FOLDER,	  /* path */
	LOGGED_RENAME,	  /* path, other */
	LOGGED_EXCHANGE,  /* path, other */
	LOGGED_LINK,	  /* path, other; the new link is `other` */
	LOGGED_UNLINK,	  /* path */
	LOGGED_RMDIR,	  /* path */
	LOGGED_END,	  /* a process has ended; the test, and not the shim, writes this record */
};

struct logged_head {
	uint32_t what, name_length, other_length, pad;
	uint64_t inode, offset, length;
};

#endif
