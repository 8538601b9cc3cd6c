#include "artifacts/audit.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "artifacts/outline.h"
#include "base/buf.h"
#include "cache/python_form.h"

struct source {
	struct outline outline;
	struct arena *arena;
	struct audit_finding *findings;
	int finding_count;
};

/* ---- words ------------------------------------------------------------------------------------------------------ */

static bool begins_with(const struct outline *o, int k, const char *const *texts)
{
	const struct statement *at = &o->statements[k];

	for (; *texts != NULL; texts++)
		if (outline_begins(o, at->begin, at->end, *texts))
			return true;
	return false;
}

static bool holds_word(const struct outline *o, size_t begin, size_t end, const char *word)
{
	for (size_t i = begin; i < end; i++)
		if ((i == begin || !outline_word(o->code[i - 1])) && outline_begins(o, i, end, word))
			return true;
	return false;
}

/* Does what stands there name an exception that a failed assertion is? */
static bool names_assertion(const struct outline *o, size_t begin, size_t end)
{
	return holds_word(o, begin, end, "AssertionError") || holds_word(o, begin, end, "Exception") ||
	       holds_word(o, begin, end, "BaseException");
}

/* ---- comparisons ------------------------------------------------------------------------------------------------ */

static const struct function *function_named(const struct outline *o, const char *name)
{
	for (int i = 0; i < o->function_count; i++)
		if (strcmp(o->functions[i].name, name) == 0)
			return &o->functions[i];
	return NULL;
}

/* Of a function in this file it is known what it does, whatever it is called. Of others the name has to say it; one
 * that compares may only return how far apart things are, so that nothing comes of it if `kept` has to be looked at. */
static bool name_compares(const struct outline *o, const char *name, bool kept)
{
	static const char *const parts[] = {"assert", "check", "verify", "expect", "raises", "warns", "fail"};
	const struct function *f = function_named(o, name);

	if (f != NULL)
		return f->compares;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strstr(name, parts[i]) != NULL)
			return true;
	return !kept && strstr(name, "compare") != NULL;
}

/* Is what the statement computes given a name, to be looked at by others? */
static bool is_assigned(const struct outline *o, const struct statement *at)
{
	int depth = 0;

	for (size_t i = at->begin; i + 1 < at->end; i++) {
		char c = o->code[i];

		depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
		if (c == '=' && depth == 0)
			return o->code[i + 1] != '=' && i > at->begin && strchr("!<>=", o->code[i - 1]) == NULL;
	}
	return false;
}

static bool statement_compares(const struct outline *o, const struct statement *at)
{
	char name[128];

	if (outline_after(o, at, "assert") > 0 || outline_after(o, at, "raise") > 0)
		return true;
	for (size_t i = at->begin; (i = outline_call(o, i, at->end, name, sizeof name)) > 0;)
		if (name_compares(o, name, is_assigned(o, at)))
			return true;
	return false;
}

/* Does it say itself that it asserts? Of other comparisons it is but likely that they fail by raising. */
static bool statement_asserts(const struct outline *o, const struct statement *at)
{
	char name[128];

	if (outline_after(o, at, "assert") > 0)
		return true;
	for (size_t i = at->begin; (i = outline_call(o, i, at->end, name, sizeof name)) > 0;)
		if (strstr(name, "assert") != NULL)
			return true;
	return false;
}

/* ---- comparisons that cannot fail a test ------------------------------------------------------------------------ */

/* Where what stands between brackets, or as deep as `at`, ends: at a comma, a closing bracket, or the end. */
static size_t operand_end(const struct outline *o, size_t at, size_t end)
{
	int depth = 0;

	for (; at < end; at++) {
		char c = o->code[at];

		depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
		if (depth < 0 || (depth == 0 && c == ','))
			break;
	}
	return at;
}

/* "(x, 'message')" is a tuple, which is true. */
static bool is_pair(const struct outline *o, size_t at, size_t end)
{
	size_t comma = operand_end(o, at + 1, end), close = comma;

	while (close < end && o->code[close] == ',')
		close = operand_end(o, close + 1, end);
	return o->code[at] == '(' && comma < close && close < end && outline_blank(o, close + 1, end);
}

static bool is_true(const struct outline *o, size_t at, size_t end)
{
	while (end > at && isspace((unsigned char)o->code[end - 1]))
		end--;
	if (at == end)
		return false;
	if (end - at == 4)
		return memcmp(o->code + at, "True", 4) == 0;
	if (end - at > 8 && (memcmp(o->code + end - 8, " or True", 8) == 0 || memcmp(o->code + at, "True or ", 8) == 0))
		return true;
	if (o->code[at] == '"' || o->code[at] == '\'')
		return end - at > 2 && outline_blank(o, at + 1, end - 1) && o->code[end - 1] == o->code[at];
	return strspn(o->code + at, "0123456789") == end - at && o->code[at] != '0';
}

