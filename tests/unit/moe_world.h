/* moe_world - builds mixture-of-experts problems of each form, and emulates their references in float32. The emulations
 * have their own loops, and can contain the mistakes that people make. */
#ifndef REFTEST_TESTS_MOE_WORLD_H
#define REFTEST_TESTS_MOE_WORLD_H

#include "tests/unit/problem_builder.h"

#include "kernels/moe/input_values.h"
#include "tests/unit/seeds.h"

extern const struct op moe_op;

enum { MAX_CASES = 4 };

/* --- forms -------------------------------------------------------------------------------------------------------- */

static inline void start(struct built *b, const char *name, const char *description)
{
	start_problem(b, name, "moe");
	b->problem.description = description;
}

/* Adds the axes. A block of weights has 16 elements on a side. The other sizes are the smallest at which every mistake
 * changes an output visibly. */
static inline void add_sizes(struct built *b, int64_t experts, int64_t local)
{
	add_axis(b, "seq_len", 0);
	add_axis(b, "num_experts", experts);
	if (local > 0)
		add_axis(b, "num_local_experts", local);
	add_axis(b, "hidden_size", 64);
	add_axis(b, "intermediate_size", 48);
	add_axis(b, "gemm1_out_size", 96);
	add_axis(b, "num_hidden_blocks", 4);
	add_axis(b, "num_intermediate_blocks", 3);
	add_axis(b, "num_gemm1_out_blocks", 6);
}

static inline void add_weights(struct built *b, enum dtype hidden, enum dtype weights, const char *first, const char *second)
{
	add_input(b, "hidden_states", hidden, "seq_len hidden_size");
	add_input(b, "gemm1_weights", weights, first);
	add_input(b, "gemm2_weights", weights, second);
	add_output(b, "output", DTYPE_BFLOAT16, "seq_len hidden_size");
}

static inline void add_block_scales(struct built *b, const char *first, const char *second)
{
	add_input(b, "hidden_states_scale", DTYPE_FLOAT32, "num_hidden_blocks seq_len");
	/* the scale of gemm2 is listed before the scale of gemm1, so reftest must tell them apart by their axes */
	add_input(b, "gemm2_weights_scale", DTYPE_FLOAT32, second);
	add_input(b, "gemm1_weights_scale", DTYPE_FLOAT32, first);
}

static inline void deepseek(struct built *b, const char *name)
{
	start(b, name, "");
	add_sizes(b, 32, 8);
	add_input(b, "routing_logits", DTYPE_FLOAT32, "seq_len num_experts");
	add_input(b, "routing_bias", DTYPE_BFLOAT16, "num_experts");
	add_weights(b, DTYPE_FLOAT8_E4M3FN, DTYPE_FLOAT8_E4M3FN, "num_local_experts gemm1_out_size hidden_size",
		    "num_local_experts hidden_size intermediate_size");
	add_block_scales(b, "num_local_experts num_gemm1_out_blocks num_hidden_blocks",
			 "num_local_experts num_hidden_blocks num_intermediate_blocks");
	add_input(b, "local_expert_offset", DTYPE_INT32, NULL);
	add_input(b, "routed_scaling_factor", DTYPE_FLOAT32, NULL);
}

static const char grouped_name[] = "moe_fp8_block_scale_ds_routing_topk4_ng4_kg2",
		  flat_name[] = "moe_ds_routing_topk4_ng1_kg1";

static inline void renormalised(struct built *b)
{
	start(b, "moe_fp8_block_scale_renorm_topk4", "");
	add_sizes(b, 16, 0);
	add_input(b, "routing_logits", DTYPE_BFLOAT16, "seq_len num_experts");
	add_weights(b, DTYPE_FLOAT8_E4M3FN, DTYPE_FLOAT8_E4M3FN, "num_experts gemm1_out_size hidden_size",
		    "num_experts hidden_size intermediate_size");
	add_block_scales(b, "num_experts num_gemm1_out_blocks num_hidden_blocks",
			 "num_experts num_hidden_blocks num_intermediate_blocks");
}

