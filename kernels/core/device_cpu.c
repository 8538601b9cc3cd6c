/* device_cpu - implements kernels/core/device.h on the CPU. Memory is host memory, and every call is complete when it
 * returns. Every family has an oracle for the CPU, so the CPU can compute every ground truth. */
#include "kernels/core/device.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/free_memory.h"
#include "kernels/core/compare_tensors.h"
#include "kernels/core/random_inputs.h"

enum {
	ALIGNMENT = 256,
	HUGE_PAGE = 2 << 20,
	STEP = 4096,
	SERIAL_UNITS = 1 << 14,
	SMALL = 64 << 20 /* the free memory is not checked for sizes up to this */
};

struct cpu_device {
	struct device device; /* must be the first member: callers see only this part */
	char product[256];
};

static void close_cpu(struct device *device)
{
	free(device);
}

static const char *class_name(const struct device *device)
{
	(void)device;
	return "cpu";
}

static const char *product(const struct device *device)
{
	return ((const struct cpu_device *)(const void *)device)->product;
}

static int64_t memory_free(struct device *device)
{
	(void)device;
	return memory_available("");
}

static int64_t memory_total(struct device *device)
{
	(void)device;
	return memory_installed("");
}

static bool broken(const struct device *device)
{
	(void)device;
	return false;
}

/* Allocates memory. Rejects a large size that exceeds the free memory. Without this check, Linux would overcommit the
 * memory, and kill a process when the pages are written to. A small size is not checked, because reading the size of
 * the free memory may take longer than the whole case. */
static void *allocate(struct device *device, int64_t bytes, struct err *err)
{
	int64_t available = bytes >= 0 && bytes <= SMALL ? SMALL : memory_free(device);

	if (bytes < 0 || bytes > available) {
		err_set(err, "%lld bytes of memory are needed, but only %lld are free", (long long)bytes, (long long)available);
		return NULL;
	}
	size_t alignment = bytes < HUGE_PAGE ? ALIGNMENT : HUGE_PAGE;
	size_t room = ((size_t)bytes + alignment) / alignment * alignment; /* always above 0 */
	void *memory = aligned_alloc(alignment, room);

	if (memory == NULL)
		err_set(err, "%lld bytes of memory cannot be allocated", (long long)bytes);
	else if (alignment == HUGE_PAGE)
		madvise(memory, room, MADV_HUGEPAGE); /* an error is harmless: it only causes more page faults */
	return memory;
}

static void release(struct device *device, void *memory)
{
	(void)device;
	free(memory);
}

static int share(struct device *device, void *memory, unsigned char handle[DEVICE_HANDLE], struct err *err)
{
	(void)device;
	(void)memory;
	(void)handle;
	return err_set(err, "CPU memory cannot be shared by a handle; share it as a memfd");
}

static int copy(struct device *device, void *to, const void *from, int64_t bytes, struct err *err)
{
	(void)device;
	(void)err;
	if (bytes > 0)
		memmove(to, from, (size_t)bytes);
	return 0;
}

static int set(struct device *device, void *to, unsigned char byte, int64_t bytes, struct err *err)
{
	(void)device;
	(void)err;
	if (bytes > 0)
		memset(to, byte, (size_t)bytes);
	return 0;
}

/* Compares STEP bytes at a time with memcmp. If a step differs, searches this step byte by byte. */
static int64_t first_difference(struct device *device, const void *a, const void *b, int64_t bytes, struct err *err)
{
	const unsigned char *x = a, *y = b;

	(void)device;
	(void)err;
	for (int64_t at = 0; at < bytes; at += STEP) {
		int64_t end = bytes - at < STEP ? bytes : at + STEP;

		if (memcmp(x + at, y + at, (size_t)(end - at)) == 0)
			continue;
		while (x[at] == y[at])
			at++;
		return at;
	}
	return -1;
}

static int64_t first_other(struct device *device, const void *a, unsigned char byte, int64_t bytes, struct err *err)
{
	unsigned char same[STEP];
	const unsigned char *x = a;

	memset(same, byte, sizeof same);
	for (int64_t at = 0; at < bytes; at += STEP) {
		int64_t length = bytes - at < STEP ? bytes - at : STEP;
		int64_t other = first_difference(device, x + at, same, length, err);

		if (other >= 0)
			return at + other;
	}
	return -1;
}

