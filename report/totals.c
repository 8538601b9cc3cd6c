#include "report/totals.h"

struct totals totals_of(const struct run *run)
{
	struct totals totals = {.definitions = run->selected_count - run->other_shard + run->up_to_date,
				.by_status[STATUS_PASSED] = run->answered + run->up_to_date,
				.unknown = run->selected_count - run->other_shard - run->answered - run->count,
				.elements = (int64_t)(run->answered_elements + run->up_to_date_elements)};

	for (int i = 0; i < run->count; i++) {
		const struct result *result = run->results[i];

		totals.unknown += !result->known;
		totals.by_status[result->status] += result->known;
		totals.changed += result->changed;
		totals.elements += (int64_t)result->counts.elements;
		totals.findings += result->findings;
	}
	return totals;
}
