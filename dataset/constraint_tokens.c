#include "dataset/constraint_tokens.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int column_of(const struct tokens *t, const char *at)
{
	int column = 1;

	for (const char *c = t->text; c < at; c++)
		column += ((unsigned char)*c & 0xC0) != 0x80;
	return column;
}

void tokens_stop(struct tokens *t, const char *at, const char *format, ...)
{
	char sentence[512];
	va_list args;

	if (!t->stopped) {
		va_start(args, format);
		vsnprintf(sentence, sizeof sentence, format, args);
		va_end(args);
		err_set(t->err, "column %d of the %s \"%s\": %s", column_of(t, at), t->is_length ? "expression" : "constraint",
			err_show(t->text).text, sentence);
	}
	t->stopped = true;
	t->token = (struct token){.kind = TOKEN_END, .at = at};
}

static size_t number_length(const char *at)
{
	size_t i = 0;

	while (isalnum((unsigned char)at[i]) || at[i] == '.' || at[i] == '_' ||
	       ((at[i] == '+' || at[i] == '-') && i > 0 && (at[i - 1] == 'e' || at[i - 1] == 'E')))
		i++;
	return i;
}

static void read_number(struct tokens *t)
{
	struct token *token = &t->token;
	char copy[48], *end;

	token->length = number_length(token->at);
	if (token->length >= sizeof copy) {
		tokens_stop(t, token->at, "expected a number of fewer than %zu characters", sizeof copy);
		return;
	}
	memcpy(copy, token->at, token->length);
	copy[token->length] = '\0';
	token->kind = strspn(copy, "0123456789") == token->length ? TOKEN_INTEGER : TOKEN_FLOAT;
	token->number = strtod(copy, &end);
	if (*end != '\0' || strspn(copy, "0123456789.eE+-") != token->length) {
		tokens_stop(t, token->at, "expected a decimal number, found '%s'", copy);
	} else if (token->kind == TOKEN_INTEGER) {
		errno = 0;
		token->integer = strtoll(copy, NULL, 10);
		if (errno == ERANGE)
			tokens_stop(t, token->at, "expected an integer below 2^63, found %s", copy);
	} else if (!isfinite(token->number)) {
		tokens_stop(t, token->at, "expected a number that fits a 64-bit float, found %s", copy);
	}
}

/* Characters outside ASCII can also be part of a name. */
static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

void tokens_next(struct tokens *t)
{
	static const char *const signs[] = {"==", "!=", "<=", ">=", "//", "**", "<", ">", "+", "-",
					    "*",  "/",	"%",  "(",  ")",  "[",	"]", "{", "}", ",", ".", "&", "|"};
	const char *at = t->token.at + t->token.length;

	if (t->stopped)
		return;
	t->behind = at;
	at += strspn(at, " \t\r\n");
	t->token = (struct token){.kind = TOKEN_END, .at = at};
	if (*at == '\0')
		return;
	if (is_name(*at) && !isdigit((unsigned char)*at)) {
		t->token.kind = TOKEN_NAME;
		while (is_name(at[t->token.length]))
			t->token.length++;
		return;
	}
	if (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1]))) {
		read_number(t);
		return;
	}
	t->token.kind = TOKEN_SIGN;
	for (size_t i = 0; i < sizeof signs / sizeof *signs && t->token.length == 0; i++)
		if (strncmp(at, signs[i], strlen(signs[i])) == 0)
			t->token.length = strlen(signs[i]);
	if (t->token.length == 0)
		tokens_stop(t, at,
			    *at == '=' ? "found '=', which does not compare; write '=='"
				       : "found a character that is not valid here");
}

bool tokens_is(const struct tokens *t, const char *text)
{
	return t->token.kind != TOKEN_END && t->token.length == strlen(text) &&
	       memcmp(t->token.at, text, t->token.length) == 0;
}

bool tokens_take(struct tokens *t, const char *text)
{
	if (!tokens_is(t, text))
		return false;
	tokens_next(t);
	return true;
}

void tokens_expected(struct tokens *t, const char *what)
{
	char found[64];

	snprintf(found, sizeof found, "%.*s", t->token.length < 40 ? (int)t->token.length : 40, t->token.at);
	if (t->token.kind == TOKEN_END)
		tokens_stop(t, t->token.at, "expected %s, found the end of the %s", what, t->is_length ? "expression" : "constraint");
	else
		tokens_stop(t, t->token.at, "expected %s, found '%s'", what, found);
}

struct tokens tokens_begin(const char *text, size_t most, struct err *err)
{
	struct tokens t = {.text = text, .token = {.at = text}, .behind = text, .err = err};

	if (strlen(text) > most)
		tokens_stop(&t, text, "expected at most %zu bytes, found %zu", most, strlen(text));
	tokens_next(&t);
	return t;
}
