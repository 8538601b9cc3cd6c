/* routing - finds the routing method in names and descriptions, finds its parameters, and selects experts. */
#include "kernels/moe/routing.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/published_models.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/take.h"

/* --- the method --------------------------------------------------------------------------------------------------- */

static bool says(const struct op_problem *problem, const char *words)
{
	return match_mentions(problem, words) || match_contains(problem->description, words);
}

/* Returns the first method in `table` that the definition's name, description or tags mention, or -1 if they mention no
 * method. The methods have the numbers that FlashInfer uses. */
static int method_said(const struct op_problem *problem)
{
	static const struct {
		const char *words;
		enum moe_method method;
	} table[] = {
	    {"routing_method_type=1", MOE_RENORMALISE},
	    {"routing_method_type=2", MOE_DEEPSEEK},
	    {"routing_method_type=3", MOE_LLAMA4},
	    {"routing_method_type=4", MOE_RENORMALISE},
	    {"ds_routing", MOE_DEEPSEEK},
	    {"deepseek routing", MOE_DEEPSEEK},
	    {"llama4 routing", MOE_LLAMA4},
	    {"llama 4 routing", MOE_LLAMA4},
	    {"renorm", MOE_RENORMALISE},
	};

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (says(problem, table[i].words))
			return (int)table[i].method;
	return -1;
}

int routing_variant(const struct op_problem *problem, const struct moe_roles *roles, struct err *why)
{
	int said = method_said(problem);
	bool bias = roles->bias >= 0, scaling = roles->scaling >= 0;

	if (roles->ids >= 0)
		return MOE_GIVEN | (said == MOE_LLAMA4 ? MOE_WEIGHT_ON_INPUT : 0);
	if (said == MOE_LLAMA4)
		return MOE_LLAMA4 | MOE_WEIGHT_ON_INPUT;
	if (bias && scaling && said != MOE_RENORMALISE)
		return MOE_DEEPSEEK;
	if (said == MOE_RENORMALISE && !bias && !scaling)
		return MOE_RENORMALISE;
	if (said < 0)
		return err_set(why,
			       "the definition does not say how tokens are routed; it needs a bias and a scaling "
			       "factor (DeepSeek), or a description with words such as 'Renormalize routing' or "
			       "'Llama4 routing'");
	return err_set(why, said == MOE_DEEPSEEK
				? "DeepSeek routing needs a routing bias and a scaling factor as inputs"
				: "renormalised routing must have neither a routing bias nor a scaling factor as "
				  "inputs");
}

/* --- its parameters ----------------------------------------------------------------------------------------------- */

enum number { TOP_K, GROUPS, KEPT_GROUPS, NUMBERS };

/* The sources of each parameter: a const axis, the definition's name ("topk8", "ng8", "kg4"), or a model's
 * configuration. */
static const struct {
	const char *name, *axes[2], *word, *field;
} sources[NUMBERS] = {
    [TOP_K] = {"top_k", {"top_k", "topk"}, "topk", "num_experts_per_tok"},
    [GROUPS] = {"n_group", {"n_group", "num_expert_group"}, "ng", "n_group"},
    [KEPT_GROUPS] = {"topk_group", {"topk_group", "top_k_group"}, "kg", "topk_group"},
};

static void attest(struct op_constant *constant, double value, const char *source)
{
	if (isnan(constant->value)) {
		constant->value = value;
		snprintf(constant->source, sizeof constant->source, "%s", source);
	} else if (constant->conflict[0] == '\0' && constant->value != value) {
		snprintf(constant->conflict, sizeof constant->conflict, "%s is %g according to %s, but %g according to %s", constant->name,
			 constant->value, constant->source, value, source);
	}
}

/* Returns the number after `word` in a name such as "moe_topk8_ng8_kg4", or 0 if the name does not contain the word. */
static long number_in(const char *name, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(name, word); at != NULL; at = strstr(at + 1, word))
		if ((at == name || at[-1] == '_') && isdigit((unsigned char)at[length]))
			return strtol(at + length, NULL, 10);
	return 0;
}

static struct op_constant find_constant(const struct op_problem *problem, enum number n)
{
	struct op_constant constant = {.value = NAN, .source = "unattested"};
	double value;

