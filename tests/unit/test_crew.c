/* crew: which children are made, and when. The template is the real one without torch: its children are "ready" after
 * a moment, which is all that a crew knows of them. */
#include "workers/crew.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PLACES = 8, AT_ONCE = 3, GENEROUS_MS = 60000 };

struct setting {
	struct crew crew;
	int epoll;
	char script[64];
};

static void write_template(char path[64])
{
	FILE *file;
	int fd;

	strcpy(path, "/tmp/reftest-test-crew-XXXXXX");
	fd = mkstemp(path);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	assert_non_null(file);
	fprintf(file, "import importlib.util, sys, time\n"
		      "spec = importlib.util.spec_from_file_location('runner', 'workers/runner.py')\n"
		      "runner = importlib.util.module_from_spec(spec)\n"
		      "spec.loader.exec_module(runner)\n"
		      "runner.warm_up = lambda *how: time.sleep(0.05)\n"
		      "runner.further_steps = lambda device: ()\n"
		      "channel = runner.Channel(3)\n"
		      "channel.send({'template': {'torch': 'none', 'cuda': None, 'python': 'any'}})\n"
		      "template = runner.Template(channel, {'device': sys.argv[1], 'threads': 1})\n"
		      "try:\n"
		      "    template.serve()\n"
		      "finally:\n"
		      "    template.close()\n");
	assert_int_equal(fclose(file), 0);
}

static void open_crew(struct setting *setting, const char *device)
{
	struct err err = {""};

	write_template(setting->script);
	setenv("REFTEST_RUNNER", setting->script, 1);
	setting->epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_true(setting->epoll >= 0);
	if (crew_open(&setting->crew, "/usr/bin/python3", device, PLACES, 1, setting->epoll, &err) != 0)
		fail_msg("%s", err.text);
}

static void close_crew(struct setting *setting)
{
	crew_close(&setting->crew);
	close(setting->epoll);
	unlink(setting->script);
}

static int on_their_way(const struct crew *crew)
{
	int count = 0;

	for (int i = 0; i < crew->room; i++)
		count += crew->children[i].state == CHILD_FORKING || crew->children[i].state == CHILD_WARMING;
	return count;
}

/* Until so many spares are ready; returns how many children were on their way at once, at most. */
static int gather(struct setting *setting, int spares)
{
	int64_t end = clock_ms() + GENEROUS_MS;
	struct epoll_event event;
	struct err err = {""};
	int most = 0;

	while (crew_spares(&setting->crew) < spares && clock_ms() < end) {
		if (crew_want(&setting->crew, spares, &err) != 0 ||
		    crew_dispatch(&setting->crew, clock_ms(), &err) != 0)
			fail_msg("%s", err.text);
		most = on_their_way(&setting->crew) > most ? on_their_way(&setting->crew) : most;
		epoll_wait(setting->epoll, &event, 1, 10);
	}
	assert_int_equal(crew_spares(&setting->crew), spares);
	return most;
}

static void a_gpus_contexts_are_made_a_few_at_a_time(void **state)
{
	struct setting setting;

	(void)state;
	open_crew(&setting, "cuda:0");
	assert_int_equal(gather(&setting, PLACES), AT_ONCE);
	for (int i = 0; i < PLACES; i++) { /* and so when they are made anew */
		struct child *child = crew_take(&setting.crew);

		assert_non_null(child);
		crew_drop(&setting.crew, child);
	}
	assert_int_equal(gather(&setting, PLACES), AT_ONCE);
	close_crew(&setting);
}

static void a_cpus_children_are_made_all_at_once(void **state)
{
	struct setting setting;

	(void)state;
	open_crew(&setting, "cpu");
	assert_int_equal(gather(&setting, PLACES), PLACES);
	close_crew(&setting);
}

static enum child_event see(struct setting *setting, struct child *child, int64_t now_ms)
{
	struct err err = {""};
	size_t length;
	char *line;

	if (crew_dispatch(&setting->crew, now_ms, &err) != 0)
		fail_msg("%s", err.text);
	return child_next(child, now_ms, &line, &length);
}

/* Its socket is closed long before its end is told, as with a GPU's context to be taken down in between. */
static void a_slow_end_is_still_told_as_what_it_was(void **state)
{
	enum child_event event = CHILD_NOTHING;
	struct setting setting;
	struct child *child;
	size_t length;
	char *line;

	(void)state;
	open_crew(&setting, "cpu");
	gather(&setting, 1);
	child = crew_take(&setting.crew);
	assert_non_null(child);
	assert_int_equal(kill(child->pid, SIGSEGV), 0);
	while (child->channel.fd >= 0)
		assert_int_equal(child_next(child, clock_ms(), &line, &length), CHILD_NOTHING);
	assert_int_equal(child_next(child, clock_ms() + GENEROUS_MS, &line, &length), CHILD_NOTHING);
	assert_true(child->shut);
	for (int64_t end = clock_ms() + GENEROUS_MS; event != CHILD_ENDED && clock_ms() < end; usleep(1000))
		event = see(&setting, child, clock_ms());
	assert_int_equal(event, CHILD_ENDED);
	assert_false(child->shut);
	assert_true(WIFSIGNALED(child->status) && WTERMSIG(child->status) == SIGSEGV);
	close_crew(&setting);
}

static void the_spare_that_waited_longest_is_taken(void **state)
{
	const struct child *oldest = NULL;
	struct setting setting;

	(void)state;
	open_crew(&setting, "cuda:0");
	gather(&setting, PLACES);
	for (int i = 0; i < setting.crew.room; i++) {
		struct child *child = &setting.crew.children[i];

		if (child->state != CHILD_SPARE)
			continue;
		child->ready_ms = 1000 - i;
		oldest = child;
	}
	assert_ptr_equal(crew_take(&setting.crew), oldest);
	assert_int_equal(crew_spares(&setting.crew), PLACES - 1);
	close_crew(&setting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_gpus_contexts_are_made_a_few_at_a_time),
	    cmocka_unit_test(a_cpus_children_are_made_all_at_once),
	    cmocka_unit_test(a_slow_end_is_still_told_as_what_it_was),
	    cmocka_unit_test(the_spare_that_waited_longest_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
