/* err - an error message.
 *
 * Modules never exit. A function that can fail takes `struct err *` as its last parameter. On failure, the function
 * returns -1 (or NULL) and writes a whole sentence: what went wrong, at which path and position, and how to fix it. The
 * caller of the function decides whether the program continues. */
#ifndef REFTEST_BASE_ERR_H
#define REFTEST_BASE_ERR_H

struct err {
	char text[2048]; /* one sentence in UTF-8, NUL-terminated; "" if there is no error */
};

/* Writes the message. If a message does not fit into the buffer, it is cut, but never inside a UTF-8 character. Unsafe
 * characters (base/unsafe_character.h) become escapes, because a message may quote untrusted paths and names. Always
 * returns -1, so that callers can write `return err_set(err, …)`. `err` may be NULL if the caller does not need the
 * message. */
int err_set(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes the message as err_set does, and appends ": " and strerror(errno). */
int err_errno(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes untrusted text safe to show within one line. Newlines, and the characters that base/unsafe_character.h lists,
 * become escapes. A text longer than 80 bytes is cut and ends in "...". Usage: err_set(err, "…%s…",
 * err_show(name).text) */
struct err_shown {
	char text[84];
};
struct err_shown err_show(const char *text);

/* Prints a message on stderr and exits with status 4. Modules call this function only if memory runs out. */
void die_no_memory(void) __attribute__((noreturn));

#endif
