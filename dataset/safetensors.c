#include "dataset/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "dataset/lfs_pointer.h"

enum { LENGTH_BYTES = 8, HEADER_BYTES = 100000000, TENSORS = 100000, NAME_BYTES = 1024 };

static const struct {
	const char *name;
	enum dtype dtype;
} dtypes[] = {
    {"F64", DTYPE_FLOAT64},         {"F32", DTYPE_FLOAT32},     {"F16", DTYPE_FLOAT16},
    {"BF16", DTYPE_BFLOAT16},       {"F8_E4M3", DTYPE_FLOAT8_E4M3FN}, {"F8_E5M2", DTYPE_FLOAT8_E5M2},
    {"F8_E8M0", DTYPE_FLOAT8_E8M0FNU}, {"F4", DTYPE_FLOAT4_E2M1}, {"I64", DTYPE_INT64},
    {"I32", DTYPE_INT32},           {"I16", DTYPE_INT16},       {"I8", DTYPE_INT8},
    {"U32", DTYPE_UINT32},          {"U8", DTYPE_UINT8},        {"BOOL", DTYPE_BOOL},
};

const char *safetensors_dtype(enum dtype dtype)
{
	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
		if (dtypes[i].dtype == dtype)
			return dtypes[i].name;
	return NULL;
}

/* A tensor and the range of its data. Gaps and overlaps are found by sorting the ranges. */
struct extent {
	const struct safetensor *tensor;
	int64_t begin, end; /* byte offsets from the end of the header */
};

struct reader {
	struct json_text text;
	struct arena *arena;
	int64_t begin, bytes;  /* position and size of the data, which follows the header */
	struct safetensor *tensors;
	struct extent *extents;
	int count;
	struct err *err;
};

/* Writes a message "expected …, found …". Always returns -1, like the error functions below. */
static int expected(struct reader *r, const struct json_step *at, const char *what, const cJSON *found)
{
	return json_expected(&r->text, at, found, r->err, what);
}

static int read_dtype(struct reader *r, const struct json_step *tensor, const cJSON *json, struct safetensor *out)
{
	const struct json_step at = {.up = tensor, .key = "dtype"};
	const char *name = json_text_of(json, "dtype");

	for (size_t i = 0; name != NULL && i < sizeof dtypes / sizeof *dtypes; i++)
		if (strcmp(dtypes[i].name, name) == 0) {
			out->dtype = dtypes[i].dtype;
			return 0;
		}
	return expected(
	    r, &at, "a dtype (F64, F32, F16, BF16, F8_E4M3, F8_E5M2, F8_E8M0, F4, I64, I32, I16, I8, U32, U8, BOOL)",
	    json_member(json, "dtype"));
}

/* Reads rank and shape and computes the size in bytes. */
static int read_shape(struct reader *r, const struct json_step *tensor, const cJSON *json, struct safetensor *out)
{
	const struct json_step at = {.up = tensor, .key = "shape"};
	const cJSON *shape = json_member(json, "shape");
	int64_t bits = dtype_bits(out->dtype);

	if (!cJSON_IsArray(shape))
		return expected(r, &at, "a list of sizes", shape);
	if (cJSON_GetArraySize(shape) > RANK_MAX)
		return json_error_at(&r->text, &at, r->err, "expected at most %d dimensions, found %d", RANK_MAX,
		                     cJSON_GetArraySize(shape));
	for (const cJSON *item = shape->child; item != NULL; item = item->next) {
		const struct json_step size_at = {.up = &at, .index = out->rank};
		int64_t *size = &out->shape[out->rank++];

		if (!json_integer(item, size) || *size < 0)
			return expected(r, &size_at, "an integer of at least 0", item);
		if (__builtin_mul_overflow(bits, *size, &bits))
			return json_error_at(&r->text, &at, r->err,
			                     "expected a tensor of at most 2^63 bits, found a larger one");
	}
	if (bits % 8 != 0)
		return json_error_at(&r->text, &at, r->err, "expected a tensor with a whole number of bytes, found %lld bits",
		                     (long long)bits);
	out->bytes = bits / 8;
	return 0;
}

static int read_offsets(struct reader *r, const struct json_step *tensor, const cJSON *json, struct safetensor *out,
                        struct extent *extent)
{
	const struct json_step at = {.up = tensor, .key = "data_offsets"};
	const cJSON *offsets = json_member(json, "data_offsets");

