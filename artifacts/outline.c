#include "artifacts/outline.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* More functions than FUNCTIONS no file has that a person wrote; those beyond are not looked at. */
enum { FUNCTIONS = 4096 };

/* Blanks the string that begins at `i`; returns where the text goes on. */
static size_t blank_string(struct outline *o, size_t i)
{
	char quote = o->text[i];
	bool triple = i + 2 < o->length && o->text[i + 1] == quote && o->text[i + 2] == quote;
	size_t width = triple ? 3 : 1;

	for (i += width; i < o->length; i++) {
		bool ends = o->text[i] == quote &&
			    (!triple || (i + 2 < o->length && o->text[i + 1] == quote && o->text[i + 2] == quote));

		if (ends)
			return i + width;
		if (o->text[i] == '\n' && !triple)
			return i;
		if (o->text[i] == '\\' && i + 1 < o->length && o->text[i + 1] != '\n')
			o->code[i++] = ' ';
		o->code[i] = ' ';
	}
	return i;
}

static void blank(struct outline *o)
{
	for (size_t i = 0; i < o->length;) {
		if (o->text[i] == '"' || o->text[i] == '\'') {
			i = blank_string(o, i);
		} else if (o->text[i] == '#') {
			while (i < o->length && o->text[i] != '\n')
				o->code[i++] = ' ';
		} else {
			i++;
		}
	}
}

bool outline_blank(const struct outline *o, size_t begin, size_t end)
{
	while (begin < end && isspace((unsigned char)o->code[begin]))
		begin++;
	return begin == end;
}

/* A newline inside brackets, behind a backslash or inside a string (of which the code has blanks) ends no statement. */
static void find_statements(struct outline *o)
{
	int depth = 0, line = 1, first = 1; /* first: of the line at `begin`, which may hold a string of several */
	bool joined = false;
	size_t begin = 0;

	for (size_t i = 0; i <= o->length; i++) {
		char c = i < o->length ? o->code[i] : '\n';

		line += i < o->length && o->text[i] == '\n' && c != '\n';
		if (strchr("([{", c) != NULL && c != '\0')
			depth++;
		else if (strchr(")]}", c) != NULL && c != '\0' && depth > 0)
			depth--;
		if (c != '\n')
			continue;
		struct statement *open = o->statement_count > 0 ? &o->statements[o->statement_count - 1] : NULL;

		if (joined && open != NULL) {
			open->end = i;
		} else if (!outline_blank(o, begin, i)) {
			int indent = 0;

			while (o->code[begin + (size_t)indent] == ' ' || o->code[begin + (size_t)indent] == '\t')
				indent++;
			o->statements[o->statement_count++] = (struct statement){
			    .line = first, .indent = indent, .begin = begin + (size_t)indent, .end = i};
		}
		joined = depth > 0 || (i > begin && i < o->length && o->code[i - 1] == '\\');
		begin = i + 1;
		first = ++line;
	}
}

/* Where the statement at `at` ends, if others follow on its lines: behind the colon of an `if` or a `def`, or a ';'.
 * What follows a colon of another kind (a lambda's, an annotation's) begins with no word that is looked for. */
static size_t part_end(const struct outline *o, size_t at, size_t end)
{
	int depth = 0;

	for (; at < end; at++) {
		char c = o->code[at];

		depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
		if (depth == 0 && (c == ':' || c == ';'))
			break;
	}
	return at;
}

/* "if x: return y" as two statements, the second one deeper. */
static void split_statements(struct outline *o, size_t room, struct arena *arena)
{
	struct statement *parts = arena_array(arena, room, sizeof *parts);
	int count = 0;

	for (int i = 0; i < o->statement_count; i++) {
		struct statement part = o->statements[i];
		size_t end = part.end;

		for (;;) {
			part.end = part_end(o, part.begin, end);
			parts[count++] = part;
			if (part.end == end || outline_blank(o, part.end + 1, end))
				break;
			part.indent += o->code[part.end] == ':';
			for (size_t k = part.begin; k < part.end; k++)
				part.line += o->text[k] == '\n';
			for (part.begin = part.end + 1; isspace((unsigned char)o->code[part.begin]); part.begin++)
				part.line += o->text[part.begin] == '\n';
		}
	}
	o->statements = parts;
	o->statement_count = count;
}

