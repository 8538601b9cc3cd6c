/* check - compares the results of a GPU with those of the CPU: searches, comparisons, inputs, ground truth.
 *
 *   check LIBRARY [quick]    LIBRARY: libreftest_kernels_cuda.so; quick: few and small sizes, for compute-sanitizer
 *
 * Speaks TAP. The code for the CPU is linked in, and the library for the GPU is loaded as reftest loads it. Every check
 * plants the errors that it must find: a difference, an overwritten canary, a NaN, or a value that is wrong by one unit
 * in the last place. */
#include <dlfcn.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/check.h"
#include "tests/gpu/compared_tensors.h"
#include "tests/gpu/problems.h"
#include "kernels/core/default_tolerance.h"

/* --- sentences ---------------------------------------------------------------------------------------------------- */

static int a_gpu_that_is_not_there_is_said(const struct check *check)
{
	struct err err = {""};
	struct device *device = check->api->open(999, &err);

	return device != NULL || strstr(err.text, "cuda:999") == NULL ? tell("got '%s'", err.text) : 0;
}

static int memory_that_is_not_there_is_said_and_harms_nothing(const struct check *check)
{
	struct err err = {""};
	int64_t total = check->gpu->calls->memory_total(check->gpu);
	int wrong = 0;

	if (check->gpu->calls->allocate(check->gpu, 2 * total, &err) != NULL || strstr(err.text, "cudaMalloc") == NULL)
		wrong += tell("an allocation of twice the memory gave '%s'", err.text);
	if (check->gpu->calls->allocate(check->gpu, INT64_MAX, &err) != NULL)
		wrong += tell("INT64_MAX bytes were allocated");
	if (check->gpu->calls->broken(check->gpu))
		wrong += tell("the device reports itself as broken");
	unsigned char *memory = gpu_memory(check, 100);

	must(check->gpu->calls->set(check->gpu, memory, 1, 100, &err) == 0, &err);
	if (check->gpu->calls->first_other(check->gpu, memory, 1, 100, &err) != -1)
		wrong += tell("a later call failed: '%s'", err.text);
	check->gpu->calls->release(check->gpu, memory);
	return wrong;
}

/* Runs in a process that was forked before CUDA was initialised, and reads an invalid address on the GPU. */
static int break_a_device(const struct kernels_cuda_api *api)
{
	struct err err = {""};
	struct device *device = api->open(0, &err);
	void *nowhere = (void *)(uintptr_t)0x100000;
	struct metrics metrics;

	must(device != NULL, &err);
	if (device->calls->broken(device))
		return tell("the device is broken from the start");
	if (device->calls->compare(device, nowhere, nowhere, DTYPE_FLOAT32, 4096, rule_default(DTYPE_FLOAT32), &metrics,
	                           &err) == 0 || strstr(err.text, "cudaErrorIllegalAddress") == NULL)
		return tell("reading an invalid address gave '%s'", err.text);
	if (!device->calls->broken(device))
		return tell("the device is not broken after '%s'", err.text);
	if (device->calls->allocate(device, 1, &err) != NULL || strstr(err.text, "earlier error") == NULL)
		return tell("after it: '%s'", err.text);
	device->calls->close(device);
	return 0;
}

static int a_lost_context_is_said_by_every_later_call(const struct kernels_cuda_api *api)
{
	int status = 0;

	fflush(stdout);
	pid_t child = fork();

	if (child == 0) {
		int wrong = break_a_device(api);

		fflush(stdout);
		_exit(wrong);
	}
	waitpid(child, &status, 0);
	return status == 0 ? 0 : tell("the child ended with status %#x", (unsigned)status);
}

static int shared_memory_has_a_handle_of_its_own(const struct check *check)
{
	unsigned char first[DEVICE_HANDLE], second[DEVICE_HANDLE];
	void *a = gpu_memory(check, 1000), *b = gpu_memory(check, 1000);
	struct err err;
	int wrong = 0;

	must(check->gpu->calls->share(check->gpu, a, first, &err) == 0, &err);
	must(check->gpu->calls->share(check->gpu, b, second, &err) == 0, &err);
	if (memcmp(first, second, DEVICE_HANDLE) == 0)
		wrong += tell("two allocations have one handle");
	if ((uintptr_t)a % (2 << 20) != 0 || (uintptr_t)b % (2 << 20) != 0)
		wrong += tell("%p and %p do not begin a block of their own", a, b);
	check->gpu->calls->release(check->gpu, a);
	check->gpu->calls->release(check->gpu, b);
	return wrong;
}

