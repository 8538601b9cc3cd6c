#include "commands/pass.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cache/counts.h"
#include "commands/ask.h"
#include "commands/keep.h"
#include "commands/outcome.h"
#include "commands/ruling.h"
#include "commands/select.h"
#include "commands/shard.h"
#include "commands/sharing.h"
#include "commands/staged.h"
#include "workers/machine.h"
#include "workers/pool.h"

/* Cases that may wait for the pool before the walk pauses: bounds memory, keeps every lane busy. */
enum { PENDING_CASES = 512, LANES_MAX = 4 };

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

/* Whatever is the same for all definitions of a run and could change a summary. */
static struct digest context_digest(const struct pass *pass, struct arena *arena)
{
	const struct case_options *cases = &pass->options->cases;
	const struct policy *policy = &pass->machine.policy;
	struct fields fields = {0};

	field_text(&fields, arena, "kernels", pass->reftest->kernels.face->digest);
	field_text(&fields, arena, "checker", pass->reftest->kernels.face->checker_digest);
	field_printf(&fields, arena, "sizes", "%d %d %d", cases->size[SIZE_SMALL], cases->size[SIZE_MEDIUM],
	             cases->size[SIZE_LARGE]);
	field_printf(&fields, arena, "edge", "%d", cases->edge);
	field_printf(&fields, arena, "backward", "%d", cases->backward);
	field_printf(&fields, arena, "workloads", "%d", cases->workloads);
	field_printf(&fields, arena, "seed", "%llu", (unsigned long long)cases->seed);
	field_add(&fields, arena, "tolerance", NULL, &cases->tolerance, sizeof cases->tolerance);
	field_add(&fields, arena, "tolerances", NULL, cases->by_dtype, sizeof cases->by_dtype);
	field_printf(&fields, arena, "device", "%s %d%s", policy->device_class, policy->any_gpu,
	             policy->elsewhere ? " elsewhere" : "");
	field_printf(&fields, arena, "torch", "%s %s", policy->torch != NULL ? policy->torch : "any",
	             policy->cuda != NULL ? policy->cuda : "none");
	field_text(&fields, arena, "ground_truths", truths_context(&pass->machine.truths, arena));
	return fields_digest(&fields);
}

/* All of it, or what a running watcher says is left to look at; then it has kept generated pytest files true, too. */
static int open_dataset(struct pass *pass, struct err *err)
{
	const struct pass_options *options = pass->options;
	const char *root = pass->reftest->root;
	struct vouched vouched;

	if (options->from_index) {
		pass->staged = staged_open(root, &pass->arena, &pass->dataset, err);
		return pass->staged == NULL ? -1 : 0;
	}
	if (options->ask_verified &&
	    ask_verified(root, &pass->context, options->ask_rows, &pass->arena, &vouched)) {
		pass->vouched = vouched.definitions;
		pass->vouched_elements = vouched.elements;
		pass->vouched_rows = vouched.rows;
		pass->cases_cached = vouched.cases;
	} else if (options->ask_count == 0 ||
	           !ask_paths(root, options->ask_names, options->ask_count, &pass->arena, &vouched)) {
		return dataset_scan(root, &pass->arena, &pass->dataset, err);
	}
	if (dataset_some(root, vouched.paths, vouched.path_count, &pass->arena, &pass->dataset, err) < 0)
		return -1;
	if (options->ask_verified) /* a watcher vouches for what it has seen */
		dataset_look_at_folders(&pass->dataset, &pass->arena);
	return 0;
}

static int find_root(struct reftest *reftest, const struct pass_options *options, struct err *err)
{
	return options->from_index && reftest->root[0] == '\0'
		   ? staged_root(reftest->root_given, reftest->root, sizeof reftest->root, err)
		   : reftest_root(reftest, err);
}

static int open_contents(struct pass *pass, struct err *err)
{
	pass->flights = &pass->own_flights;
	pass->contents = contents_open(pass->reftest->store, &pass->dataset, pass->staged, &pass->arena, err);
	return pass->contents == NULL ? EXIT_INTERNAL : 0;
}

