/* compare.cu - how far two tensors are apart, on a GPU, in one pass at the speed of memory.
 *
 * Per element there is time for some 30 instructions, so the common case is done in float, 16 bytes at a time, and
 * whatever float cannot settle is looked at again, element by element, in double (`examine`), as the CPU does it:
 *
 *   strange  a batch with a NaN, an infinity, or squares that leave float's range: its sums are made in double
 *   near     a chunk in which some |r - g| exceeds t (atol + rtol |g|). t is a little below 1, so every miss is in such
 *            a chunk; and a little below the gate (see below), so every candidate for the worst places is
 *
 * Worst places. A warp keeps the five worst it has seen in its lanes 0 … 4. What keeps it from examining every chunk is
 * the gate, a score that five elements somewhere in the tensor are known to reach: blocks are dealt into five groups,
 * each group keeps the greatest score its warps have met on the board in global memory (atomicMax), and the least of
 * the five is the gate. It only decides what is looked at twice, never what is found: elements are ranked by (score,
 * index), a total order, so the answer does not depend on timing.
 *
 * Sums. The tensor is cut into pieces, by its length alone; blocks take pieces as they get done, because some
 * multiprocessors read a fifth faster than others: long ones first, short ones to end together. A thread adds the
 * elements of a batch in float, batches in double; the block adds its threads when the piece is done; the last block
 * to finish adds the pieces. Each addition has its place in a fixed order: the same bits every time on the same GPU.
 * The result is written straight to pinned host memory. One launch, no memset, no copy.
 *
 * Rejected: per-warp atomics on global sums (30 us at 2^26 elements, and another order every run); a second kernel for
 * the reduction; a lock around a list of the worst in shared memory; equal shares for all blocks (the slowest
 * multiprocessor took 15 % longer than the mean); cp.async into shared memory (no faster than registers). */
#include "kernels/compare_cuda.h"

#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <float.h>
#include <math.h>

#include "kernels/number.h"

enum {
	THREADS = 256,
	WARPS = THREADS / 32, /* more than SUMS */
	BLOCKS = 2,  /* on a multiprocessor: more leave too few registers for what is on its way from memory */
	TERMS = 64,  /* elements a thread adds in float, in a batch */
	AHEAD = 4,   /* chunks on their way from memory while one is worked on */
};

/* Below 1 by more than the float arithmetic of the fast path can be wrong (some 2^-22). */
#define NEARLY (1 - 0x1p-20f)

/* A candidate for the worst places. Worse is the greater key, then the lower index. */
struct place {
	uint64_t key; /* 0: none; score's bits + 1; PLACE_NAN: a NaN on either side, before all */
	int64_t index;
};
#define PLACE_NAN UINT64_MAX

enum sum { SUM_ABS, SUM_REL, SUM_SQ, SUM_DOT, SUM_REFERENCE, SUM_TRUTH, SUMS };
enum count { MISSES, ZERO_HITS, ODD, /* ODD: pairs that are not both finite */
	     UNMATCHED, NAN_REFERENCE, NAN_TRUTH, INF_REFERENCE, INF_TRUTH, COUNTS };

/* What blocks tell each other while they run. All zeros between launches. */
struct compare_board {
	uint32_t best[METRICS_WORST]; /* greatest score met by each group of blocks, as float bits */
	uint32_t gate;                /* the least of them, as float bits */
	uint32_t pieces;              /* taken, beyond the first of each block */
	uint32_t finished;            /* blocks that have told everything */
	unsigned long long max_abs, max_rel; /* as double bits */
	unsigned long long count[COUNTS];
};

/* How the elements are cut. Long pieces, then short ones, then what is left over, which is examined throughout. */
struct plan {
	int64_t batches;      /* of all blocks' threads; the rest begins behind them */
	int64_t long_batches; /* in a long piece; 1 in a short one */
	int64_t rest_length;  /* elements in a piece of the rest */
	uint32_t long_pieces, short_pieces, rest_pieces;
};

struct task {
	const void *reference, *truth;
	int64_t elements;
	struct plan plan;
	double atol, rtol;
	float slack;              /* above 0 where t * atol would drown in float's denormals */
	float zero_limit;         /* |g| up to here passes with r = 0 */
	uint32_t zero_limit_bits; /* the same as the greatest number of a 16-bit dtype not above it */
	struct compare_board *board;
	struct place *candidates; /* METRICS_WORST of each block */
	double *sums;             /* [SUMS][pieces] */
	struct compare_sums *out;
};

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* Element `index` as a double; `dtype` is a constant wherever this is used. */
static __device__ __forceinline__ double element(const void *data, enum dtype dtype, int64_t index)
{
	switch (dtype) {
	case DTYPE_FLOAT32:
		return (double)((const float *)data)[index];
	case DTYPE_FLOAT16:
		return (double)float_from_f16(((const uint16_t *)data)[index]);
	case DTYPE_BFLOAT16:
		return (double)float_from_bf16(((const uint16_t *)data)[index]);
	case DTYPE_FLOAT8_E4M3FN:
		return (double)float_from_e4m3(((const uint8_t *)data)[index]);
	case DTYPE_FLOAT8_E5M2:
		return (double)float_from_e5m2(((const uint8_t *)data)[index]);
	case DTYPE_FLOAT4_E2M1:
		return (double)float_from_e2m1((uint8_t)(((const uint8_t *)data)[index / 2] >> (4 * (index & 1)) & 15));
	case DTYPE_INT64:
		return (double)((const int64_t *)data)[index];
	case DTYPE_INT32:
		return (double)((const int32_t *)data)[index];
	case DTYPE_INT16:
		return (double)((const int16_t *)data)[index];
	case DTYPE_INT8:
		return (double)((const int8_t *)data)[index];
	case DTYPE_BOOL:
		return ((const uint8_t *)data)[index] != 0;
	case DTYPE_UINT8:
		return (double)((const uint8_t *)data)[index];
	case DTYPE_UINT32:
		return (double)((const uint32_t *)data)[index];
	case DTYPE_FLOAT64:
		return ((const double *)data)[index];
	default:
		return (double)float_from_e8m0(((const uint8_t *)data)[index]);
	}
}

/* |r - g| of element `index`, whose values as doubles are r and g; exact for int64, which doubles may not be. */
static __device__ __forceinline__ double difference(const struct task &task, enum dtype dtype, int64_t index, double r,
                                                    double g)
{
	if (dtype != DTYPE_INT64)
		return r == g ? 0 : fabs(__dsub_rn(r, g));
	int64_t a = ((const int64_t *)task.reference)[index], b = ((const int64_t *)task.truth)[index];

	return (double)(a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a);
}

static __device__ __forceinline__ double bound_of(const struct task &task, double g)
{
	return __dadd_rn(task.atol, __dmul_rn(task.rtol, fabs(g)));
}

/* How a 16-byte chunk of a dtype becomes numbers of the fast path's type. `magnitude` masks the bits of a word that
 * are not signs: a word without them is all zeros. Sums of squares beyond squares_least and squares_greatest are not
 * to be trusted: something underflowed, overflowed, was not finite, or (int64) was no exact double. */
