#include "fleet/worker.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/show.h"
#include "engine/definition_files.h"
#include "engine/disk_files.h"
#include "engine/pool_case_runner.h"
#include "engine/run_defaults.h"
#include "engine/run_pools.h"
#include "fleet/answer.h"
#include "fleet/lines.h"
#include "fleet/outbox.h"
#include "fleet/request.h"
#include "remote/signature.h"
#include "workers/pool/pool.h"

/* A worker accepts more requests than it can run at once. Every lane (one process that runs references and one that
 * compares) therefore stays busy while answers and new requests are in transit. For each lane, one request runs and one
 * waits (REQUESTS_OF_LANE), and REQUESTS_MORE further requests wait. A worker accepts no more requests than these,
 * because other workers may be free to run the rest. */
enum { REQUESTS_OF_LANE = 2, REQUESTS_MORE = 2, REQUESTS_MOST = 64 };

struct worker;

/* A request that is being verified. */
struct item {
	struct run run; /* must be the first member, because on_result converts a pointer to it into a pointer to the
			 * item */
	struct item *next;
	struct worker *worker;
	struct arena arena;
	struct work_request request;
	struct run_options options;
	struct dataset dataset;
	struct outbox outbox;
	struct result *result; /* NULL: the result is not final yet */
};

struct worker {
	struct program *program;
	struct run_options options;
	struct machine_policy machine;
	struct pool *pool;
	struct signing_key *signer;
	struct lines lines;
	struct item *first;
	int count, most;   /* the number of requests that are being verified, and its limit */
	struct buf out;    /* the buffer for the answer that is being written */
	bool reader_gone;
	struct arena arena;
};

/* ---- answers ---------------------------------------------------------------------------------------------------- */

static void send_out(struct worker *worker)
{
	fwrite(worker->out.data, 1, worker->out.length, stdout);
	fflush(stdout);
	buf_clear(&worker->out);
	worker->reader_gone = worker->reader_gone || ferror(stdout) != 0;
}

static void send_error(struct worker *worker, const char *id, const char *message)
{
	answer_write_error(&worker->out, id, message);
	send_out(worker);
}

/* Returns the first requested case that does not exist, or NULL. */
static const char *missing_case(const struct item *item)
{
	const struct result *result = item->result;

	for (const char *const *id = item->request.cases; id != NULL && *id != NULL; id++) {
		int at = 0;

		while (at < result->case_count && strcmp(result->cases[at].test->id, *id) != 0)
			at++;
		if (at == result->case_count)
			return *id;
	}
	return NULL;
}

static void send_result(struct item *item)
{
	struct worker *worker = item->worker;
	const char *missing = item->result->definition != NULL ? missing_case(item) : NULL;
	struct err err;

	if (missing != NULL) {
		err_set(&err, "%s has no case '%s' with the options of this worker", item->request.definition,
			err_show(missing).text);
		send_error(worker, item->request.id, err.text);
		return;
	}
	answer_write_result(&worker->out, item->request.id, item->result, &item->outbox.lines);
	send_out(worker);
}

/* ---- one request ------------------------------------------------------------------------------------------------ */

static void on_result(struct run *run, struct result *result)
{
	((struct item *)run)->result = result;
}

static void free_item(struct item *item)
{
	if (item->run.program != NULL)
		run_close(&item->run);
	else if (item->dataset.fd >= 0)
		dataset_close(&item->dataset);
	outbox_free(&item->outbox);
	arena_free(&item->arena);
	free(item);
}