/* What it asserts is true by itself. */
static bool is_trivial(const struct outline *o, const struct function *f, int k)
{
	const struct statement *at = &o->statements[k];
	size_t begin = outline_after(o, at, "assert"), end;

	(void)f;
	if (begin == 0)
		return false;
	end = operand_end(o, begin, at->end);
	return is_true(o, begin, end) || is_pair(o, begin, end);
}

/* The first clause of a `try` that catches a failed assertion, and goes on; -1: none does. One that raises, fails or
 * compares does not go on; nor does it where not to fail is what fails ("else: raise"). */
static int catcher_of(const struct outline *o, int try)
{
	static const char *const failing[] = {"raise", "pytest.fail", "self.fail", "assert False", NULL};
	int caught = -1;

	for (int k = o->statements[try].behind;
	     k < o->statement_count && o->statements[k].indent == o->statements[try].indent;
	     k = o->statements[k].behind) {
		size_t what = outline_after(o, &o->statements[k], "except"), end = o->statements[k].end;

		if (caught >= 0 && outline_after(o, &o->statements[k], "else") > 0 && k + 1 < o->statement_count &&
		    begins_with(o, k + 1, failing))
			return -1;
		if (what == 0 && outline_after(o, &o->statements[k], "else") == 0)
			break;
		if (caught < 0 && what > 0 && (outline_blank(o, what, end) || names_assertion(o, what, end)))
			caught = k;
	}
	for (int k = caught + 1; caught >= 0 && k < o->statements[caught].behind; k++)
		if (statement_compares(o, &o->statements[k]) ||
		    holds_word(o, o->statements[k].begin, o->statements[k].end, "exit"))
			return -1;
	return caught;
}

/* Nothing in the clause keeps what happened, so that something else may look at it. */
static bool is_silent(const struct outline *o, int clause)
{
	static const char *const silent[] = {
	    "pass", "...",    "\"",	 "\'",	     "print",	  "return",	 "continue",	  "break",
	    "log",  "logger", "logging", "warnings", "traceback", "pytest.skip", "self.skipTest", NULL};

	for (int k = clause + 1; k < o->statements[clause].behind; k++)
		if (!begins_with(o, k, silent))
			return false;
	return true;
}

static int swallower_of(const struct outline *o, const struct function *f, int k)
{
	for (int head = o->statements[k].head; head > f->statement; head = o->statements[head].head) {
		int catcher = outline_after(o, &o->statements[head], "try") > 0 ? catcher_of(o, head) : -1;

		if (catcher >= 0)
			return catcher;
	}
	return -1;
}

static bool is_swallowed(const struct outline *o, const struct function *f, int k)
{
	return swallower_of(o, f, k) >= 0;
}

static bool is_lost(const struct outline *o, const struct function *f, int k)
{
	int catcher = swallower_of(o, f, k);

	return catcher >= 0 && is_silent(o, catcher);
}

static bool is_suppressed(const struct outline *o, const struct function *f, int k)
{
	for (int head = o->statements[k].head; head > f->statement; head = o->statements[head].head) {
		const struct statement *at = &o->statements[head];

		if (outline_after(o, at, "with") > 0 && holds_word(o, at->begin, at->end, "suppress") &&
		    names_assertion(o, at->begin, at->end))
			return true;
	}
	return false;
}

/* Is the function of this `def` inside another, and never named there outside itself? */
static bool is_unnamed(const struct outline *o, int def)
{
	int outer = o->statements[def].head;
	char name[128] = "";

	if (outline_after_def(o, &o->statements[def]) == 0 || outer < 0 ||
	    outline_after_def(o, &o->statements[outer]) == 0)
		return false;
	outline_call(o, o->statements[def].begin, o->statements[def].end, name, sizeof name);
	for (int k = outer + 1; k < o->statements[outer].behind; k++)
		if ((k < def || k >= o->statements[def].behind) &&
		    holds_word(o, o->statements[k].begin, o->statements[k].end, name))
			return false;
	return true;
}

/* Is this all that the statement says? */
static bool is_all(const struct outline *o, int k, const char *const *texts)
{
	const struct statement *at = &o->statements[k];

	for (; *texts != NULL; texts++)
		if (outline_begins(o, at->begin, at->end, *texts) &&
		    outline_blank(o, at->begin + strlen(*texts), at->end))
			return true;
	return false;
}

/* Marks what is never reached: behind a statement that leaves its block, in a block that is never entered, or in a
 * function that nobody calls. */
