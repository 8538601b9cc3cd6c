/* compare_tensors - compares two tensors on a GPU in one pass at memory bandwidth.
 *
 * At memory bandwidth, there is time for about 25 instructions per element. Elements are therefore processed in float,
 * in packs of 16 bytes. If float is not accurate enough, elements are processed again in double, as on the CPU
 * (examine_packs). If a thread's elements of a chunk include a NaN, an infinity, or squares outside of float's range,
 * the thread recomputes all its results for the chunk. If |r - g| of an element is very near the element's bound, the
 * thread recounts only the misses of the pack that contains the element.
 *
 * Worst elements. If every element were compared with a list of the worst elements, the time would depend on the data:
 * with ties, random data or slowly growing errors, the list changes often. Instead, the tensor is divided into chunks
 * of a few thousand consecutive elements, and only the largest score of each chunk, its peak, is kept. (A score is |r -
 * g| / bound.) A warp keeps the five chunks with the highest peaks; if peaks are equal, it keeps the earlier chunk. The
 * five worst elements of the tensor are in the five chunks with the highest peaks, because each of these chunks has an
 * element that is worse than all elements of the remaining chunks. At the end, the last block reads only these five
 * chunks again. Because peaks are floats, elements whose scores differ by less than `score_error` may be ranked in the
 * wrong order.
 *
 * Sums. The tensor is divided into pieces. The division depends only on the tensor's length and dtype, and on the
 * number of blocks that the GPU can run at the same time. A block that finishes a piece starts the next free piece,
 * because some multiprocessors read a fifth faster than others. Long pieces are processed first and short pieces last,
 * so that all blocks end at almost the same time. A thread sums its elements of a chunk in float, and adds the sums of
 * its chunks in double. At the end of a piece, the block adds up the sums of its threads. The last block to finish adds
 * up the sums of all pieces. All additions have a fixed order, so every run on the same GPU gives the same bits. The
 * last block writes the result directly to pinned host memory. A comparison is a single launch, without memset or copy.
 *
 * Rejected alternatives: per-warp atomics on global sums (they cost 30 us at 2^26 elements, and every run adds in a
 * different order); a second kernel for the reduction; the same number of elements for every block (the slowest
 * multiprocessor took 15 % longer than the mean); cp.async into shared memory (no faster than registers). */
#include "kernels/core/compare_cuda.h"

#include <cuda/atomic>
#include <math.h>

#include "kernels/core/compare_exact.cuh"
#include "kernels/core/compare_by_dtype.cuh"
#include "kernels/core/compare_worst.cuh"

/* --- the fast path ------------------------------------------------------------------------------------------------ */

/* Counts the elements that would pass with r = 0: those with |g| <= zero_limit. */
template <enum dtype D> struct zero_count {
	uint32_t hits;

	__device__ __forceinline__ void clear()
	{
		hits = 0;
	}
	__device__ __forceinline__ void see(const uint4 &, const float *g, const struct task &task)
	{
#pragma unroll
		for (int i = 0; i < form<D>::lanes; i++)
			hits += fabsf(g[i]) <= task.zero_limit;
	}
	__device__ __forceinline__ uint32_t count() const
	{
		return hits;
	}
};

/* Compares and counts two 16-bit floats at a time, as float16. This is correct for bfloat16, too: in both dtypes, the
 * larger of two non-negative numbers has the larger bit pattern. `limit` is below the bit pattern of float16's
 * infinity. A bfloat16 number whose bits are a NaN in float16 is therefore above the limit, and the comparison
 * correctly does not count it. The counts are also float16 numbers, which represent all integers up to 2048. */
