/* device_cuda - implements kernels/core/device.h on one CUDA GPU.
 *
 * All work runs on one stream of the device. Every call except `fill` waits for that stream once, before it returns.
 * `fill` does not wait, because a case has many inputs, and each wait costs a time slice if several processes use the
 * GPU at the same time. After a sticky error, such as a kernel's invalid memory access, the device is marked as broken:
 * every later call only reports that error, and another process must continue the work.
 *
 * The size of every allocation is rounded up to a multiple of 2 MiB, because CUDA puts several smaller allocations into
 * one block of 2 MiB. A process that maps an allocation (`share`) maps the whole block. Without the rounding, that
 * process could also read other allocations in the block, such as ground truth. */
#include "kernels/core/cuda_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/compare_cuda.h"
#include "kernels/core/device.h"
#include "kernels/core/random_inputs.h"

enum { THREADS = 256, WAVES = 8 };
static const int64_t granule = 2 << 20;

struct cuda_device {
	struct device device; /* must be the first member: callers see only this part */
	cudaStream_t stream;
	struct compare_cuda compare;
	unsigned long long *found; /* result of a search, in device memory */
	unsigned most_blocks;      /* the maximum number of blocks of the search kernels */
	bool broken;
	char why[256]; /* the sticky error, if the device is broken */
	char class_name[16], product[256];
};

static struct cuda_device *own(struct device *device)
{
	return reinterpret_cast<struct cuda_device *>(device);
}

static const struct cuda_device *own(const struct device *device)
{
	return reinterpret_cast<const struct cuda_device *>(device);
}

/* Returns 0 if the call succeeded. Otherwise, returns -1 with a message in `err`, and marks the device as broken if the
 * error is sticky. */
static int checked(struct cuda_device *device, cudaError_t error, const char *call, struct err *err)
{
	if (error != cudaSuccess && cuda_sticky(error)) {
		device->broken = true;
		snprintf(device->why, sizeof device->why, "%s: %s", call, cudaGetErrorName(error));
	}
	return cuda_check(error, call, err);
}

#define CHECKED(device, call, err) checked((device), (call), #call, (err))

/* Returns 0, or -1 with a message in `err` if the device is broken. */
static int usable(const struct cuda_device *device, struct err *err)
{
	if (!device->broken)
		return 0;
	return err_set(err, "CUDA: an earlier error (%s) left this process without its GPU; it must be restarted",
	               device->why);
}

static int finish(struct cuda_device *device, const char *what, struct err *err)
{
	return checked(device, cudaStreamSynchronize(device->stream), what, err);
}

/* --- the device itself -------------------------------------------------------------------------------------------- */

static void cuda_close(struct device *device)
{
	struct cuda_device *d = own(device);

	compare_cuda_close(&d->compare);
	cudaFree(d->found);
	if (d->stream != NULL)
		cudaStreamDestroy(d->stream);
	free(d);
}

static const char *cuda_class_name(const struct device *device)
{
	return own(device)->class_name;
}

static const char *cuda_product(const struct device *device)
{
	return own(device)->product;
}

static bool cuda_broken(const struct device *device)
{
	return own(device)->broken;
}

/* Writes free and total bytes of GPU memory. Both numbers are 0 if the driver does not report them. */
static void memory(struct device *device, size_t *free_bytes, size_t *total_bytes)
{
	struct cuda_device *d = own(device);

	*free_bytes = *total_bytes = 0;
	if (!d->broken && CHECKED(d, cudaMemGetInfo(free_bytes, total_bytes), NULL) != 0)
		*free_bytes = *total_bytes = 0;
}

static int64_t cuda_memory_free(struct device *device)
{
	size_t free_bytes, total_bytes;

	memory(device, &free_bytes, &total_bytes);
	return (int64_t)free_bytes / granule * granule;
}

