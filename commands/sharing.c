#include "commands/sharing.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/portable.h"
#include "commands/address.h"
#include "commands/ruling.h"
#include "commands/signing.h"
#include "remote/library.h"
#include "remote/remote.h"
#include "workers/process.h"

/* Outcomes that wait before the remote is asked although more may come: bounds memory. */
enum { WAITING_MOST = 1024, BUCKETS = 1024 };

/* What was asked: which address on which subject. */
struct question {
	struct digest subject;
	char address[ADDRESS];
};

struct sharing {
	const struct reftest *reftest;
	struct place place;
	struct seal *seal;
	struct process courier;
	struct remote *remote; /* NULL: not begun */
	bool off;	       /* something went wrong, and it was said */
	struct outcome *waiting[WAITING_MOST];
	int waiting_count, next; /* of those that were asked about */
	bool asked;
	struct buf questions; /* struct question */
	struct shared_verdict *bucket[BUCKETS];
	int refused;	  /* records that do not check out */
	struct err first; /* the sentence of the first */
	struct arena arena;
};

/* ---- beginning and ending ------------------------------------------------------------------------------------------
 */

/* Says it and goes on without. */
static void give_up(struct sharing *sharing, const char *why)
{
	sharing->off = true;
	fprintf(stderr, "reftest: %s; the run goes on without it\n", why);
}

struct sharing *sharing_open(const struct reftest *reftest)
{
	const char *text = getenv("REFTEST_REMOTE");
	struct err err = {""};
	char path[PATH_MAX];

	if (text == NULL || *text == '\0')
		return NULL;
	struct sharing *sharing = calloc(1, sizeof *sharing);

	if (sharing == NULL)
		die_no_memory();
	sharing->reftest = reftest;
	sharing->courier = (struct process){0, -1};
	if (place_parse(text, &sharing->place, &err) == 0 && remote_library_path(path, sizeof path, &err) == 0 &&
	    signing_open(&sharing->seal, &err) >= 0)
		return sharing;
	give_up(sharing, err.text);
	free(sharing);
	return NULL;
}

static int start_courier(struct sharing *sharing, struct err *err)
{
	char *const words[] = {"reftest", "courier", NULL};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, "no socket for the remote cache's courier");
	/* It speaks with strangers and needs no key. */
	char **own = process_environment(arena_printf(&sharing->arena, "REFTEST_REMOTE=%s", getenv("REFTEST_REMOTE")),
					 &sharing->arena);
	const int fds[] = {pair[1], -1, STDERR_FILENO};
	int rc = process_start(&sharing->courier, "/proc/self/exe", words, own, fds, 3, err);

	close(pair[1]);
	if (rc < 0) {
		close(pair[0]);
		return -1;
	}
	sharing->remote = remote_open(&sharing->place, pair[0], sharing->reftest->signals);
	return 0;
}

/* The remote, begun now if it must be; NULL: it is not to be had. */
static struct remote *need_remote(struct sharing *sharing)
{
	struct err err = {""};

	if (sharing->off)
		return NULL;
	if (sharing->remote == NULL && start_courier(sharing, &err) < 0)
		give_up(sharing, err.text);
	return sharing->off ? NULL : sharing->remote;
}

static void tell_refused(struct sharing *sharing)
{
	const char *theirs = NULL;
	int count = sharing->refused + (sharing->remote != NULL ? remote_refused(sharing->remote, &theirs) : 0);

	if (count > 0)
		fprintf(stderr, "reftest: %d record%s of the remote cache %s count%s as missing; of the first: %s\n",
			count, count == 1 ? "" : "s", sharing->place.shown, count == 1 ? "s" : "",
			sharing->refused > 0 ? sharing->first.text : theirs);
}

