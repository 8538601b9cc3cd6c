/* buf - bytes that grow. {0} is a valid empty buffer; buf_free gives the memory back. */
#ifndef REFTEST_BASE_BUF_H
#define REFTEST_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;    /* owned; NUL-terminated whenever length > 0 or after buf_text */
	size_t length; /* bytes in use, the final NUL not counted */
	size_t room;   /* bytes allocated */
};

void buf_add(struct buf *buf, const void *bytes, size_t length);
void buf_text(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void buf_json_string(struct buf *buf, const char *text);
void buf_json_bytes(struct buf *buf, const char *text, size_t length);

/* Appends a double as JSON: 17 significant digits at most, the shortest that reads back the same; NaN and
 * infinities, which JSON does not have, as the strings "nan", "inf", "-inf". */
void buf_json_number(struct buf *buf, double value);

/* Room for `more` bytes after those in use, for callers that write there themselves and then raise `length`. */
void buf_reserve(struct buf *buf, size_t more);

/* Drops the first `count` bytes. */
void buf_drop(struct buf *buf, size_t count);
void buf_clear(struct buf *buf); /* length 0, memory kept */
void buf_free(struct buf *buf);

#endif
