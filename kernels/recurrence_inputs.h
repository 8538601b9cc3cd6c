/* recurrence_inputs - what the families of kernels/recurrence.h do alike: sizes, bounds, edges, and the value of every
 * element, the same on CPU and GPU.
 *
 * A state is small against what one token reads, writes and forgets, so values are sized such that each part of the
 * recurrence moves the answer by far more than its bound. What the second contents (op_case.contents) hold stands after a
 * bar where more than its seed is another:
 *   k          norm near 1 (or its norm inside: 1, 2 or 4 | 1, 4 or 16 by turns). Of (token + head) % 4, half of that for
 *              3; for 2 twice that where the state only adds, and by the delta rule, where 1 - beta |k|^2 has to contract,
 *              5/4 of it (but not where beta is doubled)
 *   q          uniform on [-1, 1); where token + head is odd it points where k does, and so reads what was just
 *              written; elsewhere it reads what the state held before. Its norm inside: times 1, 2, 4 | 1, 4, 16 by turns
 *   v          uniform on [-1, 1) | [-4, 4)
 *   state      uniform on [-1/2, 1/2) | [-2, 2)
 *   g, g_gamma as a logarithm: (head + key) % 4 has gates down to -1/16, -2, -1/256, -1/2 | -2, -1/256, -1/2, -1/16, so
 *              that early tokens and the first state count at the end of a long sequence, and late ones too; g_gamma has
 *              at least half of that | and of eight times that. Of (5 token + head + 3 key) % 16, g is 0 for 3 (nothing is
 *              forgotten) and 6 | 16 times the least for 11: sums over 64 tokens pass -88, beyond which float32 has no
 *              exp(-sum)
 *   g, A_log, dt_bias with softplus: g is recurrence_raw_gate; dt_bias uniform on [-2, 2), where softplus bends
 *              | [-7, -2), as models have it; A_log by head % 4 near -3, -1, 1/2, -5 | 5/2, -7, 0, -2
 *   g, A_log, dt_bias with a lower bound: the same g, lower by 6, 0, 9, 3 by (head + key) % 4; dt_bias uniform on [-2, 2)
 *              | [-8, 8); A_log within 1/2 of 0 | of 5/2 and -2 by turns: a sigmoid at both its ends, and between
 *   beta       uniform on [0, 1), by the measure % 16 also 0 and 1; before a sigmoid: uniform on [-4, 4), and by that
 *              measure -16, 16 | -32, 32, and 0. Token 37 of each 64 (of all sequences together) has 0 in every head,
 *              before a sigmoid -32: it writes nothing, and still reads, and forgets
 * Sums of gates over a chunk of 64 stay above -1000, where a step of a float32 sum rounds by 2^-15 at the most: the
 * chunked forms, which take differences of such sums, agree with the recurrent one within the bounds. Gates with softplus
 * are the largest: rates up to e, x up to 98, 22 and 18 twice each, else 1 on the average: -e (276 + 64) = -920; | rates up
 * to e^3, x up to 23 and 14 once each, else 0.1 on the average: -20 (37 + 6) = -860.
 *
 * Sequences of a packed batch: recurrence_fill_offsets. */
#ifndef REFTEST_KERNELS_RECURRENCE_INPUTS_H
#define REFTEST_KERNELS_RECURRENCE_INPUTS_H

#include "kernels/inputs.h"
#include "kernels/recurrence.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Members of struct op. */
int recurrence_sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room);
extern const struct op_edge recurrence_edges[];
bool recurrence_edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis);
struct rule recurrence_rule(const struct op_case *c, int output);
double recurrence_scalar(const struct op_case *c, int input);
/* Never 1 / sqrt(K), which references take when given none: a little above, and by turns above 1 or a little below. */
double recurrence_scale(const struct op_case *c, int64_t k_dim, int64_t turn);
int recurrence_fill(const struct op_case *c, int input, struct tensor *out, struct err *err);
int recurrence_check(const struct op_case *c, const struct tensor *in, struct err *err);
bool recurrence_range(const struct op_problem *problem, int variant, int input, struct op_range *out);
int64_t recurrence_reach(const struct op_problem *problem, int variant, int axis);

