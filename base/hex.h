/* hex - reads hexadecimal digits. */
#ifndef REFTEST_BASE_HEX_H
#define REFTEST_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the value of a digit, whose letters may have either case, or -1. */
int hex_digit(char c);

/* Decodes 2 * `count` digits to `count` bytes. Accepts digits and lower-case letters only, because programs write
 * lower-case letters. Returns false if there is another character. */
bool hex_read(const char *digits, unsigned char *out, size_t count);

#endif
