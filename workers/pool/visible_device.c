#include "workers/pool/visible_device.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "CUDA_VISIBLE_DEVICES="

/* Returns whether this entry of CUDA_VISIBLE_DEVICES names a device. CUDA ignores the first entry that names no device,
 * and all entries after it. */
static bool names_device(const char *entry, size_t length)
{
	return length > 0 && entry[0] != '-';
}

/* Returns entry number `index` (from 0) of a comma-separated list, without the spaces around the entry. Returns NULL if
 * there is none. */
static const char *entry_of(const char *list, long index, struct arena *arena)
{
	for (;; index--) {
		list += strspn(list, " ");
		size_t all = strcspn(list, ","), length = all;

		while (length > 0 && list[length - 1] == ' ')
			length--;
		if (!names_device(list, length))
			return NULL;
		if (index == 0)
			return arena_copy(arena, list, length);
		if (list[all] == '\0')
			return NULL;
		list += all + 1;
	}
}

const char *visible_device(const char *device, const char *list, struct arena *arena)
{
	static const char prefix[] = "cuda:";
	const char *digits = device + sizeof prefix - 1;
	char *end;

	if (strncmp(device, prefix, sizeof prefix - 1) != 0 || digits[0] < '0' || digits[0] > '9')
		return NULL;
	long index = strtol(digits, &end, 10);

	if (*end != '\0')
		return NULL;
	return list == NULL ? arena_printf(arena, "%ld", index) : entry_of(list, index, arena);
}

char **visible_device_environment(char **environment, const char *visible, struct arena *arena)
{
	size_t count = 0, kept = 0;

	if (visible == NULL)
		return environment;
	while (environment[count] != NULL)
		count++;
	char **out = arena_array(arena, count + 2, sizeof *out);

	for (size_t i = 0; i < count; i++)
		if (strncmp(environment[i], VARIABLE, sizeof VARIABLE - 1) != 0)
			out[kept++] = environment[i];
	out[kept] = arena_printf(arena, VARIABLE "%s", visible);
	return out;
}