/* --- searches ----------------------------------------------------------------------------------------------------- */

/* Makes two inputs differ in byte `at` and in a later byte. The search must find byte `at`, at any alignment. If `at`
 * is -1 or `bytes` (the end of the inputs), no byte differs. */
static int search_at(const struct check *check, unsigned char *a, unsigned char *b, int64_t bytes, int64_t at)
{
	const struct device_calls *calls = check->gpu->calls;
	struct err err;
	int wrong = 0;

	must(calls->set(check->gpu, a, 7, bytes + 64, &err) == 0, &err);
	must(calls->set(check->gpu, b, 7, bytes + 64, &err) == 0, &err);
	if (at >= 0 && at < bytes)
		must(calls->set(check->gpu, a + at, 8, 1, &err) == 0, &err);
	if (at >= 0 && at + 40 < bytes)
		must(calls->set(check->gpu, a + at + 40, 9, 1, &err) == 0, &err);
	/* the search must not find a difference that is beyond the last byte */
	must(calls->set(check->gpu, a + bytes, 9, 1, &err) == 0, &err);
	int64_t want = at >= 0 && at < bytes ? at : -1, difference = calls->first_difference(check->gpu, a, b, bytes, &err);
	int64_t other = calls->first_other(check->gpu, a, 7, bytes, &err);

	if (difference != want || other != want)
		wrong += tell("%lld bytes at %p and %p, planted at %lld: found %lld and %lld", (long long)bytes, (void *)a,
		              (void *)b, (long long)want, (long long)difference, (long long)other);
	return wrong;
}

static int searches_find_the_first_byte(const struct check *check)
{
	unsigned char *a = gpu_memory(check, 1 << 20), *b = gpu_memory(check, 1 << 20);
	int wrong = 0;

	for (int64_t bytes = 0; bytes <= 80; bytes += check->quick ? 13 : 1)
		for (int shift = 0; shift < 32; shift += 5)
			wrong += search_at(check, a + shift % 17, b + shift, bytes, bytes / 2) +
			         search_at(check, a + shift, b + shift, bytes, bytes - 1 + (shift == 5));
	for (int64_t at = 1; at < 900000; at = at * 3 + 1)
		wrong += search_at(check, a + 3, b + 3, 900001, at);
	check->gpu->calls->release(check->gpu, a);
	check->gpu->calls->release(check->gpu, b);
	return wrong;
}

/* Writes parts that repeat one byte, and parts that copy bytes, at all alignments, and compares them with the expected
 * bytes. Then changes one byte and compares the parts again. A change inside a part must be found, and a change between
 * the parts must be ignored. */