	if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
	    !json_integer(offsets->child, &extent->begin) || !json_integer(offsets->child->next, &extent->end))
		return expected(r, &at, "a list of two integers", offsets);
	if (extent->begin < 0 || extent->end < extent->begin || extent->end > r->bytes)
		return json_error_at(&r->text, &at, r->err,
		                     "expected offsets within the file's %lld bytes of data, found %lld to %lld",
		                     (long long)r->bytes, (long long)extent->begin, (long long)extent->end);
	if (extent->end - extent->begin != out->bytes)
		return json_error_at(&r->text, &at, r->err,
		                     "expected offsets %lld bytes apart, as this dtype and shape require, found %lld",
		                     (long long)out->bytes, (long long)(extent->end - extent->begin));
	out->begin = r->begin + extent->begin;
	return 0;
}

static int read_tensor(struct reader *r, const cJSON *json)
{
	const struct json_step at = {.key = json->string};
	struct safetensor *out = &r->tensors[r->count];
	struct extent *extent = &r->extents[r->count];

	if (strlen(json->string) > NAME_BYTES)
		return json_error_at(&r->text, &at, r->err, "expected a name of at most %d bytes, found %zu",
		                     NAME_BYTES, strlen(json->string));
	if (!cJSON_IsObject(json))
		return expected(r, &at, "an object with \"dtype\", \"shape\" and \"data_offsets\"", json);
	if (read_dtype(r, &at, json, out) != 0 || read_shape(r, &at, json, out) != 0 ||
	    read_offsets(r, &at, json, out, extent) != 0)
		return -1;
	out->name = arena_string(r->arena, json->string);
	extent->tensor = out;
	r->count++;
	return 0;
}

static int compare_extents(const void *a, const void *b)
{
	const struct extent *left = a, *right = b;

	if (left->begin != right->begin)
		return left->begin < right->begin ? -1 : 1;
	return (left->end > right->end) - (left->end < right->end);
}

/* Checks that the tensors cover all of the data, from its first byte to its last, without gaps. */
static int check_extents(struct reader *r)
{
	int64_t end = 0;

	qsort(r->extents, (size_t)r->count, sizeof *r->extents, compare_extents);
	for (int i = 0; i < r->count; i++) {
		const struct json_step at = {.key = r->extents[i].tensor->name};

		if (r->extents[i].begin != end)
			return json_error_at(&r->text, &at, r->err,
			                     "expected the data of this tensor to begin at %lld, where the previous tensor "
			                     "ends, found %lld",
			                     (long long)end, (long long)r->extents[i].begin);
		end = r->extents[i].end;
	}
	if (end != r->bytes)
		return err_set(r->err, "%s: expected %lld bytes of data, the sum of the tensors' sizes, found %lld", r->text.name,
		               (long long)end, (long long)r->bytes);
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct safetensor *)a)->name, ((const struct safetensor *)b)->name);
}

static int read_header(struct reader *r, const cJSON *json, struct safetensors *out)
{
	const struct json_step metadata = {.key = "__metadata__"};
	int count = cJSON_GetArraySize(json);

	if (!cJSON_IsObject(json))
		return expected(r, NULL, "an object of tensors", json);
	if (count > TENSORS)
		return json_error_at(&r->text, NULL, r->err, "expected at most %d tensors, found %d", TENSORS, count);
	r->tensors = arena_array(r->arena, (size_t)count, sizeof *r->tensors);
	r->extents = arena_array(r->arena, (size_t)count, sizeof *r->extents);
	for (const cJSON *member = json->child; member != NULL; member = member->next) {
		if (strcmp(member->string, metadata.key) != 0) {
			if (read_tensor(r, member) != 0)
				return -1;
		} else if (!cJSON_IsObject(member)) {
			return expected(r, &metadata, "an object of strings", member);
		}
	}
	if (check_extents(r) != 0)
		return -1;
	qsort(r->tensors, (size_t)r->count, sizeof *r->tensors, compare_names);
	out->tensors = r->tensors;
	out->count = r->count;
	return 0;
}

/* Reads the length field: the first eight bytes, little-endian. */
static uint64_t header_length(const unsigned char *data)
{
	uint64_t length = 0;

	for (int i = LENGTH_BYTES - 1; i >= 0; i--)
		length = length << 8 | data[i];
	return length;
}

/* Returns the size of the length field and the header together. `data` is the beginning of the file. `data` must
 * contain at least the length field, unless the whole file is shorter. Returns -1 with a message on error. */
