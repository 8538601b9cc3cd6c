/* compare_exact - declares the structs that all parts of kernels/core/compare_tensors.cu use (task, plan, shared
 * memory of a block), and applies the tolerance rule to single elements in double. */
#ifndef REFTEST_KERNELS_CORE_COMPARE_EXACT_CUH
#define REFTEST_KERNELS_CORE_COMPARE_EXACT_CUH

#include "kernels/core/compare_cuda.h"

#include <float.h>
#include <math.h>

#include "kernels/core/compare_by_dtype.cuh"

enum {
	THREADS = 256,
	WARPS = THREADS / 32, /* at least SUMS + 2: in tell_all, SUMS warps add up the sums, and two do other work */
	BLOCKS = 2,           /* number of blocks per multiprocessor; with more blocks, too few registers would be left
			       * for outstanding loads */
	TERMS = 64,           /* number of elements of a chunk that a thread sums in float */
	AHEAD = 4,            /* number of packs whose loads are outstanding while one pack is processed */
	MOST_BLOCKS = 2 * THREADS,
	LISTED = 1024,        /* length of shared.list, whose elements are runs (compare_worst.cuh) */
};

/* An upper bound of the relative error of a score, |r - g| / bound, that is computed in float. The relative errors of
 * |r - g|, of the bound, and of the bound's reciprocal are each at most 2^-23. */
static constexpr float score_error = 0x1p-20f;

/* The range of sums of squares for which float is accurate enough: if the sums of squares of a thread's elements are in
 * this range, no float in the thread's results overflows or loses precision as a subnormal. */
static constexpr float squares_least = 1e-30f, squares_greatest = 1e37f;

/* The index and the score of an element; `key` is the score as an integer. Of two elements, the worse one has the
 * greater key or, if the keys are equal, the lower index. */
struct place {
	uint64_t key; /* 0: no element, or a score of 0; otherwise 1 + the bits of the score as a double */
	int64_t index;
};

/* A chunk and its peak (its largest score) in one integer. The upper 32 bits are 1 + the bits of the peak as a float;
 * the lower 32 bits are the complement of the chunk's number. Worse chunks have greater integers. 0 means no chunk. */
typedef uint64_t chunk_peak;

/* The key of an element that is NaN in the reference or in the truth is key_nan, which is greater than every other key.
 * The peak of a chunk with such an element has the bits peak_nan, which are greater than the bits of every other
 * peak. */
static constexpr uint32_t peak_nan = 0x7fffffff;
static constexpr uint64_t key_nan = UINT64_MAX;

enum sum { SUM_ABS, SUM_REL, SUM_SQ, SUM_DOT, SUM_REFERENCE, SUM_TRUTH, SUMS };
enum count { MISSES, ZERO_HITS, ODD, /* ODD: pairs in which an element is not finite */
	     UNMATCHED, NAN_REFERENCE, NAN_TRUTH, INF_REFERENCE, INF_TRUTH, COUNTS };

/* The counters and maxima that the blocks of a launch update in global memory. All counters and maxima are zero between
 * launches. */
struct compare_board {
	uint32_t pieces;                     /* number of pieces that blocks have reserved, not counting the first piece
					      * of each block */
	uint32_t finished;                   /* number of blocks that have stored all their results */
	unsigned long long max_abs, max_rel; /* the bit patterns of doubles */
	unsigned long long count[COUNTS];
};

/* The division of a tensor into pieces, which consist of batches. A batch has one chunk for each warp of a block. The
 * first `long_pieces` pieces are long: they have `long_batches` batches each, and the first `longer` of them have one
 * batch more. The short pieces that follow have one batch each. */
struct plan {
	int64_t batches, long_batches;
	uint32_t long_pieces, longer, short_pieces;
};

struct task {
	const void *reference, *truth;
	int64_t elements;
	struct plan plan;
	double atol, rtol;
	bool fast;                /* whether the rule and the addresses allow the fast path */
	float atol_float, rtol_float;
	float zero_limit;         /* an output of 0 passes if the magnitude of the truth is at most this */
	uint32_t zero_limit_bits; /* the bits of `zero_limit`, rounded down to a 16-bit dtype */
	struct compare_board *board;
	chunk_peak *candidates; /* [blocks][METRICS_WORST] */
	double *sums;             /* [SUMS][pieces] */
	struct compare_sums *out;
};

/* A chunk is the part of a tensor that a warp processes at a time. Each thread of the warp processes `packs` packs of
 * 16 bytes. */
template <enum dtype D> struct chunk {
	static constexpr int lanes = form<D>::lanes > 0 ? form<D>::lanes : 1;
	static constexpr int packs = TERMS / lanes > AHEAD ? TERMS / lanes : AHEAD;
	static constexpr int length = packs * lanes * 32; /* number of elements */
};