template <enum dtype D> struct form;

struct form_in_float {
	typedef float number;
	static constexpr float squares_least = 1e-20f, squares_greatest = 1e37f;
};

template <> struct form<DTYPE_FLOAT32> : form_in_float {
	static constexpr int lanes = 4;
	static constexpr uint32_t magnitude = 0x7fffffffu;
	static __device__ __forceinline__ void widen(const uint4 &raw, float *out)
	{
		out[0] = __uint_as_float(raw.x);
		out[1] = __uint_as_float(raw.y);
		out[2] = __uint_as_float(raw.z);
		out[3] = __uint_as_float(raw.w);
	}
};

/* Dtypes of 16 bits and fewer: word by word. */
template <typename word_form> struct form_of_words : form_in_float {
	static constexpr int lanes = 4 * word_form::each;
	static __device__ __forceinline__ void widen(const uint4 &raw, float *out)
	{
		word_form::widen_word(raw.x, out);
		word_form::widen_word(raw.y, out + word_form::each);
		word_form::widen_word(raw.z, out + 2 * word_form::each);
		word_form::widen_word(raw.w, out + 3 * word_form::each);
	}
};

struct words_bf16 {
	static constexpr int each = 2;
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		out[0] = __uint_as_float(word << 16);
		out[1] = __uint_as_float(word & 0xffff0000u);
	}
};
template <> struct form<DTYPE_BFLOAT16> : form_of_words<words_bf16> {
	static constexpr uint32_t magnitude = 0x7fff7fffu;
};

struct words_f16 {
	static constexpr int each = 2;
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		float2 pair = __half22float2(*reinterpret_cast<const __half2 *>(&word));

		out[0] = pair.x;
		out[1] = pair.y;
	}
};
template <> struct form<DTYPE_FLOAT16> : form_of_words<words_f16> {
	static constexpr uint32_t magnitude = 0x7fff7fffu;
};

template <__nv_fp8_interpretation_t kind> struct words_fp8 {
	static constexpr int each = 4;
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		for (int half = 0; half < 2; half++) {
			__half2_raw raw = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)(word >> (16 * half)), kind);
			float2 pair = __half22float2(__half2(raw));

			out[2 * half] = pair.x;
			out[2 * half + 1] = pair.y;
		}
	}
};
template <> struct form<DTYPE_FLOAT8_E4M3FN> : form_of_words<words_fp8<__NV_E4M3>> {
	static constexpr uint32_t magnitude = 0x7f7f7f7fu;
};
template <> struct form<DTYPE_FLOAT8_E5M2> : form_of_words<words_fp8<__NV_E5M2>> {
	static constexpr uint32_t magnitude = 0x7f7f7f7fu;
};

struct words_e8m0 {
	static constexpr int each = 4;
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		for (int i = 0; i < 4; i++)
			out[i] = float_from_e8m0((uint8_t)(word >> (8 * i)));
	}
};
template <> struct form<DTYPE_FLOAT8_E8M0FNU> : form_of_words<words_e8m0> {
	static constexpr uint32_t magnitude = 0xffffffffu;
};

/* 1 and 2 exponent bits moved to where float16 has them; 2^14 makes up for the bias, subnormals included. */
struct words_e2m1 {
	static constexpr int each = 8;
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		for (int i = 0; i < 8; i++) {
			uint32_t nibble = word >> (4 * i);
			uint16_t bits = (uint16_t)((nibble & 8) << 12 | (nibble & 7) << 9);

			out[i] = __half2float(__ushort_as_half(bits)) * 0x1p14f;
		}
	}
};
template <> struct form<DTYPE_FLOAT4_E2M1> : form_of_words<words_e2m1> {
	static constexpr uint32_t magnitude = 0x77777777u;
};

template <typename integer> struct words_small {
	static constexpr int each = 4 / (int)sizeof(integer);
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		for (int i = 0; i < each; i++)
			out[i] = (float)(integer)(word >> (8 * (int)sizeof(integer) * i));
	}
};
template <typename integer> struct form_of_small : form_of_words<words_small<integer>> {
	static constexpr uint32_t magnitude = 0xffffffffu;
};
template <> struct form<DTYPE_INT16> : form_of_small<int16_t> {
};
template <> struct form<DTYPE_INT8> : form_of_small<int8_t> {
};
template <> struct form<DTYPE_UINT8> : form_of_small<uint8_t> {
};
struct words_bool {
	static constexpr int each = 4;
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		for (int i = 0; i < 4; i++)
			out[i] = word >> (8 * i) & 255 ? 1 : 0;
	}
};
template <> struct form<DTYPE_BOOL> : form_of_words<words_bool> {
	static constexpr uint32_t magnitude = 0xffffffffu;
};

/* What float does not hold is done in double throughout. */
template <typename type> struct form_of_wide {
	typedef double number;
	static constexpr int lanes = 16 / (int)sizeof(type);
	static constexpr uint32_t magnitude = 0;
	static constexpr double squares_least = 0;
	static constexpr double squares_greatest = sizeof(type) == 8 && (type)0.5 == 0 ? 0x1p100 : INFINITY;
	static __device__ __forceinline__ void widen(const uint4 &raw, double *out)
	{
		const uint32_t word[4] = {raw.x, raw.y, raw.z, raw.w};
		type value[lanes];

		memcpy(value, word, sizeof value);
		for (int i = 0; i < lanes; i++)
			out[i] = (double)value[i];
	}
};
template <> struct form<DTYPE_INT64> : form_of_wide<int64_t> {
};
template <> struct form<DTYPE_INT32> : form_of_wide<int32_t> {
};
template <> struct form<DTYPE_UINT32> : form_of_wide<uint32_t> {
};
template <> struct form<DTYPE_FLOAT64> : form_of_wide<double> {
};

/* --- the worst places --------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ bool worse(struct place a, struct place b)
{
	return a.key > b.key || (a.key == b.key && a.index < b.index);
}

static __device__ __forceinline__ struct place place_from(struct place mine, int lane)
{
	struct place place;

	place.key = __shfl_sync(~0u, mine.key, lane);
	place.index = __shfl_sync(~0u, mine.index, lane);
	return place;
}

/* Every lane of the warp brings one place (key 0: none); `list` in lanes 0 … 4 becomes the worst five of all. */
static __device__ void offer(struct place *list, struct place mine)
{
	int lane = (int)(threadIdx.x % 32);

	while (__any_sync(~0u, mine.key != 0)) {
		struct place last = place_from(*list, METRICS_WORST - 1);
		unsigned better = __ballot_sync(~0u, mine.key != 0 && worse(mine, last));

		if (better == 0)
			break;
		int from = __ffs((int)better) - 1;
		struct place next = place_from(mine, from);
		struct place above;

		above.key = __shfl_up_sync(~0u, list->key, 1);
		above.index = __shfl_up_sync(~0u, list->index, 1);
		int rank = __popc(__ballot_sync(~0u, lane < METRICS_WORST && worse(*list, next)));

		if (lane == rank)
			*list = next;
		else if (lane > rank && lane < METRICS_WORST)
			*list = above;
		if (lane == from)
			mine.key = 0;
	}
}

