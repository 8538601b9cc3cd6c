/* moe: matches what the dataset has, tells how tokens are routed, its inputs leave no decision open, right references
 * pass, wrong ones fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compare.h"
#include "kernels/moe/inputs.h"
#include "kernels/number.h"

extern const struct op moe_op;

/* --- problems ----------------------------------------------------------------------------------------------------- */

enum { MAX_AXES = 16, MAX_INPUTS = 12, MAX_CASES = 4 };

struct built {
	struct op_axis axes[MAX_AXES];
	struct op_arg inputs[MAX_INPUTS], output;
	const char *tags[2];
	struct op_problem problem;
};

static void start(struct built *b, const char *name, const char *description)
{
	memset(b, 0, sizeof *b);
	b->problem = (struct op_problem){.name = name,
					 .op_type = "moe",
					 .description = description,
					 .tags = b->tags,
					 .axes = b->axes,
					 .inputs = b->inputs,
					 .outputs = &b->output,
					 .output_count = 1};
}

/* value 0: a var axis. */
static void add_axis(struct built *b, const char *name, int64_t value)
{
	b->axes[b->problem.axis_count++] = (struct op_axis){name, value == 0, value};
}

/* `shape`: axis names with blanks between; NULL: a Python scalar. */
static struct op_arg make_arg(const struct built *b, const char *name, enum dtype dtype, const char *shape)
{
	struct op_arg arg = {.name = name, .dtype = dtype, .rank = shape == NULL ? OP_SCALAR : 0};

	while (shape != NULL && *shape != '\0') {
		size_t length = strcspn(shape, " ");
		int axis = -1;

		for (int a = 0; a < b->problem.axis_count; a++)
			if (strlen(b->axes[a].name) == length && strncmp(b->axes[a].name, shape, length) == 0)
				axis = a;
		assert_true(axis >= 0);
		arg.axis[arg.rank++] = axis;
		shape += length + (shape[length] == ' ');
	}
	return arg;
}

static void add_input(struct built *b, const char *name, enum dtype dtype, const char *shape)
{
	b->inputs[b->problem.input_count++] = make_arg(b, name, dtype, shape);
}

static int input_named(const struct built *b, const char *name)
{
	int index = op_input_index(&b->problem, name);

	assert_true(index >= 0);
	return index;
}

/* Sizes as small as they tell: blocks of 16. */
static void add_sizes(struct built *b, int64_t experts, int64_t local)
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

static void add_weights(struct built *b, enum dtype hidden, enum dtype weights, const char *first, const char *second)
{
	add_input(b, "hidden_states", hidden, "seq_len hidden_size");
	add_input(b, "gemm1_weights", weights, first);
	add_input(b, "gemm2_weights", weights, second);
	b->output = make_arg(b, "output", DTYPE_BFLOAT16, "seq_len hidden_size");
}

static void add_block_scales(struct built *b, const char *first, const char *second)
{
	add_input(b, "hidden_states_scale", DTYPE_FLOAT32, "num_hidden_blocks seq_len");
	add_input(b, "gemm2_weights_scale", DTYPE_FLOAT32, second); /* the second first: axes tell them apart */
	add_input(b, "gemm1_weights_scale", DTYPE_FLOAT32, first);
}

static void deepseek(struct built *b, const char *name)
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

static void renormalised(struct built *b)
{
	start(b, "moe_fp8_block_scale_renorm_topk4", "");
	add_sizes(b, 16, 0);
	add_input(b, "routing_logits", DTYPE_BFLOAT16, "seq_len num_experts");
	add_weights(b, DTYPE_FLOAT8_E4M3FN, DTYPE_FLOAT8_E4M3FN, "num_experts gemm1_out_size hidden_size",
		    "num_experts hidden_size intermediate_size");
	add_block_scales(b, "num_experts num_gemm1_out_blocks num_hidden_blocks",
			 "num_experts num_hidden_blocks num_intermediate_blocks");
}

static void per_tensor(struct built *b, const char *description, int64_t top_k, bool bias)
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

