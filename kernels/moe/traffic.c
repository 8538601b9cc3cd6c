/* traffic - draws rows of logits at random, and selects experts from them as the oracle does. A row is drawn again if
 * the margin of a selection is too small, or if its token is routed to other experts than intended. */
#include "kernels/moe/traffic.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/random_inputs.h"
#include "kernels/core/take.h"

/* Logits are multiples of a step, 1 / STEPS. The slope of a row determines the differences between its SPREAD largest
 * logits, or between all selected logits if more than SPREAD logits are selected. All smaller logits are one step
 * apart. */
enum { STEPS = 32, SPREAD = 16, TRIES = 64, NEAR_TRIES = 16, LONELY = 8, REGULAR_ROWS = 16 };
/* The height of a row is its largest logit. A case has HEIGHTS different heights, and FAR_HEIGHTS more if the routing
 * computes softmaxes. SPECIALS is the number of "special" experts, each of which has a fixed number of tokens. */
enum { HEIGHTS = 4, FAR_HEIGHTS = 2, SPECIALS = 5, SPECIAL_ROWS = 256, TIED_ROWS = 16 };
/* One token in STEEP_ROWS has steeply falling logits. */
enum { STEEP_ROWS = 8 };
/* A logit is lowered by SHUNNED steps if the token must not be routed to the expert. If there are several groups, in a
 * row with a favourite expert, the logits at rank 2 and all later ranks are lowered by RIVAL steps. */
enum { SHUNNED = 8 * STEPS, RIVAL = 6 * STEPS };

static const double clear = 0x1p-13;

enum slope { SLOPE_QUARTER, SLOPE_NEAR, SLOPE_FAR, SLOPE_TIED, SLOPES, SLOPE_STEEP = SLOPES };

/* The kind of a row determines the experts to which its token must be routed: any experts, at least one expert of this
 * device, the favourite expert, or only experts of other devices. */
enum row_kind { ROW_ANYWHERE, ROW_SOME_HERE, ROW_FAVOURITE, ROW_ELSEWHERE };

/* Data that the rows of one case share. */
struct traffic {
	const struct routing *r;
	struct moe_extent e;
	uint64_t key;
	bool second;	 /* whether this is the second set of values */
	bool own;	 /* true if no input comes from a workload */
	int64_t *expert; /* all experts: first the special ones, then those without tokens, then the others */
	int64_t specials, unused;
	int64_t special_tokens[SPECIALS];
	double *bias;	 /* NULL if the routing has no bias, or if a workload provides the bias */
	double *sigmoid; /* sigmoid[g] is the sigmoid of (the largest height - g / STEPS) */
	int heights;
	int64_t height[HEIGHTS + FAR_HEIGHTS]; /* in steps */
};

/* A row of logits that is being drawn. */
struct row {
	int64_t *order, *best; /* the experts in the order of falling logits: in this draw, and in the best draw so
				* far */
	int64_t *steps;	       /* the logit of each expert, in steps */
	double *score;
	int64_t expert[MOE_PICKS_MOST];
	double weight[MOE_PICKS_MOST];
};

static void swap(int64_t *order, int64_t a, int64_t b)
{
	int64_t kept = order[a];

	order[a] = order[b];
	order[b] = kept;
}

/* Returns an expert's bias, which is a multiple of 1/256. The bias is in [-1, 0) in the first set of values, and in
 * [-1/2, 1/2) in the second. The dtype bfloat16 represents it exactly. */
static double bias_of(uint64_t key, int64_t expert, bool second)
{
	return ((double)uniform_signed(philox_bits(key, expert), 7) - (second ? 0 : 1)) / 2;
}

/* --- the number of tokens of each expert -------------------------------------------------------------------------- */

static void shuffle(int64_t *order, int64_t count, uint64_t key, int64_t base)
{
	for (int64_t i = 1; i < count; i++)
		swap(order, i, philox_bits(key, base + i) % (i + 1));
}

static bool is_here(const struct moe_extent *e, int64_t expert)
{
	return expert >= e->offset && expert < e->offset + e->local;
}

