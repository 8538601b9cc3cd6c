/* faults - what a test and the library that it puts in front of the C library (shim.c) say to one another, in a file
 * that both map: which process is meant, at which of its calls that change files which fault strikes, and what came of
 * it. */
#ifndef REFTEST_TESTS_FAULTS_H
#define REFTEST_TESTS_FAULTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum fault {
	FAULT_NONE,
	FAULT_BEFORE, /* killed before the call */
	FAULT_TORN,   /* a write gets half of its sectors to the file, any other call is done; then killed */
	FAULT_SHORT,  /* a write writes half, says so, and all goes on; no fault for other calls */
	FAULT_EIO,    /* this one call fails */
	FAULT_ENOSPC, /* this call and all that follow and take room fail */
	FAULT_AHEAD,  /* the clock jumps ten years ahead before the call */
	FAULT_BACK,   /* and back */
	FAULT_COUNT,
};

struct faults {
	volatile pid_t pid; /* the process whose calls count; its children's do not */
	volatile long calls, at;
	volatile enum fault fault;
	volatile bool struck;	  /* the fault came */
	char last[32];		  /* the call that it came with */
	volatile int64_t clock_s; /* by how many seconds the process sees the wall clock off */
	char log[4096];		  /* where calls are written down, "": nowhere */
};

#define FAULTS_ENV "REFTEST_FAULTS" /* the file's path */

/* A line of the log: this head, `name_length` octets of path (below no particular root), `other_length` of a second
 * one, `length` of content. Numbers as this machine has them: who writes it reads it. */
enum logged {
	LOGGED_WRITE = 1, /* inode, offset, content */
	LOGGED_SIZE,	  /* inode, offset: its new length */
	LOGGED_SYNC,	  /* inode, path, offset: 1 for a folder */
	LOGGED_CREATE,	  /* inode, path */
	LOGGED_FOLDER,	  /* path */
	LOGGED_RENAME,	  /* path, other */
	LOGGED_EXCHANGE,  /* path, other */
	LOGGED_LINK,	  /* path, other: the new name */
	LOGGED_UNLINK,	  /* path */
	LOGGED_RMDIR,	  /* path */
	LOGGED_END,	  /* a process came to its end; written by the test */
};

struct logged_head {
	uint32_t what, name_length, other_length, pad;
	uint64_t inode, offset, length;
};

#endif