static int64_t head_length(const char *path, const unsigned char *data, size_t length, struct err *err)
{
	uint64_t header = length < LENGTH_BYTES ? 0 : header_length(data);

	if (length < LENGTH_BYTES)
		return err_set(
		    err, "%s: expected a safetensors file, which starts with a length field of %d bytes; the file has %zu bytes",
		    path, LENGTH_BYTES, length);
	if (header > HEADER_BYTES)
		return err_set(err, "%s: expected a safetensors header of at most %d bytes, found %llu bytes",
		               path, HEADER_BYTES, (unsigned long long)header);
	if (header > length - LENGTH_BYTES)
		return err_set(err, "%s: expected a safetensors header of %llu bytes, but only %zu bytes follow the length field",
		               path, (unsigned long long)header, length - LENGTH_BYTES);
	return (int64_t)header + LENGTH_BYTES;
}

/* Parses the length field and the header, which together have `head` bytes. `length` is the size of the file. */
static int parse_head(const char *path, const unsigned char *data, int64_t head, size_t length, struct arena *arena,
                      struct safetensors *out, struct err *err)
{
	struct reader r = {
	    .text = {.name = arena_printf(arena, "%s (header)", path),
	             .text = (const char *)data + LENGTH_BYTES,
	             .length = (size_t)head - LENGTH_BYTES,
	             .first_line = 1},
	    .arena = arena,
	    .begin = head,
	    .bytes = (int64_t)length - head,
	    .err = err,
	};
	cJSON *json = json_parse(&r.text, err);

	if (json == NULL)
		return -1;
	int wrong = read_header(&r, json, out);

	cJSON_Delete(json);
	return wrong;
}

int safetensors_parse(const char *path, const unsigned char *data, size_t length, struct arena *arena,
                      struct safetensors *out, struct err *err)
{
	int64_t head = head_length(path, data, length, err);

	*out = (struct safetensors){.fd = -1};
	return head < 0 ? -1 : parse_head(path, data, head, length, arena, out, err);
}

/* --- files --------------------------------------------------------------------------------------------------- */

static const char *without_dot(const char *path)
{
	while (path[0] == '.' && path[1] == '/')
		for (path += 2; *path == '/'; path++)
			;
	return path;
}

/* Reads the first `length` bytes of the file into `head`. */
static bool read_head(const struct safetensors *file, size_t length, struct buf *head)
{
	size_t there = head->length;

	if (length <= there)
		return true;
	buf_reserve(head, length - there);
	head->length = length;
	return file_read_at(file->fd, head->data + there, length - there, (int64_t)there);
}

/* Reads the length field and the header in one read, parses them, and keeps their bytes in out->head. */
static enum safetensors_answer parse_open(const char *path, struct arena *arena, struct safetensors *out, struct err *err)
{
	size_t length = (size_t)out->st.st_size, first = LFS_POINTER_HEAD;
	struct buf *head = &out->head;
	int64_t bytes;

	if (!read_head(out, length < first ? length : first, head))
		return err_set(err, "%s: cannot read the file, or it was truncated while it was read", path);
	if (lfs_pointer_begins(head->data, head->length)) {
		err_set(err, "%s: this file is a Git LFS pointer and contains no tensors; fetch the tensors with: "
			     "%s", path,
		        lfs_fetch_command(arena, path));
		return SAFETENSORS_POINTER;
	}
	bytes = head_length(path, (const unsigned char *)head->data, length, err);
	if (bytes < 0)
		return SAFETENSORS_ERROR;
	if (!read_head(out, (size_t)bytes, head))
		return err_set(err, "%s: cannot read the file, or it was truncated while it was read", path);
	/* tensor data that was read with the header is dropped here and read again later */
	head->length = (size_t)bytes;
	int rc = parse_head(path, (const unsigned char *)head->data, bytes, length, arena, out, err);

	return rc != 0 ? SAFETENSORS_ERROR : SAFETENSORS_OK;
}

enum safetensors_answer safetensors_open(int root, const char *path, struct arena *arena, struct safetensors *out,
                                         struct err *err)
{
	*out = (struct safetensors){.fd = -1};
	path = without_dot(path);
	enum file_answer found = file_open_beneath(root, path, &out->fd, &out->st, err);

