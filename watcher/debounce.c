#include "watcher/debounce.h"

void debounce_check_lock(struct debounce *debounce, int64_t now_ms)
{
	bool was_held = debounce->held;

	if (!git_lock_held(&debounce->lock))
		debounce->held_ms = 0;
	else if (debounce->held_ms == 0)
		debounce->held_ms = now_ms;
	debounce->held = debounce->held_ms != 0 && now_ms - debounce->held_ms < DEBOUNCE_LONGEST_MS;
	if (was_held && !debounce->held)
		debounce->seal = true;
}

static void end_burst(struct debounce *debounce)
{
	debounce->seal = debounce->seal || debounce->burst_ms != 0;
	debounce->burst_ms = 0;
}

void debounce_end_burst(struct debounce *debounce)
{
	end_burst(debounce);
}

bool debounce_defers(const struct debounce *debounce, int64_t now_ms)
{
	return (debounce->held || debounce->burst_ms != 0) && !debounce->seal &&
	       now_ms - debounce->taken_ms < DEBOUNCE_MS;
}

bool debounce_take(struct debounce *debounce, int64_t now_ms, int names, int under_way)
{
	int64_t last_ms = debounce->done_ms > debounce->taken_ms ? debounce->done_ms : debounce->taken_ms;
	bool soon = last_ms != 0 && now_ms - last_ms < DEBOUNCE_MS;

	debounce->taken_ms = now_ms;
	if (debounce->burst_ms != 0 && now_ms - debounce->burst_ms >= DEBOUNCE_LONGEST_MS)
		debounce->seal = true;
	if (debounce->burst_ms == 0 && !debounce->held && !debounce->seal && soon &&
	    (names >= BURST_NAMES || under_way >= BURST_BATCHES))
		debounce->burst_ms = now_ms;
	return debounce->held || debounce->burst_ms != 0;
}

void debounce_rest(struct debounce *debounce, int64_t now_ms)
{
	if (!debounce->held && now_ms - debounce->taken_ms >= BURST_REST_MS)
		end_burst(debounce);
}

bool debounce_seals(struct debounce *debounce)
{
	bool seals = debounce->seal;

	if (seals)
		debounce->burst_ms = 0;
	debounce->seal = false;
	return seals;
}

int64_t debounce_deadline(const struct debounce *debounce)
{
	return debounce->burst_ms != 0 ? debounce->taken_ms + BURST_REST_MS : INT64_MAX;
}
