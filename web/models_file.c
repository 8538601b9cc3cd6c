#include "web/models_file.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { DEPTH_MOST = 32, ID_MOST = 512, INDENT_MOST = 64 };

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

enum token_kind { TOKEN_END, TOKEN_STRING, TOKEN_NUMBER, TOKEN_WORD, TOKEN_SIGN, TOKEN_BAD };

struct token {
	enum token_kind kind;
	size_t begin, end; /* where the token begins and ends in the file; a string includes its quotes */
};

struct parser {
	const char *path, *text;
	size_t length, at;
	struct token token; /* the current token */
	size_t last;	    /* the end of the previous token */
	const char *bad;    /* why the current token is TOKEN_BAD */
	struct err *err;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool begins(const struct parser *p, size_t at, const char *with)
{
	size_t length = strlen(with);

	return p->length - at >= length && memcmp(p->text + at, with, length) == 0;
}

/* Skips blanks and comments. Returns false if a comment has no end. */
static bool skip_blanks(struct parser *p)
{
	while (p->at < p->length) {
		if (isspace((unsigned char)p->text[p->at]) || begins(p, p->at, "\xef\xbb\xbf")) {
			p->at += isspace((unsigned char)p->text[p->at]) ? 1 : 3;
		} else if (begins(p, p->at, "//")) {
			while (p->at < p->length && p->text[p->at] != '\n')
				p->at++;
		} else if (begins(p, p->at, "/*")) {
			for (p->at += 2; p->at < p->length && !begins(p, p->at, "*/"); p->at++)
				;
			if (p->at >= p->length)
				return false;
			p->at += 2;
		} else {
			return true;
		}
	}
	return true;
}

static enum token_kind read_string(struct parser *p)
{
	char quote = p->text[p->at++];

