/* lane - the state machine of a lane (a judge and its runner). For each case, the lane sends {"case"} to the judge.
 * Then it passes each {"run": …} of the judge on to the runner, and each answer of the runner on to the judge, until
 * the judge gives a verdict. The runner loads the reference while the judge fills the first inputs. If the definition's
 * own code makes inputs, another child of the zygote runs this code first (lane_maker.c). If the runner fails, the lane
 * sends {"blame": …} to the judge, which turns the failure into a verdict.
 *
 *            work                 {"case"}            {"run"}             {"ran"}
 *   IDLE ──────────▶ WAITING ──────────────▶ WORKING ─────────▶ (runner) ────────▶ (judge) ──▶ verdict ──▶ next case
 *                    for a judge and                    ◀───────────────────────────┘ second run
 *                    a spare runner
 *
 * The lane can cancel a case at any time. The judge answers messages in order. Therefore the lane counts how many
 * answers about the cancelled case are still to come, and ignores that many answers. A runner that breaks the protocol,
 * dies or times out is killed, and the next case gets a new runner. If the judge or the runner was killed, for example
 * by another reference or by the kernel's OOM killer, the case is retried once, while no other lane works. The data
 * that a retried case keeps from its first attempt is in struct queued (definition_order.h). */
#include "workers/pool/lane.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/trace.h"
#include "workers/pool/isolation.h"
#include "workers/pool/lane_internal.h"
#include "workers/pool/machine_resources.h"
#include "workers/pool/memory_limit.h"
#include "workers/pool/read_file.h"

enum {
	JUDGE_FAILURES = 2,
	ALONE_MS = 5000,     /* a case that must run alone waits at most this long for the end of spare runners */
	MESSAGE_MAX = 64 << 10 /* the largest size in bytes of a runner's error message in a verdict */
};

const struct job *lane_current_job(const struct lane *lane)
{
	return lane->work->task.jobs[lane->work->job];
}

/* Returns the text that the reference has printed since the previous call. If the text is too long, returns only its
 * last part, after a note about the dropped part. Returns NULL if the reference printed nothing. */
char *lane_printed(struct child *child)
{
	struct buf text = {0};
	size_t length, cut;

	child_listen(child);
	length = child->printed.length;
	cut = length > RUNNER_POOL_PRINTED ? length - RUNNER_POOL_PRINTED : 0;
	if (child->printed_bytes > (int64_t)(length - cut))
		buf_printf(&text, "[the first %lld bytes of the printed text were dropped]\n",
		           (long long)child->printed_bytes - (long long)(length - cut));
	if (length > cut)
		buf_add(&text, child->printed.data + cut, length - cut);
	for (size_t i = 0; i < text.length; i++)
		if (text.data[i] == '\0') /* replaces a NUL, because it would end the C string */
			text.data[i] = '?';
	buf_clear(&child->printed);
	child->printed_bytes = 0;
	return text.data;
}

/* Adds the verdict of the current case to the pool's answers, unless the case has a result from an earlier attempt. */
static void add_answer(struct pool_shared *shared, struct lane *lane, const char *text, size_t length)
{
	struct answer answer = {.owner = lane->work->task.owner, .job = lane_current_job(lane), .accident = lane->accident,
	                        .printed = lane->printed, .seconds = lane_seconds_now() - lane->started,
	                        .time = (int64_t)time(NULL), .reached = lane->work->reached,
	                        .isolation = lane->work->isolation, .own_because = lane->work->own_because,
	                        .stateless = lane->work->stateless,
	                        .follows = lane->first_job == 0};

	if (answer.printed == NULL && lane->child != NULL)
		answer.printed = lane_printed(lane->child);
	lane->printed = NULL;
	if (lane->work->job >= lane->work->repeated)
		answers_add(&shared->answers, &answer, text, length);
	else
		free(answer.printed);
}

/* ---- a lane's child ---- */

static void drop_run(struct lane *lane)
{
	free(lane->run);
	lane->run = NULL;
	if (lane->run_fd >= 0)
		close(lane->run_fd);
	lane->run_fd = -1;
}

void lane_drop_child(struct pool_shared *shared, struct lane *lane)
{
	drop_run(lane);
	lane_maker_drop(shared, lane);
	if (lane->child != NULL) {
		free(lane->printed);
		lane->printed = lane_printed(lane->child);
		zygote_drop(&shared->runners, lane->child);
	}
	lane->child = NULL;
	lane->loaded = lane->running = false;
}

