#include "remote/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"

enum { REDIS_PORT = 6379, DATABASE_MOST = 65535, TIMEOUT_LEAST_MS = 100, TIMEOUT_MOST_MS = 600 * 1000 };

static const struct {
	const char *prefix;
	enum remote_url_kind kind;
	bool socket;
} schemes[] = {
    {"redis://", REMOTE_URL_REDIS, false}, {"redis+unix://", REMOTE_URL_REDIS, true},
    {"unix://", REMOTE_URL_REDIS, true},   {"http://", REMOTE_URL_HTTP, false},
    {"https://", REMOTE_URL_HTTP, false},
};

enum { SCHEMES = sizeof schemes / sizeof schemes[0] };

/* A part of the address. The part is not NUL-terminated. */
struct piece {
	const char *at;
	size_t length;
};

/* Decodes %XX. Returns false if the result does not fit or contains a NUL, or if the part has an incomplete %XX. */
static bool decode(struct piece piece, char *out, size_t size)
{
	size_t length = 0;

	for (size_t i = 0; i < piece.length; i++) {
		char c = piece.at[i];

		if (c == '%') {
			if (i + 2 >= piece.length || hex_digit(piece.at[i + 1]) < 0 || hex_digit(piece.at[i + 2]) < 0)
				return false;
			c = (char)(hex_digit(piece.at[i + 1]) * 16 + hex_digit(piece.at[i + 2]));
			i += 2;
		}
		if (c == '\0' || length + 1 >= size)
			return false;
		out[length++] = c;
	}
	out[length] = '\0';
	return true;
}

static bool read_number(struct piece piece, int least, int most, int *out)
{
	char digits[8], *end;

	if (piece.length == 0 || piece.length >= sizeof digits)
		return false;
	memcpy(digits, piece.at, piece.length);
	digits[piece.length] = '\0';
	long value = strtol(digits, &end, 10);

	if (digits[0] < '0' || digits[0] > '9' || *end != '\0' || value < least || value > most)
		return false;
	*out = (int)value;
	return true;
}

static bool read_timeout(struct piece piece, int *out)
{
	char digits[16], *end;

	if (piece.length == 0 || piece.length >= sizeof digits)
		return false;
	memcpy(digits, piece.at, piece.length);
	digits[piece.length] = '\0';
	double ms = strtod(digits, &end) * 1000;

	if (*end != '\0' || !(ms >= TIMEOUT_LEAST_MS && ms <= TIMEOUT_MOST_MS))
		return false;
	*out = (int)ms;
	return true;
}

static bool piece_is(struct piece piece, const char *text)
{
	return piece.length == strlen(text) && memcmp(piece.at, text, piece.length) == 0;
}

/* Returns the length of the option's name if a message may show the name, or 0 if the name may be part of a password.
 * Messages never show the text after the '=', which may be a password. */
static size_t word_length(struct piece option)
{
	size_t length = 0;

	while (length < option.length && strchr("abcdefghijklmnopqrstuvwxyz-_", option.at[length]) != NULL)
		length++;
	bool name = length == option.length || option.at[length] == '=';

	return name && memchr(option.at, '@', option.length) == NULL ? length : 0;
}

static int read_option(struct piece option, bool socket, struct remote_url *out, struct err *err)
{
	if (piece_is(option, "read-only")) {
		out->read_only = true;
		return 0;
	}
	if (option.length > 8 && memcmp(option.at, "timeout=", 8) == 0 &&
	    read_timeout((struct piece){option.at + 8, option.length - 8}, &out->timeout_ms))
		return 0;
	if (socket && option.length > 3 && memcmp(option.at, "db=", 3) == 0 &&
	    read_number((struct piece){option.at + 3, option.length - 3}, 0, DATABASE_MOST, &out->database))
		return 0;
	char shown[84];
	size_t word = word_length(option);

	snprintf(shown, sizeof shown, " '%.*s'", (int)(word < 80 ? word : 80), option.at);
	return err_set(err,
		       "REFTEST_REMOTE has an unknown or invalid option%s; expected read-only, "
		       "timeout=SECONDS (0.1 to 600)%s%s",
		       word > 0 ? shown : "", socket ? " and db=NUMBER" : "",
		       word == 0 ? "; write a ? in a password as %3F" : "");
}

static int read_options(const char *query, bool socket, struct remote_url *out, struct err *err)
{
	while (*query != '\0') {
		size_t length = strcspn(query, "&");

		if (length > 0 && read_option((struct piece){query, length}, socket, out, err) < 0)
			return -1;
		query += length + (query[length] == '&');
	}
	return 0;
}

