/* feed - the interface of a fuzz target: a function that parses one input and checks properties of the result. */
#ifndef REFTEST_TESTS_FUZZ_FEED_H
#define REFTEST_TESTS_FUZZ_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An input. The bytes are in an allocation of exactly their size, so that a sanitizer reports a read beyond the end. */
struct input {
	const char *target;
	uint64_t number;
	const char *bytes;
	size_t length;
};

/* The type of a fuzz target. Returns true if the parser accepted the input. */
typedef bool feed_function(const struct input *input);

/* If `holds` is false, prints `what` and the input, and aborts. */
void hold(const struct input *input, bool holds, const char *what);
/* Returns whether a text is not empty, is UTF-8 and has no control characters. */
bool is_sentence(const char *text);

/* These targets are in tests/fuzz/stored.c: parsers of the data in caches, exported files, remote caches and git. */
feed_function feed_row, feed_fields, feed_verdict_line, feed_archive, feed_message, feed_action_result,
    feed_url, feed_index, feed_listing;
/* These targets are in tests/fuzz/storable.c: parsers of a reference's source code and of settings. */
feed_function feed_dependencies, feed_normal_form, feed_settings;
/* These targets are in tests/fuzz/sent.c: parsers of the messages of other processes. */
feed_function feed_job, feed_channel, feed_question, feed_answer, feed_facts, feed_work_request, feed_work_answer,
    feed_rpc_request;
/* These targets are in tests/fuzz/replies.c: parsers of a remote cache's answers. */
feed_function feed_redis_reply, feed_http_reply;

#endif