int64_t lane_largest_case(const struct task *task)
{
	int64_t most = 0;

	for (int i = 0; i < task->job_count; i++) {
		int64_t bytes = job_arena_bytes(task->jobs[i]);

		most = bytes > most && bytes < (int64_t)1 << 52 ? bytes : most;
	}
	return most;
}

/* Sends the runner a message for each file that the reference may read. Each message carries a sealed copy of the file,
 * whose digest was checked. Returns -1 with a message if the content of a file has changed. */
int lane_send_reads(const struct task *task, struct child *child, struct err *err)
{
	for (int i = 0; i < task->read_count; i++) {
		int fd = read_file_copy(task->jobs[0]->root, &task->reads[i], err);
		struct buf text = {0};

		if (fd < 0)
			return -1;
		buf_text(&text, "{\"file\":");
		buf_json_string(&text, task->reads[i].path);
		buf_text(&text, "}");
		channel_send(&child->channel, text.data, text.length, &fd, 1);
		buf_free(&text);
		close(fd);
	}
	return 0;
}

void lane_write_fitting(const struct definition *d, struct buf *out)
{
	const char *comma = "";

	buf_text(out, ",\"fitting\":{\"left_out\":[");
	for (int i = 0; i < d->left_out_count; i++, comma = ",") {
		buf_text(out, comma);
		buf_json_string(out, d->left_out[i]);
	}
	buf_text(out, "],\"inputs\":{");
	for (int i = 0; i < d->input_count; i++) {
		const struct tensor_spec *spec = &d->inputs[i];

		buf_text(out, i > 0 ? "," : "");
		buf_json_string(out, spec->name);
		buf_text(out, ":[");
		buf_json_string(out, spec->param != NULL ? spec->param : spec->name);
		buf_text(out, spec->optional ? ",true]" : ",false]");
	}
	buf_text(out, "}}");
}

/* Writes the files of a program, and the way in which its function is called. */
static void write_files(const struct truth_program *program, struct buf *out)
{
	static const char *const builds[] = {[BUILD_NONE] = "none", [BUILD_CPP] = "cpp", [BUILD_CUDA] = "cuda"};
	static const char *const outputs[] = {
	    [OUTPUTS_GUESSED] = "guessed", [OUTPUTS_RETURNED] = "returned", [OUTPUTS_WRITTEN] = "written"};

	buf_text(out, ",\"files\":[");
	for (int i = 0; i < program->file_count; i++) {
		buf_text(out, i > 0 ? ",[" : "[");
		buf_json_string(out, program->files[i].path);
		buf_text(out, ",");
		buf_json_string(out, program->files[i].content);
		buf_text(out, "]");
	}
	buf_text(out, "],\"entry_file\":");
	buf_json_string(out, program->entry_file);
	buf_printf(out, ",\"build\":\"%s\",\"outputs\":\"%s\"", builds[program->build], outputs[program->outputs]);
}

/* Returns how many seconds of processor time each process of a reference may use, or 0 for no limit. The limit is the
 * time that the timeout allows for loading the reference and for all of its cases, multiplied by the number of
 * cores. */
static int64_t processor_time(const struct pool_shared *shared, const struct task *task)
{
	double seconds = shared->timeout_s * machine_cores() * (task->job_count + 1.0);

	return seconds > 0 && seconds < 1e9 ? (int64_t)seconds + 1 : 0;
}

void lane_write_limits(const struct pool_shared *shared, const struct task *task, int64_t memory, struct buf *out)
{
	buf_printf(out, ",\"memory\":%lld,\"memory_has_room\":%s,\"processor_time\":%lld", (long long)memory,
		   memory_limit_has_room(memory) ? "true" : "false", (long long)processor_time(shared, task));
}

void lane_write_attributes(const char *attributes, struct buf *out)
{
	if (attributes == NULL)
		return;
	buf_text(out, ",\"attributes\":");
	buf_json_string(out, attributes);
}

static void write_load(const struct pool_shared *shared, const struct task *task, const struct truth_program *truth,
		       int64_t memory, bool kept, struct buf *out)
{
	const struct definition *d = task->definition;

	buf_text(out, "{\"load\":");
	buf_json_string(out, truth == NULL ? task->reference : truth->source != NULL ? truth->source : "");
	if (truth != NULL) {
		buf_text(out, ",\"truth\":");
		buf_json_string(out, truth->path);
	}
	if (truth != NULL && truth->source == NULL)
		write_files(truth, out);
	buf_text(out, ",\"name\":");
	buf_json_string(out, task->name);
	buf_text(out, ",\"entry_point\":");
	buf_json_string(out, truth != NULL ? truth->entry_point
			     : d != NULL && d->entry_point != NULL ? d->entry_point : "run");
	if (d != NULL && definition_fits_arguments(d))
		lane_write_fitting(d, out);
	lane_write_attributes(truth != NULL ? truth->attributes : task->attributes, out);
	lane_write_limits(shared, task, memory, out);
	buf_text(out, kept ? ",\"kept\":true}" : "}");
}

