#include "report/github.h"

#include <string.h>

#include "base/unsafe_character.h"

/* Escapes text for a workflow command. A command ends at the end of its line, so CR and LF are written as %0D and %0A.
 * '%' begins such an escape, so it is written as %25. In a property, ':' and ',' would end the value, so they are
 * escaped, too. Other unsafe characters become visible escapes. */
static void put(struct buf *out, const char *text, bool property)
{
	char escape[ESCAPE_MAX];

	for (size_t left = strlen(text), step; left > 0; text += step, left -= step) {
		bool special =
		    *text == '%' || *text == '\r' || *text == '\n' || (property && (*text == ':' || *text == ','));

		step = character_escape(text, left, escape);
		if (special)
			buf_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
		else if (*text == '#' && text_is_command(text, text, left))
			buf_text(out, "\\x23"); /* breaks up "##[", which starts a command anywhere in a line on GitHub
						 * and Azure */
		else if (escape[0] != '\0' && *text != '\t')
			buf_text(out, escape);
		else
			buf_add(out, text, step);
	}
}

static void put_command(const struct annotation *a, struct buf *out)
{
	buf_text(out, a->error ? "::error file=" : "::warning file=");
	put(out, a->path, true);
	if (a->line > 0)
		buf_printf(out, ",line=%d", a->line);
	buf_text(out, ",title=");
	put(out, a->title, true);
	buf_text(out, "::");
	put(out, a->message, false);
	buf_text(out, "\n");
}

static void put_level(const struct annotation *annotations, int count, bool error, struct buf *out)
{
	int all = 0, printed = 0;

	for (int i = 0; i < count; i++)
		all += annotations[i].error == error;
	for (int i = 0; i < count; i++) {
		if (annotations[i].error != error)
			continue;
		if (printed == ANNOTATIONS - 1 && all > ANNOTATIONS) {
			buf_printf(out,
				   "::%s title=and %d more::%d more definitions are not listed here, because "
				   "GitHub shows only ten annotations per step\n",
				   error ? "error" : "warning", all - printed, all - printed);
			return;
		}
		put_command(&annotations[i], out);
		printed++;
	}
}

void annotate_write(const struct annotation *annotations, int count, struct buf *out)
{
	put_level(annotations, count, true, out);
	put_level(annotations, count, false, out);
}
