#include "base/show_wrapped.h"

#include <string.h>

#include "base/buf.h"
#include "base/screen.h"
#include "base/show.h"
#include "base/wrap.h"

void show_wrapped(FILE *out, const char *text)
{
	struct buf shown = {0}, lines = {0};

	show_add(&shown, text, strlen(text));
	if (shown.length > 0 && show_is_screen(fileno(out)))
		wrap_text(shown.data, shown.length, (size_t)screen_columns(fileno(out)), "", &lines);
	else if (shown.length > 0)
		buf_add(&lines, shown.data, shown.length);
	if (lines.length > 0)
		fwrite(lines.data, 1, lines.length, out);
	buf_free(&shown);
	buf_free(&lines);
}