static inline void per_tensor(struct built *b, const char *description, int64_t top_k, bool bias)
{
	start(b, "trtllm_fp8_per_tensor_scale_moe", description);
	add_sizes(b, 8, 0);
	add_axis(b, "top_k", top_k);
	add_input(b, "routing_logits", DTYPE_BFLOAT16, "seq_len num_experts");
	add_weights(b, DTYPE_FLOAT8_E4M3FN, DTYPE_FLOAT8_E4M3FN, "num_experts gemm1_out_size hidden_size",
		    "num_experts hidden_size intermediate_size");
	add_input(b, "output1_scales_scalar", DTYPE_FLOAT32, "num_experts");
	add_input(b, "output1_scales_gate_scalar", DTYPE_FLOAT32, "num_experts");
	add_input(b, "output2_scales_scalar", DTYPE_FLOAT32, "num_experts");
	if (bias)
		add_input(b, "routing_bias", DTYPE_BFLOAT16, "num_experts");
}

static const char renorm_text[] = "Routing: Renormalize (TopK->Softmax, routing_method_type=1).";
static const char llama_text[] = "Llama4 routing (sigmoid+top-1). Routing: Llama4 (routing_method_type=3).";

static inline void floats(struct built *b)
{
	start(b, "trtllm_fp4_block_scale_moe_topk3", renorm_text);
	add_sizes(b, 16, 0);
	add_input(b, "routing_logits", DTYPE_BFLOAT16, "seq_len num_experts");
	add_weights(b, DTYPE_BFLOAT16, DTYPE_FLOAT32, "num_experts gemm1_out_size hidden_size",
		    "num_experts hidden_size intermediate_size");
}

static inline void routed(struct built *b, const char *description, enum dtype ids, bool weights)
{
	start(b, "trtllm_fp4_block_scale_routed_moe", description);
	add_sizes(b, 16, 0);
	add_axis(b, "top_k", 3);
	add_input(b, "topk_ids", ids, "seq_len top_k");
	if (weights)
		add_input(b, "topk_weights", DTYPE_BFLOAT16, "seq_len top_k");
	add_weights(b, DTYPE_BFLOAT16, DTYPE_FLOAT32, "num_experts gemm1_out_size hidden_size",
		    "num_experts hidden_size intermediate_size");
}

/* Fills in the axes of all cases of the small preset and then of the medium preset; returns the number of cases. */
static inline int cases_of(const struct op_problem *problem, int64_t axis[MAX_CASES * MAX_AXES])
{
	int small = moe_op.sizes(problem, 0, SIZE_SMALL, axis, MAX_CASES);

	return small + moe_op.sizes(problem, 0, SIZE_MEDIUM, axis + small * problem->axis_count, MAX_CASES - small);
}

/* --- a reference in float32, with its own loops ------------------------------------------------------------------- */

enum mistake {
	RIGHT,
	BIAS_LEFT_OUT,
	WEIGHTS_BIASED,
	GROUPS_IGNORED,
	GROUPS_BY_MAXIMUM,
	NOT_NORMALISED,
	FACTOR_LEFT_OUT,
	OFFSET_IGNORED,
	ROUTING_MISTAKES, /* BIAS_LEFT_OUT to OFFSET_IGNORED occur only in DeepSeek's routing */
	ONE_TOO_MANY,
	ONE_TOO_FEW,
	EVEN_WEIGHTS,
	HALVES_SWAPPED,
	SILU_LEFT_OUT,
	SIGMOID_FOR_SILU,
	SILU_OF_THE_PRODUCT,
	LAST_COLUMN_LEFT_OUT,
	LAST_EXPERT_LEFT_OUT,
	INNER_IN_FP8,
	TWO_PERCENT,
	WEIGHT_AT_THE_OTHER_END,
	ZEROS,
	NOT_A_NUMBER,
	GENERAL_MISTAKES,
	HIDDEN_SCALE_LEFT_OUT,
	HIDDEN_SCALE_TRANSPOSED,
	SCALES_TRANSPOSED,
	BLOCK_HALVED,
	SCALE_OF_THE_BLOCK_BEFORE,
	BLOCK_MISTAKES,
	FACTORS_SWAPPED,
	FACTOR_AFTER_SILU,
	LAST_FACTOR_LEFT_OUT,
	FACTOR_MISTAKES
};

