/* input_values - computes the inputs of the families of kernels/common/linear_attention/recurrence.h. The CPU and the
 * GPU compute the same values. This header also declares the sizes, bounds and edge cases of these families.
 *
 * The values are scaled such that a mistake in any part of the recurrence changes the result by far more than its
 * bound. Some values differ between the two sets of input values (op_case.contents):
 *
 *   k          If the reference normalises k, the norm of a row is 1, 2 or 4 (second set: 1, 32 or 1024), depending on
 *              (token + head) % 3. If a reference adds 1e-4 to the sum of squares, the states change by more than the
 *              bound. If a reference adds 1e-5, the states stay within the bound; with a norm of 1/2, they would not.
 *              If the reference does not normalise k, the norm depends on (token + head) % 4. If this remainder is 3,
 *              the norm is near 1/2. If the remainder is 0 or 1, the norm is near 1. If the remainder is 2, the norm is
 *              near 2. The delta rule needs a smaller norm, because 1 - beta |k|^2 must be between -1 and 1: the norm
 *              is then near 5/4, or near 1 if beta is doubled. If (token + head) % 8 is 4, one element of the row is a
 *              spike: it is 15/16 of the usual norm, and the others are a quarter of what they are in other rows.
 *              Without the delta rule and without normalisation, the spike is 3/2. (With a spike of 4, the rounding
 *              errors of gates would exceed the bounds.) A reference that clamps the elements of a key to a smaller
 *              range gives wrong results.
 *   q          uniform on [-1, 1). If token + head is odd, q has the direction of k and therefore reads the value that
 *              the token wrote. Otherwise, q reads values that earlier tokens wrote. If the reference normalises q,
 *              rows of q are multiplied by 1, 2 and 4 in turn (second set: 1, 32 and 1024). As an exception, a row is
 *              short, i.e. has a small norm, if (token + head) % 8 is 3 (recurrence_short_query). Squares of long rows
 *              overflow float16. If (token + head) % 8 is 2, one element of the row is a spike of 4, multiplied like
 *              the row, and the others are a quarter of what they are in other rows.
 *   v          uniform on [-1, 1) (second set: [-64, 64)), but huge in tokens 9 and 73 of some heads (see below)
 *   state      uniform on [-1/2, 1/2) (second set: [-32, 32)). A reference that clamps v, a state or an output to a
 *              smaller range gives wrong results
 *   g, g_gamma as the logarithm of the decay: most values of g are between a "least gate" and 0. For (head + key) % 4 =
 *              0, 1, 2, 3, the least gate is -1/16, -2, -1/256, -1/2 (second set: -2, -1/256, -1/2, -1/16). The result
 *              of a long sequence then depends on early tokens, late tokens and the initial state. g_gamma is between
 *              the least gate and half of it (second set: between four and eight times the least gate). If (5 * token +
 *              head + 3 * key) % 16 is 3, g is 0, and nothing is forgotten. If (5 * token + head + 3 * key) % 16 is 11,
 *              g is 6 times (second set: 16 times) the least gate. Sums of g over 64 tokens then fall below -88, where
 *              exp(-sum) overflows float32.
 *   g, A_log, dt_bias with softplus: g is recurrence_raw_gate; dt_bias is uniform on [-2, 2), where softplus is curved
 *              (second set: [-7, -2), as in models). In heads 1, 5, …, dt_bias is between -1/4 and 1/4. (In the second
 *              set, dt_bias of heads 3, 7, … is between -4.75 and -4.25.) If (5 * token + head + 3 * key) % 16 is 15,
 *              the sum of gate and bias in these heads is near 5.25, where softplus(x) is above x by 0.005. These heads
 *              forget so slowly that a reference that uses x instead of softplus(x) fails. For head % 4 = 0, 1, 2, 3,
 *              A_log is near -3, -1, 1/2, -5 (second set: 5/2, -7, 0, -2)
 *   g, A_log, dt_bias with a lower bound: for (head + key) % 4 = 0, 1, 2, 3, g is recurrence_raw_gate minus 6, 0, 9, 3;
 *              dt_bias is uniform on [-2, 2) (second set: [-8, 8)); A_log differs by at most 1/2 from 0 (second set:
 *              from 5/2 and -2 in turn). The arguments of the sigmoid are thus at both of its ends and in its middle.
 *   beta       uniform on [0, 1), but 0 or 1 for some values of (5 * token + head) % 16. For some other values of (5 *
 *              token + head) % 16, beta is 1 or more, but so small that 1 - beta |k|^2 is above -1: beta is in [1, 2)
 *              if the key is normalised or short, and in [1, 3/2) if the norm of the key is near 1. If the operation
 *              doubles beta, no beta is above 1. If the operation applies a sigmoid to beta, the logits of beta are
 *              uniform on [-4, 4), but for some values of (5 * token + head) % 16 they are 0, -16 or 16 (second set: 0,
 *              -32 or 32). In the second set of the smallest cases, these logits are uniform on [0, 1). A reference
 *              that treats such logits as betas, without a sigmoid, then fails. Of every 64 tokens of the batch, token
 *              37 writes nothing, but still reads and forgets: its beta is 0 in every head (-32 if a sigmoid is applied
 *              to beta).
 *
 * A gate below -10 multiplies the state by less than 2^-14. If a reference replaces gates below -10 by -10, its error
 * therefore exceeds the bound only if the state is huge. If gates can be below -10, some heads have a huge state
 * (recurrence_has_huge). In tokens 9 and 73 of the batch, the v of these heads is multiplied by RECURRENCE_HUGE. In
 * tokens 10 and 74, the gates of every key are below -10: g is between -13.5 and -10.5, or recurrence_erasing_gate
 * before softplus. If every sequence has a single token, the initial states of sequences 10 and 74 are huge instead.
 * After the gates below -10, the huge values are no larger than other values, so later tokens need no larger bounds.
 * The output of token 9 is huge, too, but rtol makes its bound larger.
 *
 * Sums of gates over a chunk of 64 tokens are above -1024. In float32, the rounding error of an addition to such a sum
 * is at most 2^-15. Chunked references, which compute differences of these sums, therefore meet the bounds. The lowest
 * gates are those with softplus: -rate softplus(x). In the first set, rates are at most e. Of the 64 values of x in a
 * chunk, two are at most 98, two are at most 22, and two are at most 18; their sum is at most 276. One value, which
 * erases a huge value, is at most 16. The softplus of the others is 1 on average, which is at most 64 in total. The sum
 * of the 64 gates is thus at least -e (276 + 16 + 64) = -970. In the second set, rates are at most e^3. Of the 64
 * values of x, one is at most 23, one is at most 14, one (which erases a huge value) is at most 7, and the softplus of
 * the others is 0.1 on average. The sum of the 64 gates is thus at least -20 (44 + 6) = -1000. (Heads with gates near
 * 5.25, and the other heads that erase huge values, have smaller rates.)
 *
 * Similar keys. With the delta rule, the first 64 tokens of the batch have similar keys in every second head of k, if
 * the first sequence is longer than 64 tokens. A chunked reference inverts I + A, where A has the elements beta_i k_i .
 * k_j (j < i) of a chunk. Many references compute the product (I - A)(I + A^2)(I + A^4) … (I + A^32). A reference that
 * omits the last factor should fail. If keys were independent, A^32 would be far below any bound. If all keys had the
 * same direction, powers of A would reach 10^17 before they vanish, and the product would be wrong in float32.
 * Therefore each key is the sum of three random rows, of which it shares two with the next key and one with the key
 * after that. The dot products with these two keys are near 2/3 and 1/3, and those with other keys are near 0. The sum
 * over a row of A is then near 1. Powers of A neither grow nor vanish, but each multiplication by A moves the large
 * elements away from the diagonal, by 4/3 of a column on average. A^32 is thus as large as A, and in A^63 all large
 * elements have moved out of the chunk. The dot products of keys are random and vary by about K^-1/2, which makes the
 * powers of A larger. To make them smaller again, beta is near 1 - 8 / K. (In 60 trials for each K from 64 to 256, the
 * error of a correct product in float32 was at most 0.3 times the bound of states. Without the last factor, the error
 * was at least 17 times the bound.) In the tokens with similar keys, gates and betas must not reduce the powers of A.
 * Therefore gates are near 0 (g is between -1/256 and 0; a g to which softplus or a sigmoid is applied is -24), and
 * every token writes. Similar keys that are not normalised have a norm near 1. As in other heads, q has the direction
 * of k if token + head is odd.
 *
 * recurrence_fill_offsets computes the offsets of packed sequences. If there are more than ten sequences, sequence 9 is
 * empty. */
