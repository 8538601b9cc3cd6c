/* sent - the fuzz targets for the messages of other processes: from the pool to the judge, from a runner or the
 * provider to the pool, from clients to `reftest serve`, and both ways between the watcher and its clients. The source
 * files of the watcher's client and of the list of providers are included, because their parsers are static. */
#include "engine/ground_truths.c"
#include "watcher/client.c"

#include <sys/socket.h>
#include <unistd.h>

#include "fleet/answer.h"
#include "fleet/merge.h"
#include "fleet/request.h"
#include "serve/rpc.h"
#include "serve/tools.h"
#include "tests/fuzz/feed.h"
#include "watcher/query.h"
#include "workers/protocol/channel.h"
#include "workers/protocol/job.h"

bool feed_job(const struct input *input)
{
	const struct json_text text = {"case", input->bytes, input->length, 1};
	struct arena arena = {0};
	struct buf once = {0}, twice = {0};
	struct err err = {""};
	cJSON *tree = json_parse(&text, NULL);
	struct job *job = tree != NULL ? job_read(tree, &arena, &err) : NULL;

	hold(input, tree == NULL || (job == NULL) == (err.text[0] != '\0'), "only what is refused has a sentence");
	if (job != NULL) {
		hold(input, job_bytes(job) >= 0 && job_arena_bytes(job) >= 0, "memory can be counted");
		job_write(job, &once);
		const struct json_text written = {"case", once.data, once.length, 1};
		cJSON *again = json_parse(&written, NULL);
		struct job *back = again != NULL ? job_read(again, &arena, &err) : NULL;

		hold(input, back != NULL, "a case that is written is read");
		job_write(back, &twice);
		hold(input, strcmp(once.data, twice.data) == 0, "writing and reading change nothing");
		cJSON_Delete(again);
	}
	cJSON_Delete(tree);
	buf_free(&once);
	buf_free(&twice);
	arena_free(&arena);
	return job != NULL;
}

/* The input arrives in two parts. */
bool feed_channel(const struct input *input)
{
	struct channel channel;
	struct err err;
	size_t half = input->length / 2, length, total = 0;
	int ours, theirs, lines = 0;

	if (channel_pair(&ours, &theirs, &err) != 0)
		abort();
	channel_open(&channel, ours);
	for (int part = 0; part < 2; part++) {
		size_t size = part == 0 ? half : input->length - half;
		const char *line;

		if (send(theirs, input->bytes + (part == 0 ? 0 : half), size, MSG_NOSIGNAL) != (ssize_t)size)
			abort();
		while (channel_read(&channel) == CHANNEL_DATA)
			while ((line = channel_line(&channel, &length)) != NULL) {
				hold(input, memchr(line, '\n', length) == NULL && line[length] == '\0', "a line is one line");
				total += length + 1;
				lines++;
			}
	}
	hold(input, total <= input->length, "no byte is read twice");
	close(theirs);
	channel_close(&channel);
	return lines > 0;
}

bool feed_question(const struct input *input)
{
	/* A question with the context digest of the session would make the watcher update the generated files, which
	 * needs the whole program. Therefore the session has a context digest that no input contains. */
	struct batches session = {.context = {{0x9E, 0x37, 0x79, 0xB9, 0x7F, 0x4A, 0x7C, 0x15, 0xF3, 0x9C, 0xC0}}};
	struct buf out = {0};
	bool answered = query_answer(&session, true, input->bytes, input->length, &out);

	if (answered) {
		hold(input, out.length > 0 && out.data[out.length - 1] == '\n', "an answer is a line");
		const struct json_text text = {"answer", out.data, out.length, 1};

		hold(input, json_check(&text, NULL) == 0, "an answer is JSON");
	}
	bool refused_it = answered && strstr(out.data, "refused") != NULL;

	buf_free(&out);
	return answered && !refused_it;
}

bool feed_answer(const struct input *input)
{
	const struct json_text text = {"answer", input->bytes, input->length, 1};
	struct arena arena = {0};
	struct up_to_date found;
	cJSON *tree = json_parse(&text, NULL);
	bool valid = tree != NULL && read_answer(tree, &arena, &found);

	if (valid) {
		hold(input, found.definitions >= 0 && found.path_count >= 0, "counts are not negative");
		hold(input, found.rows == NULL || found.row_count == found.definitions, "there are as many rows as said");
	}
	cJSON_Delete(tree);
	arena_free(&arena);
	return valid;
}

