#include "report/exit_status.h"

#include <string.h>

#include "engine/approval_state.h"
#include "report/totals.h"

int exit_status_of_group(enum status_group group)
{
	static const int exits[] = {[GROUP_VERIFIED] = EXIT_VERIFIED,
				    [GROUP_UNVERIFIED] = EXIT_UNVERIFIED,
				    [GROUP_WRONG] = EXIT_FAILED,
				    [GROUP_INVALID] = EXIT_USAGE};

	return exits[group];
}

enum status_group exit_group(enum status status, enum checked_kind kind, unsigned accept)
{
	return status == STATUS_CHECKED && (accept >> kind & 1) != 0 ? GROUP_VERIFIED : status_group(status);
}

enum status_group exit_group_of_result(const struct result *result)
{
	return exit_group(result->status, checked_kind_of(result), result->run->options->accept_bits);
}

static enum status_group more_severe(enum status_group a, enum status_group b)
{
	return a > b ? a : b;
}

enum status_group exit_group_of_checked(const int64_t *counts, unsigned accept)
{
	enum status_group worst = GROUP_VERIFIED;

	for (int kind = 0; kind < CHECKED_KINDS; kind++)
		if (counts[kind] > 0)
			worst = more_severe(worst, exit_group(STATUS_CHECKED, (enum checked_kind)kind, accept));
	return worst;
}

int exit_status_of_run(const struct run *run, bool strict)
{
	struct totals totals = totals_of(run);
	enum status_group worst = run->problem_count > 0 ? GROUP_INVALID : GROUP_VERIFIED;

	for (int s = 0; s < STATUS_COUNT; s++)
		if (totals.by_status[s] > 0 && s != STATUS_CHECKED)
			worst = more_severe(worst, status_group((enum status)s));
	worst = more_severe(worst, exit_group_of_checked(totals.checked, run->options->accept_bits));
	if (strict && totals.findings > 0)
		worst = more_severe(worst, GROUP_WRONG);
	if ((totals.definitions == 0 && run->other_shard == 0) || totals.unknown > 0 || totals.changed > 0)
		worst = more_severe(worst, GROUP_UNVERIFIED);
	return run->interrupted ? EXIT_INTERRUPTED : exit_status_of_group(worst);
}

int exit_status_of_runs(const struct run *run, const struct run *solutions, bool strict)
{
	static const int by_severity[] = {EXIT_INTERRUPTED, EXIT_USAGE, EXIT_FAILED, EXIT_UNVERIFIED};
	int first = exit_status_of_run(run, strict);
	int second = solutions == NULL || (solutions->count == 0 && !solutions->interrupted)
			 ? first
			 : exit_status_of_run(solutions, strict);

	for (size_t i = 0; i < sizeof by_severity / sizeof *by_severity; i++)
		if (first == by_severity[i] || second == by_severity[i])
			return by_severity[i];
	return EXIT_VERIFIED;
}
