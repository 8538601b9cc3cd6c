/* json_position - finds positions in a JSON text: the line and column of a byte, and the first byte of the value at a
 * path. Reports errors at these positions.
 *
 * cJSON's tree keeps no positions. The text is therefore scanned again, but only to report an error. */
#include "base/json.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json_internal.h"

static void line_and_column(const struct json_text *text, const char *at, int *line, int *column)
{
	const char *start = text->text;

	*line = text->first_line;
	for (const char *p = text->text; p < at; p++)
		if (*p == '\n') {
			*line += 1;
			start = p + 1;
		}
	*column = 1;
	for (const char *p = start; p < at; p++)
		*column += ((unsigned char)*p & 0xC0) != 0x80; /* counts only the first byte of each character */
}

int json_error_here(const struct json_text *text, const char *at, struct err *err, const char *format, va_list args)
{
	char sentence[sizeof err->text];
	int line, column;

	line_and_column(text, at, &line, &column);
	vsnprintf(sentence, sizeof sentence, format, args);
	return err_set(err, "%s:%d:%d: %s", text->name, line, column, sentence);
}

static const char *skip_blank(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
		at++;
	return at;
}

/* Returns the byte after the closing quote of a string; `at` points to the opening quote. */
static const char *skip_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		if (*at == '\\' && end - at > 1)
			at++;
	return at < end ? at + 1 : end;
}

/* Returns the byte after the value that begins at `at`. */
static const char *skip_value(const char *at, const char *end)
{
	int depth = 0;

	if (at < end && *at != '"' && *at != '{' && *at != '[') {
		while (at < end && strchr(",]} \t\r\n", *at) == NULL)
			at++;
		return at;
	}
	while (at < end) {
		if (*at == '"') {
			at = skip_string(at, end);
		} else {
			depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
			at++;
		}
		if (depth <= 0)
			break;
	}
	return at;
}

/* Returns true if a string equals `key`. The string begins at `from` and ends before `to`; its quotes are not
 * included. */
static bool key_is(const char *from, const char *to, const char *key, size_t length)
{
	size_t raw = (size_t)(to - from);

	if (memchr(from, '\\', raw) == NULL)
		return raw == length && memcmp(from, key, length) == 0;
	struct arena scratch = {0};
	char *decoded = arena_alloc(&scratch, raw);
	bool same = json_decode(from, to, decoded) == length && memcmp(decoded, key, length) == 0;

	arena_free(&scratch);
	return same;
}

static const char *find_member(const char *at, const char *end, const char *key, size_t length)
{
	for (at = skip_blank(at + 1, end); at < end && *at == '"'; at = skip_blank(at + 1, end)) {
		const char *quote = at;

		at = skip_string(at, end);
		bool found = key_is(quote + 1, at - 1, key, length);

		at = skip_blank(skip_blank(at, end) + 1, end); /* skips the colon */
		if (found)
			return at;
		at = skip_blank(skip_value(at, end), end);
		if (at == end || *at != ',')
			break;
	}
	return NULL;
}

static const char *find_element(const char *at, const char *end, const char *key, size_t length)
{
	int64_t index = 0;

	if (length == 0 || length > 9)
		return NULL;
	for (size_t i = 0; i < length; i++) {
		if (key[i] < '0' || key[i] > '9')
			return NULL;
		index = index * 10 + (key[i] - '0');
	}
	at = skip_blank(at + 1, end);
	if (at < end && *at == ']')
		return NULL;
	for (; index > 0; index--) {
		at = skip_blank(skip_value(at, end), end);
		if (at == end || *at != ',')
			return NULL;
		at = skip_blank(at + 1, end);
	}
	return at;
}

/* Decodes a key in a path: "a~1b" is the key "a/b", "a~0b" is the key "a~b". */
static size_t unescape_key(const char *from, size_t length, char *out)
{
	size_t n = 0;

	for (size_t i = 0; i < length; i++) {
		bool escape = from[i] == '~' && i + 1 < length && (from[i + 1] == '0' || from[i + 1] == '1');

		out[n++] = !escape ? from[i] : from[i + 1] == '0' ? '~' : '/';
		i += escape;
	}
	return n;
}

