/* test_dsa_paged - sparse attention and its indexer: the dataset's definitions are recognised, inputs are valid and
 * difficult, correct references pass and wrong ones fail. The keys that the indexer chooses are compared as a set. If
 * two scores are nearly equal, either key may be chosen. */
#include "tests/unit/attention_family.h"

#include "kernels/dsa_paged/input_values.h"
#include "tests/unit/seeds.h"

extern const struct op dsa_paged_op;

/* --- problems ----------------------------------------------------------------------------------------------------- */

struct shape {
	int64_t heads, latent, rotary, page_size, chosen;
};
static const struct shape deepseek = {16, 512, 64, 1, 2048}, deepseek_pages = {16, 512, 64, 64, 2048};
static const struct shape little = {3, 32, 8, 1, 64}, little_pages = {3, 32, 8, 16, 64};

/* Builds a problem with the inputs and outputs of the dataset's sparse attention. */
static void attention(struct built *b, struct shape shape)
{
	start_problem(b, "dsa_sparse_attention_h_ckv_kpe_topk_ps", "dsa_paged");
	add_axis(b, "num_tokens", 0);
	add_axis(b, "num_qo_heads", shape.heads);
	add_axis(b, "head_dim_ckv", shape.latent);
	add_axis(b, "head_dim_kpe", shape.rotary);
	add_axis(b, "page_size", shape.page_size);
	add_axis(b, "topk", shape.chosen);
	add_axis(b, "num_pages", 0);
	add_input(b, "q_nope", DTYPE_BFLOAT16, "num_tokens num_qo_heads head_dim_ckv");
	add_input(b, "q_pe", DTYPE_BFLOAT16, "num_tokens num_qo_heads head_dim_kpe");
	add_input(b, "ckv_cache", DTYPE_BFLOAT16, "num_pages page_size head_dim_ckv");
	add_input(b, "kpe_cache", DTYPE_BFLOAT16, "num_pages page_size head_dim_kpe");
	add_input(b, "sparse_indices", DTYPE_INT32, "num_tokens topk");
	add_input(b, "sm_scale", DTYPE_FLOAT32, NULL);
	add_output(b, "output", DTYPE_BFLOAT16, "num_tokens num_qo_heads head_dim_ckv");
	add_output(b, "lse", DTYPE_FLOAT32, "num_tokens num_qo_heads");
}

/* Builds a problem with the inputs and outputs of the dataset's indexer. */
static void indexer(struct built *b, int64_t heads, int64_t dim, int64_t page_size, int64_t chosen)
{
	start_problem(b, "dsa_topk_indexer_fp8_h_d_topk_ps", "dsa_paged");
	add_axis(b, "batch_size", 0);
	add_axis(b, "num_index_heads", heads);
	add_axis(b, "index_head_dim", dim);
	add_axis(b, "page_size", page_size);
	add_axis(b, "topk", chosen);
	add_axis(b, "max_num_pages", 0);
	add_axis(b, "num_pages", 0);
	add_axis(b, "kv_cache_num_heads", 1);
	add_axis(b, "head_dim_with_scale", dim + 4);
	add_input(b, "q_index_fp8", DTYPE_FLOAT8_E4M3FN, "batch_size num_index_heads index_head_dim");
	add_input(b, "k_index_cache_fp8", DTYPE_INT8, "num_pages page_size kv_cache_num_heads head_dim_with_scale");
	add_input(b, "weights", DTYPE_FLOAT32, "batch_size num_index_heads");
	add_input(b, "seq_lens", DTYPE_INT32, "batch_size");
	add_input(b, "block_table", DTYPE_INT32, "batch_size max_num_pages");
	add_output(b, "topk_indices", DTYPE_INT32, "batch_size topk");
}

/* --- match -------------------------------------------------------------------------------------------------------- */