/* 0, which is no place, for a score of 0. */
static __device__ __forceinline__ uint64_t key_of(double score)
{
	return score > 0 ? (uint64_t)__double_as_longlong(score) + 1 : 0;
}

/* The score of a key, rounded down; NaN counts as infinity. */
static __device__ __forceinline__ float key_score(uint64_t key)
{
	if (key == 0)
		return 0;
	return key == PLACE_NAN ? INFINITY : __double2float_rd(__longlong_as_double((long long)(key - 1)));
}

/* --- the gate ----------------------------------------------------------------------------------------------------- */

/* Are |r - g| > t (atol + rtol |g|)? Good to a millionth of t, in float; what it cannot decide exactly is asked with a
 * t that errs on the safe side, and decided in `examine`. */
template <typename number> struct threshold {
	number slope, offset;

	/* side: -1 for a t that errs to the low side, 1 to the high side */
	__device__ __forceinline__ threshold(const struct task &task, float t, float side)
	{
		slope = (number)(t * (float)task.rtol);
		offset = (number)(t * (float)task.atol + side * task.slack);
	}
	__device__ __forceinline__ number excess(number r, number g) const
	{
		return fma(-slope, (number)fabs(g), (number)fabs(r - g));
	}
	__device__ __forceinline__ bool passed(number r, number g) const
	{
		return excess(r, g) > offset;
	}
};

/* A t that every candidate for the worst places passes when five elements are known to reach `score`. */
static __device__ __forceinline__ float candidate_t(float score)
{
	return fminf(score, 1e30f) * NEARLY;
}

/* A t that candidates and misses pass. */
static __device__ __forceinline__ float near_t(float score)
{
	return fminf(score, 1) * NEARLY;
}

static __device__ __forceinline__ float board_gate(const struct compare_board *board)
{
	return __uint_as_float(*(const volatile uint32_t *)&board->gate);
}

/* Some element of this block reaches `score`, which is above the gate: that may raise it. Called by one lane. */
static __device__ void board_tell(struct compare_board *board, float score)
{
	const volatile uint32_t *best = board->best;

	atomicMax(&board->best[blockIdx.x % METRICS_WORST], __float_as_uint(score));
	uint32_t least = best[0];

	for (int i = 1; i < METRICS_WORST; i++)
		least = min(least, best[i]);
	atomicMax(&board->gate, least);
}

/* --- one element, exactly ----------------------------------------------------------------------------------------- */

/* Counts and maxima of one warp. */
struct found {
	double max_abs, max_rel;
	uint32_t count[COUNTS];
};

/* What a block keeps in shared memory: by thread, what the fast path does not touch, or only once in a batch; by warp,
 * the worst places. */
struct shared {
	double sum[SUMS][THREADS]; /* of the piece under way */
	double max_abs[THREADS], max_rel[THREADS];
	uint32_t count[COUNTS][THREADS];
	struct place worst[WARPS][METRICS_WORST];
	float told[WARPS];                   /* the greatest score this warp has told the board */
	float sampled[WARPS * METRICS_WORST]; /* scores that elements of the first chunks reach */
	struct found found[WARPS];
	uint32_t next; /* the piece after the one under way */
	bool last;
};

static __device__ __forceinline__ void count(struct shared *shared, enum count what, uint32_t more)
{
	shared->count[what][threadIdx.x] += more;
}

/* The warp's list, a place in each of the lanes 0 … 4. */
static __device__ __forceinline__ struct place load_worst(const struct shared *shared)
{
	struct place none = {0, 0};
	int lane = (int)(threadIdx.x % 32);

	return lane < METRICS_WORST ? shared->worst[threadIdx.x / 32][lane] : none;
}

static __device__ __forceinline__ void store_worst(struct shared *shared, struct place worst)
{
	int lane = (int)(threadIdx.x % 32);

	if (lane < METRICS_WORST)
		shared->worst[threadIdx.x / 32][lane] = worst;
}

enum { WEIGH = 1, ADD = 2, ZERO = 4 };

/* r and g are not both finite. Returns the place's key. */
static __device__ uint64_t examine_odd(struct shared *shared, double r, double g)
{
	bool matched = r == g;

	count(shared, ODD, 1);
	count(shared, NAN_REFERENCE, isnan(r) != 0);
	count(shared, NAN_TRUTH, isnan(g) != 0);
	count(shared, INF_REFERENCE, isinf(r) != 0);
	count(shared, INF_TRUTH, isinf(g) != 0);
	count(shared, UNMATCHED, !matched);
	count(shared, MISSES, !matched);
	if (matched)
		return 0;
	return isnan(r) || isnan(g) ? PLACE_NAN : key_of(INFINITY);
}

static __device__ void examine_sums(struct shared *shared, double r, double g, double d)
{
	const double relative = d / fmax(fabs(g), 1e-8), term[SUMS] = {d, relative, d * d, r * g, r * r, g * g};
	int thread = (int)threadIdx.x;

#pragma unroll
	for (int s = 0; s < SUMS; s++)
		shared->sum[s][thread] += term[s];
	shared->max_abs[thread] = fmax(shared->max_abs[thread], d);
	shared->max_rel[thread] = fmax(shared->max_rel[thread], relative);
}

/* Those elements of each lane, from `first` on, that `mask` has bits for, by the rule as the CPU evaluates it: in double,
 * no contraction. `work` says what for: WEIGH (miss or not, worst places, counts; always), ADD (sums), ZERO (would 0
 * pass). All lanes take part for the warp's sake. Scores below `gate` cannot be among the worst; nor can 0 (see
 * fill_places). */
template <enum dtype D>
static __device__ __noinline__ void examine(const struct task &task, struct shared *shared, float gate, int64_t first,
                                            uint32_t mask, int work)
{
	struct place worst = load_worst(shared);

	while (__any_sync(~0u, mask != 0)) {
		struct place mine = {0, first + __ffs((int)mask) - 1};

		if (mask != 0) {
			double r = element(task.reference, D, mine.index), g = element(task.truth, D, mine.index);
			double d = difference(task, D, mine.index, r, g), bound = bound_of(task, g);

			if (!isfinite(r) || !isfinite(g)) {
				mine.key = examine_odd(shared, r, g);
			} else {
				count(shared, MISSES, !(d <= bound));
				if (d > 0 && d >= (double)candidate_t(gate) * bound)
					mine.key = key_of(isfinite(d) ? __ddiv_rn(d, bound) : INFINITY);
				if (work & ADD)
					examine_sums(shared, r, g, d);
			}
			if (work & ZERO)
				count(shared, ZERO_HITS, isfinite(g) && fabs(g) <= bound);
		}
		offer(&worst, mine);
		mask &= mask - 1;
	}
	store_worst(shared, worst);
}

/* --- the fast path ------------------------------------------------------------------------------------------------ */