static int write_parts(struct device *device, const struct device_part *parts, int count, struct err *err)
{
	for (int i = 0; i < count; i++)
		if (parts[i].bytes != NULL)
			copy(device, parts[i].memory, parts[i].bytes, parts[i].length, err);
		else
			set(device, parts[i].memory, parts[i].byte, parts[i].length, err);
	return 0;
}

static int parts_equal(struct device *device, const struct device_part *parts, int count, struct err *err)
{
	for (int i = 0; i < count; i++) {
		const struct device_part *part = &parts[i];
		int64_t at = part->bytes != NULL ? first_difference(device, part->memory, part->bytes, part->length, err)
						 : first_other(device, part->memory, part->byte, part->length, err);

		if (at >= 0)
			return 0;
	}
	return 1;
}

static void fill_generic(const struct op_case *c, int input, struct tensor *out)
{
	uint64_t key = input_key(c, input);
	int64_t units = generic_units(out->dtype, out->elements);

	memset(out->data, 0, (size_t)dtype_bytes(out->dtype, out->elements));
	if (!dtype_is_float(out->dtype))
		return;
#pragma omp parallel for if (units > SERIAL_UNITS)
	for (int64_t unit = 0; unit < units; unit++)
		generic_store(out->data, out->dtype, key, unit);
}

static int fill(struct device *device, const struct op *op, const struct op_case *c, int input, struct tensor *out,
                struct err *err)
{
	(void)device;
	if (op != NULL)
		return op->fill(c, input, out, err);
	fill_generic(c, input, out);
	return 0;
}

static int truth(struct device *device, const struct op *op, const struct op_case *c, const struct tensor *in,
                 struct tensor *out, struct err *err)
{
	(void)device;
	if (op == NULL)
		return err_set(err, "no op family can compute the ground truth of %s", c->problem->name);
	return op->oracle(c, in, out, err);
}

/* Returns 0, because oracles allocate their own scratch memory, which is a few rows per thread. */
static int64_t truth_scratch(struct device *device, const struct op *op, const struct op_case *c)
{
	(void)device;
	(void)op;
	(void)c;
	return 0;
}

static int compare(struct device *device, const void *reference, const void *ground_truth, enum dtype dtype,
                   int64_t elements, struct rule rule, struct metrics *out, struct err *err)
{
	(void)device;
	(void)err;
	compare_host(reference, ground_truth, dtype, elements, rule, out);
	return 0;
}

static const struct device_calls calls = {
    .close = close_cpu,
    .class_name = class_name,
    .product = product,
    .memory_free = memory_free,
    .memory_total = memory_total,
    .broken = broken,
    .allocate = allocate,
    .release = release,
    .share = share,
    .upload = copy,
    .download = copy,
    .copy = copy,
    .set = set,
    .write_parts = write_parts,
    .parts_equal = parts_equal,
    .first_difference = first_difference,
    .first_other = first_other,
    .fill = fill,
    .truth = truth,
    .truth_scratch = truth_scratch,
    .compare = compare,
};

/* Reads the product ("AMD EPYC …") from /proc/cpuinfo. If /proc/cpuinfo contains no product name, as on most Arm
 * machines, writes "CPU". */
static void read_product(char *out, size_t size)
{
	struct buf text = {0};
	const char *line = NULL;

	snprintf(out, size, "CPU");
	if (file_read(AT_FDCWD, "/proc/cpuinfo", 16 << 20, &text, NULL, NULL) == FILE_OK && text.length > 0)
		line = strstr(text.data, "model name");
	line = line == NULL ? NULL : strchr(line, ':');
	if (line != NULL && line[1] == ' ' && line[2] != '\n')
		snprintf(out, size, "%.*s", (int)strcspn(line + 2, "\n"), line + 2);
	buf_free(&text);
}

struct device *device_open_cpu(struct err *err)
{
	struct cpu_device *device = calloc(1, sizeof *device);

	(void)err;
	if (device == NULL)
		die_no_memory();
	device->device.calls = &calls;
	read_product(device->product, sizeof device->product);
	return &device->device;
}