struct zero_count_pairs {
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
template <> struct zero_count<DTYPE_BFLOAT16> : zero_count_pairs {
};
template <> struct zero_count<DTYPE_FLOAT16> : zero_count_pairs {
};

static __device__ __forceinline__ float reciprocal(float x) /* the error is at most one ulp; the result is infinity if x
							     * < 2^-126, and 0 if x > 2^126 */
{
	float y;

	asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* The results of one thread for its share of a chunk. */
template <enum dtype D> struct share {
	float sum[SUMS], max_abs, max_rel, peak;
	uint32_t misses;
	struct zero_count<D> zeros;
	/* Bit k is set if float is too inaccurate to count the misses of pack k. `peak` and `misses` then do not
	 * include pack k. */
	uint32_t unsure;
	uint32_t bits_r, bits_g; /* the bitwise OR of all words of r, and of g */

	__device__ __forceinline__ void clear()
	{
#pragma unroll
		for (int s = 0; s < SUMS; s++)
			sum[s] = 0;
		max_abs = max_rel = peak = 0;
		misses = unsure = bits_r = bits_g = 0;
		zeros.clear();
	}
};

/* Returns the number of scores above 1. Returns -1 if a score is infinite, or so near 1 that its float does not show
 * whether the exact score is above 1. */
template <int lanes> static __device__ __forceinline__ int misses_among(const float *score, float peak)
{
	int clear = 0, maybe = 0;

#pragma unroll
	for (int i = 0; i < lanes; i++) {
		clear += score[i] > 1 + score_error;
		maybe += score[i] > 1 - score_error;
	}
	return clear == maybe && peak < INFINITY ? clear : -1;
}

/* Adds the results of pack k. fmaxf ignores a NaN score. This is correct for a score of 0 / 0, which counts as 0. For
 * any other NaN score, a sum of squares is NaN, too, and is_in_range returns false. */
template <enum dtype D>
static __device__ __forceinline__ void take(struct share<D> *to, int k, const struct task &task, const uint4 &raw_r,
                                            const uint4 &raw_g)
{
	constexpr int lanes = form<D>::lanes;
	float r[lanes], g[lanes], score[lanes], peak = 0;

	form<D>::widen(raw_r, r);
	form<D>::widen(raw_g, g);
#pragma unroll
	for (int i = 0; i < lanes; i++) {
		float d = fabsf(r[i] - g[i]), size = fabsf(g[i]), relative = d * reciprocal(fmaxf(size, 1e-8f));

		score[i] = d * reciprocal(fmaf(task.rtol_float, size, task.atol_float));
		to->sum[SUM_ABS] += d;
		to->sum[SUM_REL] += relative;
		to->sum[SUM_SQ] += d * d;
		to->sum[SUM_DOT] += r[i] * g[i];
		to->sum[SUM_REFERENCE] += r[i] * r[i];
		to->sum[SUM_TRUTH] += g[i] * g[i];
		to->max_abs = fmaxf(to->max_abs, d);
		to->max_rel = fmaxf(to->max_rel, relative);
		peak = fmaxf(peak, score[i]);
	}
	to->zeros.see(raw_g, g, task);
	to->bits_r |= raw_r.x | raw_r.y | raw_r.z | raw_r.w;
	to->bits_g |= raw_g.x | raw_g.y | raw_g.z | raw_g.w;
	if (peak > 1 - score_error) {
		int misses = misses_among<lanes>(score, peak);

		if (misses < 0) {
			to->unsure |= 1u << k;
			return;
		}
		to->misses += (uint32_t)misses;
	}
	to->peak = fmaxf(to->peak, peak);
}

/* Returns true if float is accurate enough for a group of elements. `squares` is the sum of the squares of these
 * elements, and `bits` is the bitwise OR of their words. Returns false if `squares` is NaN. */
template <enum dtype D> static __device__ __forceinline__ bool is_in_range(float squares, uint32_t bits)
{
	return squares < squares_greatest && (squares >= squares_least || (bits & form<D>::magnitude) == 0);
}

/* The packs that a thread has requested from memory but not processed yet. */
struct coming {
	uint4 r[AHEAD], g[AHEAD];
};

static __device__ __forceinline__ void ask(struct coming *coming, int slot, const uint4 *r, const uint4 *g)
{
	coming->r[slot] = __ldcs(r);
	coming->g[slot] = __ldcs(g);
}

/* The addresses of the first packs that this thread processes in the chunk that starts with element `first`. */
template <enum dtype D> struct packs {
	const uint4 *r, *g;

	__device__ __forceinline__ packs(const struct task &task, int64_t first)
	{
		int64_t pack = first / form<D>::lanes + threadIdx.x % 32;

		r = (const uint4 *)task.reference + pack;
		g = (const uint4 *)task.truth + pack;
	}
};

/* Processes this thread's packs of a chunk. While the thread processes a pack, the loads of the next AHEAD packs are
 * outstanding. At the end of the chunk, these are the first packs of the next chunk. */
template <enum dtype D>
static __device__ __forceinline__ void take_share(const struct task &task, struct share<D> *share, struct coming *coming,
                                                  const struct packs<D> &mine, const struct packs<D> &next)
{
	constexpr int packs = chunk<D>::packs;

	share->clear();
#pragma unroll
	for (int k = 0; k < packs; k++) {
		uint4 raw_r = coming->r[k % AHEAD], raw_g = coming->g[k % AHEAD];

		if (k + AHEAD < packs)
			ask(coming, k % AHEAD, mine.r + (k + AHEAD) * 32, mine.g + (k + AHEAD) * 32);
		else
			ask(coming, k % AHEAD, next.r + (k + AHEAD - packs) * 32, next.g + (k + AHEAD - packs) * 32);
		take<D>(share, k, task, raw_r, raw_g);
	}
}

/* --- chunks and pieces -------------------------------------------------------------------------------------------- */

/* The state that a thread carries from one chunk to the next. */
struct course {
	struct coming coming;
	float max_abs, max_rel;
	uint32_t misses, zero_hits;
	chunk_peak worst; /* the warp's chunks with the highest peaks, in lanes 0 … 4 */
	uint32_t fifth;   /* upper 32 bits of the smallest `worst` in these lanes */
};

/* Adds a chunk to the warp's list of the five worst chunks if the chunk's peak is high enough; `peak` is the largest
 * score that this lane found. If the chunk's peak equals the fifth peak in the list, the list stays unchanged: the
 * chunk in the list is the earlier one. This function must not call other functions, because a call would wait for all
 * outstanding loads. */
static __device__ __forceinline__ void weigh_chunk(struct course *course, uint32_t peak, int64_t chunk)
{
	uint32_t key = __reduce_max_sync(~0u, peak) + 1;
	int lane = (int)(threadIdx.x % 32);

	if (key <= course->fifth)
		return;
	chunk_peak mine = (uint64_t)key << 32 | (uint32_t)~chunk;
	int rank = __popc(__ballot_sync(~0u, lane < METRICS_WORST && course->worst > mine));
	chunk_peak above = __shfl_up_sync(~0u, course->worst, 1);

	if (lane >= rank && lane < METRICS_WORST)
		course->worst = lane == rank ? mine : above;
	course->fifth = (uint32_t)(__shfl_sync(~0u, course->worst, METRICS_WORST - 1) >> 32);
}

/* Adds the results of one chunk to the results of the thread. Returns the bits of the largest score that this thread
 * found in the chunk. */
template <enum dtype D>
static __device__ __forceinline__ uint32_t keep_share(struct shared *shared, struct course *course,
                                                      const struct share<D> &share)
{
	course->misses += share.misses;
	course->max_abs = fmaxf(course->max_abs, share.max_abs);
	course->max_rel = fmaxf(course->max_rel, share.max_rel);
#pragma unroll
	for (int s = 0; s < SUMS; s++)
		shared->sum[s][threadIdx.x] += (double)share.sum[s];
	return __float_as_uint(share.peak);
}

/* Processes a chunk on the fast path, and starts to load the chunk `next`. Returns the largest score that this thread
 * found. */
template <enum dtype D>
static __device__ __forceinline__ uint32_t take_chunk(const struct task &task, struct shared *shared,
                                                      struct course *course, int64_t first, int64_t next)
{
	struct packs<D> mine(task, first), following(task, next);
	int64_t first_mine = first + threadIdx.x % 32 * form<D>::lanes;
	struct share<D> share;
	uint32_t peak = 0;

	take_share<D>(task, &share, &course->coming, mine, following);
	course->zero_hits += share.zeros.count();
	bool strange = !is_in_range<D>(share.sum[SUM_REFERENCE], share.bits_r) ||
	               !is_in_range<D>(share.sum[SUM_TRUTH], share.bits_g);

	if (!strange)
		peak = keep_share<D>(shared, course, share);
	if (strange || share.unsure != 0)
		peak = max(peak, examine_packs<D>(task, shared, first_mine,
		                                  strange ? ~0u >> (32 - chunk<D>::packs) : share.unsure, strange));
	__syncwarp();
	return peak;
}

/* A piece is a range of batches. In each batch, every warp of the block processes one chunk. */
struct piece {
	int64_t first, batches;
};

static __device__ __forceinline__ uint32_t pieces_of(const struct plan &plan)
{
	return plan.long_pieces + plan.short_pieces;
}

static __device__ __forceinline__ struct piece piece_at(const struct plan &plan, uint32_t number)
{
	if (number < plan.longer)
		return {number * (plan.long_batches + 1), plan.long_batches + 1};
	if (number < plan.long_pieces)
		return {number * plan.long_batches + plan.longer, plan.long_batches};
	return {plan.batches - (pieces_of(plan) - number), 1};
}

/* Returns the index of the chunk that this warp processes in a batch. */
static __device__ __forceinline__ int64_t chunk_in(int64_t batch)
{
	return batch * WARPS + threadIdx.x / 32;
}

/* Processes the chunks of a piece; `after` is the first batch of the block's next piece. Processing a chunk starts the
 * loads of the next chunk. If the next chunk is not on the fast path, these loads read the current chunk again, and
 * their results are not used. */
template <enum dtype D>
static __device__ __forceinline__ void take_piece(const struct task &task, struct shared *shared, struct course *course,
                                                  struct piece piece, int64_t after)
{
	for (int64_t b = 0; b < piece.batches; b++) {
		int64_t number = chunk_in(piece.first + b), first = number * chunk<D>::length;
		int64_t next = chunk_in(b + 1 < piece.batches ? piece.first + b + 1 : after) * chunk<D>::length;
		uint32_t peak = 0;

		if (first >= task.elements)
			continue;
		if constexpr (form<D>::lanes > 0) {
			if (is_fast<D>(task, first))
				peak = take_chunk<D>(task, shared, course, first, is_fast<D>(task, next) ? next : first);
			else
				peak = examine_chunk<D>(task, shared, first);
		} else {
			peak = examine_chunk<D>(task, shared, first);
		}
		weigh_chunk(course, peak, number);
	}
}

/* Returns the sum of the values by_thread[0 … THREADS - 1], added in a fixed order. All lanes of one warp call this
 * function. */
static __device__ double add_threads(const double *by_thread)
{
	double sum = 0;

	for (int w = 0; w < WARPS; w++)
		sum += by_thread[w * 32 + (int)(threadIdx.x % 32)];
	for (int o = 16; o > 0; o /= 2)
		sum += __shfl_xor_sync(~0u, sum, o);
	return sum;
}

/* Adds up the sums of the block's threads and stores them as the sums of the piece. The block must pass a barrier
 * before this call. */
static __device__ __forceinline__ void tell_sums(const struct task &task, uint32_t number, const struct shared *shared)
{
	int lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32);

	if (warp >= SUMS)
		return;
	double sum = add_threads(shared->sum[warp]);

	if (lane == 0)
		task.sums[(int64_t)warp * pieces_of(task.plan) + number] = sum;
}

/* Stores the sums of a finished piece and resets them. Reserves another piece for the block, and returns the number of
 * the piece. */
static __device__ __forceinline__ uint32_t close_piece(const struct task &task, uint32_t number, struct shared *shared)
{
	__syncthreads();
	if (threadIdx.x == THREADS - 1)
		shared->next = gridDim.x + atomicAdd(&task.board->pieces, 1);
	tell_sums(task, number, shared);
	__syncthreads();
	for (int s = 0; s < SUMS; s++)
		shared->sum[s][threadIdx.x] = 0;
	return shared->next;
}

/* --- the end of a block ------------------------------------------------------------------------------------------- */

/* Stores the counts, maxima and worst chunks of a warp in shared memory. Compares the maxima as integers: the bit
 * patterns of non-negative doubles have the same order as the doubles. */
static __device__ void tell_block(struct shared *shared, struct course course)
{
	int lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32);
	double max_abs = fmax(shared->max_abs[threadIdx.x], (double)course.max_abs);
	double max_rel = fmax(shared->max_rel[threadIdx.x], (double)course.max_rel);