/* Counts elements with |g| <= limit. */
template <enum dtype D> struct zero_count {
	uint32_t hits;

	__device__ __forceinline__ void clear()
	{
		hits = 0;
	}
	template <typename number>
	__device__ __forceinline__ void see(const uint4 &, const number *g, const struct task &task)
	{
#pragma unroll
		for (int i = 0; i < form<D>::lanes; i++)
			hits += is_hit(g[i], task);
	}
	__device__ __forceinline__ uint32_t count() const
	{
		return hits;
	}

      private:
	static __device__ __forceinline__ bool is_hit(float g, const struct task &task)
	{
		return fabsf(g) <= task.zero_limit;
	}
	static __device__ __forceinline__ bool is_hit(double g, const struct task &task)
	{
		return fabs(g) <= bound_of(task, g) && isfinite(g);
	}
};

/* 16-bit floats two at a time. The bits of either format, as long as they are below float16's infinity, stand in the
 * order of the float16 numbers they would be; `limit` is. Counted in float16 too, which holds integers to 2048. */
template <enum dtype D> struct zero_count_pairs {
	__half2 hits;

	__device__ __forceinline__ void clear()
	{
		hits = __half2half2(__ushort_as_half(0));
	}
	__device__ __forceinline__ void see(const uint4 &raw, const float *, const struct task &task)
	{
		see_word(raw.x, task);
		see_word(raw.y, task);
		see_word(raw.z, task);
		see_word(raw.w, task);
	}
	__device__ __forceinline__ uint32_t count() const
	{
		return (uint32_t)(__low2float(hits) + __high2float(hits));
	}

      private:
	__device__ __forceinline__ void see_word(uint32_t word, const struct task &task)
	{
		__half2 limit = __half2half2(__ushort_as_half((unsigned short)task.zero_limit_bits));

		hits = __hadd2(hits, __hle2(__habs2(*reinterpret_cast<const __half2 *>(&word)), limit));
	}
};
template <> struct zero_count<DTYPE_BFLOAT16> : zero_count_pairs<DTYPE_BFLOAT16> {
};
template <> struct zero_count<DTYPE_FLOAT16> : zero_count_pairs<DTYPE_FLOAT16> {
};

static __device__ __forceinline__ float reciprocal(float x) /* x >= 1e-8; within an ulp, 0 above 2^126 */
{
	float y;

	asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}
static __device__ __forceinline__ double reciprocal(double x)
{
	return 1 / x;
}

/* A thread's share of a batch: TERMS elements in chunks, so few that float sums of them are good to some 1e-7. The
 * block's threads take neighbouring chunks. */
template <enum dtype D> struct batch {
	typedef typename form<D>::number number;
	static constexpr int chunks = TERMS / form<D>::lanes;
	static constexpr int64_t length = (int64_t)TERMS * THREADS; /* elements, of all threads */

	number sum[SUMS], max_abs, max_rel;
	struct zero_count<D> zeros;
	uint32_t near; /* bit k: chunk k is near */

	__device__ __forceinline__ void clear()
	{
#pragma unroll
		for (int s = 0; s < SUMS; s++)
			sum[s] = 0;
		max_abs = max_rel = 0;
		zeros.clear();
		near = 0;
	}
};

/* Takes chunk k. fmax leaves NaN out; the sums of squares show it. */
template <enum dtype D>
static __device__ __forceinline__ void take(struct batch<D> *to, int k, const struct task &task, const uint4 &raw_r,
                                            const uint4 &raw_g,
                                            const struct threshold<typename form<D>::number> &near)
{
	typedef typename form<D>::number number;
	number r[form<D>::lanes], g[form<D>::lanes], excess = -INFINITY;

	form<D>::widen(raw_r, r);
	form<D>::widen(raw_g, g);
#pragma unroll
	for (int i = 0; i < form<D>::lanes; i++) {
		number d = fabs(r[i] - g[i]), relative = d * reciprocal(fmax(fabs(g[i]), (number)1e-8));

		to->sum[SUM_ABS] += d;
		to->sum[SUM_REL] += relative;
		to->sum[SUM_SQ] += d * d;
		to->sum[SUM_DOT] += r[i] * g[i];
		to->sum[SUM_REFERENCE] += r[i] * r[i];
		to->sum[SUM_TRUTH] += g[i] * g[i];
		to->max_abs = fmax(to->max_abs, d);
		to->max_rel = fmax(to->max_rel, relative);
		excess = fmax(excess, near.excess(r[i], g[i]));
	}
	to->zeros.see(raw_g, g, task);
	if (excess > near.offset)
		to->near |= 1u << k;
}

/* Has this thread's share of a batch any bit set but signs? `start` points to its first chunk. */
template <enum dtype D> static __device__ __noinline__ bool has_nonzero(const uint4 *start)
{
	uint32_t bits = 0;

	for (int k = 0; k < batch<D>::chunks; k++) {
		uint4 raw = start[k * THREADS];

		bits |= raw.x | raw.y | raw.z | raw.w;
	}
	return (bits & form<D>::magnitude) != 0;
}

/* Are a batch's sums to be made again in double? Comparisons with NaN are false. */
template <enum dtype D>
static __device__ __forceinline__ bool is_strange(const struct batch<D> &batch, const uint4 *r, const uint4 *g)
{
	typename form<D>::number rr = batch.sum[SUM_REFERENCE], gg = batch.sum[SUM_TRUTH];

	if (!(rr + gg < form<D>::squares_greatest))
		return true;
	return (rr < form<D>::squares_least && has_nonzero<D>(r)) || (gg < form<D>::squares_least && has_nonzero<D>(g));
}

/* Counts a chunk's clear misses, and returns a bit for each element that is to be examined: one so close to its bound
 * that it may or may not be a miss, or a candidate for the worst places. Equal ones are neither. */
template <enum dtype D>
static __device__ __forceinline__ uint32_t sort_out(const struct task &task, struct shared *shared, float gate,
                                                    const uint4 &raw_r, const uint4 &raw_g)
{
	typedef typename form<D>::number number;
	const struct threshold<number> maybe(task, NEARLY, -1), clear(task, 1 / NEARLY, 1);
	const struct threshold<number> candidate(task, candidate_t(gate), -1);
	number r[form<D>::lanes], g[form<D>::lanes];
	uint32_t misses = 0, unclear = 0;

	form<D>::widen(raw_r, r);
	form<D>::widen(raw_g, g);
#pragma unroll
	for (int i = 0; i < form<D>::lanes; i++) {
		bool miss = clear.passed(r[i], g[i]);
		bool look = r[i] != g[i] && (candidate.passed(r[i], g[i]) || (maybe.passed(r[i], g[i]) && !miss));

		misses |= (miss ? 1u : 0u) << i;
		unclear |= (look ? 1u : 0u) << i;
	}
	count(shared, MISSES, (uint32_t)__popc(misses & ~unclear));
	return unclear;
}

/* The second look at a batch that begins with element `first`: all of a lane's chunks if they are strange, else those
 * that are near. Returns the gate. */
