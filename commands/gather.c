#include "commands/gather.h"

void gather_look(struct gather *gather, int64_t now_ms)
{
	bool was_held = gather->held;

	if (!git_lock_held(&gather->lock))
		gather->held_ms = 0;
	else if (gather->held_ms == 0)
		gather->held_ms = now_ms;
	gather->held = gather->held_ms != 0 && now_ms - gather->held_ms < GATHER_LONGEST_MS;
	if (was_held && !gather->held)
		gather->seal = true;
}

static void end_rush(struct gather *gather)
{
	gather->seal = gather->seal || gather->rush_ms != 0;
	gather->rush_ms = 0;
}

void gather_hurry(struct gather *gather)
{
	end_rush(gather);
}

bool gather_keeps(const struct gather *gather, int64_t now_ms)
{
	return (gather->held || gather->rush_ms != 0) && !gather->seal && now_ms - gather->taken_ms < GATHER_MS;
}

bool gather_take(struct gather *gather, int64_t now_ms, int names, int under_way)
{
	int64_t last_ms = gather->done_ms > gather->taken_ms ? gather->done_ms : gather->taken_ms;
	bool soon = last_ms != 0 && now_ms - last_ms < GATHER_MS;

	gather->taken_ms = now_ms;
	if (gather->rush_ms != 0 && now_ms - gather->rush_ms >= GATHER_LONGEST_MS)
		gather->seal = true;
	if (gather->rush_ms == 0 && !gather->held && !gather->seal && soon &&
	    (names >= RUSH_NAMES || under_way >= RUSH_BATCHES))
		gather->rush_ms = now_ms;
	return gather->held || gather->rush_ms != 0;
}

void gather_rest(struct gather *gather, int64_t now_ms)
{
	if (!gather->held && now_ms - gather->taken_ms >= RUSH_REST_MS)
		end_rush(gather);
}

bool gather_seals(struct gather *gather)
{
	bool seals = gather->seal;

	if (seals)
		gather->rush_ms = 0;
	gather->seal = false;
	return seals;
}

int64_t gather_deadline(const struct gather *gather)
{
	return gather->rush_ms != 0 ? gather->taken_ms + RUSH_REST_MS : INT64_MAX;
}