static void matches_both_operations_of_the_dataset(void **state)
{
	struct built b;

	(void)state;
	attention(&b, deepseek);
	assert_int_equal(dsa_paged_op.match(&b.problem, NULL), DSA_ATTENTION);
	attention(&b, deepseek_pages);
	assert_int_equal(dsa_paged_op.match(&b.problem, NULL), DSA_ATTENTION);
	indexer(&b, 64, 128, 64, 2048);
	assert_int_equal(dsa_paged_op.match(&b.problem, NULL), DSA_INDEXER);
	b.inputs[1].dtype = DTYPE_UINT8;
	assert_int_equal(dsa_paged_op.match(&b.problem, NULL), DSA_INDEXER);
}

static void other_problems_are_refused_with_a_sentence(void **state)
{
	struct built b;

	(void)state;
	attention(&b, deepseek);
	b.inputs[4].rank = 1;
	expect_refused(&dsa_paged_op, &b.problem, "'sparse_indices'");
	attention(&b, deepseek);
	b.inputs[2].rank = 2;
	expect_refused(&dsa_paged_op, &b.problem, "'ckv_cache'");
	attention(&b, deepseek_pages);
	b.axes[4].value = 65537;
	expect_refused(&dsa_paged_op, &b.problem, "at most 65536 keys");
	indexer(&b, 64, 128, 65537, 2048);
	expect_refused(&dsa_paged_op, &b.problem, "at most 65536 keys");
	indexer(&b, 64, 128, 64, 2048);
	b.axes[8].value = 128;
	expect_refused(&dsa_paged_op, &b.problem, "'k_index_cache_fp8'");
	indexer(&b, 64, 128, 64, 2048);
	b.inputs[2].axis[1] = 2;
	expect_refused(&dsa_paged_op, &b.problem, "'weights'");
	indexer(&b, 64, 128, 64, 2048);
	b.outputs[0].dtype = DTYPE_FLOAT32;
	expect_refused(&dsa_paged_op, &b.problem, "'topk_indices'");
	indexer(&b, 64, 128, 64, 2048);
	add_input(&b, "bias", DTYPE_FLOAT32, "num_index_heads");
	expect_refused(&dsa_paged_op, &b.problem, "'bias'");
	indexer(&b, 64, 128, 64, 2048);
	b.problem.input_count = 4;
	expect_refused(&dsa_paged_op, &b.problem, "a page table");
}

/* --- sparse attention --------------------------------------------------------------------------------------------- */

/* Some queries read all rows, some no row, some one row, and some exactly as many rows as a block has. Some lists of
 * rows have gaps in the middle. No list has a row twice. */
static void sparse_rows_are_valid_and_contain_difficult_patterns(void **state)
{
	int64_t axis[MAX_ROWS * MAX_AXES];
	struct attention_roles roles;
	struct built b;

	(void)state;
	attention(&b, little_pages);
	roles = attention_roles_of(&b.problem);
	rows_of(&dsa_paged_op, &b.problem, SIZE_MEDIUM, axis);
	for (uint64_t seed = 0; seed < MANY_SEEDS; seed++) {
		int all = 0, none = 0, one = 0, holes = 0, block = 0;
		struct world w;

		make_world(&w, &dsa_paged_op, &b.problem, axis, seed);
		for (int64_t t = 0; t < w.in[4].shape[0]; t++) {
			int64_t named = 0, hole = 0;

			for (int64_t j = 0; j < 64; j++) {
				int64_t row = attention_integer(&w.in[4], t * 64 + j);

				named += row >= 0;
				hole += row < 0 && j + 1 < 64 && attention_integer(&w.in[4], t * 64 + j + 1) >= 0;
				for (int64_t i = 0; i < j; i++)
					assert_true(row < 0 || row != attention_integer(&w.in[4], t * 64 + i));
			}
			all += named == 64;
			none += named == 0;
			one += named == 1;
			holes += hole > 0 && named > 1;
			block += named >= 15 && named <= 17;
		}
		assert_int_equal(w.in[4].shape[0], 513);
		assert_true(all >= 4 && none > 2 && one > 2 && holes >= 2 && block >= 3);
		expect_poison_where_unused(&w, &roles);
		free_world(&w);
	}
}

