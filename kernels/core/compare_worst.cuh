/* compare_worst - finds the five worst elements, in the last block of kernels/core/compare_tensors.cu. The last block
 * selects the five chunks with the highest peaks, reads these chunks again, lists the elements whose scores are at
 * least the lowest of these five peaks, and ranks the listed elements exactly.
 *
 * The last block runs this code once, while no other block runs. Other blocks therefore cannot hide the latency of
 * loads and of instruction fetches. For this reason, the code issues many loads together, and is short. */
#ifndef REFTEST_KERNELS_CORE_COMPARE_WORST_CUH
#define REFTEST_KERNELS_CORE_COMPARE_WORST_CUH

#include "kernels/core/compare_exact.cuh"

enum { EACH = MOST_BLOCKS / THREADS * METRICS_WORST };

/* Loads the worst chunks of some blocks to `mine`: five chunks per block, the worst first. Different threads load the
 * chunks of different blocks. */
static __device__ __forceinline__ void load_candidates(const struct task &task, chunk_peak (&mine)[EACH])
{
#pragma unroll
	for (int i = 0; i < EACH; i++) {
		uint32_t block = threadIdx.x + i / METRICS_WORST * THREADS;

		mine[i] = block < gridDim.x ? task.candidates[block * METRICS_WORST + i % METRICS_WORST] : 0;
	}
}

/* Writes the five chunks with the highest peaks to shared->chunks. */
static __device__ __forceinline__ void find_chunks(struct shared *shared, chunk_peak (&mine)[EACH])
{
#pragma unroll 1
	for (int worst = 0; worst < METRICS_WORST; worst++) {
		chunk_peak best = 0;

#pragma unroll
		for (int head = 0; head < EACH; head += METRICS_WORST)
			best = mine[head] > best ? mine[head] : best;
		best = greatest(best);
#pragma unroll
		for (int head = 0; head < EACH; head += METRICS_WORST) {
			bool taken = mine[head] == best;

#pragma unroll
			for (int i = head; i < head + METRICS_WORST; i++)
				mine[i] = !taken ? mine[i] : i + 1 < head + METRICS_WORST ? mine[i + 1] : 0;
		}
		if (threadIdx.x % 32 == 0)
			shared->peaks[threadIdx.x / 32 * METRICS_WORST + worst] = best;
	}
	__syncthreads();
	rank_peaks(shared->peaks, shared->chunks, 0);
	if (threadIdx.x == 0)
		shared->listed = 0;
	__syncthreads();
}

template <enum dtype D> static __device__ __forceinline__ int64_t chunk_first(chunk_peak peak)
{
	return (int64_t)(uint32_t)~peak * chunk<D>::length;
}

/* The elements that may be among the worst are listed in runs. A run is a group of consecutive elements that is as long
 * as one pack. Runs are numbered consecutively through all five chunks. */
template <enum dtype D> struct run {
	static constexpr int length = chunk<D>::lanes, in_chunk = chunk<D>::length / length;
};

/* Adds a run to the list. If the list is full, the run is counted but not stored. */
static __device__ __forceinline__ void list_run(struct shared *shared, int run)
{
	uint32_t slot = atomicAdd(&shared->listed, 1);

	if (slot < LISTED)
		shared->list[slot] = (uint16_t)run;
}

/* Adds to the list the runs of chunk c that contain a score of at least `least`. This function is for chunks that are
 * not on the fast path. */
template <enum dtype D>
static __device__ __noinline__ void list_pairs(const struct task &task, struct shared *shared, int c, double least)
{
	constexpr int length = run<D>::length;
	int64_t start = chunk_first<D>(shared->chunks[c]);

	for (int number = (int)threadIdx.x; number < run<D>::in_chunk; number += THREADS) {
		int64_t at = start + number * length, end = at + length < task.elements ? at + length : task.elements;
		bool any = false;

		for (; at < end; at += AT_ONCE) {
			struct pair pairs[AT_ONCE];
			int count = load_pairs<D>(task, at, 1, end, pairs);

#pragma unroll 1
			for (int i = 0; i < count; i++)
				any |= pairs[i].diff != 0 && !(pairs[i].diff < least * pairs[i].bound);
		}
		if (any)
			list_run(shared, c * run<D>::in_chunk + number);
	}
}

