/* loop - the main loop of `reftest watch`: waits for events and calls the module that handles each of them.
 *
 * The program has one thread. The watcher (watcher/fs/watcher.h) reports changed paths. The changed definitions become
 * a batch (watcher/batches.h), the pool runs their cases, and each verdict is printed as soon as it is known. The first
 * batch contains all definitions. The batch after an overflow of the event queue, or after a replacement of the root,
 * also contains all definitions. While git holds its lock, or while many files change in quick succession, changes are
 * collected (watcher/debounce.h). The cache and the other files of the program are below .reftest, where only the
 * cookie file is watched (watcher/server.h). */
#include "watcher/loop.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "report/exit_status.h"
#include "watcher/batches.h"
#include "engine/run_defaults.h"
#include "watcher/blob_path.h"
#include "watcher/complete_file.h"
#include "watcher/debounce.h"
#include "watcher/fs/watcher.h"
#include "watcher/query.h"
#include "watcher/rebuild.h"
#include "watcher/server.h"
#include "watcher/settled_paths.h"
#include "watcher/settings_change.h"
#include "watcher/tty.h"
#include "workers/pool/zygote.h"

enum { LOCK_MS = 1 }; /* while git holds its lock, the lock is checked at this interval */

static const struct watched_tree trees[] = {
    {"definitions", 1, 1, ".json"},
    {"workloads", 1, 1, ".jsonl"},
    {"truths", 1, 1, ".py"},
    {"approved", 1, 1, ".json"},
    {"blob", BLOB_DEPTH, 0, NULL},
    {"tests", 1, 1, ".py"},
    {".reftest", 0, 0, ".cookie"},
    {"solutions", 3, 2, ".json"}, /* the last row: it is left out if no solution is a ground truth */
};

/* Returns how many of the trees are watched. */
static int watched_trees(const struct truth_choice *truths)
{
	return (int)(sizeof trees / sizeof *trees) - !ground_truths_use_solutions(truths);
}

static bool is_complete(const char *path, void *context)
{
	const struct watch *watch = context;

	return is_complete_file(watch->program->root, path);
}

static void rebuild_news(struct watch *watch)
{
	struct err err = {""};

	switch (rebuild_turn(&watch->rebuild, clock_ms(), &err)) {
	case REBUILD_MAKING:
		print_notice(&watch->session.output, "a file below kernels/ has changed: running make");
		break;
	case REBUILD_FAILED:
		print_notice(&watch->session.output, err.text);
		break;
	case REBUILD_NEW:
		print_notice(&watch->session.output, "the kernels were rebuilt: restarting with the new kernels");
		watch->restart = watch->ended = true;
		break;
	case REBUILD_SAME:
	case REBUILD_NOTHING:
		break;
	}
}