/* The second contents' values and states are so many times the first's. The state is linear in both: so are bounds. */
enum { RECURRENCE_LARGER = 4 };

/* What those of op_case.edge are, from 1 on. */
enum {
	RECURRENCE_NO_SEQUENCES = 1,
	RECURRENCE_ONE_TOKEN,
	RECURRENCE_NO_TOKENS,
	RECURRENCE_EMPTY_SEQUENCES,
	RECURRENCE_FORGETS_ALL,
	RECURRENCE_ROWS_OF_ZEROS
};

enum recurrence_part {
	RECURRENCE_V,
	RECURRENCE_Q,
	RECURRENCE_K,
	RECURRENCE_STATE,
	RECURRENCE_LOG,      /* a gate as it is */
	RECURRENCE_CONSTANT, /* g_gamma */
	RECURRENCE_RAW,      /* a gate before softplus */
	RECURRENCE_LOW,      /* a gate before a sigmoid */
	RECURRENCE_A_LOG,
	RECURRENCE_RATE, /* A_log of a bounded gate */
	RECURRENCE_BIAS,
	RECURRENCE_WIDE_BIAS, /* of a bounded gate */
	RECURRENCE_BETA,
	RECURRENCE_LOGIT /* beta before a sigmoid */
};

/* Everything a float element depends on; plain data, given to the GPU by value. */
struct recurrence_fill {
	uint64_t key, k_key; /* k_key: of k, which q follows */
	int part;            /* enum recurrence_part */
	int l2norm, edge;
	bool second;        /* contents */
	int64_t heads, dim; /* of an element's row: [token][heads][dim] */
	int eighths;        /* k's elements are uniform on eighths / 8 * 2^exponent */
	int exponent;
	int largest; /* quarters of that, of the largest keys */
};

struct recurrence_fill recurrence_fill_of(const struct op_case *c, int input);

#ifdef __cplusplus
}
#endif

/* The least gate of a kind, but for those that are many times that: -2^this. */
HOST_DEVICE static inline int recurrence_level(int64_t kind)
{
	return kind % 4 == 0 ? -4 : kind % 4 == 1 ? 1 : kind % 4 == 2 ? -8 : -1;
}

HOST_DEVICE static inline float recurrence_log_gate(const struct recurrence_fill *f, int64_t turn, int64_t kind,
                                                    float value)
{
	float least = -float_power(recurrence_level(kind + f->second));

	if (f->edge == RECURRENCE_FORGETS_ALL)
		return -100.0f;
	return turn % 16 == 3 ? 0.0f : turn % 16 == 11 ? (f->second ? 16 : 6) * least : (value + 1) * 0.5f * least;
}

/* Before a softplus: -24 leaves all of the state, exp(96) is no float32, sums with dt_bias lie on both sides of 20, from
 * where on softplus may be left out, and around 12, -12 and 0. The second contents' dt_bias is lower by 4.5, and their
 * rates are higher: less of what is large. */
HOST_DEVICE static inline float recurrence_raw_gate(bool second, int64_t turn, float value)
{
	switch (turn % 64) {
	case 3:
	case 35:
		return -24.0f;
	case 11:
	case 43:
		return second ? 2 * value : 96.0f;
	case 19:
	case 51:
		return second && turn % 64 == 51 ? 2 * value : second ? 24.5f : 20.0f;
	case 27:
	case 59:
		return 0.0f;
	case 7:
	case 39:
		return second && turn % 64 == 39 ? 4 * value - 12 : 4 * value + 12;
	case 23:
	case 55:
		return 4 * value - 12;
	default:
		return 2 * value;
	}
}

/* Does the token learn nothing in any head? One of a sequence alone does, since cases of 64 tokens and 65 have one sequence. */
HOST_DEVICE static inline bool recurrence_learns_nothing(int64_t token)
{
	return token % 64 == 37;
}

HOST_DEVICE static inline float recurrence_logit(bool second, int64_t turn, float value)
{
	return turn % 16 == 3    ? (second ? -32.0f : -16.0f)
	       : turn % 16 == 11 ? (second ? 32.0f : 16.0f)
	       : turn % 16 == 7  ? 0.0f
	                         : 4 * value;
}