	count(shared, MISSES, course.misses);
	count(shared, ZERO_HITS, course.zero_hits);
	max_abs = __longlong_as_double((long long)greatest((uint64_t)__double_as_longlong(max_abs)));
	max_rel = __longlong_as_double((long long)greatest((uint64_t)__double_as_longlong(max_rel)));
#pragma unroll
	for (int c = 0; c < COUNTS; c++) {
		uint32_t sum = __reduce_add_sync(~0u, shared->count[c][threadIdx.x]);

		if (lane == 0)
			shared->warp_count[c][warp] = sum;
	}
	if (lane == 0) {
		shared->warp_max_abs[warp] = max_abs;
		shared->warp_max_rel[warp] = max_rel;
	}
	if (lane < METRICS_WORST)
		shared->peaks[warp * METRICS_WORST + lane] = course.worst;
}

/* Adds the block's counts and maxima to the compare_board, which is shared by all blocks. One warp calls this
 * function. */
static __device__ __forceinline__ void tell_board(struct compare_board *board, const struct shared *shared)
{
	int lane = (int)(threadIdx.x % 32);

	if (lane < COUNTS) {
		unsigned long long sum = 0;

		for (int w = 0; w < WARPS; w++)
			sum += shared->warp_count[lane][w];
		if (sum != 0)
			atomicAdd(&board->count[lane], sum);
	}
	if (lane == COUNTS || lane == COUNTS + 1) {
		const double *found = lane == COUNTS ? shared->warp_max_abs : shared->warp_max_rel;
		double most = 0;

		for (int w = 0; w < WARPS; w++)
			most = fmax(most, found[w]);
		if (most > 0)
			atomicMax(lane == COUNTS ? &board->max_abs : &board->max_rel,
			          (unsigned long long)__double_as_longlong(most));
	}
}