/* Returns the first byte of the value at `path`, or of the nearest enclosing value that exists. */
static const char *find(const struct json_text *text, const char *path, bool *whole_path)
{
	const char *end = text->text + text->length, *at = skip_blank(text->text, end);
	struct arena scratch = {0};
	char *key = arena_alloc(&scratch, strlen(path) + 1);
	bool more = *path != '\0';

	while (more) {
		const char *slash = strchr(path, '/');
		size_t length = unescape_key(path, slash == NULL ? strlen(path) : (size_t)(slash - path), key);
		const char *inner = at == end       ? NULL
		                    : *at == '{' ? find_member(at, end, key, length)
		                    : *at == '[' ? find_element(at, end, key, length)
		                                 : NULL;

		if (inner == NULL || inner >= end)
			break;
		at = inner;
		more = slash != NULL;
		path = more ? slash + 1 : path;
	}
	arena_free(&scratch);
	*whole_path = !more;
	return at;
}

static int error_at_path(const struct json_text *text, const char *path, struct err *err, const char *format,
                         va_list args) __attribute__((format(printf, 4, 0)));

static int error_at_path(const struct json_text *text, const char *path, struct err *err, const char *format,
                         va_list args)
{
	bool whole_path;

	return json_error_here(text, find(text, path, &whole_path), err, format, args);
}

int json_error(const struct json_text *text, const char *path, struct err *err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	error_at_path(text, path, err, format, args);
	va_end(args);
	return -1;
}

/* Writes the path of a step. Writes nothing for the whole text (`step` is NULL). */
static void write_path(const struct json_step *step, struct buf *path)
{
	if (step == NULL) {
		buf_text(path, "");
		return;
	}
	write_path(step->up, path);
	if (step->up != NULL)
		buf_text(path, "/");
	if (step->key == NULL)
		buf_printf(path, "%d", step->index);
	else
		for (const char *c = step->key; *c != '\0'; c++)
			buf_add(path, *c == '~' ? "~0" : *c == '/' ? "~1" : c, *c == '~' || *c == '/' ? 2 : 1);
}

int json_error_at(const struct json_text *text, const struct json_step *step, struct err *err, const char *format, ...)
{
	struct buf path = {0};
	va_list args;

	write_path(step, &path);
	va_start(args, format);
	error_at_path(text, path.data, err, format, args);
	va_end(args);
	buf_free(&path);
	return -1;
}

static const char *kind_of(const cJSON *value)
{
	return value == NULL             ? "nothing"
	       : cJSON_IsObject(value) ? "an object"
	       : cJSON_IsArray(value)  ? "a list"
	       : cJSON_IsTrue(value)   ? "true"
	       : cJSON_IsFalse(value)  ? "false"
	                               : "null";
}

int json_expected(const struct json_text *text, const struct json_step *step, const cJSON *found, struct err *err,
                  const char *what)
{
	struct buf path = {0};
	bool whole_path;
	int length;

	if (cJSON_IsString(found))
		return json_error_at(text, step, err, "expected %s, found \"%s\"", what,
		                     err_show(found->valuestring).text);
	if (!cJSON_IsNumber(found))
		return json_error_at(text, step, err, "expected %s, found %s", what, kind_of(found));
	write_path(step, &path);
	/* The message quotes the number as it is written in the file, because the parsed double may be rounded. */
	const char *at = find(text, path.data, &whole_path);

	length = (int)(skip_value(at, text->text + text->length) - at);
	buf_free(&path);
	return json_error_at(text, step, err, "expected %s, found %.*s", what, length, at);
}

bool json_place(const struct json_text *text, const char *path, int *line, int *column)
{
	bool whole_path;
	const char *at = find(text, path, &whole_path);

	if (!whole_path || at == text->text + text->length)
		return false;
	line_and_column(text, at, line, column);
	return true;
}