struct emulation {
	const struct world *w;
	struct moe_roles roles;
	struct moe_extent e;
	int64_t picks, groups, kept;
	int variant;
	enum mistake mistake;
	float *values[MAX_INPUTS]; /* values[i]: input i as floats; NULL for the input with expert ids */
};

static inline float *floats_of(const struct tensor *tensor)
{
	float *out = calloc((size_t)tensor->elements + 1, sizeof *out);

	assert_non_null(out);
	for (int64_t i = 0; i < tensor->elements && tensor->data != NULL; i++)
		out[i] = (float)dtype_load(tensor->data, tensor->dtype, i);
	return out;
}

static inline float at(const struct emulation *m, int input, int64_t index)
{
	return input < 0 ? 1 : m->values[input][index];
}

static inline int64_t count_of(const struct emulation *m, const char *name, int64_t otherwise)
{
	const struct op_case *c = &m->w->c;

	for (int i = 0; i < c->constant_count; i++)
		if (strcmp(c->constants[i].name, name) == 0)
			return (int64_t)c->constants[i].value;
	return otherwise;
}

/* Sets chosen[i] to 1 for the `count` largest of values[0 … n - 1], and to 0 for all other i. */
static inline void largest(const float *values, int64_t n, int64_t count, int *chosen)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t above = 0;

		for (int64_t j = 0; j < n; j++)
			above += values[j] > values[i] || (values[j] == values[i] && j < i);
		chosen[i] = above < count;
	}
}

static inline void drop_groups(const struct emulation *m, float *ranked)
{
	int64_t size = m->e.experts / m->groups;
	float score[64];
	int kept[64], two[64];

	for (int64_t g = 0; g < m->groups; g++) {
		score[g] = 0;
		largest(ranked + g * size, size, m->mistake == GROUPS_BY_MAXIMUM ? 1 : 2, two);
		for (int64_t i = 0; i < size; i++)
			score[g] += two[i] ? ranked[g * size + i] : 0;
	}
	largest(score, m->groups, m->kept, kept);
	for (int64_t i = 0; i < m->e.experts; i++)
		ranked[i] = kept[i / size] ? ranked[i] : -INFINITY;
}

/* Computes weight[expert] of a token; the weight is 0 for every expert that the token is not routed to. */
static inline void emulate_routing(const struct emulation *m, int64_t t, float *weight)
{
	bool ds = (m->variant & MOE_METHOD) == MOE_DEEPSEEK, soft = (m->variant & MOE_METHOD) == MOE_RENORMALISE;
	int64_t n = m->e.experts, count = m->picks + (m->mistake == ONE_TOO_MANY) - (m->mistake == ONE_TOO_FEW);
	float ranked[64], score[64], most = -INFINITY, sum = 0;
	int chosen[64];

	for (int64_t i = 0; i < n; i++)
		most = fmaxf(most, at(m, m->roles.logits, t * n + i));
	for (int64_t i = 0; i < n; i++) {
		float logit = at(m, m->roles.logits, t * n + i);

		score[i] = soft ? expf(logit - most) : 1 / (1 + expf(-logit));
		ranked[i] = score[i] + (ds && m->mistake != BIAS_LEFT_OUT ? at(m, m->roles.bias, i) : 0);
		score[i] = m->mistake == WEIGHTS_BIASED ? ranked[i] : score[i];
	}
	if (ds && m->groups > 1 && m->mistake != GROUPS_IGNORED)
		drop_groups(m, ranked);
	largest(ranked, n, count, chosen);
	for (int64_t i = 0; i < n; i++)
		sum += weight[i] = chosen[i] ? score[i] : 0;
	for (int64_t i = 0; i < n && (ds || soft); i++) {
		weight[i] /= m->mistake == NOT_NORMALISED ? 1 : sum;
		weight[i] *= ds && m->mistake != FACTOR_LEFT_OUT ? (float)m->w->c.scalar[m->roles.scaling] : 1;
	}
	for (int64_t i = 0; i < n && m->mistake == EVEN_WEIGHTS; i++)
		weight[i] = chosen[i] ? 1.0f / (float)count : 0;
}