	snprintf(constant.name, sizeof constant.name, "%s", sources[n].name);
	for (size_t i = 0; i < 2; i++) {
		int axis = op_axis_index(problem, sources[n].axes[i]);
		char source[32];

		snprintf(source, sizeof source, "axis:%s", sources[n].axes[i]);
		if (axis >= 0 && !problem->axes[axis].var)
			attest(&constant, (double)problem->axes[axis].value, source);
	}
	if (number_in(problem->name, sources[n].word) > 0)
		attest(&constant, (double)number_in(problem->name, sources[n].word), "name");
	for (int i = 0; i < problem->tag_count; i++)
		if (strncmp(problem->tags[i], "model:", 6) == 0 &&
		    model_number(problem->tags[i] + 6, sources[n].field, &value))
			attest(&constant, value, problem->tags[i]);
	return constant;
}

/* Returns the input that gives the parameter, or -1 if the parameter is a constant. */
static int input_of(const struct moe_roles *roles, enum number n)
{
	return n == TOP_K ? roles->top_k : n == GROUPS ? roles->groups : roles->kept_groups;
}

int routing_constants(const struct op_problem *problem, int variant, struct op_constant *out)
{
	struct moe_roles roles = moe_roles_of(problem);
	enum moe_method method = (enum moe_method)(variant & MOE_METHOD);
	int count = 0;

	for (int n = 0; n < (method == MOE_DEEPSEEK ? NUMBERS : TOP_K + 1) && method != MOE_GIVEN; n++)
		if (input_of(&roles, (enum number)n) < 0)
			out[count++] = find_constant(problem, (enum number)n);
	return count;
}

/* Returns the value of a parameter. Returns `otherwise` if the method does not use the parameter, and 0 if its value is
 * not known. */
static int64_t number_of(const struct op_case *c, const struct moe_roles *roles, enum number n, int64_t otherwise)
{
	int input = input_of(roles, n);
	double value = input >= 0 ? c->scalar[input] : NAN;

	if (n != TOP_K && (c->variant & MOE_METHOD) != MOE_DEEPSEEK)
		return otherwise;
	for (int i = 0; i < c->constant_count && input < 0; i++)
		if (strcmp(c->constants[i].name, sources[n].name) == 0)
			value = c->constants[i].value;
	return value >= 1 && value <= 1e6 ? (int64_t)value : 0;
}

int routing_of(const struct op_case *c, const struct moe_roles *roles, struct routing *out, struct err *err)
{
	struct moe_extent e = moe_extent_of(c, roles);
	struct routing r = {(enum moe_method)(c->variant & MOE_METHOD), e.experts, 0, 1, 1, 1, c->mistake, c->mistake_by,
			    e.offset, e.local};

	if (roles->scaling >= 0)
		r.factor = c->scalar[roles->scaling];
	if (r.method == MOE_GIVEN) {
		r.picks = c->axis[c->problem->inputs[roles->ids].axis[1]];
	} else {
		r.picks = number_of(c, roles, TOP_K, 0);
		r.groups = number_of(c, roles, GROUPS, 1);
		r.kept = number_of(c, roles, KEPT_GROUPS, 1);
	}
	*out = r;
	r.picks += (r.method != MOE_GIVEN) * ((c->mistake == MOE_PICK_MORE) - (c->mistake == MOE_PICK_LESS));
	if (r.method == MOE_DEEPSEEK && c->mistake == MOE_NO_GROUPS)
		r.groups = r.kept = 1;
	r.kept += c->mistake == MOE_GROUP_MORE && r.kept < r.groups;
	*out = r;
	if (r.picks < 1 || r.picks > MOE_PICKS_MOST || (r.method != MOE_GIVEN && r.picks > r.experts))
		return err_set(
		    err, "the routing selects %lld of %lld experts; it must select at least 1 and at most %d, and "
			 "cannot select more experts than there are",
		    (long long)r.picks, (long long)r.experts, MOE_PICKS_MOST);
	if (r.groups < 1 || r.kept < 1 || r.kept > r.groups || r.kept > MOE_PICKS_MOST || r.experts % r.groups != 0)
		return err_set(
		    err,
		    "the routing divides %lld experts into %lld groups and keeps %lld of these groups; all groups "
		    "must have the same size, and the number of kept groups must be at least 1 and at most the "
		    "number of "
		    "groups",
		    (long long)r.experts, (long long)r.groups, (long long)r.kept);
	if (r.groups > 1 && (r.experts / r.groups < 2 || r.experts / r.groups * r.kept < r.picks))
		return err_set(err, "the routing keeps %lld of %lld groups, each of %lld experts; a group must have at "
				    "least 2 experts, and the kept groups together must have at least the %lld experts that are selected",
			       (long long)r.kept, (long long)r.groups, (long long)(r.experts / r.groups), (long long)r.picks);
	return 0;
}