static int parts_of(const struct check *check, unsigned char *a, const unsigned char *from, int64_t bytes)
{
	const struct device_calls *calls = check->gpu->calls;
	const struct device_part parts[] = {
	    {.memory = a, .byte = 0xA5, .length = bytes},
	    {.memory = a + bytes + 1, .bytes = from, .length = bytes},
	    {.memory = a + 2 * bytes + 2, .byte = 0xFF, .length = bytes},
	    {.memory = NULL, .length = 0},
	};
	struct err err;
	int wrong = 0, count = sizeof parts / sizeof *parts;

	must(calls->set(check->gpu, a, 3, 3 * bytes + 3, &err) == 0, &err);
	must(calls->write_parts(check->gpu, parts, count, &err) == 0, &err);
	if (calls->first_other(check->gpu, a, 0xA5, bytes, &err) != -1 ||
	    calls->first_difference(check->gpu, a + bytes + 1, from, bytes, &err) != -1 ||
	    calls->first_other(check->gpu, a + 2 * bytes + 2, 0xFF, bytes, &err) != -1 ||
	    calls->first_other(check->gpu, a + bytes, 3, 1, &err) != -1 ||
	    calls->first_other(check->gpu, a + 3 * bytes + 2, 3, 1, &err) != -1)
		wrong += tell("parts of %lld bytes at %p were not written", (long long)bytes, (void *)a);
	if (calls->parts_equal(check->gpu, parts, count, &err) != 1)
		wrong += tell("parts of %lld bytes at %p are not equal after they were written", (long long)bytes, (void *)a);
	for (int64_t at = 0; at <= 3 * bytes + 2; at += bytes / 2 + 1) {
		int want = at == bytes || at == 2 * bytes + 1 || at == 3 * bytes + 2;

		must(calls->write_parts(check->gpu, parts, count, &err) == 0, &err);
		must(calls->set(check->gpu, a + at, 9, 1, &err) == 0, &err);
		if (calls->parts_equal(check->gpu, parts, count, &err) != want)
			wrong += tell("parts of %lld bytes at %p: byte %lld was changed", (long long)bytes, (void *)a, (long long)at);
	}
	return wrong;
}

static int parts_are_written_and_compared(const struct check *check)
{
	unsigned char *a = gpu_memory(check, 1 << 20), *from = gpu_memory(check, 1 << 20);
	struct err err;
	int wrong = 0;

	must(check->gpu->calls->set(check->gpu, from, 7, 1 << 20, &err) == 0, &err);
	for (int64_t bytes = 1; bytes <= 300000; bytes = bytes < 40 ? bytes + (check->quick ? 13 : 1) : bytes * 5 + 1)
		for (int shift = 0; shift < 32; shift += 5)
			wrong += parts_of(check, a + shift, from + shift % 17, bytes);
	check->gpu->calls->release(check->gpu, a);
	check->gpu->calls->release(check->gpu, from);
	return wrong;
}

/* --- comparisons -------------------------------------------------------------------------------------------------- */

/* Returns the next length to test. The tested lengths are all lengths up to 70, some around the number of elements that
 * a warp handles, and some above the number that a block handles. Long tensors are tested with only some of the
 * tolerance rules. */
static int64_t next_length(int64_t length, bool quick)
{
	static const int64_t longer[] = {127, 255, 256, 257, 1023, 2049, 4097, 8191, 65536, 65549, 300007};

	if (length < 70)
		return length + (quick ? 23 : 1);
	for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++)
		if (longer[i] > length)
			return quick && longer[i] > 5000 ? -1 : longer[i];
	return -1;
}

enum { LONGEST = 300007 };

static int compare_dtype(const struct check *check, enum dtype dtype, int kind)
{
	void *device[2] = {gpu_memory(check, LONGEST * 8 + 64), gpu_memory(check, LONGEST * 8 + 64)};
	struct tensors t = {host_memory(LONGEST * 8), host_memory(LONGEST * 8), dtype, 0, rules[0], 0};
	int wrong = 0;

	for (int64_t n = 0; n >= 0 && wrong < 3; n = next_length(n, check->quick))
		for (int rule = 0; rule < RULES; rule += n > 70 && (check->quick || n > 5000) ? 3 : 1) {
			t.elements = n;
			t.rule = rules[(rule + (int)n) % RULES];
			t.key = (uint64_t)(n * RULES + rule) << 8;
			memset(t.r, 0, 16);
			memset(t.g, 0, 16);
			kinds[kind].make(&t);
			wrong += compare_both(check, &t, kinds[kind].name, device, 0);
			if (rule == 0 && kind == 0)
				wrong += compare_both(check, &t, kinds[kind].name, device, dtype == DTYPE_FLOAT4_E2M1 ? 2 : 1);
		}
	free(t.r);
	free(t.g);
	check->gpu->calls->release(check->gpu, device[0]);
	check->gpu->calls->release(check->gpu, device[1]);
	return wrong;
}

static int comparisons_agree_with_the_cpu(const struct check *check)
{
	int wrong = 0;

	for (int kind = 0; kind < KINDS; kind++)
		for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
			if (!check->quick || (kind + dtype) % 3 == 0)
				wrong += compare_dtype(check, (enum dtype)dtype, kind);
	return wrong;
}