int pass_open(struct pass *pass, struct reftest *reftest, const struct pass_options *options, struct err *err)
{
	struct err note;

	*pass = (struct pass){.reftest = reftest, .options = options};
	pass->dataset.fd = -1;
	if (find_root(reftest, options, err) < 0)
		return EXIT_USAGE;
	if (reftest_kernels_library(reftest, err) < 0)
		return EXIT_INTERNAL;
	reftest_store(reftest, options->dry_run, &note);
	if (note.text[0] != '\0')
		fprintf(stderr, "reftest: %s\n", note.text);
	if (machine_policy(reftest, options->device, options->python, options->ground_truth, &pass->arena, &pass->machine, err) < 0)
		return EXIT_USAGE;
	if (options->device_class != NULL &&
	    machine_accept(&pass->machine, options->device_class, &pass->arena, err) < 0)
		return EXIT_USAGE;
	pass->machine.policy.force = options->force;
	pass->machine.policy.cached_only = options->cached_only;
	pass->context = context_digest(pass, &pass->arena);
	if (open_dataset(pass, err) < 0)
		return options->from_index ? EXIT_USAGE : EXIT_INTERNAL;
	if (options->share)
		pass->sharing = sharing_open(reftest);
	return open_contents(pass, err);
}

int pass_open_some(struct pass *pass, struct reftest *reftest, const struct pass_options *options,
                   const struct machine_policy *machine, const char *const *paths, int count, struct err *err)
{
	*pass = (struct pass){.reftest = reftest, .options = options, .machine = *machine};
	pass->dataset.fd = -1;
	pass->machine.policy.force = options->force;
	pass->machine.policy.cached_only = options->cached_only;
	if ((paths == NULL ? dataset_scan(reftest->root, &pass->arena, &pass->dataset, err)
	                   : dataset_some(reftest->root, paths, count, &pass->arena, &pass->dataset, err)) < 0)
		return EXIT_INTERNAL;
	pass->context = context_digest(pass, &pass->arena);
	int code = open_contents(pass, err);

	return code == 0 && pass_select(pass, NULL, 0, NULL, 0, err) < 0 ? EXIT_INTERNAL : code;
}

void pass_lend(struct pass *pass, struct pool *pool, struct flights *flights)
{
	pass->pool = pool;
	pass->lent = pool != NULL;
	pass->flights = flights != NULL ? flights : &pass->own_flights;
}

void pass_close(struct pass *pass)
{
	if (pass->pool != NULL && !pass->lent)
		pool_close(pass->pool);
	sharing_close(pass->sharing, pass->interrupted);
	arena_free(&pass->later.arena);
	buf_free(&pass->definition_bytes);
	buf_free(&pass->workload_bytes);
	for (int i = 0; i < pass->count; i++)
		arena_free(&pass->outcomes[i]->arena);
	if (pass->staged != NULL)
		staged_close(pass->staged);
	if (pass->dataset.fd >= 0)
		dataset_close(&pass->dataset);
	arena_free(&pass->arena);
}

/* A problem "definitions/rmsnorm/…: why" concerns who selected by words only if they name that op_type's. */
static bool concerns(const struct pass *pass, const char *problem)
{
	const char *slash = strchr(problem, '/');
	size_t length = slash != NULL ? strcspn(slash + 1, "/:") : 0;

	if (slash == NULL || slash > strchr(problem, ':')) /* all of them */
		return true;
	for (int i = 0; i < pass->selected_count; i++)
		if (strlen(pass->selected[i]->op_type) == length &&
		    memcmp(pass->selected[i]->op_type, slash + 1, length) == 0)
			return true;
	return false;
}

static void select_problems(struct pass *pass, bool everything)
{
	const struct dataset *dataset = &pass->dataset;

	pass->problems = arena_array(&pass->arena, (size_t)dataset->problem_count, sizeof *pass->problems);
	for (int i = 0; i < dataset->problem_count; i++)
		if (everything || concerns(pass, dataset->problems[i]))
			pass->problems[pass->problem_count++] = dataset->problems[i];
}

int pass_select(struct pass *pass, const char *const *names, int name_count, const char *const *op_types,
                int op_type_count, struct err *err)
{
	const struct selection words = {names, op_types, name_count, op_type_count};
	int count = select_definitions(&pass->dataset, &words, &pass->arena, &pass->selected, err);

	pass->selected_count = count > 0 ? count : 0;
	select_problems(pass, name_count + op_type_count == 0);
	return count < 0 ? -1 : 0;
}

const char *outcome_name(const struct outcome *outcome, struct arena *arena)
{
	return arena_printf(arena, "%s/%s", outcome->file->op_type, outcome->file->name);
}