/* --- the selection ------------------------------------------------------------------------------------------------ */

/* The best experts or groups so far, in descending order, and the value of the best expert or group that was left
 * out. */
struct best {
	int64_t index[MOE_PICKS_MOST];
	double value[MOE_PICKS_MOST];
	int64_t count, room;
	double left; /* the value of the best expert or group that was left out, or -infinity */
};

static void offer(struct best *best, int64_t index, double value)
{
	int64_t at = best->count;

	if (best->count == best->room && !(value > best->value[best->room - 1])) {
		best->left = value > best->left ? value : best->left;
		return;
	}
	if (best->count == best->room)
		best->left = best->value[--at];
	else
		best->count++;
	for (; at > 0 && best->value[at - 1] < value; at--) {
		best->index[at] = best->index[at - 1];
		best->value[at] = best->value[at - 1];
	}
	best->index[at] = index;
	best->value[at] = value;
}

static double margin_of(const struct best *best)
{
	return best->value[best->count - 1] - best->left;
}

static double biased(const double *score, const double *bias, int64_t expert)
{
	return score[expert] + (bias == NULL ? 0 : bias[expert]);
}

/* Returns the number by which experts are ranked: the biased score, or what a reference with the mistake uses
 * instead. */
static double rank_of(const struct routing *r, const double *score, const double *bias, int64_t expert)
{
	double rank = biased(score, bias, expert);
	unsigned char bytes[8];

	switch (r->mistake) {
	case MOE_SMALLEST:
		return -rank;
	case MOE_RANK_AT_LEAST_0:
		return fmax(rank, 0);
	case MOE_RANK_ROUNDED:
		dtype_store(bytes, (enum dtype)r->by, 0, rank);
		return dtype_load(bytes, (enum dtype)r->by, 0);
	default:
		return rank;
	}
}

static double group_score(const struct routing *r, const double *score, const double *bias, int64_t first, int64_t size)
{
	struct best two = {.room = 2, .left = -INFINITY};
	double all = 0;

	for (int64_t e = first; e < first + size; e++) {
		double rank = rank_of(r, score, r->mistake == MOE_GROUPS_UNBIASED ? NULL : bias, e);

		offer(&two, e, rank);
		all += rank;
	}
	if (r->mistake == MOE_GROUP_ALL)
		return all;
	return r->mistake == MOE_GROUP_LARGEST ? two.value[0] : two.value[0] + two.value[1];
}

static bool is_kept(const struct best *groups, int64_t group)
{
	for (int64_t g = 0; g < groups->count; g++)
		if (groups->index[g] == group)
			return true;
	return false;
}

/* Selects the K experts with the largest scores, from all experts or from the groups that are kept. Returns the
 * smallest margin between a selected expert and a rejected expert, or between a selected group and a rejected group. */
static double choose_experts(const struct routing *r, const double *score, const double *bias, struct best *best)
{
	struct best groups = {.room = r->kept, .left = -INFINITY};
	int64_t size = r->experts / r->groups;
	double margin = INFINITY;

	for (int64_t g = 0; g < r->groups; g++)
		offer(&groups, g, r->groups > 1 ? group_score(r, score, bias, g * size, size) : 0);
	if (r->groups > 1)
		margin = margin_of(&groups);
	for (int64_t g = 0; g < groups.count; g++)
		for (int64_t e = groups.index[g] * size; e < (groups.index[g] + 1) * size; e++)
			offer(best, e, rank_of(r, score, bias, e));
	for (int64_t e = 0; e < r->experts && r->mistake == MOE_GROUPS_ZERO; e++)
		if (!is_kept(&groups, e / size))
			offer(best, e, 0);
	return fmin(margin, margin_of(best));
}