/* Stores the block's last sums and all its other results in global memory. Returns true only in the last block that
 * calls this function. That block may then read the results of all other blocks. */
static __device__ bool tell_all(const struct task &task, uint32_t number, struct shared *shared, struct course course)
{
	static_assert(WARPS >= SUMS + 2 && 2 * 32 >= WARPS * METRICS_WORST, "the sums leave two warps free");
	tell_block(shared, course);
	__syncthreads();
	tell_sums(task, number, shared);
	if (threadIdx.x / 32 == WARPS - 1)
		tell_board(task.board, shared);
	rank_peaks(shared->peaks, task.candidates + blockIdx.x * METRICS_WORST, SUMS * 32);
	__syncthreads();
	if (threadIdx.x == 0) {
		cuda::atomic_ref<uint32_t, cuda::thread_scope_device> finished(task.board->finished);

		shared->last = finished.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
	}
	__syncthreads();
	return shared->last;
}

/* --- the last block ----------------------------------------------------------------------------------------------- */

/* Every piece has several sums. In the last block, warp s adds up sum number s of all pieces. Each of its 32 lanes
 * loads the sums of SUMS_AHEAD pieces before it adds up any of them. */
enum { SUMS_AHEAD = 25 }; /* 32 lanes load 800 sums: enough for three pieces in each of 264 blocks */