bool is_finding(const struct case_outcome *c)
{
	return c->test->beside && c->verdict != NULL && c->verdict->status != STATUS_PASSED &&
	       c->verdict->status != STATUS_SKIPPED && c->verdict->reason != REASON_GROUND_TRUTH;
}

/* ---- an outcome becomes final --------------------------------------------------------------------------------- */

/* From here on an answer is owed; until tell. */
static void wait_for_pool(struct outcome *outcome)
{
	outcome->started = seconds_now();
	outcome->pass->waiting += !outcome->waiting;
	outcome->waiting = true;
}

static void tell(struct outcome *outcome)
{
	outcome->pass->waiting -= outcome->waiting;
	outcome->waiting = false;
	if (outcome->pass->told != NULL)
		outcome->pass->told(outcome->pass, outcome);
}

/* Did a case find tensors in a file that are not those which were hashed? They may be back by now. */
static bool met_others(const struct outcome *outcome)
{
	for (int i = 0; i < outcome->case_count; i++)
		if (outcome->cases[i].verdict != NULL && outcome->cases[i].verdict->reason == REASON_CHANGED)
			return true;
	return false;
}

static void finish_outcome(struct outcome *outcome)
{
	bool ran = outcome->started > 0;

	outcome->seconds = ran ? seconds_now() - outcome->started : 0;
	bool stands = !ran || outcome_unchanged(outcome);

	if (!stands || (ran && met_others(outcome))) {
		outcome->changed = true;
		outcome->put_back = stands;
		for (int i = 0; i < outcome->case_count; i++)
			outcome->cases[i].kept = outcome->cases[i].kept && outcome->cases[i].cached;
	}
	keep_outcome(outcome);
	ruling_judge(outcome);
	if (!outcome->changed)
		outcome_note(outcome);
	tell(outcome);
	bool plain = outcome->status == STATUS_PASSED && outcome->known && !outcome->changed && outcome->findings == 0 &&
	             outcome->outside == NULL;

	if (plain && !outcome->pass->options->details) { /* counts are enough; 10 000 of them must stay small */
		outcome->cases = NULL;
		outcome->case_count = outcome->done = 0;
		outcome->definition = NULL;
		outcome->made = NULL;
		outcome->blobs = NULL;
		outcome->blob_count = 0;
		arena_free(&outcome->arena);
	}
}

/* Of which no cases could be made: it is invalid, or its text is not on this machine. */
static void caseless_outcome(struct outcome *outcome, const char *message)
{
	bool elsewhere = outcome->definition_look.remote || outcome->workload_look.remote;

	outcome->status = elsewhere ? STATUS_SKIPPED : STATUS_INVALID;
	outcome->reason = elsewhere ? REASON_MISSING_BLOB : REASON_NONE;
	outcome->known = true;
	outcome->message = arena_string(&outcome->arena, message);
	outcome->counts.status = (uint8_t)outcome->status;
	outcome->counts.reason = (uint8_t)outcome->reason;
	outcome->inputs = outcome->definition_look.seen.content;
	tell(outcome);
}

/* ---- from cases to verdicts ----------------------------------------------------------------------------------- */

static int default_lanes(void)
{
	int lanes = machine_cores() / 2;

	return lanes < 1 ? 1 : lanes > LANES_MAX ? LANES_MAX : lanes;
}

struct pool *pass_open_pool(const struct reftest *reftest, const struct pass_options *options,
                            const struct machine_policy *machine, struct err *err)
{
	const struct pool_options how = {
	    .device = machine->policy.device, .python = machine->python, .root = reftest->root,
	    .lanes = options->jobs > 0 ? options->jobs : default_lanes(), .timeout_s = options->timeout_s,
	    .staged = options->staged, .spares = options->spares,
	};

	return pool_open(&how, err);
}

static int need_pool(struct pass *pass, struct err *err)
{
	if (pass->pool == NULL)
		pass->pool = pass_open_pool(pass->reftest, pass->options, &pass->machine, err);
	return pass->pool == NULL ? -1 : 0;
}

static int submit_outcome(struct outcome *outcome, const struct job **jobs, int count, struct err *err)
{
	struct task task = {.reference = outcome->definition->reference, .jobs = jobs, .job_count = count, .owner = outcome,
	                    .urgent = outcome->pass->options->urgent};

	if (need_pool(outcome->pass, err) < 0)
		return -1;
	task.name = outcome_name(outcome, &outcome->arena);
	wait_for_pool(outcome);
	pool_submit(outcome->pass->pool, &task);
	return 0;
}