static int64_t cuda_memory_total(struct device *device)
{
	size_t free_bytes, total_bytes;

	memory(device, &free_bytes, &total_bytes);
	return (int64_t)total_bytes;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void *cuda_allocate(struct device *device, int64_t bytes, struct err *err)
{
	struct cuda_device *d = own(device);
	void *memory = NULL;

	if (usable(d, err) != 0)
		return NULL;
	if (bytes < 0 || bytes > INT64_MAX - granule) {
		err_set(err, "CUDA: %lld bytes cannot be allocated; take smaller sizes", (long long)bytes);
		return NULL;
	}
	int64_t whole = bytes <= granule ? granule : (bytes + granule - 1) / granule * granule;
	cudaError_t error = cudaMalloc(&memory, (size_t)whole);

	if (error == cudaSuccess)
		return memory;
	char call[64];

	snprintf(call, sizeof call, "cudaMalloc of %lld bytes", (long long)whole);
	checked(d, error, call, err);
	return NULL;
}

static void cuda_release(struct device *device, void *memory)
{
	struct cuda_device *d = own(device);

	if (!d->broken)
		checked(d, cudaFree(memory), "cudaFree", NULL);
}

static_assert(sizeof(cudaIpcMemHandle_t) == DEVICE_HANDLE, "a handle must fit");

static int cuda_share(struct device *device, void *memory, unsigned char handle[DEVICE_HANDLE], struct err *err)
{
	struct cuda_device *d = own(device);
	cudaIpcMemHandle_t ipc;

	if (usable(d, err) != 0 || CHECKED(d, cudaIpcGetMemHandle(&ipc, memory), err) != 0)
		return -1;
	memcpy(handle, &ipc, sizeof ipc);
	return 0;
}

static int transfer(struct device *device, void *to, const void *from, int64_t bytes, enum cudaMemcpyKind kind,
                    const char *what, struct err *err)
{
	struct cuda_device *d = own(device);

	if (usable(d, err) != 0)
		return -1;
	if (bytes <= 0)
		return 0;
	if (checked(d, cudaMemcpyAsync(to, from, (size_t)bytes, kind, d->stream), what, err) != 0)
		return -1;
	return finish(d, what, err);
}

static int cuda_upload(struct device *device, void *to, const void *from_host, int64_t bytes, struct err *err)
{
	return transfer(device, to, from_host, bytes, cudaMemcpyHostToDevice, "cudaMemcpyAsync to the GPU", err);
}

static int cuda_download(struct device *device, void *to_host, const void *from, int64_t bytes, struct err *err)
{
	return transfer(device, to_host, from, bytes, cudaMemcpyDeviceToHost, "cudaMemcpyAsync from the GPU", err);
}

static int cuda_copy(struct device *device, void *to, const void *from, int64_t bytes, struct err *err)
{
	return transfer(device, to, from, bytes, cudaMemcpyDeviceToDevice, "cudaMemcpyAsync on the GPU", err);
}

static int cuda_set(struct device *device, void *to, unsigned char byte, int64_t bytes, struct err *err)
{
	struct cuda_device *d = own(device);

	if (usable(d, err) != 0)
		return -1;
	if (bytes <= 0)
		return 0;
	if (CHECKED(d, cudaMemsetAsync(to, byte, (size_t)bytes, d->stream), err) != 0)
		return -1;
	return finish(d, "cudaMemsetAsync", err);
}

static int cuda_write_parts(struct device *device, const struct device_part *parts, int count, struct err *err)
{
	struct cuda_device *d = own(device);

	if (usable(d, err) != 0)
		return -1;
	for (int i = 0; i < count; i++) {
		const struct device_part *part = &parts[i];

		if (part->length <= 0)
			continue;
		cudaError_t error = part->bytes == NULL
					? cudaMemsetAsync(part->memory, part->byte, (size_t)part->length, d->stream)
					: cudaMemcpyAsync(part->memory, part->bytes, (size_t)part->length,
							  cudaMemcpyDeviceToDevice, d->stream);

		if (checked(d, error, "writing a part of a GPU's memory", err) != 0) {
			finish(d, "writing parts of a GPU's memory", NULL);
			return -1;
		}
	}
	return finish(d, "writing parts of a GPU's memory", err);
}

/* --- searches ----------------------------------------------------------------------------------------------------- */

/* The bytes to compare with: an array or, if `bytes` is NULL, one repeated byte value. */
struct pattern {
	const unsigned char *bytes;
	unsigned char byte;
};

static __device__ void search_byte(const unsigned char *a, const struct pattern &pattern, int64_t offset,
                                   unsigned long long *found)
{
	if (a[offset] != (pattern.bytes != NULL ? pattern.bytes[offset] : pattern.byte))
		atomicMin(found, (unsigned long long)offset);
}

/* Writes to *found the smallest offset at which `a` differs from the pattern. Bytes head … tail - 1 are whole 16-byte
 * words, aligned both in `a` and in the pattern; all other bytes are compared one by one. */
static __global__ void search(const unsigned char *a, struct pattern pattern, int64_t bytes, int64_t head, int64_t tail,
                              unsigned long long *found)
{
	int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, threads = (int64_t)gridDim.x * blockDim.x;
	uint32_t four = pattern.byte * 0x01010101u;
	uint4 want = make_uint4(four, four, four, four);

	for (int64_t at = thread; at < head; at += threads)
		search_byte(a, pattern, at, found);
	for (int64_t at = tail + thread; at < bytes; at += threads)
		search_byte(a, pattern, at, found);
	for (int64_t at = head + thread * 16; at < tail; at += threads * 16) {
		uint4 have = *(const uint4 *)(a + at);

		if (pattern.bytes != NULL)
			want = *(const uint4 *)(pattern.bytes + at);
		if (((have.x ^ want.x) | (have.y ^ want.y) | (have.z ^ want.z) | (have.w ^ want.w)) == 0)
			continue;
		for (int i = 0; i < 16; i++)
			search_byte(a, pattern, at + i, found);
		return;
	}
}

/* Starts a search. Several searches may be started one after the other. *d->found is then the smallest offset that any
 * of them found. */
static int launch_search(struct cuda_device *d, const void *a, struct pattern pattern, int64_t bytes, struct err *err)
{
	const unsigned char *start = (const unsigned char *)a;
	int64_t head = (int64_t)(-(uintptr_t)a % 16), threads, blocks;

	if (bytes <= 0)
		return 0;
	if (head > bytes || (pattern.bytes != NULL && ((uintptr_t)pattern.bytes + (uintptr_t)head) % 16 != 0))
		head = bytes;
	int64_t tail = head + (bytes - head) / 16 * 16;

	threads = head + (tail - head) / 16 + (bytes - tail);
	blocks = (threads + THREADS - 1) / THREADS;
	search<<<blocks < d->most_blocks ? (unsigned)blocks : d->most_blocks, THREADS, 0, d->stream>>>(
	    start, pattern, bytes, head, tail, d->found);
	return checked(d, cudaGetLastError(), "launching a search", err);
}

/* Prepares for searches: sets *d->found to "nothing found". */
static int begin_search(struct cuda_device *d, struct err *err)
{
	return usable(d, err) != 0 ? -1 : CHECKED(d, cudaMemsetAsync(d->found, 0xff, sizeof *d->found, d->stream), err);
}

/* Waits for the searches. Returns the smallest offset that the searches found, -1 if they found nothing, or -2 on
 * error. */
static int64_t end_search(struct cuda_device *d, struct err *err)
{
	unsigned long long found = 0;

	if (transfer(&d->device, &found, d->found, sizeof found, cudaMemcpyDeviceToHost, "a search", err) != 0)
		return -2;
	return found == ~0ull ? -1 : (int64_t)found;
}

static int64_t run_search(struct device *device, const void *a, struct pattern pattern, int64_t bytes, struct err *err)
{
	struct cuda_device *d = own(device);

	if (begin_search(d, err) != 0 || launch_search(d, a, pattern, bytes, err) != 0)
		return -2;
	return end_search(d, err);
}

static int cuda_parts_equal(struct device *device, const struct device_part *parts, int count, struct err *err)
{
	struct cuda_device *d = own(device);

	if (begin_search(d, err) != 0)
		return -1;
	for (int i = 0; i < count; i++) {
		struct pattern pattern = {(const unsigned char *)parts[i].bytes, parts[i].byte};

		if (launch_search(d, parts[i].memory, pattern, parts[i].length, err) != 0) {
			finish(d, "a search", NULL);
			return -1;
		}
	}
	int64_t found = end_search(d, err);

	return found == -2 ? -1 : found == -1;
}

static int64_t cuda_first_difference(struct device *device, const void *a, const void *b, int64_t bytes, struct err *err)
{
	struct pattern pattern = {(const unsigned char *)b, 0};

	return run_search(device, a, pattern, bytes, err);
}

static int64_t cuda_first_other(struct device *device, const void *a, unsigned char byte, int64_t bytes, struct err *err)
{
	struct pattern pattern = {NULL, byte};

	return run_search(device, a, pattern, bytes, err);
}

/* --- families ----------------------------------------------------------------------------------------------------- */

#define OP(name, truth_digest, inputs_digest) extern "C" const struct op_cuda name##_cuda;
#include "ops.inc"
#undef OP

static const struct op_cuda *const families[] = {
#define OP(name, truth_digest, inputs_digest) &name##_cuda,
#include "ops.inc"
#undef OP
    NULL,
};

/* Returns the struct op_cuda of the family. Returns NULL with a message in `err` if this library lacks the family; the
 * two libraries are then from different builds. */
static const struct op_cuda *family_of(const struct op *op, struct err *err)
{
	for (int i = 0; families[i] != NULL; i++)
		if (strcmp(families[i]->name, op->name) == 0)
			return families[i];
	err_set(err, "the CUDA kernels library has no family '%s'; rebuild both libraries with `make`", op->name);
	return NULL;
}

static __global__ void fill_generic(void *data, enum dtype dtype, uint64_t key, int64_t units)
{
	int64_t threads = (int64_t)gridDim.x * blockDim.x;

	for (int64_t unit = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; unit < units; unit += threads)
		generic_store(data, dtype, key, unit);
}

static int launch_generic(struct cuda_device *d, const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	int64_t units = generic_units(out->dtype, out->elements), blocks = (units + THREADS - 1) / THREADS;
	size_t bytes = (size_t)dtype_bytes(out->dtype, out->elements);

	if (units == 0)
		return 0;
	if (CHECKED(d, cudaMemsetAsync(out->data, 0, bytes, d->stream), err) != 0)
		return -1;
	if (!dtype_is_float(out->dtype))
		return 0;
	fill_generic<<<blocks < d->most_blocks ? (unsigned)blocks : d->most_blocks, THREADS, 0, d->stream>>>(
	    out->data, out->dtype, input_key(c, input), units);
	return checked(d, cudaGetLastError(), "launching a fill", err);
}

/* Fills the input on the host with op.fill, then copies it to the GPU. */
static int fill_on_host(struct device *device, const struct op *op, const struct op_case *c, int input,
                        struct tensor *out, struct err *err)
{
	int64_t bytes = dtype_bytes(out->dtype, out->elements);
	struct tensor host = *out;
	int rc = -1;

	host.data = aligned_alloc(256, (size_t)(bytes / 256 + 1) * 256);
	if (host.data == NULL)
		err_set(err, "no memory to fill %lld bytes of an input on the host; take smaller sizes", (long long)bytes);
	else if (op->fill(c, input, &host, err) == 0)
		rc = cuda_upload(device, out->data, host.data, bytes, err);
	free(host.data);
	return rc;
}

static int cuda_fill(struct device *device, const struct op *op, const struct op_case *c, int input, struct tensor *out,
                     struct err *err)
{
	struct cuda_device *d = own(device);
	const struct op_cuda *family = NULL;
	int rc = 1;

	if (op != NULL && op->on_host)
		return usable(d, err) != 0 ? -1 : fill_on_host(device, op, c, input, out, err);
	if (usable(d, err) != 0 || (op != NULL && (family = family_of(op, err)) == NULL))
		return -1;
	if (family == NULL)
		rc = launch_generic(d, c, input, out, err);
	else if (family->fill != NULL && c->edge == 0)
		rc = family->fill(c, input, out, d->stream, err);
	if (rc == 1)
		return fill_on_host(device, op, c, input, out, err);
	return rc;
}

static int64_t cuda_truth_scratch(struct device *, const struct op *op, const struct op_case *c)
{
	const struct op_cuda *family = family_of(op, NULL);

	return family != NULL && family->scratch_bytes != NULL ? family->scratch_bytes(c) : 0;
}

static int cuda_truth(struct device *device, const struct op *op, const struct op_case *c, const struct tensor *in,
                      struct tensor *out, struct err *err)
{
	struct cuda_device *d = own(device);
	const struct op_cuda *family = usable(d, err) == 0 ? family_of(op, err) : NULL;
	int64_t bytes = cuda_truth_scratch(device, op, c);
	void *scratch = NULL;

	if (family == NULL || (bytes > 0 && (scratch = cuda_allocate(device, bytes, err)) == NULL))
		return -1;
	int rc = family->launch(c, in, out, scratch, d->stream, err);

	if (finish(d, "a ground-truth kernel", rc == 0 ? err : NULL) != 0)
		rc = -1;
	if (scratch != NULL)
		cuda_release(device, scratch);
	return rc;
}

static int cuda_compare(struct device *device, const void *reference, const void *ground_truth, enum dtype dtype,
                        int64_t elements, struct rule rule, struct metrics *out, struct err *err)
{
	struct cuda_device *d = own(device);

	if (usable(d, err) != 0 ||
	    compare_cuda_launch(&d->compare, reference, ground_truth, dtype, elements, rule, d->stream, err) != 0 ||
	    finish(d, "the comparison", err) != 0)
		return -1;
	compare_finish(d->compare.sums, rule, out);
	return 0;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static const struct device_calls cuda_calls = {
    cuda_close,
    cuda_class_name,
    cuda_product,
    cuda_memory_free,
    cuda_memory_total,
    cuda_broken,
    cuda_allocate,
    cuda_release,
    cuda_share,
    cuda_upload,
    cuda_download,
    cuda_copy,
    cuda_set,
    cuda_write_parts,
    cuda_parts_equal,
    cuda_first_difference,
    cuda_first_other,
    cuda_fill,
    cuda_truth,
    cuda_truth_scratch,
    cuda_compare,
};

/* Returns 0 if there is a GPU with this index and this library has code for it, otherwise -1 with a message in
 * `err`. */
static int find_gpu(int index, cudaDeviceProp *properties, struct err *err)
{
	int count = 0;

	if (CUDA_CHECK(cudaGetDeviceCount(&count), err) != 0)
		return -1;
	if (index < 0 || index >= count)
		return err_set(err, "there is no cuda:%d: this machine has %d GPU%s that CUDA can use, counted from 0", index,
		               count, count == 1 ? "" : "s");
	if (CUDA_CHECK(cudaGetDeviceProperties(properties, index), err) != 0)
		return -1;
	if (properties->major < 8)
		return err_set(err, "cuda:%d (%s) is sm_%d%d; the kernels need sm_80 or newer: use --device cpu", index,
		               properties->name, properties->major, properties->minor);
	return 0;
}

static int set_up(struct cuda_device *d, int index, struct err *err)
{
	cudaDeviceProp properties;

	if (find_gpu(index, &properties, err) != 0 || CUDA_CHECK(cudaSetDevice(index), err) != 0 ||
	    CUDA_CHECK(cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking), err) != 0 ||
	    CUDA_CHECK(cudaMalloc(&d->found, sizeof *d->found), err) != 0)
		return -1;
	d->most_blocks = (unsigned)(properties.multiProcessorCount * WAVES);
	snprintf(d->class_name, sizeof d->class_name, "sm_%d%d", properties.major, properties.minor);
	snprintf(d->product, sizeof d->product, "%s", properties.name);
	return compare_cuda_open(&d->compare, err);
}

struct device *device_open_cuda(int index, struct err *err)
{
	struct cuda_device *d = (struct cuda_device *)calloc(1, sizeof *d);

	if (d == NULL)
		die_no_memory();
	d->device.calls = &cuda_calls;
	if (set_up(d, index, err) == 0)
		return &d->device;
	cuda_close(&d->device);
	return NULL;
}