static void floats(struct built *b)
{
	start(b, "trtllm_fp4_block_scale_moe_topk3", renorm_text);
	add_sizes(b, 16, 0);
	add_input(b, "routing_logits", DTYPE_BFLOAT16, "seq_len num_experts");
	add_weights(b, DTYPE_BFLOAT16, DTYPE_FLOAT32, "num_experts gemm1_out_size hidden_size",
		    "num_experts hidden_size intermediate_size");
}

static void routed(struct built *b, const char *description, enum dtype ids, bool weights)
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

/* --- cases -------------------------------------------------------------------------------------------------------- */

struct world {
	struct op_case c;
	int64_t axis[MAX_AXES];
	struct tensor in[MAX_INPUTS], truth, answer;
};

static struct tensor make_tensor(const struct op_case *c, const struct op_arg *arg)
{
	struct tensor t = {.dtype = arg->dtype, .rank = arg->rank, .elements = 1};

	for (int d = 0; d < arg->rank; d++)
		t.elements *= t.shape[d] = c->axis[arg->axis[d]];
	t.data = malloc((size_t)dtype_bytes(t.dtype, t.elements) + 1);
	assert_non_null(t.data);
	memset(t.data, 0xff, (size_t)dtype_bytes(t.dtype, t.elements));
	return t;
}

static void make_inputs(struct world *w, const struct op_problem *problem, const int64_t *axis, uint64_t seed)
{
	struct err err = {""};

	memset(w, 0, sizeof *w);
	w->c = (struct op_case){.problem = problem, .axis = w->axis, .seed = seed};
	memcpy(w->axis, axis, (size_t)problem->axis_count * sizeof *axis);
	w->c.variant = moe_op.match(problem, &err);
	assert_string_equal(err.text, "");
	w->c.constant_count = moe_op.constants(problem, w->c.variant, w->c.constants);
	for (int i = 0; i < problem->input_count; i++)
		if (problem->inputs[i].rank == OP_SCALAR)
			w->c.scalar[i] = moe_op.scalar(&w->c, i);
	for (int i = 0; i < problem->input_count; i++)
		if (problem->inputs[i].rank != OP_SCALAR) {
			w->in[i] = make_tensor(&w->c, &problem->inputs[i]);
			assert_int_equal(moe_op.fill(&w->c, i, &w->in[i], &err), 0);
		}
	w->truth = make_tensor(&w->c, problem->outputs);
	w->answer = make_tensor(&w->c, problem->outputs);
}

static void make_world(struct world *w, const struct op_problem *problem, const int64_t *axis, uint64_t seed)
{
	struct err err = {""};

	make_inputs(w, problem, axis, seed);
	assert_int_equal(moe_op.check(&w->c, w->in, &err), 0);
	assert_int_equal(moe_op.oracle(&w->c, w->in, &w->truth, &err), 0);
}

static void free_world(struct world *w)
{
	for (int i = 0; i < MAX_INPUTS; i++)
		free(w->in[i].data);
	free(w->truth.data);
	free(w->answer.data);
}

static int cases_of(const struct op_problem *problem, int64_t axis[MAX_CASES * MAX_AXES])
{
	int small = moe_op.sizes(problem, 0, SIZE_SMALL, axis, MAX_CASES);

	return small + moe_op.sizes(problem, 0, SIZE_MEDIUM, axis + small * problem->axis_count, MAX_CASES - small);
}

/* --- a reference, in float32, by loops of its own ----------------------------------------------------------------- */

enum mistake {
	RIGHT,
	BIAS_LEFT_OUT,
	WEIGHTS_BIASED,
	GROUPS_IGNORED,
	GROUPS_BY_MAXIMUM,
	NOT_NORMALISED,
	FACTOR_LEFT_OUT,
	OFFSET_IGNORED,
	ROUTING_MISTAKES, /* those above are DeepSeek's alone */
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
	float *values[MAX_INPUTS]; /* of all tensors but ids */
};

static float *floats_of(const struct tensor *tensor)
{
	float *out = calloc((size_t)tensor->elements + 1, sizeof *out);

	assert_non_null(out);
	for (int64_t i = 0; i < tensor->elements && tensor->data != NULL; i++)
		out[i] = (float)number_get(tensor->data, tensor->dtype, i);
	return out;
}

