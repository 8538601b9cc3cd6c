#include "workers/judge/kept_memory.h"

#include <malloc.h>
#include <poll.h>

enum { KEPT_BYTES = 1 << 30 };

void kept_memory_begin(void)
{
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}

bool kept_memory_wait(int fd, int idle_ms)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};

	if (poll(&readable, 1, idle_ms) != 0)
		return false;
	malloc_trim(0);
	return true;
}