static void find_dead(struct outline *o)
{
	static const char *const leaving[] = {"return",	      "continue",      "break", "pytest.skip",
					      "pytest.xfail", "self.skipTest", NULL};
	static const char *const never[] = {"if False", "if 0", "if not True", "while False", "while 0", NULL};

	for (int k = 0; k < o->statement_count; k++) {
		struct statement *at = &o->statements[k];
		int head = at->head, previous = at->previous;

		if (previous >= 0)
			at->dead = o->statements[previous].dead || begins_with(o, previous, leaving);
		else if (head >= 0)
			at->dead = o->statements[head].dead || is_all(o, head, never) || is_unnamed(o, head);
	}
}

static bool is_unreached(const struct outline *o, const struct function *f, int k)
{
	(void)f;
	return o->statements[k].dead;
}

/* Why a comparison cannot fail its test, in this order. A finding of its own: also in a test that makes other
 * comparisons, if it is an assertion by its own words. */
static const struct {
	bool (*holds)(const struct outline *o, const struct function *f, int k);
	bool own;
	const char *reason;
} idle[] = {
    {is_unreached, true, "%s never gets to this comparison: it passes whatever the reference computes"},
    {is_lost, true, "%s catches what this assertion raises, and passes all the same"},
    {is_swallowed, false, "%s catches what this comparison raises, and compares nothing afterwards"},
    {is_suppressed, true, "%s suppresses what this assertion raises, and passes all the same"},
    {is_trivial, true, "%s asserts what is true whatever the reference computes"},
};

enum { IDLE = sizeof idle / sizeof *idle };

/* The first row that holds of the comparison; -1: it can fail the test. */
static int idle_by(const struct outline *o, const struct function *f, int k)
{
	for (int i = 0; i < IDLE; i++)
		if (idle[i].holds(o, f, k))
			return i;
	return -1;
}

/* Until nothing changes: a function compares if one that it calls does. */
static void find_comparisons(struct outline *o)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (int i = 0; i < o->function_count; i++) {
			struct function *f = &o->functions[i];

			for (int k = f->statement + 1; k <= f->last && !f->compares; k++)
				changed |= f->compares =
				    statement_compares(o, &o->statements[k]) && idle_by(o, f, k) < 0;
		}
	}
}

/* ---- tests that do not count ------------------------------------------------------------------------------------ */

/* Behind the name of a mark that may take a condition, and takes it first: does it hold on every machine? */
static bool is_always(const struct outline *o, size_t at, size_t end)
{
	size_t word = at + 1;

	if (at >= end || o->code[at] != '(' || outline_begins(o, word, end, "True"))
		return true;
	while (word < end && outline_word(o->code[word]))
		word++;
	if (word == end || holds_word(o, word, end, "condition"))
		return false;
	return o->code[word] == '=' ? o->code[word + 1] != '=' && !outline_begins(o, at + 1, end, "condition")
				    : word == at + 1 && strchr(")\"'", o->code[word]) != NULL;
}

/* A decorator, or a `pytestmark`, after which no failure of a test counts. */
static bool is_mark(const struct outline *o, int k)
{
	static const struct {
		const char *name;
		bool always; /* it takes no condition */
	} marks[] = {
	    {"mark.skip", true},    {"unittest.skip", true}, {"unittest.expectedFailure", true},
	    {"mark.skipif", false}, {"mark.xfail", false},
	};
	const struct statement *at = &o->statements[k];
	int depth = 0,
	    deepest = o->code[at->begin] == '@' ? 0 : 1; /* pytestmark may be a list; deeper ones are others' */

	for (size_t c = at->begin; c < at->end; c++) {
		depth += (o->code[c] == '(' || o->code[c] == '[') - (o->code[c] == ')' || o->code[c] == ']');
		for (size_t i = 0; depth <= deepest && i < sizeof marks / sizeof *marks; i++)
			if (outline_begins(o, c, at->end, marks[i].name) &&
			    (marks[i].always || is_always(o, c + strlen(marks[i].name), at->end)))
				return true;
	}
	return false;
}

/* The decorator of the function or class that says so; -1: none. */
static int mark_above(const struct outline *o, int k)
{
	int indent = o->statements[k].indent;

	while (--k >= 0 && o->statements[k].indent == indent && o->code[o->statements[k].begin] == '@')
		if (is_mark(o, k))
			return k;
	return -1;
}

/* In the block of `head`, -1 the file: for all tests in it. */
static int mark_within(const struct outline *o, int head)
{
	int end = head < 0 ? o->statement_count : o->statements[head].behind, indent = -1;

	for (int k = head + 1; k < end; k++) {
		const struct statement *at = &o->statements[k];

		indent = indent < 0 ? at->indent : indent;
		if (at->indent == indent && ((outline_after(o, at, "pytestmark") > 0 && is_mark(o, k)) ||
					     outline_begins(o, at->begin, at->end, "pytest.skip")))
			return k;
	}
	return -1;
}

