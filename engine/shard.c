#include "engine/shard.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

/* Returns whether the digest belongs to this shard. Reads the first eight bytes of the digest as a big-endian number,
 * so that the shard is the same on every machine. */
static bool falls_to(const struct shard *shard, const struct digest *digest)
{
	uint64_t number = 0;

	for (int i = 0; i < 8; i++)
		number = number << 8 | digest->bytes[i];
	return number % (uint64_t)shard->count == (uint64_t)(shard->number - 1);
}

bool shard_reports(const struct shard *shard, const char *name)
{
	struct digest digest = digest_of(name, strlen(name));

	return shard->count == 0 || falls_to(shard, &digest);
}

bool shard_filter(const struct shard *shard, const char *name, struct cases *cases)
{
	int kept = 0;

	if (shard->count == 0)
		return true;
	if (cases->count == 0)
		return shard_reports(shard, name);
	for (int i = 0; i < cases->count; i++)
		if (cases->items[i].job != NULL ? falls_to(shard, &cases->items[i].subject) : shard_reports(shard, name))
			cases->items[kept++] = cases->items[i];
	cases->count = kept;
	return kept > 0;
}
