/* live - what a terminal shows of a running watch beside the lines that scroll by: a last line with the counts, what is
 * being run and how far it is, and the keys; and what the keys ask for.
 *
 * Verdicts stay ordinary lines, so that the terminal's own scrolling, searching and copying work on them. The last line
 * is taken away before anything else is written and drawn anew after it, in one write. */
#ifndef REFTEST_COMMANDS_LIVE_H
#define REFTEST_COMMANDS_LIVE_H

#include <stdbool.h>
#include <termios.h>

#include "commands/batches.h"

enum live_key {
	LIVE_NOTHING,
	LIVE_STALE,    /* enter: run whatever has no verdict */
	LIVE_FAILURES, /* f: run again what failed */
	LIVE_ALL,      /* a: run everything again */
	LIVE_DETAILS,  /* d: tell again of what did not pass, in every detail */
	LIVE_QUIT      /* q */
};

struct live {
	bool on;               /* standard output is a terminal that can move its cursor */
	bool keys;             /* standard input is one, too, and ours */
	bool colour;
	struct termios before; /* as the terminal was */
	struct termios raw;    /* as we have it while it is ours */
	bool away;             /* the terminal was somebody else's since: Ctrl-Z, `bg` */
	int resized;           /* signalfd of SIGWINCH; -1 */
	int drawn;             /* columns of the last line as it stands there; 0: it does not */
	bool escape;           /* in the middle of a key that is a sequence (an arrow): none of ours */
};

/* `wanted` false, or no terminal: stays off, and everything below does nothing. */
void live_open(struct live *live, bool wanted, bool colour);
void live_close(struct live *live);

int live_keys_fd(struct live *live);          /* readable: live_key; -1 */
int live_resized_fd(const struct live *live); /* readable (SIGWINCH, SIGCONT): live_again; -1 */
void live_again(struct live *live);
enum live_key live_key(struct live *live);

void live_hide(struct live *live);
void live_show(struct live *live, const struct batches *batches);

#endif
