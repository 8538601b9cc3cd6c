/* There are two hash tables with open addressing. New entries are added to the young table. When the young table is
 * full, the old table is discarded. The young table becomes the old table, and a new young table is started. */
#include "engine/summary_lru.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

enum { SUMMARY_LRU_SLOTS = 2 * SUMMARY_LRU_MOST };

struct summary_lru_entry {
	struct digest key; /* digest of path and contents; all zeros in a free slot */
	struct summary summary;
};

static struct digest key_of(const char *path, const struct digest *inputs)
{
	const struct digest pair[2] = {digest_of(path, strlen(path)), *inputs};

	return digest_of(pair, sizeof pair);
}

/* Returns the slot with this key. If there is none, returns the free slot where this key can be stored. A free slot
 * always exists, because at most half of the slots are used. */
static struct summary_lru_entry *slot_of(struct summary_lru_entry *table, const struct digest *key)
{
	static const struct digest none = {{0}};
	uint32_t at;

	memcpy(&at, key->bytes, sizeof at);
	at %= SUMMARY_LRU_SLOTS;
	while (!digest_equal(&table[at].key, key) && !digest_equal(&table[at].key, &none))
		at = (at + 1) % SUMMARY_LRU_SLOTS;
	return &table[at];
}

static struct summary_lru_entry *empty_table(void)
{
	struct summary_lru_entry *table = calloc(SUMMARY_LRU_SLOTS, sizeof *table);

	if (table == NULL)
		die_no_memory();
	return table;
}

void summary_lru_store(struct summary_lru *summary_lru, const char *path, const struct summary *summary)
{
	const struct digest key = key_of(path, &summary->inputs);

	if (summary_lru->count == SUMMARY_LRU_MOST) {
		free(summary_lru->old);
		summary_lru->old = summary_lru->young;
		summary_lru->young = NULL;
		summary_lru->count = 0;
	}
	if (summary_lru->young == NULL)
		summary_lru->young = empty_table();
	struct summary_lru_entry *slot = slot_of(summary_lru->young, &key);

	summary_lru->count += !digest_equal(&slot->key, &key);
	*slot = (struct summary_lru_entry){key, *summary};
}

const struct summary *summary_lru_find(const struct summary_lru *summary_lru, const char *path,
				       const struct digest *context, const struct digest *inputs)
{
	struct summary_lru_entry *const tables[] = {summary_lru->young, summary_lru->old};
	const struct digest key = key_of(path, inputs);

	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		const struct summary_lru_entry *slot = tables[i] == NULL ? NULL : slot_of(tables[i], &key);

		if (slot != NULL && digest_equal(&slot->key, &key) && digest_equal(&slot->summary.context, context) &&
		    digest_equal(&slot->summary.inputs, inputs))
			return &slot->summary;
	}
	return NULL;
}

void summary_lru_free(struct summary_lru *summary_lru)
{
	free(summary_lru->young);
	free(summary_lru->old);
	*summary_lru = (struct summary_lru){0};
}