/* Reads "user:password". */
static bool read_user(struct piece who, struct remote_url *out)
{
	const char *colon = memchr(who.at, ':', who.length);
	size_t user = colon != NULL ? (size_t)(colon - who.at) : who.length;
	struct piece password = {who.at + user + 1, colon != NULL ? who.length - user - 1 : 0};

	return decode((struct piece){who.at, user}, out->user, sizeof out->user) &&
	       (colon == NULL || decode(password, out->password, sizeof out->password));
}

/* Reads the host of "host:port", "[::1]:port" or "host", and leaves the rest in `where`. */
static bool read_host(struct piece *where, struct remote_url *out)
{
	const char *end;

	if (where->length > 0 && where->at[0] == '[') {
		end = memchr(where->at, ']', where->length);
		if (end == NULL ||
		    !decode((struct piece){where->at + 1, (size_t)(end - where->at - 1)}, out->host, sizeof out->host))
			return false;
		end++;
	} else {
		end = memchr(where->at, ':', where->length);
		if (end == NULL)
			end = where->at + where->length;
		if (!decode((struct piece){where->at, (size_t)(end - where->at)}, out->host, sizeof out->host))
			return false;
	}
	*where = (struct piece){end, where->length - (size_t)(end - where->at)};
	return out->host[0] != '\0';
}

/* Reads the part of a redis address after the host: "", "/" or "/3". */
static bool read_database(struct piece path, struct remote_url *out)
{
	return path.length <= 1 ||
	       read_number((struct piece){path.at + 1, path.length - 1}, 0, DATABASE_MOST, &out->database);
}

static int bad(const char *what, struct err *err)
{
	return err_set(err,
		       "REFTEST_REMOTE has no valid %s; expected redis://HOST:PORT/DATABASE, redis+unix:///PATH or "
		       "http[s]://HOST:PORT/PATH, optionally with ?read-only and timeout=SECONDS",
		       what);
}

static int read_socket(struct piece path, struct remote_url *out, struct err *err)
{
	if (path.length == 0 || path.at[0] != '/' || !decode(path, out->socket, sizeof out->socket))
		return bad("path of a socket (an absolute path of at most 107 bytes)", err);
	snprintf(out->shown, sizeof out->shown, "redis+unix://%s", out->socket);
	return 0;
}

static int read_network(const char *scheme, struct piece rest, struct remote_url *out, struct err *err)
{
	const char *slash = memchr(rest.at, '/', rest.length);
	size_t length = slash != NULL ? (size_t)(slash - rest.at) : rest.length;
	struct piece where = {rest.at, length}, path = {rest.at + length, rest.length - length};
	const char *at = memrchr(where.at, '@', where.length);

	if (at != NULL) {
		if (!read_user((struct piece){where.at, (size_t)(at - where.at)}, out))
			return bad("user and password", err);
		where.length -= (size_t)(at + 1 - where.at);
		where.at = at + 1;
	}
	/* Without this check, a message about user:pass/word@host would show "word", a part of the password. */
	if (memchr(path.at, '@', path.length) != NULL)
		return bad("address (write / in a user name or password as %2F, and @ in a path as %40)", err);
	while (path.length > 0 && path.at[path.length - 1] == '/')
		path.length--;
	int wrote = snprintf(out->shown, sizeof out->shown, "%s%.*s%.*s", scheme, (int)where.length, where.at,
			     (int)path.length, path.at);

	if (wrote >= (int)sizeof out->shown || strpbrk(out->shown, " \t\r\n\"<>\\^`{|}#") != NULL)
		return bad("address", err);
	out->port = REDIS_PORT;
	if (!read_host(&where, out))
		return bad("host", err);
	if (where.length > 0 &&
	    (where.at[0] != ':' || !read_number((struct piece){where.at + 1, where.length - 1}, 1, 65535, &out->port)))
		return bad("port", err);
	return out->kind == REMOTE_URL_REDIS && !read_database(path, out) ? bad("number of a database", err) : 0;
}

int remote_url_parse(const char *text, struct remote_url *out, struct err *err)
{
	*out = (struct remote_url){.timeout_ms = REMOTE_URL_TIMEOUT_MS};
	for (int i = 0; i < SCHEMES; i++) {
		size_t prefix = strlen(schemes[i].prefix);

		if (strncmp(text, schemes[i].prefix, prefix) != 0)
			continue;
		struct piece rest = {text + prefix, strcspn(text + prefix, "?")};

		out->kind = schemes[i].kind;
		if ((schemes[i].socket ? read_socket(rest, out, err)
				       : read_network(schemes[i].prefix, rest, out, err)) < 0)
			return -1;
		return rest.at[rest.length] == '?'
			   ? read_options(rest.at + rest.length + 1, schemes[i].socket, out, err)
			   : 0;
	}
	if (strncmp(text, "rediss://", 9) == 0)
		return err_set(err,
			       "REFTEST_REMOTE names redis over TLS, which this version does not support; use a tunnel "
			       "(stunnel) or https://");
	return bad("scheme", err);
}