/* Writes the numbers of the lane's earlier runners whose processes have all ended, and removes these numbers from the
 * list `past`. Then adds the number of `child` to the list, in a free entry or in place of the oldest number. */
static void write_gone(const struct pool_shared *shared, struct lane *lane, const struct child *child, struct buf *out)
{
	const char *comma = "";
	int oldest = 0;

	buf_text(out, ",\"gone\":[");
	for (int i = 0; i < LANE_PAST; i++) {
		if (lane->past[i] != child->number && zygote_is_gone(&shared->runners, lane->past[i])) {
			buf_printf(out, "%s%lld", comma, (long long)lane->past[i]);
			comma = ",";
			lane->past[i] = 0;
		}
		oldest = lane->past[i] < lane->past[oldest] ? i : oldest;
	}
	lane->past[oldest] = child->number;
	buf_text(out, "]");
}

/* Sends the reference to a runner, and {"begin"} to the judge, which then uses another arena for this runner. Returns
 * -1 if the runner's memory cannot be limited. */
static int bind_child(struct pool_shared *shared, struct lane *lane, struct child *child, struct err *err)
{
	int64_t memory = memory_limit(shared->memory, lane_largest_case(&lane->work->task));
	struct buf text = {0};

	if (zygote_limit_memory(&shared->runners, child, memory) != 0)
		return err_errno(err, "the memory of a reference cannot be limited by its control group");
	lane->child = child;
	lane->first_job = lane->work->job;
	lane->loaded = lane->running = false;
	lane->used = child->used;
	lane->beside = pool_shared_busy(shared, lane) || zygote_ending(&shared->runners) > 0;
	lane->staged = shared->staged || shared->ipc_refused;
	write_load(shared, &lane->work->task, lane->work->task.program, memory,
		   lane->work->isolation == ISOLATION_KEPT, &text);
	channel_send(&child->channel, text.data, text.length, NULL, 0);
	buf_clear(&text);
	buf_printf(&text, "{\"begin\":{\"bytes\":%lld,\"staged\":%s,\"runner\":%lld", (long long)lane_largest_case(&lane->work->task),
	           lane->staged ? "true" : "false", (long long)child->number);
	write_gone(shared, lane, child, &text);
	buf_text(&text, "}}");
	lane_judge_tell(lane, text.data, text.length);
	buf_free(&text);
	return 0;
}

int lane_load_truth(struct pool_shared *shared, struct lane *lane, struct child *child, const struct truth_program *program,
		    struct err *err)
{
	int64_t memory = memory_limit(shared->memory, lane_largest_case(&lane->work->task));
	struct buf text = {0};

	if (zygote_limit_memory(&shared->runners, child, memory) != 0)
		return err_errno(err, "the memory of a ground truth cannot be limited by its control group");
	write_load(shared, &lane->work->task, program, memory, false, &text);
	channel_send(&child->channel, text.data, text.length, NULL, 0);
	buf_free(&text);
	return 0;
}

/* ---- cases ---- */

int64_t lane_case_deadline(const struct pool_shared *shared)
{
	double ms = shared->timeout_s * 1000;

	return ms > 0 && ms < 1e15 ? clock_ms() + (int64_t)ms : INT64_MAX;
}

static void ask_verdict_on_failure(struct pool_shared *shared, struct lane *lane, const char *failure, bool accident)
{
	struct buf text = {0};

	lane_maker_drop(shared, lane);
	lane_judge_forget(lane);
	buf_printf(&text, "{\"blame\":%s,\"job\":", failure);
	job_write(lane_current_job(lane), &text);
	buf_text(&text, "}");
	lane->blamed = true;
	lane->accident = accident;
	lane->deadline = clock_ms() + BLAME_MS;
	lane_judge_ask(lane, text.data, text.length);
	buf_free(&text);
}