static float at(const struct emulation *m, int input, int64_t index)
{
	return input < 0 ? 1 : m->values[input][index];
}

static int64_t count_of(const struct emulation *m, const char *name, int64_t otherwise)
{
	const struct op_case *c = &m->w->c;

	for (int i = 0; i < c->constant_count; i++)
		if (strcmp(c->constants[i].name, name) == 0)
			return (int64_t)c->constants[i].value;
	return otherwise;
}

/* The `count` largest of values[0 … n - 1] get 1 in `chosen`, the others 0. */
static void largest(const float *values, int64_t n, int64_t count, int *chosen)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t above = 0;

		for (int64_t j = 0; j < n; j++)
			above += values[j] > values[i] || (values[j] == values[i] && j < i);
		chosen[i] = above < count;
	}
}

static void drop_groups(const struct emulation *m, float *ranked)
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

/* weight[expert] of a token, 0 where it does not go. */
static void emulate_routing(const struct emulation *m, int64_t t, float *weight)
{
	bool ds = (m->variant & MOE_METHOD) == MOE_DEEPSEEK, soft = (m->variant & MOE_METHOD) == MOE_RENORMALISE;
	int64_t n = m->e.experts, count = m->picks + (m->mistake == ONE_TOO_MANY) - (m->mistake == ONE_TOO_FEW);
	float ranked[64], score[64], sum = 0;
	int chosen[64];

	for (int64_t i = 0; i < n; i++) {
		float logit = at(m, m->roles.logits, t * n + i);

		score[i] = soft ? expf(logit - 8) : 1 / (1 + expf(-logit));
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

static void emulate_given(const struct emulation *m, int64_t t, float *weight)
{
	int64_t count = m->picks - (m->mistake == ONE_TOO_FEW);

	memset(weight, 0, 64 * sizeof *weight);
	for (int64_t k = 0; k < count; k++) {
		int64_t id =
		    (int64_t)number_get(m->w->in[m->roles.ids].data, m->w->in[m->roles.ids].dtype, t * m->picks + k);
		bool packed = m->roles.id_weights < 0;
		float w =
		    packed ? float_from_bf16((uint16_t)(id & 0xffff)) : at(m, m->roles.id_weights, t * m->picks + k);

		weight[packed ? id >> 16 : id] += m->mistake == EVEN_WEIGHTS ? 1.0f / (float)m->picks : w;
	}
}

static float emulate_hidden(const struct emulation *m, int64_t t, int64_t h)
{
	int64_t b = h / m->e.hidden_block, place = m->e.blocks_first ? b * m->e.tokens + t : t * m->e.blocks + b;

	if (m->mistake == HIDDEN_SCALE_TRANSPOSED)
		place = m->e.blocks_first ? t * m->e.blocks + b : b * m->e.tokens + t;
	return at(m, m->roles.hidden, t * m->e.hidden + h) *
	       (m->mistake == HIDDEN_SCALE_LEFT_OUT ? 1 : at(m, m->roles.hidden_scale, place));
}

/* Weight [l][row][column] of a layer of rows x columns, with rows / br times columns / bc scales. */
static float emulate_weight(const struct emulation *m, int weights, int scales, int64_t l, int64_t row, int64_t column,
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

static float emulate_inner(const struct emulation *m, float up, float gate, int64_t l)
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

static void emulate_expert(const struct emulation *m, int64_t t, int64_t l, float weight, float *out)
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

static void emulate_token(const struct emulation *m, int64_t t, float *out)
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

static void emulate(struct world *w, enum mistake mistake)
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
			number_set(w->answer.data, w->answer.dtype, t * m.e.hidden + h, (double)(out[h] * last));
	}
	for (int i = 0; i < MAX_INPUTS; i++)
		free(m.values[i]);
}

static struct metrics judged(const struct world *w)
{
	struct metrics metrics;

	compare_host(w->answer.data, w->truth.data, w->truth.dtype, w->truth.elements, moe_op.rule(&w->c, 0), &metrics);
	return metrics;
}

static bool caught(const struct op_problem *problem, enum mistake mistake)
{
	int64_t axis[MAX_CASES * MAX_AXES];
	int cases = cases_of(problem, axis);
	bool found = false;

	for (int i = 0; i < cases && !found; i++) {
		struct world w;

		make_world(&w, problem, axis + i * problem->axis_count, 0);
		emulate(&w, mistake);
		found = !judged(&w).passed;
		free_world(&w);
	}
	return found;
}

static void expect_caught(const struct op_problem *problem, enum mistake from, enum mistake end)
{
	for (int mistake = (int)from + 1; mistake < (int)end; mistake++)
		if (!caught(problem, (enum mistake)mistake))
			fail_msg("%s: mistake %d is not caught", problem->name, mistake);
}

static void expect_passes(const struct op_problem *problem)
{
	int64_t axis[MAX_CASES * MAX_AXES];
	int cases = cases_of(problem, axis);

	assert_int_equal(cases, 3);
	for (uint64_t seed = 0; seed < 20; seed++)
		for (int i = 0; i < cases; i++) {
			struct world w;
			struct metrics metrics;

			make_world(&w, problem, axis + i * problem->axis_count, seed);
			emulate(&w, RIGHT);
			metrics = judged(&w);
			if (!metrics.passed || metrics.zeros_would_pass)
				fail_msg("%s, seed %d, case %d: margin %g", problem->name, (int)seed, i,
					 metrics.margin);
			free_world(&w);
		}
}

/* --- match -------------------------------------------------------------------------------------------------------- */

static int variant_of(const struct built *b)
{
	struct err why = {""};
	int variant = moe_op.match(&b->problem, &why);

	assert_string_equal(why.text, "");
	return variant;
}

static void matches_every_form_of_the_dataset(void **state)
{
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	assert_int_equal(variant_of(&b), MOE_DEEPSEEK);
	deepseek(&b, flat_name);
	assert_int_equal(variant_of(&b), MOE_DEEPSEEK);
	renormalised(&b);
	assert_int_equal(variant_of(&b), MOE_RENORMALISE);
	per_tensor(&b, renorm_text, 2, false);
	assert_int_equal(variant_of(&b), MOE_RENORMALISE);
	per_tensor(&b, llama_text, 1, true);
	assert_int_equal(variant_of(&b), MOE_LLAMA4 | MOE_WEIGHT_ON_INPUT);
	floats(&b);
	assert_int_equal(variant_of(&b), MOE_RENORMALISE);
	routed(&b, renorm_text, DTYPE_INT32, false);
	assert_int_equal(variant_of(&b), MOE_GIVEN);
	routed(&b, llama_text, DTYPE_INT32, false);
	assert_int_equal(variant_of(&b), MOE_GIVEN | MOE_WEIGHT_ON_INPUT);
	routed(&b, "", DTYPE_INT64, true);
	assert_int_equal(variant_of(&b), MOE_GIVEN);
}

static void parts_are_found_by_axes_whatever_their_order(void **state)
{
	struct moe_roles roles;
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	roles = moe_roles_of(&b.problem);
	assert_int_equal(roles.scale1, input_named(&b, "gemm1_weights_scale"));
	assert_int_equal(roles.scale2, input_named(&b, "gemm2_weights_scale"));
	for (int i = 0; i < b.problem.input_count / 2; i++) {
		struct op_arg kept = b.inputs[i];

		b.inputs[i] = b.inputs[b.problem.input_count - 1 - i];
		b.inputs[b.problem.input_count - 1 - i] = kept;
	}
	assert_int_equal(variant_of(&b), MOE_DEEPSEEK);
	roles = moe_roles_of(&b.problem);
	assert_int_equal(roles.scale1, input_named(&b, "gemm1_weights_scale"));
	assert_int_equal(roles.weights1, input_named(&b, "gemm1_weights"));
	assert_int_equal(roles.weights2, input_named(&b, "gemm2_weights"));
	assert_int_equal(roles.bias, input_named(&b, "routing_bias"));
	assert_int_equal(roles.logits, input_named(&b, "routing_logits"));
	assert_int_equal(roles.hidden_scale, input_named(&b, "hidden_states_scale"));
}

static void expect_refused(const struct built *b, const char *sentence)
{
	struct err why = {""};

	assert_int_equal(moe_op.match(&b->problem, &why), -1);
	if (strstr(why.text, sentence) == NULL)
		fail_msg("'%s' does not say '%s'", why.text, sentence);
}

static void other_problems_are_refused_with_a_sentence(void **state)
{
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	b.problem.input_count--;
	expect_refused(&b, "needs a routing bias and a scaling factor");
	deepseek(&b, "moe_topk4_ng5_kg2");
	expect_refused(&b, "32 experts in 5 groups");
	deepseek(&b, "moe_topk40_ng1_kg1");
	expect_refused(&b, "40 of 32 experts");
	deepseek(&b, "moe_topk4_ng16_kg1");
	expect_refused(&b, "groups of 2 experts are too small");
	renormalised(&b);
	b.problem.name = "moe";
	expect_refused(&b, "nothing says how tokens are routed");
	renormalised(&b);
	b.axes[4].value = 97;
	b.axes[4].name = "gemm1_out";
	expect_refused(&b, "'gemm1_weights' is [num_experts, gemm1_out, hidden_size]");
	renormalised(&b);
	b.axes[5].value = 5; /* blocks of the hidden size */
	expect_refused(&b, "expected");
	renormalised(&b);
	b.inputs[2].dtype = DTYPE_UINT8;
	expect_refused(&b, "'gemm1_weights' is [num_experts, gemm1_out_size, hidden_size] of uint8");
	renormalised(&b);
	b.problem.input_count--;
	expect_refused(&b, "the other has none");
	renormalised(&b);
	add_input(&b, "residual", DTYPE_FLOAT8_E4M3FN, "seq_len hidden_size");
	expect_refused(&b, "'residual'");
	per_tensor(&b, renorm_text, 2, true);
	expect_refused(&b, "has neither a routing bias");
	per_tensor(&b, renorm_text, 2, false);
	b.problem.input_count--;
	expect_refused(&b, "only 2 are there");
	routed(&b, "", DTYPE_INT64, false);
	expect_refused(&b, "'topk_ids'");
	routed(&b, "", DTYPE_INT32, false);
	add_input(&b, "routing_logits", DTYPE_FLOAT32, "seq_len num_experts");
	expect_refused(&b, "either routing logits");
}

static void numbers_of_a_routing_are_attested(void **state)
{
	struct op_constant found[OP_CONSTANTS];
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	assert_int_equal(moe_op.constants(&b.problem, MOE_DEEPSEEK, found), 3);
	assert_true(found[0].value == 4 && found[1].value == 4 && found[2].value == 2);
	assert_string_equal(found[1].source, "name");
	b.problem.name = "moe_ds_routing";
	b.tags[0] = "model:deepseek-v3";
	b.problem.tag_count = 1;
	assert_int_equal(moe_op.constants(&b.problem, MOE_DEEPSEEK, found), 3);
	assert_true(found[0].value == 8 && found[1].value == 8 && found[2].value == 4);
	assert_string_equal(found[2].source, "model:deepseek-v3");
	b.problem.name = "moe_ds_routing_topk6";
	moe_op.constants(&b.problem, MOE_DEEPSEEK, found);
	assert_string_equal(found[0].conflict, "top_k is 6 by name, but 8 by model:deepseek-v3");
	b.problem.tag_count = 0;
	moe_op.constants(&b.problem, MOE_DEEPSEEK, found);
	assert_true(isnan(found[1].value));
	assert_int_equal(moe_op.match(&b.problem, NULL),
			 MOE_DEEPSEEK); /* a case will say that it is attested nowhere */
	per_tensor(&b, renorm_text, 2, false);
	assert_int_equal(moe_op.constants(&b.problem, MOE_RENORMALISE, found), 1);
	assert_true(found[0].value == 2);
	assert_string_equal(found[0].source, "axis:top_k");
	routed(&b, "", DTYPE_INT32, false);
	assert_int_equal(moe_op.constants(&b.problem, MOE_GIVEN, found), 0);
}

/* --- routing ------------------------------------------------------------------------------------------------------ */

static void groups_bias_and_factor_decide_as_deepseek_has_it(void **state)
{
	static const double score[8] = {0.9, 0.1, 0.6, 0.5, 0.2, 0.3, 0.8, 0.25};
	static const double bias[8] = {0, 0, 0, 0, 0, 0, -0.5, 0.5};
	const struct routing r = {MOE_DEEPSEEK, 8, 2, 4, 2, 2.5};
	int64_t expert[2];
	double weight[2], margin;

	(void)state;
	/* Sums of two: 1.0, 1.1, 0.5, 1.05. So groups 1 and 3 are kept, and expert 0, the best of all, is not chosen.
	 */
	margin = routing_choose(&r, score, bias, expert, weight);
	assert_int_equal(expert[0], 7);
	assert_int_equal(expert[1], 2);
	assert_true(fabs(weight[0] - 2.5 * 0.25 / 0.85) < 1e-12);
	assert_true(fabs(weight[1] - 2.5 * 0.6 / 0.85) < 1e-12);
	assert_true(fabs(margin - 0.05) < 1e-12);
}

static void decisions_are_clear_and_tokens_go_where_it_tells(void **state)
{
	int64_t axis[MAX_CASES * MAX_AXES];
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	cases_of(&b.problem, axis);
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct moe_roles roles = moe_roles_of(&b.problem);
		struct routing r;
		struct world w;
		int visits[8] = {0}, most = 0;

		make_world(&w, &b.problem, axis + 2 * b.problem.axis_count, seed);
		assert_int_equal(routing_of(&w.c, &roles, &r, NULL), 0);
		for (int64_t t = 0; t < w.truth.shape[0]; t++) {
			double score[32], bias[32], weight[4];
			int64_t expert[4];
			int here = 0;

			for (int e = 0; e < 32; e++) {
				score[e] =
				    1 / (1 + exp(-number_get(w.in[roles.logits].data, DTYPE_FLOAT32, t * 32 + e)));
				bias[e] = number_get(w.in[roles.bias].data, DTYPE_BFLOAT16, e);
			}
			assert_true(routing_choose(&r, score, bias, expert, weight) > 1e-4);
			for (int k = 0; k < 4; k++)
				if (expert[k] >= 16 && expert[k] < 24) {
					here++;
					visits[expert[k] - 16]++;
				}
			assert_int_equal(here == 0, t % 8 == 7);
		}
		for (int l = 0; l < 8; l++)
			most = visits[l] > most ? visits[l] : most;
		assert_true(most >= 10); /* the favourite */
		free_world(&w);
	}
}

