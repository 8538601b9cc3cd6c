#include "commands/options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "reftest.h"

static int unknown_option(const struct option_row *rows, int count, const char *word, struct arena *arena,
                          struct err *err)
{
	const char **known = arena_array(arena, (size_t)count + 1, sizeof *known);

	for (int i = 0; i < count; i++)
		known[i] = rows[i].name;
	const char *near = near_word(word, known, count);

	if (near != NULL)
		return err_set(err, "there is no option %s; did you mean %s?", word, near);
	return err_set(err, "there is no option %s; --help lists those there are", word);
}

static int read_number(const struct option_row *row, const char *text, void *at, struct err *err)
{
	char *end;

	errno = 0;
	if (row->kind == OPTION_REAL) {
		double real = strtod(text, &end);

		if (end == text || *end != '\0' || !isfinite(real) || real < 0)
			return err_set(err, "%s takes a number of at least 0, not '%s'", row->name, text);
		*(double *)at = real;
		return 0;
	}
	unsigned long long whole = strtoull(text, &end, 0);

	if (end == text || *end != '\0' || errno == ERANGE || text[0] == '-' ||
	    (row->kind == OPTION_INT && whole > INT_MAX))
		return err_set(err, "%s takes a whole number of at least 0, not '%s'", row->name, text);
	if (row->kind == OPTION_INT)
		*(int *)at = (int)whole;
	else
		*(uint64_t *)at = whole;
	return 0;
}

static int store_value(const struct option_row *row, const char *text, void *into, struct err *err)
{
	void *at = (char *)into + row->offset;
	struct words *list = at;

	switch (row->kind) {
	case OPTION_FLAG:
	case OPTION_UNFLAG:
		*(bool *)at = row->kind == OPTION_FLAG;
		return 0;
	case OPTION_TEXT:
		*(const char **)at = text;
		return 0;
	case OPTION_LIST:
		list->items[list->count++] = text;
		return 0;
	default:
		return read_number(row, text, at, err);
	}
}

static const struct option_row *find_row(const struct option_row *rows, int count, const char *word, size_t length)
{
	for (int i = 0; i < count; i++)
		if (strlen(rows[i].name) == length && memcmp(rows[i].name, word, length) == 0)
			return &rows[i];
	return NULL;
}

static void make_lists(const struct option_row *rows, int count, int argc, struct arena *arena, void *into)
{
	for (int i = 0; i < count; i++)
		if (rows[i].kind == OPTION_LIST) {
			struct words *list = (struct words *)(void *)((char *)into + rows[i].offset);

			*list = (struct words){arena_array(arena, (size_t)argc, sizeof(char *)), 0};
		}
}

int options_read(const struct option_row *rows, int count, int argc, char **argv, struct arena *arena, void *into,
                 struct words *names, struct err *err)
{
	bool only_names = false;

	make_lists(rows, count, argc, arena, into);
	*names = (struct words){arena_array(arena, (size_t)argc, sizeof(char *)), 0};
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *equals = strchr(word, '=');

		if (only_names || word[0] != '-' || word[1] == '\0') {
			names->items[names->count++] = word;
			continue;
		}
		if (strcmp(word, "--") == 0) {
			only_names = true;
			continue;
		}
		if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0)
			return 1;
		const struct option_row *row =
		    find_row(rows, count, word, equals != NULL ? (size_t)(equals - word) : strlen(word));

		if (row == NULL)
			return unknown_option(rows, count, word, arena, err);
		bool flag = row->kind == OPTION_FLAG || row->kind == OPTION_UNFLAG;

		if (flag && equals != NULL)
			return err_set(err, "%s takes no value", row->name);
		if (!flag && equals == NULL && i + 1 >= argc)
			return err_set(err, "%s needs a value (%s)", row->name, row->value);
		const char *value = flag ? NULL : equals != NULL ? equals + 1 : argv[++i];

		if (store_value(row, value, into, err) < 0)
			return -1;
	}
	return 0;
}

static void print_rows(const struct option_row *rows, int count)
{
	for (int i = 0; i < count; i++) {
		char left[48];

		snprintf(left, sizeof left, "%s%s%s", rows[i].name, rows[i].value != NULL ? " " : "",
		         rows[i].value != NULL ? rows[i].value : "");
		printf("  %-28s %s\n", left, rows[i].help);
	}
}

bool options_begin(struct told *told, const char *usage, const struct option_row *rows, int count, int argc,
		   char **argv, void *into)
{
	*told = (struct told){.code = EXIT_USAGE};
	int help = options_read(rows, count, argc, argv, &told->arena, into, &told->names, &told->err);

	if (help > 0) {
		printf("usage: reftest %s\n%s", usage, count > 0 ? "\n" : "");
		print_rows(rows, count);
		told->code = EXIT_VERIFIED;
	}
	return help == 0;
}

int options_end(struct told *told)
{
	if (told->err.text[0] != '\0')
		fprintf(stderr, "reftest: %s\n", told->err.text);
	arena_free(&told->arena);
	return told->code;
}

int options_json(const char *format, struct err *err)
{
	bool json = strcmp(format, "json") == 0;

	if (!json && strcmp(format, "text") != 0)
		return err_set(err, "'%s' is no format; --format takes text or json", format);
	return json;
}