template <enum dtype D>
static __device__ __noinline__ float look_again(const struct task &task, int64_t first, uint32_t near, bool strange,
                                                float gate, struct shared *shared)
{
	uint32_t any = __reduce_or_sync(~0u, strange ? ~0u : near);

	gate = fmaxf(gate, board_gate(task.board));
	for (int k = 0; k < batch<D>::chunks; k++) {
		int64_t at = first + (int64_t)(k * THREADS + (int)threadIdx.x) * form<D>::lanes;
		int64_t chunk = at / form<D>::lanes;
		uint32_t mask = 0;

		if (!(any >> k & 1))
			continue;
		if (strange)
			mask = ~0u >> (32 - form<D>::lanes);
		else if (near >> k & 1)
			mask = sort_out<D>(task, shared, gate, ((const uint4 *)task.reference)[chunk],
			                   ((const uint4 *)task.truth)[chunk]);
		if (__any_sync(~0u, mask != 0))
			examine<D>(task, shared, gate, at, mask, strange ? WEIGH | ADD : WEIGH);
	}
	__syncwarp();
	const struct place *worst = shared->worst[threadIdx.x / 32];
	float best = key_score(worst[0].key), *told = &shared->told[threadIdx.x / 32];

	if (threadIdx.x % 32 == 0 && best > fmaxf(gate, *told)) {
		*told = best;
		board_tell(task.board, best);
	}
	return fmaxf(gate, key_score(worst[METRICS_WORST - 1].key));
}

/* A score that some element of these chunks certainly reaches; 0: nothing is certain. */
template <enum dtype D>
static __device__ __forceinline__ float sample_chunk(const struct task &task, const uint4 &raw_r, const uint4 &raw_g)
{
	typename form<D>::number r[form<D>::lanes], g[form<D>::lanes];
	float best = 0;

	form<D>::widen(raw_r, r);
	form<D>::widen(raw_g, g);
#pragma unroll
	for (int i = 0; i < form<D>::lanes; i++) {
		float bound = (float)task.atol + (float)task.rtol * (float)fabs(g[i]);

		best = fmaxf(best, __fdividef((float)fabs(r[i] - g[i]), bound) * NEARLY);
	}
	return fminf(best, FLT_MAX); /* infinity may have been rounded to */
}

/* Takes the greatest of the warp's values out, wherever it stands, and returns it. */
static __device__ __forceinline__ float take_greatest(float *one, float *other)
{
	float greatest = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(fmaxf(*one, *other))));

	if (*one == greatest)
		*one = 0;
	if (*other == greatest)
		*other = 0;
	return greatest;
}

/* --- pieces ------------------------------------------------------------------------------------------------------- */

/* Elements first … first + length - 1; `batches` of them on the fast path, 0: none. */
struct piece {
	int64_t first, length, batches;
};

template <enum dtype D> static __device__ __forceinline__ struct piece piece_at(const struct task &task, uint32_t number)
{
	const struct plan &plan = task.plan;
	int64_t longs = plan.long_pieces * plan.long_batches;

	if (number < plan.long_pieces)
		return {number * plan.long_batches * batch<D>::length, plan.long_batches * batch<D>::length, plan.long_batches};
	number -= plan.long_pieces;
	if (number < plan.short_pieces)
		return {(longs + number) * batch<D>::length, batch<D>::length, 1};
	number -= plan.short_pieces;
	int64_t first = plan.batches * batch<D>::length + number * plan.rest_length, left = task.elements - first;

	return {first, left < plan.rest_length ? left : plan.rest_length, 0};
}

static __device__ __forceinline__ uint32_t pieces_of(const struct plan &plan)
{
	return plan.long_pieces + plan.short_pieces + plan.rest_pieces;
}

/* Chunks that a thread has asked memory for and not yet worked on. */
struct coming {
	uint4 r[AHEAD], g[AHEAD];
};

static __device__ __forceinline__ void ask(struct coming *coming, int slot, const uint4 *r, const uint4 *g)
{
	coming->r[slot] = __ldcs(r);
	coming->g[slot] = __ldcs(g);
}

/* One batch, and the first chunks of the batch that follows, AHEAD of their time; r, g: this thread's first chunk of
 * this one; next_r, next_g: of that. */
template <enum dtype D>
static __device__ __forceinline__ void take_batch(const struct task &task, struct batch<D> *batch, struct coming *coming,
                                                  const uint4 *r, const uint4 *g, const uint4 *next_r,
                                                  const uint4 *next_g, float gate)
{
	constexpr int chunks = ::batch<D>::chunks;
	const struct threshold<typename form<D>::number> near(task, near_t(gate), -1);

	batch->clear();
#pragma unroll
	for (int k = 0; k < chunks; k++) {
		uint4 raw_r = coming->r[k % AHEAD], raw_g = coming->g[k % AHEAD];

		if (k + AHEAD < chunks)
			ask(coming, k % AHEAD, r + (k + AHEAD) * THREADS, g + (k + AHEAD) * THREADS);
		else
			ask(coming, k % AHEAD, next_r + (k + AHEAD - chunks) * THREADS, next_g + (k + AHEAD - chunks) * THREADS);
		take<D>(batch, k, task, raw_r, raw_g, near);
	}
}

/* What a thread keeps from piece to piece. */
template <typename number> struct course {
	struct coming coming;
	number max_abs, max_rel;
	uint32_t zero_hits;
	float gate;
};

/* The first chunks of the block's first piece, and the greatest scores among them. */
template <enum dtype D>
static __device__ __forceinline__ void start(const struct task &task, const struct piece &piece, struct coming *coming,
                                             struct shared *shared)
{
	const uint4 *r = (const uint4 *)task.reference + piece.first / form<D>::lanes + threadIdx.x;
	const uint4 *g = (const uint4 *)task.truth + piece.first / form<D>::lanes + threadIdx.x;
	float best = 0, none = 0;

#pragma unroll
	for (int k = 0; k < AHEAD; k++)
		ask(coming, k, r + k * THREADS, g + k * THREADS);
#pragma unroll
	for (int k = 0; k < AHEAD; k++)
		best = fmaxf(best, sample_chunk<D>(task, coming->r[k], coming->g[k]));
	for (int i = 0; i < METRICS_WORST; i++)
		shared->sampled[threadIdx.x / 32 * METRICS_WORST + i] = take_greatest(&best, &none);
}

/* The gate by what the block's warps have sampled. */
static __device__ float first_gate(const struct task &task, struct shared *shared)
{
	const float *sampled = shared->sampled;
	int lane = (int)(threadIdx.x % 32);
	float one = sampled[lane], other = 32 + lane < WARPS * METRICS_WORST ? sampled[32 + lane] : 0;
	float greatest = take_greatest(&one, &other), fifth = 0;

	for (int i = 1; i < METRICS_WORST; i++)
		fifth = take_greatest(&one, &other);
	if (lane == 0)
		shared->told[threadIdx.x / 32] = greatest;
	if (threadIdx.x == 0 && greatest > 0)
		board_tell(task.board, greatest);
	return fifth;
}