static void chosen_experts_are_valid_and_different(void **state)
{
	int64_t axis[MAX_CASES * MAX_AXES];
	struct built b;

	(void)state;
	routed(&b, "", DTYPE_INT32, false);
	cases_of(&b.problem, axis);
	for (uint64_t seed = 0; seed < 20; seed++) {
		const int32_t *ids;
		struct world w;

		make_world(&w, &b.problem, axis + 2 * b.problem.axis_count, seed);
		ids = w.in[0].data;
		for (int64_t i = 0; i < w.in[0].elements; i++) {
			float weight = float_from_bf16((uint16_t)(ids[i] & 0xffff));

			assert_true(ids[i] >> 16 >= 0 && ids[i] >> 16 < 16 && weight > 0 && weight <= 1);
			for (int64_t j = i / 3 * 3; j < i; j++)
				assert_true(ids[i] >> 16 != ids[j] >> 16);
		}
		free_world(&w);
	}
}

/* --- what a workload brings --------------------------------------------------------------------------------------- */

static void expect_invalid(struct world *w, int input, int64_t index, double value, const char *sentence)
{
	double kept = number_get(w->in[input].data, w->in[input].dtype, index);
	struct err err = {""};

	number_set(w->in[input].data, w->in[input].dtype, index, value);
	assert_int_equal(moe_op.check(&w->c, w->in, &err), -1);
	if (strstr(err.text, sentence) == NULL)
		fail_msg("'%s' does not say '%s'", err.text, sentence);
	number_set(w->in[input].data, w->in[input].dtype, index, kept);
	assert_int_equal(moe_op.check(&w->c, w->in, &err), 0);
}