#ifndef REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_INPUT_VALUES_H
#define REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_INPUT_VALUES_H

#include "kernels/common/linear_attention/roles.h"
#include "kernels/core/random_inputs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* recurrence_sizes implements op.sizes. In the same way, the declarations up to recurrence_reach implement the members
 * of struct op with the same names, except those that have a comment. */
int recurrence_sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room);
extern const struct op_edge recurrence_edges[];
bool recurrence_edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis);
struct rule recurrence_rule(const struct op_case *c, int output);
double recurrence_scalar(const struct op_case *c, int input);
/* Returns the scale, which is never 1 / sqrt(K), the default of references. In the first set of input values, the scale
 * is a little above the default, or a third of it if there are more than three sequences. In the second set, it also
 * depends on the number of sequences: it is a third of the default for one sequence, 1 for two or three sequences, and
 * above 1 for more. A scale of 1 detects references that treat 1 as an omitted scale. */
double recurrence_scale(const struct op_case *c, int64_t k_dim, int64_t sequences);
/* Returns true if the logits of beta are in [0, 1), so that their values do not show that they are logits. This is so
 * only in cases with few tokens. */
bool recurrence_is_doubtful(const struct op_case *c, int64_t tokens);
int recurrence_fill(const struct op_case *c, int input, struct tensor *out, struct err *err);
/* Like recurrence_fill, but for a case of a gradient problem. No row of q is short, because the gradient of the norm of
 * a short row depends on the epsilon that a reference adds. No value is huge: the bounds of a gradient grow with the
 * largest values of the tensor, so a huge value would hide errors in other elements. */