/* Returns true if the chunk that starts with element `first` is processed on the fast path. */
template <enum dtype D> static __device__ __forceinline__ bool is_fast(const struct task &task, int64_t first)
{
	return form<D>::lanes > 0 && task.fast && first + chunk<D>::length <= task.elements;
}

/* --- the greatest of many ----------------------------------------------------------------------------------------- */

/* Returns the largest of the values that the lanes of a warp pass as `mine`. */
static __device__ __forceinline__ uint64_t greatest(uint64_t mine)
{
	uint32_t upper = __reduce_max_sync(~0u, (uint32_t)(mine >> 32));
	uint32_t lower = __reduce_max_sync(~0u, (uint32_t)(mine >> 32) == upper ? (uint32_t)mine : 0);

	return (uint64_t)upper << 32 | lower;
}

/* `peaks` contains five chunks of each warp. Writes the five worst of all these chunks to out[0 … 4], the worst first.
 * All threads of the block call this function. Thread first + i ranks the chunk peaks[i]: it counts the elements of
 * `peaks` that are greater than peaks[i]. Two elements can be equal only if both are 0. The result is visible to other
 * threads after a barrier. */
static __device__ __forceinline__ void rank_peaks(const chunk_peak *peaks, chunk_peak *out, int first)
{
	int mine = (int)threadIdx.x - first, rank = 0;

	if (mine < 0 || mine >= WARPS * METRICS_WORST)
		return;
#pragma unroll 8
	for (int i = 0; i < WARPS * METRICS_WORST; i++)
		rank += (peaks[i] > peaks[mine]) | ((peaks[i] == peaks[mine]) & (i < mine));
	if (rank < METRICS_WORST)
		out[rank] = peaks[mine];
}

/* --- one element, exactly ----------------------------------------------------------------------------------------- */

/* The shared memory of a block. Some arrays have one element per thread. The fast path updates these arrays at most
 * once per chunk. */
struct shared {
	double sum[SUMS][THREADS]; /* sums of the current piece */
	double max_abs[THREADS], max_rel[THREADS];
	uint32_t count[COUNTS][THREADS];
	/* The five worst chunks of each warp, and those of the block. */
	chunk_peak peaks[METRICS_WORST * WARPS], chunks[METRICS_WORST];
	struct place warp_worst[2][WARPS], places[THREADS];
	int64_t worst[METRICS_WORST]; /* indices of the worst elements in the result */
	uint32_t listed;
	uint16_t list[LISTED];
	uint32_t warp_count[COUNTS][WARPS];
	double warp_max_abs[WARPS], warp_max_rel[WARPS];
	uint32_t next; /* number of the block's next piece */
	bool last;
};

static __device__ __forceinline__ void count(struct shared *shared, enum count what, uint32_t more)
{
	shared->count[what][threadIdx.x] += more;
}

/* A pair of elements as doubles. The rule is evaluated as on the CPU, without contraction into fused multiply-add. */
struct pair {
	double r, g, diff, bound; /* diff: |r - g|; for int64, computed with integers, because a double
				   * cannot represent all of them */
};

template <enum dtype D> static __device__ __forceinline__ struct pair pair_at(const struct task &task, int64_t index)
{
	struct pair p;

	p.r = element(task.reference, D, index);
	p.g = element(task.truth, D, index);
	p.diff = p.r == p.g ? 0 : fabs(__dsub_rn(p.r, p.g));
	p.bound = __dadd_rn(task.atol, __dmul_rn(task.rtol, fabs(p.g)));
	if (D == DTYPE_INT64) {
		int64_t a = ((const int64_t *)task.reference)[index], b = ((const int64_t *)task.truth)[index];

		p.diff = (double)(a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a);
	}
	return p;
}

static __device__ __forceinline__ bool is_finite_pair(struct pair p)
{
	return isfinite(p.r) && isfinite(p.g);
}

/* Returns the score of a pair, diff / bound. The score is above 1 if and only if the element is a miss: if diff >
 * bound, the score stays above 1 when it is rounded to double. The score of an unmatched infinity is infinity. */
static __device__ __forceinline__ double score_of(struct pair p)
{
	if (p.diff == 0)
		return 0;
	if (!is_finite_pair(p) || isinf(p.diff))
		return INFINITY;
	return __ddiv_rn(p.diff, p.bound);
}

static __device__ __forceinline__ uint64_t key_of(struct pair p)
{
	if (p.diff == 0)
		return 0;
	return isnan(p.diff) ? key_nan : (uint64_t)__double_as_longlong(score_of(p)) + 1;
}