static void begin_case(struct pool_shared *shared, struct lane *lane)
{
	struct buf text = {0};

	lane->phase = LANE_WORKING;
	lane->asked = lane->blamed = lane->accident = false;
	free(lane->printed);
	lane->printed = NULL;
	lane->started = lane_seconds_now();
	lane->deadline = lane_case_deadline(shared);
	if (lane->work->failure != NULL) {
		ask_verdict_on_failure(shared, lane, lane->work->failure, lane->work->accident);
		return;
	}
	buf_text(&text, "{\"case\":");
	job_write(lane_current_job(lane), &text);
	buf_text(&text, "}");
	lane_judge_ask(lane, text.data, text.length);
	buf_free(&text);
}

/* Returns whether the runner may serve another definition. */
static bool may_release(const struct lane *lane)
{
	return lane->child != NULL && lane->work->isolation == ISOLATION_KEPT && lane->loaded && !lane->running &&
	       lane->run == NULL && !lane->child->ended && lane->work->reached == NULL;
}

static void release_child(struct pool_shared *shared, struct lane *lane)
{
	zygote_release(&shared->runners, lane->child);
	lane->child = NULL;
	lane->loaded = false;
}

static void finish_work(struct pool_shared *shared, struct lane *lane)
{
	static const char end[] = "{\"end\":true}";

	if (may_release(lane))
		release_child(shared, lane);
	lane_drop_child(shared, lane);
	lane_truth_drop(shared, lane);
	lane_judge_tell(lane, end, sizeof end - 1);
	queued_free(lane->work);
	lane->work = NULL;
	lane->phase = LANE_IDLE;
	lane->alone_by = 0;
}

/* Continues with the next case of the lane's work, if there is one. If the reference failed to load, its other cases
 * need no runner. */
void lane_next_case(struct pool_shared *shared, struct lane *lane)
{
	drop_run(lane);
	lane_maker_drop(shared, lane);
	if (lane->child != NULL && lane->child->ended)
		lane_drop_child(shared, lane);
	if (++lane->work->job >= lane->work->task.job_count)
		finish_work(shared, lane);
	else if (lane->up && (lane->child != NULL || lane->work->failure != NULL))
		begin_case(shared, lane);
	else
		lane->phase = LANE_WAITING;
}

bool pool_shared_busy(const struct pool_shared *shared, const struct lane *except)
{
	for (int i = 0; i < shared->lane_count; i++)
		if (&shared->lanes[i] != except && shared->lanes[i].phase != LANE_IDLE)
			return true;
	return false;
}

static void take_verdict(struct pool_shared *shared, struct lane *lane, const char *text, size_t length)
{
	if (lane_runs_again(shared, lane, text, length))
		return;
	add_answer(shared, lane, text, length);
	lane_next_case(shared, lane);
}

static void verdict_without_judge(struct pool_shared *shared, struct lane *lane, enum status status, enum reason reason,
				  const char *message)
{
	const struct verdict verdict = {.status = status,
					.reason = reason,
					.message = message,
					.device = shared->device,
					.device_class =
					    shared->device_class[0] == '\0' ? "unknown" : shared->device_class};
	struct buf text = {0};

	verdict_write(&verdict, &text);
	lane->accident = true;
	add_answer(shared, lane, text.data, text.length);
	buf_free(&text);
	lane_next_case(shared, lane);
}

void lane_verdict_without_judge(struct pool_shared *shared, struct lane *lane, enum reason reason,
				  const char *message)
{
	verdict_without_judge(shared, lane, STATUS_ERROR, reason, message);
}

/* ---- messages of the child ---- */

/* Returns the JSON object {"reason", "message", "line", `flag`: true}. If `flag` is NULL, the last member is left out.
 * The caller frees the text. */
static char *failure_text(const char *reason, const char *message, int64_t line, const char *flag)
{
	size_t length = strlen(message);
	struct buf text = {0};

	buf_printf(&text, "{\"reason\":\"%s\",\"message\":", reason);
	buf_json_bytes(&text, message, length < MESSAGE_MAX ? length : MESSAGE_MAX);
	buf_printf(&text, ",\"line\":%lld", (long long)line);
	if (flag != NULL)
		buf_printf(&text, ",\"%s\":true", flag);
	buf_text(&text, "}");
	return text.data;
}

/* Reports to the judge that the reference failed in the current case. If the reference failed to load, the same failure
 * is reported for all later cases. `flag` is the result of error_flag, or NULL. */
static void blame(struct pool_shared *shared, struct lane *lane, const char *reason, const char *message, int64_t line, bool accident,
		  const char *flag)
{
	char *failure = failure_text(reason, message, line, !lane->loaded ? "loading" : flag);

	trace("lane", "%s %s: %s", lane->work->task.name, lane_current_job(lane)->id, message);
	drop_run(lane);
	ask_verdict_on_failure(shared, lane, failure, accident);
	if (!lane->loaded && !lane->work->loaded) {
		lane->work->failure = failure;
		lane->work->accident = accident;
	} else {
		free(failure);
	}
}