static void rows_that_are_not_there_are_refused(void **state)
{
	int64_t axis[MAX_ROWS * MAX_AXES];
	struct built b;
	struct world w;

	(void)state;
	attention(&b, little_pages);
	rows_of(&dsa_paged_op, &b.problem, SIZE_SMALL, axis);
	make_world(&w, &dsa_paged_op, &b.problem, axis, 0);
	expect_invalid(&w, "sparse_indices", 5, (double)(w.in[2].shape[0] * 16), "key rows");
	expect_invalid(&w, "sparse_indices", 5, -2, "sparse_indices has -2");
	free_world(&w);
	/* no row is NaN, because the workload provides the indices, and these may refer to any row */
	make_inputs(&w, &dsa_paged_op, &b.problem, axis, 0, 1u << 4, 0);
	for (int64_t row = 0; row < w.in[2].shape[0] * 16; row++)
		assert_false(is_nan_row(&w.in[2], row, 32));
	free_world(&w);
}

static void a_correct_sparse_reference_passes_for_every_seed(void **state)
{
	struct built b;

	(void)state;
	attention(&b, little);
	expect_large_cache(&dsa_paged_op, &b.problem);
	expect_passes(&dsa_paged_op, &b.problem, MANY_SEEDS);
	attention(&b, little_pages);
	expect_passes(&dsa_paged_op, &b.problem, MANY_SEEDS);
	attention(&b, deepseek);
	expect_passes(&dsa_paged_op, &b.problem, 1);
}

static void a_correct_sparse_reference_passes_in_other_dtypes(void **state)
{
	struct built b;

	(void)state;
	attention(&b, little_pages);
	expect_dtypes(&dsa_paged_op, &b, DTYPE_FLOAT16, DTYPE_FLOAT16);
	attention(&b, little);
	expect_dtypes(&dsa_paged_op, &b, DTYPE_FLOAT32, DTYPE_FLOAT32);
	attention(&b, little_pages);
	expect_dtypes(&dsa_paged_op, &b, DTYPE_BFLOAT16, DTYPE_FLOAT8_E4M3FN);
}

static void mistakes_of_sparse_attention_are_caught(void **state)
{
	static const enum mistake own[] = {ROTARY_PART_LEFT_OUT, ROTARY_PART_NOT_SCALED, SCALE_OF_THE_LATENT,
					   PADDING_IS_A_ROW,	 PADDING_ENDS_THE_ROW,	 LAST_PLACE_NOT_LOOKED_AT};
	static const enum mistake of_pages[] = {ROWS_ARE_PAGES};
	struct built b;

	(void)state;
	attention(&b, little);
	expect_general_mistakes_caught(&dsa_paged_op, &b.problem);
	expect_caught(&dsa_paged_op, &b.problem, own, sizeof own / sizeof *own);
	attention(&b, little_pages);
	expect_general_mistakes_caught(&dsa_paged_op, &b.problem);
	expect_caught(&dsa_paged_op, &b.problem, own, sizeof own / sizeof *own);
	expect_caught(&dsa_paged_op, &b.problem, of_pages, 1);
}

/* --- the indexer -------------------------------------------------------------------------------------------------- */

enum wrong {
	RIGHT,
	RELU_LEFT_OUT,
	MAGNITUDE_FOR_RELU,
	SCALES_LEFT_OUT,
	WEIGHTS_LEFT_OUT,
	WEIGHTS_AS_MAGNITUDES,
	LAST_HEAD_LEFT_OUT,
	LAST_ELEMENT_LEFT_OUT,
	SMALLEST_CHOSEN,
	FIRST_CHOSEN,
	ONE_TOO_FEW,
	LENGTH_IGNORED,
	PLACES_FOR_NAMES,
	TABLE_NOT_LOOKED_UP,
	PAGE_SIZE_OFF,
	SCALES_AFTER_EACH_KEY,
	ZERO_FOR_NONE,
	NONE_FORGOTTEN,
	ONE_NAMED_TWICE,
	EMPTY_HAS_A_KEY,
	WRONGS
};

static const char *const wrong_names[WRONGS] = {
    "right",
    "relu left out",
    "magnitude for relu",
    "scales left out",
    "weights left out",
    "weights as sizes",
    "last head left out",
    "last element left out",
    "smallest chosen",
    "first chosen",
    "one too few",
    "length ignored",
    "places for names",
    "table not looked up",
    "page size off",
    "scales after each key",
    "zero for none",
    "none forgotten",
    "one named twice",
    "empty has a key",
};

