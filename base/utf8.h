/* utf8 - reads and writes UTF-8 characters (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF). */
#ifndef REFTEST_BASE_UTF8_H
#define REFTEST_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { UTF8_MAX = 4 };

/* Returns the length (1 to 4) of the character at `text`, which has `left` bytes, or 0 if no valid character begins
 * there. */
size_t utf8_length(const char *text, size_t left);

/* Writes a code point, which is at most 0x10FFFF and not a surrogate. Returns the number of bytes written. */
size_t utf8_put(char out[UTF8_MAX], uint32_t code);

#endif