/* The batches of a piece; `after` is the piece that this block takes next. */
template <enum dtype D>
static __device__ __forceinline__ void take_batches(const struct task &task, const struct piece &piece,
                                                    const struct piece &after,
                                                    struct course<typename form<D>::number> *course,
                                                    struct shared *shared)
{
	constexpr int64_t step = (int64_t)batch<D>::chunks * THREADS;
	const uint4 *r = (const uint4 *)task.reference + piece.first / form<D>::lanes + threadIdx.x;
	const uint4 *g = (const uint4 *)task.truth + piece.first / form<D>::lanes + threadIdx.x;
	int64_t onward = after.batches > 0 ? (after.first - piece.first) / form<D>::lanes : 0; /* 0: never used */

	for (int64_t b = 0; b < piece.batches; b++) {
		int64_t next = b + 1 < piece.batches ? (b + 1) * step : onward;
		struct batch<D> batch;

		take_batch<D>(task, &batch, &course->coming, r + b * step, g + b * step, r + next, g + next, course->gate);
		bool strange = is_strange<D>(batch, r + b * step, g + b * step);

		course->zero_hits += batch.zeros.count();
		if (!strange) {
			course->max_abs = fmax(course->max_abs, batch.max_abs);
			course->max_rel = fmax(course->max_rel, batch.max_rel);
#pragma unroll
			for (int s = 0; s < SUMS; s++)
				shared->sum[s][threadIdx.x] += (double)batch.sum[s];
		}
		if (__any_sync(~0u, strange || batch.near != 0))
			course->gate = look_again<D>(task, piece.first + b * ::batch<D>::length, batch.near, strange,
			                             course->gate, shared);
	}
}

/* A piece of the rest: every element examined. */
template <enum dtype D>
static __device__ __noinline__ void take_rest(const struct task &task, int64_t first, int64_t length,
                                              struct shared *shared)
{
	for (int64_t i = threadIdx.x; i - threadIdx.x % 32 < length; i += THREADS)
		examine<D>(task, shared, 0, first + i, i < length, WEIGH | ADD | ZERO);
}

/* By one warp: what the block's threads have laid down, added in a fixed order. */
static __device__ double add_threads(const double *by_thread)
{
	double sum = 0;

	for (int w = 0; w < WARPS; w++)
		sum += by_thread[w * 32 + (int)(threadIdx.x % 32)];
	for (int o = 16; o > 0; o /= 2)
		sum += __shfl_xor_sync(~0u, sum, o);
	return sum;
}

/* The piece's sums over the block's threads, to where they belong; and which piece is next but one. */
static __device__ uint32_t close_piece(const struct task &task, uint32_t number, struct shared *shared)
{
	int lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32);

	__syncthreads();
	if (threadIdx.x == 0)
		shared->next = gridDim.x + atomicAdd(&task.board->pieces, 1);
	if (warp < SUMS) {
		double sum = add_threads(shared->sum[warp]);

		if (lane == 0)
			task.sums[(int64_t)warp * pieces_of(task.plan) + number] = sum;
	}
	__syncthreads();
	for (int s = 0; s < SUMS; s++)
		shared->sum[s][threadIdx.x] = 0;
	return shared->next;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* Counts and maxima of a warp's lanes, to where the block's first threads find them. Most counts are 0 in all lanes. */
static __device__ void tell_block(struct shared *shared)
{
	struct found *found = &shared->found[threadIdx.x / 32];
	double max_abs = shared->max_abs[threadIdx.x], max_rel = shared->max_rel[threadIdx.x];
	bool first = threadIdx.x % 32 == 0;

	for (int o = 16; o > 0; o /= 2) {
		max_abs = fmax(max_abs, __shfl_xor_sync(~0u, max_abs, o));
		max_rel = fmax(max_rel, __shfl_xor_sync(~0u, max_rel, o));
	}
#pragma unroll
	for (int c = 0; c < COUNTS; c++) {
		uint32_t mine = shared->count[c][threadIdx.x];
		uint32_t sum = __any_sync(~0u, mine != 0) ? __reduce_add_sync(~0u, mine) : 0;

		if (first)
			found->count[c] = sum;
	}
	if (first) {
		found->max_abs = max_abs;
		found->max_rel = max_rel;
	}
}

/* The block's counts and maxima to the board. Non-negative doubles are in the order of their bits. */
static __device__ void tell_board(struct compare_board *board, const struct found *found)
{
	int thread = (int)threadIdx.x;

	if (thread < COUNTS) {
		unsigned long long sum = 0;

		for (int w = 0; w < WARPS; w++)
			sum += found[w].count[thread];
		if (sum != 0)
			atomicAdd(&board->count[thread], sum);
	}
	if (thread == 32 || thread == 64) {
		double most = 0;

		for (int w = 0; w < WARPS; w++)
			most = fmax(most, thread == 32 ? found[w].max_abs : found[w].max_rel);
		if (most > 0)
			atomicMax(thread == 32 ? &board->max_abs : &board->max_rel,
			          (unsigned long long)__double_as_longlong(most));
	}
}

/* By one warp: the worst places of all warps of the block, in lanes 0 … 4. */
static __device__ struct place merge_worst(const struct shared *shared)
{
	struct place worst = {0, 0}, none = {0, 0};

	for (int first = 0; first < WARPS * METRICS_WORST; first += 32) {
		int at = first + (int)(threadIdx.x % 32);

		offer(&worst, at < WARPS * METRICS_WORST ? shared->worst[at / METRICS_WORST][at % METRICS_WORST] : none);
	}
	return worst;
}

/* Everything the block has found but its pieces' sums, to the board and the list of candidates. True in the last block
 * to do so, which then sees what all others wrote. */
static __device__ bool tell_all(const struct task &task, struct shared *shared)
{
	tell_block(shared);
	__syncthreads();
	tell_board(task.board, shared->found);
	if (threadIdx.x / 32 == WARPS - 1) {
		struct place worst = merge_worst(shared);

		if (threadIdx.x % 32 < METRICS_WORST)
			task.candidates[blockIdx.x * METRICS_WORST + threadIdx.x % 32] = worst;
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		cuda::atomic_ref<uint32_t, cuda::thread_scope_device> finished(task.board->finished);

		shared->last = finished.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
	}
	__syncthreads();
	return shared->last;
}

/* Each thread's share of the sums of all pieces, several at once so that memory is not waited for piece by piece. */
static __device__ void gather_sums(const struct task &task, struct shared *shared)
{
	constexpr int at_once = 5;
	uint32_t pieces = pieces_of(task.plan);
	double sum[SUMS] = {};

	for (uint32_t first = threadIdx.x; first < pieces; first += at_once * THREADS)
#pragma unroll
		for (int s = 0; s < SUMS; s++)
#pragma unroll
			for (int i = 0; i < at_once; i++) {
				uint32_t p = first + i * THREADS;

				sum[s] += p < pieces ? task.sums[(int64_t)s * pieces + p] : 0;
			}
#pragma unroll
	for (int s = 0; s < SUMS; s++)
		shared->sum[s][threadIdx.x] = sum[s];
}