/* One thread's share of the packs of the worst chunks. Consecutive threads read consecutive packs. */
template <enum dtype D> struct worst_packs {
	static constexpr int in_chunk = chunk<D>::packs * 32, each = (in_chunk + THREADS - 1) / THREADS;
	static constexpr int count = METRICS_WORST * each;
	uint4 r[count], g[count];

	static __device__ __forceinline__ int chunk_of(int i)
	{
		return i / each;
	}
	static __device__ __forceinline__ int pack_of(int i) /* index in the chunk, which may be beyond the end of the
							      * chunk */
	{
		return i % each * THREADS + (int)threadIdx.x;
	}
};

/* Loads this thread's packs. All loads are unconditional: in place of a pack that does not exist or is not on the fast
 * path, the tensor's first pack is loaded. Returns a mask of the packs that exist and are on the fast path. */
template <enum dtype D>
static __device__ __forceinline__ uint32_t load_packs(const struct task &task, const struct shared *shared,
                                                      struct worst_packs<D> *packs)
{
	uint32_t used = 0;

#pragma unroll
	for (int i = 0; i < packs->count; i++) {
		chunk_peak peak = shared->chunks[packs->chunk_of(i)];
		bool is_there = packs->pack_of(i) < packs->in_chunk;
		bool is_used = (peak > 0) & is_fast<D>(task, chunk_first<D>(peak)) & is_there;
		int64_t at = is_used ? chunk_first<D>(peak) / form<D>::lanes + packs->pack_of(i) : 0;

		packs->r[i] = ((const uint4 *)task.reference)[at];
		packs->g[i] = ((const uint4 *)task.truth)[at];
		used |= (is_used ? 1u : 0u) << i;
	}
	return used;
}

/* Adds packs to the list: those with a score of at least `least`, those with a NaN, and those with infinities in both
 * tensors. `least` (least_score) is so low that errors of float exclude no element that belongs to the list. */
template <enum dtype D>
static __device__ __forceinline__ void list_packs(const struct task &task, struct shared *shared,
                                                  const struct worst_packs<D> &packs, uint32_t used, float least)
{
	constexpr int lanes = form<D>::lanes;

#pragma unroll
	for (int i = 0; i < packs.count; i++) {
		float r[lanes], g[lanes];
		bool none = true;

		form<D>::widen(packs.r[i], r);
		form<D>::widen(packs.g[i], g);
#pragma unroll
		for (int e = 0; e < lanes; e++) {
			float bound = fmaf(task.rtol_float, fabsf(g[e]), task.atol_float);

			none &= fmaf(-least, bound, fabsf(r[e] - g[e])) <= 0;
		}
		used &= ~((none ? 1u : 0u) << i);
	}
	for (; used != 0; used &= used - 1) {
		int i = __ffs((int)used) - 1;

		list_run(shared, packs.chunk_of(i) * packs.in_chunk + packs.pack_of(i));
	}
}

/* Returns the lowest score with which an element is added to the list: the peak of the fifth chunk, lowered by more
 * than the possible error of a score in float. */
static __device__ __forceinline__ float least_score(const struct shared *shared)
{
	uint32_t fifth = (uint32_t)(shared->chunks[METRICS_WORST - 1] >> 32);

	return fifth > 0 ? fminf(__uint_as_float(fifth - 1), FLT_MAX) * (1 - 4 * score_error) : 0;
}

static __device__ __forceinline__ bool worse(struct place a, struct place b)
{
	return (a.key > b.key) | ((a.key == b.key) & (a.index < b.index));
}

/* Returns the worst of the elements that the threads of the block pass as `mine`; every thread gets the result. All
 * threads of the block call this function. `round` must be one more than in the previous call. */
static __device__ __forceinline__ struct place worst_of_block(struct shared *shared, struct place mine, int round)
{
	struct place *all = shared->warp_worst[round % 2], worst;

	worst.key = greatest(mine.key);
	worst.index = (int64_t)~greatest(mine.key == worst.key ? ~(uint64_t)mine.index : 0);
	if (threadIdx.x % 32 == 0)
		all[threadIdx.x / 32] = worst;
	__syncthreads();
	worst = all[0];
#pragma unroll
	for (int w = 1; w < WARPS; w++)
		worst = worse(all[w], worst) ? all[w] : worst;
	return worst;
}