static void experts_that_are_not_there_and_values_that_are_none_are_refused(void **state)
{
	int64_t axis[MAX_CASES * MAX_AXES];
	struct err err = {""};
	struct built b;
	struct world w;

	(void)state;
	routed(&b, "", DTYPE_INT32, false);
	cases_of(&b.problem, axis);
	make_world(&w, &b.problem, axis, 0);
	expect_invalid(&w, 0, 1, 16 << 16 | 0x3f80, "topk_ids names expert 16 at flat place 1");
	expect_invalid(&w, 0, 1, -65536 + 0x3f80, "names expert -1");
	expect_invalid(&w, 0, 2, 1 << 16 | 0x7fc0, "a weight that is no number");
	expect_invalid(&w, 1, 5, NAN, "hidden_states has a value that is no number");
	expect_invalid(&w, 2, 5, INFINITY, "gemm1_weights has a value");
	free_world(&w);
	deepseek(&b, grouped_name);
	cases_of(&b.problem, axis);
	make_world(&w, &b.problem, axis, 0);
	expect_invalid(&w, input_named(&b, "routing_logits"), 3, NAN, "routing_logits has a value");
	expect_invalid(&w, input_named(&b, "gemm2_weights"), 3, NAN, "gemm2_weights has a value");
	w.c.scalar[input_named(&b, "local_expert_offset")] = 25;
	assert_int_equal(moe_op.check(&w.c, w.in, &err), -1);
	assert_non_null(strstr(err.text, "8 experts from 25 on are not among the 32"));
	assert_int_equal(moe_op.oracle(&w.c, w.in, &w.truth, &err), 0); /* what is not there is not read */
	w.c.scalar[input_named(&b, "local_expert_offset")] = 1e300;
	assert_int_equal(moe_op.oracle(&w.c, w.in, &w.truth, &err), 0);
	free_world(&w);
}

