/* place - where a remote cache is, as $REFTEST_REMOTE names it:
 *
 *   redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?OPTION&…]
 *   redis+unix:///PATH/TO/SOCKET[?db=DATABASE&…], unix:///…
 *   http[s]://[USER:PASSWORD@]HOST[:PORT][/PATH][?OPTION&…]
 *
 * Options: `read-only` (look up, write nothing), `timeout=SECONDS` (what a run may wait for it in all; 0.1 to 600). An
 * unknown one is refused: a misspelt `read-only` must not write. %XX stands for a byte in names, passwords and paths.
 */
#ifndef REFTEST_REMOTE_PLACE_H
#define REFTEST_REMOTE_PLACE_H

#include <stdbool.h>

#include "base/err.h"

enum { PLACE_TIMEOUT_MS = 5000, PLACE_SOCKET_MAX = 108, PLACE_TEXT_MAX = 1024 };

enum place_kind { PLACE_REDIS, PLACE_HTTP };

struct place {
	enum place_kind kind;
	char shown[PLACE_TEXT_MAX]; /* for sentences: without user, password and options. HTTP: also what is asked, no
				       '/' at the end */
	char host[256];		    /* redis; "" with `socket`. An IPv6 address without its brackets */
	int port;		    /* redis */
	char socket[PLACE_SOCKET_MAX]; /* redis; "": by host and port */
	int database;		       /* redis */
	char user[256], password[256]; /* "": none */
	bool read_only;
	int timeout_ms;
};

/* 0, or -1 with a sentence that does not show the password. */
int place_parse(const char *text, struct place *out, struct err *err);

#endif
