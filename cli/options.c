#include "cli/options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/suggest.h"
#include "engine/program.h"

const struct option_row options_help = {"-h, --help", OPTION_FLAG, 0, NULL, NULL, "print this text"};

/* Returns the letter of an option, or '\0' if the option has no letter. */
static char option_letter(const struct option_row *row)
{
	return row->name[1] == '-' ? '\0' : row->name[1];
}

const char *option_word(const struct option_row *row)
{
	return option_letter(row) == '\0' ? row->name : row->name + strlen("-q, ");
}

static int unknown_option(const struct option_row *rows, int count, const char *word, struct arena *arena,
                          struct err *err)
{
	const char **known = arena_array(arena, (size_t)count + 1, sizeof *known);

	for (int i = 0; i < count; i++)
		known[i] = option_word(&rows[i]);
	const char *near = suggest_word(word, known, count);

	if (near != NULL)
		return err_set(err, "unknown option %s; did you mean %s?", word, near);
	return err_set(err, "unknown option %s; --help lists the options", word);
}

static int read_number(const struct option_row *row, const char *text, void *at, struct err *err)
{
	char *end;

	errno = 0;
	if (row->kind == OPTION_REAL) {
		double real = strtod(text, &end);

		if (end == text || *end != '\0' || !isfinite(real) || real < 0)
			return err_set(err, "%s takes a number of at least 0, not '%s'", option_word(row), text);
		*(double *)at = real;
		return 0;
	}
	unsigned long long whole = strtoull(text, &end, 0);

	if (end == text || *end != '\0' || errno == ERANGE || text[0] == '-' ||
	    (row->kind == OPTION_INT && whole > INT_MAX))
		return err_set(err, "%s takes a whole number of at least 0, not '%s'", option_word(row), text);
	if (row->kind == OPTION_INT)
		*(int *)at = (int)whole;
	else
		*(uint64_t *)at = whole;
	return 0;
}

/* Reads a number of bytes: digits and, optionally, K, M, G or T for a power of 1024. */
static int read_size(const struct option_row *row, const char *text, int64_t *bytes, struct err *err)
{
	static const char units[] = "KMGT";
	size_t digits = strspn(text, "0123456789");
	const char *unit = text[digits] == '\0' ? NULL : strchr(units, text[digits]);
	int shift = unit == NULL ? 0 : 10 * (int)(unit - units + 1);

	errno = 0;
	unsigned long long whole = strtoull(text, NULL, 10);

	if (digits == 0 || (text[digits] != '\0' && (unit == NULL || text[digits + 1] != '\0')) || errno == ERANGE ||
	    whole == 0 || whole > (unsigned long long)INT64_MAX >> shift)
		return err_set(err, "%s takes a number of bytes above 0, as in 512M (K, M, G and T are powers of 1024), not '%s'",
			       option_word(row), text);
	*bytes = (int64_t)(whole << shift);
	return 0;
}

/* ---- choices ----------------------------------------------------------------------------------------------------- */

/* Returns whether a text matches a choice. The N of a choice such as "cuda:N" stands for one number, or for several
 * numbers separated by commas. */
static bool is_choice(const char *choice, size_t length, const char *text, size_t text_length)
{
	if (length > 2 && memcmp(choice + length - 2, ":N", 2) == 0) {
		size_t head = length - 1; /* including the colon */

		return text_length > head && memcmp(choice, text, head) == 0 &&
		       strspn(text + head, "0123456789,") >= text_length - head;
	}
	return length == text_length && memcmp(choice, text, length) == 0;
}

static bool is_one_of(const char *choices, const char *text, size_t text_length)
{
	for (const char *at = choices; *at != '\0';) {
		size_t length = strcspn(at, "|");

		if (is_choice(at, length, text, text_length))
			return true;
		at += length + (at[length] == '|');
	}
	return false;
}

const char *options_choices(const char *choices, const char *last, struct arena *arena)
{
	struct buf out = {0};

	while (*choices != '\0') {
		size_t length = strcspn(choices, "|");
		bool ends = strchr(choices + length + (choices[length] == '|'), '|') == NULL;

		buf_add(&out, choices, length);
		if (choices[length] == '|' && ends)
			buf_printf(&out, " %s ", last);
		else if (choices[length] == '|')
			buf_text(&out, ", ");
		choices += length + (choices[length] == '|');
	}
	const char *text = arena_copy(arena, out.data, out.length);

	buf_free(&out);
	return text;
}

/* Sets `err` to a message about an invalid choice, such as "unknown format …" for --format or "unknown size …" for
 * --sizes. If the option takes a list, but its name is not a plural noun, the message is "unknown value … of
 * --only". */
static int bad_choice(const struct option_row *row, const char *text, size_t length, struct arena *arena,
		      struct err *err)
{
	bool list = row->kind == OPTION_CHOICES;
	const char *noun = option_word(row) + strlen("--");
	const bool plural = noun[strlen(noun) - 1] == 's', named = !list || plural;

	return err_set(err, "unknown %.*s '%s'%s%s (expected %s%s%s)", named ? (int)(strlen(noun) - list) : (int)strlen("value"),
		       named ? noun : "value", err_show(arena_copy(arena, text, length)).text, named ? "" : " of ",
		       named ? "" : option_word(row), list ? "any of " : "",
		       options_choices(row->choices, list ? "and" : "or", arena),
		       list ? ", separated by commas" : "");
}