/* A candidate key. Candidates are ordered as torch.topk orders them: NaN comes first. */
struct candidate {
	float score;
	int64_t name;
};

static int by_score(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (isnan(x->score) || isnan(y->score))
		return (isnan(y->score) != 0) - (isnan(x->score) != 0);
	return (x->score < y->score) - (x->score > y->score);
}

static int by_rising_score(const void *a, const void *b)
{
	return by_score(b, a);
}

/* Computes the score of a key in float32; `bytes` is the page that holds the key. */
static float emulate_score(const struct world *w, const struct indexer_extent *e, const float *query,
			   const float *weights, int64_t page, int64_t slot, enum wrong wrong)
{
	const uint8_t *bytes = (const uint8_t *)w->in[1].data + page * e->page_size * (e->dim + 4);
	const uint8_t *key = bytes + slot * e->dim, *scale_bytes = bytes + e->page_size * e->dim + slot * 4;
	int64_t heads = e->heads - (wrong == LAST_HEAD_LEFT_OUT), dim = e->dim - (wrong == LAST_ELEMENT_LEFT_OUT);
	float scale, score = 0;

	if (wrong == SCALES_AFTER_EACH_KEY) {
		key = bytes + slot * (e->dim + 4);
		scale_bytes = key + e->dim;
	}
	memcpy(&scale, scale_bytes, sizeof scale);
	for (int64_t h = 0; h < heads; h++) {
		float sum = 0, weight = wrong == WEIGHTS_LEFT_OUT ? 1 : weights[h];

		for (int64_t d = 0; d < dim; d++)
			sum +=
			    query[h * e->dim + d] * (float_from_e4m3(key[d]) * (wrong == SCALES_LEFT_OUT ? 1 : scale));
		sum = wrong == RELU_LEFT_OUT ? sum : wrong == MAGNITUDE_FOR_RELU ? fabsf(sum) : sum < 0 ? 0 : sum;
		score += sum * (wrong == WEIGHTS_AS_MAGNITUDES ? fabsf(weight) : weight);
	}
	return score;
}

static struct candidate candidate_at(const struct world *w, const struct indexer_extent *e, const float *query,
				     const float *weights, int64_t b, int64_t j, enum wrong wrong)
{
	int64_t page = wrong == TABLE_NOT_LOOKED_UP
			   ? j / e->page_size
			   : attention_integer(&w->in[4], b * e->most_pages + j / e->page_size);
	int64_t size = wrong == PAGE_SIZE_OFF ? e->page_size + 1 : e->page_size;
	struct candidate c = {emulate_score(w, e, query, weights, page, j % e->page_size, wrong),
			      page * size + j % e->page_size};

	if (wrong == PLACES_FOR_NAMES)
		c.name = j;
	return c;
}

static void emulate_choice(struct world *w, const struct indexer_extent *e, const float *query, const float *weights,
			   int64_t b, enum wrong wrong)
{
	int64_t length = attention_integer(&w->in[3], b), chosen = e->chosen - (wrong == ONE_TOO_FEW);
	int64_t count = wrong == LENGTH_IGNORED ? (length + e->page_size - 1) / e->page_size * e->page_size : length;
	int64_t none = wrong == ZERO_FOR_NONE ? 0 : -1;
	struct candidate *all;

	if (wrong == EMPTY_HAS_A_KEY && count == 0)
		count = 1;
	all = calloc((size_t)count + 1, sizeof *all);
	assert_non_null(all);
	for (int64_t j = 0; j < count; j++)
		all[j] = candidate_at(w, e, query, weights, b, j, wrong);
	if (wrong != FIRST_CHOSEN)
		qsort(all, (size_t)count, sizeof *all, wrong == SMALLEST_CHOSEN ? by_rising_score : by_score);
	if (wrong == ONE_NAMED_TWICE && count > 1)
		all[1] = all[0];
	for (int64_t i = 0; i < e->chosen; i++)
		if (i < count && i < chosen)
			dtype_store(w->answer[0].data, w->answer[0].dtype, b * e->chosen + i, (double)all[i].name);
		else if (wrong != NONE_FORGOTTEN)
			dtype_store(w->answer[0].data, w->answer[0].dtype, b * e->chosen + i, (double)none);
	free(all);
}