static void exec_turn(struct watch *watch)
{
	struct exec *exec = &watch->session.exec;
	struct err err = {""};
	int status;

	if (!exec_ended(exec, &status))
		return;
	print_command(&watch->session.output, process_end(status).text);
	if (exec->wanted && exec_run(exec, &err) < 0)
		print_notice(&watch->session.output, err.text);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int timeout_ms(const struct watch *watch, bool more)
{
	const struct debounce *debounce = &watch->debounce;
	int64_t now_ms = clock_ms(), first = watcher_deadline(watch->watcher);

	if (more)
		return 0;
	if (debounce->held)
		return LOCK_MS;
	if (debounce_defers(debounce, now_ms) && first < debounce->taken_ms + DEBOUNCE_MS)
		first = debounce->taken_ms + DEBOUNCE_MS;
	first = earlier(first, earlier(debounce_deadline(debounce), rebuild_deadline(&watch->rebuild)));
	if (watch->session.first == NULL) /* each batch updates the generated files when it ends */
		first = earlier(first, autoupdate_deadline(&watch->session.autoupdate));
	int64_t wait = first - now_ms;

	return wait < 0 ? 0 : wait > 60000 ? 60000 : (int)wait;
}

static bool answer(const char *question, size_t length, struct buf *out, void *context)
{
	struct watch *watch = context;

	return query_answer(&watch->session, watcher_pending(watch->watcher) == 0, question, length, out);
}

/* Returns the exit status of a `watch` that ends because of --once or the key q. */
static int exit_status_of(const struct watch *watch)
{
	const struct last_statuses *table = &watch->session.table;
	const unsigned accept = watch->session.options.accept_bits;
	enum status_group worst = table->known > 0 && table->known == table->count ? GROUP_VERIFIED : GROUP_UNVERIFIED;
	const enum status_group checked = exit_group_of_checked(table->checked, accept);

	for (int s = 0; s < STATUS_COUNT; s++)
		if (table->by_status[s] > 0 && s != STATUS_CHECKED && status_group((enum status)s) > worst)
			worst = status_group((enum status)s);
	if (checked > worst)
		worst = checked;
	return exit_status_of_group(worst);
}

/* Starts the batch that the user requested with a key. Does nothing if the batch would be empty. */
static void begin_requested(struct watch *watch, const char *const *paths, int count, int how)
{
	struct err err = {""};

	if (paths != NULL && count == 0)
		return;
	if (batches_begin(&watch->session, paths, count, how, batch_clock(), &err) < 0)
		print_notice(&watch->session.output, err.text);
}

static void key_turn(struct watch *watch)
{
	struct arena arena = {0};
	const char **paths;
	int count;

	switch (tty_key(&watch->tty)) {
	case TTY_STALE:
		begin_requested(watch, NULL, 0, BATCH_PLAIN);
		break;
	case TTY_FAILURES:
		count = last_statuses_failed(&watch->session.table, &arena, &paths);
		begin_requested(watch, paths, count, BATCH_FORCE | BATCH_REPEAT);
		break;
	case TTY_ALL:
		begin_requested(watch, NULL, 0, BATCH_FORCE);
		break;
	case TTY_DETAILS:
		count = last_statuses_unverified(&watch->session.table, &arena, &paths);
		begin_requested(watch, paths, count, BATCH_REPEAT);
		break;
	case TTY_QUIT:
		watch->code = exit_status_of(watch);
		watch->ended = true;
		break;
	case TTY_NOTHING:
		break;
	}
	arena_free(&arena);
}

enum { FD_SIGNALS, FD_WATCHER, FD_POOL, FD_EXEC, FD_SERVER, FD_KEYS, FD_RESIZED, FD_SOURCES, FD_MAKE, FDS };

/* Waits for an event. Returns false if watch must exit. */
static bool wait_for_event(struct watch *watch, bool more)
{
	struct pollfd fds[FDS] = {
	    [FD_SIGNALS] = {watch->program->signals, POLLIN, 0},
	    [FD_WATCHER] = {watcher_fd(watch->watcher), POLLIN, 0},
	    [FD_POOL] = {watch->session.pool != NULL ? pool_fd(watch->session.pool) : -1, POLLIN, 0},
	    [FD_EXEC] = {exec_fd(&watch->session.exec), POLLIN, 0},
	    [FD_SERVER] = {server_fd(&watch->server), POLLIN, 0},
	    [FD_KEYS] = {tty_keys_fd(&watch->tty), POLLIN, 0},
	    [FD_RESIZED] = {tty_resized_fd(&watch->tty), POLLIN, 0},
	    [FD_SOURCES] = {rebuild_fd(&watch->rebuild), POLLIN, 0},
	    [FD_MAKE] = {rebuild_make_fd(&watch->rebuild), POLLIN, 0},
	};

	if (!more)
		tty_show(&watch->tty, &watch->session);
	fflush(stdout);
	int ready = poll(fds, FDS, timeout_ms(watch, more));

	tty_hide(&watch->tty);
	if (ready < 0)
		return true; /* only the error EINTR can occur */
	if ((fds[FD_SIGNALS].revents & POLLIN) != 0) {
		watch->code = EXIT_INTERRUPTED;
		return false;
	}
	if (fds[FD_POOL].revents != 0)
		batches_dispatch(&watch->session);
	if (fds[FD_EXEC].revents != 0)
		exec_turn(watch);
	if (fds[FD_SERVER].revents != 0 && server_turn(&watch->server))
		watcher_hurry(watch->watcher);
	if (fds[FD_RESIZED].revents != 0)
		tty_again(&watch->tty);
	if (fds[FD_KEYS].revents != 0)
		key_turn(watch);
	return !ferror(stdout);
}

static void rest(struct watch *watch)
{
	if (watch->session.first != NULL)
		return;
	if (!watch->ready) {
		print_ready(&watch->session.output, watch->program->root, &watch->session.table);
		if (!watch->options->once)
			batches_warm(&watch->session);
	}
	watch->ready = true;
	if (!watch->options->once || watcher_pending(watch->watcher) > 0 || exec_fd(&watch->session.exec) >= 0)
		return;
	watch->code = exit_status_of(watch);
	watch->ended = true;
}

static void loop(struct watch *watch)
{
	bool more = true;

	watch->noticed = batch_clock();
	changes_begin_batch(watch, NULL, 0);
	watch->noticed = 0;
	while (!watch->ended && wait_for_event(watch, more)) {
		changes_take(watch);
		rebuild_news(watch);
		more = batches_plan(&watch->session);
		if (batches_finish(&watch->session))
			watch->debounce.done_ms = clock_ms();
		if (autoupdate_deadline(&watch->session.autoupdate) <= clock_ms())
			batches_update_tests(&watch->session);
		rest(watch);
		if (server_waits(&watch->server))
			server_answer_all(&watch->server, answer, watch);
	}
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static int open_watcher(struct watch *watch, struct err *err)
{
	const struct watcher_options how = {
	    .root = watch->program->root,
	    .trees = trees,
	    .tree_count = watched_trees(&watch->session.machine.truths),
	    .complete = is_complete,
	    .context = watch,
	    .watch_limit = watch->options->watches,
	    .poll = watch->options->poll,
	};

	watch->watcher = watcher_open(&how, err);
	if (watch->watcher == NULL)
		return -1;
	watch->generation = watcher_generation(watch->watcher);
	return 0;
}

static int open_all(struct watch *watch, struct err *err)
{
	const struct watch_options *o = watch->options;
	struct program *program = watch->program;
	struct batches *session = &watch->session;
	struct err note = {""};

	/* The root is opened by its absolute path. The path "." would lead to the old directory if the working
	 * directory were deleted and created again. */
	if (program_root_by_path(program, err) < 0)
		return EXIT_USAGE;
	settings_change_begin(&watch->settings, program->root);
	if (program_settings(program, err) < 0)
		return EXIT_USAGE;
	run_defaults(program->settings, &session->options);
	if (program_kernels(program, err) < 0 || program_signals(program, err) < 0)
		return EXIT_INTERNAL;
	program_store(program, false, &note);
	if (note.text[0] != '\0')
		print_notice(&session->output, note.text);
	if (machine_policy(program, session->options.device, o->run.python, o->run.ground_truth, &watch->arena,
			   &session->machine, err) < 0)
		return EXIT_USAGE;
	if (open_watcher(watch, err) < 0) /* opened before the server, whose cookie file it watches */
		return EXIT_INTERNAL;
	if (server_open(&watch->server, program->root, err) < 0)
		return EXIT_USAGE;
	if (session->machine.no_device)
		return err_set(err, "%s", session->machine.cannot_run), EXIT_UNVERIFIED;
	if (session->machine.cannot_run != NULL)
		print_notice(&session->output, session->machine.cannot_run);
	git_lock_find(program->root, &watch->debounce.lock);
	return 0;
}

/* Runs the program that is now at this program's path, in this process and with the same arguments. Close all resources
 * before the call. */
static int restart_program(struct program *program, struct err *err)
{
	char path[PATH_MAX + 16];

	fflush(stdout);
	if (file_program_directory(path, PATH_MAX, err) < 0)
		return EXIT_INTERNAL;
	strcat(path, "/reftest");
	secrets_put_back(&program->secrets);
	execv(path, program->argv);
	err_errno(err, "cannot restart %s", path);
	return EXIT_INTERNAL;
}

static void follow(const char *path, void *context)
{
	const struct watch *watch = context;

	watcher_follow(watch->watcher, path);
}

int watch_run(struct program *program, const struct watch_options *o, struct err *err)
{
	struct watch watch = {.options = o, .program = program};
	struct batches *session = &watch.session;

	server_init(&watch.server);
	session->program = program;
	session->follow = follow;
	session->follow_context = &watch;
	session->output = (struct watch_output){.json = o->json, .report = {.command = ""}};
	session->options = o->run;
	session->options.interactive = true;
	session->options.spares = o->spares;
	session->options.watcher = NULL;
	/* With --json, the command of --exec writes to standard error, because standard output has the JSON lines. */
	exec_open(&session->exec, o->command, o->json ? STDERR_FILENO : STDOUT_FILENO);
	int code = open_all(&watch, err);

	if (code == 0) {
		if (!o->once)
			rebuild_open(&watch.rebuild);
		tty_open(&watch.tty, !o->json, program->colour);
		loop(&watch);
		tty_close(&watch.tty);
		rebuild_close(&watch.rebuild);
		code = watch.code;
	}
	server_close(&watch.server);
	batches_close(session);
	if (watch.watcher != NULL)
		watcher_close(watch.watcher);
	arena_free(&watch.arena);
	if (watch.restart)
		return restart_program(program, err);
	if (o->json)
		event_end(code);
	return code;
}