/* The worst places of all blocks, a list for each warp. */
static __device__ void gather_worst(const struct task &task, struct shared *shared)
{
	struct place worst = {0, 0};

	for (uint32_t first = 0; first < gridDim.x; first += THREADS) {
		uint32_t block = first + threadIdx.x;
		struct place theirs[METRICS_WORST] = {};

		if (block < gridDim.x)
#pragma unroll
			for (int i = 0; i < METRICS_WORST; i++)
				theirs[i] = task.candidates[block * METRICS_WORST + i];
#pragma unroll
		for (int i = 0; i < METRICS_WORST; i++)
			offer(&worst, theirs[i]);
	}
	store_worst(shared, worst);
}

/* Warp s adds up sum s. */
static __device__ void publish_sums(const struct task &task, const struct shared *shared)
{
	double *const place[SUMS] = {&task.out->sum_abs, &task.out->sum_rel,        &task.out->sum_sq,
	                             &task.out->dot,     &task.out->norm_reference, &task.out->norm_ground_truth};

#pragma unroll
	for (int s = 0; s < SUMS; s++)
		if ((int)threadIdx.x / 32 == s) {
			double sum = add_threads(shared->sum[s]);

			if (threadIdx.x % 32 == 0)
				*place[s] = sum;
		}
}

/* Elements with score 0 are never candidates: fills up with the first ones. Lanes 0 … 4 hold one place each; all lanes
 * take part. */
static __device__ int fill_places(struct place *mine, int64_t elements)
{
	int lane = (int)(threadIdx.x % 32);
	int have = __popc(__ballot_sync(~0u, lane < METRICS_WORST && mine->key != 0));

	for (int64_t index = 0; have < METRICS_WORST && index < elements; index++) {
		if (__any_sync(~0u, lane < have && mine->index == index))
			continue;
		if (lane == have)
			*mine = {0, index};
		have++;
	}
	return have;
}

/* By one warp: the worst of the candidates. */
template <enum dtype D> static __device__ void publish_worst(const struct task &task, const struct shared *shared)
{
	int lane = (int)(threadIdx.x % 32);
	struct place worst = merge_worst(shared);
	int worst_count = fill_places(&worst, task.elements);

	if (lane < worst_count) {
		double r = element(task.reference, D, worst.index), g = element(task.truth, D, worst.index);

		task.out->worst[lane] = {worst.index, r, g, difference(task, D, worst.index, r, g)};
	}
	if (lane != 0)
		return;
	task.out->worst_count = worst_count;
	task.out->margin = worst.key == 0           ? 0
	                   : worst.key == PLACE_NAN ? INFINITY
	                                            : __longlong_as_double((long long)(worst.key - 1));
}

/* By one thread: the rest, and the board as the next launch wants it. */
static __device__ void publish_counts(const struct task &task)
{
	const struct compare_board &board = *task.board;
	struct compare_sums *out = task.out;

	out->elements = task.elements;
	out->hits = task.elements - (int64_t)board.count[MISSES];
	out->finite = task.elements - (int64_t)board.count[ODD];
	out->zero_hits = (int64_t)board.count[ZERO_HITS];
	out->nan_reference = (int64_t)board.count[NAN_REFERENCE];
	out->nan_ground_truth = (int64_t)board.count[NAN_TRUTH];
	out->inf_reference = (int64_t)board.count[INF_REFERENCE];
	out->inf_ground_truth = (int64_t)board.count[INF_TRUTH];
	out->unmatched = (int64_t)board.count[UNMATCHED];
	out->max_abs = __longlong_as_double((long long)board.max_abs);
	out->max_rel = __longlong_as_double((long long)board.max_rel);
}

static __device__ __forceinline__ void shared_clear(struct shared *shared)
{
	int thread = (int)threadIdx.x;

	for (int s = 0; s < SUMS; s++)
		shared->sum[s][thread] = 0;
	for (int c = 0; c < COUNTS; c++)
		shared->count[c][thread] = 0;
	shared->max_abs[thread] = shared->max_rel[thread] = 0;
	if (thread % 32 < METRICS_WORST)
		shared->worst[thread / 32][thread % 32] = {0, 0};
	if (thread % 32 == 0)
		shared->told[thread / 32] = 0;
}

template <enum dtype D>
static __global__ void __launch_bounds__(THREADS, BLOCKS) compare_kernel(const __grid_constant__ struct task task)
{
	__shared__ struct shared shared;
	uint32_t number = blockIdx.x, pieces = pieces_of(task.plan);
	struct piece piece = piece_at<D>(task, number);
	struct course<typename form<D>::number> course;

	course.max_abs = course.max_rel = 0;
	course.zero_hits = 0;
	course.gate = 0;
	shared_clear(&shared);
	if (threadIdx.x == 0)
		shared.next = gridDim.x + atomicAdd(&task.board->pieces, 1);
	if (piece.batches > 0)
		start<D>(task, piece, &course.coming, &shared);
	__syncthreads();
	uint32_t next = shared.next;

	if (piece.batches > 0)
		course.gate = first_gate(task, &shared);
	while (number < pieces) {
		struct piece after = next < pieces ? piece_at<D>(task, next) : piece;

		if (piece.batches > 0)
			take_batches<D>(task, piece, after, &course, &shared);
		else
			take_rest<D>(task, piece.first, piece.length, &shared);
		uint32_t next_but_one = close_piece(task, number, &shared);

		number = next;
		next = next_but_one;
		piece = after;
	}
	count(&shared, ZERO_HITS, course.zero_hits);
	shared.max_abs[threadIdx.x] = fmax(shared.max_abs[threadIdx.x], (double)course.max_abs);
	shared.max_rel[threadIdx.x] = fmax(shared.max_rel[threadIdx.x], (double)course.max_rel);
	if (!tell_all(task, &shared))
		return;
	gather_sums(task, &shared);
	gather_worst(task, &shared);
	__syncthreads();
	publish_sums(task, &shared);
	if (threadIdx.x / 32 == SUMS)
		publish_worst<D>(task, &shared);
	if (threadIdx.x == THREADS - 1)
		publish_counts(task);
	__syncthreads();
	if (threadIdx.x == 0)
		*task.board = {};
}

/* --- the host's side ---------------------------------------------------------------------------------------------- */

typedef void (*compare_function)(struct task);

static const compare_function kernels[DTYPE_COUNT] = {
    compare_kernel<DTYPE_FLOAT32>,     compare_kernel<DTYPE_FLOAT16>,     compare_kernel<DTYPE_BFLOAT16>,
    compare_kernel<DTYPE_FLOAT8_E4M3FN>, compare_kernel<DTYPE_FLOAT8_E5M2>, compare_kernel<DTYPE_FLOAT4_E2M1>,
    compare_kernel<DTYPE_INT64>,       compare_kernel<DTYPE_INT32>,       compare_kernel<DTYPE_INT16>,
    compare_kernel<DTYPE_INT8>,        compare_kernel<DTYPE_BOOL>,        compare_kernel<DTYPE_UINT8>,
    compare_kernel<DTYPE_UINT32>,      compare_kernel<DTYPE_FLOAT64>,     compare_kernel<DTYPE_FLOAT8_E8M0FNU>,
};