static int open_run(struct item *item, struct err *err)
{
	struct worker *worker = item->worker;
	const char *path = arena_printf(&item->arena, "definitions/%s.json", item->request.definition);
	const struct run_parts parts = {.machine = &worker->machine,
					.dataset = &item->dataset,
					.files = disk_files(&item->dataset),
					.records = outbox_store(&item->outbox),
					.runner = pool_runner(worker->pool)};

	if (dataset_some(worker->program->root, &path, 1, &item->arena, &item->dataset, err) < 0)
		return -1;
	if (item->dataset.definition_count == 0)
		return err_set(err, "there is no definition %s below %s", item->request.definition, worker->program->root);
	item->options.cases.only = item->request.cases;
	if (run_open_parts(&item->run, worker->program, &item->options, &parts, err) != 0)
		return -1;
	item->run.on_result = on_result;
	return run_begin(&item->run, err);
}

/* Checks that the digest of the definition's files is equal to the digest in the request. The digests are compared
 * before the first case of the run. */
static int check_content(struct item *item, struct err *err)
{
	const struct result *result = item->run.count > 0 ? item->run.results[0] : NULL;
	char here[DIGEST_HEX], wanted[DIGEST_HEX];

	if (result != NULL && digest_equal(&result->inputs, &item->request.content))
		return 0;
	digest_hex(&item->request.content, wanted);
	digest_hex(result != NULL ? &result->inputs : &(struct digest){{0}}, here);
	return err_set(err, "the files of %s on this machine differ from those on the machine that made the request: "
	    "the digest of these files is %s, and the digest in the request is %s",
		       item->request.definition, here, wanted);
}

/* Plans the cases of a request and adds them to the pool's queue. */
static int begin_item(struct item *item, struct err *err)
{
	if (open_run(item, err) < 0)
		return -1;
	while (run_visit(&item->run))
		;
	if (check_content(item, err) == 0)
		return 0;
	if (!run_done(&item->run))
		run_drop(&item->run, item->run.selected[0]->path);
	return -1;
}

static void take_request(struct worker *worker, const char *line, size_t length)
{
	struct item *item = calloc(1, sizeof *item);
	struct err err = {""};

	if (item == NULL)
		die_no_memory();
	item->worker = worker;
	item->dataset.fd = -1;
	item->options = worker->options;
	item->outbox.signer = worker->signer;
	if (request_read(line, length, worker->lines.number, &item->arena, &item->request, &err) < 0 ||
	    begin_item(item, &err) < 0) {
		send_error(worker, item->request.id, err.text);
		free_item(item);
		return;
	}
	item->next = worker->first;
	worker->first = item;
	worker->count++;
}

/* Begins the requests that were read, but stops when worker->most requests are being verified. Returns whether more
 * bytes must be read. */
static bool take_requests(struct worker *worker)
{
	const char *line;
	size_t length;

	while (worker->count < worker->most) {
		enum line_kind kind = lines_next(&worker->lines, &line, &length);

		if (kind == LINE_NONE)
			return true;
		if (kind == LINE_WHOLE) {
			take_request(worker, line, length);
			continue;
		}
		struct err err;

		err_set(&err, "request:%lld: the line has more than %d bytes", (long long)worker->lines.number,
			REQUEST_LINE_MAX);
		send_error(worker, NULL, err.text);
	}
	return false;
}

/* Answers the requests whose cases have all run. */
static void finish_items(struct worker *worker)
{
	for (struct item **at = &worker->first; *at != NULL;) {
		struct item *item = *at;

		if (item->result == NULL || !run_done(&item->run)) {
			at = &item->next;
			continue;
		}
		run_end(&item->run);
		send_result(item);
		*at = item->next;
		worker->count--;
		free_item(item);
	}
}

/* ---- the loop --------------------------------------------------------------------------------------------------- */