static inline void emulate_given(const struct emulation *m, int64_t t, float *weight)
{
	int64_t count = m->picks - (m->mistake == ONE_TOO_FEW);

	memset(weight, 0, 64 * sizeof *weight);
	for (int64_t k = 0; k < count; k++) {
		int64_t id =
		    (int64_t)dtype_load(m->w->in[m->roles.ids].data, m->w->in[m->roles.ids].dtype, t * m->picks + k);
		bool packed = m->roles.id_weights < 0;
		float w =
		    packed ? float_from_bf16((uint16_t)(id & 0xffff)) : at(m, m->roles.id_weights, t * m->picks + k);

		weight[packed ? id >> 16 : id] += m->mistake == EVEN_WEIGHTS ? 1.0f / (float)m->picks : w;
	}
}

static inline float emulate_hidden(const struct emulation *m, int64_t t, int64_t h)
{
	int64_t b = h / m->e.hidden_block, place = m->e.blocks_first ? b * m->e.tokens + t : t * m->e.blocks + b;

	if (m->mistake == HIDDEN_SCALE_TRANSPOSED)
		place = m->e.blocks_first ? t * m->e.blocks + b : b * m->e.tokens + t;
	return at(m, m->roles.hidden, t * m->e.hidden + h) *
	       (m->mistake == HIDDEN_SCALE_LEFT_OUT ? 1 : at(m, m->roles.hidden_scale, place));
}

/* Returns the dequantised weight [l][row][column] of a layer with rows x columns weights. All weights of a block of br
 * x bc weights share one scale. */
static inline float emulate_weight(const struct emulation *m, int weights, int scales, int64_t l, int64_t row, int64_t column,
			    int64_t rows, int64_t columns, int64_t br, int64_t bc)
{
	int64_t nr = rows / br, nc = columns / bc, r = row / br, c = column / bc;

	if (m->mistake == BLOCK_HALVED)
		c = column / (bc / 2) % nc;
	if (m->mistake == SCALE_OF_THE_BLOCK_BEFORE)
		r = r == 0 ? 0 : r - 1;
	return at(m, weights, (l * rows + row) * columns + column) *
	       at(m, scales, l * nr * nc + (m->mistake == SCALES_TRANSPOSED ? (c * nr + r) % (nr * nc) : r * nc + c));
}

static inline float emulate_inner(const struct emulation *m, float up, float gate, int64_t l)
{
	float fu = at(m, m->roles.factor_up, l), fg = at(m, m->roles.factor_gate, l), out;

	if (m->mistake == HALVES_SWAPPED) {
		float kept = up;

		up = gate;
		gate = kept;
	}
	up *= m->mistake == FACTORS_SWAPPED ? fg : fu;
	gate *= m->mistake == FACTORS_SWAPPED ? fu : m->mistake == FACTOR_AFTER_SILU ? 1 : fg;
	out = m->mistake == SILU_LEFT_OUT ? gate : gate / (1 + expf(-gate));
	out = m->mistake == SIGMOID_FOR_SILU ? 1 / (1 + expf(-gate)) : out;
	out *= m->mistake == FACTOR_AFTER_SILU ? fg : 1;
	out = m->mistake == SILU_OF_THE_PRODUCT ? up * gate / (1 + expf(-up * gate)) : up * out;
	return m->mistake == INNER_IN_FP8 ? float_from_e4m3(e4m3_from_float(fminf(fmaxf(out, -448), 448))) : out;
}

static inline void emulate_expert(const struct emulation *m, int64_t t, int64_t l, float weight, float *out)
{
	bool on_input = ((m->variant & MOE_WEIGHT_ON_INPUT) != 0) != (m->mistake == WEIGHT_AT_THE_OTHER_END);
	int64_t H = m->e.hidden, I = m->e.intermediate, last = H - (m->mistake == LAST_COLUMN_LEFT_OUT);
	float inner[64];

	for (int64_t i = 0; i < I; i++) {
		float up = 0, gate = 0;

		for (int64_t h = 0; h < last; h++) {
			float x = emulate_hidden(m, t, h) * (on_input ? weight : 1);

			up += x * emulate_weight(m, m->roles.weights1, m->roles.scale1, l, i, h, 2 * I, H, m->e.rows1,
						 m->e.columns1);
			gate += x * emulate_weight(m, m->roles.weights1, m->roles.scale1, l, I + i, h, 2 * I, H,
						   m->e.rows1, m->e.columns1);
		}
		inner[i] = emulate_inner(m, up, gate, l);
	}
	for (int64_t h = 0; h < H; h++) {
		float sum = 0;

		for (int64_t i = 0; i < I; i++)
			sum += inner[i] * emulate_weight(m, m->roles.weights2, m->roles.scale2, l, h, i, H, I,
							 m->e.rows2, m->e.columns2);
		sum *= m->mistake == LAST_FACTOR_LEFT_OUT ? 1 : at(m, m->roles.factor_down, l);
		out[h] += sum * (on_input ? 1 : weight);
	}
}