/* Sets the numbers of special experts and of experts without tokens. Both numbers are 0 if the method is DeepSeek's, or
 * if other devices have experts. */
static void set_numbers(struct traffic *t)
{
	static const int64_t tokens[CONTENTS_COUNT][SPECIALS] = {{1, 129, 16, 33, 64}, {2, 128, 17, 32, 65}};
	int64_t few = 2 * t->r->picks > 8 ? 2 * t->r->picks : 8, experts = t->e.experts;

	memcpy(t->special_tokens, tokens[t->second], sizeof t->special_tokens);
	if (t->r->method == MOE_DEEPSEEK || experts > t->e.local)
		return;
	t->unused = t->e.tokens > REGULAR_ROWS ? experts / 8 : experts > few ? experts - few : 0;
	if (experts - t->unused < t->r->picks)
		t->unused = 0;
	int64_t spare = experts - t->unused - t->r->picks - 1; /* picks + 1 ordinary experts give each token a choice */

	if (t->e.tokens >= SPECIAL_ROWS && spare > 0)
		t->specials = spare < SPECIALS ? spare : SPECIALS;
}

/* Returns the index in t->expert of the expert that must be the token's first choice, or -1 if any expert may be the
 * first choice. */
static int64_t special_of(const struct traffic *t, int64_t token)
{
	for (int64_t s = 0; s < t->specials; s++) {
		if (token < t->special_tokens[s])
			return s;
		token -= t->special_tokens[s];
	}
	return -1;
}

static enum row_kind kind_of(const struct traffic *t, int64_t token)
{
	if (t->e.experts == t->e.local)
		return ROW_ANYWHERE;
	if (token == 0)
		return ROW_FAVOURITE; /* if token 0 is the only token, it must be routed to an expert of this device */
	if (token % LONELY == 3)
		return ROW_ELSEWHERE;
	return token < REGULAR_ROWS ? ROW_SOME_HERE : token % 2 == 0 ? ROW_FAVOURITE : ROW_ELSEWHERE;
}

static bool same_group(const struct traffic *t, int64_t a, int64_t b)
{
	int64_t size = t->e.experts / t->r->groups;

	return t->r->groups > 1 && a / size == b / size;
}

/* Returns the number of ordinary experts, which any row may select. In draw_any_order, they get ranks before the
 * special experts and the experts without tokens. */
static int64_t ordinary(const struct traffic *t)
{
	return t->e.experts - t->specials - t->unused;
}

/* Returns true if the case has twins: two experts with equal weights that, for some tokens, tie for the last place in
 * the selection. There are no twins if a workload provides an input, or if too few experts can be selected. */
static bool has_twins(const struct traffic *t)
{
	return t->own && t->r->method == MOE_RENORMALISE && t->e.experts == t->e.local && ordinary(t) >= t->r->picks + 3;
}

static bool is_tied(const struct traffic *t, int64_t token)
{
	return has_twins(t) && token % TIED_ROWS == 5 && (t->r->picks > 1 || special_of(t, token) < 0);
}

/* Moves an expert to rank `rank` of `order`. */
static void to_rank(int64_t *order, int64_t count, int64_t expert, int64_t rank)
{
	for (int64_t i = 0; i < count; i++)
		if (order[i] == expert) {
			swap(order, i, rank);
			return;
		}
}

/* Moves one twin to the last rank that is selected, and the other twin to the next rank. */
static void place_twins(const struct traffic *t, int64_t *order)
{
	to_rank(order, t->e.experts, t->expert[t->e.experts - 1], t->r->picks - 1);
	to_rank(order, t->e.experts, t->expert[t->e.experts - 2], t->r->picks);
}

/* Finds another expert of this device in the group of the expert at rank 0, and moves it to rank 1. The routing then
 * keeps this group, because the score of a group is the sum of the scores of its two best experts. */