static void emulate_indexer(struct world *w, enum wrong wrong)
{
	struct indexer_roles roles = indexer_roles_of(w->c.problem);
	struct indexer_extent e = indexer_extent_of(&w->c, &roles);
	float *query = floats_of(&w->in[0]), *weights = floats_of(&w->in[2]);

	memset(w->answer[0].data, 0, (size_t)w->answer[0].elements * 4);
	for (int64_t b = 0; b < e.batch; b++)
		emulate_choice(w, &e, query + b * e.heads * e.dim, weights + b * e.heads, b, wrong);
	free(query);
	free(weights);
}

static void start_indexer(struct world *w, struct built *b, enum op_size size, int row, uint64_t seed,
                          enum op_contents contents)
{
	int64_t axis[MAX_ROWS * MAX_AXES];

	rows_of(&dsa_paged_op, &b->problem, size, axis);
	make_world_of(w, &dsa_paged_op, &b->problem, axis + row * b->problem.axis_count, seed, contents);
}

/* Some sequences have no key, some one key, some as many keys as are chosen, and some one key more. No page belongs to
 * two sequences. Pages that belong to no sequence have the value NaN. The entries of a page table after the last page
 * of a sequence refer to pages that belong to no sequence. */
static void tables_are_valid_and_contain_difficult_lengths(void **state)
{
	struct built b;

	(void)state;
	indexer(&b, 4, 32, 16, 64);
	for (uint64_t seed = 0; seed < MANY_SEEDS; seed++) {
		int64_t length[8];
		struct world w;

		start_indexer(&w, &b, SIZE_MEDIUM, 0, seed, CONTENTS_FIRST);
		for (int64_t s = 0; s < 8; s++)
			length[s] = attention_integer(&w.in[3], s);
		assert_true(length[0] > 64 && length[1] == 1 && length[2] == 64 && length[3] == 0 && length[4] == 65);
		assert_true(attention_integer(&w.in[3], 8) == 15 && attention_integer(&w.in[3], 10) == 17);
		for (int64_t s = 0; s < 8; s++)
			for (int64_t i = 0; i < w.in[4].shape[1]; i++) {
				int64_t page = attention_integer(&w.in[4], s * w.in[4].shape[1] + i);
				const uint8_t *bytes = (const uint8_t *)w.in[1].data + page * 16 * 36;

				assert_in_range(page, 0, w.in[1].shape[0] - 1);
				for (int64_t j = 0; j < 16 && i * 16 + j < length[s]; j++)
					assert_true((bytes[j * 32] & 0x7f) != 0x7f);
				if (i * 16 >= length[s])
					assert_true(bytes[0] == 0x7f && bytes[16 * 32 + 2] == 0xc0 &&
						    bytes[16 * 32 + 3] == 0x7f);
				for (int64_t k = 0; k < i && i * 16 < length[s]; k++)
					assert_int_not_equal(page,
							     attention_integer(&w.in[4], s * w.in[4].shape[1] + k));
			}
		free_world(&w);
	}
}

/* In the second set of input values, a table entry beyond the pages of a sequence is negative, i.e. no page number. If
 * a workload provides the lengths of the sequences, every table entry refers to an existing page. Some zeros among the
 * keys are -0. */
