#include "artifacts/audit.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cache/python_form.h"

/* One statement's first line: where it stands, and how deep. */
struct statement {
	int line; /* from 1 */
	int indent;
	size_t begin, end; /* of the whole statement, in the code */
};

struct function {
	char name[128];
	int statement, last; /* its `def`, and the last statement of its body */
	bool test, compares;
};

/* More functions than FUNCTIONS no file has that a person wrote; those beyond are not looked at. */
enum { FUNCTIONS = 4096 };

struct source {
	const char *text;
	char *code; /* the text with what strings and comments hold blanked */
	size_t length;
	struct statement *statements;
	int statement_count;
	struct function *functions;
	int function_count;
	struct arena *arena;
	struct audit_finding *findings;
	int finding_count;
};

/* ---- scanning --------------------------------------------------------------------------------------------------- */

/* Blanks the string that begins at `i`; returns where the text goes on. */
static size_t blank_string(struct source *s, size_t i)
{
	char quote = s->text[i];
	bool triple = i + 2 < s->length && s->text[i + 1] == quote && s->text[i + 2] == quote;
	size_t width = triple ? 3 : 1;

	for (i += width; i < s->length; i++) {
		bool ends = s->text[i] == quote &&
			    (!triple || (i + 2 < s->length && s->text[i + 1] == quote && s->text[i + 2] == quote));

		if (ends)
			return i + width;
		if (s->text[i] == '\n' && !triple)
			return i;
		if (s->text[i] == '\\' && i + 1 < s->length && s->text[i + 1] != '\n')
			s->code[i++] = ' ';
		s->code[i] = ' ';
	}
	return i;
}

static void blank(struct source *s)
{
	for (size_t i = 0; i < s->length;) {
		if (s->text[i] == '"' || s->text[i] == '\'') {
			i = blank_string(s, i);
		} else if (s->text[i] == '#') {
			while (i < s->length && s->text[i] != '\n')
				s->code[i++] = ' ';
		} else {
			i++;
		}
	}
}

static bool is_blank_line(const struct source *s, size_t begin, size_t end)
{
	while (begin < end && isspace((unsigned char)s->code[begin]))
		begin++;
	return begin == end;
}

/* A newline inside brackets, behind a backslash or inside a string (of which the code has blanks) ends no statement. */
static void find_statements(struct source *s)
{
	int depth = 0, line = 1, first = 1; /* first: of the line at `begin`, which may hold a string of several */
	bool joined = false;
	size_t begin = 0;

	for (size_t i = 0; i <= s->length; i++) {
		char c = i < s->length ? s->code[i] : '\n';

		line += i < s->length && s->text[i] == '\n' && c != '\n';
		if (strchr("([{", c) != NULL && c != '\0')
			depth++;
		else if (strchr(")]}", c) != NULL && c != '\0' && depth > 0)
			depth--;
		if (c != '\n')
			continue;
		struct statement *open = s->statement_count > 0 ? &s->statements[s->statement_count - 1] : NULL;

		if (joined && open != NULL) {
			open->end = i;
		} else if (!is_blank_line(s, begin, i)) {
			int indent = 0;

			while (s->code[begin + (size_t)indent] == ' ' || s->code[begin + (size_t)indent] == '\t')
				indent++;
			s->statements[s->statement_count++] =
			    (struct statement){first, indent, begin + (size_t)indent, i};
		}
		joined = depth > 0 || (i > begin && i < s->length && s->code[i - 1] == '\\');
		begin = i + 1;
		first = ++line;
	}
}

/* Where the statement at `at` ends, if others follow on its lines: behind the colon of an `if` or a `def`, or a ';'.
 * What follows a colon of another kind (a lambda's, an annotation's) begins with no word that is looked for. */
static size_t part_end(const struct source *s, size_t at, size_t end)
{
	int depth = 0;

	for (; at < end; at++) {
		char c = s->code[at];

		depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
		if (depth == 0 && (c == ':' || c == ';'))
			break;
	}
	return at;
}

