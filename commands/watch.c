/* watch - keeps verdicts true while files change.
 *
 * One loop, one thread. The watcher says where to look; what it says becomes a batch (a pass over just these
 * definitions); the pool, kept warm, runs what has no verdict; each verdict is told as it comes. Start-up, an overflow of
 * the queue and a root that came back are the same, only larger. While git holds its lock, or files keep coming quickly, what
 * is written is gathered (commands/gather.h). Our own files lie below .reftest, where nobody looks. */
#include "commands/command.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "commands/ask.h"
#include "commands/batches.h"
#include "commands/blob_path.h"
#include "commands/door.h"
#include "commands/gather.h"
#include "commands/live.h"
#include "commands/options.h"
#include "commands/ripe.h"
#include "commands/workshop.h"
#include "watcher/watcher.h"
#include "workers/crew.h"

/* How often git's lock is looked at. */
enum { LOCK_MS = 1 };

struct watch_options {
	const char *root, *device, *python, *sizes, *ground_truth, *command;
	bool no_workloads, json, once, poll;
	int jobs, spares, watches;
	double timeout;
	uint64_t seed;
};

#define AT(member) offsetof(struct watch_options, member)
static const struct option_row rows[] = {
    {"--root", OPTION_TEXT, AT(root), "DIR", "the dataset"},
    {"--json", OPTION_FLAG, AT(json), NULL, "one JSON object a line as things happen"},
    {"--exec", OPTION_TEXT, AT(command), "CMD", "run by the shell after each batch, the names in $REFTEST_NAMES"},
    {"--once", OPTION_FLAG, AT(once), NULL, "end as soon as everything has its verdict"},
    {"--device", OPTION_TEXT, AT(device), "D", "auto, cpu, cuda or cuda:N (default: auto)"},
    {"--sizes", OPTION_TEXT, AT(sizes), "LIST", "small,medium,large (default: small,medium)"},
    {"--ground-truth", OPTION_TEXT, AT(ground_truth), "NAMES", "auto: the best there is; all: each, and they agree; or by name"},
    {"--no-workloads", OPTION_FLAG, AT(no_workloads), NULL, "leave the lines of workload files out"},
    {"--seed", OPTION_SEED, AT(seed), "N", "of the inputs (default: 0)"},
    {"--timeout", OPTION_REAL, AT(timeout), "S", "seconds a case may take (default: 120)"},
    {"--jobs", OPTION_INT, AT(jobs), "N", "references side by side (default: half the cores, at most 4)"},
    {"--spares", OPTION_INT, AT(spares), "N", "runners kept ready, one a save (default: 1; on a GPU 4, 0.6 GB of it each)"},
    {"--python", OPTION_TEXT, AT(python), "PATH", "interpreter with torch; else $REFTEST_PYTHON, .venv, python3"},
    {"--poll", OPTION_FLAG, AT(poll), NULL, "do not use inotify: look at the files twice a second"},
    {"--max-watches", OPTION_INT, AT(watches), "N", "use no more inotify watches; poll the other folders"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static const struct watched_tree trees[] = {
    {"definitions", 1, 1, ".json"},
    {"workloads", 1, 1, ".jsonl"},
    {"blob", BLOB_DEPTH, 0, NULL},
    {"tests", 1, 1, ".py"},
    {".reftest", 0, 0, ".cookie"},
};

struct watch {
	const struct watch_options *options;
	struct reftest *reftest;
	struct batches batches;
	struct watcher *watcher;
	struct gather gather;
	struct door door;
	struct live live;
	struct workshop workshop;
	struct arena arena;
	double noticed;   /* when the oldest change that is not in a batch was heard of; 0: there is none */
	int generation;   /* of the root */
	bool anew;        /* end, and begin again as the program that make has just made */
	bool ready, ended;
	int code;
};

static bool is_ripe(const char *path, void *context)
{
	const struct watch *watch = context;

	return ripe_file(watch->reftest->root, path);
}

/* ---- from paths to definitions ---------------------------------------------------------------------------------- */

struct words_of {
	const char **items;
	int count, room;
	struct arena *arena;
};

static void add_word(struct words_of *words, const char *path)
{
	if (words->count == words->room) {
		int room = words->room * 2 + 64;
		const char **longer = arena_array(words->arena, (size_t)room, sizeof *longer);

		if (words->count > 0)
			memcpy(longer, words->items, (size_t)words->count * sizeof *longer);
		words->items = longer;
		words->room = room;
	}
	words->items[words->count++] = arena_string(words->arena, path);
}

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_once(struct words_of *words)
{
	int kept = 0;

	if (words->count > 1)
		qsort(words->items, (size_t)words->count, sizeof *words->items, compare_words);
	for (int i = 0; i < words->count; i++)
		if (kept == 0 || strcmp(words->items[kept - 1], words->items[i]) != 0)
			words->items[kept++] = words->items[i];
	words->count = kept;
}

/* "definitions/x/" or "workloads/x/": the definitions that are known to be, or to have been, in there. */
static void add_folder(struct watch *watch, const char *folder, struct words_of *words)
{
	const char *rest = strchr(folder, '/');
	const char **paths;

	if (strncmp(folder, "definitions/", 12) != 0 && strncmp(folder, "workloads/", 10) != 0)
		return;
	int count = roll_paths(&watch->batches.roll, arena_printf(words->arena, "definitions%s", rest), words->arena, &paths);

	for (int i = 0; i < count; i++)
		add_word(words, paths[i]);
}

/* Who names one of these blobs (or one in one of these folders)? */
struct blob_question {
	const struct changes *changes;
	struct words_of *words;
};

static bool names_blob(const char *blob, const char *changed)
{
	size_t length = strlen(changed);

	return changed[length - 1] == '/' ? strncmp(blob, changed, length) == 0 : strcmp(blob, changed) == 0;
}

/* May this be a blob's, or a folder's with blobs? They may lie anywhere below the root. */
static bool may_be_blob(const char *path)
{
	char definition[PATH_MAX];

	if (strncmp(path, "blob/", 5) == 0)
		return true;
	return path[strlen(path) - 1] != '/' && strcmp(path, DOOR_COOKIE) != 0 && strncmp(path, "tests/", 6) != 0 &&
	       !dataset_definition_path(path, definition, sizeof definition);
}

static void ask_entry(const struct file_entry *entry, void *context)
{
	const struct blob_question *question = context;

	for (int i = 0; i < entry->blob_count; i++)
		for (int k = 0; k < question->changes->count; k++)
			if (names_blob(entry->blobs[i], question->changes->paths[k])) {
				add_word(question->words, entry->path);
				return;
			}
}

/* false: nobody can say which definitions are touched. */
static bool add_blobs(struct watch *watch, const struct changes *changes, struct words_of *words)
{
	struct blob_question question = {changes, words};
	bool any = false;

	for (int i = 0; i < changes->count; i++)
		any = any || may_be_blob(changes->paths[i]);
	if (!any)
		return true;
	return watch->reftest->store != NULL &&
	       store_each_file(watch->reftest->store, "definitions/", ask_entry, &question, NULL) == 0;
}

/* `paths` NULL: of everything. */
static void begin_batch(struct watch *watch, const char *const *paths, int count)
{
	bool open = gather_take(&watch->gather, clock_ms(), count, batches_under_way(&watch->batches));
	struct err err = {""};

	if (batches_begin(&watch->batches, paths, count, open ? BATCH_OPEN : BATCH_PLAIN, watch->noticed, &err) < 0)
		tell_notice(&watch->batches.teller, err.text);
}

/* Another folder stands where the root stood: its cache is another, too. */
static void open_new_root(struct watch *watch)
{
	struct reftest *reftest = watch->reftest;
	struct err note = {""};

	watch->generation = watcher_generation(watch->watcher);
	batches_abandon(&watch->batches);
	if (reftest->store != NULL)
		store_close(reftest->store);
	reftest->store = NULL;
	reftest_store(reftest, false, &note);
	if (note.text[0] != '\0')
		tell_notice(&watch->batches.teller, note.text);
	git_lock_find(reftest->root, &watch->gather.lock);
	door_close(&watch->door);
	if (door_open(&watch->door, reftest->root, &note) < 0)
		tell_notice(&watch->batches.teller, note.text);
}

/* Somebody took our folder away: what it kept is gone, and a new one is begun. */
static bool lost_cache(const struct watch *watch, const struct changes *changes)
{
	for (int i = 0; i < changes->count; i++)
		if (strcmp(changes->paths[i], ".reftest/") == 0)
			return watch->reftest->store == NULL || access(store_path(watch->reftest->store), F_OK) != 0;
	return false;
}

static void take_changes(struct watch *watch, const struct changes *changes, struct arena *arena)
{
	struct words_of words = {.arena = arena};
	char definition[PATH_MAX];

	if (watch->generation != watcher_generation(watch->watcher))
		open_new_root(watch);
	bool lost = lost_cache(watch, changes);

	if (lost)
		open_new_root(watch);
	if (lost || changes->everything || !add_blobs(watch, changes, &words)) {
		begin_batch(watch, NULL, 0);
		door_heard_cookie(&watch->door);
		return;
	}
	for (int i = 0; i < changes->count; i++) {
		const char *path = changes->paths[i];

		if (upkeep_heard(&watch->batches.upkeep, path, clock_ms()))
			continue;
		if (path[strlen(path) - 1] == '/')
			add_folder(watch, path, &words);
		else if (strcmp(path, DOOR_COOKIE) == 0)
			door_heard_cookie(&watch->door);
		else if (dataset_definition_path(path, definition, sizeof definition))
			add_word(&words, definition);
	}
	sort_once(&words);
	if (words.count > 0)
		begin_batch(watch, words.items, words.count);
}

/* ---- the loop --------------------------------------------------------------------------------------------------- */

/* What has been heard of by now; and if git has just let go of its lock, all that it wrote before: that is one batch, and may
 * have come between the reading of the queue and the look at the lock. */
static void hear_changes(struct watch *watch, int64_t now_ms)
{
	struct gather *gather = &watch->gather;
	const char *sentence;

	if (watcher_pending(watch->watcher) > 0 || gather->held)
		gather_look(gather, now_ms);
	watcher_turn(watch->watcher, now_ms);
	if (watcher_pending(watch->watcher) > 0 && !gather->held && !gather->seal) {
		gather_look(gather, now_ms);
		if (!gather->held && watch->noticed == 0)
			watcher_turn(watch->watcher, now_ms);
	}
	while ((sentence = watcher_notice(watch->watcher)) != NULL)
		tell_notice(&watch->batches.teller, sentence);
	if (watcher_pending(watch->watcher) > 0 && watch->noticed == 0)
		watch->noticed = batch_clock();
}

static void look_at_changes(struct watch *watch)
{
	int64_t now_ms = clock_ms();
	struct arena arena = {0};
	struct changes changes;

	hear_changes(watch, now_ms);
	if (door_waits(&watch->door))
		gather_hurry(&watch->gather);
	if (!gather_keeps(&watch->gather, now_ms)) {
		if (watcher_changes(watch->watcher, now_ms, &arena, &changes)) {
			take_changes(watch, &changes, &arena);
			watch->noticed = watcher_pending(watch->watcher) > 0 ? batch_clock() : 0;
		} else {
			gather_rest(&watch->gather, now_ms);
		}
	}
	arena_free(&arena);
	if (gather_seals(&watch->gather))
		batches_seal(&watch->batches);
}

static void workshop_news(struct watch *watch)
{
	struct err err = {""};

	switch (workshop_turn(&watch->workshop, clock_ms(), &err)) {
	case WORKSHOP_MAKING:
		tell_notice(&watch->batches.teller, "kernels/ has changed: running make");
		break;
	case WORKSHOP_FAILED:
		tell_notice(&watch->batches.teller, err.text);
		break;
	case WORKSHOP_NEW:
		tell_notice(&watch->batches.teller, "the kernels are made anew: beginning again with them");
		watch->anew = watch->ended = true;
		break;
	case WORKSHOP_SAME:
	case WORKSHOP_NOTHING:
		break;
	}
}

static void hook_turn(struct watch *watch)
{
	struct hook *hook = &watch->batches.hook;
	struct err err = {""};
	int status;

	if (!hook_ended(hook, &status))
		return;
	tell_command(&watch->batches.teller, process_end(status).text);
	if (hook->wanted && hook_run(hook, &err) < 0)
		tell_notice(&watch->batches.teller, err.text);
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int timeout_ms(const struct watch *watch, bool more)
{
	const struct gather *gather = &watch->gather;
	int64_t now_ms = clock_ms(), first = watcher_deadline(watch->watcher);

	if (more)
		return 0;
	if (gather->held)
		return LOCK_MS;
	if (gather_keeps(gather, now_ms) && first < gather->taken_ms + GATHER_MS)
		first = gather->taken_ms + GATHER_MS;
	first = earlier(first, earlier(gather_deadline(gather), workshop_deadline(&watch->workshop)));
	if (watch->batches.first == NULL) /* else the end of the batch looks */
		first = earlier(first, upkeep_deadline(&watch->batches.upkeep));
	int64_t wait = first - now_ms;

	return wait < 0 ? 0 : wait > 60000 ? 60000 : (int)wait;
}

static bool answer(const char *question, size_t length, struct buf *out, void *context)
{
	struct watch *watch = context;

	return ask_answer(&watch->batches, watcher_pending(watch->watcher) == 0, question, length, out);
}

/* What --once, and q, end with. */
static int code_of(const struct roll *roll)
{
	if (roll->by_status[STATUS_INVALID] > 0)
		return EXIT_USAGE;
	if (roll->by_status[STATUS_FAILED] + roll->by_status[STATUS_ERROR] > 0)
		return EXIT_FAILED;
	return roll->count > 0 && roll->by_status[STATUS_PASSED] == roll->count ? EXIT_VERIFIED : EXIT_UNVERIFIED;
}

/* A batch that a key asks for; of nothing, there is none. */
static void begin_asked(struct watch *watch, const char *const *paths, int count, int how)
{
	struct err err = {""};

	if (paths != NULL && count == 0)
		return;
	if (batches_begin(&watch->batches, paths, count, how, batch_clock(), &err) < 0)
		tell_notice(&watch->batches.teller, err.text);
}

static void key_turn(struct watch *watch)
{
	struct arena arena = {0};
	const char **paths;
	int count;

	switch (live_key(&watch->live)) {
	case LIVE_STALE:
		begin_asked(watch, NULL, 0, BATCH_PLAIN);
		break;
	case LIVE_FAILURES:
		count = roll_failed(&watch->batches.roll, &arena, &paths);
		begin_asked(watch, paths, count, BATCH_FORCE | BATCH_REPEAT);
		break;
	case LIVE_ALL:
		begin_asked(watch, NULL, 0, BATCH_FORCE);
		break;
	case LIVE_DETAILS:
		count = roll_doubtful(&watch->batches.roll, &arena, &paths);
		begin_asked(watch, paths, count, BATCH_REPEAT);
		break;
	case LIVE_QUIT:
		watch->code = code_of(&watch->batches.roll);
		watch->ended = true;
		break;
	case LIVE_NOTHING:
		break;
	}
	arena_free(&arena);
}

enum { FD_SIGNALS, FD_WATCHER, FD_POOL, FD_HOOK, FD_DOOR, FD_KEYS, FD_RESIZED, FD_SOURCES, FD_MAKE, FDS };

/* Waits until something has happened; false: it is time to end. */
static bool wait_for_something(struct watch *watch, bool more)
{
	struct pollfd fds[FDS] = {
	    [FD_SIGNALS] = {watch->reftest->signals, POLLIN, 0},
	    [FD_WATCHER] = {watcher_fd(watch->watcher), POLLIN, 0},
	    [FD_POOL] = {watch->batches.pool != NULL ? pool_fd(watch->batches.pool) : -1, POLLIN, 0},
	    [FD_HOOK] = {hook_fd(&watch->batches.hook), POLLIN, 0},
	    [FD_DOOR] = {door_fd(&watch->door), POLLIN, 0},
	    [FD_KEYS] = {live_keys_fd(&watch->live), POLLIN, 0},
	    [FD_RESIZED] = {live_resized_fd(&watch->live), POLLIN, 0},
	    [FD_SOURCES] = {workshop_fd(&watch->workshop), POLLIN, 0},
	    [FD_MAKE] = {workshop_make_fd(&watch->workshop), POLLIN, 0},
	};

	if (!more)
		live_show(&watch->live, &watch->batches);
	fflush(stdout);
	int ready = poll(fds, FDS, timeout_ms(watch, more));

	live_hide(&watch->live);
	if (ready < 0)
		return true; /* EINTR: nothing else can be */
	if ((fds[FD_SIGNALS].revents & POLLIN) != 0) {
		watch->code = EXIT_INTERRUPTED;
		return false;
	}
	if (fds[FD_POOL].revents != 0)
		batches_dispatch(&watch->batches);
	if (fds[FD_HOOK].revents != 0)
		hook_turn(watch);
	if (fds[FD_DOOR].revents != 0 && door_turn(&watch->door))
		watcher_hurry(watch->watcher);
	if (fds[FD_RESIZED].revents != 0)
		live_again(&watch->live);
	if (fds[FD_KEYS].revents != 0)
		key_turn(watch);
	return !ferror(stdout);
}

static void rest(struct watch *watch)
{
	if (watch->batches.first != NULL)
		return;
	if (!watch->ready) {
		tell_ready(&watch->batches.teller, watch->reftest->root, &watch->batches.roll);
		if (!watch->options->once)
			batches_warm(&watch->batches);
	}
	watch->ready = true;
	if (!watch->options->once || watcher_pending(watch->watcher) > 0 || hook_fd(&watch->batches.hook) >= 0)
		return;
	watch->code = code_of(&watch->batches.roll);
	watch->ended = true;
}

static void loop(struct watch *watch)
{
	bool more = true;

	watch->noticed = batch_clock();
	begin_batch(watch, NULL, 0);
	watch->noticed = 0;
	while (!watch->ended && wait_for_something(watch, more)) {
		look_at_changes(watch);
		workshop_news(watch);
		more = batches_plan(&watch->batches);
		if (batches_finish(&watch->batches))
			watch->gather.done_ms = clock_ms();
		if (upkeep_deadline(&watch->batches.upkeep) <= clock_ms())
			batches_keep(&watch->batches);
		rest(watch);
		if (door_waits(&watch->door))
			door_answer_all(&watch->door, answer, watch);
	}
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static int open_watcher(struct watch *watch, struct err *err)
{
	const struct watcher_options how = {
	    .root = watch->reftest->root, .trees = trees, .tree_count = sizeof trees / sizeof *trees, .ripe = is_ripe,
	    .context = watch, .watch_limit = watch->options->watches, .poll = watch->options->poll,
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
	struct reftest *reftest = watch->reftest;
	struct batches *batches = &watch->batches;
	struct err note = {""};

	reftest->root_given = o->root != NULL ? o->root : reftest->root_given;
	/* By its path: the working directory may be deleted and made anew under us, and "." would stay the deleted one. */
	if (reftest_root_by_path(reftest, err) < 0)
		return EXIT_USAGE;
	if (reftest_kernels_library(reftest, err) < 0 || reftest_signals(reftest, err) < 0 || open_watcher(watch, err) < 0)
		return EXIT_INTERNAL;
	reftest_store(reftest, false, &note);
	if (note.text[0] != '\0')
		tell_notice(&batches->teller, note.text);
	if (door_open(&watch->door, reftest->root, err) < 0)
		return EXIT_USAGE;
	if (machine_policy(reftest, o->device, o->python, o->ground_truth, &watch->arena, &batches->machine, err) < 0)
		return EXIT_USAGE;
	if (batches->machine.cannot_run != NULL)
		tell_notice(&batches->teller, batches->machine.cannot_run);
	git_lock_find(reftest->root, &watch->gather.lock);
	return 0;
}

/* Becomes the program that lies where this one lay. Everything of ours is closed. */
static int begin_anew(struct reftest *reftest, struct err *err)
{
	char program[PATH_MAX + 16];

	fflush(stdout);
	if (file_program_directory(program, PATH_MAX, err) < 0)
		return EXIT_INTERNAL;
	strcat(program, "/reftest");
	execv(program, reftest->argv);
	err_errno(err, "%s: cannot be started anew", program);
	return EXIT_INTERNAL;
}

static void follow(const char *path, void *context)
{
	const struct watch *watch = context;

	watcher_follow(watch->watcher, path);
}

static int run(struct reftest *reftest, const struct watch_options *o, struct err *err)
{
	struct watch watch = {.options = o, .reftest = reftest};
	struct batches *batches = &watch.batches;

	door_init(&watch.door);
	batches->reftest = reftest;
	batches->follow = follow;
	batches->follow_context = &watch;
	batches->teller = (struct watch_teller){.json = o->json, .report = {.command = ""}};
	batches->options = (struct pass_options){.cases = case_options_default(), .device = o->device, .python = o->python,
	                                         .ground_truth = o->ground_truth, .jobs = o->jobs, .spares = o->spares, .timeout_s = o->timeout};
	batches->options.cases.workloads = !o->no_workloads;
	batches->options.cases.seed = o->seed;
	memset(batches->options.cases.size, 0, sizeof batches->options.cases.size);
	if (case_sizes_read(o->sizes, batches->options.cases.size, err) < 0)
		return EXIT_USAGE;
	/* What the command prints would break the lines of --json. */
	hook_open(&batches->hook, o->command, o->json ? STDERR_FILENO : STDOUT_FILENO);
	int code = open_all(&watch, err);

	if (code == 0) {
		if (!o->once)
			workshop_open(&watch.workshop);
		live_open(&watch.live, !o->json, reftest->colour);
		loop(&watch);
		live_close(&watch.live);
		workshop_close(&watch.workshop);
		code = watch.code;
	}
	door_close(&watch.door);
	batches_close(batches);
	if (watch.watcher != NULL)
		watcher_close(watch.watcher);
	arena_free(&watch.arena);
	return watch.anew ? begin_anew(reftest, err) : code;
}

int command_watch(struct reftest *reftest, int argc, char **argv)
{
	struct watch_options o = {.device = "auto", .sizes = "small,medium", .ground_truth = "auto", .timeout = 120};
	struct told told;

	if (options_begin(&told, "watch [options]", rows, ROWS, argc, argv, &o)) {
		if (told.names.count > 0)
			err_set(&told.err, "watch takes no names: it keeps the whole dataset verified");
		else if (o.timeout <= 0)
			err_set(&told.err, "--timeout takes a number of seconds above 0");
		else
			told.code = run(reftest, &o, &told.err);
	}
	return options_end(&told);
}
