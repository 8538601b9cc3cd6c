/* action_result - writes and reads the message that Bazel-style HTTP caches need for each value: an ActionResult of the
 * Remote Execution API (build.bazel.remote.execution.v2) with one output file. The content of the output file is the
 * value. The message identifies the file by the SHA-256 and the size of the value.
 *
 * A server such as bazel-remote accepts only valid ActionResults, and returns an ActionResult only while it has the
 * output file in /cas. The message also contains the value itself (OutputFile.contents), so that one request is enough
 * to get the value. But a server may remove this field. Field numbers: ActionResult.output_files = 2; OutputFile.path =
 * 1, .digest = 2, .contents = 5; Digest.hash = 1, .size_bytes = 2 (remote_execution.proto). */
#ifndef REFTEST_REMOTE_ACTION_RESULT_H
#define REFTEST_REMOTE_ACTION_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { SHA256_HEX = 65 };

/* Appends the message. `hash` has 64 lower-case hexadecimal digits. */
void action_result_write(const char *hash, const void *value, size_t length, struct buf *out);

struct action_result {
	char hash[SHA256_HEX]; /* hash of the first output file */
	size_t size;
	const unsigned char *value; /* points into the message; NULL if the value is only in /cas */
};
/* Reads a message. Returns false if the bytes are not an ActionResult, if the message has no output file, or if the
 * value does not have the length that is given in the message. Skips unknown fields. The caller must check the hash of
 * the value. */
bool action_result_read(const void *message, size_t length, struct action_result *out);

#endif
