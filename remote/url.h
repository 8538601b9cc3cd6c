/* url - parses the address of a remote cache, as in $REFTEST_REMOTE. To add a protocol, add a value to enum
 * remote_url_kind and a row to `schemes` in url.c. Define a struct transport (remote/helper/transport.h) in a new file
 * beside remote/helper/redis.c, and add it to `transports` in remote/helper/helper.c. Describe the new address in
 * cli/manual_page.c and docs/shared-cache.md. If the protocol needs a new library, also change the Makefile,
 * tools/setup.sh and cli/doctor.c.
 *
 *   redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?OPTION&…]
 *   redis+unix:///PATH/TO/SOCKET[?db=DATABASE&…], unix:///…
 *   http[s]://[USER:PASSWORD@]HOST[:PORT][/PATH][?OPTION&…]
 *
 * Options: `read-only` (look up values, write nothing) and `timeout=SECONDS` (the total time that a run may wait for
 * the remote; 0.1 to 600). An unknown option is an error, because a run with a misspelt `read-only` would otherwise
 * write to the remote. In names, passwords and paths, %XX stands for the byte with the hexadecimal digits XX. */
#ifndef REFTEST_REMOTE_URL_H
#define REFTEST_REMOTE_URL_H

#include <stdbool.h>

#include "base/err.h"

enum { REMOTE_URL_TIMEOUT_MS = 5000, REMOTE_URL_SOCKET_MAX = 108, REMOTE_URL_TEXT_MAX = 1024 };

enum remote_url_kind { REMOTE_URL_REDIS, REMOTE_URL_HTTP, REMOTE_URL_KINDS };

struct remote_url {
	enum remote_url_kind kind;
	/* The address without user, password, options and final '/'. Messages show it, and the URL of every HTTP
	 * request begins with it. */
	char shown[REMOTE_URL_TEXT_MAX];
	char host[256];		    /* the host of a redis server, or its IPv6 address without brackets; "" if `socket`
				     * is set */
	int port;		    /* for redis */
	/* the path of redis's Unix socket, or "" to connect to `host` and `port` */
	char socket[REMOTE_URL_SOCKET_MAX];
	int database;		       /* for redis */
	char user[256], password[256]; /* "": none */
	bool read_only;
	int timeout_ms;
};

/* Parses the address. Returns 0, or -1 with a message, which never contains the password. */
int remote_url_parse(const char *text, struct remote_url *out, struct err *err);

#endif
