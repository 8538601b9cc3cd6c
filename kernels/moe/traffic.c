/* traffic - rows of logits are drawn, looked at by the same choice that the oracle makes, and drawn again. */
#include "kernels/moe/traffic.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"
#include "kernels/inputs.h"
#include "kernels/number.h"

/* Logits are multiples of 1 / STEPS. The first SPREAD ranks are a quarter apart, the rest one step. */
enum { STEPS = 32, SPREAD = 16, APART = STEPS / 4, TRIES = 64, LONELY = 8 };

static const double clear = 0x1p-13;

/* Everything the rows of one case share. */
struct traffic {
	const struct routing *r;
	struct moe_extent e;
	uint64_t key;
	double *bias;	 /* NULL: none, or it is brought */
	double *sigmoid; /* of -g / STEPS at index g */
	int64_t top;	 /* of a row that starts highest, in steps */
};

/* One row being made. */
struct row {
	int64_t *order; /* experts by rank */
	int64_t *steps; /* logit by expert, in steps */
	double *score;
	int64_t expert[MOE_PICKS_MOST];
	double weight[MOE_PICKS_MOST];
};

static void *take(int64_t count, size_t size)
{
	void *memory = calloc((size_t)count + 1, size);

	if (memory == NULL)
		die_no_memory();
	return memory;
}

static void swap(int64_t *order, int64_t a, int64_t b)
{
	int64_t kept = order[a];

	order[a] = order[b];
	order[b] = kept;
}

/* Uniform on [-1/4, 1/4) in 256 steps. */
static double bias_of(uint64_t key, int64_t expert)
{
	return (double)uniform_signed(philox_bits(key, expert), 7) / 4;
}

/* How far below the first the expert of that rank is, in steps. */
static int64_t depth(int64_t rank)
{
	return rank < SPREAD ? APART * rank : APART * SPREAD + rank - SPREAD;
}

/* sigmoid[g] for logits top / STEPS downwards: a power of e^(1/STEPS) by multiplication, the same everywhere. */
static double *make_sigmoids(int64_t top, int64_t count)
{
	const double root = 1.0317434074991028;			   /* e^(1/32) */
	double *sigmoid = take(count, sizeof *sigmoid), power = 1; /* e^-logit */

	for (int64_t g = 0; g < top; g++)
		power /= root;
	for (int64_t g = 0; g < count; g++, power *= root)
		sigmoid[g] = 1 / (1 + power);
	return sigmoid;
}

static bool wants_company(const struct traffic *t, int64_t token)
{
	return t->e.experts == t->e.local || token % LONELY != LONELY - 1;
}

/* Ranks of all experts. The first is an expert of this device, one that a quarter of all tokens share. */
static void draw_order(const struct traffic *t, int64_t token, int64_t attempt, struct row *row)
{
	int64_t experts = t->e.experts, base = (token * TRIES + attempt) * (experts + 2);
	uint32_t whom = token % 4 == 1 ? philox_bits(~t->key, 0) : philox_bits(t->key, base + experts);
	int64_t favourite = t->e.offset + whom % t->e.local;

	for (int64_t i = 0; i < experts; i++) {
		row->order[i] = i;
		swap(row->order, i, philox_bits(t->key, base + i) % (i + 1));
	}
	if (!wants_company(t, token) || favourite < 0 || favourite >= experts)
		return;
	for (int64_t i = 0; i < experts; i++)
		if (row->order[i] == favourite)
			swap(row->order, 0, i);
}

/* Logits of that order, from a height of the row's own. */
static void set_steps(const struct traffic *t, int64_t token, struct row *row)
{
	int64_t lower = t->r->method == MOE_LLAMA4 ? 2 * STEPS : STEPS;
	int64_t height = t->top - lower * (philox_bits(t->key ^ 1, token) % 4);

	for (int64_t i = 0; i < t->e.experts; i++) {
		row->steps[row->order[i]] = height - depth(i);
		row->score[row->order[i]] = t->sigmoid[t->top - height + depth(i)];
	}
}

static int64_t picks_here(const struct traffic *t, const struct row *row)
{
	int64_t count = 0;

	for (int64_t k = 0; k < t->r->picks; k++)
		count += row->expert[k] >= t->e.offset && row->expert[k] < t->e.offset + t->e.local;
	return count;
}