/* Each statement ends the blocks of those before it that stand as deep or deeper. */
static void find_blocks(struct outline *o)
{
	for (int k = 0; k < o->statement_count; k++) {
		struct statement *at = &o->statements[k];
		int before = k - 1;

		at->previous = -1;
		at->behind = o->statement_count;
		for (; before >= 0 && o->statements[before].indent >= at->indent; before = o->statements[before].head) {
			o->statements[before].behind = k;
			if (o->statements[before].indent == at->indent)
				at->previous = before;
		}
		at->head = before;
	}
}

bool outline_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

size_t outline_after(const struct outline *o, const struct statement *at, const char *word)
{
	size_t length = strlen(word), end = at->begin + length;

	if (end > at->end || memcmp(o->code + at->begin, word, length) != 0 ||
	    (end < at->end && outline_word(o->code[end])))
		return 0;
	while (end < at->end && o->code[end] == ' ')
		end++;
	return end;
}

size_t outline_after_def(const struct outline *o, const struct statement *at)
{
	struct statement rest = *at;
	size_t async = outline_after(o, at, "async");

	if (async > 0)
		rest.begin = async;
	return outline_after(o, &rest, "def");
}

/* Does it stand in the body of another? Those are found before it. */
static bool is_inner(const struct outline *o, const struct function *f)
{
	for (int i = 0; i < o->function_count; i++)
		if (o->functions[i].last >= f->statement)
			return true;
	return false;
}

static void find_functions(struct outline *o)
{
	for (int i = 0; i < o->statement_count && o->function_count < FUNCTIONS; i++) {
		size_t at = outline_after_def(o, &o->statements[i]), end = at;
		struct function *f = &o->functions[o->function_count];

		if (at == 0)
			continue;
		while (end < o->statements[i].end && outline_word(o->code[end]))
			end++;
		*f = (struct function){.statement = i, .last = o->statements[i].behind - 1};
		snprintf(f->name, sizeof f->name, "%.*s", (int)(end - at), o->code + at);
		f->test = strncmp(f->name, "test", 4) == 0 && !is_inner(o, f);
		o->function_count++;
	}
}

size_t outline_call(const struct outline *o, size_t at, size_t end, char *name, size_t size)
{
	for (; at < end; at++) {
		size_t begin = at;

		if (!outline_word(o->code[at]))
			continue;
		while (at < end && outline_word(o->code[at]))
			at++;
		if (at < end && o->code[at] == '(') {
			snprintf(name, size, "%.*s", (int)(at - begin), o->code + begin);
			return at;
		}
		at--;
	}
	return 0;
}

bool outline_begins(const struct outline *o, size_t at, size_t end, const char *word)
{
	size_t length = strlen(word);

	return end - at >= length && memcmp(o->code + at, word, length) == 0 &&
	       (end - at == length || !outline_word(o->code[at + length]));
}

void outline_of(struct outline *o, const char *text, size_t length, struct arena *arena)
{
	size_t lines = 2, parts = 0;

	for (size_t i = 0; i < length; i++) {
		lines += text[i] == '\n';
		parts += text[i] == ':' || text[i] == ';';
	}
	*o = (struct outline){.text = text, .length = length};
	o->code = arena_copy(arena, text, length);
	o->statements = arena_array(arena, lines, sizeof *o->statements);
	o->functions = arena_array(arena, lines + parts < FUNCTIONS ? lines + parts : FUNCTIONS, sizeof *o->functions);
	blank(o);
	find_statements(o);
	split_statements(o, lines + parts, arena);
	find_blocks(o);
	find_functions(o);
}