static void bounds_know_what_a_workload_brings(void **state)
{
	int64_t axis[MAX_AXES];
	struct op_case c = {.axis = axis};
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	c.problem = &b.problem;
	moe_op.sizes(&b.problem, 0, SIZE_LARGE, axis, 1);
	c.scalar[input_named(&b, "routed_scaling_factor")] = 2.5;
	assert_true(moe_op.rule(&c, 0).hit_ratio == 1 && moe_op.rule(&c, 0).atol == 2.5 * 0x1p-14);
	c.given = 1u << input_named(&b, "routing_logits");
	assert_true(moe_op.rule(&c, 0).hit_ratio == 1 - 4.0 / 1024);
	c.given = 1u << input_named(&b, "gemm1_weights");
	assert_true(moe_op.rule(&c, 0).hit_ratio == 0.999);
	moe_op.sizes(&b.problem, 0, SIZE_SMALL, axis, 1);
	c.given = 1u << input_named(&b, "routing_logits");
	assert_true(moe_op.rule(&c, 0).hit_ratio == 1);
}

/* Axes that are var in a definition may be anything in a workload. */
static void sizes_that_do_not_fit_together_are_refused(void **state)
{
	int64_t axis[MAX_CASES * MAX_AXES];
	struct err err = {""};
	struct built b;
	struct world w;

	(void)state;
	renormalised(&b);
	cases_of(&b.problem, axis);
	make_world(&w, &b.problem, axis, 0);
	w.axis[5] = 5;
	assert_int_equal(moe_op.fill(&w.c, 0, &w.in[0], &err), -1);
	assert_non_null(strstr(err.text, "64 rows or columns cannot be shared out evenly among the 5 scales"));
	assert_int_equal(moe_op.oracle(&w.c, w.in, &w.truth, &err), -1);
	w.axis[5] = 4;
	w.axis[4] = 95;
	assert_int_equal(moe_op.fill(&w.c, 0, &w.in[0], &err), -1);
	assert_non_null(strstr(err.text, "the first weights have 95 rows for 48 columns"));
	free_world(&w);
	routed(&b, "", DTYPE_INT32, false);
	cases_of(&b.problem, axis);
	make_world(&w, &b.problem, axis, 0);
	w.axis[1] = 0;
	assert_int_equal(moe_op.fill(&w.c, 0, &w.in[0], &err), -1);
	assert_non_null(strstr(err.text, "no experts here"));
	free_world(&w);
	deepseek(&b, grouped_name);
	cases_of(&b.problem, axis);
	make_world(&w, &b.problem, axis, 0);
	w.axis[2] = 0;
	assert_true(moe_op.scalar(&w.c, input_named(&b, "local_expert_offset")) == 0);
	free_world(&w);
}

