#include "report/totals.h"

#include "engine/approval_state.h"

bool totals_lacks_verdict(const struct result *result)
{
	return !result->known || (result->run->options->dry_run && result->reason == REASON_NOT_CACHED);
}

struct totals totals_of(const struct run *run)
{
	struct totals totals = {.definitions = run->selected_count - run->other_shard + run->up_to_date,
				.by_status[STATUS_PASSED] = run->answered + run->up_to_date,
				.unknown = run->selected_count - run->other_shard - run->answered - run->count,
				.elements = (int64_t)(run->answered_elements + run->up_to_date_elements)};

	totals.shown_unknown = totals.unknown;
	totals.shown[STATUS_PASSED] = totals.by_status[STATUS_PASSED];
	for (int i = 0; i < run->count; i++) {
		const struct result *result = run->results[i];

		totals.unknown += !result->known;
		totals.by_status[result->status] += result->known;
		if (result->known && result->status == STATUS_CHECKED)
			totals.checked[checked_kind_of(result)]++;
		if (!totals_lacks_verdict(result))
			totals.shown[result->status]++;
		else
			*(result->stale ? &totals.shown_stale : &totals.shown_unknown) += 1;
		totals.changed += result->changed;
		totals.elements += (int64_t)result->counts.elements;
		totals.findings += result->findings;
	}
	return totals;
}
