/* json - JSON from strangers, read strictly; where a value stands, for errors that point.
 *
 * cJSON builds the tree. Before it sees a byte, the text is checked against RFC 8259 by our own scanner (UTF-8, no
 * NUL, no duplicate keys, bounded depth and size, no trailing text): cJSON itself lets several of these pass, and it
 * keeps no positions. Errors read "FILE:LINE:COLUMN: expected this, found that"; columns count characters from 1. */
#ifndef REFTEST_BASE_JSON_H
#define REFTEST_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/err.h"

enum {
	JSON_DEPTH = 64,        /* objects and arrays inside one another */
	JSON_VALUES = 1 << 20,  /* values in one text: a tree takes some 100 bytes for each */
	JSON_NUMBER_LENGTH = 60 /* characters of one number (cJSON reads no more than 63) */
};

/* One text: a whole file, or a line of a JSONL file (then `first_line` is its number). Nothing is owned. */
struct json_text {
	const char *name;  /* shown in errors: path as the user would type it */
	const char *text;
	size_t length;
	int first_line;    /* number of the first line, normally 1 */
};

/* The parsed value, for cJSON_Delete; NULL with the sentence. "\u0000" is refused (C strings end there). */
cJSON *json_parse(const struct json_text *text, struct err *err);

/* The same check without making the value. 0, or -1 with the sentence. */
int json_check(const struct json_text *text, struct err *err);

/* An error at a place inside a text that json_parse took. `path` names the place: keys and array indices joined by
 * '/', as in "inputs/q/shape/1" ('~1' for '/' and '~0' for '~' inside a key, as RFC 6901 has it; "" = the whole text).
 * The position is that of the value, or of the nearest enclosing value that exists. Always returns -1. */
int json_error(const struct json_text *text, const char *path, struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same place as a chain of steps, which costs nothing to make while walking down a tree; NULL = the whole text. */
struct json_step {
	const struct json_step *up; /* NULL: a member of the whole */
	const char *key;            /* NULL: an array's element, at `index` */
	int index;
};
int json_error_at(const struct json_text *text, const struct json_step *step, struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* "expected WHAT, found …" at a value of the tree, NULL = nothing is there: the number as it was written, the string in
 * quotes, else the kind of value. Always returns -1. */
int json_expected(const struct json_text *text, const struct json_step *step, const cJSON *found, struct err *err,
                  const char *what);

/* Line and column (from 1) of the value at `path`. false: nothing is there. */
bool json_place(const struct json_text *text, const char *path, int *line, int *column);

/* An exact integer strictly between -2^53 and 2^53, where every integer is its own double. false: not a number,
 * fractional, or too large to be exact. */
bool json_integer(const cJSON *value, int64_t *out);

/* Case-sensitive member, NULL if absent. (cJSON_GetObjectItem ignores case: never use it.) */
const cJSON *json_member(const cJSON *object, const char *key);
const char *json_text_of(const cJSON *object, const char *key); /* string member, NULL if absent or no string */

#endif
