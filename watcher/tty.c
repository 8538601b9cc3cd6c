#include "watcher/tty.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/screen.h"
#include "base/show.h"

enum { STDOUT_BYTES = 1 << 16 };

static const char keys_line[] = "enter stale  f failures  a all  d details  q quit";

/* ---- the terminal ------------------------------------------------------------------------------------------------ */

/* Sets the terminal to a mode in which single keys are read without echo. Ctrl-C still sends a signal. Returns false if
 * standard input is not a terminal, or if this process is in the background. */
static bool take_keys(struct tty *tty)
{
	if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp() || tcgetattr(STDIN_FILENO, &tty->before) != 0)
		return false;
	tty->raw = tty->before;
	tty->raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tty->raw.c_cc[VMIN] = 0;
	tty->raw.c_cc[VTIME] = 0;
	return tcsetattr(STDIN_FILENO, TCSANOW, &tty->raw) == 0;
}

/* Returns whether keys can be read now. If another process has used the terminal, first sets the terminal's modes
 * again. */
static bool has_keys(struct tty *tty)
{
	if (!tty->keys)
		return false;
	if (screen_in_background(STDIN_FILENO)) {
		tty->away = true;
		return false;
	}
	if (tty->away)
		tcsetattr(STDIN_FILENO, TCSANOW, &tty->raw);
	tty->away = false;
	return true;
}

static int resize_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGCONT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void tty_open(struct tty *tty, bool wanted, bool colour)
{
	*tty = (struct tty){.resized = -1, .colour = colour};
	tty->on = wanted && show_is_screen(STDOUT_FILENO);
	if (!tty->on)
		return;
	setvbuf(stdout, NULL, _IOFBF, STDOUT_BYTES);
	tty->resized = resize_signals();
	tty->keys = take_keys(tty);
}

void tty_close(struct tty *tty)
{
	tty_hide(tty);
	if (tty->on)
		fflush(stdout);
	if (has_keys(tty))
		tcsetattr(STDIN_FILENO, TCSANOW, &tty->before);
	if (tty->resized >= 0)
		close(tty->resized);
	*tty = (struct tty){.resized = -1};
}

int tty_keys_fd(struct tty *tty)
{
	return has_keys(tty) ? STDIN_FILENO : -1;
}

int tty_resized_fd(const struct tty *tty)
{
	return tty->resized;
}

void tty_again(struct tty *tty)
{
	struct signalfd_siginfo info;

	while (read(tty->resized, &info, sizeof info) > 0)
		tty->away = tty->away || info.ssi_signo == SIGCONT;
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

/* Returns whether the byte belongs to an escape sequence. For example, an arrow key sends ESC [ A, and this A is not
 * the key A. */
static bool in_sequence(struct tty *tty, char c)
{
	bool inside = tty->escape;

	if (c == '\033')
		tty->escape = true;
	else if (inside && c != '[' && c != 'O' && (c < '0' || c > '9') && c != ';')
		tty->escape = false;
	return inside || c == '\033';
}

enum tty_key tty_key(struct tty *tty)
{
	static const struct {
		char c;
		enum tty_key key;
	} keys[] = {{'\n', TTY_STALE}, {'\r', TTY_STALE},  {'f', TTY_FAILURES},
		    {'a', TTY_ALL},    {'d', TTY_DETAILS}, {'q', TTY_QUIT}};
	char typed[64];
	ssize_t length;
	enum tty_key key = TTY_NOTHING;

	/* While poll waited for keys, a shell may have stopped this process and continued it in the background. The
	 * typed text is then for the shell, and the kernel would stop a background process that reads it. */
	if (!has_keys(tty))
		return TTY_NOTHING;
	length = read(STDIN_FILENO, typed, sizeof typed);
	if (length <= 0) /* the terminal was closed */
		tty->keys = false;
	for (ssize_t i = 0; i < length; i++)
		for (size_t k = 0; k < sizeof keys / sizeof *keys && !in_sequence(tty, typed[i]); k++)
			if (typed[i] == keys[k].c)
				key = keys[k].key;
	return key;
}

/* ---- the last line ---------------------------------------------------------------------------------------------- */

void tty_hide(struct tty *tty)
{
	if (tty->drawn == 0)
		return;
	if (screen_in_background(STDOUT_FILENO)) { /* erases nothing, because the cursor may be in a line that another
					     * process has written */
		tty->drawn = 0;
		return;
	}
	struct buf out = {0};

	screen_erase(&tty->drawn, 1, screen_columns(STDOUT_FILENO), &out);
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
	tty->drawn = 0;
}

static void add_colour(const struct tty *tty, struct screen_line *line, const char *code)
{
	if (tty->colour)
		screen_line_colour(line, code);
}

static void add_counts(const struct tty *tty, struct screen_line *line, const struct last_statuses *table)
{
	char text[64];

	for (int s = 0; s < STATUS_COUNT; s++)
		if (table->by_status[s] > 0) {
			snprintf(text, sizeof text, "%d %s", table->by_status[s], status_name((enum status)s));
			add_colour(tty, line, report_colour((enum status)s));
			screen_line_add(line, text);
			add_colour(tty, line, "\033[0m");
			screen_line_add(line, "  ");
		}
	if (table->count > table->known) {
		snprintf(text, sizeof text, "%d to come  ", table->count - table->known);
		screen_line_add(line, text);
	}
}

static void add_progress(struct screen_line *line, const struct batches *session)
{
	struct progress progress = batches_progress(session);
	char text[256];

	if (progress.definitions == 0)
		return;
	snprintf(text, sizeof text, "| %d of %d", progress.definitions - progress.waiting, progress.definitions);
	screen_line_add(line, text);
	if (progress.name != NULL) {
		screen_line_add(line, ": ");
		screen_line_add(line, progress.name);
	}
	screen_line_add(line, "  ");
}

void tty_show(struct tty *tty, const struct batches *session)
{
	struct screen_line line = {.room = screen_columns(STDOUT_FILENO) - 1};

	/* Draws nothing while the command of --exec runs, because the output of the command would begin at the end of
	 * the status line. */
	if (!tty->on || exec_fd(&session->exec) >= 0 || screen_in_background(STDOUT_FILENO))
		return;
	add_counts(tty, &line, &session->table);
	add_progress(&line, session);
	if (tty->keys) {
		screen_line_add(&line, "| ");
		screen_line_add(&line, keys_line);
	}
	fwrite(line.text, 1, line.length, stdout);
	fflush(stdout);
	tty->drawn = line.used;
}