/* Two different int64 values may convert to the same double. The comparison must find that they differ. */
static int integers_beyond_doubles_are_distinguished(const struct check *check)
{
	enum { N = 5000 };
	void *device[2] = {gpu_memory(check, N * 8), gpu_memory(check, N * 8)};
	struct tensors t = {host_memory(N * 8), host_memory(N * 8), DTYPE_INT64, N, {0, 0, 1}, 3};
	int64_t *r = t.r, *g = t.g;

	for (int i = 0; i < N; i++)
		r[i] = g[i] = i % 7 ? i : INT64_C(0x4000000000000000) + i;
	r[7 * 100] += 1;
	g[7 * 300] = -r[7 * 300];
	int wrong = compare_both(check, &t, "beyond doubles", device, 0);

	free(t.r);
	free(t.g);
	check->gpu->calls->release(check->gpu, device[0]);
	check->gpu->calls->release(check->gpu, device[1]);
	return wrong;
}

/* Compares tensors that are so long that every block processes several pieces. Each tensor repeats one sequence of
 * values. The length of this sequence is not a multiple of the number of elements that a block processes. A few values
 * are not finite, and the worst place is at the end. */
static int compare_long(const struct check *check, enum dtype dtype, int64_t n)
{
	const int64_t period = 100003 * 2; /* an even number, because two elements of float4_e2m1 share a byte */
	int64_t bytes = dtype_bytes(dtype, n), stretch = dtype_bytes(dtype, period);
	void *device[2] = {gpu_memory(check, bytes), gpu_memory(check, bytes)};
	struct tensors t = {host_memory(bytes), host_memory(bytes), dtype, period, {8e-3, 1e-2, 1}, 1234};

	memset(t.r, 0, (size_t)bytes);
	memset(t.g, 0, (size_t)bytes);
	make_close(&t);
	for (int64_t at = stretch; at < bytes; at += stretch) {
		size_t length = (size_t)(bytes - at < stretch ? bytes - at : stretch);

		memcpy((char *)t.r + at, t.r, length);
		memcpy((char *)t.g + at, t.g, length);
	}
	t.elements = n;
	put(&t, n / 2, NAN, 1);
	put(&t, n / 3, INFINITY, -INFINITY);
	put(&t, n - 2, 100, 1);
	int wrong = compare_both(check, &t, "long", device, 0);

	free(t.r);
	free(t.g);
	check->gpu->calls->release(check->gpu, device[0]);
	check->gpu->calls->release(check->gpu, device[1]);
	return wrong;
}

static int long_comparisons_agree_with_the_cpu(const struct check *check)
{
	int wrong = 0;

	for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
		if (!check->quick || dtype == DTYPE_BFLOAT16)
			wrong += compare_long(check, (enum dtype)dtype, check->quick ? 9000001 : 21000001);
	return wrong;
}

/* Compares tensors with more elements than 32 bits can count. The bytes of these tensors are set on the GPU, and a few
 * differences are planted after element 2^31. */
