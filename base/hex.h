/* hex - reads hexadecimal digits. */
#ifndef REFTEST_BASE_HEX_H
#define REFTEST_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the value of a hexadecimal digit (upper or lower case), or -1 if `c` is not a hexadecimal digit. */
int hex_digit(char c);

/* Decodes 2 * `count` hexadecimal digits to `count` bytes. Returns false if a character is not one of 0 to 9 and a to f
 * (lower case). */
bool hex_read(const char *digits, unsigned char *out, size_t count);

#endif
