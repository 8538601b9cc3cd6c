#include "base/fold_output.h"

#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/screen.h"
#include "base/show.h"
#include "base/wrap.h"

/* Wraps `bytes` at the width of the terminal. stdio passes one line in each call, or a part of a line that is longer
 * than stdio's buffer. `self` is the stream of the terminal. */
static ssize_t write_folded(void *self, const char *bytes, size_t length)
{
	FILE *terminal = self;
	struct buf lines = {0};

	wrap_text(bytes, length, (size_t)screen_columns(STDOUT_FILENO), "reftest", &lines);
	bool good = lines.length == 0 || fwrite(lines.data, 1, lines.length, terminal) == lines.length;

	good = fflush(terminal) == 0 && good;

	buf_free(&lines);
	return good ? (ssize_t)length : 0;
}

void fold_output(void)
{
	const cookie_io_functions_t calls = {.write = write_folded};

	if (!show_is_screen(STDOUT_FILENO))
		return;
	fflush(stdout);
	FILE *folded = fopencookie(stdout, "w", calls);

	if (folded == NULL)
		return; /* if memory runs out, the output is not folded */
	setvbuf(folded, NULL, _IOLBF, BUFSIZ);
	stdout = folded;
}