void lane_blame_inputs(struct pool_shared *shared, struct lane *lane, const char *message, int64_t line, bool accident,
		       bool raised)
{
	char *failure = failure_text("inputs", message, line, raised ? "raised" : accident ? "ended" : NULL);

	trace("lane", "%s %s: %s", lane->work->task.name, lane_current_job(lane)->id, message);
	drop_run(lane);
	ask_verdict_on_failure(shared, lane, failure, accident);
	free(failure);
}

void lane_blame_child(struct pool_shared *shared, struct lane *lane, const char *reason, const char *message)
{
	blame(shared, lane, reason, message, 0, true, NULL);
	lane_drop_child(shared, lane);
}

static void forward_run(struct lane *lane)
{
	if (lane->run == NULL || !lane->loaded || lane->running || lane->child == NULL)
		return;
	channel_send(&lane->child->channel, lane->run, strlen(lane->run), &lane->run_fd, lane->run_fd >= 0 ? 1 : 0);
	lane->running = lane->asked = true;
	drop_run(lane);
}

/* Returns the reason in an {"error"} message of the runner: the limit that was reached, or "raised". */
static const char *error_reason(const cJSON *error)
{
	const char *limit = json_text_of(error, "limit");
	enum reason reason;

	return limit != NULL && reason_parse(limit, &reason) && reason_is_limit(reason) ? limit : "raised";
}

/* Returns the first name in `flags` whose member is true in an {"error"} message, or NULL. python/runner.py explains
 * these members. */
static const char *error_flag(const cJSON *error)
{
	static const char *const flags[] = {"needs_gpu", "needs_module", "certain"};

	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		if (cJSON_IsTrue(json_member(error, flags[i])))
			return flags[i];
	return NULL;
}

static void on_error(struct pool_shared *shared, struct lane *lane, const cJSON *error)
{
	const char *message = json_text_of(error, "message");
	bool loaded = lane->loaded;
	int64_t line = 0;

	if (cJSON_IsTrue(json_member(error, "lacks_memory")) && lane_memory_was_shared(shared, lane)) {
		lane_drop_child(shared, lane);
		loaded ? lane_retry_alone(shared, lane, false) : lane_retry_rest_alone(shared, lane);
		return;
	}
	json_integer(json_member(error, "line"), &line);
	lane->running = false;
	blame(shared, lane, error_reason(error), message == NULL ? "the reference failed" : message, line,
	      cJSON_IsTrue(json_member(error, "accident")), error_flag(error));
	if (cJSON_IsTrue(json_member(error, "fatal")))
		lane_drop_child(shared, lane);
}

/* Handles a runner's message that it cannot map device memory. From now on, every lane copies tensors through host
 * memory, and the current case starts again. */
static void on_unmapped(struct pool_shared *shared, struct lane *lane, const char *why)
{
	trace("lane", "CUDA IPC is refused (%s): tensors go through the host", why);
	shared->ipc_refused = true;
	lane_drop_child(shared, lane);
	lane_judge_forget(lane);
	lane->phase = LANE_WAITING;
}

void lane_reached(struct lane *lane, const char *who, const cJSON *message)
{
	const char *reached = json_text_of(message, "reached");
	struct buf text = {0};

	if (reached == NULL || lane->work == NULL || lane->work->reached != NULL)
		return;
	buf_printf(&text, "%s %s", who, reached);
	lane->work->reached = text.data;
}