/* What cannot run any more is said of every case that waits for it. */
void pass_give_up(struct pass *pass, const char *why)
{
	pass->machine.cannot_run = arena_string(&pass->arena, why);
	pass->machine.cannot_reason = REASON_UNSUPPORTED_DEVICE;
	for (int i = 0; i < pass->count; i++) {
		struct outcome *outcome = pass->outcomes[i];

		if (!outcome->waiting)
			continue;
		for (int k = 0; k < outcome->case_count; k++)
			if (outcome->cases[k].verdict == NULL)
				ruling_settle(outcome, &outcome->cases[k],
					      ruling_not_run(outcome, REASON_UNSUPPORTED_DEVICE, why));
		finish_outcome(outcome);
	}
}

/* Gives a result to one case; the first of a flight ran, the others share its answer. */
static void settle_passenger(struct pass *pass, const struct passenger *who, const struct pool_result *result, bool ran,
			     bool keep)
{
	struct outcome *outcome = who->outcome;
	struct case_outcome *c = &outcome->cases[who->case_index];

	c->kept = keep;
	c->printed = result->printed;
	if (result->reached != NULL && outcome->outside == NULL)
		outcome->outside = outcome_reached(outcome, result->reached);
	c->witness = ruling_witness(result->verdict, &outcome->arena);
	if (ran) {
		pass->cases_run++;
	} else {
		pass->cases_cached++;
		c->cached = c->shared = true;
		c->why = "another case of this run has the same subject";
	}
	ruling_settle(outcome, c, result->verdict);
	if (outcome->done == outcome->case_count)
		finish_outcome(outcome);
}

/* Runs a case for itself, and for who waits behind it. */
static void run_promoted(const struct passenger *next)
{
	struct outcome *outcome = next->outcome;
	const struct job **jobs = arena_array(&outcome->arena, 1, sizeof *jobs);
	struct err err = {""};

	jobs[0] = outcome->cases[next->case_index].test->job;
	outcome->pass->cases_planned++;
	if (submit_outcome(outcome, jobs, 1, &err) < 0)
		pass_give_up(outcome->pass, err.text);
}

/* The answer that a case waited for is not one on its subject: it waits for another. */
static void board_anew(const struct passenger *who, const struct digest *subject)
{
	struct pass *pass = who->outcome->pass;

	if (flight_board(pass->flights, subject, who->outcome, who->case_index, &pass->arena))
		run_promoted(who);
}

/* Did the case run on what its subject says? The judge uses no other tensors than those that were hashed. Where files of a
 * definition have others now, or none, that is told of this definition and of no other with equal tensors. */
static bool is_on_subject(const struct verdict *verdict)
{
	return verdict->reason != REASON_CHANGED && verdict->reason != REASON_MISSING_BLOB;
}

static void take_result(struct pass *pass, const struct pool_result *result)
{
	const struct outcome *outcome = result->owner;
	const struct passenger *who = NULL;
	struct digest subject;

	for (int i = 0; i < outcome->case_count && who == NULL; i++)
		if (outcome->cases[i].test->job == result->job) {
			subject = outcome->cases[i].test->subject;
			who = flight_land(pass->flights, &subject);
		}
	bool holds = is_on_subject(result->verdict);

	for (bool ran = true; who != NULL; who = who->next, ran = false)
		if (holds || who->outcome == outcome)
			settle_passenger(who->outcome->pass, who, result, ran, result->keep && (ran || holds));
		else
			board_anew(who, &subject);
}

/* A result lives in the pass's arena, for several outcomes may share it. */
void pass_take_results(struct pool *pool)
{
	struct pool_result result;
	const struct outcome *owner;

	while ((owner = pool_next_owner(pool)) != NULL && pool_next(pool, &owner->pass->arena, &result))
		take_result(owner->pass, &result);
}

static bool was_interrupted(struct pass *pass, int timeout_ms)
{
	struct pollfd fds[2] = {{.fd = pass->reftest->signals, .events = POLLIN},
	                        {.fd = pass->pool != NULL ? pool_fd(pass->pool) : -1, .events = POLLIN}};

	poll(fds, 2, timeout_ms);
	if ((fds[0].revents & POLLIN) != 0)
		pass->interrupted = true;
	return pass->interrupted;
}

