#include "cache/python_own_attributes.h"

#include <string.h>

/* Returns whether `word` may stand among the targets of an assignment such as `self.a, self.b = 1, 2`. */
static bool in_targets(const struct word *word)
{
	return word->kind == WORD_NAME || is_op(word, '.') || is_op(word, ',');
}

/* Returns whether the attribute `word` is a target of an assignment, or has a type in a statement such as
 * `self.a: int = 1`. */
static bool is_assigned(const struct python_words *words, const struct word *word)
{
	const struct word *from = word, *to = word + 1;

	while (!begins_statement(words, from) && in_targets(from - 1))
		from--;
	if (is_op(to, ':') && from + 2 == word)
		return begins_statement(words, from);
	if (is_op(to, '=') && !is_op(to + 1, '='))
		return true;
	while (in_targets(to))
		to++;
	return begins_statement(words, from) && is_op(to, '=') && !is_op(to + 1, '=');
}

/* Returns whether `word`, which does not follow a dot, is a name that the body of a class defines. */
static bool is_member(const struct python_words *words, const struct word *word)
{
	if (word == words->first || !in_class(words, word))
		return false;
	return is_word(word - 1, "def") || is_word(word - 1, "class") ||
	       (begins_statement(words, word) && (is_op(word + 1, ':') || (is_op(word + 1, '=') && !is_op(word + 2, '='))));
}

/* Returns whether `name` is one of the names in the string `word`. */
static bool string_has_name(const struct word *word, struct span name)
{
	const char *at = word->span.text, *end = at + word->span.length;

	for (; (at = memmem(at, (size_t)(end - at), name.text, name.length)) != NULL; at++)
		if (!is_name_character(at[-1]) && !is_name_character(at[name.length]))
			return true;
	return false;
}

bool gives_own_attribute(const struct python_words *words, struct span name)
{
	bool fields = false; /* `word` is in a line after `namedtuple` */

	for (const struct word *word = words->first; word->kind != WORD_END; word++) {
		fields = word->kind != WORD_LINE && (fields || is_word(word, "namedtuple") || is_word(word, "NamedTuple"));
		if (fields && word->kind == WORD_STRING && string_has_name(word, name))
			return true;
		if (same_name(word, name) && (behind_dot(words, word) ? is_assigned(words, word) : is_member(words, word)))
			return true;
	}
	return false;
}
