#include "engine/cases_internal.h"

#include "kernels/core/default_tolerance.h"
#include "workers/protocol/chain_plan.h"

static void override_rule(struct rule *rule, const struct tolerance *by)
{
	if (by->atol >= 0)
		rule->atol = by->atol;
	if (by->rtol >= 0)
		rule->rtol = by->rtol;
	if (by->hit_ratio >= 0)
		rule->hit_ratio = by->hit_ratio;
}

struct rule definition_rule(const struct definition *d, int output, const struct tolerance *dataset, struct rule rule)
{
	if (dataset != NULL)
		override_rule(&rule, &dataset[d->outputs[output].dtype]);
	override_rule(&rule, &d->tolerance);
	override_rule(&rule, &d->output_tolerance[output]);
	return rule;
}

bool cases_have_dataset_bound(const struct case_options *options, const struct definition *d)
{
	const struct rule none = {.atol = -1, .rtol = -1, .hit_ratio = -1};

	for (int i = 0; options->dataset_bounds && i < d->output_count; i++) {
		const struct tolerance *own = &d->output_tolerance[i], *by_dtype = &options->by_dtype[d->outputs[i].dtype];
		struct rule rule = definition_rule(d, i, options->dataset_by_dtype, none), others = none;

		override_rule(&others, &d->tolerance);
		override_rule(&others, own);
		override_rule(&others, by_dtype);
		override_rule(&others, &options->tolerance);
		if ((rule.atol >= 0 && others.atol < 0) || (rule.rtol >= 0 && others.rtol < 0) ||
		    (rule.hit_ratio >= 0 && others.hit_ratio < 0))
			return true;
	}
	return false;
}

const struct rule *make_rules(const struct maker *m, const struct op_case *c)
{
	const struct definition *d = m->definition;
	const struct op_problem *problem = c->problem;
	struct rule *rules = arena_array(m->arena, (size_t)problem->output_count, sizeof *rules);

	struct err why = {""};
	const struct chain_plan *chain = maker_op(m) == NULL && d->chain != NULL && m->asks == JOB_OUTPUTS
					     ? chain_plan_make(m->kernels, d->chain, problem, m->arena, &why)
					     : NULL;

	for (int i = 0; i < problem->output_count; i++) {
		rules[i] = maker_op(m) != NULL ? maker_op(m)->rule(c, i)
			   : chain != NULL  ? chain_plan_rule(chain, c, i)
					    : rule_default(problem->outputs[i].dtype);
		if (maker_op(m) == NULL && m->line != NULL && m->line->tolerance.given)
			override_rule(&rules[i], &m->line->tolerance.bounds);
		if (m->asks == JOB_OUTPUTS)
			rules[i] = definition_rule(d, i, m->options->dataset_by_dtype, rules[i]);
		override_rule(&rules[i], &m->options->by_dtype[problem->outputs[i].dtype]);
		override_rule(&rules[i], &m->options->tolerance);
	}
	return rules;
}