/* One turn of the loop: waits for the pool or a signal, takes what has come. */
static void pump(struct pass *pass)
{
	struct err err = {""};

	if (was_interrupted(pass, -1))
		return;
	int rc = pool_dispatch(pass->pool, &err);

	pass_take_results(pass->pool);
	if (rc < 0) {
		pool_close(pass->pool);
		pass->pool = NULL;
		pass_give_up(pass, err.text);
	}
}

/* Verdicts that came before an interrupt are true and are kept; the rest of their definitions is unknown. */
static void keep_finished_cases(struct pass *pass)
{
	for (int i = 0; i < pass->count; i++) {
		struct outcome *outcome = pass->outcomes[i];

		if (!outcome->waiting || outcome->dropped)
			continue;
		if (outcome_unchanged(outcome))
			keep_outcome(outcome);
		ruling_judge(outcome);
	}
}

static void plan_outcome(struct outcome *outcome)
{
	struct pass *pass = outcome->pass;
	const struct job **jobs = arena_array(&outcome->arena, (size_t)outcome->case_count, sizeof *jobs);
	struct err err = {""};
	int count = 0, waiting = 0;

	for (int i = 0; i < outcome->case_count; i++) {
		const struct test_case *test = outcome->cases[i].test;

		if (!ruling_decide(outcome, &outcome->cases[i]))
			continue;
		waiting++;
		if (flight_board(pass->flights, &test->subject, outcome, i, &pass->arena))
			jobs[count++] = test->job;
	}
	pass->cases_planned += count;
	ruling_read_wholly(outcome);
	if (outcome->done == outcome->case_count || pass->options->dry_run)
		finish_outcome(outcome);
	else if (count == 0 && waiting > 0)
		wait_for_pool(outcome); /* every case of it waits for another definition's */
	else if (submit_outcome(outcome, jobs, count, &err) < 0) {
		wait_for_pool(outcome);
		pass_give_up(pass, err.text);
	}
}

static struct outcome *add_outcome(struct pass *pass, const struct outcome *outcome)
{
	struct outcome *kept = arena_alloc(&pass->arena, sizeof *kept);

	*kept = *outcome;
	pass->outcomes[pass->count++] = kept;
	return kept;
}

/* Ten thousand definitions of which nothing is to be told but their number take no memory each. */
static bool only_count(struct outcome *outcome)
{
	struct pass *pass = outcome->pass;

	if (pass->options->each || outcome->status != STATUS_PASSED || outcome->recalled)
		return false;
	pass->answered++;
	pass->answered_elements += outcome->counts.elements;
	if (pass->counted != NULL)
		pass->counted(pass, outcome);
	return true;
}

/* The outcome that was added last belongs to another shard: nothing is told of it. */
static void leave_to_another(struct outcome *outcome)
{
	outcome->pass->count--;
	outcome->pass->elsewhere++;
	arena_free(&outcome->arena);
}

static void visit(struct pass *pass, const struct dataset_file *file, struct buf *definition, struct buf *workload)
{
	struct outcome scratch = {.file = file, .pass = pass, .workload = dataset_workload(&pass->dataset, file)};
	struct err err = {""};
	bool looked = outcome_look(&scratch, definition, workload, false, &err) == 0;
	bool answered = looked && (outcome_from_summary(&scratch) || outcome_from_recall(&scratch));

	if (answered && only_count(&scratch))
		return;
	struct outcome *outcome = add_outcome(pass, &scratch);

	if (answered) {
		tell(outcome);
		return;
	}
	/* To be parsed: what was not read is read now, and what is hashed is what is parsed. */
	if (!looked || outcome_look(outcome, definition, workload, true, &err) < 0 ||
	    outcome_make_cases(outcome, definition, workload, &err) < 0) {
		outcome->elsewhere = !shard_has(&pass->options->cases.shard, outcome_name(outcome, &outcome->arena));
		if (!outcome->elsewhere)
			caseless_outcome(outcome, err.text);
		else
			leave_to_another(outcome);
		return;
	}
	if (outcome->elsewhere) {
		leave_to_another(outcome);
		return;
	}
	if (!sharing_defers(outcome))
		plan_outcome(outcome);
	was_interrupted(pass, 0);
}