static void many_weights_make_one_small_case(void **state)
{
	int64_t axis[MAX_CASES * MAX_AXES];
	struct built b;

	(void)state;
	renormalised(&b);
	assert_int_equal(moe_op.sizes(&b.problem, 0, SIZE_SMALL, axis, MAX_CASES), 2);
	b.axes[1].value = 128;
	b.axes[2].value = 7168;
	b.axes[3].value = 2048;
	assert_int_equal(moe_op.sizes(&b.problem, 0, SIZE_SMALL, axis, MAX_CASES), 1);
}

/* --- references --------------------------------------------------------------------------------------------------- */

static void a_correct_reference_passes_for_twenty_seeds(void **state)
{
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	expect_passes(&b.problem);
	deepseek(&b, flat_name);
	expect_passes(&b.problem);
	renormalised(&b);
	expect_passes(&b.problem);
	per_tensor(&b, renorm_text, 2, false);
	expect_passes(&b.problem);
	per_tensor(&b, llama_text, 1, true);
	expect_passes(&b.problem);
	floats(&b);
	expect_passes(&b.problem);
	routed(&b, "", DTYPE_INT32, false);
	expect_passes(&b.problem);
	routed(&b, llama_text, DTYPE_INT64, true);
	expect_passes(&b.problem);
}

