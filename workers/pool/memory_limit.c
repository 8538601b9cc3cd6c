/* memory_limit - the default limit is a constant for Python, torch and torch's libraries, plus a multiple of the size
 * of the tensors. bench/memory.py measures how much memory references need, and bench/RESULTS.md has the figures. Both
 * the constant and the factor are more than five times as large as the largest measured need. */
#include "workers/pool/memory_limit.h"

static const int64_t base_bytes = (int64_t)4 << 30;
enum { TIMES_TENSORS = 64 };

int64_t memory_limit(int64_t given, int64_t tensor_bytes)
{
	const int64_t most = (INT64_MAX - base_bytes) / TIMES_TENSORS;

	if (given > 0)
		return given;
	if (tensor_bytes < 0)
		tensor_bytes = 0;
	return tensor_bytes > most ? INT64_MAX : base_bytes + tensor_bytes * TIMES_TENSORS;
}

bool memory_limit_has_room(int64_t memory)
{
	return memory >= base_bytes;
}