bool feed_facts(const struct input *input)
{
	char *text = strndup(input->bytes, input->length);
	const struct provider_fact *facts;
	struct arena arena = {0};
	struct err err = {""};
	int count = 0;
	bool valid = read_facts(text, &arena, &facts, &count, &err) == 0;

	hold(input, valid || is_sentence(err.text), "the sentence prints");
	for (int i = 0; valid && i < count; i++)
		hold(input, facts[i].name != NULL && facts[i].family_count >= 0, "libraries have names");
	free(text);
	arena_free(&arena);
	return valid && count > 0;
}

/* --- a fleet --------------------------------------------------------------------------------------------------- */

bool feed_work_request(const struct input *input)
{
	struct arena arena = {0};
	struct work_request request;
	struct err err = {""};
	bool taken = request_read(input->bytes, input->length, 1, &arena, &request, &err) == 0;

	hold(input, taken == (err.text[0] == '\0'), "what is refused has a sentence and what is taken has none");
	hold(input, taken || is_sentence(err.text), "the sentence prints");
	hold(input, request.id == NULL || strlen(request.id) <= REQUEST_ID_MAX, "an id is short");
	if (taken) {
		const char *slash = strchr(request.definition, '/');

		hold(input, slash != NULL && strchr(slash + 1, '/') == NULL && request.definition[0] != '.' && slash[1] != '.',
		     "a request names a file below definitions/");
		hold(input, request.cases == NULL || request.cases[0] != NULL, "a request asks for a case");
	}
	arena_free(&arena);
	return taken;
}

static int accept_signature(void *context, const struct verdict_line *record, struct err *err)
{
	(void)context, (void)record, (void)err;
	return 0;
}

bool feed_work_answer(const struct input *input)
{
	const struct merge_rules rules = {{.check = accept_signature}, "9b5f6ee0af0e4e539c5f4487b4ddce6d"};
	struct arena arena = {0};
	struct answer answer;
	struct err err = {""};
	bool taken = answer_read(input->bytes, input->length, 1, &arena, &answer, &err) == 0;

	hold(input, taken == (err.text[0] == '\0'), "what is refused has a sentence and what is taken has none");
	hold(input, taken || is_sentence(err.text), "the sentence prints");
	for (int i = 0; taken && i < answer.verdict_count; i++) {
		struct verdict_line record;
		struct err why = {""};
		bool counts = merge_check(&rules, answer.verdicts[i], &arena, &record, &why) == 0;

		hold(input, counts || is_sentence(why.text), "a refused verdict has a sentence");
	}
	arena_free(&arena);
	return taken;
}

/* --- the requests of `reftest serve` --------------------------------------------------------------------------- */

/* Checks that a response is one line with one JSON object. */
static void check_response(const struct input *input, struct buf *response)
{
	hold(input, response->length > 0 && memchr(response->data, '\n', response->length) == response->data + response->length - 1,
	     "a response is one line");
	const struct json_text text = {"response", response->data, response->length, 1};
	struct err err = {""};

	hold(input, json_check(&text, &err) == 0, "a response is JSON");
	buf_free(response);
}

static void check_command_line(const struct input *input, const struct tool *tool, const cJSON *arguments)
{
	struct arena arena = {0};
	struct err err = {""};
	char **argv;
	int argc = tools_command_line(tool, arguments, &arena, &argv, &err);
	bool operands = false;

	hold(input, argc >= 0 ? err.text[0] == '\0' : is_sentence(err.text), "only what is refused has a sentence");
	for (int i = 1; i < argc; i++) {
		hold(input, operands || strncmp(argv[i], "--", 2) == 0, "before the operands there are only options");
		operands = operands || strcmp(argv[i], "--") == 0;
	}
	hold(input, argc < 0 || (operands && argv[argc] == NULL), "operands are told from options");
	arena_free(&arena);
}

bool feed_rpc_request(const struct input *input)
{
	struct rpc_message message;
	struct err err = {""};
	struct buf response = {0};
	enum rpc_code code = rpc_read(input->bytes, input->length, &message, &err);
	const char *name = code == RPC_OK ? json_text_of(message.params, "name") : NULL;
	const struct tool *tool = name != NULL ? tools_find(name) : NULL;

	hold(input, code == RPC_OK ? err.text[0] == '\0' : is_sentence(err.text), "what is refused has a sentence");
	hold(input, code == RPC_OK || code == RPC_PARSE_ERROR || code == RPC_INVALID_REQUEST, "the code is one of two");
	hold(input, (message.kind == RPC_RESPONSE) == (code == RPC_OK && message.method == NULL), "only a response has no method");
	rpc_error(&response, message.id, code, err.text);
	check_response(input, &response);
	rpc_result(&response, message.id, "{}");
	check_response(input, &response);
	if (tool != NULL)
		check_command_line(input, tool, json_member(message.params, "arguments"));
	rpc_free(&message);
	return code == RPC_OK;
}
