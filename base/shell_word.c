#include "base/shell_word.h"

#include <string.h>

void buf_shell_word(struct buf *out, const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-";

	if (*word != '\0' && word[strspn(word, plain)] == '\0') {
		buf_text(out, word);
		return;
	}
	buf_text(out, "'");
	for (; *word != '\0'; word++)
		if (*word == '\'')
			buf_text(out, "'\\''");
		else
			buf_add(out, word, 1);
	buf_text(out, "'");
}

char *arena_shell_word(struct arena *arena, const char *word)
{
	struct buf quoted = {0};

	buf_shell_word(&quoted, word);
	char *out = arena_copy(arena, quoted.data, quoted.length);

	buf_free(&quoted);
	return out;
}