/* ---- in steps --------------------------------------------------------------------------------------------------- */

int pass_begin(struct pass *pass, struct err *err)
{
	pass->started = seconds_now();
	pass->outcomes = arena_array(&pass->arena, (size_t)pass->selected_count, sizeof *pass->outcomes);
	return reftest_signals(pass->reftest, err);
}

bool pass_visit(struct pass *pass)
{
	struct outcome *answered = sharing_next(pass, pass->visited >= pass->selected_count);

	if (answered != NULL) {
		plan_outcome(answered);
		return true;
	}
	if (pass->visited >= pass->selected_count)
		return false;
	const struct dataset_file *file = pass->selected[pass->visited++];

	if (file != NULL) /* else it was dropped before its turn */
		visit(pass, file, &pass->definition_bytes, &pass->workload_bytes);
	return true;
}

bool pass_done(const struct pass *pass)
{
	return pass->visited >= pass->selected_count && pass->waiting == 0;
}

/* For `cache stats`. A pass that only looks is no run. */
static void count_run(const struct pass *pass)
{
	struct counts counts = {.runs = 1, .hits = pass->cases_cached};

	for (int i = 0; i < LACK_COUNT; i++)
		counts.misses[i] = pass->misses[i];
	if (!pass->options->dry_run && pass->reftest->store != NULL)
		counts_add(pass->reftest->root, &counts);
}

/* What the template says of its torch is what counts: verdicts are stored under that. If it was expected to have another, what
 * this pass believed of stored verdicts was of that one, and nothing more is to be concluded from it. */
static bool has_other_torch(const struct pass *pass)
{
	const char *expected = pass->machine.policy.torch, *found = pass->pool != NULL ? pool_torch(pass->pool) : NULL;

	if (expected == NULL || found == NULL || strcmp(expected, found) == 0)
		return false;
	fprintf(stderr,
	        "reftest: %s ran references with torch %s, not with the %s that it was said to have; cached verdicts above "
	        "are of the latter: run reftest again\n",
	        pass->machine.python, found, expected);
	machine_forget_torch(pass->reftest, &pass->machine);
	return true;
}

void pass_end(struct pass *pass)
{
	struct err note = {""};
	bool other_torch = has_other_torch(pass);

	if (pass->pool != NULL && !pass->lent)
		pool_close(pass->pool);
	pass->pool = NULL;
	if (pass->interrupted)
		keep_finished_cases(pass);
	keep_waiting(pass);
	/* A summary of verdicts that are not in the store would be a lie. */
	if (!pass->options->dry_run && pass->not_kept == NULL && !other_torch && contents_write(pass->contents, &note) < 0)
		pass->not_kept = arena_string(&pass->arena, note.text);
	pass->seconds = seconds_now() - pass->started;
	count_run(pass);
}

static void drop_outcome(struct outcome *outcome)
{
	struct pass *pass = outcome->pass;

	if (pass->pool != NULL)
		pool_cancel(pass->pool, outcome);
	outcome->dropped = true;
	outcome->known = outcome->waiting = false;
	pass->waiting--;
	for (int i = 0; i < outcome->case_count; i++) {
		const struct passenger *next = flight_leave(pass->flights, &outcome->cases[i].test->subject, outcome, i);

		if (next != NULL && next->outcome != outcome)
			run_promoted(next);
	}
}

bool pass_drop(struct pass *pass, const char *path)
{
	for (int i = pass->visited; i < pass->selected_count; i++)
		if (pass->selected[i] != NULL && strcmp(pass->selected[i]->path, path) == 0) {
			pass->selected[i] = NULL;
			return true;
		}
	for (int i = 0; i < pass->count; i++)
		if (pass->outcomes[i]->waiting && strcmp(pass->outcomes[i]->file->path, path) == 0) {
			drop_outcome(pass->outcomes[i]);
			return true;
		}
	return false;
}

int pass_run(struct pass *pass, struct err *err)
{
	if (pass_begin(pass, err) < 0)
		return -1;
	while (!pass->interrupted && pass_visit(pass))
		while (pass->pool != NULL && pool_pending(pass->pool) > PENDING_CASES && !pass->interrupted)
			pump(pass);
	while (pass->pool != NULL && pool_pending(pass->pool) > 0 && !pass->interrupted)
		pump(pass);
	pass_end(pass);
	return 0;
}