	for (; p->at < p->length && p->text[p->at] != quote; p->at++) {
		if (p->text[p->at] == '\\')
			p->at++;
		else if (p->text[p->at] == '\n' && quote != '`')
			return p->bad = "a string without end", TOKEN_BAD;
		else if (quote == '`' && begins(p, p->at, "${"))
			return p->bad = "a string with ${…}", TOKEN_BAD;
	}
	if (p->at >= p->length)
		return p->bad = "a string without end", TOKEN_BAD;
	p->at++;
	return TOKEN_STRING;
}

static void next(struct parser *p)
{
	size_t before = p->at;

	p->last = p->token.end;
	bool fine = skip_blanks(p);
	char c = p->at < p->length ? p->text[p->at] : '\0';

	p->token.begin = fine ? p->at : before;
	if (!fine) {
		p->bad = "a comment without end";
		p->token.kind = TOKEN_BAD;
	} else if (p->at >= p->length) {
		p->token.kind = TOKEN_END;
	} else if (c == '"' || c == '\'' || c == '`') {
		p->token.kind = read_string(p);
	} else if (is_word(c) || (c == '-' && p->at + 1 < p->length && isdigit((unsigned char)p->text[p->at + 1]))) {
		p->token.kind = isdigit((unsigned char)c) || c == '-' ? TOKEN_NUMBER : TOKEN_WORD;
		for (p->at++; p->at < p->length && (is_word(p->text[p->at]) || (p->token.kind == TOKEN_NUMBER && p->text[p->at] == '.')); p->at++)
			;
	} else {
		p->token.kind = TOKEN_SIGN;
		p->at++;
	}
	if (p->at > p->length)
		p->at = p->length;
	p->token.end = p->at;
}

static bool is_token(const struct parser *p, const char *text)
{
	size_t length = strlen(text);

	return (p->token.kind == TOKEN_SIGN || p->token.kind == TOKEN_WORD) && p->token.end - p->token.begin == length &&
	       memcmp(p->text + p->token.begin, text, length) == 0;
}

static int fail(struct parser *p, const char *wanted)
{
	int line = 1, column = 1;
	char found[64];
	size_t length = p->token.end - p->token.begin;

	for (size_t i = 0; i < p->token.begin; i++) {
		column = p->text[i] == '\n' ? 1 : column + ((p->text[i] & 0xc0) != 0x80);
		line += p->text[i] == '\n';
	}
	length = length < sizeof found ? length : sizeof found - 1;
	memcpy(found, p->text + p->token.begin, length);
	found[length] = '\0';
	return err_set(p->err, "%s:%d:%d: expected %s, found %s; the file was left as it is", p->path, line, column, wanted,
		       p->token.kind == TOKEN_END   ? "the end of the file"
		       : p->token.kind == TOKEN_BAD ? p->bad
						    : err_show(found).text);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static int skip_value(struct parser *p, int depth);

/* Skips the members of an object if `keys` is true, else the elements of an array, and then the closing bracket
 * `close`. Before the call, the current token is the one after the opening bracket. */
static int skip_list(struct parser *p, const char *close, bool keys, int depth)
{
	while (!is_token(p, close)) {
		if (keys) {
			if (p->token.kind != TOKEN_WORD && p->token.kind != TOKEN_STRING)
				return fail(p, "a key");
			next(p);
			if (!is_token(p, ":"))
				return fail(p, "':'");
			next(p);
		}
		if (skip_value(p, depth) < 0)
			return -1;
		if (is_token(p, ","))
			next(p);
		else if (!is_token(p, close))
			return fail(p, keys ? "',' or '}'" : "',' or ']'");
	}
	next(p);
	return 0;
}

static int skip_value(struct parser *p, int depth)
{
	bool object = is_token(p, "{");

	if (depth >= DEPTH_MOST)
		return fail(p, "a value that is nested less deeply");
	if (object || is_token(p, "[")) {
		next(p);
		return skip_list(p, object ? "}" : "]", object, depth + 1);
	}
	if (p->token.kind != TOKEN_STRING && p->token.kind != TOKEN_NUMBER && !is_token(p, "true") && !is_token(p, "false") &&
	    !is_token(p, "null"))
		return fail(p, "a literal value");
	next(p);
	return 0;
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

/* The place in the file at which an entry can be replaced or added. */
struct place {
	bool found;	      /* the file has an entry for the model */
	size_t begin, end;    /* where the entry of the model begins and ends */
	size_t modules, modules_end; /* where the value of the entry's member "modules" begins and ends; both are 0 if
				      * the entry has no such member */
	bool empty;	      /* the array of models has no entry */
	size_t last;	      /* the end of the last entry of the array */
	bool comma;	      /* a comma follows the last entry */
	size_t close;	      /* the position of the array's ']' */
	char indent[INDENT_MOST]; /* indentation of the line on which the first entry begins */
};

/* Copies the blanks at the beginning of the line that contains `at`. */
static void read_indent(const struct parser *p, size_t at, char *out)
{
	size_t begin = at, length = 0;

	while (begin > 0 && p->text[begin - 1] != '\n')
		begin--;
	while (length + 1 < INDENT_MOST && begin + length < at && (p->text[begin + length] == ' ' || p->text[begin + length] == '\t'))
		length++;
	memcpy(out, p->text + begin, length);
	out[length] = '\0';
}

/* The members of an entry that the parser needs. */
struct entry {
	char id[ID_MOST]; /* the value of "id"; "": the entry has no id */
	size_t modules, modules_end;
};

/* Returns whether the current token is this key, with or without quotes. */
static bool is_key(const struct parser *p, const char *key)
{
	size_t length = strlen(key);

	return is_token(p, key) || (p->token.kind == TOKEN_STRING && p->token.end - p->token.begin == length + 2 &&
				    memcmp(p->text + p->token.begin + 1, key, length) == 0);
}

/* Reads the id, which is the current token. Ids are compared as they are written in the file, so an id must not contain
 * a backslash. */
static int read_id(struct parser *p, struct entry *entry)
{
	size_t length = p->token.end - p->token.begin;

	if (entry->id[0] != '\0' || p->token.kind != TOKEN_STRING || length < 3 || length - 2 >= ID_MOST ||
	    memchr(p->text + p->token.begin, '\\', length) != NULL)
		return fail(p, entry->id[0] != '\0' ? "one id" : "a plain string");
	memcpy(entry->id, p->text + p->token.begin + 1, length - 2);
	entry->id[length - 2] = '\0';
	return 0;
}

/* Reads one member of an entry. Before the call, the current token is the key of the member. */
static int read_member(struct parser *p, struct entry *entry)
{
	bool is_id = is_key(p, "id"), is_modules = is_key(p, "modules");

	if (p->token.kind != TOKEN_WORD && p->token.kind != TOKEN_STRING)
		return fail(p, "a key");
	if (is_modules && entry->modules > 0)
		return fail(p, "modules once");
	next(p);
	if (!is_token(p, ":"))
		return fail(p, "':'");
	next(p);
	if (is_id && read_id(p, entry) < 0)
		return -1;
	if (is_modules)
		entry->modules = p->token.begin;
	if (skip_value(p, 2) < 0)
		return -1;
	if (is_modules)
		entry->modules_end = p->last;
	return 0;
}

/* Reads one entry. Before the call, the current token is the '{' of the entry. */
static int read_entry(struct parser *p, struct entry *entry)
{
	const struct token open = p->token;

	*entry = (struct entry){.id = ""};
	next(p);
	while (!is_token(p, "}")) {
		if (read_member(p, entry) < 0)
			return -1;
		if (is_token(p, ","))
			next(p);
		else if (!is_token(p, "}"))
			return fail(p, "',' or '}'");
	}
	if (entry->id[0] != '\0')
		return 0;
	p->token = open;
	return fail(p, "an entry with an id");
}

/* Reads the array. Before the call, the current token is the one after the '['. After the call, the current token is
 * the ']'. */
static int read_entries(struct parser *p, const char *wanted, struct place *out)
{
	struct entry entry;

	out->empty = true;
	while (!is_token(p, "]")) {
		const struct token open = p->token;

		if (!is_token(p, "{"))
			return fail(p, "'{' of an entry");
		if (out->empty)
			read_indent(p, open.begin, out->indent);
		if (read_entry(p, &entry) < 0)
			return -1;
		out->empty = false;
		out->last = p->token.end;
		if (strcmp(entry.id, wanted) == 0) {
			if (out->found) {
				p->token = open;
				return fail(p, "only one entry of this model");
			}
			out->found = true;
			out->begin = open.begin;
			out->end = p->token.end;
			out->modules = entry.modules;
			out->modules_end = entry.modules_end;
		}
		next(p);
		out->comma = is_token(p, ",");
		if (out->comma)
			next(p);
		else if (!is_token(p, "]"))
			return fail(p, "',' or ']'");
	}
	out->close = p->token.begin;
	return 0;
}

/* Advances to the token that follows `const models … = [`. */
static int find_array(struct parser *p)
{
	bool after_const = false;

	for (next(p); !(after_const && is_token(p, "models")); next(p)) {
		after_const = is_token(p, "const");
		if (p->token.kind == TOKEN_END || p->token.kind == TOKEN_BAD)
			return fail(p, "`const models = [`");
	}
	for (next(p); !is_token(p, "="); next(p)) /* skips the type */
		if (p->token.kind != TOKEN_WORD && (p->token.kind != TOKEN_SIGN || strchr(":[]<>,.|", p->text[p->token.begin]) == NULL))
			return fail(p, "'='");
	next(p);
	if (!is_token(p, "["))
		return fail(p, "'['");
	next(p);
	return 0;
}

/* ---- the new text ------------------------------------------------------------------------------------------------ */

/* Adds an entry for `model` after the last entry. If ']' is alone on its line, the new entry is inserted before this
 * line. */
static void add_entry(const struct parser *p, const struct place *place, const struct web_model *model,
		      const struct web_layout *layout, struct buf *out)
{
	size_t line = place->close;

	while (line > 0 && (p->text[line - 1] == ' ' || p->text[line - 1] == '\t'))
		line--;
	bool alone = line > 0 && p->text[line - 1] == '\n' && line > place->last;
	size_t at = alone ? line : place->close, from = place->empty ? 0 : place->last;

	buf_add(out, p->text, from);
	if (!place->empty && !place->comma)
		buf_text(out, ",");
	buf_add(out, p->text + from, at - from);
	if (!alone)
		buf_text(out, layout->newline);
	buf_text(out, layout->indent);
	web_model_write(model, layout, out);
	buf_text(out, ",");
	buf_text(out, layout->newline);
	buf_add(out, p->text + at, p->length - at);
}

enum models_file_change models_file_set(const char *path, const char *text, size_t length, const struct web_model *model,
					struct buf *out, struct err *err)
{
	struct parser p = {.path = path, .text = text, .length = length, .err = err};
	struct place place = {.indent = ""};
	const char *line_end = length == 0 ? NULL : memchr(text, '\n', length);

	buf_clear(out);
	if (length > MODELS_FILE_BYTES)
		return err_set(err, "%s: the file has more than %d bytes", path, (int)MODELS_FILE_BYTES), MODELS_FILE_ERROR;
	if (find_array(&p) < 0 || read_entries(&p, model->id, &place) < 0)
		return MODELS_FILE_ERROR;
	const char *step = place.indent[0] == '\0' ? "  " : place.indent;
	const struct web_layout layout = {place.empty ? step : place.indent, step,
					  line_end != NULL && line_end > text && line_end[-1] == '\r' ? "\r\n" : "\n"};

	if (!place.found) {
		add_entry(&p, &place, model, &layout, out);
		return MODELS_FILE_ADDED;
	}
	const bool whole = place.modules == 0;
	const size_t end = whole ? place.end : place.modules_end;

	buf_add(out, text, whole ? place.begin : place.modules);
	(whole ? web_model_write : web_modules_write)(model, &layout, out);
	buf_add(out, text + end, length - end);
	return out->length == length && memcmp(out->data, text, length) == 0 ? MODELS_FILE_SAME : MODELS_FILE_REPLACED;
}
