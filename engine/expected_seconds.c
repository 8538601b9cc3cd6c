#include "engine/expected_seconds.h"

#include <string.h>

/* The seconds that a case takes: a constant part, and a part for each MiB of its tensors. Each row describes a straight
 * line through the measured times of small and medium cases on two CPU cores. For a family without a row, typical
 * numbers are used. */
struct cost {
	const char *family;
	double seconds, per_mib;
};

static const struct cost usual = {NULL, 0.05, 0.04};

static const struct cost costs[] = {
    {"activation", 0.04, 0.06},
    {"cascade", 0.05, 0.06},
    {"delta_rule", 0.1, 0.02},
    {"dsa_paged", 0.3, 0.04},
    {"gated_delta_rule", 0.1, 0.03},
    {"gdn", 0.1, 0.02},
    {"gemm", 0.01, 0.07},
    {"gemma_rmsnorm", 0.02, 0.02},
    {"gla", 0.1, 0.05},
    {"gqa_paged", 0.05, 0.04},
    {"gqa_ragged", 0.01, 0.08},
    {"kda", 0.1, 0.05},
    {"layernorm", 0.03, 0.02},
    {"mamba_ssu", 0.01, 0.05},
    {"mla_paged", 0.1, 0.04},
    {"mla_ragged", 0.1, 0.04},
    {"moe", 0.3, 0.02},
    {"page", 0.02, 0.03},
    {"quantize_fp8_per_token_group", 0.01, 0.2},
    {"rmsnorm", 0.01, 0.04},
    {"rope", 0.04, 0.01},
    {"sampling", 0.01, 0.06},
    {"simple_gla", 0.06, 0.05},
    {"softmax", 0.01, 0.04},
};

static const struct cost *cost_of(const char *family)
{
	for (size_t i = 0; family != NULL && i < sizeof costs / sizeof costs[0]; i++)
		if (strcmp(costs[i].family, family) == 0)
			return &costs[i];
	return &usual;
}

double expected_seconds(double remembered, const char *family, const struct job *job)
{
	const struct cost *cost = cost_of(family);

	if (remembered > 0)
		return remembered;
	return cost->seconds + cost->per_mib * (double)job_arena_bytes(job) / (1 << 20);
}
