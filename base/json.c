#include "base/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hex.h"
#include "base/json_internal.h"
#include "base/unsafe_character.h"
#include "base/utf8.h"

/* --- the scanner: RFC 8259 and nothing more ------------------------------------------------------------------ */

/* A decoded member key and its position. */
struct key {
	/* Points into the text if the key has no escapes. Otherwise points into memory that the scanner owns. */
	const char *bytes;
	size_t length;
	const char *at; /* the opening quote of the key */
};

enum { KEYS_FEW = 24 }; /* the keys of larger objects are sorted; for fewer keys, comparing all pairs is faster */

struct scan {
	const struct json_text *text;
	const char *at, *end;
	int values;
	struct key *keys; /* a stack of the keys of all open objects; the keys of the innermost object are last */
	size_t key_count, key_room;
	struct arena decoded;
	struct err *err;
};

static int fail_at(struct scan *scan, const char *at, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int fail_at(struct scan *scan, const char *at, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	json_error_here(scan->text, at, scan->err, format, args);
	va_end(args);
	return -1;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Describes the text at `at`: the whole word if a word begins there ("NaN", "True"), otherwise one character. */
static void describe(const struct scan *scan, const char *at, char *out, size_t size)
{
	size_t left = (size_t)(scan->end - at), length = utf8_length(at, left), word = 0;
	char text[40] = "";

	while (word < left && word < 32 && is_word(at[word]))
		word++;
	memcpy(text, at, word > 0 ? word : length);
	if (left == 0)
		snprintf(out, size, "the end of the text");
	else if (*at == '\n')
		snprintf(out, size, "the end of the line");
	else if (length == 0)
		snprintf(out, size, "the byte 0x%02X, which is not UTF-8", (unsigned char)*at);
	else if ((unsigned char)*at < 0x20 || *at == 0x7F)
		snprintf(out, size, "the control character 0x%02X", (unsigned char)*at);
	else if (*at == '\'')
		snprintf(out, size, "a single quote (JSON strings need double quotes)");
	else
		snprintf(out, size, "'%s'", err_show(text).text);
}

static int expected(struct scan *scan, const char *what)
{
	char found[96];

	describe(scan, scan->at, found, sizeof found);
	return fail_at(scan, scan->at, "expected %s, found %s", what, found);
}

static void skip_space(struct scan *scan)
{
	while (scan->at < scan->end &&
	       (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r'))
		scan->at++;
}

static bool take(struct scan *scan, char c)
{
	if (scan->at == scan->end || *scan->at != c)
		return false;
	scan->at++;
	return true;
}

/* Reads four hexadecimal digits. Returns -1 if one of the four characters is not a hexadecimal digit. */
static int hex4(const char *at, const char *end)
{
	int code = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(at[i]);

		if (digit < 0)
			return -1;
		code = code * 16 + digit;
	}
	return code;
}

static bool is_high_surrogate(int code)
{
	return code >= 0xD800 && code < 0xDC00;
}

static bool is_low_surrogate(int code)
{
	return code >= 0xDC00 && code < 0xE000;
}

/* Reads the rest of a \u escape; `at` points at the 'u'. */
static int scan_unicode_escape(struct scan *scan)
{
	const char *escape = scan->at - 1;
	int code = hex4(scan->at + 1, scan->end);

	if (code < 0)
		return fail_at(scan, escape, "expected four hexadecimal digits after \\u");
	if (code == 0)
		return fail_at(scan, escape, "expected a character, found \\u0000; NUL characters are not allowed");
	scan->at += 5;
	if (is_low_surrogate(code))
		return fail_at(scan, escape,
		               "expected a character, found the second half of a surrogate pair without the first half");
	if (!is_high_surrogate(code))
		return 0;
	int low =
	    scan->end - scan->at >= 6 && scan->at[0] == '\\' && scan->at[1] == 'u' ? hex4(scan->at + 2, scan->end) : -1;

	if (!is_low_surrogate(low))
		return fail_at(scan, escape,
		               "expected a character, found the first half of a surrogate pair without the second half");
	scan->at += 6;
	return 0;
}

/* Reads an escape; `at` points to the byte after the backslash. */
static int scan_escape(struct scan *scan)
{
	char c = scan->at < scan->end ? *scan->at : '\0';

	if (c == 'u')
		return scan_unicode_escape(scan);
	if (c == '\0' || strchr("\"\\/bfnrt", c) == NULL)
		return expected(scan, "one of \" \\ / b f n r t u after a backslash");
	scan->at++;
	return 0;
}

/* Reads a string. Before the call, `at` points to the opening quote; after the call, it points to the byte after the
 * closing quote. */
static int scan_string(struct scan *scan, bool *escaped)
{
	const char *quote = scan->at++;

	*escaped = false;
	while (scan->at < scan->end) {
		unsigned char c = (unsigned char)*scan->at;

		if (c == '"') {
			scan->at++;
			return 0;
		}
		if (c == '\\') {
			*escaped = true;
			scan->at++;
			if (scan_escape(scan) != 0)
				return -1;
			continue;
		}
		if (c < 0x20)
			return expected(scan, "a string without control characters (write a line feed as \\n and a tab as \\t)");
		size_t length = c < 0x80 ? 1 : utf8_length(scan->at, (size_t)(scan->end - scan->at));

		if (length == 0)
			return expected(scan, "a character");
		scan->at += length;
	}
	return fail_at(scan, quote, "expected a string, found no closing quote before the end of the text");
}

size_t json_decode(const char *from, const char *to, char *out)
{
	static const char plain[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
	size_t length = 0;

	while (from < to) {
		if (*from != '\\') {
			out[length++] = *from++;
		} else if (from[1] != 'u') {
			out[length++] = meaning[strchr(plain, from[1]) - plain];
			from += 2;
		} else {
			int code = hex4(from + 2, to);

			from += 6;
			if (is_high_surrogate(code)) {
				code = 0x10000 + ((code - 0xD800) << 10) + (hex4(from + 2, to) - 0xDC00);
				from += 6;
			}
			length += utf8_put(out + length, (uint32_t)code);
		}
	}
	return length;
}

static size_t scan_digits(struct scan *scan)
{
	const char *start = scan->at;

	while (scan->at < scan->end && is_digit(*scan->at))
		scan->at++;
	return (size_t)(scan->at - start);
}

static int scan_number(struct scan *scan)
{
	const char *start = scan->at;
	char copy[JSON_NUMBER_LENGTH + 1];
	bool exponent = false;

	take(scan, '-');
	if (take(scan, '0')) {
		if (scan->at < scan->end && is_digit(*scan->at))
			return fail_at(scan, start, "expected a number, found one with leading zeros");
	} else if (scan_digits(scan) == 0) {
		return expected(scan, "a digit");
	}
	if (take(scan, '.') && scan_digits(scan) == 0)
		return expected(scan, "a digit after the decimal point");
	if (take(scan, 'e') || take(scan, 'E')) {
		exponent = true;
		if (!take(scan, '+'))
			take(scan, '-');
		if (scan_digits(scan) == 0)
			return expected(scan, "a digit of the exponent");
	}
	size_t length = (size_t)(scan->at - start);

	if (length > JSON_NUMBER_LENGTH)
		return fail_at(scan, start, "expected a number of at most %d characters, found %zu characters",
		               JSON_NUMBER_LENGTH, length);
	if (!exponent) /* only an exponent can make a number infinite, because the length of a number is limited */
		return 0;
	memcpy(copy, start, length);
	copy[length] = '\0';
	if (!isfinite(strtod(copy, NULL)))
		return fail_at(scan, start, "expected a number that fits a 64-bit float, found %s", copy);
	return 0;
}

static int scan_literal(struct scan *scan, const char *word)
{
	size_t length = strlen(word), left = (size_t)(scan->end - scan->at);

	if (left < length || memcmp(scan->at, word, length) != 0 || (left > length && is_word(scan->at[length])))
		return expected(scan, "a value");
	scan->at += length;
	return 0;
}

static void push_key(struct scan *scan, const char *quote, bool escaped)
{
	const char *from = quote + 1, *to = scan->at - 1;

	if (scan->key_count == scan->key_room) {
		scan->key_room = scan->key_room == 0 ? 64 : scan->key_room * 2;
		scan->keys = realloc(scan->keys, scan->key_room * sizeof *scan->keys);
		if (scan->keys == NULL)
			die_no_memory();
	}
	struct key *key = &scan->keys[scan->key_count++];

	*key = (struct key){.bytes = from, .length = (size_t)(to - from), .at = quote};
	if (escaped) {
		char *decoded = arena_alloc(&scan->decoded, key->length);

		key->length = json_decode(from, to, decoded);
		key->bytes = decoded;
	}
}

static int compare_keys(const void *left, const void *right)
{
	const struct key *a = left, *b = right;
	int order = memcmp(a->bytes, b->bytes, a->length < b->length ? a->length : b->length);

	if (order != 0)
		return order;
	return a->length != b->length ? (a->length > b->length) - (a->length < b->length)
	                              : (a->at > b->at) - (a->at < b->at);
}

static bool same_key(const struct key *a, const struct key *b)
{
	return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* Returns the first key that repeats an earlier key, or NULL. The function compares all pairs, so it is fast only for a
 * few keys. */
static const struct key *first_double(const struct key *keys, size_t count)
{
	for (size_t i = 1; i < count; i++)
		for (size_t k = 0; k < i; k++)
			if (same_key(&keys[k], &keys[i]))
				return &keys[i];
	return NULL;
}

/* Pops the keys above `base` off the stack, and reports a duplicate among them. Sorts the popped keys if there are
 * many, so that even an object with 100 000 keys is checked quickly. */
static int pop_unique_keys(struct scan *scan, size_t base)
{
	struct key *keys = scan->keys + base;
	size_t count = scan->key_count - base;
	const struct key *first = NULL;
	bool few = count <= KEYS_FEW;

	if (few)
		first = first_double(keys, count);
	else
		qsort(keys, count, sizeof *keys, compare_keys);
	for (size_t i = 1; i < count && !few; i++)
		if (same_key(&keys[i - 1], &keys[i]) && (first == NULL || keys[i].at < first->at))
			first = &keys[i];
	scan->key_count = base;
	if (first == NULL)
		return 0;
	char *name = arena_copy(&scan->decoded, first->bytes, first->length);

	return fail_at(scan, first->at, "expected each key once, found \"%s\" a second time", err_show(name).text);
}

static int scan_value(struct scan *scan, int depth);

/* Reads an array; `at` points to the byte after the opening bracket. */
static int scan_array(struct scan *scan, int depth)
{
	skip_space(scan);
	if (take(scan, ']'))
		return 0;
	for (;;) {
		if (scan_value(scan, depth) != 0)
			return -1;
		skip_space(scan);
		if (take(scan, ']'))
			return 0;
		if (!take(scan, ','))
			return expected(scan, "',' or ']'");
	}
}

static int scan_member(struct scan *scan, int depth)
{
	const char *quote = scan->at;
	bool escaped;

	if (scan->at == scan->end || *scan->at != '"')
		return expected(scan, "a key in double quotes");
	if (scan_string(scan, &escaped) != 0)
		return -1;
	push_key(scan, quote, escaped);
	skip_space(scan);
	if (!take(scan, ':'))
		return expected(scan, "':' after a key");
	return scan_value(scan, depth);
}

/* Reads an object; `at` points to the byte after the opening brace. */
static int scan_object(struct scan *scan, int depth)
{
	size_t base = scan->key_count;

	skip_space(scan);
	if (take(scan, '}'))
		return 0;
	for (;;) {
		if (scan_member(scan, depth) != 0)
			return -1;
		skip_space(scan);
		if (take(scan, '}'))
			return pop_unique_keys(scan, base);
		if (!take(scan, ','))
			return expected(scan, "',' or '}'");
		skip_space(scan);
	}
}

/* Recursion is bounded by JSON_DEPTH. */
static int scan_value(struct scan *scan, int depth)
{
	bool escaped;

	skip_space(scan);
	if (scan->at == scan->end)
		return expected(scan, "a value");
	if (++scan->values > JSON_VALUES)
		return fail_at(scan, scan->at, "expected at most %d values in one text, found more", JSON_VALUES);
	char c = *scan->at;

	if ((c == '{' || c == '[') && depth == JSON_DEPTH)
		return fail_at(scan, scan->at,
		               "expected objects and lists that are nested at most %d levels deep, found deeper nesting",
		               JSON_DEPTH);
	if (take(scan, '{'))
		return scan_object(scan, depth + 1);
	if (take(scan, '['))
		return scan_array(scan, depth + 1);
	if (c == '"')
		return scan_string(scan, &escaped);
	if (c == '-' || is_digit(c))
		return scan_number(scan);
	return scan_literal(scan, c == 't' ? "true" : c == 'f' ? "false" : "null");
}

static int scan_text(struct scan *scan)
{
	size_t length = scan->text->length;

	if (length >= 3 && memcmp(scan->at, "\xEF\xBB\xBF", 3) == 0)
		return fail_at(scan, scan->at,
		               "expected a value, found a byte order mark; save the file as UTF-8 without one");
	skip_space(scan);
	if (scan->at == scan->end)
		return fail_at(scan, scan->text->text, "expected a value, found %s",
		               length == 0 ? "an empty file" : "only spaces");
	if (scan_value(scan, 0) != 0)
		return -1;
	skip_space(scan);
	return scan->at == scan->end ? 0 : expected(scan, "nothing after the value");
}

int json_check(const struct json_text *text, struct err *err)
{
	static const char nothing[] = "";
	struct json_text whole = *text;

	if (whole.length == 0)
		whole.text = nothing; /* the pointer of an empty text may be NULL */
	struct scan scan = {.text = &whole, .at = whole.text, .end = whole.text + whole.length, .err = err};
	int wrong = scan_text(&scan);

	free(scan.keys);
	arena_free(&scan.decoded);
	return wrong;
}

cJSON *json_parse(const struct json_text *text, struct err *err)
{
	if (json_check(text, err) != 0)
		return NULL;
	cJSON *value = cJSON_ParseWithLengthOpts(text->text, text->length, NULL, false);

	if (value == NULL) /* the scanner has already rejected everything that cJSON rejects */
		err_set(err, "%s: cJSON could not parse this valid JSON; perhaps there is too little memory",
			text->name);
	return value;
}

/* --- reading the tree ---------------------------------------------------------------------------------------- */

bool json_integer(const cJSON *value, int64_t *out)
{
	if (!cJSON_IsNumber(value) || !(fabs(value->valuedouble) < 0x1p53) ||
	    trunc(value->valuedouble) != value->valuedouble)
		return false;
	*out = (int64_t)value->valuedouble;
	return true;
}

const cJSON *json_member(const cJSON *object, const char *key)
{
	return cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
}

const char *json_text_of(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(json_member(object, key));
}

int json_missing(const struct json_text *text, const struct json_step *step, const char *key, struct err *err,
		 const char *what)
{
	return json_error_at(text, step, err, "expected a field \"%s\" (%s), found none", key, what);
}

const char *json_read_text(const struct json_text *text, const struct json_step *step, const cJSON *object,
			   const char *key, size_t most, struct err *err)
{
	const struct json_step at = {.up = step, .key = key};
	const cJSON *value = json_member(object, key);

	if (value == NULL)
		json_missing(text, step, key, err, "a string");
	else if (!cJSON_IsString(value) || *value->valuestring == '\0')
		json_expected(text, &at, value, err, "a non-empty string");
	else if (strlen(value->valuestring) > most)
		json_error_at(text, &at, err, "expected a string of at most %zu bytes, found %zu bytes", most,
		              strlen(value->valuestring));
	else if (!text_is_safe(value->valuestring))
		json_expected(text, &at, value, err, "a string without control or invisible characters");
	else
		return value->valuestring;
	return NULL;
}