static void mistakes_are_caught(void **state)
{
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	expect_caught(&b.problem, RIGHT, ROUTING_MISTAKES);
	expect_caught(&b.problem, ROUTING_MISTAKES, GENERAL_MISTAKES);
	expect_caught(&b.problem, GENERAL_MISTAKES, BLOCK_MISTAKES);
	renormalised(&b);
	expect_caught(&b.problem, ROUTING_MISTAKES, GENERAL_MISTAKES);
	expect_caught(&b.problem, GENERAL_MISTAKES, BLOCK_MISTAKES);
	per_tensor(&b, renorm_text, 2, false);
	expect_caught(&b.problem, ROUTING_MISTAKES, GENERAL_MISTAKES);
	expect_caught(&b.problem, BLOCK_MISTAKES, FACTOR_MISTAKES);
	per_tensor(&b, llama_text, 1, true);
	expect_caught(&b.problem, ROUTING_MISTAKES, GENERAL_MISTAKES);
	expect_caught(&b.problem, BLOCK_MISTAKES, FACTOR_MISTAKES);
	floats(&b);
	expect_caught(&b.problem, ROUTING_MISTAKES, GENERAL_MISTAKES);
	routed(&b, renorm_text, DTYPE_INT32, false);
	expect_caught(&b.problem, ONE_TOO_MANY, GENERAL_MISTAKES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(matches_every_form_of_the_dataset),
	    cmocka_unit_test(parts_are_found_by_axes_whatever_their_order),
	    cmocka_unit_test(other_problems_are_refused_with_a_sentence),
	    cmocka_unit_test(numbers_of_a_routing_are_attested),
	    cmocka_unit_test(groups_bias_and_factor_decide_as_deepseek_has_it),
	    cmocka_unit_test(decisions_are_clear_and_tokens_go_where_it_tells),
	    cmocka_unit_test(chosen_experts_are_valid_and_different),
	    cmocka_unit_test(experts_that_are_not_there_and_values_that_are_none_are_refused),
	    cmocka_unit_test(bounds_know_what_a_workload_brings),
	    cmocka_unit_test(sizes_that_do_not_fit_together_are_refused),
	    cmocka_unit_test(many_weights_make_one_small_case),
	    cmocka_unit_test(a_correct_reference_passes_for_twenty_seeds),
	    cmocka_unit_test(mistakes_are_caught),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
