#include "kernels/core/family_candidates.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- words ------------------------------------------------------------------------------------------------------- */

enum { TEXT_BYTES = 1024 };

/* A text in lower case, in which each run of characters other than letters and digits is one '_'. The text begins and
 * ends with '_', so a search for "_word_" finds only whole words. */
struct words {
	char text[TEXT_BYTES];
};

static struct words words_of(const char *text)
{
	struct words words = {"_"};
	size_t length = 1;

	for (; text != NULL && *text != '\0' && length + 2 < TEXT_BYTES; text++) {
		unsigned char c = (unsigned char)*text;

		if (isalnum(c))
			words.text[length++] = (char)tolower(c);
		else if (words.text[length - 1] != '_')
			words.text[length++] = '_';
	}
	if (words.text[length - 1] != '_')
		words.text[length++] = '_';
	words.text[length] = '\0';
	return words;
}

/* Returns the position of `wanted` in the text, or NULL if it is not there. `wanted` is a word, or several words joined
 * by '_'. */
static char *find_words(struct words *words, const char *wanted)
{
	size_t length = strlen(wanted);

	for (char *at = strstr(words->text, wanted); at != NULL; at = strstr(at + 1, wanted))
		if (at[-1] == '_' && at[length] == '_')
			return at;
	return NULL;
}

static const char *const *words_of_op(const struct op *op)
{
	return op->words != NULL ? op->words : op->op_types;
}

/* Returns the length of the longest of the family's names that occur in the text, or 0 if none occurs. */
static size_t longest_name(const struct op *op, struct words *words)
{
	size_t longest = 0;

	for (const char *const *word = words_of_op(op); *word != NULL; word++)
		if (strlen(*word) > longest && find_words(words, *word) != NULL)
			longest = strlen(*word);
	return longest;
}

/* Overwrites the names of the family in the text, so that they are not found again. */
static void remove_names(const struct op *op, struct words *words)
{
	for (size_t length = longest_name(op, words); length > 0; length = longest_name(op, words))
		for (const char *const *word = words_of_op(op); *word != NULL; word++) {
			char *at = strlen(*word) == length ? find_words(words, *word) : NULL;

			if (at != NULL)
				memset(at, '.', length);
		}
}

/* If a text names a family and contains one of these words, the definition may compute another operation, or more than
 * the operation of that family. */
static const char *const other_words[] = {
    "add",       "after", "and",       "backward",  "before",    "bias",     "bwd",     "dgrad",   "dropout",  "followed", "fused",
    "gate",      "gated", "geglu",     "gelu",      "grad",      "gradient", "gradients", "instead", "like",   "log",      "mask",
    "masked",    "minus", "not",       "plus",      "post",      "quant",    "quantization", "quantize", "quantized", "relu", "residual",
    "silu",      "swiglu", "then",     "unlike",    "wgrad",     "without",
};

static bool has_other_words(struct words *words)
{
	for (size_t i = 0; i < sizeof other_words / sizeof *other_words; i++)
		if (find_words(words, other_words[i]) != NULL)
			return true;
	for (int i = 0; i < op_count; i++)
		if (longest_name(op_table[i].op, words) > 0)
			return true;
	return false;
}

/* If the text names exactly one family and contains none of other_words, returns this family. Otherwise, returns
 * NULL. */
static const struct op *named_by(const char *text)
{
	struct words words = words_of(text);
	const struct op *named = NULL;
	size_t longest = 0;

	for (int i = 0; i < op_count; i++) {
		size_t length = longest_name(op_table[i].op, &words);

		if (length > longest) {
			longest = length;
			named = op_table[i].op;
		}
	}
	if (named == NULL)
		return NULL;
	remove_names(named, &words);
	return has_other_words(&words) ? NULL : named;
}

/* Returns the family that the definition names in its name, fi_api tag and description. Returns NULL if they name no
 * family, or different families. */
static const struct op *named_family(const struct op_problem *problem)
{
	const struct op *named = named_by(problem->name), *described = named_by(problem->description);

	if (named != NULL && described != NULL && named != described)
		return NULL;
	named = named != NULL ? named : described;
	for (int i = 0; i < problem->tag_count; i++) {
		bool is_api = strncmp(problem->tags[i], "fi_api:", strlen("fi_api:")) == 0;
		const struct op *by_tag = is_api ? named_by(problem->tags[i]) : NULL;

		if (named != NULL && by_tag != NULL && named != by_tag)
			return NULL;
		named = named != NULL ? named : by_tag;
	}
	return named;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static bool is_listed(const struct op_candidate *list, int count, const struct op_entry *entry, int variant)
{
	for (int i = 0; i < count; i++)
		if (list[i].entry == entry && list[i].variant == variant)
			return true;
	return false;
}

/* Offers the problem to one family. Tries each op_type that the family lists, because an op_type may select a variant.
 * Adds each matching variant to `out`, and returns the new number of candidates. */
static int offer(const struct op_problem *problem, const struct op_entry *entry, struct op_candidate *out, int count)
{
	struct op_problem offered = *problem;

	for (const char *const *op_type = entry->op->op_types; *op_type != NULL && count < CANDIDATES_MAX; op_type++) {
		offered.op_type = *op_type;
		int variant = entry->op->match(&offered, NULL);

		if (variant >= 0 && !is_listed(out, count, entry, variant))
			out[count++] = (struct op_candidate){entry, *op_type, variant, MATCHED_BY_SHAPES};
	}
	return count;
}

/* If the family `named` has candidates, removes the candidates of all other families. Returns the new number of
 * candidates. */
static int keep_named(const struct op *named, struct op_candidate *list, int count)
{
	int kept = 0;

	for (int i = 0; i < count; i++)
		if (list[i].entry->op == named) {
			list[kept] = list[i];
			list[kept++].matched = MATCHED_BY_WORDS;
		}
	return kept > 0 ? kept : count;
}

int op_candidates(const struct op_problem *problem, struct op_candidate *out, struct err *why)
{
	int variant, count = 0;
	const struct op_entry *entry = op_find(problem, &variant, why);

	if (entry != NULL) {
		out[0] = (struct op_candidate){entry, problem->op_type, variant, MATCHED_BY_TYPE};
		return 1;
	}
	for (int i = 0; i < problem->axis_count; i++)
		if (!problem->axes[i].var && problem->axes[i].value == 0)
			return 0; /* op_find has set `why` */
	for (int i = 0; i < op_count; i++)
		count = offer(problem, &op_table[i], out, count);
	return keep_named(named_family(problem), out, count);
}