static void second_of_group(const struct traffic *t, int64_t *order)
{
	for (int64_t i = 1; i < t->e.experts; i++)
		if (same_group(t, order[i], order[0]) && is_here(&t->e, order[i])) {
			swap(order, 1, i);
			return;
		}
}

/* Draws the ranks of all experts at random. The expert at rank 0 has the largest logit. Does not place twins. If the
 * token must be routed to other devices, the experts of other devices have the first ranks. In other rows, rank 0 is a
 * special expert, a favourite expert of many tokens, or a random expert. */
static void draw_any_order(const struct traffic *t, int64_t token, int64_t attempt, int64_t *order)
{
	int64_t experts = t->e.experts, base = (token * TRIES + attempt) * (experts + 2), from = t->specials + t->unused;
	int64_t others = experts - from, special = special_of(t, token), elsewhere = 0;
	enum row_kind kind = kind_of(t, token);
	int64_t every = token < REGULAR_ROWS ? 4 : 2; /* every second token: then, in a case of 513 tokens, more than
						       * 128 tokens (the size of a tile) select the favourite */
	bool shared = (kind == ROW_FAVOURITE && token > 0) || (token % every == 1 && t->specials == 0);
	uint32_t whom = shared ? philox_bits(~t->key, 0) : philox_bits(t->key, base + experts);

	for (int64_t i = 0; i < experts; i++)
		order[i] = t->expert[(from + i) % experts];
	shuffle(order, others, t->key, base);
	for (int64_t i = 0; i < experts && (kind == ROW_FAVOURITE || kind == ROW_ELSEWHERE); i++)
		if (!is_here(&t->e, order[i]))
			swap(order, elsewhere++, i);
	if (special >= 0) {
		swap(order, 0, others + special);
		return;
	}
	if (kind == ROW_ELSEWHERE || t->e.local < 1)
		return;
	to_rank(order, others, kind == ROW_ANYWHERE ? t->expert[from + whom % others] : t->e.offset + whom % t->e.local,
		0);
	if (kind == ROW_FAVOURITE)
		second_of_group(t, order);
}

static void draw_order(const struct traffic *t, int64_t token, int64_t attempt, int64_t *order)
{
	draw_any_order(t, token, attempt, order);
	if (is_tied(t, token))
		place_twins(t, order);
}

/* Returns the number of steps by which the logit of the expert at `rank` is lowered. The logit of an expert of this
 * device is lowered by SHUNNED steps if the token must not be routed to the expert. A token with a favourite expert may
 * also be routed to other experts of the favourite's group. If there are several groups, the logits of such a row at
 * rank 2 and all later ranks are lowered by RIVAL steps, so that no other group has a higher score than the favourite's
 * group. */
static int64_t shunned(const struct traffic *t, enum row_kind kind, const int64_t *order, int64_t rank)
{
	int64_t rival = kind == ROW_FAVOURITE && t->r->groups > 1 && rank > 1 ? RIVAL : 0;

	if ((kind != ROW_FAVOURITE && kind != ROW_ELSEWHERE) || !is_here(&t->e, order[rank]))
		return rival;
	if (kind == ROW_ELSEWHERE || (rank > 0 && !same_group(t, order[rank], order[0])))
		return rival + SHUNNED;
	return rival;
}

/* --- logits ------------------------------------------------------------------------------------------------------- */

/* Returns true for rows of the kinds ROW_FAVOURITE and ROW_ELSEWHERE. In rows of these kinds, the largest logit is the
 * largest height, and the logits fall slowly. With smaller logits or a steeper fall, a bias could route the token to
 * other experts than intended. */
static bool is_led(const struct traffic *t, int64_t token)
{
	return kind_of(t, token) == ROW_FAVOURITE || kind_of(t, token) == ROW_ELSEWHERE;
}

static enum slope slope_of(const struct traffic *t, int64_t token)
{
	enum slope slope = (enum slope)(philox_bits(t->key ^ 2, token) % SLOPES);

