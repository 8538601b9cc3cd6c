/* recurrence_inputs - what the families of kernels/recurrence.h do alike: sizes, bounds, edges, and the value of every
 * element, the same on CPU and GPU.
 *
 * A state is small against what one token reads, writes and forgets, so values are sized such that each part of the
 * recurrence moves the answer by far more than its bound:
 *   k          norm near 1 (or its norm inside: 1, 2 or 4 by turns), so that 1 - beta |k|^2 contracts
 *   q          uniform on [-1, 1); where token + head is odd it points where k does, and so reads what was just
 *              written; elsewhere it reads what the state held before. Its norm inside: times 1, 2 or 4 by turns
 *   v          uniform on [-1, 1)
 *   state      uniform on [-1/2, 1/2)
 *   g, g_gamma as a logarithm: (head + key) % 4 has gates down to -1/16, -2, -1/256, -1/2, so that early tokens and the
 *              first state count at the end of a long sequence, and late ones too; g_gamma has at least half of that.
 *              Of (5 token + head + 3 key) % 16, g is 0 for 3 (nothing is forgotten) and six times the least for 11:
 *              sums over 64 tokens pass -88, beyond which float32 has no exp(-sum)
 *   g, A_log, dt_bias with softplus: g and dt_bias uniform on [-2, 2), where softplus bends; by the same measure % 32, g
 *              is -24 for 3 (no decay) and 96 for 11 (where exp in float32 overflows and softplus must not); A_log by
 *              head % 4 near -3, -1, 1/2, -5
 *   g, A_log, dt_bias with a lower bound (-5): the same, but g lower by 6, 0, 9, 3 by (head + key) % 4, and A_log
 *              uniform on [-1/2, 1/2)
 *   beta       uniform on [0, 1), by the measure % 16 also 0 and 1; before a sigmoid: uniform on [-4, 4)
 * Sums of gates over a chunk of 64 stay above -1000, where a step of a float32 sum rounds by 2^-15 at the most: the
 * chunked forms, which take differences of such sums, agree with the recurrent one within the bounds.
 *
 * Sequences of a packed batch have 65, 1, 64, 9, 63, 128 tokens by turns, in proportion if there are fewer: on both
 * sides of a chunk of 64. */
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
int recurrence_fill(const struct op_case *c, int input, struct tensor *out, struct err *err);
int recurrence_check(const struct op_case *c, const struct tensor *in, struct err *err);

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
	RECURRENCE_BETA,
	RECURRENCE_LOGIT /* beta before a sigmoid */
};

/* Everything a float element depends on; plain data, given to the GPU by value. */
struct recurrence_fill {
	uint64_t key, k_key; /* k_key: of k, which q follows */
	int part;            /* enum recurrence_part */
	int l2norm, edge;
	int64_t heads, dim; /* of an element's row: [token][heads][dim] */
	int eighths;        /* k's elements are uniform on eighths / 8 * 2^exponent */
	int exponent;
};

struct recurrence_fill recurrence_fill_of(const struct op_case *c, int input);

#ifdef __cplusplus
}
#endif

/* The least gate of a kind, but for those that are six times that: -2^this. */
HOST_DEVICE static inline int recurrence_level(int64_t kind)
{
	return kind % 4 == 0 ? -4 : kind % 4 == 1 ? 1 : kind % 4 == 2 ? -8 : -1;
}

HOST_DEVICE static inline float recurrence_log_gate(const struct recurrence_fill *f, int64_t turn, int64_t kind,
                                                    float value)
{
	float least = -float_power(recurrence_level(kind));

	if (f->edge == RECURRENCE_FORGETS_ALL)
		return -100.0f;
	return turn % 16 == 3 ? 0.0f : turn % 16 == 11 ? 6 * least : (value + 1) * 0.5f * least;
}

HOST_DEVICE static inline float recurrence_raw_gate(int64_t turn, float value)
{
	return turn % 32 == 3 ? -24.0f : turn % 32 == 11 ? 96.0f : 2 * value;
}

HOST_DEVICE static inline float recurrence_query(const struct recurrence_fill *f, int64_t index, int64_t turn,
                                                 float value)
{
	if (turn % 2 == 1)
		value = uniform_signed(philox_bits(f->k_key, index), 20);
	if (f->edge == RECURRENCE_ROWS_OF_ZEROS && turn % 3 == 1)
		return 0;
	return f->l2norm ? value * float_power((int)((turn + 1) % 3)) : value;
}

HOST_DEVICE static inline float recurrence_key(const struct recurrence_fill *f, int64_t turn, float value)
{
	if (f->edge == RECURRENCE_ROWS_OF_ZEROS && turn % 3 == 2)
		return 0;
	return value * (float)f->eighths * float_power(f->exponent - 3 + (f->l2norm ? (int)(turn % 3) : 0));
}

/* Element `index` of the input that `f` was made for, from its random bits: to be rounded with number_store. */
HOST_DEVICE static inline float recurrence_element(const struct recurrence_fill *f, int64_t index, uint32_t random)
{
	const float low[] = {6, 0, 9, 3}, rates[] = {-3.0f, -1.0f, 0.5f, -5.0f};
	float value = uniform_signed(random, 20);
	int64_t row = index / f->dim, key = index % f->dim, token = row / f->heads, head = row % f->heads;
	int64_t turn = 5 * token + head + 3 * key;

	switch (f->part) {
	case RECURRENCE_Q:
		return recurrence_query(f, index, token + head, value);
	case RECURRENCE_K:
		return recurrence_key(f, token + head, value);
	case RECURRENCE_STATE:
		return value * 0.5f;
	case RECURRENCE_LOG:
		return recurrence_log_gate(f, turn, head + key, value);
	case RECURRENCE_CONSTANT:
		return (value + 3) * -0.25f * float_power(recurrence_level(index));
	case RECURRENCE_RAW:
		return recurrence_raw_gate(turn, value);
	case RECURRENCE_LOW:
		return recurrence_raw_gate(turn, value) - low[(head + key) % 4];
	case RECURRENCE_A_LOG:
		return value * 0.5f + rates[index % 4];
	case RECURRENCE_RATE:
		return value * 0.5f;
	case RECURRENCE_BIAS:
		return value * 2;
	case RECURRENCE_BETA:
		return turn % 16 == 3 ? 0.0f : turn % 16 == 11 ? 1.0f : (value + 1) * 0.5f;
	case RECURRENCE_LOGIT:
		return value * 4;
	default:
		return value;
	}
}

#endif
