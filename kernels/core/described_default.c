/* described_default reads a description clause by clause. A clause ends at a semicolon, at the end of a line, or at a
 * full stop before a blank. A number in a clause stands for the default if three conditions are met. First, the number
 * is a word of its own. Second, the clause connects the number with the words after it ("0 stands for …", "0: …", "-1
 * means …"), or the number is a condition ("if 0, …", "when it is 0"). Third, the clause is about the default: it
 * contains the word "default", it contains a square root (because a scale usually defaults to 1 / sqrt(n)), or it says
 * that something is disabled. "Default is 0" does not count, because this clause states the default itself, not the
 * meaning of a number. */
#include "kernels/core/described_default.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { CLAUSE = 256 }; /* the maximum length of a clause; the rest of a longer clause is not read */

struct clause {
	char text[CLAUSE]; /* the text in lower case, with single blanks between words */
};

static const struct {
	const char *word;
	double number;
} numbers[] = {{"0", 0}, {"0.0", 0}, {"zero", 0}, {"-1", -1}};

static bool ends_clause(const char *at)
{
	return *at == ';' || *at == '\n' || (*at == '.' && (at[1] == '\0' || isspace((unsigned char)at[1])));
}

/* Copies the next clause and returns where it ends. */
static const char *next_clause(const char *at, struct clause *clause)
{
	size_t length = 0;

	for (; *at != '\0' && !ends_clause(at); at++) {
		bool blank = isspace((unsigned char)*at);

		if (length + 1 < CLAUSE && !(blank && (length == 0 || clause->text[length - 1] == ' ')))
			clause->text[length++] = blank ? ' ' : (char)tolower((unsigned char)*at);
	}
	clause->text[length] = '\0';
	return *at != '\0' ? at + 1 : at;
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || strchr("_.-+*/^", c) != NULL;
}

/* Returns true if the text at `at` is the whole word `word`. A word consists of the characters that in_word() accepts,
 * such as the full stop, but not the colon. (The full stop that ends a clause is not in the text.) */
static bool is_word_at(const char *text, const char *at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(at, word, length) != 0 || (at > text && in_word(at[-1])))
		return false;
	return at[length] == '\0' || !in_word(at[length]);
}

static bool starts_with_any(const char *text, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strncmp(text, *words, strlen(*words)) == 0)
			return true;
	return false;
}

static bool contains_any(const char *text, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strstr(text, *words) != NULL)
			return true;
	return false;
}

/* Returns the start of the word before `at`, or `text` if there is none. */
static const char *word_before(const char *text, const char *at)
{
	while (at > text && at[-1] == ' ')
		at--;
	while (at > text && at[-1] != ' ')
		at--;
	return at;
}

/* Returns true if the number at `at` is part of a condition, as in "if 0" or "when the scale is 0". */
static bool is_condition(const char *text, const char *at)
{
	static const char *const words[] = {"if ", "(if ", "when ", "(when ", NULL};

	for (int back = 0; back < 5 && at > text; back++) {
		at = word_before(text, at);
		if (starts_with_any(at, words))
			return true;
	}
	return false;
}

/* Returns true if the text after the number says what the number means. Returns false for "default is 0" and "defaults
 * to 0: …", where the number is the default itself. */
static bool is_explained(const char *text, const char *at, const char *after)
{
	static const char *const verbs[] = {"stands for ", "means ", "selects ", "uses ", "gives ", "is replaced by ",
	                                    "is the default", "for the default", "disables ", "= ", "=> ", "-> ", ": ", NULL};
	static const char *const gives_a_value[] = {"default ", "(default ", "is ", "to ", "= ", NULL};

	after += strspn(after, " ");
	return starts_with_any(after, verbs) && !(at > text && starts_with_any(word_before(text, at), gives_a_value));
}

static bool clause_gives(const struct clause *clause, double *number)
{
	static const char *const meanings[] = {"default", "sqrt", "** -0.5", "**-0.5", "^-0.5", "disable", NULL};
	const char *text = clause->text;

	if (!contains_any(text, meanings))
		return false;
	for (const char *at = text; *at != '\0'; at++)
		for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
			if (is_word_at(text, at, numbers[i].word) &&
			    (is_condition(text, at) || is_explained(text, at, at + strlen(numbers[i].word)))) {
				*number = numbers[i].number;
				return true;
			}
	return false;
}

bool described_default(const struct op_arg *arg, double *number)
{
	struct clause clause;

	if (arg->rank != OP_SCALAR || arg->dtype == DTYPE_BOOL || arg->description == NULL)
		return false;
	for (const char *at = arg->description; *at != '\0';) {
		at = next_clause(at, &clause);
		if (clause_gives(&clause, number))
			return true;
	}
	return false;
}

static double left_out(const struct op *op, const struct op_case *c, int input)
{
	struct op_case without = *c;

	if (op == NULL || op->scalar == NULL)
		return (double)NAN;
	without.absent |= UINT64_C(1) << input;
	return op->scalar(&without, input);
}

bool described_default_known(const struct op *op, const struct op_case *c, int input, double *number)
{
	return described_default(&c->problem->inputs[input], number) && !isnan(left_out(op, c, input));
}

void described_set_scalar(const struct op *op, struct op_case *c, int input, double number)
{
	double stands_for_default;
	bool omits = described_default_known(op, c, input, &stands_for_default) && number == stands_for_default;

	c->scalar[input] = omits ? left_out(op, c, input) : number;
	c->absent |= (uint64_t)omits << input;
}