int recurrence_fill_for_gradients(const struct op_case *c, int input, struct tensor *out, struct err *err);
/* Returns the exponent of the power of 2 by which a short row of q is multiplied. The norm of the row is then near 1/16
 * if the output is bfloat16, 1/8 if the output is float16, and 1/4 otherwise. If a reference adds an epsilon of 1e-5 to
 * the sum of squares, the row changes by less than half of the bound of outputs. */
int recurrence_short_query(enum dtype output, int64_t k_dim);
int recurrence_check(const struct op_case *c, const struct tensor *in, struct err *err);
bool recurrence_range(const struct op_problem *problem, int variant, int input, struct op_range *out);
struct op_reach recurrence_reach(const struct op_problem *problem, int variant, int axis);

/* In the second set of input values, v and the initial states are RECURRENCE_LARGER times as large as in the first set.
 * Outputs, final states and their bounds are larger by the same factor. */
enum { RECURRENCE_LARGER = 64 };

/* The atol of states in the first set of input values. The comment at the top of input_values.c derives it. */
#define RECURRENCE_STATE_ATOL 0x1p-15

/* With the delta rule, the first RECURRENCE_ALIKE tokens of the first sequence have similar keys, if that sequence has
 * more than RECURRENCE_ALIKE tokens. The comment at the top of this file describes similar keys. */
enum { RECURRENCE_ALIKE = 64 };

