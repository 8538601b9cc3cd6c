#include "engine/remote_cache.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/show.h"
#include "cache/verdict_line.h"
#include "cache/witness.h"
#include "engine/remote_keys.h"
#include "engine/definition_files.h"
#include "remote/remote_store.h"
#include "remote/remote_library.h"
#include "remote/signature.h"
#include "workers/pool/process.h"

/* As soon as WAITING_MOST results wait for the remote, the run queries the remote for them. The limit bounds memory. */
enum { WAITING_MOST = 1024, BUCKETS = 1024 };

/* A query to the remote: the subject of the requested verdict, and one of the keys under which the remote may have this
 * verdict. */
struct question {
	struct digest subject;
	char address[REMOTE_KEY_SIZE];
};

struct remote_cache {
	const struct program *program;
	struct remote_url place;
	struct signing_key *signer;
	struct process helper;
	struct remote *remote; /* NULL: not started */
	bool off;	       /* true after an error was reported; the run then no longer uses the remote */
	struct result *waiting[WAITING_MOST];
	int waiting_count, next; /* next: the index in `waiting` of the next result to return */
	bool asked;
	struct buf questions; /* an array of struct question */
	struct shared_verdict *bucket[BUCKETS];
	int refused;	  /* the number of rejected records */
	struct err first; /* why the first rejected record was rejected */
	struct arena arena;
};

/* ---- beginning and ending --------------------------------------------------------------------------------------- */

/* Reports the error and stops using the remote cache for the rest of the run. */
static void give_up(struct remote_cache *cache, const char *why)
{
	cache->off = true;
	show_print(stderr, "reftest: %s; the run continues without the remote cache\n", why);
}

struct remote_cache *remote_cache_open(const struct program *program)
{
	const char *text = program->secrets.text[SECRET_REMOTE];
	struct err err = {""};
	char path[PATH_MAX];

	if (text == NULL || *text == '\0')
		return NULL;
	struct remote_cache *cache = calloc(1, sizeof *cache);

	if (cache == NULL)
		die_no_memory();
	cache->program = program;
	cache->helper = (struct process){0, -1};
	if (remote_url_parse(text, &cache->place, &err) == 0 && remote_library_path(path, sizeof path, &err) == 0 &&
	    signature_open(program->secrets.text[SECRET_CACHE_KEY], &cache->signer, &err) >= 0)
		return cache;
	give_up(cache, err.text);
	free(cache);
	return NULL;
}

/* The main function of the helper process. The helper handles untrusted data, so it first forgets the signing key. */
static int run_helper(void *context)
{
	struct remote_cache *cache = context;
	struct secrets secrets = cache->program->secrets;

	secrets_forget(&secrets);
	signing_key_close(cache->signer);
	return remote_helper_run(&cache->place);
}

/* The helper is forked from this process, and not started with exec. After exec, every process of the same user,
 * including references, could access the helper's memory until the helper has run its first instructions. */
static int start_helper(struct remote_cache *cache, struct err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, "cannot create a socket for the remote cache's helper process");
	const int fds[] = {pair[1], -1, STDERR_FILENO};
	int rc = process_fork(&cache->helper, "reftest-remote", run_helper, cache, fds, 3, err);

	close(pair[1]);
	if (rc < 0) {
		close(pair[0]);
		return -1;
	}
	cache->remote = remote_open(&cache->place, pair[0], cache->program->signals);
	return 0;
}

/* Returns the connection to the remote; the first call starts the helper process. Returns NULL if the remote is
 * unavailable. */
static struct remote *need_remote(struct remote_cache *cache)
{
	struct err err = {""};

	if (cache->off)
		return NULL;
	if (cache->remote == NULL && start_helper(cache, &err) < 0)
		give_up(cache, err.text);
	return cache->off ? NULL : cache->remote;
}

static void report_refused(struct remote_cache *cache)
{
	const char *theirs = NULL;
	int count = cache->refused + (cache->remote != NULL ? remote_refused(cache->remote, &theirs) : 0);

	if (count > 0)
		show_print(stderr,
			"reftest: %d record%s of the remote cache %s %s rejected and treated as missing; the reason for the "
			"first: %s\n",
			count, count == 1 ? "" : "s", cache->place.shown, count == 1 ? "was" : "were",
			cache->refused > 0 ? cache->first.text : theirs);
}

