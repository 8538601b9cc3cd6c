/* action_result - the message under which an HTTP cache of Bazel's kind keeps a value: an ActionResult of the Remote
 * Execution API (build.bazel.remote.execution.v2) with one output file, the value, named by its SHA-256 and size.
 *
 * Servers like bazel-remote take it only if it is one, and give it only while the file is in their /cas. The value also
 * stands in it (OutputFile.contents), so that one request finds it; a server may leave that out. Field numbers:
 * ActionResult.output_files = 2; OutputFile.path = 1, .digest = 2, .contents = 5; Digest.hash = 1, .size_bytes = 2
 * (remote_execution.proto). Knows nothing of networks. */
#ifndef REFTEST_REMOTE_ACTION_RESULT_H
#define REFTEST_REMOTE_ACTION_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { SHA256_HEX = 65 };

/* Appends the message. `hash`: 64 lower-case hex digits. */
void action_result_write(const char *hash, const void *value, size_t length, struct buf *out);

struct action_result {
	char hash[SHA256_HEX]; /* of the first output file */
	size_t size;
	const unsigned char *value; /* inside the message; NULL: it is only in /cas */
};
/* false: no such message, one without an output file, or one whose value is not as long as it says. Unknown fields are
 * passed over. Whether the value has that hash is for the caller to see. */
bool action_result_read(const void *message, size_t length, struct action_result *out);

#endif
