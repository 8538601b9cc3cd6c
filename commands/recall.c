/* Two tables with open addressing. The young one takes what comes; when it is full it becomes the old one, and what was
 * in that is forgotten. */
#include "commands/recall.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

enum { RECALL_SLOTS = 2 * RECALL_MOST };

struct recall_entry {
	struct digest key; /* of path and contents; zeros: the slot is free */
	struct summary summary;
};

static struct digest key_of(const char *path, const struct digest *inputs)
{
	const struct digest pair[2] = {digest_of(path, strlen(path)), *inputs};

	return digest_of(pair, sizeof pair);
}

/* The slot that has the key, or the free one that it would have. There is one: half of them are free. */
static struct recall_entry *slot_of(struct recall_entry *table, const struct digest *key)
{
	static const struct digest none = {{0}};
	uint32_t at;

	memcpy(&at, key->bytes, sizeof at);
	at %= RECALL_SLOTS;
	while (!digest_equal(&table[at].key, key) && !digest_equal(&table[at].key, &none))
		at = (at + 1) % RECALL_SLOTS;
	return &table[at];
}

static struct recall_entry *empty_table(void)
{
	struct recall_entry *table = calloc(RECALL_SLOTS, sizeof *table);

	if (table == NULL)
		die_no_memory();
	return table;
}

void recall_keep(struct recall *recall, const char *path, const struct summary *summary)
{
	const struct digest key = key_of(path, &summary->inputs);

	if (recall->count == RECALL_MOST) {
		free(recall->old);
		recall->old = recall->young;
		recall->young = NULL;
		recall->count = 0;
	}
	if (recall->young == NULL)
		recall->young = empty_table();
	struct recall_entry *slot = slot_of(recall->young, &key);

	recall->count += !digest_equal(&slot->key, &key);
	*slot = (struct recall_entry){key, *summary};
}

const struct summary *recall_find(const struct recall *recall, const char *path, const struct digest *context,
				  const struct digest *inputs)
{
	struct recall_entry *const tables[] = {recall->young, recall->old};
	const struct digest key = key_of(path, inputs);

	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		const struct recall_entry *slot = tables[i] == NULL ? NULL : slot_of(tables[i], &key);

		if (slot != NULL && digest_equal(&slot->key, &key) && digest_equal(&slot->summary.context, context) &&
		    digest_equal(&slot->summary.inputs, inputs))
			return &slot->summary;
	}
	return NULL;
}

void recall_free(struct recall *recall)
{
	free(recall->young);
	free(recall->old);
	*recall = (struct recall){0};
}