static void draw_row(const struct traffic *t, int64_t token, struct row *row)
{
	bool good = false;

	for (int64_t attempt = 0; attempt < TRIES && !good; attempt++) {
		double margin;

		draw_order(t, token, attempt, row);
		set_steps(t, token, row);
		margin = routing_choose(t->r, row->score, t->bias, row->expert, row->weight);
		good = margin >= clear && (picks_here(t, row) > 0) == wants_company(t, token);
	}
}

static void fill_logits(const struct traffic *t, struct tensor *out)
{
#pragma omp parallel if (t->e.tokens > 64)
	{
		struct row row = {take(t->e.experts, sizeof *row.order),
				  take(t->e.experts, sizeof *row.steps),
				  take(t->e.experts, sizeof *row.score),
				  {0},
				  {0}};

#pragma omp for schedule(static)
		for (int64_t token = 0; token < t->e.tokens; token++) {
			draw_row(t, token, &row);
			for (int64_t e = 0; e < t->e.experts; e++)
				number_store(out->data, out->dtype, token * t->e.experts + e,
					     (float)row.steps[e] / STEPS);
		}
		free(row.order);
		free(row.steps);
		free(row.score);
	}
}

static void make_logits(const struct op_case *c, const struct moe_roles *roles, const struct routing *r,
			struct tensor *out)
{
	struct traffic t = {.r = r, .e = moe_extent_of(c, roles), .key = input_key(c, roles->logits)};
	int64_t count;

	t.top = r->method == MOE_DEEPSEEK ? 2 * STEPS : 4 * STEPS;
	count = 8 * STEPS + depth(t.e.experts);
	t.sigmoid = make_sigmoids(t.top, count);
	if (r->method == MOE_DEEPSEEK && (c->given >> roles->bias & 1) == 0) {
		t.bias = take(t.e.experts, sizeof *t.bias);
		for (int64_t e = 0; e < t.e.experts; e++)
			t.bias[e] = bias_of(input_key(c, roles->bias), e);
	}
	fill_logits(&t, out);
	free(t.sigmoid);
	free(t.bias);
}

/* --- chosen experts ----------------------------------------------------------------------------------------------- */

/* Weights are 1/128 … 1, which a bfloat16 holds. */
static float weight_of(uint64_t key, int64_t index)
{
	return (float)(1 + philox_bits(~key, index) % 128) / 128;
}

/* Different experts for a token, as long as there are any; the first of even tokens is one of this device. */
static void choose_row(const struct moe_extent *e, uint64_t key, int64_t token, int64_t picks, int64_t *order)
{
	for (int64_t i = 0; i < e->experts; i++)
		order[i] = i;
	for (int64_t k = 0; k < picks && k < e->experts; k++)
		swap(order, k, k + philox_bits(key, token * picks + k) % (e->experts - k));
	for (int64_t i = 0; i < e->experts && token % 2 == 0; i++)
		if (order[i] == e->offset + philox_bits(key ^ 1, token % 8 == 0 ? 0 : token) % e->local) {
			swap(order, 0, i);
			return;
		}
}

static void make_ids(const struct op_case *c, const struct moe_roles *roles, const struct routing *r,
		     struct tensor *out)
{
	struct moe_extent e = moe_extent_of(c, roles);
	uint64_t key = input_key(c, roles->ids);
	int64_t *order = take(e.experts, sizeof *order);

	for (int64_t t = 0; t < e.tokens; t++) {
		choose_row(&e, key, t, r->picks, order);
		for (int64_t k = 0; k < r->picks; k++) {
			int64_t index = t * r->picks + k, id = order[k % e.experts];

			if (roles->id_weights < 0)
				id = id << 16 | bf16_from_float(weight_of(key, index));
			number_set(out->data, out->dtype, index, (double)id);
		}
	}
	free(order);
}

void traffic_fill(const struct op_case *c, const struct moe_roles *roles, const struct routing *r, int input,
		  struct tensor *out)
{
	uint64_t key = input_key(c, input);

	if (input == roles->logits)
		make_logits(c, roles, r, out);
	else if (input == roles->ids)
		make_ids(c, roles, r, out);
	else if (input == roles->bias)
		for (int64_t e = 0; e < out->elements; e++)
			number_store(out->data, out->dtype, e, (float)bias_of(key, e));
	else
		for (int64_t i = 0; i < out->elements; i++)
			number_store(out->data, out->dtype, i, weight_of(key, i));
}
