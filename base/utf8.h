/* utf8 - reads and writes UTF-8 characters (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF). */
#ifndef REFTEST_BASE_UTF8_H
#define REFTEST_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { UTF8_MAX = 4 };

/* Returns the length (1 to 4) of the character at `text`, or 0 if `text`, which has `left` bytes, does not begin with a
 * valid character. */
size_t utf8_length(const char *text, size_t left);

/* Writes a code point (no surrogate, at most 0x10FFFF) and returns its length. */
size_t utf8_put(char out[UTF8_MAX], uint32_t code);

#endif