/* Waits until there is something to do. Returns false if the worker must end at once. */
static bool wait_for_work(const struct worker *worker, bool wants_input, bool *readable)
{
	struct pollfd fds[] = {{.fd = worker->program->signals, .events = POLLIN},
			       {.fd = STDOUT_FILENO}, /* POLLERR: the reader of the answers has closed the pipe */
			       {.fd = pool_runner(worker->pool).calls->fd(worker->pool), .events = POLLIN},
			       {.fd = wants_input && !worker->lines.ended ? STDIN_FILENO : -1, .events = POLLIN}};

	poll(fds, sizeof fds / sizeof fds[0], -1);
	*readable = (fds[3].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
	return (fds[0].revents & POLLIN) == 0 && (fds[1].revents & POLLERR) == 0;
}

static int dispatch(struct worker *worker, struct err *err)
{
	int rc = pool_dispatch(worker->pool, err);

	run_take_answers(pool_runner(worker->pool));
	return rc;
}

static int work(struct worker *worker, struct err *err)
{
	for (;;) {
		bool wants_input = take_requests(worker), readable = false;

		finish_items(worker);
		if (worker->reader_gone)
			return EXIT_INTERRUPTED;
		if (worker->count < worker->most && !wants_input)
			continue;
		if (wants_input && worker->lines.ended && worker->count == 0)
			return EXIT_VERIFIED;
		if (!wait_for_work(worker, wants_input, &readable))
			return EXIT_INTERRUPTED;
		if (readable && lines_fill(&worker->lines, STDIN_FILENO) < 0)
			return err_errno(err, "standard input cannot be read"), EXIT_INTERNAL;
		if (dispatch(worker, err) < 0)
			return EXIT_INTERNAL; /* the sender passes unanswered requests to another worker */
	}
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static int choose_machine(struct worker *worker, struct err *err)
{
	struct program *program = worker->program;
	struct run_options *options = &worker->options;

	if (program_root(program, err) < 0 || program_settings(program, err) < 0)
		return EXIT_USAGE;
	if (program_kernels(program, err) < 0)
		return EXIT_INTERNAL;
	run_defaults(program->settings, options);
	if (machine_policy(program, options->device, options->python, options->ground_truth, &worker->arena,
			   &worker->machine, err) < 0)
		return EXIT_USAGE;
	if (worker->machine.cannot_run != NULL)
		return err_set(err, "%s", worker->machine.cannot_run), EXIT_UNVERIFIED;
	if (worker->machine.device_count > 1)
		return err_set(err, "a worker uses one device, but --device %s names %d devices; start one worker for each device, "
				    "as in --device cuda:0", options->device, worker->machine.device_count),
		       EXIT_USAGE;
	return 0;
}

static int open_worker(struct worker *worker, struct err *err)
{
	int code = choose_machine(worker, err);

	if (code != 0)
		return code;
	if (signature_open(worker->program->secrets.text[SECRET_CACHE_KEY], &worker->signer, err) < 0)
		return EXIT_USAGE;
	if (program_signals(worker->program, err) < 0)
		return EXIT_INTERNAL;
	worker->pool = run_open_pool(worker->program, &worker->options, &worker->machine, err);
	if (worker->pool == NULL)
		return EXIT_INTERNAL;
	pool_warm(worker->pool);
	int most = REQUESTS_OF_LANE * run_lanes(&worker->options, &worker->machine) + REQUESTS_MORE;

	worker->most = most < REQUESTS_MOST ? most : REQUESTS_MOST;
	return 0;
}

static void close_worker(struct worker *worker)
{
	struct item *next;

	if (worker->pool != NULL)
		pool_close(worker->pool);
	for (struct item *item = worker->first; item != NULL; item = next) {
		next = item->next;
		free_item(item);
	}
	signing_key_close(worker->signer);
	lines_free(&worker->lines);
	buf_free(&worker->out);
	arena_free(&worker->arena);
}

int worker_run(struct program *program, const struct run_options *options, struct err *err)
{
	struct worker worker = {.program = program, .options = *options, .lines.most = REQUEST_LINE_MAX};
	int code = open_worker(&worker, err);

	if (code == 0) {
		const struct worker_facts facts = {program, &worker.machine, worker.most, worker.signer};

		answer_write_worker(&worker.out, &facts);
		send_out(&worker);
		code = work(&worker, err);
	}
	close_worker(&worker);
	return code;
}