static inline void emulate_token(const struct emulation *m, int64_t t, float *out)
{
	int64_t last = m->e.local - (m->mistake == LAST_EXPERT_LEFT_OUT);
	float weight[64];

	if (m->roles.ids >= 0)
		emulate_given(m, t, weight);
	else
		emulate_routing(m, t, weight);
	for (int64_t l = 0; l < last; l++) {
		float w = weight[(m->mistake == OFFSET_IGNORED ? 0 : m->e.offset) + l];

		if (w != 0)
			emulate_expert(m, t, l, w, out);
	}
}

static inline void emulate(struct world *w, enum mistake mistake)
{
	struct emulation m = {.w = w, .roles = moe_roles_of(w->c.problem), .variant = w->c.variant, .mistake = mistake};
	float last = mistake == ZEROS ? 0 : mistake == NOT_A_NUMBER ? NAN : mistake == TWO_PERCENT ? 1.02f : 1;

	m.e = moe_extent_of(&w->c, &m.roles);
	m.picks = m.roles.ids >= 0 ? w->in[m.roles.ids].shape[1] : count_of(&m, "top_k", 0);
	m.groups = count_of(&m, "n_group", 1);
	m.kept = count_of(&m, "topk_group", 1);
	for (int i = 0; i < MAX_INPUTS; i++)
		m.values[i] = floats_of(&w->in[i]);
	for (int64_t t = 0; t < m.e.tokens; t++) {
		float out[64] = {0};

		emulate_token(&m, t, out);
		for (int64_t h = 0; h < m.e.hidden; h++)
			dtype_store(w->answer[0].data, w->answer[0].dtype, t * m.e.hidden + h, (double)(out[h] * last));
	}
	for (int i = 0; i < MAX_INPUTS; i++)
		free(m.values[i]);
}

static inline struct metrics judged(const struct world *w)
{
	struct metrics metrics;

	compare_host(w->answer[0].data, w->truth[0].data, w->truth[0].dtype, w->truth[0].elements, moe_op.rule(&w->c, 0), &metrics);
	return metrics;
}

static inline bool caught(const struct op_problem *problem, enum mistake mistake)
{
	int64_t axis[MAX_CASES * MAX_AXES];
	int cases = cases_of(problem, axis);
	bool found = false;

	for (int i = 0; i < cases && !found; i++) {
		struct world w;

		make_world(&w, &moe_op, problem, axis + i * problem->axis_count, 0);
		emulate(&w, mistake);
		found = !judged(&w).passed;
		free_world(&w);
	}
	return found;
}

static inline void expect_caught(const struct op_problem *problem, enum mistake from, enum mistake end)
{
	for (int mistake = (int)from + 1; mistake < (int)end; mistake += MISTAKE_STEP)
		if (!caught(problem, (enum mistake)mistake))
			fail_msg("%s: mistake %d is not caught", problem->name, mistake);
}

static inline void expect_passes(const struct op_problem *problem)
{
	int64_t axis[MAX_CASES * MAX_AXES];
	int cases = cases_of(problem, axis);

	assert_int_equal(cases, 4);
	for (uint64_t seed = 0; seed < MANY_SEEDS; seed++)
		for (int i = 0; i < cases; i++) {
			struct world w;
			struct metrics metrics;

			make_world(&w, &moe_op, problem, axis + i * problem->axis_count, seed);
			emulate(&w, RIGHT);
			metrics = judged(&w);
			if (!metrics.passed || metrics.zeros_would_pass)
				fail_msg("%s, seed %d, case %d: margin %g", problem->name, (int)seed, i,
					 metrics.margin);
			free_world(&w);
		}
}

#endif