static void what_nobody_has_to_read_leads_nowhere(void **state)
{
	struct built b;
	struct world w;
	int64_t nowhere = 0, negative = 0, zeros = 0;
	int lengths = 3, table = 4;

	(void)state;
	indexer(&b, 4, 32, 16, 64);
	start_indexer(&w, &b, SIZE_MEDIUM, 0, 0, CONTENTS_SECOND);
	assert_true(w.in[1].shape[0] > 256);
	for (int64_t s = 0; s < w.in[table].shape[0]; s++)
		for (int64_t i = 0; i < w.in[table].shape[1]; i++) {
			int64_t page = attention_integer(&w.in[table], s * w.in[table].shape[1] + i);
			bool beyond = i * 16 >= attention_integer(&w.in[lengths], s);

			assert_true(beyond == (page < 0) && page < w.in[1].shape[0]);
			nowhere += page < 0;
		}
	assert_true(nowhere > 0);
	for (int64_t i = 0; i < w.in[1].shape[0] * 16 * 32; i++) {
		uint8_t byte = ((const uint8_t *)w.in[1].data)[i / (16 * 32) * (16 * 36) + i % (16 * 32)];

		zeros += byte == 0;
		negative += byte == 0x80;
	}
	assert_true(zeros > 0 && negative > 0);
	w.c.given |= 1u << lengths;
	assert_int_equal(dsa_paged_op.fill(&w.c, table, &w.in[table], NULL), 0);
	for (int64_t i = 0; i < w.in[table].elements; i++)
		assert_in_range(attention_integer(&w.in[table], i), 0, w.in[1].shape[0] - 1);
	free_world(&w);
}

static void tables_that_point_nowhere_are_refused(void **state)
{
	struct built b;
	struct world w;

	(void)state;
	indexer(&b, 4, 32, 16, 64);
	start_indexer(&w, &b, SIZE_MEDIUM, 0, 0, CONTENTS_FIRST);
	expect_invalid(&w, "block_table", 0, (double)w.in[1].shape[0], "block_table[0, 0]");
	expect_invalid(&w, "block_table", 1, -1, "block_table[0, 1] is -1");
	expect_invalid(&w, "seq_lens", 1, -1, "seq_lens[1] is -1");
	expect_invalid(&w, "seq_lens", 1, 1e6, "seq_lens[1] is 1000000");
	free_world(&w);
}

static void a_correct_indexer_passes_for_every_seed(void **state)
{
	struct built b;

	(void)state;
	indexer(&b, 4, 32, 16, 64);
	for (enum op_size size = SIZE_SMALL; size <= SIZE_MEDIUM; size++)
		for (int row = 0; row < (size == SIZE_SMALL ? 2 : 1); row++)
			for (uint64_t seed = 0; seed < 2 * MANY_SEEDS; seed++) {
				struct world w;

				start_indexer(&w, &b, size, row, seed / 2, (enum op_contents)(seed % 2));
				emulate_indexer(&w, RIGHT);
				assert_true(passes(&w, "a correct indexer"));
				free_world(&w);
			}
}

static void an_indexer_as_large_as_the_datasets_passes(void **state)
{
	struct built b;
	struct world w;

	(void)state;
	indexer(&b, 64, 128, 64, 2048);
	start_indexer(&w, &b, SIZE_SMALL, 1, 0, CONTENTS_FIRST);
	emulate_indexer(&w, RIGHT);
	assert_true(passes(&w, "a correct indexer"));
	free_world(&w);
}

/* Checks that each mistake is caught in at least one of three cases, two small ones and a medium one. All mistakes are
 * tried on the same inputs. */
static void expect_indexers_caught(struct built *b, uint64_t seed)
{
	bool caught[WRONGS] = {[RIGHT] = true};

	for (int size = 0; size < 3 && memchr(caught, false, WRONGS) != NULL; size++) {
		struct world w;

		start_indexer(&w, b, size < 2 ? SIZE_SMALL : SIZE_MEDIUM, size < 2 ? size : 0, seed, CONTENTS_FIRST);
		for (enum wrong wrong = RIGHT + 1; wrong < WRONGS; wrong++) {
			if (caught[wrong])
				continue;
			emulate_indexer(&w, wrong);
			caught[wrong] = !passes(&w, NULL);
		}
		free_world(&w);
	}
	for (enum wrong wrong = RIGHT + 1; wrong < WRONGS; wrong++)
		if (!caught[wrong])
			fail_msg("%s, seed %llu: passed", wrong_names[wrong], (unsigned long long)seed);
}