/* "if x: return y" as two statements, the second one deeper. */
static void split_statements(struct source *s, size_t room)
{
	struct statement *parts = arena_array(s->arena, room, sizeof *parts);
	int count = 0;

	for (int i = 0; i < s->statement_count; i++) {
		struct statement part = s->statements[i];
		size_t end = part.end;

		for (;;) {
			part.end = part_end(s, part.begin, end);
			parts[count++] = part;
			if (part.end == end || is_blank_line(s, part.end + 1, end))
				break;
			part.indent += s->code[part.end] == ':';
			for (size_t k = part.begin; k < part.end; k++)
				part.line += s->text[k] == '\n';
			for (part.begin = part.end + 1; isspace((unsigned char)s->code[part.begin]); part.begin++)
				part.line += s->text[part.begin] == '\n';
		}
	}
	s->statements = parts;
	s->statement_count = count;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Does the statement begin with this word? Returns where it goes on behind it and its blanks; 0: no. */
static size_t after_word(const struct source *s, const struct statement *at, const char *word)
{
	size_t length = strlen(word), end = at->begin + length;

	if (end > at->end || memcmp(s->code + at->begin, word, length) != 0 || (end < at->end && is_word(s->code[end])))
		return 0;
	while (end < at->end && s->code[end] == ' ')
		end++;
	return end;
}

static size_t after_def(const struct source *s, const struct statement *at)
{
	struct statement rest = *at;
	size_t async = after_word(s, at, "async");

	if (async > 0)
		rest.begin = async;
	return after_word(s, &rest, "def");
}

static void find_functions(struct source *s)
{
	for (int i = 0; i < s->statement_count && s->function_count < FUNCTIONS; i++) {
		size_t at = after_def(s, &s->statements[i]), end = at;
		struct function *f = &s->functions[s->function_count];

		if (at == 0)
			continue;
		while (end < s->statements[i].end && is_word(s->code[end]))
			end++;
		*f = (struct function){.statement = i, .last = i};
		snprintf(f->name, sizeof f->name, "%.*s", (int)(end - at), s->code + at);
		f->test = strncmp(f->name, "test", 4) == 0;
		while (f->last + 1 < s->statement_count && s->statements[f->last + 1].indent > s->statements[i].indent)
			f->last++;
		s->function_count++;
	}
}

/* ---- what a function does --------------------------------------------------------------------------------------- */

/* The next call in code[at … end): its name, without what stands before a dot, into `name`; where to look on. 0: none.
 */
static size_t next_call(const struct source *s, size_t at, size_t end, char *name, size_t size)
{
	for (; at < end; at++) {
		size_t begin = at;

		if (!is_word(s->code[at]))
			continue;
		while (at < end && is_word(s->code[at]))
			at++;
		if (at < end && s->code[at] == '(') {
			snprintf(name, size, "%.*s", (int)(at - begin), s->code + begin);
			return at;
		}
		at--;
	}
	return 0;
}

static bool name_compares(const struct source *s, const char *name)
{
	static const char *const parts[] = {"assert", "check", "verify", "compare", "expect", "raises", "fail"};

	for (int i = 0; i < s->function_count; i++)
		if (strcmp(s->functions[i].name, name) == 0)
			return s->functions[i].compares; /* this file says what it does, whatever it is called */
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strstr(name, parts[i]) != NULL)
			return true;
	return false;
}

static bool statement_compares(const struct source *s, const struct statement *at)
{
	char name[128];

	if (after_word(s, at, "assert") > 0 || after_word(s, at, "raise") > 0)
		return true;
	for (size_t i = at->begin; (i = next_call(s, i, at->end, name, sizeof name)) > 0;)
		if (name_compares(s, name))
			return true;
	return false;
}

/* Until nothing changes: a function compares if one that it calls does. */
static void find_comparisons(struct source *s)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (int i = 0; i < s->function_count; i++) {
			struct function *f = &s->functions[i];

			for (int k = f->statement + 1; k <= f->last && !f->compares; k++)
				changed |= f->compares = statement_compares(s, &s->statements[k]);
		}
	}
}

static bool begins(const struct source *s, size_t at, size_t end, const char *word)
{
	size_t length = strlen(word);

	return end - at >= length && memcmp(s->code + at, word, length) == 0 &&
	       (end - at == length || !is_word(s->code[at + length]));
}

/* The first statement of the function's own that returns a value; -1: none. A `return True` behind assertions is but a
 * habit. */