static int check_choices(const struct option_row *row, const char *text, struct arena *arena, struct err *err)
{
	size_t length = strlen(text);

	if (row->kind == OPTION_CHOICE && !is_one_of(row->choices, text, length))
		return bad_choice(row, text, length, arena, err);
	while (row->kind == OPTION_CHOICES && *text != '\0') {
		length = strcspn(text, ",");
		if (!is_one_of(row->choices, text, length))
			return bad_choice(row, text, length, arena, err);
		text += length + (text[length] == ',');
	}
	return 0;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int store_value(const struct option_row *row, const char *text, struct arena *arena, void *into, struct err *err)
{
	void *at = (char *)into + row->offset;
	struct words *list = at;

	switch (row->kind) {
	case OPTION_FLAG:
	case OPTION_UNFLAG:
		*(bool *)at = row->kind == OPTION_FLAG;
		return 0;
	case OPTION_TEXT:
	case OPTION_FILE:
	case OPTION_FOLDER:
		*(const char **)at = text;
		return 0;
	case OPTION_CHOICE:
	case OPTION_CHOICES:
		*(const char **)at = text;
		return check_choices(row, text, arena, err);
	case OPTION_LIST:
	case OPTION_OP_TYPES:
		list->items[list->count++] = text;
		return 0;
	case OPTION_SIZE:
		return read_size(row, text, at, err);
	default:
		return read_number(row, text, at, err);
	}
}

static const struct option_row *find_row(const struct option_row *rows, int count, const char *word, size_t length)
{
	for (int i = 0; i < count; i++)
		if (strlen(option_word(&rows[i])) == length && memcmp(option_word(&rows[i]), word, length) == 0)
			return &rows[i];
	return NULL;
}

static const struct option_row *find_letter(const struct option_row *rows, int count, char letter)
{
	for (int i = 0; i < count; i++)
		if (option_letter(&rows[i]) == letter)
			return &rows[i];
	return NULL;
}

static void make_lists(const struct option_row *rows, int count, int argc, struct arena *arena, void *into)
{
	for (int i = 0; i < count; i++)
		if (rows[i].kind == OPTION_LIST || rows[i].kind == OPTION_OP_TYPES) {
			struct words *list = (struct words *)(void *)((char *)into + rows[i].offset);

			*list = (struct words){arena_array(arena, (size_t)argc, sizeof(char *)), 0};
		}
}

/* Parses flags that are given by their letters: "-q", "-qx". Returns 0 on success, 1 for -h, and -1 with `err` on
 * error. */
static int read_letters(const struct option_row *rows, int count, const char *word, struct arena *arena, void *into,
			struct err *err)
{
	for (const char *at = word + 1; *at != '\0'; at++) {
		const struct option_row *row = find_letter(rows, count, *at);

		if (*at == option_letter(&options_help))
			return 1;
		if (row == NULL)
			return unknown_option(rows, count, word, arena, err);
		store_value(row, NULL, arena, into, err);
	}
	return 0;
}

/* Parses the option at argv[*at]. If the value is a separate word, advances *at to this word. Returns 0 on success, 1
 * for --help, and -1 with `err` on error. */
static int read_option(const struct option_row *rows, int count, int argc, char **argv, int *at, struct arena *arena,
		       void *into, struct err *err)
{
	const char *word = argv[*at], *equals = strchr(word, '=');

	if (word[1] != '-')
		return read_letters(rows, count, word, arena, into, err);
	if (strcmp(word, option_word(&options_help)) == 0)
		return 1;
	const struct option_row *row =
	    find_row(rows, count, word, equals != NULL ? (size_t)(equals - word) : strlen(word));

	if (row == NULL)
		return unknown_option(rows, count, word, arena, err);
	bool flag = row->kind == OPTION_FLAG || row->kind == OPTION_UNFLAG;

	if (flag && equals != NULL)
		return err_set(err, "%s takes no value", option_word(row));
	if (!flag && equals == NULL && *at + 1 >= argc)
		return err_set(err, "%s needs a value (%s)", option_word(row), row->value);
	const char *value = flag ? NULL : equals != NULL ? equals + 1 : argv[++*at];

	return store_value(row, value, arena, into, err);
}

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] != '\0';
}

int options_read(const struct option_row *rows, int count, int argc, char **argv, struct arena *arena, void *into,
                 struct words *names, struct err *err)
{
	bool only_names = false;

	make_lists(rows, count, argc, arena, into);
	*names = (struct words){arena_array(arena, (size_t)argc, sizeof(char *)), 0};
	for (int i = 1; i < argc; i++) {
		if (only_names || !is_option(argv[i])) {
			names->items[names->count++] = argv[i];
		} else if (strcmp(argv[i], "--") == 0) {
			only_names = true;
		} else {
			int rc = read_option(rows, count, argc, argv, &i, arena, into, err);

			if (rc != 0)
				return rc;
		}
	}
	return 0;
}

int options_read_leading(const struct option_row *rows, int count, int argc, char **argv, void *into, struct err *err)
{
	struct arena arena = {0};
	int at = 1, rc = 0;

	for (; at < argc && is_option(argv[at]) && rc == 0; at++)
		rc = read_option(rows, count, argc, argv, &at, &arena, into, err);
	arena_free(&arena);
	return rc == 0 ? at : rc > 0 ? 0 : -1;
}

/* ---- a command --------------------------------------------------------------------------------------------------- */