/* Returns the index and the key of element i of a run. */
template <enum dtype D>
static __device__ __forceinline__ struct place place_in(const struct task &task, const struct shared *shared,
                                                        uint32_t run, uint32_t i)
{
	chunk_peak peak = shared->chunks[run / ::run<D>::in_chunk];
	struct place place = {0, chunk_first<D>(peak) + run % ::run<D>::in_chunk * ::run<D>::length + i};

	if (peak > 0 && place.index < task.elements)
		place.key = key_of(pair_at<D>(task, place.index));
	return place;
}

/* Returns the worst of this thread's listed elements that rank after `last`. If the list was too short for all runs,
 * searches all elements of the five chunks instead. */
template <enum dtype D>
static __device__ __forceinline__ struct place next_worst(const struct task &task, const struct shared *shared,
                                                          struct place last)
{
	constexpr uint32_t length = run<D>::length;
	bool all = shared->listed > LISTED;
	uint32_t runs = all ? METRICS_WORST * run<D>::in_chunk : shared->listed;
	struct place best = {0, 0};

#pragma unroll 1
	for (uint32_t i = threadIdx.x; i < runs * length; i += THREADS) {
		struct place mine = place_in<D>(task, shared, all ? i / length : shared->list[i / length], i % length);

		if (worse(last, mine) && worse(mine, best))
			best = mine;
	}
	return best;
}

/* Writes element `index` to the result as worst[rank]. If `rank` is 0, also writes the margin. One thread calls this
 * function. */
template <enum dtype D>
static __device__ __forceinline__ void publish_place(const struct task &task, int rank, int64_t index)
{
	struct pair p = pair_at<D>(task, index);

	task.out->worst[rank] = {index, p.r, p.g, p.diff};
	if (rank == 0)
		task.out->margin = isnan(p.diff) ? INFINITY : score_of(p);
}

/* `found` is the number of elements with a score above 0, and is below METRICS_WORST. Fills the result's list of worst
 * elements with the tensor's first elements of score 0. Returns the number of worst elements. One thread calls this
 * function. */
template <enum dtype D>
static __device__ __noinline__ int fill_places(const struct task &task, const struct shared *shared, int found)
{
	int count = found;

	if (task.elements == 0)
		task.out->margin = 0;
	for (int64_t index = 0; count < METRICS_WORST && index < task.elements; index++) {
		bool taken = false;

		for (int i = 0; i < found; i++)
			taken |= shared->worst[i] == index;
		if (!taken)
			publish_place<D>(task, count++, index);
	}
	return count;
}

/* Finds the five worst elements one after the other. This function is for a list with more elements than the block has
 * threads. Returns the number of elements found. */
template <enum dtype D> static __device__ __noinline__ int pick_elements(const struct task &task, struct shared *shared)
{
	struct place last = {UINT64_MAX, -1};

	for (int worst = 0; worst < METRICS_WORST; worst++) {
		last = worst_of_block(shared, next_worst<D>(task, shared, last), worst);
		if (last.key == 0)
			return worst;
		if (threadIdx.x == 0) {
			shared->worst[worst] = last.index;
			publish_place<D>(task, worst, last.index);
		}
	}
	return METRICS_WORST;
}

/* Finds the five worst elements by ranking all listed elements: each thread counts the elements that are worse than its
 * own. This function is for a list with at most as many elements as the block has threads. Returns the number of
 * elements found. */
template <enum dtype D>
static __device__ __forceinline__ int rank_elements(const struct task &task, struct shared *shared)
{
	constexpr uint32_t length = run<D>::length;
	struct place mine = {0, 0};
	uint32_t rank = 0, count = shared->listed * length;

	if (threadIdx.x < count)
		mine = place_in<D>(task, shared, shared->list[threadIdx.x / length], threadIdx.x % length);
	shared->places[threadIdx.x] = mine;
	int found = __syncthreads_count(mine.key != 0);

#pragma unroll 4
	for (uint32_t i = 0; i < count; i++)
		rank += worse(shared->places[i], mine);
	if (mine.key != 0 && rank < METRICS_WORST) {
		shared->worst[rank] = mine.index;
		publish_place<D>(task, (int)rank, mine.index);
	}
	return found < METRICS_WORST ? found : METRICS_WORST;
}

#endif