	if (t->r->method == MOE_RENORMALISE && token % STEEP_ROWS == 2 && !is_led(t, token))
		return SLOPE_STEEP;
	if (slope == SLOPE_TIED && is_tied(t, token)) /* if two experts are selected, the twins have ranks 1 and 2, and
						       * SLOPE_TIED would make rank 0 tie with both */
		return SLOPE_QUARTER;
	return slope == SLOPE_FAR && is_led(t, token) ? SLOPE_QUARTER : slope;
}

/* Returns the height of a row, which is its largest logit. Without a bias, the selection of experts does not depend on
 * the height. */
static int64_t height_of(const struct traffic *t, int64_t token)
{
	bool highest = is_led(t, token) && t->r->method != MOE_RENORMALISE;

	return t->height[highest ? 0 : philox_bits(t->key ^ 1, token) % (uint32_t)t->heights];
}

/* Returns the distance between the largest logit and the logit of the expert at `rank`, in steps of 1 / STEPS.
 * Among the largest logits, these distances are multiples of the distance between neighbouring bfloat16 numbers, which
 * is 1/8 from 16 to 32, and 1/2 from 64 to 128. */
static int64_t depth_of(const struct traffic *t, int64_t rank, enum slope slope, int64_t height)
{
	int64_t picks = t->r->picks, spread = picks >= SPREAD ? picks + 2 : SPREAD, apart = STEPS / 4;

	if (slope == SLOPE_FAR)
		apart = STEPS;
	if (slope == SLOPE_STEEP)
		apart = picks == 2 ? 13 * STEPS / 2 : 5 * STEPS / 2;
	if (slope == SLOPE_NEAR)
		apart = height >= 8 * STEPS || height <= -8 * STEPS ? STEPS / 8 : 1;
	if (height >= 64 * STEPS || height <= -64 * STEPS)
		apart = apart > STEPS / 2 ? apart : STEPS / 2;
	if (slope == SLOPE_TIED && ((rank == 1 && picks > 1) || rank == picks + 1))
		rank--;
	return rank < spread ? apart * rank : apart * spread + rank - spread;
}

static int64_t lowest_of(const struct traffic *t)
{
	int64_t height = t->height[HEIGHTS - 1];

	return height - depth_of(t, t->e.experts, SLOPE_FAR, height) - SHUNNED - RIVAL;
}

/* Returns a table of sigmoids, from the highest logit downwards. Computes powers of e^(1/STEPS) by multiplication,
 * which gives the same result on every machine. */
static double *make_sigmoids(int64_t highest, int64_t count)
{
	const double root = 1.0317434074991028;			   /* e^(1/32) */
	double *sigmoid = take(count, sizeof *sigmoid), power = 1; /* e^-logit */

	for (int64_t g = 0; g < highest; g++)
		power /= root;
	for (int64_t g = 0; g < count; g++, power *= root)
		sigmoid[g] = 1 / (1 + power);
	return sigmoid;
}

static void set_steps(const struct traffic *t, int64_t token, struct row *row)
{
	int64_t height = height_of(t, token);
	enum slope slope = slope_of(t, token);

	for (int64_t i = 0; i < t->e.experts; i++) {
		bool tied = i == t->r->picks && is_tied(t, token);
		int64_t steps = height - depth_of(t, tied ? i - 1 : i, slope, height);

		steps -= shunned(t, kind_of(t, token), row->order, i);
		row->steps[row->order[i]] = steps;
		row->score[row->order[i]] = t->r->method == MOE_RENORMALISE ? (double)steps / STEPS
									    : t->sigmoid[t->height[0] - steps];
	}
}

/* Returns true if the row routes its token to the experts that the kind of the row requires. */
static bool goes_there(const struct traffic *t, int64_t token, const struct row *row)
{
	enum row_kind kind = kind_of(t, token);
	int64_t here = 0;

	for (int64_t k = 0; k < t->r->picks; k++)
		here += is_here(&t->e, row->expert[k]);
	if (kind == ROW_FAVOURITE && here > (t->r->groups > 1 ? 2 : 1))
		return false;
	return kind == ROW_ANYWHERE || (here > 0) == (kind != ROW_ELSEWHERE);
}