static int two_billion_elements_are_counted(const struct check *check)
{
	const int64_t n = (INT64_C(1) << 31) + 4099, places[3] = {n - 1, (INT64_C(1) << 31) + 5, 12345};
	const struct device_calls *calls = check->gpu->calls;
	unsigned char *r = gpu_memory(check, n), *g = gpu_memory(check, n);
	struct metrics m;
	struct err err;
	int wrong = 0;

	must(calls->set(check->gpu, r, 2, n, &err) == 0, &err);
	must(calls->set(check->gpu, g, 2, n, &err) == 0, &err);
	if (calls->first_difference(check->gpu, r, g, n, &err) != -1)
		wrong += tell("a difference between equal bytes");
	must(calls->set(check->gpu, r + places[0], 9, 1, &err) == 0, &err);
	must(calls->set(check->gpu, r + places[1], 5, 1, &err) == 0, &err);
	if (calls->first_difference(check->gpu, r, g, n, &err) != places[1] ||
	    calls->first_other(check->gpu, r, 2, n, &err) != places[1])
		wrong += tell("the first difference is not where it was planted");
	must(calls->set(check->gpu, r + places[2], 3, 1, &err) == 0, &err);
	must(calls->compare(check->gpu, r, g, DTYPE_INT8, n, (struct rule){0, 0.1, 1}, &m, &err) == 0, &err);
	if (m.elements != n || m.hits != n - 3 || m.max_abs != 7 || fabs(m.mse * (double)n - (49 + 9 + 1)) > 1e-3 ||
	    m.margin != 7 / (0.1 * 2) || m.worst_count != 5 || m.worst[0].index != places[0] ||
	    m.worst[1].index != places[1] || m.worst[2].index != places[2] || m.worst[3].index != 0 ||
	    m.worst[4].index != 1) {
		wrong += tell("%lld elements", (long long)n);
		show("GPU", &m);
	}
	calls->release(check->gpu, r);
	calls->release(check->gpu, g);
	return wrong;
}

/* A comparison gives the same bits whatever the order in which the GPU runs its blocks. */
static int comparisons_repeat_to_the_last_bit(const struct check *check)
{
	const int64_t n = check->quick ? 5000 : 1 << 24;
	struct tensors t = {host_memory(n * 2), host_memory(n * 2), DTYPE_BFLOAT16, n, rules[0], 77};
	void *r = gpu_memory(check, n * 2), *g = gpu_memory(check, n * 2);
	struct metrics first, again;
	struct err err;
	int wrong = 0;

	make_close(&t);
	upload(check, r, t.r, n * 2);
	upload(check, g, t.g, n * 2);
	memset(&first, 0, sizeof first);
	must(check->gpu->calls->compare(check->gpu, r, g, t.dtype, n, t.rule, &first, &err) == 0, &err);
	for (int i = 0; i < (check->quick ? 2 : 50) && wrong == 0; i++) {
		memset(&again, 0, sizeof again);
		must(check->gpu->calls->compare(check->gpu, r, g, t.dtype, n, t.rule, &again, &err) == 0, &err);
		if (memcmp(&first, &again, sizeof first) != 0) {
			wrong += tell("run %d differs", i);
			show("first", &first);
			show("again", &again);
		}
	}
	struct metrics host;

	compare_host(t.r, t.g, t.dtype, n, t.rule, &host);
	if (what_differs(&t, &host, &first, false) != NULL)
		wrong += tell("not the CPU's: %s", what_differs(&t, &host, &first, false));
	free(t.r);
	free(t.g);
	check->gpu->calls->release(check->gpu, r);
	check->gpu->calls->release(check->gpu, g);
	return wrong;
}

/* --- inputs and ground truth -------------------------------------------------------------------------------------- */

static const enum dtype floats[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16};

static int rmsnorm_is_the_oracles(const struct check *check)
{
	static const int64_t sizes[][2] = {{1, 1},   {1, 128},   {9, 13},     {40, 257},   {2, 4096},
	                                   {64, 100}, {300, 2048}, {1000, 128}, {256, 7168}, {17, 20001}};
	int wrong = 0;

	for (size_t s = 0; s < (check->quick ? 4 : sizeof sizes / sizeof sizes[0]); s++)
		for (int d = 0; d < 3; d++)
			for (int form = PLAIN; form <= UPDATED; form++) {
				struct made m;

				make_rmsnorm(&m, floats[d], form, sizes[s][0], sizes[s][1]);
				wrong += check_case(check, &m);
			}
	return wrong;
}

static int gemm_is_the_oracles(const struct check *check)
{
	static const int64_t sizes[][3] = {{1, 1, 1},      {7, 13, 29},      {3, 136, 40},     {129, 130, 131},
	                                   {1, 128, 2048}, {3, 256, 7168},   {128, 512, 1000}, {65, 264, 999},
	                                   {130, 392, 4096}, {64, 128, 28672}};
	int wrong = 0;

	for (size_t s = 0; s < (check->quick ? 4 : sizeof sizes / sizeof sizes[0]); s++)
		for (int d = 0; d < 3; d++)
			for (int nn = 0; nn < 2; nn++) {
				struct made m;

				make_gemm(&m, floats[d], nn == 1, sizes[s][0], sizes[s][1], sizes[s][2]);
				wrong += check_case(check, &m);
			}
	return wrong;
}

