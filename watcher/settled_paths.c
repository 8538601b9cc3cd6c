#include "watcher/settled_paths.h"

#include <string.h>
#include <unistd.h>

#include "workers/pool/zygote.h"
#include "watcher/affected_definitions.h"

void changes_begin_batch(struct watch *watch, const char *const *paths, int count)
{
	bool open = debounce_take(&watch->debounce, clock_ms(), count, batches_under_way(&watch->session));
	struct err err = {""};

	if (batches_begin(&watch->session, paths, count, open ? BATCH_OPEN : BATCH_PLAIN, watch->noticed, &err) < 0)
		print_notice(&watch->session.output, err.text);
}

/* Reopens the cache and the socket of the root. Call this if another folder has replaced the root, or if .reftest was
 * deleted. */
static void open_new_root(struct watch *watch)
{
	struct program *program = watch->program;
	struct err note = {""};

	watch->generation = watcher_generation(watch->watcher);
	batches_abandon(&watch->session);
	if (program->store != NULL)
		store_close(program->store);
	program->store = NULL;
	program_store(program, false, &note);
	if (note.text[0] != '\0')
		print_notice(&watch->session.output, note.text);
	git_lock_find(program->root, &watch->debounce.lock);
	server_close(&watch->server);
	if (server_open(&watch->server, program->root, &note) < 0)
		print_notice(&watch->session.output, note.text);
}

/* Returns whether the folder .reftest, which contains the cache, was deleted. */
static bool lost_cache(const struct watch *watch, const struct changes *changes)
{
	for (int i = 0; i < changes->count; i++)
		if (strcmp(changes->paths[i], ".reftest/") == 0)
			return watch->program->store == NULL || access(store_path(watch->program->store), F_OK) != 0;
	return false;
}

/* Restarts this process if the settings of the dataset have changed, because every part of the session depends on them.
 * The first batch of the new process includes the changed definitions. If the new settings are invalid, the old
 * settings stay in force. */
static void look_at_settings(struct watch *watch)
{
	struct err err = {""}, notice = {""};

	switch (settings_change_look(&watch->settings, watch->program->root, &err)) {
	case SETTINGS_NEW:
		print_notice(&watch->session.output, "reftest.toml has changed: restarting with the new settings");
		watch->restart = watch->ended = true;
		break;
	case SETTINGS_BROKEN:
		err_set(&notice, "%s; until the file is corrected, the earlier settings stay in effect", err.text);
		print_notice(&watch->session.output, notice.text);
		break;
	case SETTINGS_SAME:
		break;
	}
}

static void take_changes(struct watch *watch, const struct changes *changes, struct arena *arena)
{
	struct path_list list = {.arena = arena};

	look_at_settings(watch);
	if (watch->generation != watcher_generation(watch->watcher))
		open_new_root(watch);
	bool lost = lost_cache(watch, changes);

	if (lost)
		open_new_root(watch);
	if (lost || changes->everything || !affected_definitions_add_blobs(watch->program->store, changes, &list)) {
		changes_begin_batch(watch, NULL, 0);
		server_cookie_arrived(&watch->server);
		return;
	}
	for (int i = 0; i < changes->count; i++) {
		const char *path = changes->paths[i];

		if (autoupdate_path_changed(&watch->session.autoupdate, path, clock_ms()))
			continue;
		if (strcmp(path, SERVER_COOKIE) == 0)
			server_cookie_arrived(&watch->server);
		else
			affected_definitions_add(&watch->session.table, path, &list);
	}
	path_list_sort(&list);
	if (list.count > 0)
		changes_begin_batch(watch, list.items, list.count);
}

/* Reads the events that have arrived. All files that one git command writes must be in the same batch, which is closed
 * when git releases its lock. When the function finds the lock released, it reads the events once more, because git may
 * have written further files before it released the lock. */
static void receive_changes(struct watch *watch, int64_t now_ms)
{
	struct debounce *debounce = &watch->debounce;
	const char *sentence;

	if (watcher_pending(watch->watcher) > 0 || debounce->held)
		debounce_check_lock(debounce, now_ms);
	watcher_turn(watch->watcher, now_ms);
	if (watcher_pending(watch->watcher) > 0 && !debounce->held && !debounce->seal) {
		debounce_check_lock(debounce, now_ms);
		if (!debounce->held && watch->noticed == 0)
			watcher_turn(watch->watcher, now_ms);
	}
	while ((sentence = watcher_notice(watch->watcher)) != NULL)
		print_notice(&watch->session.output, sentence);
	if (watcher_pending(watch->watcher) > 0 && watch->noticed == 0)
		watch->noticed = batch_clock();
}

void changes_take(struct watch *watch)
{
	int64_t now_ms = clock_ms();
	struct arena arena = {0};
	struct changes changes;

	receive_changes(watch, now_ms);
	if (server_waits(&watch->server))
		debounce_end_burst(&watch->debounce);
	if (!debounce_defers(&watch->debounce, now_ms)) {
		if (watcher_changes(watch->watcher, now_ms, &arena, &changes)) {
			take_changes(watch, &changes, &arena);
			watch->noticed = watcher_pending(watch->watcher) > 0 ? batch_clock() : 0;
		} else {
			debounce_rest(&watch->debounce, now_ms);
		}
	}
	arena_free(&arena);
	if (debounce_seals(&watch->debounce))
		batches_seal(&watch->session);
}
