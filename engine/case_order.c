#include "engine/case_order.h"

#include <string.h>

#include "engine/definition_files.h"
#include "engine/definition_status.h"
#include "engine/equal_cases.h"

const char *cases_before_text(const struct cases_before *before, struct arena *arena)
{
	char hex[DIGEST_HEX];

	if (!before->any)
		return "none";
	digest_hex(&before->digest, hex);
	return arena_string(arena, hex);
}

void cases_before_add(struct cases_before *before, const struct test_case *test)
{
	const struct digest both[] = {before->digest, test->execution};

	before->digest = digest_of(both, sizeof both);
	before->any = true;
}

bool case_order_first_alone(const struct result *result)
{
	return result->case_count > 0 && result->made->op != NULL && result->made->matched == MATCHED_BY_SHAPES;
}

static const struct case_result *first_equal(const struct case_result *c, const struct digest *execution)
{
	while (c->test->job == NULL || !digest_equal(&c->test->execution, execution))
		c++;
	return c;
}

void case_order_set(struct result *result)
{
	struct equal_cases *seen = arena_alloc(&result->arena, sizeof *seen);
	struct cases_before before = {0};
	int first = 0;

	*seen = (struct equal_cases){0};
	for (int i = 0; i < result->case_count; i++) {
		struct case_result *c = &result->cases[i];

		if (i == 1 && case_order_first_alone(result)) {
			first = 1;
			before = (struct cases_before){0};
			*seen = (struct equal_cases){0};
		}
		if (c->test->job == NULL)
			continue;
		c->equal = c->test->execution;
		if (!equal_cases_join(seen, &c->equal, result, i, &result->arena)) {
			c->after_all = first_equal(&result->cases[first], &c->equal)->after_all;
			continue;
		}
		c->after_all = cases_before_text(&before, &result->arena);
		cases_before_add(&before, c->test);
	}
}

/* Returns whether a ground truth of the definition is Python source in the dataset. Its source is not examined. */
static bool has_python_truths(const struct result *result)
{
	bool found = result->approved.truth.program.name != NULL;

	for (int i = 0; i < result->own_truth_count; i++)
		found = found || result->own_truths[i].program.name != NULL;
	return found;
}

bool case_order_is_stateless(const struct result *result)
{
	if (has_python_truths(result))
		return false;
	for (int i = 0; i < result->planned; i++) {
		const struct case_result *c = &result->cases[i];

		if (c->cached && c->verdict->after == NULL && c->verdict->torch != NULL)
			return true;
	}
	return false;
}

bool case_order_needs_all(const struct result *result, int from)
{
	bool lacks = false, keeps = false;

	for (int i = from; i < result->planned; i++) {
		const struct case_result *c = &result->cases[i];

		lacks = lacks || case_lacks_verdict(c);
		keeps = keeps || (c->cached && c->verdict->after != NULL);
	}
	return lacks && keeps && !case_order_is_stateless(result);
}

bool case_order_is_broken(const struct result *result)
{
	for (int i = 0; i < result->planned; i++) {
		const struct case_result *c = &result->cases[i];
		const char *after = c->test->job != NULL && c->verdict != NULL ? c->verdict->after : NULL;

		if (after != NULL && strcmp(after, c->after_all) != 0 && (c->shared || strcmp(after, AFTER_OTHER) != 0))
			return true;
	}
	return false;
}

struct digest case_order_own(struct result *result, const struct case_result *c)
{
	char hex[DIGEST_HEX];

	digest_hex(&c->test->execution, hex);
	const char *text = arena_printf(&result->arena, "%s %s", hex, result_name(result, &result->arena));

	return digest_of(text, strlen(text));
}
