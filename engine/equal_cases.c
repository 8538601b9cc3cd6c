#include "engine/equal_cases.h"

/* The digest is uniformly distributed, so its first bytes select the bucket. */
static struct equal_cases_entry **bucket_of(struct equal_cases *equal_cases, const struct digest *subject)
{
	return &equal_cases->bucket[(subject->bytes[0] << 8 | subject->bytes[1]) % EQUAL_CASES_BUCKETS];
}

bool equal_cases_join(struct equal_cases *equal_cases, const struct digest *subject, struct result *result,
		      int case_index, struct arena *arena)
{
	struct equal_cases_entry **bucket = bucket_of(equal_cases, subject);

	for (struct equal_cases_entry *f = *bucket; f != NULL; f = f->next)
		if (digest_equal(&f->subject, subject)) {
			struct waiter *last = arena_alloc(arena, sizeof *last);

			*last = (struct waiter){result, case_index, f->first.next};
			f->first.next = last;
			return false;
		}
	struct equal_cases_entry *f = arena_alloc(arena, sizeof *f);

	*f = (struct equal_cases_entry){*subject, {result, case_index, NULL}, *bucket};
	*bucket = f;
	return true;
}

const struct waiter *equal_cases_finish(struct equal_cases *equal_cases, const struct digest *subject)
{
	for (struct equal_cases_entry **at = bucket_of(equal_cases, subject); *at != NULL; at = &(*at)->next)
		if (digest_equal(&(*at)->subject, subject)) {
			const struct equal_cases_entry *f = *at;

			*at = f->next;
			return &f->first;
		}
	return NULL;
}

static bool is_waiter(const struct waiter *who, const struct result *result, int case_index)
{
	return who->result == result && who->case_index == case_index;
}

const struct waiter *equal_cases_leave(struct equal_cases *equal_cases, const struct digest *subject,
				       const struct result *result, int case_index)
{
	struct equal_cases_entry **at = bucket_of(equal_cases, subject);

	while (*at != NULL && !digest_equal(&(*at)->subject, subject))
		at = &(*at)->next;
	struct equal_cases_entry *f = *at;

	if (f == NULL)
		return NULL;
	if (is_waiter(&f->first, result, case_index)) {
		if (f->first.next != NULL) {
			f->first = *f->first.next;
			return &f->first;
		}
		*at = f->next;
		return NULL;
	}
	for (struct waiter **who = &f->first.next; *who != NULL; who = &(*who)->next)
		if (is_waiter(*who, result, case_index)) {
			*who = (*who)->next;
			break;
		}
	return NULL;
}
