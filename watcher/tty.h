/* tty - draws the status line of `watch` in the last line of a terminal, and reads the keys. The status line shows the
 * counts, the progress, the definition that is being verified, and the keys.
 *
 * Verdicts are printed as ordinary lines, so the user can scroll, search and copy them. The status line is erased
 * before other output, and drawn again after it with a single write. */
#ifndef REFTEST_WATCHER_TTY_H
#define REFTEST_WATCHER_TTY_H

#include <stdbool.h>
#include <termios.h>

#include "watcher/batches.h"

enum tty_key {
	TTY_NOTHING,
	TTY_STALE,    /* enter: run every case that has no valid stored verdict */
	TTY_FAILURES, /* f: run the failed definitions again */
	TTY_ALL,      /* a: run all definitions again */
	TTY_DETAILS,  /* d: print details about all definitions that did not pass */
	TTY_QUIT      /* q: end `watch` */
};

struct tty {
	bool on;               /* standard output is a terminal with cursor control */
	bool keys;             /* keys can be read, because standard input is a terminal and no read has failed */
	bool colour;
	struct termios before; /* the terminal's modes at the start */
	struct termios raw;    /* the modes that `watch` sets while it is in the foreground */
	bool away;             /* `watch` was in the background (Ctrl-Z, `bg`), so it must set the modes `raw` again */
	int resized;           /* signalfd for SIGWINCH and SIGCONT; -1: none */
	int drawn;             /* the number of columns of the visible status line; 0: it is not visible */
	bool escape;           /* the next byte belongs to an escape sequence (such as that of an arrow key), so it must
				 * be ignored */
};

/* Starts the status line. If `wanted` is false or standard output is not a terminal, all functions of this module do
 * nothing. */
void tty_open(struct tty *tty, bool wanted, bool colour);
void tty_close(struct tty *tty);

int tty_keys_fd(struct tty *tty);	   /* call tty_key when this descriptor is readable; -1: no keys can be read */
int tty_resized_fd(const struct tty *tty); /* becomes readable when SIGWINCH or SIGCONT arrives; then call tty_again.
					    * -1: there is no descriptor */
void tty_again(struct tty *tty);
enum tty_key tty_key(struct tty *tty);

void tty_hide(struct tty *tty);
void tty_show(struct tty *tty, const struct batches *session);

#endif
