/* test_server - the socket of a watcher: a watcher removes its own socket and no other. */
#include "watcher/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct world {
	char top[64], root[80], elsewhere[80];
	struct server one, other;
};

static void make_root(const char *root)
{
	char path[128];

	snprintf(path, sizeof path, "%s/.reftest", root);
	assert_int_equal(mkdir(root, 0700), 0);
	assert_int_equal(mkdir(path, 0700), 0);
}

static bool has(const char *root, const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof path, "%s/.reftest/%s", root, name);
	return stat(path, &st) == 0;
}

static void open_door(struct server *server, const char *root)
{
	struct err err = {""};

	server_init(server);
	assert_int_equal(server_open(server, root, &err), 0);
	assert_true(server->listener >= 0);
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	assert_non_null(w);
	strcpy(w->top, "/tmp/reftest-door-XXXXXX");
	assert_non_null(mkdtemp(w->top));
	snprintf(w->root, sizeof w->root, "%s/root", w->top);
	snprintf(w->elsewhere, sizeof w->elsewhere, "%s/elsewhere", w->top);
	make_root(w->root);
	open_door(&w->one, w->root);
	server_init(&w->other);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	char command[128];

	server_close(&w->one);
	server_close(&w->other);
	snprintf(command, sizeof command, "rm -rf %s", w->top);
	assert_int_equal(system(command), 0);
	free(w);
	return 0;
}

static void its_own_is_taken_away(void **state)
{
	struct world *w = *state;
	struct err err = {""};

	assert_int_equal(server_open(&w->other, w->root, &err), -1); /* a root has at most one watcher */
	server_close(&w->one);
	assert_false(has(w->root, "watch.sock"));
	open_door(&w->other, w->root);
}

static void its_own_is_taken_away_where_it_was_moved_to(void **state)
{
	struct world *w = *state;

	assert_int_equal(rename(w->root, w->elsewhere), 0);
	server_close(&w->one);
	assert_false(has(w->elsewhere, "watch.sock"));
}

static void that_of_another_watcher_in_the_roots_place_stays(void **state)
{
	struct world *w = *state;

	assert_int_equal(rename(w->root, w->elsewhere), 0);
	make_root(w->root);
	open_door(&w->other, w->root);
	server_close(&w->one);
	assert_true(has(w->root, "watch.sock"));
}

static void that_of_another_watcher_in_the_same_folder_stays(void **state)
{
	struct world *w = *state;
	char lock[128];

	snprintf(lock, sizeof lock, "%s/.reftest/watch.lock", w->root);
	assert_int_equal(unlink(lock), 0); /* somebody deleted the lock file */
	open_door(&w->other, w->root);
	server_close(&w->one);
	assert_true(has(w->root, "watch.sock"));
}

/* Each cookie file must have other content than the previous one, because a watcher that polls does not notice a file
 * whose content is unchanged. */
static void each_cookie_differs(void **state)
{
	struct world *w = *state;
	char path[128], text[2][64] = {"", ""};

	snprintf(path, sizeof path, "%s/" SERVER_COOKIE, w->root);
	for (int i = 0; i < 2; i++) {
		struct buf question = {0}, answer = {0};
		pid_t asker = fork();

		if (asker == 0) {
			buf_text(&question, "{}\n");
			server_ask(w->root, &question, &answer, NULL);
			_exit(0);
		}
		while (!server_turn(&w->one))
			usleep(1000);
		FILE *file = fopen(path, "r");

		assert_non_null(file);
		assert_true(fread(text[i], 1, sizeof text[i] - 1, file) > 0);
		fclose(file);
		for (int v = 0; v < SERVER_CLIENTS; v++)
			if (w->one.clients[v].fd >= 0)
				shutdown(w->one.clients[v].fd, SHUT_RDWR);
		assert_int_equal(waitpid(asker, NULL, 0), asker);
		server_turn(&w->one);
	}
	assert_string_not_equal(text[0], text[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(its_own_is_taken_away, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(its_own_is_taken_away_where_it_was_moved_to, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(that_of_another_watcher_in_the_roots_place_stays, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(that_of_another_watcher_in_the_same_folder_stays, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(each_cookie_differs, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
