#include "artifacts/annotate.h"

#include <string.h>

/* The runner reads a command to the end of its line: '%', CR and LF are written as %25, %0D, %0A; in a property ':' and
 * ',' end the value and are written likewise. */
static void put(struct buf *out, const char *text, bool property)
{
	for (; *text != '\0'; text++) {
		bool special =
		    *text == '%' || *text == '\r' || *text == '\n' || (property && (*text == ':' || *text == ','));

		if (special)
			buf_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
		else
			buf_add(out, text, 1);
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
	int all = 0, told = 0;

	for (int i = 0; i < count; i++)
		all += annotations[i].error == error;
	for (int i = 0; i < count; i++) {
		if (annotations[i].error != error)
			continue;
		if (told == ANNOTATIONS - 1 && all > ANNOTATIONS) {
			buf_printf(out,
				   "::%s title=and %d more::%d more definitions are not told here: ten remarks a step "
				   "are shown\n",
				   error ? "error" : "warning", all - told, all - told);
			return;
		}
		put_command(&annotations[i], out);
		told++;
	}
}

void annotate_write(const struct annotation *annotations, int count, struct buf *out)
{
	put_level(annotations, count, true, out);
	put_level(annotations, count, false, out);
}
