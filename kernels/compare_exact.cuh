/* compare_exact - what all parts of kernels/compare.cu share: a comparison's task and how it is cut, what a block
 * keeps in shared memory, and single elements counted exactly, by the rule in double. */
#ifndef REFTEST_KERNELS_COMPARE_EXACT_CUH
#define REFTEST_KERNELS_COMPARE_EXACT_CUH

#include "kernels/compare_cuda.h"

#include <float.h>
#include <math.h>

#include "kernels/compare_form.cuh"

enum {
	THREADS = 256,
	WARPS = THREADS / 32, /* more than SUMS */
	BLOCKS = 2,           /* on a multiprocessor: more leave too few registers for what is on its way from memory */
	TERMS = 64,           /* elements of a chunk that a thread adds in float */
	AHEAD = 4,            /* packs on their way from memory while one is worked on */
	MOST_BLOCKS = 2 * THREADS,
	LISTED = 1024,        /* runs of elements that the last block can tell from the others in its worst chunks */
};

/* By how much a score in float can be wrong, and more: d, the bound and its reciprocal are each off by 2^-23 at most.
 */
static constexpr float score_error = 0x1p-20f;

/* Sums of squares in a thread's share of a chunk that float holds to all its bits, and everything else about it. */
static constexpr float squares_least = 1e-30f, squares_greatest = 1e37f;

/* An element with its score. Worse is the greater key, then the lower index. */
struct place {
	uint64_t key; /* 0: none, or a score of 0; else 1 + its bits as a double */
	int64_t index;
};

/* A chunk with its peak is one number: 1 + the peak's bits as a float, then the complement of the chunk's number, so
 * that worse is greater. 0: none. */
typedef uint64_t chunk_peak;

/* As scores, above infinity: a NaN on either side, which comes before all. */
static constexpr uint32_t peak_nan = 0x7fffffff;
static constexpr uint64_t key_nan = UINT64_MAX;

enum sum { SUM_ABS, SUM_REL, SUM_SQ, SUM_DOT, SUM_REFERENCE, SUM_TRUTH, SUMS };
enum count { MISSES, ZERO_HITS, ODD, /* ODD: pairs that are not both finite */
	     UNMATCHED, NAN_REFERENCE, NAN_TRUTH, INF_REFERENCE, INF_TRUTH, COUNTS };

/* What blocks tell each other. All zeros between launches. */
struct compare_board {
	uint32_t pieces;                     /* taken, beyond the first of each block */
	uint32_t finished;                   /* blocks that have told everything */
	unsigned long long max_abs, max_rel; /* as double bits */
	unsigned long long count[COUNTS];
};

/* How the elements are cut: batches of a chunk for each warp of a block; long pieces of several batches, the first
 * `longer` of them of one more, then short ones of one. */
struct plan {
	int64_t batches, long_batches;
	uint32_t long_pieces, longer, short_pieces;
};

struct task {
	const void *reference, *truth;
	int64_t elements;
	struct plan plan;
	double atol, rtol;
	bool fast;                /* the rule and the addresses suit the fast path */
	float atol_float, rtol_float;
	float zero_limit;         /* |g| up to here passes with r = 0 */
	uint32_t zero_limit_bits; /* the same as the greatest number of a 16-bit dtype not above it */
	struct compare_board *board;
	chunk_peak *candidates; /* METRICS_WORST of each block */
	double *sums;             /* [SUMS][pieces] */
	struct compare_sums *out;
};

/* A chunk is what a warp works on at a time: `packs` times 16 bytes by each thread. */
template <enum dtype D> struct chunk {
	static constexpr int lanes = form<D>::lanes > 0 ? form<D>::lanes : 1;
	static constexpr int packs = TERMS / lanes > AHEAD ? TERMS / lanes : AHEAD;
	static constexpr int length = packs * lanes * 32; /* elements */
};

/* Does the fast path take the chunk that begins with element `first`? */
template <enum dtype D> static __device__ __forceinline__ bool is_fast(const struct task &task, int64_t first)
{
	return form<D>::lanes > 0 && task.fast && first + chunk<D>::length <= task.elements;
}

/* --- the greatest of many ----------------------------------------------------------------------------------------- */

/* The greatest of the warp's numbers. */
static __device__ __forceinline__ uint64_t greatest(uint64_t mine)
{
	uint32_t upper = __reduce_max_sync(~0u, (uint32_t)(mine >> 32));
	uint32_t lower = __reduce_max_sync(~0u, (uint32_t)(mine >> 32) == upper ? (uint32_t)mine : 0);

	return (uint64_t)upper << 32 | lower;
}

/* By the block: the greatest five of all warps' five to out[0 … 4], greatest first. Each thread, from number `first` on,
 * counts what is greater than its own; no two are equal but for zeros. Other threads see it after a barrier. */
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

/* What a block keeps in shared memory. By thread: what the fast path does not touch, or only once in a chunk. */
struct shared {
	double sum[SUMS][THREADS]; /* of the piece under way */
	double max_abs[THREADS], max_rel[THREADS];
	uint32_t count[COUNTS][THREADS];
	chunk_peak peaks[METRICS_WORST * WARPS], chunks[METRICS_WORST]; /* by warp; the block's */
	struct place warp_worst[2][WARPS], places[THREADS];
	int64_t worst[METRICS_WORST]; /* elements that are published */
	uint32_t listed;
	uint16_t list[LISTED];
	uint32_t warp_count[COUNTS][WARPS];
	double warp_max_abs[WARPS], warp_max_rel[WARPS];
	uint32_t next; /* the piece after the one under way */
	bool last;
};

static __device__ __forceinline__ void count(struct shared *shared, enum count what, uint32_t more)
{
	shared->count[what][threadIdx.x] += more;
}

/* A pair of elements as doubles, by the rule as the CPU evaluates it: no contraction. */
struct pair {
	double r, g, diff, bound; /* diff: |r - g|, exact for int64, which doubles may not be */
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

/* diff / bound: above 1 exactly if the element misses, for no quotient of two doubles that is above 1 rounds to 1.
 * Infinity for what does not match at all. */
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

/* The same for peaks. */
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

/* Some pairs at once, so that memory is not waited for one by one: elements first, first + step … below `end`.
 * Returns how many. */
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

/* A chunk that the fast path does not take: unaligned, of a wide dtype, by an odd rule, or cut off by the tensor's
 * end. Returns this thread's peak. */
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

/* The packs of a thread's share that `again` has bits for: everything about them but for whether 0 would pass, if
 * they are `strange`, else whether they are misses. `first`: the first element of the share. Returns their peak. */
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