HOST_DEVICE static inline float recurrence_a_log(bool second, int64_t head, float value)
{
	const float rates[] = {-3.0f, -1.0f, 0.5f, -5.0f, 2.5f, -7.0f, 0.0f, -2.0f};

	return value * 0.5f + rates[(second ? 4 : 0) + head % 4];
}

/* Added to a gate before softplus. */
HOST_DEVICE static inline float recurrence_bias(bool second, float value)
{
	return second ? value * 2.5f - 4.5f : value * 2;
}

/* By which power of 2 a row is longer that is normalised inside. */
HOST_DEVICE static inline int recurrence_longer(bool second, int64_t turn)
{
	return (int)(turn % 3) * (second ? 2 : 1);
}

HOST_DEVICE static inline float recurrence_query(const struct recurrence_fill *f, int64_t index, int64_t turn,
                                                 float value)
{
	if (turn % 2 == 1)
		value = uniform_signed(philox_bits(f->k_key, index), 20);
	if (f->edge == RECURRENCE_ROWS_OF_ZEROS && turn % 3 == 1)
		return 0;
	return f->l2norm ? value * float_power(recurrence_longer(f->second, turn + 1)) : value;
}

/* `quarters` of what keys are, and 2^longer times that. Both factors are small integers: their product is rounded once. */
HOST_DEVICE static inline float recurrence_key_element(int eighths, int exponent, int quarters, int longer, float value)
{
	return value * (float)(eighths * quarters) * float_power(exponent - 5 + longer);
}

HOST_DEVICE static inline float recurrence_key(const struct recurrence_fill *f, int64_t turn, float value)
{
	if (f->edge == RECURRENCE_ROWS_OF_ZEROS && turn % 3 == 2)
		return 0;
	return recurrence_key_element(f->eighths, f->exponent,
	                              f->l2norm         ? 4
	                              : turn % 4 == 2 ? f->largest
	                              : turn % 4 == 3 ? 2
	                                              : 4,
	                              f->l2norm ? recurrence_longer(f->second, turn) : 0, value);
}

/* Element `index` of the input that `f` was made for, from its random bits: to be rounded with number_store. */
HOST_DEVICE static inline float recurrence_element(const struct recurrence_fill *f, int64_t index, uint32_t random)
{
	const float low[] = {6, 0, 9, 3}, larger = f->second ? RECURRENCE_LARGER : 1;
	float value = uniform_signed(random, 20);
	int64_t row = index / f->dim, key = index % f->dim, token = row / f->heads, head = row % f->heads;
	int64_t turn = 5 * token + head + 3 * key;

	switch (f->part) {
	case RECURRENCE_Q:
		return recurrence_query(f, index, token + head, value);
	case RECURRENCE_K:
		return recurrence_key(f, token + head, value);
	case RECURRENCE_STATE:
		return value * 0.5f * larger;
	case RECURRENCE_LOG:
		return recurrence_log_gate(f, turn, head + key, value);
	case RECURRENCE_CONSTANT:
		return (value + 3) * -0.25f * float_power(recurrence_level(index + f->second) + (f->second ? 3 : 0));
	case RECURRENCE_RAW:
		return recurrence_raw_gate(f->second, turn, value);
	case RECURRENCE_LOW:
		return recurrence_raw_gate(f->second, turn, value) - low[(head + key) % 4];
	case RECURRENCE_A_LOG:
		return recurrence_a_log(f->second, index, value);
	case RECURRENCE_RATE:
		return value * 0.5f + (!f->second ? 0.0f : index % 2 == 0 ? 2.5f : -2.0f);
	case RECURRENCE_BIAS:
		return recurrence_bias(f->second, value);
	case RECURRENCE_WIDE_BIAS:
		return value * (f->second ? 8 : 2);
	case RECURRENCE_BETA:
		return turn % 16 == 3 || recurrence_learns_nothing(token) ? 0.0f : turn % 16 == 11 ? 1.0f : (value + 1) * 0.5f;
	case RECURRENCE_LOGIT:
		return recurrence_learns_nothing(token) ? -32.0f : recurrence_logit(f->second, turn, value);
	default:
		return value * larger;
	}
}

#endif
