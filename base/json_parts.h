/* json_parts - what the two files behind base/json.h have from each other. */
#ifndef REFTEST_BASE_JSON_PARTS_H
#define REFTEST_BASE_JSON_PARTS_H

#include <stdarg.h>
#include <stddef.h>

#include "base/json.h"

/* An error at a byte of the text. Always returns -1. */
int json_error_here(const struct json_text *text, const char *at, struct err *err, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));

/* Decodes the inside of a string that the scanner took into `out`, which has room for as many bytes. Returns their
 * number. */
size_t json_decode(const char *from, const char *to, char *out);

#endif