void remote_cache_close(struct remote_cache *cache, bool interrupted)
{
	struct err err = {""};

	if (cache == NULL)
		return;
	if (cache->remote != NULL && !cache->off && !interrupted && remote_flush(cache->remote, &err) < 0)
		show_print(stderr, "reftest: %s; this run's verdicts are still stored locally\n", err.text);
	report_refused(cache);
	if (cache->remote != NULL)
		remote_close(cache->remote);
	process_kill(&cache->helper);
	while (cache->helper.pid != 0 && waitpid(cache->helper.pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (cache->helper.pidfd >= 0)
		close(cache->helper.pidfd);
	signing_key_close(cache->signer);
	buf_free(&cache->questions);
	arena_free(&cache->arena);
	free(cache);
}

const char *remote_cache_shown(const struct remote_cache *cache)
{
	return cache->place.shown;
}

/* ---- asking ----------------------------------------------------------------------------------------------------- */

static void ask_for(struct remote_cache *cache, const struct result *result, const struct test_case *test)
{
	const struct remote_keys all =
	    remote_keys_wanted(&result->run->machine.policy, &test->subject, &test->job->truths);

	for (int i = 0; i < all.count; i++) {
		struct question question = {.subject = test->subject};

		memcpy(question.address, all.text[i], REMOTE_KEY_SIZE);
		buf_add(&cache->questions, &question, sizeof question);
	}
}

bool remote_cache_defers(struct result *result, case_known *known)
{
	struct remote_cache *cache = result->run->remote_cache;
	bool defers = false;

	if (cache == NULL || cache->off || result->run->machine.policy.force)
		return false;
	for (int i = 0; i < result->case_count; i++) {
		const struct case_result *c = &result->cases[i];

		if (c->test->decided != NULL || known(result, c))
			continue;
		ask_for(cache, result, c->test);
		defers = true;
	}
	if (defers)
		cache->waiting[cache->waiting_count++] = result;
	return defers;
}

static struct shared_verdict **bucket_of(struct remote_cache *cache, const struct digest *subject)
{
	return &cache->bucket[(subject->bytes[0] | subject->bytes[1] << 8) % BUCKETS];
}

/* Returns whether the key that was queried is one of the keys under which this verdict belongs. */
static bool belongs_to_key(const struct question *question, const struct verdict_line *record, const struct verdict *verdict)
{
	const struct remote_keys all = remote_keys_of(&record->subject, &record->witness, verdict);

	for (int i = 0; i < all.count; i++)
		if (strcmp(all.text[i], question->address) == 0)
			return true;
	return false;
}

/* Parses a record from the remote. Returns the record's verdict if the record matches the query. Otherwise returns NULL
 * and sets `err`. */
static const struct verdict *read_answer(struct remote_cache *cache, const struct question *question, const void *bytes,
					 size_t length, struct err *err)
{
	struct verdict_line record;

	if (length == 0 || ((const char *)bytes)[length - 1] != '\n') {
		err_set(err, "the record is incomplete");
		return NULL;
	}
	const struct verdict *verdict = verdict_line_read(bytes, length - 1, &cache->arena, &record, err);

	if (verdict == NULL || signature_check(cache->signer, &record, err) < 0)
		return NULL;
	if (!digest_equal(&record.subject, &question->subject)) {
		err_set(err, "the record is not for the case that was queried");
		return NULL;
	}
	if (belongs_to_key(question, &record, verdict))
		return verdict;
	err_set(err, "the record is for a different device or ground truth than the query");
	return NULL;
}

static void take_answer(void *context, int place, const void *bytes, size_t length)
{
	struct remote_cache *cache = context;
	const struct question *question = (const struct question *)(const void *)cache->questions.data + place;
	struct err err = {""};
	const struct verdict *verdict = read_answer(cache, question, bytes, length, &err);

	if (verdict == NULL) {
		if (cache->refused++ == 0)
			cache->first = err;
		return;
	}
	struct shared_verdict *kept = arena_alloc(&cache->arena, sizeof *kept);
	struct shared_verdict **bucket = bucket_of(cache, &question->subject);

	*kept = (struct shared_verdict){question->subject, verdict, *bucket};
	*bucket = kept;
}

static void ask(struct remote_cache *cache)
{
	int count = (int)(cache->questions.length / sizeof(struct question));
	const struct question *questions = (const struct question *)(const void *)cache->questions.data;
	struct remote *remote = need_remote(cache);
	struct err err = {""};

	if (remote != NULL) {
		const char **keys = calloc((size_t)count, sizeof *keys);

		if (keys == NULL)
			die_no_memory();
		for (int i = 0; i < count; i++)
			keys[i] = questions[i].address;
		if (remote_get(remote, keys, count, take_answer, cache, &err) < 0)
			give_up(cache, err.text);
		free(keys);
	}
	buf_clear(&cache->questions);
	cache->asked = true;
	cache->next = 0;
}

struct result *remote_cache_next(struct run *run, bool all)
{
	struct remote_cache *cache = run->remote_cache;

	if (cache == NULL || cache->waiting_count == 0)
		return NULL;
	if (!cache->asked && (all || cache->waiting_count == WAITING_MOST))
		ask(cache);
	if (!cache->asked)
		return NULL;
	struct result *result = cache->waiting[cache->next++];

	if (cache->next == cache->waiting_count) {
		cache->waiting_count = 0;
		cache->asked = false;
	}
	return result;
}

const struct shared_verdict *remote_cache_verdict(const struct remote_cache *cache, const struct digest *subject,
						  const struct shared_verdict *after)
{
	const struct shared_verdict *at = NULL;

	if (after != NULL)
		at = after->next;
	else if (cache != NULL)
		at = *bucket_of((struct remote_cache *)cache, subject);
	while (at != NULL && !digest_equal(&at->subject, subject))
		at = at->next;
	return at;
}

/* ---- giving ----------------------------------------------------------------------------------------------------- */

static void put_case(struct remote_cache *cache, struct remote *remote, struct result *result,
		     const struct case_result *c)
{
	const struct verdict *v = c->verdict;
	const struct case_name name = {result_name(result, &result->arena), c->test->id};
	struct fields all = fields_copy(&c->test->fields, &result->arena);
	struct verdict_line record = {
	    .subject = c->test->subject, .witness = c->witness, .made = v->time, .names = &name, .name_count = 1};
	struct buf text = {0}, fields = {0}, bytes = {0};

	witness_fields(v->ground_truth, verdict_truth_version(v, &result->arena), v->device_class, v->torch, v->cuda,
		       v->python, &result->arena, &all);
	verdict_write(v, &text);
	fields_write(&all, &fields);
	record.text = text.data;
	record.length = text.length;
	record.fields = fields.data;
	record.fields_length = fields.length;
	signature_sign(cache->signer, &record);
	if (verdict_line_write(&record, &bytes, NULL) == 0) {
		const struct remote_keys remote_keys = remote_keys_of(&record.subject, &record.witness, v);
		const char *keys[REMOTE_KEYS];

		for (int i = 0; i < remote_keys.count; i++)
			keys[i] = remote_keys.text[i];
		remote_put(remote, keys, remote_keys.count, bytes.data, bytes.length);
	}
	buf_free(&text);
	buf_free(&fields);
	buf_free(&bytes);
}

/* A verdict that is about to be written to the remote. `contained` is true if the remote already has a verdict under
 * one of its keys, and the reference of that verdict was fully contained by the sandbox. */
struct rival {
	struct remote_cache *cache;
	const struct digest *subject;
	const char *const *keys;
	bool contained;
};

static void see_rival(void *context, int place, const void *bytes, size_t length)
{
	struct rival *rival = context;
	struct question question = {.subject = *rival->subject};
	struct err err = {""};

	snprintf(question.address, sizeof question.address, "%s", rival->keys[place]);
	const struct verdict *verdict = read_answer(rival->cache, &question, bytes, length, &err);

	rival->contained = rival->contained || (verdict != NULL && verdict_is_contained(verdict));
}

/* Returns whether writing the case's verdict would replace a better verdict in the remote: the reference was not fully
 * contained when it ran for the new verdict, but was fully contained for the remote verdict. The new verdict is then
 * not written, because machines that require containment can use the remote verdict, but could not use the new one. */
static bool is_worse_than_stored(struct remote_cache *cache, struct remote *remote, const struct case_result *c)
{
	struct rival rival = {cache, &c->test->subject, NULL, false};
	const char *keys[REMOTE_KEYS];
	struct err err = {""};

	if (verdict_is_contained(c->verdict))
		return false;
	const struct remote_keys all = remote_keys_of(&c->test->subject, &c->witness, c->verdict);

	for (int i = 0; i < all.count; i++)
		keys[i] = all.text[i];
	rival.keys = keys;
	if (remote_get(remote, keys, all.count, see_rival, &rival, &err) < 0)
		give_up(cache, err.text);
	return rival.contained || cache->off;
}

void remote_cache_put(struct result *result)
{
	struct remote_cache *cache = result->run->remote_cache;
	struct remote *remote;

	if (cache == NULL || cache->off || cache->place.read_only || result->run->options->dry_run ||
	    (cache->signer != NULL && !signing_key_signs(cache->signer)))
		return;
	for (int i = 0; i < result->case_count; i++) {
		const struct case_result *c = &result->cases[i];

		if (c->verdict == NULL || c->test->job == NULL || !c->in_store || c->cached)
			continue;
		if ((remote = need_remote(cache)) == NULL)
			return;
		if (!is_worse_than_stored(cache, remote, c))
			put_case(cache, remote, result, c);
		if (cache->off)
			return;
	}
}