/* Draws the row again and again, until two conditions are met: every selection has a margin of at least `clear`, and
 * the token is routed to the experts that the row's kind requires. With DeepSeek's routing, a row of SLOPE_NEAR is
 * drawn at least NEAR_TRIES times; of the draws that meet both conditions, the one with the smallest margin is kept. If
 * no draw meets both conditions, the best draw is kept. */
static void draw_row(const struct traffic *t, int64_t token, struct row *row)
{
	bool near = slope_of(t, token) == SLOPE_NEAR && t->r->method == MOE_DEEPSEEK;
	double worth = -INFINITY;

	for (int64_t attempt = 0; attempt < (worth >= 2 && near ? NEAR_TRIES : TRIES) && (worth < 2 || near); attempt++) {
		double margin, value;

		draw_order(t, token, attempt, row->order);
		set_steps(t, token, row);
		margin = routing_choose(t->r, row->score, t->bias, row->expert, row->weight);
		margin = is_tied(t, token) ? 1 : margin;
		value = margin < clear ? margin : goes_there(t, token, row) ? 3 - fmin(margin, 1) : 1;
		if (value > worth) {
			worth = value;
			memcpy(row->best, row->order, (size_t)t->e.experts * sizeof *row->best);
		}
	}
	memcpy(row->order, row->best, (size_t)t->e.experts * sizeof *row->best);
	set_steps(t, token, row);
}

static void fill_logits(const struct traffic *t, struct tensor *out)
{
#pragma omp parallel if (t->e.tokens > 64)
	{
		struct row row = {take(t->e.experts, sizeof *row.order),
				  take(t->e.experts, sizeof *row.best),
				  take(t->e.experts, sizeof *row.steps),
				  take(t->e.experts, sizeof *row.score),
				  {0},
				  {0}};

#pragma omp for schedule(static)
		for (int64_t token = 0; token < t->e.tokens; token++) {
			draw_row(t, token, &row);
			for (int64_t e = 0; e < t->e.experts; e++)
				dtype_store_float(out->data, out->dtype, token * t->e.experts + e,
					          (float)row.steps[e] / STEPS);
		}
		free(row.order);
		free(row.best);
		free(row.steps);
		free(row.score);
	}
}

static struct traffic open_traffic(const struct op_case *c, const struct moe_roles *roles, const struct routing *r, int input)
{
	struct traffic t = {.r = r, .e = moe_extent_of(c, roles), .key = input_key(c, input)};

	t.second = c->contents == CONTENTS_SECOND;
	t.own = c->given == 0;
	t.expert = take(t.e.experts, sizeof *t.expert);
	for (int64_t i = 0; i < t.e.experts; i++)
		t.expert[i] = i;
	shuffle(t.expert, t.e.experts, t.key ^ 3, 0);
	set_numbers(&t);
	return t;
}

static void make_logits(const struct op_case *c, const struct moe_roles *roles, const struct routing *r,
			struct tensor *out)
{
	/* In each row of this table, the first height must be the highest: element 0 of `sigmoid` is the sigmoid of the
	 * first height. Heights for sigmoids are never very low: sigmoids are not divided by their sum, so low sigmoids
	 * would give outputs close to 0. */
	static const int64_t heights[][HEIGHTS] = {
	    [MOE_DEEPSEEK] = {4, 1, -2, -5}, [MOE_RENORMALISE] = {20, 4, 0, -12}, [MOE_LLAMA4] = {4, 1, -1, -4}};
	static const int64_t far[FAR_HEIGHTS] = {100, -106};
	struct traffic t = open_traffic(c, roles, r, roles->logits);

