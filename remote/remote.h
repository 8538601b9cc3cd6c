/* remote - values that other machines keep, by key, behind a courier: a process of its own that speaks to the remote,
 * so that whatever a remote does, or a library that we did not write, this program can go on without it.
 *
 * Keys are texts of at most REMOTE_KEY_MAX bytes; values are at most REMOTE_VALUE_MAX. A run waits for its remote
 * no longer than the place's timeout, in all: what has not come until then counts as not there. After the first failure
 * nothing more is asked or sent. What is found is whatever the remote says: the caller checks it. */
#ifndef REFTEST_REMOTE_REMOTE_H
#define REFTEST_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "remote/frame.h"
#include "remote/place.h"

struct remote; /* opaque */

/* Takes over `fd`, a stream socket with a courier (courier_main) at its other end. `signals`: readable when the user
 * wants to go; waiting ends then. -1: nobody asks. */
struct remote *remote_open(const struct place *place, int fd, int signals);

/* The value that lies under keys[place] in the remote, valid until it returns. */
typedef void remote_found(void *context, int place, const void *bytes, size_t length);

/* Looks all keys up in one batch. 0: all was asked and answered. -1: cut short, `err` says why; what was found until
 * then was handed out. */
int remote_get(struct remote *remote, const char *const *keys, int count, remote_found *found, void *context,
	       struct err *err);

/* Hands a value to the courier, to be kept under each of the keys (1 to REMOTE_KEYS_MAX); does not wait. */
void remote_put(struct remote *remote, const char *const *keys, int count, const void *bytes, size_t length);

/* Waits until what was put is kept. 0, or -1 with the sentence why some of it is not. */
int remote_flush(struct remote *remote, struct err *err);

bool remote_failed(const struct remote *remote);
/* How many values came that are none (too long, not what their digest says), and the sentence about the first; NULL. */
int remote_refused(const struct remote *remote, const char **first);

void remote_close(struct remote *remote);

#endif
