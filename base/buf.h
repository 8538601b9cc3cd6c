/* buf - a growing byte buffer. {0} is a valid empty buffer; buf_free frees its memory. */
#ifndef REFTEST_BASE_BUF_H
#define REFTEST_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;    /* owned by the buffer; NUL-terminated if length > 0, and after each call of buf_text */
	size_t length; /* bytes in use, without the final NUL */
	size_t room;   /* bytes allocated */
};

void buf_add(struct buf *buf, const void *bytes, size_t length);
void buf_text(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *buf, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* Appends `text` as a quoted JSON string. Bytes that are not UTF-8 become U+FFFD. Unsafe characters and commands of CI
 * systems (base/unsafe_character.h) become \u escapes, which a JSON parser decodes. */
void buf_json_string(struct buf *buf, const char *text);

/* Appends a member of a JSON object: "key": "text", or "key": null if `text` is NULL. */
void buf_json_member(struct buf *buf, const char *key, const char *text);
/* Appends a comma, and then the same text as buf_json_member. */
void buf_json_next_member(struct buf *buf, const char *key, const char *text);
void buf_json_strings(struct buf *buf, const char *const *list, int count);
void buf_json_bytes(struct buf *buf, const char *text, size_t length);

/* Appends a double as JSON, with the fewest digits that parse to the same value (at most 17). JSON has no NaN and no
 * infinities, so they become the strings "nan", "inf" and "-inf". */
void buf_json_number(struct buf *buf, double value);

/* Ensures that `more` bytes can be appended. The caller writes the bytes at data + length and then increases
 * `length`. */
void buf_reserve(struct buf *buf, size_t more);

/* Drops the first `count` bytes. */
void buf_drop(struct buf *buf, size_t count);
void buf_clear(struct buf *buf); /* length 0, memory kept */
void buf_free(struct buf *buf);

#endif
