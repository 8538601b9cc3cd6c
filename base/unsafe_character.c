#include "base/unsafe_character.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Ranges of characters that are always shown as escapes, in ascending order. Below U+0080, only control characters are
 * unsafe. */
static const struct range {
	uint32_t first, last;
} unsafe[] = {
    {0x0000, 0x001F},   /* C0 controls */
    {0x007F, 0x009F},   /* DEL and C1 controls */
    {0x00AD, 0x00AD},   /* soft hyphen: invisible */
    {0x034F, 0x034F},   /* combining grapheme joiner: invisible */
    {0x061C, 0x061C},   /* Arabic letter mark: bidirectional */
    {0x115F, 0x1160},   /* Hangul fillers: invisible */
    {0x17B4, 0x17B5},   /* Khmer vowels: invisible */
    {0x180B, 0x180F},   /* Mongolian selectors and vowel separator: invisible */
    {0x200B, 0x200F},   /* zero-width characters, left-to-right and right-to-left mark */
    {0x2028, 0x202E},   /* line and paragraph separator, bidirectional embeddings and overrides */
    {0x2060, 0x206F},   /* invisible operators, bidirectional isolates, deprecated controls */
    {0x3164, 0x3164},   /* Hangul filler */
    {0xFEFF, 0xFEFF},   /* byte order mark */
    {0xFFA0, 0xFFA0},   /* Hangul filler */
    {0xFFF0, 0xFFFB},   /* unassigned, interlinear annotations */
    {0xFFFE, 0xFFFF},   /* not characters, and not allowed in XML */
    {0x1D173, 0x1D17A}, /* musical controls */
    {0xE0000, 0xE0FFF}, /* tags and variation selectors: invisible */
};

static uint32_t code_of(const char *text, size_t step)
{
	static const unsigned char lead[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
	uint32_t code = (unsigned char)text[0] & lead[step];

	for (size_t i = 1; i < step; i++)
		code = code << 6 | ((unsigned char)text[i] & 0x3F);
	return code;
}

static bool is_unsafe(uint32_t code)
{
	for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe && code >= unsafe[i].first; i++)
		if (code <= unsafe[i].last)
			return true;
	return false;
}

/* Returns whether the bytes encode a surrogate, which UTF-8 does not allow. */
static bool is_surrogate(const unsigned char *at, size_t left)
{
	return left >= 3 && at[0] == 0xED && at[1] >= 0xA0 && at[1] < 0xC0 && (at[2] & 0xC0) == 0x80;
}

uint32_t character_unsafe(const char *text, size_t step)
{
	if ((unsigned char)*text >= 0x20 && (unsigned char)*text < 0x7F)
		return 0; /* most text is ASCII */
	uint32_t code = code_of(text, step);

	return is_unsafe(code) ? code : 0;
}

static void write_escape(char escape[ESCAPE_MAX], uint32_t code)
{
	snprintf(escape, ESCAPE_MAX, code < 0x80 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x",
	         (unsigned)code);
}

size_t character_escape(const char *text, size_t left, char escape[ESCAPE_MAX])
{
	size_t step = utf8_length(text, left);

	escape[0] = '\0';
	if (step > 0) {
		uint32_t code = code_of(text, step);

		if (is_unsafe(code))
			write_escape(escape, code);
		return step;
	}
	if (is_surrogate((const unsigned char *)text, left)) {
		write_escape(escape, code_of(text, 3));
		return 3;
	}
	snprintf(escape, ESCAPE_MAX, "\\x%02x", (unsigned)(unsigned char)*text);
	return 1;
}

bool text_is_safe(const char *text)
{
	char escape[ESCAPE_MAX];

	while ((unsigned char)*text >= 0x20 && (unsigned char)*text < 0x7F) /* most names are ASCII */
		text++;
	for (size_t left = strlen(text), step; left > 0; text += step, left -= step) {
		step = character_escape(text, left, escape);
		if (escape[0] != '\0')
			return false;
	}
	return true;
}

/* Returns whether a word can begin at `at`. A word can begin at the beginning of the text, or after a character that is
 * not printable ASCII. GitHub skips all Unicode white space before a command. */
static bool begins_word(const char *begin, const char *at)
{
	return at == begin || (unsigned char)at[-1] <= 0x20 || (unsigned char)at[-1] >= 0x7F;
}

static bool begins_with(const char *at, size_t left, const char *word)
{
	return left >= strlen(word) && memcmp(at, word, strlen(word)) == 0;
}

bool text_is_command(const char *begin, const char *at, size_t left)
{
	if (*at == '#')
		return begins_with(at, left, "##[") || begins_with(at, left, "##vso[");
	return *at == ':' && begins_with(at, left, "::") && begins_word(begin, at);
}