/* The range of beta in the tokens with similar keys: from beta - spread to beta + spread. If the operation applies a
 * sigmoid to beta or doubles it, this is the range of the input before these steps. */
struct recurrence_alike {
	float beta, spread;
};
struct recurrence_alike recurrence_alike_of(int64_t k_dim, bool sigmoid, bool doubled);

/* The values of op_case.edge, in the order of recurrence_edges. */
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
	RECURRENCE_LOG,      /* g, if it is the logarithm of the decay */
	RECURRENCE_CONSTANT, /* g_gamma */
	RECURRENCE_RAW,      /* a gate to which softplus is applied */
	RECURRENCE_LOW,      /* a gate to which a sigmoid is applied */
	RECURRENCE_A_LOG,
	RECURRENCE_RATE, /* A_log of a bounded gate */
	RECURRENCE_BIAS,
	RECURRENCE_WIDE_BIAS, /* dt_bias of a bounded gate */
	RECURRENCE_BETA,
	RECURRENCE_LOGIT /* beta, if a sigmoid is applied to it */
};

/* The parameters from which the float elements of an input are computed. Kernels take this struct by value. */
struct recurrence_fill {
	uint64_t key, k_key; /* k_key: the Philox key of k; q, which may have the direction of k, uses it, too */
	int part;            /* a value of enum recurrence_part */
	int l2norm, edge;
	bool second;        /* whether this is the second set of input values */
	bool doubtful;      /* whether the logits of beta are in [0, 1) */
	int64_t heads, dim; /* dimensions of the element's tensor: [token][heads][dim] */
	int eighths;        /* the elements of k are uniform on [-1, 1) * eighths / 8 * 2^exponent */
	int exponent;
	float spike; /* the largest element of a row of q or k that has a spike */
	int largest; /* the largest norm of a key is `largest` / 4 times the usual norm */
	bool has_alike;  /* whether the first tokens have similar keys */
	int64_t sharing; /* number of heads of the element's tensor that share a head of k */
	struct recurrence_alike alike;
	int erasing;      /* a value of enum recurrence_erasing */
	bool single;      /* whether every sequence has one token; token n then belongs to sequence n */
	bool for_gradients; /* whether the case is of a gradient problem: then no row of q is short and no value is
			     * huge */
	bool beta_to_two;   /* whether beta can be as large as 2; only possible if it is used unchanged */
	int short_query;  /* if q is normalised, a short row of q is multiplied by 2^short_query */
};

struct recurrence_fill recurrence_fill_of(const struct op_case *c, int input);

#ifdef __cplusplus
}
#endif

/* The spikes of keys with the delta rule or with normalisation, of other keys, and of queries. */
#define RECURRENCE_SPIKE 0.9375f
#define RECURRENCE_LARGE_SPIKE 1.5f
#define RECURRENCE_QUERY_SPIKE 4.0f

/* The factor by which huge values are larger than others. */
enum { RECURRENCE_HUGE = 256 };

/* How the gates of an operation can erase a huge value: a gate below -10 makes the value smaller than the values that
 * tokens write. */
enum recurrence_erasing {
	RECURRENCE_ERASES_NOTHING,
	RECURRENCE_ERASES_BY_LOG,
	RECURRENCE_ERASES_BY_SOFTPLUS,
	RECURRENCE_ERASES_BY_CONSTANT
};

/* Returns true for the tokens 9 and 73 of the batch, which write huge values. The tokens after them erase these
 * values. */
HOST_DEVICE static inline bool recurrence_writes_huge(int64_t token)
{
	return token == 9 || token == 73;
}

HOST_DEVICE static inline bool recurrence_erases_huge(int64_t token)
{
	return recurrence_writes_huge(token - 1);
}

/* Returns true if a value head has huge values. A head has huge values only if its gates can erase them. Most heads
 * that have huge values in one set of input values have no huge values in the other set. */