	if (found == FILE_ABSENT) {
		err_set(err, "%s: no such file; if it is stored in Git LFS, fetch it with: %s", path,
		        lfs_fetch_command(arena, path));
		return SAFETENSORS_MISSING;
	}
	if (found != FILE_OK)
		return SAFETENSORS_ERROR;
	enum safetensors_answer answer = parse_open(path, arena, out, err);

	if (answer != SAFETENSORS_OK)
		safetensors_close(out);
	return answer;
}

static int compare_name(const void *name, const void *tensor)
{
	return strcmp(name, ((const struct safetensor *)tensor)->name);
}

const struct safetensor *safetensors_find(const struct safetensors *file, const char *name)
{
	return file->count == 0
	           ? NULL
	           : bsearch(name, file->tensors, (size_t)file->count, sizeof *file->tensors, compare_name);
}

const struct safetensor *safetensors_expect(const struct safetensors *file, const char *path, const char *key,
					    const char *input, enum dtype dtype, int rank, const int64_t *shape,
					    struct err *err)
{
	const struct safetensor *found = safetensors_find(file, key);
	struct arena arena = {0};
	bool same = found != NULL && found->dtype == dtype && found->rank == rank;

	for (int d = 0; same && d < rank; d++)
		same = found->shape[d] == shape[d];
	if (found == NULL)
		err_set(err, "input '%s': %s has no tensor \"%s\"", input, err_show(path).text, err_show(key).text);
	else if (!same)
		err_set(err, "input '%s': the tensor \"%s\" of %s is %s, but the case needs %s", input, err_show(key).text,
			err_show(path).text, tensor_type_text(&arena, found->rank, found->shape, dtype_name(found->dtype)),
			tensor_type_text(&arena, rank, shape, dtype_name(dtype)));
	arena_free(&arena);
	return same ? found : NULL;
}

void safetensors_close(struct safetensors *file)
{
	if (file->fd >= 0)
		close(file->fd);
	buf_free(&file->head);
	*file = (struct safetensors){.fd = -1};
}

/* --- digests ------------------------------------------------------------------------------------------------- */

static int compare_places(const void *a, const void *b)
{
	const struct safetensor *left = *(const struct safetensor *const *)a, *right = *(const struct safetensor *const *)b;

	if (left->begin != right->begin)
		return left->begin < right->begin ? -1 : 1;
	return (left->bytes > right->bytes) - (left->bytes < right->bytes); /* empty tensors come first */
}

/* The state of safetensors_digest, which reads a file from its beginning to its end. Each byte after the header belongs
 * to exactly one tensor. */
struct walk {
	const struct safetensors *file;
	/* whole: for the digest of the file. part: for the digest of the current tensor; NULL if no digests of tensors
	 * are needed. */
	struct hash *whole, *part;
	int64_t at;
};

static void hash_both(const unsigned char *bytes, size_t length, void *context)
{
	const struct walk *walk = context;

	hash_add(walk->whole, bytes, length);
	if (walk->part != NULL)
		hash_add(walk->part, bytes, length);
}

/* Reads the next `bytes` bytes of the file. If `digest` is not NULL, writes their digest to it. */
static bool walk_over(struct walk *walk, int64_t bytes, struct digest *digest)
{
	walk->part = digest != NULL ? hash_begin() : NULL;
	bool read = file_each_part(walk->file->fd, walk->at, bytes, hash_both, walk);

	walk->at += bytes;
	if (walk->part != NULL)
		*digest = hash_end(walk->part);
	return read;
}

static bool walk_tensors(struct walk *walk, struct digest *tensors)
{
	const struct safetensors *file = walk->file;
	const struct safetensor **places = calloc((size_t)file->count + 1, sizeof *places);
	bool read = true;

	if (places == NULL)
		die_no_memory();
	for (int i = 0; i < file->count; i++)
		places[i] = &file->tensors[i];
	qsort(places, (size_t)file->count, sizeof *places, compare_places);
	for (int i = 0; read && i < file->count; i++)
		read = walk_over(walk, places[i]->bytes, &tensors[places[i] - file->tensors]);
	free(places);
	return read;
}

bool safetensors_digest(const struct safetensors *file, struct digest *content, struct digest *tensors)
{
	struct walk walk = {.file = file, .whole = hash_begin(), .at = (int64_t)file->head.length};

	hash_add(walk.whole, file->head.data, file->head.length);
	bool read = tensors != NULL ? walk_tensors(&walk, tensors) : walk_over(&walk, file->st.st_size - walk.at, NULL);

	*content = hash_end(walk.whole);
	return read;
}