static __device__ __forceinline__ double sum_of(const struct task &task, uint32_t piece)
{
	uint32_t pieces = pieces_of(task.plan), warp = threadIdx.x / 32;

	return warp < SUMS && piece < pieces ? task.sums[(int64_t)warp * pieces + piece] : 0;
}

/* In the last block, warp s loads sum number s of the first SUMS_AHEAD * 32 pieces. The loads are issued early, so that
 * publish_sums does not wait for them when it adds up these sums. */
static __device__ __forceinline__ void load_sums(const struct task &task, double (&mine)[SUMS_AHEAD])
{
#pragma unroll
	for (int i = 0; i < SUMS_AHEAD; i++)
		mine[i] = sum_of(task, threadIdx.x % 32 + i * 32);
}

static __device__ __forceinline__ void publish_sums(const struct task &task, const double (&mine)[SUMS_AHEAD])
{
	uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	double sum = 0;

	static_assert(offsetof(struct compare_sums, norm_ground_truth) ==
	                  offsetof(struct compare_sums, sum_abs) + SUM_TRUTH * sizeof(double),
	              "sums stand in the order of enum sum");
#pragma unroll
	for (int i = 0; i < SUMS_AHEAD; i++)
		sum += mine[i];
	for (uint32_t p = SUMS_AHEAD * 32 + lane; p < pieces_of(task.plan); p += 32)
		sum += sum_of(task, p);
	for (int o = 16; o > 0; o /= 2)
		sum += __shfl_xor_sync(~0u, sum, o);
	if (lane == 0 && warp < SUMS)
		(&task.out->sum_abs)[warp] = sum;
}