static int mark_of(const struct outline *o, const struct function *f)
{
	for (int k = f->statement;; k = o->statements[k].head) {
		bool holds = k < 0 || (k != f->statement && outline_after(o, &o->statements[k], "class") > 0);
		int mark = k >= 0 ? mark_above(o, k) : -1;

		if (mark < 0 && holds)
			mark = mark_within(o, k);
		if (mark >= 0 || k < 0)
			return mark;
	}
}

/* ---- what a test does ------------------------------------------------------------------------------------------- */

/* The first statement of the function's own that returns a value; -1: none. A `return True` behind assertions is but a
 * habit. */
static int returns_value(const struct outline *o, const struct function *f)
{
	int inner = -1; /* indentation of a function inside it */

	for (int k = f->statement + 1; k <= f->last; k++) {
		const struct statement *at = &o->statements[k];
		size_t value;

		if (inner >= 0 && at->indent > inner)
			continue;
		inner = outline_after_def(o, at) > 0 || outline_after(o, at, "class") > 0 ? at->indent : -1;
		value = outline_after(o, at, "return");
		if (value == 0 || value == at->end || outline_blank(o, value, at->end) ||
		    outline_begins(o, value, at->end, "None") || outline_begins(o, value, at->end, "pytest") ||
		    (f->compares && outline_begins(o, value, at->end, "True")))
			continue;
		return k;
	}
	return -1;
}

static void find(struct source *s, int line, const char *reason)
{
	s->findings[s->finding_count++] = (struct audit_finding){line, reason};
}

static void find_at(struct source *s, int statement, const char *format, const struct function *f)
{
	const char *name = strstr(format, "%s");

	find(s, s->outline.statements[statement].line,
	     arena_printf(s->arena, "%.*s%s%s", (int)(name - format), format, f->name, name + 2));
}

/* Comparisons that cannot fail it. Returns how many were told. */
static int audit_comparisons(struct source *s, const struct function *f)
{
	const struct outline *o = &s->outline;
	int told = 0;

	for (int k = f->statement + 1; k <= f->last; k++) {
		const struct statement *at = &o->statements[k];
		int row = statement_compares(o, at) ? idle_by(o, f, k) : -1;

		if (row < 0 || (f->compares && !(idle[row].own && statement_asserts(o, at))))
			continue;
		find_at(s, k, idle[row].reason, f);
		told++;
	}
	return told;
}

static void audit_function(struct source *s, const struct function *f)
{
	int mark = mark_of(&s->outline, f), returned = returns_value(&s->outline, f);

	if (mark >= 0) {
		find_at(s, mark, "%s is skipped, or expected to fail, on every machine: no failure of it counts", f);
	} else if (returned >= 0) {
		find_at(s, returned, "%s returns its verdict instead of asserting it: pytest counts that as passed", f);
	} else if (audit_comparisons(s, f) == 0 && !f->compares) {
		find_at(s, f->statement, "%s compares nothing: it passes whatever the reference computes", f);
	}
}

/* ---- pasted references ------------------------------------------------------------------------------------------ */

/* `def run` at top level; NULL: there is none. */
static const struct function *find_run(const struct outline *o)
{
	for (int i = 0; i < o->function_count; i++)
		if (strcmp(o->functions[i].name, "run") == 0 && o->statements[o->functions[i].statement].indent == 0)
			return &o->functions[i];
	return NULL;
}

/* The function's normal form. */
static void form_of(const struct outline *o, const struct function *f, struct buf *out)
{
	size_t begin = o->statements[f->statement].begin, end = o->statements[f->last].end;
	struct buf text = {0};

	buf_add(&text, o->text + begin, end - begin);
	buf_text(&text, "\n");
	python_form(text.data, text.length, out);
	buf_free(&text);
}

static void audit_paste(struct source *s, const char *reference, const char *about)
{
	const struct function *pasted = find_run(&s->outline), *original;
	struct buf theirs = {0}, ours = {0};
	struct outline source;

	outline_of(&source, reference, strlen(reference), s->arena);
	original = find_run(&source);
	if (pasted == NULL || original == NULL)
		return;
	form_of(&s->outline, pasted, &theirs);
	form_of(&source, original, &ours);
	if (theirs.length != ours.length || memcmp(theirs.data, ours.data, ours.length) != 0)
		find(s, s->outline.statements[pasted->statement].line,
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
	struct source s = {.arena = arena};

	outline_of(&s.outline, text, length, arena);
	s.findings = arena_array(arena, 2 * (size_t)s.outline.statement_count + 1, sizeof *s.findings);
	find_dead(&s.outline);
	find_comparisons(&s.outline);
	for (int i = 0; i < s.outline.function_count; i++)
		if (s.outline.functions[i].test)
			audit_function(&s, &s.outline.functions[i]);
	if (reference != NULL)
		audit_paste(&s, reference, about);
	sort_by_line(s.findings, s.finding_count);
	*out = s.findings;
	return s.finding_count;
}