static const float tiny = 1e-30f;

/* Would 0 pass where the truth is `size`? */
static bool zero_passes(struct rule rule, double size)
{
	double share = rule.rtol * size; /* rounded by itself, as everywhere */

	return size <= rule.atol + share;
}

/* The greatest float up to which 0 passes. Only for rules that is_plain takes: there the float just above or below
 * atol / (1 - rtol) is it, for the rule's own rounding is far finer than the steps between floats. */
static float zero_limit(struct rule rule)
{
	float limit = (float)(rule.atol / (1 - rule.rtol));

	while (limit > 0 && !zero_passes(rule, limit))
		limit = nextafterf(limit, 0);
	while (zero_passes(rule, nextafterf(limit, INFINITY)))
		limit = nextafterf(limit, INFINITY);
	return limit;
}

/* As the bits of a 16-bit dtype, cut towards zero. */
static uint32_t zero_limit_bits(float limit, enum dtype dtype)
{
	uint32_t bits = dtype == DTYPE_FLOAT16 ? f16_from_float(limit) : float_bits(limit) >> 16;

	if (dtype == DTYPE_FLOAT16 && (bits > 0x7bff || float_from_f16((uint16_t)bits) > limit))
		bits--;
	return bits;
}

/* Can the fast path be trusted with this rule? Others are examined throughout. */
static bool is_plain(struct rule rule)
{
	return rule.atol >= 0 && (rule.rtol == 0 || rule.rtol >= 1e-30) && rule.rtol <= 0.999 &&
	       rule.atol / (1 - rule.rtol) <= 1e30;
}

static bool is_aligned(const void *data)
{
	return (uintptr_t)data % 16 == 0;
}

/* Short pieces are a third of what a grid of full size takes at once; a long one is what makes two rounds. */
static struct plan plan_of(int64_t elements, int64_t batch, bool fast, int64_t blocks)
{
	struct plan plan = {};

	plan.batches = fast ? elements / batch : 0;
	int64_t shorts = plan.batches < 3 * blocks ? plan.batches : 3 * blocks, longs = plan.batches - shorts;
	int64_t rest = elements - plan.batches * batch, rest_pieces = (rest + THREADS - 1) / THREADS;

	plan.long_batches = (longs + 2 * blocks - 1) / (2 * blocks);
	plan.long_pieces = plan.long_batches > 0 ? (uint32_t)(longs / plan.long_batches) : 0;
	plan.short_pieces = (uint32_t)(plan.batches - plan.long_pieces * plan.long_batches);
	if (rest_pieces > blocks)
		rest_pieces = blocks;
	plan.rest_length = rest_pieces > 0 ? ((rest + rest_pieces - 1) / rest_pieces + THREADS - 1) / THREADS * THREADS : 0;
	plan.rest_pieces = plan.rest_length > 0 ? (uint32_t)((rest + plan.rest_length - 1) / plan.rest_length) : 0;
	return plan;
}

static struct task task_of(struct compare_cuda *compare, const void *reference, const void *truth, enum dtype dtype,
                           int64_t elements, struct rule rule)
{
	bool plain = is_plain(rule);
	struct task task;

	memset(&task, 0, sizeof task);
	task.reference = reference;
	task.truth = truth;
	task.elements = elements;
	task.plan = plan_of(elements, TERMS * THREADS, plain && is_aligned(reference) && is_aligned(truth),
	                    compare->blocks[dtype]);
	task.atol = rule.atol;
	task.rtol = rule.rtol;
	task.board = compare->board;
	task.candidates = compare->candidates;
	task.sums = compare->partial_sums;
	task.out = compare->sums;
	if (!plain)
		return task;
	if (rule.atol < tiny && (rule.atol > 0 || rule.rtol > 0))
		task.slack = tiny;
	task.zero_limit = zero_limit(rule);
	task.zero_limit_bits = zero_limit_bits(task.zero_limit, dtype);
	return task;
}

int compare_cuda_launch(struct compare_cuda *compare, const void *reference, const void *ground_truth, enum dtype dtype,
                        int64_t elements, struct rule rule, cudaStream_t stream, struct err *err)
{
	struct task task = task_of(compare, reference, ground_truth, dtype, elements, rule);
	uint32_t pieces = task.plan.long_pieces + task.plan.short_pieces + task.plan.rest_pieces;
	uint32_t blocks = pieces < (uint32_t)compare->blocks[dtype] ? pieces : (uint32_t)compare->blocks[dtype];

	kernels[dtype]<<<blocks > 0 ? blocks : 1, THREADS, 0, stream>>>(task);
	return cuda_check(cudaGetLastError(), "launching the comparison", err);
}

/* At most 3 short pieces a block, 2 long ones (and as many short as are left of them), 1 of the rest. */
enum { MOST_PIECES = 8 };

static int allocate(struct compare_cuda *compare, size_t blocks, struct err *err)
{
	size_t sums = blocks * MOST_PIECES * SUMS * sizeof(double), places = blocks * METRICS_WORST;

	if (CUDA_CHECK(cudaMalloc(&compare->partial_sums, sums), err) != 0 ||
	    CUDA_CHECK(cudaMalloc(&compare->candidates, places * sizeof(struct place)), err) != 0 ||
	    CUDA_CHECK(cudaMalloc(&compare->board, sizeof *compare->board), err) != 0 ||
	    CUDA_CHECK(cudaMemset(compare->board, 0, sizeof *compare->board), err) != 0)
		return -1;
	/* Unified addressing: the device writes to the host's address. */
	return CUDA_CHECK(cudaHostAlloc(&compare->sums, sizeof *compare->sums, cudaHostAllocMapped), err);
}

int compare_cuda_open(struct compare_cuda *compare, struct err *err)
{
	int device = 0, multiprocessors = 0, most = 0;

	memset(compare, 0, sizeof *compare);
	if (CUDA_CHECK(cudaGetDevice(&device), err) != 0 ||
	    CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), err) != 0)
		return -1;
	for (int d = 0; d < DTYPE_COUNT; d++) {
		int each = 0;

		if (CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernels[d], THREADS, 0), err) != 0)
			return -1;
		compare->blocks[d] = multiprocessors * (each > 0 ? each : 1);
		most = compare->blocks[d] > most ? compare->blocks[d] : most;
	}
	if (allocate(compare, (size_t)most, err) == 0)
		return 0;
	compare_cuda_close(compare);
	return -1;
}

void compare_cuda_close(struct compare_cuda *compare)
{
	cudaFree(compare->partial_sums);
	cudaFree(compare->candidates);
	cudaFree(compare->board);
	cudaFreeHost(compare->sums);
	memset(compare, 0, sizeof *compare);
}