/* Writes the remaining metrics to the result, and resets the board for the next launch. One thread calls this
 * function. */
static __device__ void publish_counts(const struct task &task)
{
	struct compare_board board = *task.board;
	struct compare_sums *out = task.out;

	*task.board = {};
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

template <enum dtype D> static __device__ __noinline__ void publish(const struct task &task, struct shared *shared)
{
	chunk_peak candidates[EACH];
	double sums[SUMS_AHEAD];

	load_candidates(task, candidates);
	load_sums(task, sums);
	find_chunks(shared, candidates);
	float least = least_score(shared);

	if constexpr (form<D>::lanes > 0) {
		struct worst_packs<D> packs;
		bool any = is_fast<D>(task, 0);
		uint32_t used = any ? load_packs<D>(task, shared, &packs) : 0;

		publish_sums(task, sums);
		if (any)
			list_packs<D>(task, shared, packs, used, least);
	} else {
		publish_sums(task, sums);
	}
	for (int c = 0; c < METRICS_WORST; c++)
		if (shared->chunks[c] > 0 && !is_fast<D>(task, chunk_first<D>(shared->chunks[c])))
			list_pairs<D>(task, shared, c, least);
	__syncthreads();
	int found = shared->listed * run<D>::length <= THREADS ? rank_elements<D>(task, shared)
	                                                       : pick_elements<D>(task, shared);

	if (found < METRICS_WORST)
		__syncthreads();
	if (threadIdx.x == 0)
		task.out->worst_count = found < METRICS_WORST ? fill_places<D>(task, shared, found) : found;
	if (threadIdx.x == THREADS - 1)
		publish_counts(task);
}

/* --- the kernel --------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ void shared_clear(struct shared *shared)
{
	int thread = (int)threadIdx.x;

	for (int s = 0; s < SUMS; s++)
		shared->sum[s][thread] = 0;
	for (int c = 0; c < COUNTS; c++)
		shared->count[c][thread] = 0;
	shared->max_abs[thread] = shared->max_rel[thread] = 0;
}

/* Requests the first packs of the block's first chunk. */
template <enum dtype D> static __device__ __forceinline__ void start(const struct task &task, struct coming *coming)
{
	int64_t first = chunk_in(piece_at(task.plan, blockIdx.x).first) * chunk<D>::length;

	if constexpr (form<D>::lanes > 0) {
		if (!is_fast<D>(task, first))
			return;
		struct packs<D> mine(task, first);

#pragma unroll
		for (int k = 0; k < AHEAD; k++)
			ask(coming, k, mine.r + k * 32, mine.g + k * 32);
	}
}

template <enum dtype D>
static __global__ void __launch_bounds__(THREADS, BLOCKS) compare_kernel(const __grid_constant__ struct task task)
{
	__shared__ struct shared shared;
	uint32_t number = blockIdx.x, pieces = pieces_of(task.plan);
	struct course course = {};

	start<D>(task, &course.coming);
	shared_clear(&shared);
	if (threadIdx.x == 0)
		shared.next = gridDim.x + atomicAdd(&task.board->pieces, 1);
	__syncthreads();
	uint32_t next = shared.next, last = number; /* last: the most recent piece of the block, whose sums are not
						     * stored yet */

	while (number < pieces) {
		take_piece<D>(task, &shared, &course, piece_at(task.plan, number),
		              next < pieces ? piece_at(task.plan, next).first : task.plan.batches);
		last = number;
		number = next;
		if (number < pieces)
			next = close_piece(task, last, &shared);
	}
	if (tell_all(task, last, &shared, course))
		publish<D>(task, &shared);
}

/* --- the host's side ---------------------------------------------------------------------------------------------- */

/* The kernels and their chunk lengths, by dtype. */
static const struct {
	void (*run)(struct task);
	int64_t chunk; /* number of elements in a chunk */
} kernels[DTYPE_COUNT] = {
    {compare_kernel<DTYPE_FLOAT32>, chunk<DTYPE_FLOAT32>::length},
    {compare_kernel<DTYPE_FLOAT16>, chunk<DTYPE_FLOAT16>::length},
    {compare_kernel<DTYPE_BFLOAT16>, chunk<DTYPE_BFLOAT16>::length},
    {compare_kernel<DTYPE_FLOAT8_E4M3FN>, chunk<DTYPE_FLOAT8_E4M3FN>::length},
    {compare_kernel<DTYPE_FLOAT8_E5M2>, chunk<DTYPE_FLOAT8_E5M2>::length},
    {compare_kernel<DTYPE_FLOAT4_E2M1>, chunk<DTYPE_FLOAT4_E2M1>::length},
    {compare_kernel<DTYPE_INT64>, chunk<DTYPE_INT64>::length},
    {compare_kernel<DTYPE_INT32>, chunk<DTYPE_INT32>::length},
    {compare_kernel<DTYPE_INT16>, chunk<DTYPE_INT16>::length},
    {compare_kernel<DTYPE_INT8>, chunk<DTYPE_INT8>::length},
    {compare_kernel<DTYPE_BOOL>, chunk<DTYPE_BOOL>::length},
    {compare_kernel<DTYPE_UINT8>, chunk<DTYPE_UINT8>::length},
    {compare_kernel<DTYPE_UINT32>, chunk<DTYPE_UINT32>::length},
    {compare_kernel<DTYPE_FLOAT64>, chunk<DTYPE_FLOAT64>::length},
    {compare_kernel<DTYPE_FLOAT8_E8M0FNU>, chunk<DTYPE_FLOAT8_E8M0FNU>::length},
};

/* Returns true if an element with r = 0 and |g| = `size` passes. */
static bool zero_passes(struct rule rule, double size)
{
	double share = rule.rtol * size; /* a separate variable, so that the product is rounded before the addition, as
					  * in all code that evaluates the rule */

	return size <= rule.atol + share;
}

/* Returns the largest float |g| for which an output of 0 passes. is_plain must accept the rule. The result is one of
 * the two floats next to atol / (1 - rtol): the rule is evaluated in double, and the rounding errors of double are far
 * smaller than the distance between two floats. */
static float zero_limit(struct rule rule)
{
	float limit = (float)(rule.atol / (1 - rule.rtol));

	while (limit > 0 && !zero_passes(rule, limit))
		limit = nextafterf(limit, 0);
	while (zero_passes(rule, nextafterf(limit, INFINITY)))
		limit = nextafterf(limit, INFINITY);
	return limit;
}

/* Rounds the result of zero_limit towards zero to a 16-bit dtype, and returns the bits. */
static uint32_t zero_limit_bits(float limit, enum dtype dtype)
{
	uint32_t bits = dtype == DTYPE_FLOAT16 ? f16_from_float(limit) : float_bits(limit) >> 16;

	if (dtype == DTYPE_FLOAT16 && (bits > 0x7bff || float_from_f16((uint16_t)bits) > limit))
		bits--;
	return bits;
}

/* Returns true if the fast path is accurate for `rule`. If it is not, every element is processed in double. */
static bool is_plain(struct rule rule)
{
	return (rule.atol == 0 || rule.atol >= 1e-30) && (rule.rtol == 0 || rule.rtol >= 1e-30) && rule.rtol <= 0.999 &&
	       rule.atol / (1 - rule.rtol) <= 1e30;
}

static bool is_aligned(const void *data)
{
	return (uintptr_t)data % 16 == 0;
}

/* Divides a tensor into pieces. If the tensor is large, each block has on average one long piece and two short
 * pieces. */
static struct plan plan_of(int64_t elements, int64_t chunk, int64_t blocks)
{
	struct plan plan = {};

	plan.batches = (elements + chunk * WARPS - 1) / (chunk * WARPS);
	int64_t shorts = plan.batches < 2 * blocks ? plan.batches : 2 * blocks, longs = plan.batches - shorts;

	plan.long_batches = longs / blocks;
	plan.longer = (uint32_t)(longs % blocks);
	plan.long_pieces = plan.long_batches > 0 ? (uint32_t)blocks : plan.longer;
	plan.short_pieces = (uint32_t)shorts;
	return plan;
}

static struct task task_of(struct compare_cuda *compare, const void *reference, const void *truth, enum dtype dtype,
                           int64_t elements, struct rule rule)
{
	struct task task;

	memset(&task, 0, sizeof task);
	task.reference = reference;
	task.truth = truth;
	task.elements = elements;
	task.plan = plan_of(elements, kernels[dtype].chunk, compare->blocks[dtype]);
	task.atol = rule.atol;
	task.rtol = rule.rtol;
	task.board = compare->board;
	task.candidates = compare->candidates;
	task.sums = compare->partial_sums;
	task.out = compare->sums;
	if (!is_plain(rule))
		return task;
	task.fast = is_aligned(reference) && is_aligned(truth);
	task.atol_float = (float)rule.atol;
	task.rtol_float = (float)rule.rtol;
	task.zero_limit = zero_limit(rule);
	task.zero_limit_bits = zero_limit_bits(task.zero_limit, dtype);
	return task;
}

int compare_cuda_launch(struct compare_cuda *compare, const void *reference, const void *ground_truth, enum dtype dtype,
                        int64_t elements, struct rule rule, cudaStream_t stream, struct err *err)
{
	struct task task = task_of(compare, reference, ground_truth, dtype, elements, rule);
	uint32_t pieces = task.plan.long_pieces + task.plan.short_pieces;
	uint32_t blocks = pieces < (uint32_t)compare->blocks[dtype] ? pieces : (uint32_t)compare->blocks[dtype];

	kernels[dtype].run<<<blocks > 0 ? blocks : 1, THREADS, 0, stream>>>(task);
	return cuda_check(cudaGetLastError(), "launching the comparison", err);
}

/* The largest number of pieces per block: one long piece and two short pieces. */
enum { MOST_PIECES = 3 };

static int allocate(struct compare_cuda *compare, size_t blocks, struct err *err)
{
	size_t sums = blocks * MOST_PIECES * SUMS * sizeof(double), places = blocks * METRICS_WORST;

	if (CUDA_CHECK(cudaMalloc(&compare->partial_sums, sums), err) != 0 ||
	    CUDA_CHECK(cudaMalloc(&compare->candidates, places * sizeof(chunk_peak)), err) != 0 ||
	    CUDA_CHECK(cudaMalloc(&compare->board, sizeof *compare->board), err) != 0 ||
	    CUDA_CHECK(cudaMemset(compare->board, 0, sizeof *compare->board), err) != 0)
		return -1;
	/* With unified addressing, the device uses the same address of pinned host memory as the host. */
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

		if (CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernels[d].run, THREADS, 0), err) != 0)
			return -1;
		compare->blocks[d] = multiprocessors * (each > 0 ? each : 1);
		if (compare->blocks[d] > MOST_BLOCKS)
			compare->blocks[d] = MOST_BLOCKS;
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
