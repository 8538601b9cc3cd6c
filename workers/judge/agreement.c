#include "workers/judge/agreement.h"

void agreement_differ(struct agreement *agreement, int a, int b)
{
	agreement->differ[a][b] = agreement->differ[b][a] = true;
}

/* Returns the number of ground truths that differ from ground truth `which`. */
static int differs_from(const struct agreement *agreement, int which)
{
	int count = 0;

	for (int i = 0; i < agreement->count; i++)
		count += agreement->differ[which][i];
	return count;
}

int agreement_differences(const struct agreement *agreement)
{
	int ends = 0;

	for (int i = 0; i < agreement->count; i++)
		ends += differs_from(agreement, i);
	return ends / 2;
}

static int answers(const struct agreement *agreement)
{
	int count = 0;

	for (int i = 0; i < agreement->count; i++)
		count += agreement->answered[i];
	return count;
}

int agreement_alone(const struct agreement *agreement)
{
	int others = answers(agreement) - 1, differences = agreement_differences(agreement);

	for (int i = 0; i < agreement->count && others > 1; i++)
		if (differs_from(agreement, i) == others && differences == others)
			return i;
	return -1;
}

static bool votes_against(const struct agreement *agreement, const struct agreement_vote *vote, int which)
{
	return vote->cast && agreement->answered[which] && vote->against[which];
}

static int votes(const struct agreement *agreement, const struct agreement_vote *vote)
{
	int count = 0;

	for (int i = 0; i < agreement->count; i++)
		count += votes_against(agreement, vote, i);
	return count;
}

int agreement_alone_by(const struct agreement *agreement, const struct agreement_vote *vote)
{
	for (int i = 0; i < agreement->count && votes(agreement, vote) == 1; i++)
		if (votes_against(agreement, vote, i))
			return i;
	return -1;
}

bool agreement_too_coarse(const struct agreement *agreement, const bool coarse[GROUND_TRUTHS_MAX], int exact)
{
	bool all = answers(agreement) > 0;

	for (int i = 0; i < agreement->count; i++)
		all = all && (!agreement->answered[i] || coarse[i]);
	return all && exact >= 0 && !agreement->answered[exact];
}

/* Appends which ground truths differ from the oracle, for example ": flashinfer and torch differ from the oracle on the
 * CPU". */
static void describe_vote(const struct agreement *agreement, const struct agreement_vote *vote, const char *const *names,
		     struct buf *out)
{
	int against = votes(agreement, vote), said = 0;

	if (!vote->cast)
		return;
	if (against == 0 || against == answers(agreement)) {
		buf_printf(out, "; the oracle on the CPU differs from %s of the ground truths", against == 0 ? "none" : "all");
		return;
	}
	for (int i = 0; i < agreement->count; i++)
		if (votes_against(agreement, vote, i))
			buf_printf(out, "%s%s", said++ == 0 ? ": " : " and ", names[i]);
	buf_text(out, " differ from the oracle on the CPU");
}

void agreement_describe(const struct agreement *agreement, const struct agreement_vote *vote, const char *const *names,
		   struct buf *out)
{
	int alone = agreement_alone(agreement), by_oracle = agreement_alone_by(agreement, vote);
	int differences = agreement_differences(agreement);

	if (alone >= 0) {
		buf_printf(out, "%s is the outlier", names[alone]);
	} else if (by_oracle >= 0) {
		buf_printf(out, "%s is the outlier, by comparison with the oracle on the CPU", names[by_oracle]);
	} else {
		buf_printf(out, "%d %s of ground truths %s, and no single ground truth is the outlier", differences,
			   differences == 1 ? "pair" : "pairs", differences == 1 ? "differs" : "differ");
		describe_vote(agreement, vote, names, out);
	}
}