static void on_child_line(struct pool_shared *shared, struct lane *lane, const char *line, size_t length)
{
	const struct json_text text = {"runner", line, length, 1};
	cJSON *message = json_parse(&text, NULL);
	const cJSON *error = json_member(message, "error");
	const char *unmapped = json_text_of(message, "unmapped");
	bool expected = lane->loaded ? lane->running : true;

	lane_reached(lane, "it", message);
	if (expected && cJSON_IsObject(error)) {
		on_error(shared, lane, error);
	} else if (!lane->loaded && cJSON_IsBool(json_member(message, "stateless"))) {
		/* only the first such message counts, because it was sent before any code of the reference ran */
		if (lane->work->stateless == STATELESS_UNKNOWN)
			lane->work->stateless =
			    cJSON_IsTrue(json_member(message, "stateless")) ? STATELESS_YES : STATELESS_NO;
	} else if (!lane->loaded && cJSON_IsTrue(json_member(message, "loaded"))) {
		lane->loaded = lane->work->loaded = true;
		if (json_text_of(message, "warm_up") != NULL)
			trace("runners", "warm-up: %s", json_text_of(message, "warm_up"));
		forward_run(lane);
	} else if (lane->running && unmapped != NULL && !lane->staged && strcmp(shared->device, "cpu") != 0) {
		on_unmapped(shared, lane, unmapped);
	} else if (lane->running && cJSON_IsArray(json_member(message, "ran"))) {
		lane->running = false;
		lane_judge_ask(lane, line, length);
	} else {
		lane_blame_child(shared, lane, "crashed",
			    "the reference's process sent an invalid answer: either the reference wrote to a descriptor of "
			    "the runner, or the process answered without a request");
	}
	cJSON_Delete(message);
}

static bool printed(const struct child *child, const char *words)
{
	return child->printed.data != NULL &&
	       memmem(child->printed.data, child->printed.length, words, strlen(words)) != NULL;
}

/* A limit that ends a process, and how to recognise it. The process itself cannot report the limit, because it has
 * ended. */
struct fatal_limit {
	const char *reason;
	int signal;         /* the signal that ended the process; 0: it exited */
	const char *words;  /* words that the output of the process must contain; NULL: any output */
	const char *says;
};

static const struct fatal_limit *fatal_limit(const struct child *child)
{
	static const struct fatal_limit limits[] = {
	    {"file_limit", SIGXFSZ, NULL, "the reference wrote a file that is larger than a reference may write; it should write less"},
	    {"timeout", SIGXCPU, NULL,
	     "the reference used more processor time than its limit (--timeout for each of its cases, times the number of cores)"},
	    {"memory_limit", 0, "Thread creation failed",
	     "the reference had no memory left for a thread of torch; --memory SIZE changes how much memory it may use"},
	    {"memory_limit", SIGABRT, "std::bad_alloc",
	     "the reference ran out of memory; --memory SIZE changes how much memory it may use"},
	};

	static const struct fatal_limit of_group = {
	    .reason = "memory_limit",
	    .says = "all processes of the reference together ran out of memory; --memory SIZE changes how much memory they may use",
	};

	if (child->out_of_memory)
		return &of_group;
	for (size_t i = 0; !child->shut && !child->lost && i < sizeof limits / sizeof *limits; i++) {
		int ended_by = WIFSIGNALED(child->status) ? WTERMSIG(child->status) : 0;

		if (ended_by == limits[i].signal && (limits[i].words == NULL || printed(child, limits[i].words)))
			return &limits[i];
	}
	return NULL;
}

static const char *child_end(const struct child *child, struct arena *arena, const struct lane *lane)
{
	const char *doing = lane->loaded ? "while it ran" : "while the reference was loading";

	if (child->shut)
		return arena_printf(arena, "the reference's process closed the descriptor for its answers %s", doing);
	if (child->lost)
		return arena_printf(arena, "the reference's process was killed together with its parent %s", doing);
	return arena_printf(arena, "the reference's process terminated with %s %s", process_end(child->status).text, doing);
}

static void on_child_end(struct pool_shared *shared, struct lane *lane)
{
	struct child *child = lane->child;
	bool killed = child->lost || (!child->shut && process_was_killed(child->status));
	const struct fatal_limit *limit = fatal_limit(child);
	struct arena arena = {0};

	if (limit != NULL) {
		lane_blame_child(shared, lane, limit->reason,
				 arena_printf(&arena, "%s (%s)", limit->says, child_end(child, &arena, lane)));
	} else if (killed && !lane->work->alone) {
		lane_drop_child(shared, lane);
		lane_retry_alone(shared, lane, true);
	} else {
		lane_blame_child(shared, lane, "crashed", child_end(child, &arena, lane));
	}
	arena_free(&arena);
}

/* Returns whether the current case still needs the runner. The end of a runner that no case needs is not a failure of
 * the reference. */
static bool child_is_needed(const struct lane *lane)
{
	return !lane->blamed && (!lane->loaded || lane->running || lane->run != NULL);
}

static void read_child(struct pool_shared *shared, struct lane *lane)
{
	int64_t now = clock_ms();
	enum child_event event = CHILD_LINE;
	size_t length;
	char *line;

	while (lane->child != NULL && event == CHILD_LINE) {
		event = child_next(lane->child, now, &line, &length);
		if (event == CHILD_LINE)
			on_child_line(shared, lane, line, length);
		else if (event == CHILD_BABBLES)
			lane_blame_child(shared, lane, "crashed",
				    "the reference's process sent an unterminated line instead of an answer");
		else if (event == CHILD_ENDED && child_is_needed(lane))
			on_child_end(shared, lane);
	}
}

