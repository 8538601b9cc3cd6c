#include "commands/upkeep.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "commands/generated.h"

static const char folder[] = "tests/references/";

/* The first of several counts: whoever goes on touching them puts nothing off. */
bool upkeep_heard(struct upkeep *upkeep, const char *path, int64_t now_ms)
{
	if (strncmp(path, "tests/", 6) != 0)
		return false;
	if ((strncmp(path, folder, sizeof folder - 1) == 0 || strcmp(path, "tests/") == 0) && upkeep->due_ms == 0)
		upkeep->due_ms = now_ms + UPKEEP_REST_MS;
	return true;
}

int64_t upkeep_deadline(const struct upkeep *upkeep)
{
	return upkeep->due_ms != 0 ? upkeep->due_ms : INT64_MAX;
}

/* What is done at every save is counted, not told. */
static bool is_routine(const char *sentence)
{
	size_t length = strlen(sentence);

	return (length > 8 && strcmp(sentence + length - 8, " written") == 0) || strstr(sentence, " removed: ") != NULL;
}

static void say(struct upkeep *upkeep, const struct watch_teller *teller, const struct generated *generated,
                const char *failure)
{
	struct buf all = {0};

	buf_text(&all, failure);
	for (int i = 0; i < generated->told_count; i++)
		if (!is_routine(generated->told[i]))
			buf_add(&all, generated->told[i], strlen(generated->told[i]) + 1);
	struct digest said = digest_of(all.data, all.length);
	bool news = all.length > 0 && !digest_equal(&said, &upkeep->said);

	upkeep->failed = all.length > 0;
	upkeep->said = said;
	buf_free(&all);
	if (news && failure[0] != '\0')
		tell_notice(teller, failure);
	for (int i = 0; i < generated->told_count && news; i++)
		if (!is_routine(generated->told[i]))
			tell_notice(teller, generated->told[i]);
}

void upkeep_update(struct upkeep *upkeep, struct reftest *reftest, const struct dataset *dataset,
                   const struct watch_teller *teller)
{
	struct generated_options options = {.untold = true};
	struct generated generated = {0};
	struct dataset walked = {.fd = -1};
	struct arena arena = {0};
	struct err err = {""};
	bool there = generated_before(reftest->root, &options.layout), walk = there && dataset == NULL;

	upkeep->due_ms = 0;
	upkeep->there = there;
	if (!there)
		upkeep->failed = false;
	else if (!walk || dataset_scan(reftest->root, &arena, &walked, &err) == 0)
		generated_update(reftest, walk ? &walked : dataset, &options, &arena, &generated, &err);
	if (there)
		say(upkeep, teller, &generated, err.text);
	upkeep->untold += generated.written + generated.removed;
	if (walked.fd >= 0)
		dataset_close(&walked);
	arena_free(&arena);
}

int upkeep_written(struct upkeep *upkeep)
{
	int written = upkeep->untold;

	upkeep->untold = 0;
	return written;
}

/* `reftest generate` may have run beside us. */
bool upkeep_is_due(const struct upkeep *upkeep, const char *root)
{
	enum layout layout;

	return upkeep->due_ms != 0 || generated_before(root, &layout) != upkeep->there;
}