void sharing_close(struct sharing *sharing, bool interrupted)
{
	struct err err = {""};

	if (sharing == NULL)
		return;
	if (sharing->remote != NULL && !sharing->off && !interrupted && remote_flush(sharing->remote, &err) < 0)
		fprintf(stderr, "reftest: %s; this run's verdicts are kept here all the same\n", err.text);
	tell_refused(sharing);
	if (sharing->remote != NULL)
		remote_close(sharing->remote);
	process_kill(&sharing->courier);
	while (sharing->courier.pid != 0 && waitpid(sharing->courier.pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (sharing->courier.pidfd >= 0)
		close(sharing->courier.pidfd);
	seal_close(sharing->seal);
	buf_free(&sharing->questions);
	arena_free(&sharing->arena);
	free(sharing);
}

const char *sharing_shown(const struct sharing *sharing)
{
	return sharing->place.shown;
}

/* ---- asking --------------------------------------------------------------------------------------------------------
 */

static void ask_for(struct sharing *sharing, const struct outcome *outcome, const struct test_case *test)
{
	const struct addresses all =
	    addresses_wanted(&outcome->pass->machine.policy, &test->subject, &test->job->truths);

	for (int i = 0; i < all.count; i++) {
		struct question question = {.subject = test->subject};

		memcpy(question.address, all.text[i], ADDRESS);
		buf_add(&sharing->questions, &question, sizeof question);
	}
}

bool sharing_defers(struct outcome *outcome)
{
	struct sharing *sharing = outcome->pass->sharing;
	bool defers = false;

	if (sharing == NULL || sharing->off || outcome->pass->machine.policy.force)
		return false;
	for (int i = 0; i < outcome->case_count; i++) {
		const struct case_outcome *c = &outcome->cases[i];

		if (c->test->decided != NULL || ruling_known(outcome, c))
			continue;
		ask_for(sharing, outcome, c->test);
		defers = true;
	}
	if (defers)
		sharing->waiting[sharing->waiting_count++] = outcome;
	return defers;
}

static struct shared_verdict **bucket_of(struct sharing *sharing, const struct digest *subject)
{
	return &sharing->bucket[(subject->bytes[0] | subject->bytes[1] << 8) % BUCKETS];
}

/* Does the verdict belong where it was found? */
static bool lies_right(const struct question *question, const struct portable *record, const struct verdict *verdict)
{
	const struct addresses all = addresses_of(&record->subject, &record->witness, verdict);

	for (int i = 0; i < all.count; i++)
		if (strcmp(all.text[i], question->address) == 0)
			return true;
	return false;
}

/* The verdict in these bytes if it is one that was asked for; NULL with the sentence. */
static const struct verdict *read_answer(struct sharing *sharing, const struct question *question, const void *bytes,
					 size_t length, struct err *err)
{
	struct portable record;
	size_t used;
	enum portable_answer answer = portable_read(bytes, length, &sharing->arena, &record, &used, err);

	if (answer != PORTABLE_WHOLE || used != length) {
		if (answer == PORTABLE_SHORT || answer == PORTABLE_WHOLE)
			err_set(err, "it is no whole record");
		return NULL;
	}
	if (!digest_equal(&record.subject, &question->subject)) {
		err_set(err, "it is of another subject than was asked for");
		return NULL;
	}
	if (signing_check(sharing->seal, &record, err) < 0 || portable_check(&record, err) < 0)
		return NULL;
	const struct verdict *verdict = verdict_parse(record.text, record.length, &sharing->arena, err);

	if (verdict == NULL || lies_right(question, &record, verdict))
		return verdict;
	err_set(err, "it is of another device or ground truth than was asked for");
	return NULL;
}

static void take_answer(void *context, int place, const void *bytes, size_t length)
{
	struct sharing *sharing = context;
	const struct question *question = (const struct question *)(const void *)sharing->questions.data + place;
	struct err err = {""};
	const struct verdict *verdict = read_answer(sharing, question, bytes, length, &err);

	if (verdict == NULL) {
		if (sharing->refused++ == 0)
			sharing->first = err;
		return;
	}
	struct shared_verdict *kept = arena_alloc(&sharing->arena, sizeof *kept);
	struct shared_verdict **bucket = bucket_of(sharing, &question->subject);

	*kept = (struct shared_verdict){question->subject, verdict, *bucket};
	*bucket = kept;
}

static void ask(struct sharing *sharing)
{
	int count = (int)(sharing->questions.length / sizeof(struct question));
	const struct question *questions = (const struct question *)(const void *)sharing->questions.data;
	struct remote *remote = need_remote(sharing);
	struct err err = {""};

	if (remote != NULL) {
		const char **keys = calloc((size_t)count, sizeof *keys);

		if (keys == NULL)
			die_no_memory();
		for (int i = 0; i < count; i++)
			keys[i] = questions[i].address;
		if (remote_get(remote, keys, count, take_answer, sharing, &err) < 0)
			give_up(sharing, err.text);
		free(keys);
	}
	buf_clear(&sharing->questions);
	sharing->asked = true;
	sharing->next = 0;
}

struct outcome *sharing_next(struct pass *pass, bool all)
{
	struct sharing *sharing = pass->sharing;

	if (sharing == NULL || sharing->waiting_count == 0)
		return NULL;
	if (!sharing->asked && (all || sharing->waiting_count == WAITING_MOST))
		ask(sharing);
	if (!sharing->asked)
		return NULL;
	struct outcome *outcome = sharing->waiting[sharing->next++];

	if (sharing->next == sharing->waiting_count) {
		sharing->waiting_count = 0;
		sharing->asked = false;
	}
	return outcome;
}

const struct shared_verdict *sharing_verdict(const struct sharing *sharing, const struct digest *subject,
					     const struct shared_verdict *after)
{
	const struct shared_verdict *at = NULL;

	if (after != NULL)
		at = after->next;
	else if (sharing != NULL)
		at = *bucket_of((struct sharing *)sharing, subject);
	while (at != NULL && !digest_equal(&at->subject, subject))
		at = at->next;
	return at;
}

/* ---- giving --------------------------------------------------------------------------------------------------------
 */

static void put_case(struct sharing *sharing, struct remote *remote, struct outcome *outcome,
		     const struct case_outcome *c)
{
	const struct verdict *v = c->verdict;
	const struct portable_name name = {outcome_name(outcome, &outcome->arena), c->test->id};
	struct fields all = fields_copy(&c->test->fields, &outcome->arena);
	struct portable record = {
	    .subject = c->test->subject, .witness = c->witness, .made = v->time, .names = &name, .name_count = 1};
	struct buf text = {0}, fields = {0}, bytes = {0};
	unsigned char room[SEAL_SIGNATURE_MAX];

	witness_fields(v->ground_truth, verdict_truth_version(v, &outcome->arena), v->device_class, v->torch, v->cuda,
		       &outcome->arena, &all);
	verdict_write(v, &text);
	fields_write(&all, &fields);
	record.text = text.data;
	record.length = text.length;
	record.fields = fields.data;
	record.fields_length = fields.length;
	signing_sign(sharing->seal, &record, room);
	if (portable_write(&record, &bytes, NULL) == 0) {
		const struct addresses addresses = addresses_of(&record.subject, &record.witness, v);
		const char *keys[ADDRESSES];

		for (int i = 0; i < addresses.count; i++)
			keys[i] = addresses.text[i];
		remote_put(remote, keys, addresses.count, bytes.data, bytes.length);
	}
	buf_free(&text);
	buf_free(&fields);
	buf_free(&bytes);
}

void sharing_put(struct outcome *outcome)
{
	struct sharing *sharing = outcome->pass->sharing;
	struct remote *remote;

	if (sharing == NULL || sharing->off || sharing->place.read_only || outcome->pass->options->dry_run ||
	    (sharing->seal != NULL && !seal_signs(sharing->seal)))
		return;
	for (int i = 0; i < outcome->case_count; i++) {
		const struct case_outcome *c = &outcome->cases[i];

		if (c->verdict == NULL || c->test->job == NULL || !c->kept || c->cached)
			continue;
		if ((remote = need_remote(sharing)) == NULL)
			return;
		put_case(sharing, remote, outcome, c);
	}
}
