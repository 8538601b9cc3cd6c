/* remote_store - a key-value store that is shared with other machines (a remote cache). A helper process accesses the
 * remote cache: if the server hangs, or a third-party library crashes, this program still continues.
 *
 * A key is a text of at most REMOTE_KEY_MAX bytes; a value has at most REMOTE_VALUE_MAX bytes. The timeout in the URL
 * limits the total time that a run waits for its remote. When the time is over, values that have not arrived count as
 * missing. After the first failure, no more requests are sent. Values are not trusted: the caller must verify them. */
#ifndef REFTEST_REMOTE_REMOTE_STORE_H
#define REFTEST_REMOTE_REMOTE_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "remote/message.h"
#include "remote/url.h"

struct remote; /* opaque */

/* Opens a remote. `fd` is a stream socket with a helper process at its other end; the remote owns `fd`. `signals` is
 * -1, or a descriptor that becomes readable when the user interrupts the program. After an interrupt, remote_get and
 * remote_flush stop waiting. */
struct remote *remote_open(const struct remote_url *url, int fd, int signals);

/* remote_get calls this function with the value of key number `index`. The bytes are valid until the function
 * returns. */
typedef void remote_found(void *context, int index, const void *bytes, size_t length);

/* Looks up all keys in one batch. Returns 0, or -1 with a message if the batch was aborted. Does nothing and returns 0
 * if an earlier call has failed. Even if the batch was aborted, `found` has been called for every value that
 * arrived. */
int remote_get(struct remote *remote, const char *const *keys, int count, remote_found *found, void *context,
	       struct err *err);

/* Sends a value to the helper, which stores it under each of the keys. There are 1 to REMOTE_KEYS_MAX keys. Does not
 * wait. */
void remote_put(struct remote *remote, const char *const *keys, int count, const void *bytes, size_t length);

/* Waits until all values are stored. Returns 0, or -1 with a message that says why some values are not stored. */
int remote_flush(struct remote *remote, struct err *err);

bool remote_failed(const struct remote *remote);
/* Returns how many of the received values were invalid (too long, or with a wrong digest). Sets `first` to the message
 * about the first invalid value, or to NULL if no value was invalid. */
int remote_refused(const struct remote *remote, const char **first);

void remote_close(struct remote *remote);

#endif