/* ---- messages of the judge ---- */

static void on_judge_line(struct pool_shared *shared, struct lane *lane, char *line, size_t length)
{
	int fd = channel_take_fd(&lane->channel);

	lane->outstanding--;
	if (lane->stale > 0) {
		lane->stale--;
		if (fd >= 0)
			close(fd);
	} else if (strncmp(line, "{\"run\":", 7) == 0) {
		drop_run(lane);
		lane_maker_drop(shared, lane); /* the maker must have ended before the reference gets the inputs */
		lane->run = strdup(line);
		if (lane->run == NULL)
			die_no_memory();
		lane->run_fd = fd;
		forward_run(lane);
	} else if (strncmp(line, "{\"make\":", 8) == 0 || strncmp(line, "{\"store\":", 9) == 0) {
		lane_maker_take(shared, lane, line, fd);
	} else if (strncmp(line, "{\"provide\":", 11) == 0) {
		lane_provider_take(shared, lane, line, fd);
	} else if (strncmp(line, "{\"truth\":", 9) == 0) {
		lane_truth_take(shared, lane, line, fd);
	} else {
		take_verdict(shared, lane, line, length);
	}
}

static int read_judge(struct pool_shared *shared, struct lane *lane, struct err *err)
{
	size_t length;
	char *line;

	channel_flush(&lane->channel);
	while (lane->channel.fd >= 0) {
		while ((line = channel_line(&lane->channel, &length)) != NULL)
			if (lane->up)
				on_judge_line(shared, lane, line, length);
			else if (lane_judge_hello(shared, lane, line, length, err) != 0)
				return -1;
		switch (channel_read(&lane->channel)) {
		case CHANNEL_DATA:
			break;
		case CHANNEL_EMPTY:
			return 0;
		default:
			channel_close(&lane->channel);
			process_kill(&lane->judge);
		}
	}
	return 0;
}

void lane_kill_judge(struct pool_shared *shared, struct lane *lane)
{
	lane_provider_drop(shared, lane);
	lane_truth_drop(shared, lane);
	process_kill(&lane->judge);
	channel_close(&lane->channel);
	lane->up = false;
	lane->up_deadline = 0;
	lane->outstanding = lane->stale = 0;
	lane_drop_child(shared, lane); /* kills the runner, because it shared an arena with the judge, which has
					* ended */
}

/* Returns -1 if judges repeatedly fail to start. */
static int on_judge_end(struct pool_shared *shared, struct lane *lane, int status, struct err *err)
{
	bool never_started = !lane->up && lane->up_deadline != 0, judging = lane->outstanding > 0;
	struct arena arena = {0};

	trace("lane", "judge: %s", process_end(status).text);
	lane_kill_judge(shared, lane);
	if (never_started && shared->judge_failures++ >= JUDGE_FAILURES)
		return err_set(err, "the judge does not start: it terminated with %s", process_end(status).text);
	if (lane->phase == LANE_WORKING && !lane->work->alone)
		lane_retry_alone(shared, lane, true);
	else if (lane->phase == LANE_WORKING)
		lane_verdict_without_judge(shared, lane, process_was_killed(status) ? REASON_CRASHED : REASON_GROUND_TRUTH,
				      arena_printf(&arena,
						   "in the second attempt, the judge terminated with %s while it %s "
						   "this case",
						   process_end(status).text, judging ? "judged" : "waited for"));
	arena_free(&arena);
	return 0;
}

/* ---- the interface ---- */

void lane_open(struct lane *lane)
{
	*lane = (struct lane){.judge = {0, -1}, .run_fd = -1, .request_fd = -1, .order_fd = -1};
	channel_open(&lane->channel, -1);
	lane_truth_open(lane);
}

/* Assigns work to an idle lane. If the case is retried because a process was killed or stopped, the lane gets a new
 * judge. Whatever killed the process may also have killed the old judge, and the pool may not have noticed that yet. If
 * the lane kept the old judge, the retried case would be blamed for the judge's end. */
void lane_give(struct pool_shared *shared, struct lane *lane, struct queued *work)
{
	lane->work = work;
	lane->phase = LANE_WAITING;
	if (work->attacked && lane->judge.pid != 0)
		lane_kill_judge(shared, lane);
	process_let_continue(lane->judge.pidfd); /* resumes the judge, which a reference of another lane may have
						  * stopped */
}

