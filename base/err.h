/* err - a failure told as a sentence.
 *
 * Rooms never exit. A function that can fail takes `struct err *` last, returns -1 (or NULL) and leaves a full
 * sentence in it: what happened, at which path and place, and what mends it. The caller decides what to do. */
#ifndef REFTEST_BASE_ERR_H
#define REFTEST_BASE_ERR_H

struct err {
	char text[2048]; /* NUL-terminated UTF-8, one sentence; "" = nothing went wrong */
};

/* Writes the sentence (cut at the buffer's end, never in the middle of a UTF-8 character). Always returns -1, so
 * that a caller can `return err_set(err, …)`. `err` may be NULL: nobody asks. */
int err_set(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As err_set, with ": " and strerror(errno) appended. */
int err_errno(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text that came from a stranger, as it may stand in a sentence on a terminal: control characters and bytes that are
 * not UTF-8 become '?', and what is longer than 80 bytes is cut and ends in "...". Use: "…%s…", err_show(name).text */
struct err_shown {
	char text[84];
};
struct err_shown err_show(const char *text);

/* Out of memory is the one failure nobody recovers from: says so on stderr and exits with 4. */
void die_no_memory(void) __attribute__((noreturn));

#endif