static void mistakes_of_the_indexer_are_caught(void **state)
{
	struct built b;

	(void)state;
	indexer(&b, 4, 32, 16, 64);
	for (uint64_t seed = 0; seed < SEEDS_OR_ONE(5); seed++)
		expect_indexers_caught(&b, seed);
}

/* A row may list the chosen keys in any order. If the score of a key nearly equals the smallest score of a chosen key,
 * the key may be chosen or not. */
static void a_choice_is_a_set_in_which_near_ties_are_free(void **state)
{
	struct built b;
	struct world w;
	double first, least, beyond;

	(void)state;
	indexer(&b, 4, 32, 16, 64);
	start_indexer(&w, &b, SIZE_SMALL, 0, 0, CONTENTS_FIRST);
	emulate_indexer(&w, RIGHT);
	first = dtype_load(w.answer[0].data, DTYPE_INT32, 0);
	least = dtype_load(w.answer[0].data, DTYPE_INT32, 63);
	dtype_store(w.answer[0].data, DTYPE_INT32, 0, least);
	dtype_store(w.answer[0].data, DTYPE_INT32, 63, first);
	assert_true(passes(&w, "another order"));

	/* The test takes the chosen key with the smallest score, and puts a key that was not chosen in its place: the
	 * comparison fails. Then both keys get the same elements, and so the same score: the comparison passes. */
	beyond = -1;
	for (int64_t j = 0; j < attention_integer(&w.in[3], 0) && beyond < 0; j++) {
		double name = (double)(attention_integer(&w.in[4], j / 16) * 16 + j % 16);
		bool chosen = false;

		for (int64_t i = 0; i < 64; i++)
			chosen = chosen || dtype_load(w.answer[0].data, DTYPE_INT32, i) == name;
		beyond = chosen ? beyond : name;
	}
	assert_true(beyond >= 0);
	dtype_store(w.answer[0].data, DTYPE_INT32, 0, beyond);
	assert_false(passes(&w, NULL));

	uint8_t *cache = w.in[1].data;
	int64_t from = (int64_t)least, to = (int64_t)beyond;

	memcpy(cache + to / 16 * 16 * 36 + to % 16 * 32, cache + from / 16 * 16 * 36 + from % 16 * 32, 32);
	memcpy(cache + to / 16 * 16 * 36 + 16 * 32 + to % 16 * 4, cache + from / 16 * 16 * 36 + 16 * 32 + from % 16 * 4,
	       4);
	assert_true(passes(&w, "one of two equal keys"));
	free_world(&w);
}

/* A workload may provide keys of any value. A NaN score counts as the largest score, as in torch.topk, at every place
 * in the list of keys. */
static void scores_that_are_no_numbers_count_as_the_largest(void **state)
{
	static const float odd[] = {NAN, INFINITY, -INFINITY};
	struct built b;
	struct world w;
	struct err err = {""};

	(void)state;
	indexer(&b, 4, 32, 16, 64);
	for (uint64_t seed = 0; seed < MANY_SEEDS; seed++) {
		start_indexer(&w, &b, SIZE_SMALL, 0, seed, CONTENTS_FIRST);
		int64_t length = attention_integer(&w.in[3], 0);

		for (int64_t j = (int64_t)seed % 3; j < length;
		     /* one key in n (2 to 6, by the seed) gets a scale from `odd`; with some seeds, there are fewer
		      * such keys than are chosen, with others more */
		     j += 2 + (int64_t)seed % 5) {
			uint8_t *page = (uint8_t *)w.in[1].data + attention_integer(&w.in[4], j / 16) * 16 * 36;

			memcpy(page + 16 * 32 + j % 16 * 4, &odd[seed % 3], 4);
		}
		assert_int_equal(dsa_paged_op.oracle(&w.c, w.in, w.truth, &err), 0);
		memcpy(w.answer[0].data, w.truth[0].data, (size_t)w.truth[0].elements * 4);
		assert_true(passes(&w, "the oracle's own choice"));
		if (seed % 3 == 0) {
			emulate_indexer(&w, RIGHT);
			assert_true(passes(&w, "a choice in float32, with NaN before all"));
			emulate_indexer(&w, SMALLEST_CHOSEN);
			assert_false(passes(&w, NULL));
		}
		free_world(&w);
	}
}

