/* unsafe_character - finds the characters and commands in untrusted text that must be escaped before the text is shown.
 *
 * References, definitions, file names, libraries and remotes supply text that reftest shows. A terminal obeys escape
 * sequences. Bidirectional controls change the order in which characters appear. Invisible characters hide differences.
 * CI systems obey the lines of a log that begin with a command. This module has the only list of the unsafe characters
 * and commands. Unsafe characters are shown as the escapes of a Python string: \x1b, \u202e, \U000e0041. A byte that is
 * not UTF-8 is shown as \xff, and a surrogate as \ud800. base/show.h prints whole texts. */
#ifndef REFTEST_BASE_UNSAFE_CHARACTER_H
#define REFTEST_BASE_UNSAFE_CHARACTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ESCAPE_MAX = 12 }; /* the most bytes of an escape, including its NUL */

/* Reads the first character of `text`, which has `left` > 0 bytes. Returns the number of bytes of this character. A
 * byte that is not UTF-8 counts as a character of 1 byte, and a surrogate as a character of 3 bytes. If the character
 * is unsafe, writes its escape to `escape`; otherwise writes "". Newline and tab also count as unsafe. */
size_t character_escape(const char *text, size_t left, char escape[ESCAPE_MAX]);

/* Returns the code point of an unsafe character, or 0 for a safe character. The result for NUL is also 0, although NUL
 * is unsafe. `text` is a character of `length` bytes in valid UTF-8. */
uint32_t character_unsafe(const char *text, size_t length);

/* Returns whether a text contains safe characters only. Names of files and tensors must be safe. */
bool text_is_safe(const char *text);

/* Returns whether a command of a CI system begins at `at`. "::" is a command only at the beginning of a word (GitHub
 * ignores blanks before it); "##[" and "##vso[" are commands anywhere. `begin` is the beginning of the whole text;
 * `left` bytes remain. */
bool text_is_command(const char *begin, const char *at, size_t left);

#endif
