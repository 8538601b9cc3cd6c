/* norm_epsilon - reads an epsilon from axes, names, tags and descriptions.
 *
 * In a description, which is prose, only one form of statement is accepted: a word for epsilon (eps, epsilon, ε), then
 * only words that mean "is", then a number below 1. "Epsilon is not 1e-5", for example, is not accepted. */
#include "kernels/core/norm_epsilon.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernels/core/published_models.h"

static bool is_word(char c)
{
	return isalnum((unsigned char)c) != 0;
}

/* Returns mantissa * 10^-exponent, rounded like a decimal literal. */
static double decimal(long mantissa, long exponent)
{
	char text[48];

	snprintf(text, sizeof text, "%lde-%ld", mantissa, exponent);
	return strtod(text, NULL);
}

bool epsilon_in_name(const char *name, double *value)
{
	for (const char *at = strstr(name, "eps"); at != NULL; at = strstr(at + 1, "eps")) {
		const char *from = at + 3;
		char *end;

		if (at > name && is_word(at[-1]))
			continue;
		from += strncmp(from, "ilon", 4) == 0 ? 4 : 0;
		from += *from == '_' ? 1 : 0;
		if (!isdigit((unsigned char)*from))
			continue;
		long mantissa = strtol(from, &end, 10);

		if (*end != 'e' || end - from > 3)
			continue;
		from = end + 1;
		from += *from == '-' || *from == '_' || *from == 'm' ? 1 : 0;
		if (!isdigit((unsigned char)*from))
			continue;
		long exponent = strtol(from, &end, 10);

		if (end - from > 3 || is_word(*end))
			continue;
		*value = decimal(mantissa, exponent);
		return true;
	}
	return false;
}

/* Returns true for a word that may be between "epsilon" and its value, such as "is" or "equals". */
static bool says_is(const char *word, size_t length)
{
	static const char *const words[] = {
	    "is", "was", "has", "being", "fixed", "at", "of", "set", "to", "a", "the", "with", "value", "constant", "equal",
	    "equals", "default", "defaults", "hardcoded", "hard", "coded",
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i]) == length && strncasecmp(words[i], word, length) == 0)
			return true;
	return false;
}