/* Returns the score of a pair as the bits of a float, or peak_nan. */
static __device__ __forceinline__ uint32_t peak_of(struct pair p)
{
	if (isnan(p.diff))
		return peak_nan;
	double score = score_of(p);
	float peak = (float)score;

	return __float_as_uint(score > 1 ? fmaxf(peak, 1 + 0x1p-23f) : peak);
}

static __device__ __forceinline__ void count_odd(struct shared *shared, struct pair p)
{
	bool matched = p.r == p.g;

	count(shared, ODD, 1);
	count(shared, NAN_REFERENCE, isnan(p.r) != 0);
	count(shared, NAN_TRUTH, isnan(p.g) != 0);
	count(shared, INF_REFERENCE, isinf(p.r) != 0);
	count(shared, INF_TRUTH, isinf(p.g) != 0);
	count(shared, UNMATCHED, !matched);
	count(shared, MISSES, !matched);
}

static __device__ __forceinline__ void add_finite(struct shared *shared, struct pair p)
{
	const double relative = p.diff / fmax(fabs(p.g), 1e-8);
	const double term[SUMS] = {p.diff, relative, p.diff * p.diff, p.r * p.g, p.r * p.r, p.g * p.g};
	int thread = (int)threadIdx.x;

#pragma unroll
	for (int s = 0; s < SUMS; s++)
		shared->sum[s][thread] += term[s];
	shared->max_abs[thread] = fmax(shared->max_abs[thread], p.diff);
	shared->max_rel[thread] = fmax(shared->max_rel[thread], relative);
	count(shared, MISSES, !(p.diff <= p.bound));
}

/* Loads up to AT_ONCE pairs, with overlapping loads. The pairs are the elements first, first + step, … below `end`.
 * Returns the number of loaded pairs. */
enum { AT_ONCE = 8 };
template <enum dtype D>
static __device__ __forceinline__ int load_pairs(const struct task &task, int64_t first, int step, int64_t end,
                                                 struct pair *pairs)
{
	int count = 0;

#pragma unroll
	for (int i = 0; i < AT_ONCE; i++) {
		pairs[i] = pair_at<D>(task, first + i * step < end ? first + i * step : first);
		count += first + i * step < end;
	}
	return count;
}

static __device__ __forceinline__ void examine(struct shared *shared, struct pair p)
{
	if (is_finite_pair(p))
		add_finite(shared, p);
	else
		count_odd(shared, p);
}

/* Processes a chunk in double. This function is for chunks that are not on the fast path: all chunks if a tensor is
 * unaligned, if float cannot represent all values of the dtype, or if is_plain rejects the rule; otherwise, only an
 * incomplete last chunk. Returns the largest score that this thread found. */
template <enum dtype D>
static __device__ __noinline__ uint32_t examine_chunk(const struct task &task, struct shared *shared, int64_t first)
{
	int64_t left = task.elements - first, end = first + (left < chunk<D>::length ? left : chunk<D>::length);
	uint32_t peak = 0;

	for (int64_t at = first + threadIdx.x % 32; at < end; at += AT_ONCE * 32) {
		struct pair pairs[AT_ONCE];
		int count_here = load_pairs<D>(task, at, 32, end, pairs);

#pragma unroll 1
		for (int i = 0; i < count_here; i++) {
			examine(shared, pairs[i]);
			count(shared, ZERO_HITS, isfinite(pairs[i].g) && fabs(pairs[i].g) <= pairs[i].bound);
			peak = max(peak, peak_of(pairs[i]));
		}
	}
	return peak;
}

/* Processes some packs of this thread again, in double. Bit k of `again` selects pack k of the chunk. `strange` is true
 * if float is too inaccurate for the sums of this thread's elements (is_in_range). The function then adds all results
 * of these packs except the zero hits, which the caller counts. Otherwise, it adds only the misses. `first` is the
 * first element that this thread processes in the chunk. Returns the largest score of the selected packs. */
template <enum dtype D>
static __device__ __noinline__ uint32_t examine_packs(const struct task &task, struct shared *shared, int64_t first,
                                                      uint32_t again, bool strange)
{
	uint32_t peak = 0;

	for (; again != 0; again &= again - 1) {
		int64_t at = first + (__ffs((int)again) - 1) * (32 * chunk<D>::lanes), end = at + chunk<D>::lanes;

		for (; at < end; at += AT_ONCE) {
			struct pair pairs[AT_ONCE];
			int count_here = load_pairs<D>(task, at, 1, end, pairs);

#pragma unroll 1
			for (int i = 0; i < count_here; i++) {
				if (strange)
					examine(shared, pairs[i]);
				else
					count(shared, MISSES, !(pairs[i].diff <= pairs[i].bound));
				peak = max(peak, peak_of(pairs[i]));
			}
		}
	}
	return peak;
}

#endif