HOST_DEVICE static inline bool recurrence_has_huge(int erasing, bool second, int64_t head)
{
	switch (erasing) {
	case RECURRENCE_ERASES_BY_LOG:
		return head % 2 == (second ? 0 : 1);
	case RECURRENCE_ERASES_BY_SOFTPLUS:
		return second ? head % 2 == 0 : head % 4 == 1 || head % 4 == 2;
	case RECURRENCE_ERASES_BY_CONSTANT:
		return second && head % 4 == 0;
	default:
		return false;
	}
}

/* Returns an element of the gate input that erases a huge value: if softplus and the A_log of the head
 * (recurrence_a_log) are applied to the element, the logarithm of the decay is below -10. */
HOST_DEVICE static inline float recurrence_erasing_gate(bool second, int64_t head)
{
	return second ? (head % 4 == 0 ? 8.5f : 24.5f) : head % 4 == 1 ? 52.0f : 14.0f;
}

/* Returns true if some gates of the value head, with their bias, are just above 5, where softplus(x) is x + 0.005. The
 * head forgets so slowly that a reference that uses x instead of softplus(x) fails. */
HOST_DEVICE static inline bool recurrence_bends(bool second, int64_t head)
{
	return head % 4 == (second ? 3 : 1);
}

HOST_DEVICE static inline float recurrence_bending_gate(bool second, float value)
{
	return value * 0.125f + (second ? 9.75f : 5.25f);
}

/* Returns true if a row of q is short, given that the operation normalises q. `turn` is token + head. */
HOST_DEVICE static inline bool recurrence_is_short_query(int64_t turn)
{
	return turn % 8 == 3;
}

/* Returns true if a row of q or of k has a spike. `turn` is token + head. Rows with similar keys and rows of gradient
 * cases have no spike. */
HOST_DEVICE static inline bool recurrence_has_spike(bool is_key, int64_t turn)
{
	return turn % 8 == (is_key ? 4 : 2);
}

/* Returns element `at` of a row of `dim` elements with a spike. `value` is the element of the same row without a
 * spike. */
HOST_DEVICE static inline float recurrence_spiked(float spike, int64_t turn, int64_t at, int64_t dim, float value)
{
	if (at != turn / 8 * 7 % dim)
		return value * 0.25f;
	return value < 0 ? -spike : spike;
}

/* Returns the level of a kind of gates: most gates of the kind are between -2^level and 0, and a few are -6 * 2^level
 * or -16 * 2^level. In the first set of values, the kind of the gates of a head and key is head + key. */
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

/* Returns an element of the gate input, to which the operation applies softplus. A gate of -24 leaves the state
 * unchanged; for a gate of 96, exp overflows float32. The sums of gate and dt_bias are around 12, -12, 0 and 20; above
 * 20, implementations may replace softplus(x) by x. The second set of input values has fewer large gates, because its
 * dt_bias is lower by 4.5 and its rates are higher. */