	t.heights = r->method == MOE_RENORMALISE ? HEIGHTS + FAR_HEIGHTS : HEIGHTS;
	for (int i = 0; i < t.heights; i++)
		t.height[i] = STEPS * (i < HEIGHTS ? heights[r->method][i] : far[i - HEIGHTS]);
	if (r->method != MOE_RENORMALISE)
		t.sigmoid = make_sigmoids(t.height[0], t.height[0] - lowest_of(&t) + 1);
	if (r->method == MOE_DEEPSEEK && (c->given >> roles->bias & 1) == 0) {
		t.bias = take(t.e.experts, sizeof *t.bias);
		for (int64_t e = 0; e < t.e.experts; e++)
			t.bias[e] = bias_of(input_key(c, roles->bias), e, t.second);
	}
	fill_logits(&t, out);
	free(t.expert);
	free(t.sigmoid);
	free(t.bias);
}

/* --- given experts ------------------------------------------------------------------------------------------------ */

/* Returns a given routing weight. Its magnitude is from 1/128 to 1, or from 1/64 to 2 in the second set of values. One
 * weight in eight is divided by 16, and one in four is negative. The dtype bfloat16 represents all weights exactly. */
static float weight_of(uint64_t key, int64_t index, bool second)
{
	uint32_t random = philox_bits(~key, index);
	float weight = (float)(1 + random % 128) / (second ? 64 : 128) / ((random >> 20) % 8 == 0 ? 16 : 1);

	return random >> 30 == 0 ? -weight : weight;
}

/* Puts one expert into the token's list twice, at ranks 1 and 2, because rank 0 may have a special or favourite expert.
 * Both entries count. */
static void list_twice(const struct traffic *t, int64_t *order)
{
	if (t->r->picks > 2 && t->e.experts > 2)
		order[2] = order[1];
}

/* Fills the given experts. If there are fewer experts than a token must list, the token lists experts repeatedly.
 * Otherwise, one token in 16 lists an expert twice if weights apply to outputs. If weights apply to inputs, no token
 * lists an expert twice: an expert is not a linear function of its input, so a reference that adds the two weights
 * would get another result. */
static void make_ids(const struct op_case *c, const struct moe_roles *roles, const struct routing *r,
		     struct tensor *out)
{
	struct traffic t = open_traffic(c, roles, r, roles->ids);
	int64_t *order = take(t.e.experts, sizeof *order);

	for (int64_t token = 0; token < t.e.tokens; token++) {
		draw_order(&t, token, 0, order);
		if (token % 16 == 9 && (c->variant & MOE_WEIGHT_ON_INPUT) == 0)
			list_twice(&t, order);
		if (r->picks > 1 && r->picks <= t.e.experts) /* moves the special or favourite expert from rank 0 to
							      * another rank */
			swap(order, 0, token % r->picks);
		for (int64_t k = 0; k < r->picks; k++) {
			int64_t index = token * r->picks + k, id = order[k % t.e.experts];

			if (roles->id_weights < 0)
				id = id << 16 | bf16_from_float(weight_of(t.key, index, t.second));
			dtype_store(out->data, out->dtype, index, (double)id);
		}
	}
	free(order);
	free(t.expert);
}

bool traffic_twins(const struct op_case *c, const struct moe_roles *roles, const struct routing *r, int64_t *from, int64_t *to)
{
	if (r->method != MOE_RENORMALISE)
		return false;
	struct traffic t = open_traffic(c, roles, r, roles->logits);
	bool found = has_twins(&t);

	if (found) {
		*from = t.expert[t.e.experts - 2];
		*to = t.expert[t.e.experts - 1];
	}
	free(t.expert);
	return found;
}

void traffic_fill(const struct op_case *c, const struct moe_roles *roles, const struct routing *r, int input,
		  struct tensor *out)
{
	bool second = c->contents == CONTENTS_SECOND;
	uint64_t key = input_key(c, input);

	if (input == roles->logits)
		make_logits(c, roles, r, out);
	else if (input == roles->ids)
		make_ids(c, roles, r, out);
	else if (input == roles->bias)
		for (int64_t e = 0; e < out->elements; e++)
			dtype_store_float(out->data, out->dtype, e, (float)bias_of(key, e, second));
	else
		for (int64_t i = 0; i < out->elements; i++)
			dtype_store_float(out->data, out->dtype, i, weight_of(key, i, second));
}
