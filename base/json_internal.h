/* json_internal - declares functions that base/json.c and base/json_position.c share. */
#ifndef REFTEST_BASE_JSON_INTERNAL_H
#define REFTEST_BASE_JSON_INTERNAL_H

#include <stdarg.h>
#include <stddef.h>

#include "base/json.h"

/* Reports an error at a byte of the text. Always returns -1. */
int json_error_here(const struct json_text *text, const char *at, struct err *err, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));

/* Decodes the characters between the quotes of a string that the scanner accepted. `out` needs space for as many bytes
 * as there are between the quotes. Returns the number of bytes written to `out`. */
size_t json_decode(const char *from, const char *to, char *out);

#endif