/* Returns the sum of the scores of all experts. For MOE_RENORMALISE, returns the sum of the exponentials of score -
 * largest instead. */
static double sum_of_all(const struct routing *r, const double *score, double largest)
{
	double sum = 0;

	for (int64_t e = 0; e < r->experts; e++)
		sum += r->method == MOE_RENORMALISE ? exp(score[e] - largest) : score[e];
	return sum;
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

/* Returns the weight of an expert before the weights are divided by their sum. `first` is the token's first choice. */
static double raw_weight(const struct routing *r, const double *score, const double *bias, int64_t expert, int64_t first)
{
	double most = r->mistake == MOE_LOGIT_LIMIT ? r->by : INFINITY;

	if (r->mistake == MOE_SIGMOIDS)
		return sigmoid(score[expert]);
	if (r->method == MOE_RENORMALISE)
		return exp(fmin(score[expert], most) - fmin(score[first], most));
	return r->mistake == MOE_BIASED ? biased(score, bias, expert) : score[expert];
}

/* Returns the number by which the weights of the selected experts are divided. */
static double divisor_of(const struct routing *r, const double *score, const int64_t *expert, const double *weight)
{
	double sum = 0;

	if (r->method == MOE_LLAMA4 || r->mistake == MOE_NOT_DIVIDED)
		return 1;
	if (r->mistake == MOE_DIVIDED_BY_ALL || r->mistake == MOE_SOFTMAX_OF_ALL)
		return sum_of_all(r, score, score[expert[0]]);
	for (int64_t k = 0; k < r->picks; k++)
		if (r->mistake != MOE_DIVIDED_BY_LOCAL || (expert[k] >= r->offset && expert[k] < r->offset + r->local))
			sum += weight[k];
	return sum + (r->mistake == MOE_DIVIDED_BY_LOCAL ? 1e-9 : 1e-20);
}

/* Applies the mistake to the list of a token's experts and weights, if the mistake changes this list. */
static void mistake_list(const struct routing *r, int64_t *expert, double *weight)
{
	for (int64_t k = 0; k < r->picks; k++) {
		int64_t other = r->picks - 1 - k;

		if (r->mistake == MOE_EVEN)
			weight[k] = 1 / (double)r->picks;
		else if (r->mistake == MOE_WEIGHT_1)
			weight[k] = 1;
		else if (r->mistake == MOE_FIRST_PICK && k > 0)
			expert[k] = -1;
		else if (r->mistake == MOE_MODULO_LOCAL)
			expert[k] = r->offset + expert[k] % r->local;
		else if (r->mistake == MOE_REVERSED_WEIGHTS && k < other) {
			double last = weight[other];

			weight[other] = weight[k];
			weight[k] = last;
		}
	}
}

double routing_choose(const struct routing *r, const double *score, const double *bias, int64_t *expert, double *weight)
{
	struct best best = {.room = r->picks, .left = -INFINITY};
	double margin = choose_experts(r, score, r->method == MOE_DEEPSEEK ? bias : NULL, &best), divisor;

	for (int64_t k = 0; k < r->picks; k++) {
		expert[k] = best.index[k];
		weight[k] = raw_weight(r, score, bias, expert[k], expert[0]);
	}
	divisor = divisor_of(r, score, expert, weight);
	for (int64_t k = 0; k < r->picks && r->method != MOE_LLAMA4; k++)
		weight[k] = weight[k] / divisor * r->factor;
	mistake_list(r, expert, weight);
	return margin;
}

bool routing_has_mistake(const struct routing *r)
{
	bool deepseek = r->method == MOE_DEEPSEEK;

	switch (r->mistake) {
	case MOE_NO_GROUPS:
	case MOE_GROUP_MORE:
	case MOE_GROUP_LARGEST:
	case MOE_GROUP_ALL:
	case MOE_GROUPS_UNBIASED:
	case MOE_GROUPS_ZERO:
	case MOE_BIASED:
	case MOE_RANK_AT_LEAST_0:
	case MOE_RANK_ROUNDED:
	case MOE_DIVIDED_BY_ALL:
		return deepseek;
	case MOE_DIVIDED_BY_LOCAL:
		return deepseek && r->local < r->experts;
	case MOE_BIAS_ON_LOGITS:
	case MOE_SOFTMAX:
		return deepseek || r->method == MOE_LLAMA4;
	case MOE_SOFTMAX_OF_ALL:
	case MOE_SIGMOIDS:
	case MOE_LOGIT_LIMIT:
		return r->method == MOE_RENORMALISE;
	case MOE_NOT_DIVIDED:
		return deepseek || r->method == MOE_RENORMALISE;
	case MOE_PICK_MORE:
	case MOE_PICK_LESS:
	case MOE_SMALLEST:
		return r->method != MOE_GIVEN;
	case MOE_EVEN: /* with one expert per token, the same as MOE_WEIGHT_1 */
	case MOE_FIRST_PICK:
	case MOE_REVERSED_WEIGHTS:
		return r->picks > 1;
	case MOE_MODULO_LOCAL:
		return r->local > 0 && r->local < r->experts;
	case MOE_GIVEN_DIVIDED:
	case MOE_GIVEN_HALF:
	case MOE_GIVEN_MAGNITUDE:
		return r->method == MOE_GIVEN;
	default:
		return true;
	}
}

/* Reads one of the given experts and its weight. If one int32 holds the expert and the weight, the expert is in the
 * high half. The high half is signed: a negative number means no expert. */
static void take_given(const struct moe_roles *roles, int mistake, const struct tensor *in, int64_t index, int64_t *expert,
		       double *weight)
{
	int64_t id = (int64_t)dtype_load(in[roles->ids].data, in[roles->ids].dtype, index);

	if (roles->id_weights >= 0) {
		*expert = id;
		*weight = dtype_load(in[roles->id_weights].data, in[roles->id_weights].dtype, index);
	} else {
		*expert = id >> 16;
		*weight = mistake == MOE_GIVEN_HALF ? (double)float_from_f16((uint16_t)(id & 0xffff))
						    : (double)float_from_bf16((uint16_t)(id & 0xffff));
	}
	if (mistake == MOE_GIVEN_MAGNITUDE)
		*weight = fabs(*weight);
}

static void take_all_given(const struct moe_roles *roles, const struct routing *r, const struct tensor *in, int64_t token,
			   int64_t *expert, double *weight)
{
	double sum = 0;

	for (int64_t k = 0; k < r->picks; k++) {
		take_given(roles, r->mistake, in, token * r->picks + k, &expert[k], &weight[k]);
		sum += weight[k];
	}
	for (int64_t k = 0; k < r->picks && r->mistake == MOE_GIVEN_DIVIDED; k++)
		weight[k] /= sum;
	mistake_list(r, expert, weight);
}

/* Replaces the logits of a token by its scores, which are the sigmoids of the logits. */
static void score_logits(const struct routing *r, const double *bias, double *score)
{
	double sum = 0;

	for (int64_t e = 0; e < r->experts && r->mistake == MOE_BIAS_ON_LOGITS; e++)
		score[e] += bias[e];
	for (int64_t e = 0; e < r->experts && r->mistake == MOE_SOFTMAX; e++)
		sum += exp(score[e]);
	for (int64_t e = 0; e < r->experts; e++)
		score[e] = r->mistake == MOE_SOFTMAX ? exp(score[e]) / sum : sigmoid(score[e]);
}

void routing_pick(const struct moe_roles *roles, const struct routing *r, const struct tensor *in, int64_t token,
		  int64_t *expert, double *weight)
{
	double *score, *bias;

	if (r->method == MOE_GIVEN) {
		take_all_given(roles, r, in, token, expert, weight);
		return;
	}
	score = take(2 * r->experts, sizeof *score);
	bias = score + r->experts;
	dtype_load_run(in[roles->logits].data, in[roles->logits].dtype, token * r->experts, r->experts, score);
	if (roles->bias >= 0)
		dtype_load_run(in[roles->bias].data, in[roles->bias].dtype, 0, r->experts, bias);
	if (r->method != MOE_RENORMALISE)
		score_logits(r, bias, score);
	routing_choose(r, score, bias, expert, weight);
	free(score);
}
