#include "workers/pool/isolation.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "workers/pool/parallel_cases.h"

enum { ANSWER_MS = 10000 };

void isolation_open(struct isolation_reader *reader)
{
	*reader = (struct isolation_reader){.deadline_ms = INT64_MAX};
}

void isolation_set(struct queued *work, const char *why)
{
	char *copy = why == NULL ? NULL : strdup(why);

	if (why != NULL && copy == NULL)
		die_no_memory();
	free(work->own_because);
	work->own_because = copy;
	work->isolation = why == NULL ? ISOLATION_KEPT : ISOLATION_OWN;
	work->question = 0;
}

static bool asks_for_gradients(const struct task *task)
{
	for (int i = 0; i < task->job_count; i++)
		if (task->jobs[i]->asks == JOB_GRADIENTS)
			return true;
	return false;
}

static bool is_measured(const struct task *task)
{
	for (int i = 0; i < task->job_count; i++)
		if (task->jobs[i]->bench)
			return true;
	return false;
}

/* If a property of the task demands a runner of its own, returns the property, else NULL. */
static const char *asks_for_own(const struct task *task)
{
	return task->urgent		  ? "a user waits for it"
	       : task->program != NULL	  ? "it is a solution" /* the reader cannot examine a solution, because
								* isolation_ask sends only the source of the
								* reference */
	       : is_measured(task)	  ? "its latency is measured"
	       : task->read_count > 0	  ? "it reads files"
	       : asks_for_gradients(task) ? "autograd starts threads that keep running"
					  : NULL;
}

void isolation_by_task(struct queued *work, bool always_own)
{
	const char *why = asks_for_own(&work->task);

	if (why != NULL || !parallel_cases_by_task(&work->task))
		work->separable = SEPARABLE_NO;
	if (work->task.program != NULL || work->task.program_count > 0)
		work->stateless = STATELESS_NO;
	if (always_own)
		isolation_set(work, "runners are reused only with --isolation kept");
	else if (why != NULL)
		isolation_set(work, why);
}

int isolation_ask(struct isolation_reader *reader, struct zygote *runners, struct queued *work, struct err *err)
{
	struct buf text = {0};
	struct err none = {""};

	if (reader->question != 0)
		return 0;
	if (reader->child == NULL && (reader->child = zygote_reader(runners, &none)) == NULL)
		return none.text[0] == '\0' ? 0 : err_set(err, "%s", none.text);
	work->question = reader->question = ++reader->last;
	reader->deadline_ms = clock_ms() + ANSWER_MS;
	buf_printf(&text, "{\"classify\":%lld,\"text\":", (long long)work->question);
	buf_json_string(&text, work->task.reference);
	buf_text(&text, "}");
	channel_send(&reader->child->channel, text.data, text.length, NULL, 0);
	buf_free(&text);
	return 0;
}

void isolation_apply(struct queued *work, const struct isolation_answer *answer)
{
	if (work->isolation == ISOLATION_UNKNOWN)
		isolation_set(work, answer->why);
	if (work->separable == SEPARABLE_UNKNOWN)
		work->separable = answer->why == NULL && answer->stateless ? SEPARABLE_YES : SEPARABLE_NO;
	if (work->stateless == STATELESS_UNKNOWN)
		work->stateless = answer->why == NULL && answer->stateless ? STATELESS_YES : STATELESS_NO;
	work->question = 0;
}

void isolation_close(struct isolation_reader *reader, struct zygote *runners)
{
	if (reader->child != NULL)
		zygote_drop(runners, reader->child);
	reader->child = NULL;
	reader->question = 0;
	reader->deadline_ms = INT64_MAX;
}

/* Reads the answer {"classified": number, "own": reason or null, "stateless": whether}. Returns false if the line is
 * not such an answer. */
static bool read_answer(const struct isolation_reader *reader, const char *line, size_t length, struct isolation_answer *out)
{
	const struct json_text text = {"reader", line, length, 1};
	cJSON *message = json_parse(&text, NULL);
	const cJSON *own = json_member(message, "own");
	int64_t number = 0;
	bool known = json_integer(json_member(message, "classified"), &number) && number == reader->question &&
		     (cJSON_IsString(own) || cJSON_IsNull(own));

	if (known) {
		out->question = number;
		out->stateless = cJSON_IsTrue(json_member(message, "stateless"));
		out->why = cJSON_IsString(own) ? strdup(own->valuestring) : NULL;
		if (cJSON_IsString(own) && out->why == NULL)
			die_no_memory();
	}
	cJSON_Delete(message);
	return known;
}

bool isolation_next(struct isolation_reader *reader, struct zygote *runners, int64_t now_ms, struct isolation_answer *out)
{
	enum child_event event = CHILD_LINE;
	size_t length;
	char *line;

	while (reader->child != NULL && event == CHILD_LINE) {
		event = child_next(reader->child, now_ms, &line, &length);
		if (event == CHILD_LINE && strncmp(line, "{\"ready\"", 8) == 0)
			continue;
		if (event == CHILD_LINE && reader->question != 0 && read_answer(reader, line, length, out)) {
			reader->question = 0;
			reader->deadline_ms = INT64_MAX;
			return true;
		}
		if (event != CHILD_NOTHING || now_ms >= reader->deadline_ms) {
			*out = (struct isolation_answer){reader->question, strdup("the source code could not be read"),
							 false};
			if (out->why == NULL)
				die_no_memory();
			isolation_close(reader, runners);
			return true;
		}
	}
	return false;
}
