#include "commands/live.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/utf8.h"

enum { STDOUT_BYTES = 1 << 16, LINE_BYTES = 4096 };

static const char keys_line[] = "enter stale  f failures  a all  d details  q quit";

/* ---- the terminal ------------------------------------------------------------------------------------------------ */

static int columns(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* In the background the terminal is somebody else's: who reads from it there, or sets its modes, is stopped. */
static bool in_background(int fd)
{
	pid_t foreground = tcgetpgrp(fd);

	return foreground > 0 && foreground != getpgrp();
}

/* Keys one by one and unseen; Ctrl-C stays a signal. */
static bool take_keys(struct live *live)
{
	if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp() || tcgetattr(STDIN_FILENO, &live->before) != 0)
		return false;
	live->raw = live->before;
	live->raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	live->raw.c_cc[VMIN] = 0;
	live->raw.c_cc[VTIME] = 0;
	return tcsetattr(STDIN_FILENO, TCSANOW, &live->raw) == 0;
}

/* May keys be read now? Whoever had the terminal meanwhile has left it in modes of his own. */
static bool has_keys(struct live *live)
{
	if (!live->keys)
		return false;
	if (in_background(STDIN_FILENO)) {
		live->away = true;
		return false;
	}
	if (live->away)
		tcsetattr(STDIN_FILENO, TCSANOW, &live->raw);
	live->away = false;
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

void live_open(struct live *live, bool wanted, bool colour)
{
	const char *terminal = getenv("TERM");

	*live = (struct live){.resized = -1, .colour = colour};
	live->on = wanted && isatty(STDOUT_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0;
	if (!live->on)
		return;
	setvbuf(stdout, NULL, _IOFBF, STDOUT_BYTES);
	live->resized = resize_signals();
	live->keys = take_keys(live);
}

void live_close(struct live *live)
{
	live_hide(live);
	if (live->on)
		fflush(stdout);
	if (has_keys(live))
		tcsetattr(STDIN_FILENO, TCSANOW, &live->before);
	if (live->resized >= 0)
		close(live->resized);
	*live = (struct live){.resized = -1};
}

int live_keys_fd(struct live *live)
{
	return has_keys(live) ? STDIN_FILENO : -1;
}

int live_resized_fd(const struct live *live)
{
	return live->resized;
}

void live_again(struct live *live)
{
	struct signalfd_siginfo info;

	while (read(live->resized, &info, sizeof info) > 0)
		live->away = live->away || info.ssi_signo == SIGCONT;
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

/* An arrow is ESC [ A: letters within a sequence are no keys of ours. */
static bool in_sequence(struct live *live, char c)
{
	bool inside = live->escape;

	if (c == '\033')
		live->escape = true;
	else if (inside && c != '[' && c != 'O' && (c < '0' || c > '9') && c != ';')
		live->escape = false;
	return inside || c == '\033';
}

enum live_key live_key(struct live *live)
{
	static const struct {
		char c;
		enum live_key key;
	} keys[] = {{'\n', LIVE_STALE}, {'\r', LIVE_STALE},   {'f', LIVE_FAILURES},
	            {'a', LIVE_ALL},    {'d', LIVE_DETAILS}, {'q', LIVE_QUIT}};
	char typed[64];
	ssize_t length = read(STDIN_FILENO, typed, sizeof typed);
	enum live_key key = LIVE_NOTHING;

	if (length <= 0) /* the terminal is gone */
		live->keys = false;
	for (ssize_t i = 0; i < length; i++)
		for (size_t k = 0; k < sizeof keys / sizeof *keys && !in_sequence(live, typed[i]); k++)
			if (typed[i] == keys[k].c)
				key = keys[k].key;
	return key;
}

/* ---- the last line ---------------------------------------------------------------------------------------------- */

void live_hide(struct live *live)
{
	if (live->drawn == 0)
		return;
	if (in_background(STDOUT_FILENO)) { /* where the cursor stands now is somebody else's line */
		live->drawn = 0;
		return;
	}
	int wide = columns(), rows = (live->drawn + wide - 1) / wide; /* a narrower terminal has broken it into several */

	/* Row by row: some terminals keep in their history what an "erase to the end" at the top takes away. */
	for (int i = 1; i < rows; i++)
		printf("\033[2K\033[A");
	printf("\r\033[2K");
	live->drawn = 0;
}

/* A line that is cut at the terminal's width; colours take no room. */
struct line {
	char text[LINE_BYTES];
	size_t length;
	int used, room; /* columns */
};

static void add(struct line *line, const char *text)
{
	for (size_t left = strlen(text); left > 0 && line->used < line->room;) {
		size_t step = utf8_length(text, left);

		step = step == 0 ? 1 : step;
		if (line->length + step + 16 > sizeof line->text)
			return;
		memcpy(line->text + line->length, text, step);
		line->length += step;
		line->used++;
		text += step;
		left -= step;
	}
}

static void add_colour(const struct live *live, struct line *line, const char *code)
{
	if (live->colour && line->length + strlen(code) + 16 <= sizeof line->text) {
		memcpy(line->text + line->length, code, strlen(code));
		line->length += strlen(code);
	}
}

static void add_counts(const struct live *live, struct line *line, const struct roll *roll)
{
	static const char *const colours[STATUS_COUNT] = {
	    [STATUS_PASSED] = "\033[32m", [STATUS_SKIPPED] = "\033[33m", [STATUS_ERROR] = "\033[31m",
	    [STATUS_FAILED] = "\033[31m", [STATUS_INVALID] = "\033[31m",
	};
	char text[64];

	for (int s = 0; s < STATUS_COUNT; s++)
		if (roll->by_status[s] > 0) {
			snprintf(text, sizeof text, "%d %s", roll->by_status[s], status_name((enum status)s));
			add_colour(live, line, colours[s]);
			add(line, text);
			add_colour(live, line, "\033[0m");
			add(line, "  ");
		}
	if (roll->count > roll->known) {
		snprintf(text, sizeof text, "%d to come  ", roll->count - roll->known);
		add(line, text);
	}
}

static void add_progress(struct line *line, const struct batches *batches)
{
	struct progress progress = batches_progress(batches);
	char text[256];

	if (progress.definitions == 0)
		return;
	snprintf(text, sizeof text, "| %d of %d", progress.definitions - progress.waiting, progress.definitions);
	add(line, text);
	if (progress.name != NULL) {
		add(line, ": ");
		add(line, progress.name);
	}
	add(line, "  ");
}

void live_show(struct live *live, const struct batches *batches)
{
	struct line line = {.room = columns() - 1};

	/* What the command of --exec prints belongs on lines of its own. */
	if (!live->on || hook_fd(&batches->hook) >= 0 || in_background(STDOUT_FILENO))
		return;
	add_counts(live, &line, &batches->roll);
	add_progress(&line, batches);
	if (live->keys) {
		add(&line, "| ");
		add(&line, keys_line);
	}
	fwrite(line.text, 1, line.length, stdout);
	fflush(stdout);
	live->drawn = line.used;
}
