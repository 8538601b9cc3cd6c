#include "commands/flight.h"

/* The digest is uniform already: its first bytes are the bucket. */
static struct flight **bucket_of(struct flights *flights, const struct digest *subject)
{
	return &flights->bucket[(subject->bytes[0] << 8 | subject->bytes[1]) % FLIGHT_BUCKETS];
}

bool flight_board(struct flights *flights, const struct digest *subject, struct outcome *outcome, int case_index,
                  struct arena *arena)
{
	struct flight **bucket = bucket_of(flights, subject);

	for (struct flight *f = *bucket; f != NULL; f = f->next)
		if (digest_equal(&f->subject, subject)) {
			struct passenger *last = arena_alloc(arena, sizeof *last);

			*last = (struct passenger){outcome, case_index, f->first.next};
			f->first.next = last;
			return false;
		}
	struct flight *f = arena_alloc(arena, sizeof *f);

	*f = (struct flight){*subject, {outcome, case_index, NULL}, *bucket};
	*bucket = f;
	return true;
}

const struct passenger *flight_land(struct flights *flights, const struct digest *subject)
{
	for (struct flight **at = bucket_of(flights, subject); *at != NULL; at = &(*at)->next)
		if (digest_equal(&(*at)->subject, subject)) {
			const struct flight *f = *at;

			*at = f->next;
			return &f->first;
		}
	return NULL;
}

static bool is_passenger(const struct passenger *who, const struct outcome *outcome, int case_index)
{
	return who->outcome == outcome && who->case_index == case_index;
}

const struct passenger *flight_leave(struct flights *flights, const struct digest *subject,
                                     const struct outcome *outcome, int case_index)
{
	struct flight **at = bucket_of(flights, subject);

	while (*at != NULL && !digest_equal(&(*at)->subject, subject))
		at = &(*at)->next;
	struct flight *f = *at;

	if (f == NULL)
		return NULL;
	if (is_passenger(&f->first, outcome, case_index)) {
		if (f->first.next != NULL) {
			f->first = *f->first.next;
			return &f->first;
		}
		*at = f->next;
		return NULL;
	}
	for (struct passenger **who = &f->first.next; *who != NULL; who = &(*who)->next)
		if (is_passenger(*who, outcome, case_index)) {
			*who = (*who)->next;
			break;
		}
	return NULL;
}