/* Checks the inputs that are generated for definitions without a family, in every dtype. */
static int generic_inputs_are_the_cpus(const struct check *check)
{
	int wrong = 0;

	for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
		for (int64_t n = 1; n < 20000; n = n * 3 + 2) {
			struct made m;
			struct side cpu, gpu;

			make_rmsnorm(&m, (enum dtype)dtype, PLAIN, n, 3);
			struct op_case c = {.problem = &m.problem, .axis = m.axis, .seed = 5};

			allocate_side(&cpu, check->cpu, &m);
			allocate_side(&gpu, check->gpu, &m);
			wrong += same_inputs(check, &m, NULL, &c, &cpu, &gpu);
			release_side(&cpu, &m);
			release_side(&gpu, &m);
		}
	return wrong;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static const struct {
	const char *sentence;
	int (*run)(const struct check *check);
	bool slow; /* left out with `quick` */
} checks[] = {
    {"a GPU that is not there is said", a_gpu_that_is_not_there_is_said, false},
    {"memory that is not there is said and harms nothing", memory_that_is_not_there_is_said_and_harms_nothing, true},
    {"shared memory has a handle of its own", shared_memory_has_a_handle_of_its_own, false},
    {"searches find the first byte", searches_find_the_first_byte, false},
    {"parts are written and compared", parts_are_written_and_compared, false},
    {"integers beyond doubles are distinguished", integers_beyond_doubles_are_distinguished, false},
    {"comparisons agree with the CPU", comparisons_agree_with_the_cpu, false},
    {"long comparisons agree with the CPU", long_comparisons_agree_with_the_cpu, false},
    {"comparisons repeat to the last bit", comparisons_repeat_to_the_last_bit, false},
    {"two billion elements are counted", two_billion_elements_are_counted, true},
    {"generic inputs are the CPU's", generic_inputs_are_the_cpus, false},
    {"rmsnorm: inputs bit for bit, truth by its rule", rmsnorm_is_the_oracles, false},
    {"gemm: inputs bit for bit, truth by its rule", gemm_is_the_oracles, false},
};
enum { CHECKS = sizeof checks / sizeof checks[0] };

static int report(int number, const char *sentence, int wrong)
{
	printf("%s %d - %s\n", wrong == 0 ? "ok" : "not ok", number, sentence);
	fflush(stdout);
	return wrong != 0;
}

static const struct kernels_cuda_api *load(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	return handle != NULL ? dlsym(handle, "reftest_kernels_cuda") : NULL;
}

int main(int argc, char **argv)
{
	struct check check = {.api = argc > 1 ? load(argv[1]) : NULL, .quick = argc > 2 && strcmp(argv[2], "quick") == 0};
	int failed = 0, number = 0;
	struct err err;

	if (check.api == NULL) {
		printf("Bail out! usage: check libreftest_kernels_cuda.so [quick] (%s)\n", argc > 1 ? dlerror() : "no library");
		return 1;
	}
	if (!check.quick) /* omitted under compute-sanitizer, which would report the error that this check plants */
		failed += report(++number, "a lost context is said by every later call",
		                 a_lost_context_is_said_by_every_later_call(check.api));
	check.cpu = device_open_cpu(&err);
	must(check.cpu != NULL, &err);
	check.gpu = check.api->open(0, &err);
	must(check.gpu != NULL, &err);
	printf("# %s, %s\n", check.gpu->calls->product(check.gpu), check.gpu->calls->class_name(check.gpu));
	for (int i = 0; i < CHECKS; i++)
		if (!check.quick || !checks[i].slow)
			failed += report(++number, checks[i].sentence, checks[i].run(&check));
	printf("1..%d\n", number);
	check.gpu->calls->close(check.gpu);
	check.cpu->calls->close(check.cpu);
	return failed != 0;
}
