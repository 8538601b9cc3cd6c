#include "engine/shard.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { SHARDS_MOST = 65536 };

int shard_read(const char *text, struct shard *out, struct err *err)
{
	char *end = "";
	long number = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
	long count = end[0] == '/' && end[1] >= '0' && end[1] <= '9' ? strtol(end + 1, &end, 10) : -1;

	if (number < 0 || count < 1 || count > SHARDS_MOST || *end != '\0')
		return err_set(err, "invalid shard '%s' (--shard takes I/N, as in 2/4: the second of four; N is at most %d)",
			       err_show(text).text, SHARDS_MOST);
	if (number < 1 || number > count)
		return err_set(err, "--shard %s: shards are numbered from 1 to %ld%s", err_show(text).text, count,
			       number == 0 ? " (Slurm: --array=1-N)" : "");
	*out = (struct shard){(int)number, (int)count};
	return 0;
}

/* Reads the first eight bytes of the name's digest as a big-endian number, so that the shard is the same on every
 * machine. */
bool shard_has(const struct shard *shard, const char *op_type, const char *name)
{
	struct hash *hash = hash_begin();
	uint64_t number = 0;

	hash_add(hash, op_type, strlen(op_type));
	hash_add(hash, "/", 1);
	hash_add(hash, name, strlen(name));
	struct digest digest = hash_end(hash);

	for (int i = 0; i < 8; i++)
		number = number << 8 | digest.bytes[i];
	return shard->count == 0 || number % (uint64_t)shard->count == (uint64_t)(shard->number - 1);
}