/* Checks the inputs of the indexer's edge cases. In each edge case, the correct choice must pass and each wrong choice
 * must fail. */
static void the_indexers_edges_have_one_answer(void **state)
{
	static const struct {
		const char *name;
		int64_t lengths[3];
		enum wrong caught[4]; /* the wrong choices that must be caught; RIGHT ends the list */
	} edges[] = {
	    {"empty_sequences", {0, 0, 0}, {ZERO_FOR_NONE, NONE_FORGOTTEN, EMPTY_HAS_A_KEY, RIGHT}},
	    {"few_keys", {63, 1, 17}, {ZERO_FOR_NONE, LENGTH_IGNORED, ONE_NAMED_TWICE, RIGHT}},
	    {"equal_scores", {96, 96, 96}, {ONE_NAMED_TWICE, ONE_TOO_FEW, RIGHT}},
	};
	struct built b;
	struct world w;

	(void)state;
	indexer(&b, 4, 32, 16, 64);
	assert_true(make_edge(&w, &dsa_paged_op, &b.problem, "no_sequences"));
	assert_int_equal(w.truth[0].elements, 0);
	free_world(&w);
	for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
		assert_true(make_edge(&w, &dsa_paged_op, &b.problem, edges[i].name));
		for (int64_t s = 0; s < 3; s++)
			assert_int_equal(attention_integer(&w.in[3], s), edges[i].lengths[s]);
		emulate_indexer(&w, RIGHT);
		assert_true(passes(&w, edges[i].name));
		for (const enum wrong *wrong = edges[i].caught; *wrong != RIGHT; wrong++) {
			emulate_indexer(&w, *wrong);
			if (passes(&w, NULL))
				fail_msg("%s: %s passes", edges[i].name, wrong_names[*wrong]);
		}
		/* if all scores are equal or all keys are chosen, any choice passes */
		emulate_indexer(&w, SMALLEST_CHOSEN);
		assert_true(passes(&w, "another choice"));
		free_world(&w);
	}
	assert_true(make_edge(&w, &dsa_paged_op, &b.problem, "long_sequence"));
	assert_int_equal(attention_integer(&w.in[3], 0), 40960);
	emulate_indexer(&w, RIGHT);
	assert_true(passes(&w, "long_sequence"));
	emulate_indexer(&w, SMALLEST_CHOSEN);
	assert_false(passes(&w, NULL));
	free_world(&w);
	assert_false(make_edge(&w, &dsa_paged_op, &b.problem, "one_of_each"));
	attention(&b, little);
	assert_false(make_edge(&w, &dsa_paged_op, &b.problem, "equal_scores"));
	assert_true(make_edge(&w, &dsa_paged_op, &b.problem, "one_of_each"));
	free_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(matches_both_operations_of_the_dataset),
	    cmocka_unit_test(other_problems_are_refused_with_a_sentence),
	    cmocka_unit_test(sparse_rows_are_valid_and_contain_difficult_patterns),
	    cmocka_unit_test(rows_that_are_not_there_are_refused),
	    cmocka_unit_test(a_correct_sparse_reference_passes_for_every_seed),
	    cmocka_unit_test(a_correct_sparse_reference_passes_in_other_dtypes),
	    cmocka_unit_test(mistakes_of_sparse_attention_are_caught),
	    cmocka_unit_test(tables_are_valid_and_contain_difficult_lengths),
	    cmocka_unit_test(what_nobody_has_to_read_leads_nowhere),
	    cmocka_unit_test(tables_that_point_nowhere_are_refused),
	    cmocka_unit_test(a_correct_indexer_passes_for_every_seed),
	    cmocka_unit_test(an_indexer_as_large_as_the_datasets_passes),
	    cmocka_unit_test(mistakes_of_the_indexer_are_caught),
	    cmocka_unit_test(the_indexers_edges_have_one_answer),
	    cmocka_unit_test(a_choice_is_a_set_in_which_near_ties_are_free),
	    cmocka_unit_test(scores_that_are_no_numbers_count_as_the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