static int returns_value(const struct source *s, const struct function *f)
{
	int inner = -1; /* indentation of a function inside it */

	for (int k = f->statement + 1; k <= f->last; k++) {
		const struct statement *at = &s->statements[k];
		size_t value;

		if (inner >= 0 && at->indent > inner)
			continue;
		inner = after_def(s, at) > 0 || after_word(s, at, "class") > 0 ? at->indent : -1;
		value = after_word(s, at, "return");
		if (value == 0 || value == at->end || is_blank_line(s, value, at->end) ||
		    begins(s, value, at->end, "None") || begins(s, value, at->end, "pytest") ||
		    (f->compares && begins(s, value, at->end, "True")))
			continue;
		return k;
	}
	return -1;
}

static void find(struct source *s, int line, const char *reason)
{
	s->findings[s->finding_count++] = (struct audit_finding){line, reason};
}

static void audit_function(struct source *s, const struct function *f)
{
	int returned = returns_value(s, f);

	if (returned >= 0)
		find(s, s->statements[returned].line,
		     arena_printf(s->arena,
				  "%s returns its verdict instead of asserting it: pytest counts that as passed",
				  f->name));
	else if (!f->compares)
		find(s, s->statements[f->statement].line,
		     arena_printf(s->arena, "%s compares nothing: it passes whatever the reference computes", f->name));
}

/* ---- pasted references ------------------------------------------------------------------------------------------ */

static void open_source(struct source *s, const char *text, size_t length, struct arena *arena)
{
	size_t lines = 2, parts = 0;

	for (size_t i = 0; i < length; i++) {
		lines += text[i] == '\n';
		parts += text[i] == ':' || text[i] == ';';
	}
	*s = (struct source){.text = text, .length = length, .arena = arena};
	s->code = arena_copy(arena, text, length);
	s->statements = arena_array(arena, lines, sizeof *s->statements);
	s->functions = arena_array(arena, lines + parts < FUNCTIONS ? lines + parts : FUNCTIONS, sizeof *s->functions);
	s->findings = arena_array(arena, lines + parts + 1, sizeof *s->findings);
	blank(s);
	find_statements(s);
	split_statements(s, lines + parts);
	find_functions(s);
}

/* `def run` at top level; NULL: there is none. */
static const struct function *find_run(const struct source *s)
{
	for (int i = 0; i < s->function_count; i++)
		if (strcmp(s->functions[i].name, "run") == 0 && s->statements[s->functions[i].statement].indent == 0)
			return &s->functions[i];
	return NULL;
}

/* The function's normal form. */
static void form_of(const struct source *s, const struct function *f, struct buf *out)
{
	size_t begin = s->statements[f->statement].begin, end = s->statements[f->last].end;
	struct buf text = {0};

	buf_add(&text, s->text + begin, end - begin);
	buf_text(&text, "\n");
	python_form(text.data, text.length, out);
	buf_free(&text);
}

static void audit_paste(struct source *s, const char *reference, const char *about)
{
	const struct function *pasted = find_run(s), *original;
	struct buf theirs = {0}, ours = {0};
	struct source source;

	open_source(&source, reference, strlen(reference), s->arena);
	original = find_run(&source);
	if (pasted == NULL || original == NULL)
		return;
	form_of(s, pasted, &theirs);
	form_of(&source, original, &ours);
	if (theirs.length != ours.length || memcmp(theirs.data, ours.data, ours.length) != 0)
		find(s, s->statements[pasted->statement].line,
		     arena_printf(
			 s->arena,
			 "run is a pasted copy that differs from the reference of %s: what is tested is not the "
			 "definition",
			 about));
	buf_free(&theirs);
	buf_free(&ours);
}

static void sort_by_line(struct audit_finding *findings, int count)
{
	for (int i = 1; i < count; i++)
		for (int k = i; k > 0 && findings[k].line < findings[k - 1].line; k--) {
			struct audit_finding other = findings[k];

			findings[k] = findings[k - 1];
			findings[k - 1] = other;
		}
}

int audit_text(const char *text, size_t length, const char *reference, const char *about, struct arena *arena,
	       const struct audit_finding **out)
{
	struct source s;

	open_source(&s, text, length, arena);
	find_comparisons(&s);
	for (int i = 0; i < s.function_count; i++)
		if (s.functions[i].test)
			audit_function(&s, &s.functions[i]);
	if (reference != NULL)
		audit_paste(&s, reference, about);
	sort_by_line(s.findings, s.finding_count);
	*out = s.findings;
	return s.finding_count;
}