enum { RECURRENCE_KEEPS_ALL = 3 }; /* the value of `turn` for a gate of -24 */
HOST_DEVICE static inline float recurrence_raw_gate(bool second, int64_t turn, float value)
{
	switch (turn % 64) {
	case RECURRENCE_KEEPS_ALL:
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

/* Returns true if this token has one of the similar keys in this head of k. */
HOST_DEVICE static inline bool recurrence_is_alike(int64_t token, int64_t k_head)
{
	return token < RECURRENCE_ALIKE && k_head % 2 == 0;
}

/* Returns element `index` of the similar keys. The caller passes it to recurrence_key_element as `value`. `row` is the
 * number of elements of a token in k. The sum of three numbers is multiplied by 9/16, about 3^-1/2; the result is
 * exact. */
HOST_DEVICE static inline float recurrence_alike_element(uint64_t k_key, int64_t index, int64_t row)
{
	float sum = 0;

	for (int i = 0; i < 3; i++)
		sum += uniform_signed(philox_bits(k_key, index + i * row), 16);
	return sum * 0.5625f;
}

/* Returns true if beta is 0 in all heads of the token, except in heads with similar keys. The token then writes
 * nothing. Every case with a sequence of 64 tokens or more has such a token. */
HOST_DEVICE static inline bool recurrence_learns_nothing(int64_t token)
{
	return token % 64 == 37;
}

HOST_DEVICE static inline float recurrence_logit(bool second, bool doubtful, int64_t turn, float value)
{
	if (doubtful)
		return (value + 1) * 0.5f;
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

/* Returns the bias that is added to a gate before softplus. */
HOST_DEVICE static inline float recurrence_bias(bool second, int64_t head, float value)
{
	bool bends = recurrence_bends(second, head);

	return second ? value * (bends ? 0.25f : 2.5f) - 4.5f : value * (bends ? 0.25f : 2);
}

/* Returns the exponent of the power of 2 that scales a row if the reference normalises that row. In cases of gradient
 * problems, the exponents are smaller, because the longer a row is, the smaller is its gradient. */
HOST_DEVICE static inline int recurrence_longer(bool second, bool for_gradients, int64_t turn)
{
	return (int)(turn % 3) * (!second ? 1 : for_gradients ? 2 : 5);
}

HOST_DEVICE static inline float recurrence_query(const struct recurrence_fill *f, int64_t index, int64_t turn,
                                                 bool alike, float value)
{
	if (turn % 2 == 1)
		value = alike ? recurrence_alike_element(f->k_key, index, f->heads * f->dim)
		              : uniform_signed(philox_bits(f->k_key, index), 20);
	if (f->edge == RECURRENCE_ROWS_OF_ZEROS && turn % 3 == 1)
		return 0;
	if (!f->for_gradients && !alike && recurrence_has_spike(false, turn))
		value = recurrence_spiked(f->spike, turn, index % f->dim, f->dim, value);
	if (!f->l2norm)
		return value;
	return value * float_power(!f->for_gradients && !alike && recurrence_is_short_query(turn)
	                               ? f->short_query
	                               : recurrence_longer(f->second, f->for_gradients, turn + 1));
}

/* Returns an element of a key, multiplied by `quarters` / 4 and by 2^longer. The product of the small integers
 * `eighths` and `quarters` is exact, so the element is rounded only once. */
HOST_DEVICE static inline float recurrence_key_element(int eighths, int exponent, int quarters, int longer, float value)
{
	return value * (float)(eighths * quarters) * float_power(exponent - 5 + longer);
}

HOST_DEVICE static inline float recurrence_key(const struct recurrence_fill *f, int64_t index, int64_t turn, bool alike,
                                               float value)
{
	if (alike)
		value = recurrence_alike_element(f->k_key, index, f->heads * f->dim);
	if (f->edge == RECURRENCE_ROWS_OF_ZEROS && turn % 3 == 2)
		return 0;

	int quarters = f->l2norm || alike ? 4 : turn % 4 == 2 ? f->largest : turn % 4 == 3 ? 2 : 4;
	int longer = f->l2norm ? recurrence_longer(f->second, f->for_gradients, turn) : 0;

	value = recurrence_key_element(f->eighths, f->exponent, quarters, longer, value);
	if (f->for_gradients || alike || !recurrence_has_spike(true, turn))
		return value;
	return recurrence_spiked(f->spike * float_power(longer), turn, index % f->dim, f->dim, value);
}

/* Returns an element of the gate input, to which the operation applies softplus. `turn` is 5 * token + head + 3 *
 * key. */
HOST_DEVICE static inline float recurrence_softplus_gate(bool second, bool erases, int64_t head, int64_t turn,
                                                         float value)
{
	if (erases)
		return recurrence_erasing_gate(second, head);
	if (recurrence_bends(second, head) && turn % 16 == 15)
		return recurrence_bending_gate(second, value);
	return recurrence_raw_gate(second, turn, value);
}

/* Returns an element of beta for an operation that uses beta unchanged. `turn` is 5 * token + head, and `key_turn` is
 * token + head of k. If beta is not doubled, some values are above 1, but only where 1 - beta |k|^2 is still above
 * -1. */
HOST_DEVICE static inline float recurrence_beta(const struct recurrence_fill *f, int64_t turn, int64_t key_turn,
                                                float value)
{
	float more = f->l2norm || key_turn % 4 == 3 ? 1.0f : key_turn % 4 < 2 ? 0.5f : 0.0f, unit = (value + 1) * 0.5f;

	if (turn % 16 == 3)
		return 0;
	if (turn % 16 == 11)
		return 1;
	return f->beta_to_two && more > 0 && (turn % 8 == 5 || turn % 8 == 7) ? 1 + unit * more : unit;
}

/* Returns element `index` of the input that `f` describes, computed from its random bits. The caller converts the
 * element to the dtype with dtype_store_float. */
HOST_DEVICE static inline float recurrence_element(const struct recurrence_fill *f, int64_t index, uint32_t random)
{
	const float low[] = {6, 0, 9, 3}, larger = f->second ? RECURRENCE_LARGER : 1;
	float value = uniform_signed(random, 20);
	int64_t row = index / f->dim, key = index % f->dim, token = row / f->heads, head = row % f->heads;
	int64_t turn = 5 * token + head + 3 * key, k_head = head / f->sharing;
	bool alike = f->has_alike && recurrence_is_alike(token, k_head);
	bool has_huge = !f->for_gradients && !alike && recurrence_has_huge(f->erasing, f->second, head);
	bool writes = has_huge && !f->single && recurrence_writes_huge(token);
	bool erases = has_huge && recurrence_erases_huge(token);

	switch (f->part) {
	case RECURRENCE_Q:
		return recurrence_query(f, index, token + head, alike, value);
	case RECURRENCE_K:
		return recurrence_key(f, index, token + head, alike, value);
	case RECURRENCE_STATE:
		return value * 0.5f * larger * (erases && f->single ? RECURRENCE_HUGE : 1);
	case RECURRENCE_LOG:
		if (erases && f->edge != RECURRENCE_FORGETS_ALL)
			return -12 + value * 1.5f;
		return alike ? (value + 1) * -0x1p-9f : recurrence_log_gate(f, turn, head + key, value);
	case RECURRENCE_CONSTANT:
		return (value + 3) * -0.25f * float_power(recurrence_level(index + f->second) + (f->second ? 3 : 0));
	case RECURRENCE_RAW:
		return recurrence_softplus_gate(f->second, erases, head, alike ? (int64_t)RECURRENCE_KEEPS_ALL : turn, value);
	case RECURRENCE_LOW:
		return recurrence_raw_gate(f->second, alike ? (int64_t)RECURRENCE_KEEPS_ALL : turn, value) - low[(head + key) % 4];
	case RECURRENCE_A_LOG:
		return recurrence_a_log(f->second, index, value);
	case RECURRENCE_RATE:
		return value * 0.5f + (!f->second ? 0.0f : index % 2 == 0 ? 2.5f : -2.0f);
	case RECURRENCE_BIAS:
		return recurrence_bias(f->second, head, value);
	case RECURRENCE_WIDE_BIAS:
		return value * (f->second ? 8 : 2);
	case RECURRENCE_BETA:
		if (alike)
			return f->alike.beta + value * f->alike.spread;
		return recurrence_learns_nothing(token) ? 0.0f : recurrence_beta(f, turn, token + k_head, value);
	case RECURRENCE_LOGIT:
		if (alike)
			return f->alike.beta + value * f->alike.spread;
		return recurrence_learns_nothing(token) ? -32.0f : recurrence_logit(f->second, f->doubtful, turn, value);
	default:
		return value * larger * (writes ? RECURRENCE_HUGE : 1);
	}
}

#endif
