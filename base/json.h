/* json - parses untrusted text as strict JSON, and finds the positions of values for error messages.
 *
 * cJSON builds the tree. Before cJSON parses a text, a scanner in this module checks the text. The text must follow RFC
 * 8259, must be UTF-8, and must end after the value. It must contain no NUL and no duplicate keys. The depth and the
 * size of the text are limited. The scanner is needed because cJSON accepts some texts that break these rules, and does
 * not store the positions of values. A message has the form "FILE:LINE:COLUMN: expected this, found that". Columns
 * count characters from 1. */
#ifndef REFTEST_BASE_JSON_H
#define REFTEST_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/err.h"

enum {
	JSON_DEPTH = 64,        /* the deepest nesting of objects and arrays */
	JSON_VALUES = 1 << 20,  /* the most values in one text; each takes about 100 bytes in the tree */
	JSON_NUMBER_LENGTH = 60 /* the most characters of one number (cJSON reads no more than 63) */
};

/* One text: a whole file, or a line of a JSONL file. Owns nothing. */
struct json_text {
	const char *name;  /* messages begin with this name: the path as the user would type it */
	const char *text;
	size_t length;
	int first_line;    /* number of the first line: 1, except for a line of a JSONL file */
};

/* Returns the parsed value, which the caller frees with cJSON_Delete, or NULL with a message. Rejects "\u0000", because
 * a NUL ends a C string. */
cJSON *json_parse(const struct json_text *text, struct err *err);

/* Checks the text like json_parse, but builds no tree. Returns 0, or -1 with a message. */
int json_check(const struct json_text *text, struct err *err);

/* Reports an error at a position inside a text that json_parse accepted. `path` names the value: keys and array indices
 * joined by '/', as in "inputs/q/shape/1". Inside a key, '~1' stands for '/' and '~0' for '~' (RFC 6901). The path ""
 * is the whole text. If no value is at `path`, the message names the position of the nearest enclosing value. Always
 * returns -1. */
int json_error(const struct json_text *text, const char *path, struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A path as a linked list of steps. Code that descends a tree can extend the path without allocating memory. A NULL
 * pointer is the path of the whole text. */
struct json_step {
	const struct json_step *up; /* NULL if the step is a member of the root value */
	const char *key;            /* NULL if the step is the array element `index` */
	int index;
};
int json_error_at(const struct json_text *text, const struct json_step *step, struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Reports "expected WHAT, found …" at a value of the tree. The message shows a number as it is written, a string in
 * quotes, and any other value by its kind. If `found` is NULL, the message says that the value is missing. Always
 * returns -1. */
int json_expected(const struct json_text *text, const struct json_step *step, const cJSON *found, struct err *err,
                  const char *what);

/* Reports that the object at `step` has no member `key`. `what` describes the member. Always returns -1. */
int json_missing(const struct json_text *text, const struct json_step *step, const char *key, struct err *err,
		 const char *what);

/* Returns a member that is a string of 1 to `most` bytes without unsafe characters (base/unsafe_character.h), or NULL
 * with a message. `step` is the object. */
const char *json_read_text(const struct json_text *text, const struct json_step *step, const cJSON *object,
			   const char *key, size_t most, struct err *err);

/* Finds the line and the column (from 1) of the value at `path`. Returns false if no value is at `path`. */
bool json_place(const struct json_text *text, const char *path, int *line, int *column);

/* Reads an integer strictly between -2^53 and 2^53, the range in which a double represents every integer exactly.
 * Returns false if the value is not a number, has a fraction, or is outside this range. */
bool json_integer(const cJSON *value, int64_t *out);

/* Returns the member `key`, or NULL. The comparison of keys is case-sensitive. (Never use cJSON_GetObjectItem, which
 * ignores case.) */
const cJSON *json_member(const cJSON *object, const char *key);
/* returns NULL if the member is missing or is not a string */
const char *json_text_of(const cJSON *object, const char *key);

#endif