int lane_dispatch(struct pool_shared *shared, struct lane *lane, int64_t now, struct err *err)
{
	int status;

	if (read_judge(shared, lane, err) != 0)
		return -1;
	if (process_ended(&lane->judge, &status) && on_judge_end(shared, lane, status, err) != 0)
		return -1;
	lane_maker_read(shared, lane);
	read_child(shared, lane);
	lane_truth_dispatch(shared, lane, now);
	return lane_check_timeouts(shared, lane, now, err);
}

enum lane_part lane_part(const struct lane *lane)
{
	return lane->phase == LANE_IDLE	      ? LANE_HAS_NO_WORK
	       : lane->phase == LANE_WAITING  ? LANE_WAITS
	       : lane->running		      ? LANE_RUNS
	       : lane->run != NULL	      ? LANE_LOADS
	       : lane->asking || lane->making ? LANE_IS_GIVEN
					      : LANE_JUDGES;
}

int lane_warm(struct pool_shared *shared, struct lane *lane, struct err *err)
{
	return lane->judge.pid == 0 ? lane_judge_start(shared, lane, err) : 0;
}

/* Kills the spare runners that use GPU memory. Returns whether the memory of these and of earlier runners is free. */
static bool others_have_ended(struct pool_shared *shared)
{
	if (!lane_spares_hold_memory(shared))
		return zygote_ending(&shared->runners) == 0;
	zygote_thin(&shared->runners);
	return zygote_idle(&shared->runners) <= 1; /* zygote_thin keeps one runner, which will run the case */
}

/* Returns whether there is memory for the lane's case. A case that must run alone waits for others_have_ended, but not
 * longer than ALONE_MS. */
static bool has_room(struct pool_shared *shared, struct lane *lane)
{
	int64_t now = clock_ms();

	if (!lane->work->alone || (lane->alone_by != 0 && now >= lane->alone_by) || others_have_ended(shared)) {
		lane->alone_by = 0;
		return true;
	}
	if (lane->alone_by == 0)
		lane->alone_by = now + ALONE_MS;
	return false;
}

int lane_advance(struct pool_shared *shared, struct lane *lane, struct err *err)
{
	struct child *child;

	if (lane->child != NULL && pool_shared_busy(shared, lane))
		lane->beside = true;
	if (lane_truth_advance(shared, lane, err) != 0)
		return -1;
	if (lane->phase == LANE_WORKING)
		return lane_maker_advance(shared, lane, err);
	if (lane->phase != LANE_WAITING)
		return 0;
	if (lane->judge.pid == 0)
		return lane_judge_start(shared, lane, err);
	if (!lane->up)
		return 0;
	if (lane->work->failure == NULL && lane->child == NULL) {
		if (lane->work->isolation == ISOLATION_UNKNOWN || !has_room(shared, lane) ||
		    (child = zygote_take(&shared->runners, lane->work->isolation == ISOLATION_KEPT)) == NULL)
			return 0;
		struct err changed = {""};

		if (lane_send_reads(&lane->work->task, child, &changed) != 0) {
			zygote_drop(&shared->runners, child);
			lane->started = lane_seconds_now();
			verdict_without_judge(shared, lane, STATUS_SKIPPED, REASON_CHANGED, changed.text);
			return 0;
		}
		if (bind_child(shared, lane, child, err) != 0)
			return -1;
	}
	begin_case(shared, lane);
	return 0;
}

void lane_cancel(struct pool_shared *shared, struct lane *lane)
{
	lane_provider_drop(shared, lane);
	lane_judge_forget(lane);
	finish_work(shared, lane);
}

void lane_close(struct lane *lane, int64_t deadline_ms)
{
	int status;

	while (lane->judge.pid != 0 && !process_ended(&lane->judge, &status) && clock_ms() < deadline_ms) {
		struct pollfd poll_judge = {lane->judge.pidfd, POLLIN, 0};

		poll(&poll_judge, 1, 10);
	}
	if (lane->judge.pidfd >= 0)
		close(lane->judge.pidfd);
	channel_close(&lane->channel);
	drop_run(lane);
	lane_truth_close(lane);
	free(lane->request);
	if (lane->request_fd >= 0)
		close(lane->request_fd);
	free(lane->order);
	if (lane->order_fd >= 0)
		close(lane->order_fd);
	free(lane->printed);
	if (lane->work != NULL)
		queued_free(lane->work);
}