/* Parses the number at `text`, such as "1e-6", "0.000001" or "10^-6". */
static bool number_at(const char *text, double *value, const char **after)
{
	char *end;

	if (!isdigit((unsigned char)*text) || (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')))
		return false;
	*value = strtod(text, &end);
	if (*value == 10 && strncmp(end, "^-", 2) == 0 && isdigit((unsigned char)end[2]))
		*value = decimal(1, strtol(end + 2, &end, 10));
	if (*value >= 1 || is_word(*end))
		return false;
	*after = end;
	return true;
}

/* Parses the text after the word for epsilon: words that mean "is", and then the number. */
static bool value_behind(const char *text, double *value, const char **after)
{
	while (*text != '\0') {
		size_t word = 0;

		while (isalpha((unsigned char)text[word]))
			word++;
		if (word > 0 && !says_is(text, word))
			return false;
		if (word == 0 && isdigit((unsigned char)*text))
			return number_at(text, value, after);
		if (word == 0 && strchr(" \t\n=:()[]`'\"-~", *text) == NULL)
			return false;
		text += word > 0 ? word : 1;
	}
	return false;
}

/* Returns the length of the word for epsilon that starts at `at`, or 0 if no such word starts there. `before` is the
 * preceding character. */
static size_t epsilon_word(const char *at, char before)
{
	static const char *const words[] = {"rms_norm_eps", "epsilon", "eps", "\xCE\xB5", "\xCF\xB5"};

	if (is_word(before))
		return 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t length = strlen(words[i]);

		if (strncasecmp(at, words[i], length) == 0 && !isalpha((unsigned char)at[length]))
			return length;
	}
	return 0;
}

bool epsilon_in_text(const char **at, double *value)
{
	for (const char *text = *at; *text != '\0'; text++) {
		size_t length = epsilon_word(text, text > *at ? text[-1] : ' ');

		if (length > 0 && value_behind(text + length, value, at))
			return true;
	}
	return false;
}

/* Records the epsilon that a source states. The first epsilon becomes the value. A later epsilon that differs from it
 * becomes the conflict. */
static void attest(struct op_constant *eps, double value, const char *source)
{
	if (isnan(eps->value)) {
		eps->value = value;
		snprintf(eps->source, sizeof eps->source, "%s", source);
	} else if (eps->conflict[0] == '\0' && fabs(eps->value - value) > 1e-9 * eps->value) {
		snprintf(eps->conflict, sizeof eps->conflict, "eps is %g according to %s, but %g according to %s", eps->value, eps->source,
			 value, source);
	}
}

static void ask_axes(const struct op_problem *problem, struct op_constant *eps)
{
	for (int i = 0; i < problem->axis_count; i++) {
		const struct op_axis *axis = &problem->axes[i];
		bool inverse = strcmp(axis->name, "inv_eps") == 0 || strcmp(axis->name, "eps_inv") == 0;
		char source[104];
		double value;

		snprintf(source, sizeof source, "axis:%s", axis->name);
		if (!axis->var && inverse && axis->value > 1)
			attest(eps, 1.0 / (double)axis->value, source);
		else if (!axis->var && epsilon_in_name(axis->name, &value))
			attest(eps, value, source);
	}
}

/* Writes the epsilon that a model's configuration states, under `field` or under another name of this field. */
static bool published_epsilon(const char *model, const char *field, double *value)
{
	if (strcmp(field, rms_norm_field(0)) != 0)
		return model_number(model, field, value);
	for (int i = 0; rms_norm_field(i) != NULL; i++)
		if (model_number(model, rms_norm_field(i), value))
			return true;
	return false;
}

static void ask_models(const struct op_problem *problem, const char *field, struct op_constant *eps)
{
	for (int i = 0; i < problem->tag_count; i++) {
		char source[104];
		double value;

		if (strncmp(problem->tags[i], "model:", 6) != 0 ||
		    !published_epsilon(problem->tags[i] + 6, field, &value))
			continue;
		snprintf(source, sizeof source, "%s", problem->tags[i]);
		attest(eps, value, source);
	}
}

struct op_constant epsilon_constant(const struct op_problem *problem, const char *field)
{
	struct op_constant eps = {.name = "eps", .value = NAN, .source = "unattested"};
	const char *description = problem->description == NULL ? "" : problem->description;
	double value;

	ask_axes(problem, &eps);
	if (epsilon_in_name(problem->name, &value))
		attest(&eps, value, "name");
	ask_models(problem, field, &eps);
	while (epsilon_in_text(&description, &value))
		attest(&eps, value, "description");
	return eps;
}

int epsilon_constants(const struct op_problem *problem, int input, const char *field, struct op_constant *out)
{
	if (input >= 0)
		return 0;
	out[0] = epsilon_constant(problem, field);
	return 1;
}

double epsilon_scalar(const struct op_case *c, int input)
{
	if (c->absent >> input & 1)
		return (double)NAN;
	return c->contents == CONTENTS_FIRST ? 4e-6 : 3e-5;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double epsilon_median(double *values, int64_t count)
{
	qsort(values, (size_t)count, sizeof *values, by_value);
	return count > 0 ? values[count / 2] : 0;
}

int epsilon_settle(double *estimates, int64_t count, int64_t elements, double spread, double *eps, struct err *err)
{
	double median = epsilon_median(estimates, count);
	bool none = fabs(median) <= 0.05 * spread;
	int64_t near = 0;

	for (int64_t i = 0; i < count; i++)
		near += fabs(estimates[i] - median) <= 0.05 * (fabs(median) + spread);
	if (near * 10 < elements * 9)
		return err_set(err, "the reference's epsilon cannot be determined: no single epsilon explains the reference's "
				    "outputs for tiny inputs");
	*eps = none ? 0 : epsilon_round(median);
	if (*eps == 0 && !none)
		return err_set(err, "the reference's epsilon is about %.3g, which is not a round number; state its "
				    "exact value in the description, as in \"Epsilon is fixed at 1e-6.\"",
			       median);
	return 0;
}

double epsilon_round(double estimate)
{
	static const double machine[] = {0x1p-52, 0x1p-23, 0x1p-10, 0x1p-7};

	for (size_t i = 0; i < sizeof machine / sizeof *machine; i++)
		if (fabs(estimate - machine[i]) <= 0.01 * machine[i])
			return machine[i];
	for (int exponent = 1; exponent <= 30; exponent++)
		for (int digit = 1; digit <= 9; digit++) {
			double candidate = digit / pow(10, exponent);

			if (fabs(estimate - candidate) <= 0.01 * candidate)
				return candidate;
		}
	return 0;
}
