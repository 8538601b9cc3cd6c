/* test_safetensors - safetensors files: tensors are found where the header says, and a header that contradicts the file
 * is rejected. */
#include "dataset/safetensors.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"

/* Builds a file: the length of the header, the header, and `bytes` bytes of data with the values 0, 1, 2, … The
 * allocation has exactly the size of the file, so that a sanitizer detects a read beyond the end. */
static unsigned char *make(const char *header, size_t bytes, size_t *length)
{
	size_t size = strlen(header);
	unsigned char *file = malloc(8 + size + bytes);

	*length = 8 + size + bytes;
	for (int i = 0; i < 8; i++)
		file[i] = (unsigned char)((uint64_t)size >> (8 * i));
	memcpy(file + 8, header, size);
	for (size_t i = 0; i < bytes; i++)
		file[8 + size + i] = (unsigned char)i;
	return file;
}

static void refused(const char *header, size_t bytes, const char *sentence)
{
	struct arena arena = {0};
	struct safetensors out;
	struct err err = {""};
	size_t length;
	unsigned char *file = make(header, bytes, &length);

	assert_int_equal(safetensors_parse("b", file, length, &arena, &out, &err), -1);
	assert_string_equal(err.text, sentence);
	assert_int_equal(out.count, 0);
	free(file);
	arena_free(&arena);
}

static void tensors_are_found_where_the_header_says(void **state)
{
	static const char header[] = "{\"__metadata__\": {\"format\": \"pt\"},"
	                             "\"z\": {\"dtype\": \"I32\", \"shape\": [2, 1], \"data_offsets\": [6, 14]},"
	                             "\"a\": {\"dtype\": \"BF16\", \"shape\": [3], \"data_offsets\": [0, 6]},"
	                             "\"d\": {\"dtype\": \"U8\", \"shape\": [0], \"data_offsets\": [14, 14]},"
	                             "\"s\": {\"dtype\": \"F64\", \"shape\": [], \"data_offsets\": [14, 22]},"
	                             "\"e\": {\"dtype\": \"U8\", \"shape\": [0, 5], \"data_offsets\": [14, 14]}}   ";
	struct arena arena = {0};
	struct safetensors out;
	struct err err = {""};
	size_t length;
	unsigned char *file = make(header, 22, &length);

	(void)state;
	assert_int_equal(safetensors_parse("b", file, length, &arena, &out, &err), 0);
	assert_string_equal(err.text, "");
	assert_int_equal(out.count, 5);
	const struct safetensor *z = safetensors_find(&out, "z");

	assert_non_null(z);
	assert_true(z->dtype == DTYPE_INT32 && z->rank == 2 && z->shape[0] == 2 && z->shape[1] == 1 && z->bytes == 8);
	assert_int_equal(file[z->begin], 6);
	assert_int_equal(file[safetensors_find(&out, "a")->begin + 5], 5);
	assert_true(safetensors_find(&out, "s")->rank == 0 && safetensors_find(&out, "s")->bytes == 8);
	assert_true(safetensors_find(&out, "e")->bytes == 0);
	assert_null(safetensors_find(&out, "__metadata__"));
	assert_null(safetensors_find(&out, "b"));
	assert_null(safetensors_find(&(struct safetensors){0}, "b"));
	free(file);
	arena_free(&arena);
}

static void every_dtype_has_its_size(void **state)
{
	static const struct {
		const char *name;
		enum dtype dtype;
		int bytes; /* the size of two elements in bytes */
	} cases[] = {
	    {"F64", DTYPE_FLOAT64, 16},
	    {"F32", DTYPE_FLOAT32, 8},
	    {"F16", DTYPE_FLOAT16, 4},
	    {"BF16", DTYPE_BFLOAT16, 4},
	    {"F8_E4M3", DTYPE_FLOAT8_E4M3FN, 2},
	    {"F8_E5M2", DTYPE_FLOAT8_E5M2, 2},
	    {"F8_E8M0", DTYPE_FLOAT8_E8M0FNU, 2},
	    {"F4", DTYPE_FLOAT4_E2M1, 1},
	    {"I64", DTYPE_INT64, 16},
	    {"I32", DTYPE_INT32, 8},
	    {"I16", DTYPE_INT16, 4},
	    {"I8", DTYPE_INT8, 2},
	    {"U32", DTYPE_UINT32, 8},
	    {"U8", DTYPE_UINT8, 2},
	    {"BOOL", DTYPE_BOOL, 2},
	};
	char header[128];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena arena = {0};
		struct safetensors out;
		size_t length;

		snprintf(header, sizeof header,
		         "{\"t\": {\"dtype\": \"%s\", \"shape\": [2], \"data_offsets\": [0, %d]}}", cases[i].name,
		         cases[i].bytes);
		unsigned char *file = make(header, (size_t)cases[i].bytes, &length);

		assert_int_equal(safetensors_parse("b", file, length, &arena, &out, NULL), 0);
		assert_int_equal(out.tensors[0].dtype, cases[i].dtype);
		free(file);
		arena_free(&arena);
	}
}

static void headers_that_lie_are_refused(void **state)
{
	static const struct {
		const char *header;
		size_t bytes;
		const char *sentence;
	} cases[] = {
	    {"", 0, "b (header):1:1: expected a value, found an empty file"},
	    {"[]", 0, "b (header):1:1: expected an object of tensors, found a list"},
	    {"{", 0, "b (header):1:2: expected a key in double quotes, found the end of the text"},
	    {"{\"a\": 1, \"a\": 2}", 0, "b (header):1:10: expected each key once, found \"a\" a second time"},
	    {"{\"a\": 1}", 0,
	     "b (header):1:7: expected an object with \"dtype\", \"shape\" and \"data_offsets\", found 1"},
	    {"{\"__metadata__\": []}", 0, "b (header):1:18: expected an object of strings, found a list"},
	    {"{\"a\": {\"shape\": [], \"data_offsets\": [0, 1]}}", 1,
	     "b (header):1:7: expected a dtype (F64, F32, F16, BF16, F8_E4M3, F8_E5M2, F8_E8M0, F4, I64, I32, I16, I8, "
	     "U32, U8, "
	     "BOOL), found nothing"},
	    {"{\"a\": {\"dtype\": \"C64\", \"shape\": [], \"data_offsets\": [0, 8]}}", 8,
	     "b (header):1:17: expected a dtype (F64, F32, F16, BF16, F8_E4M3, F8_E5M2, F8_E8M0, F4, I64, I32, I16, "
	     "I8, U32, U8, "
	     "BOOL), found \"C64\""},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": 3, \"data_offsets\": [0, 3]}}", 3,
	     "b (header):1:32: expected a list of sizes, found 3"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,3], \"data_offsets\": [0, 3]}}", 3,
	     "b (header):1:32: expected at most 16 dimensions, found 17"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [-3], \"data_offsets\": [0, 3]}}", 3,
	     "b (header):1:33: expected an integer of at least 0, found -3"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [1.5], \"data_offsets\": [0, 3]}}", 3,
	     "b (header):1:33: expected an integer of at least 0, found 1.5"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [4294967296, 4294967296], \"data_offsets\": [0, 0]}}", 0,
	     "b (header):1:32: expected a tensor of at most 2^63 bits, found a larger one"},
	    {"{\"a\": {\"dtype\": \"F4\", \"shape\": [3], \"data_offsets\": [0, 2]}}", 2,
	     "b (header):1:32: expected a tensor with a whole number of bytes, found 12 bits"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [3]}}", 3,
	     "b (header):1:7: expected a list of two integers, found nothing"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [3], \"data_offsets\": [0]}}", 3,
	     "b (header):1:53: expected a list of two integers, found a list"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [3], \"data_offsets\": [0, 1e300]}}", 3,
	     "b (header):1:53: expected a list of two integers, found a list"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [3], \"data_offsets\": [0, 3]}}", 2,
	     "b (header):1:53: expected offsets within the file's 2 bytes of data, found 0 to 3"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [3], \"data_offsets\": [3, 0]}}", 3,
	     "b (header):1:53: expected offsets within the file's 3 bytes of data, found 3 to 0"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [3], \"data_offsets\": [-3, 0]}}", 3,
	     "b (header):1:53: expected offsets within the file's 3 bytes of data, found -3 to 0"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [3], \"data_offsets\": [0, 2]}}", 3,
	     "b (header):1:53: expected offsets 3 bytes apart, as this dtype and shape require, found 2"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [3], \"data_offsets\": [0, 3]}, \"b\": {\"dtype\": \"I8\", "
	     "\"shape\": [2], "
	     "\"data_offsets\": [2, 4]}}",
	     4,
	     "b (header):1:67: expected the data of this tensor to begin at 3, where the previous tensor ends, found 2"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [4], \"data_offsets\": [0, 4]}, \"b\": {\"dtype\": \"I8\", "
	     "\"shape\": [1], "
	     "\"data_offsets\": [2, 3]}}",
	     4,
	     "b (header):1:67: expected the data of this tensor to begin at 4, where the previous tensor ends, found 2"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [3], \"data_offsets\": [1, 4]}}", 4,
	     "b (header):1:7: expected the data of this tensor to begin at 0, where the previous tensor ends, found 1"},
	    {"{\"a\": {\"dtype\": \"I8\", \"shape\": [3], \"data_offsets\": [0, 3]}}", 4,
	     "b (header): expected 3 bytes of data, the sum of the tensors' sizes, found 4"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		refused(cases[i].header, cases[i].bytes, cases[i].sentence);
}

static void names_and_numbers_of_tensors_are_bounded(void **state)
{
	struct buf header = {0};

	(void)state;
	buf_text(&header, "{\"");
	for (int i = 0; i < 1025; i++)
		buf_text(&header, "n");
	buf_text(&header, "\": 1}");
	refused(header.data, 0, "b (header):1:1031: expected a name of at most 1024 bytes, found 1025");
	buf_clear(&header);
	for (int i = 0; i < 100001; i++)
		buf_printf(&header, "%s\"%d\": 1", i == 0 ? "{" : ", ", i);
	buf_text(&header, "}");
	refused(header.data, 0, "b (header):1:1: expected at most 100000 tensors, found 100001");
	buf_free(&header);
}

static void the_header_lies_within_the_file(void **state)
{
	struct arena arena = {0};
	struct safetensors out;
	struct err err;
	unsigned char file[10] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'};

	(void)state;
	assert_int_equal(safetensors_parse("b", file, 10, &arena, &out, &err), -1);
	assert_string_equal(err.text, "b: expected a safetensors header of 3 bytes, but only 2 bytes follow the length field");
	file[0] = 2;
	assert_int_equal(safetensors_parse("b", file, 10, &arena, &out, &err), 0);
	assert_int_equal(out.count, 0);
	for (size_t length = 0; length < 8; length++)
		assert_int_equal(safetensors_parse("b", file, length, &arena, &out, &err), -1);
	assert_string_equal(err.text,
	                    "b: expected a safetensors file, which starts with a length field of 8 bytes; the file has 7 bytes");
	assert_int_equal(safetensors_parse("b", NULL, 0, &arena, &out, &err), -1);
	memset(file, 0xff, 8);
	assert_int_equal(safetensors_parse("b", file, 10, &arena, &out, &err), -1);
	assert_string_equal(
	    err.text, "b: expected a safetensors header of at most 100000000 bytes, found 18446744073709551615 bytes");
	arena_free(&arena);
}

static void put(const char *path, const void *bytes, size_t length)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
}

static void files_are_opened_below_the_root(void **state)
{
	static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12345\n";
	char folder[] = "/tmp/reftest-safetensors-XXXXXX", command[64];
	struct arena arena = {0};
	struct safetensors out;
	struct err err = {""};
	size_t length;
	unsigned char *bytes =
	    make("{\"a\": {\"dtype\": \"I8\", \"shape\": [3], \"data_offsets\": [0, 3]}}", 3, &length);

	(void)state;
	assert_non_null(mkdtemp(folder));
	int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(fchdir(root), 0);
	put("good", bytes, length);
	put("pointer", pointer, sizeof pointer - 1);
	put("empty", "", 0);
	assert_int_equal(safetensors_open(root, ".//./good", &arena, &out, &err), SAFETENSORS_OK);
	assert_int_equal(bytes[safetensors_find(&out, "a")->begin + 2], 2);
	assert_true((size_t)out.st.st_size == length && out.head.length == length - 3);
	safetensors_close(&out);
	assert_int_equal(out.count, 0);
	safetensors_close(&out);
	assert_int_equal(safetensors_open(root, "./pointer", &arena, &out, &err), SAFETENSORS_POINTER);
	assert_string_equal(err.text, "pointer: this file is a Git LFS pointer and contains no tensors; fetch the tensors with: "
	                              "git lfs pull --include pointer");
	assert_int_equal(safetensors_open(root, "a \"$(x)`\\", &arena, &out, &err), SAFETENSORS_MISSING);
	assert_string_equal(err.text, "a \"$(x)`\\: no such file; if it is stored in Git LFS, fetch it with: "
	                              "git lfs pull --include 'a \"$(x)`\\'");
	assert_int_equal(safetensors_open(root, "../good", &arena, &out, &err), SAFETENSORS_ERROR);
	assert_string_equal(
	    err.text, "../good: the path leads out of the dataset's folder; move the file into that folder and use a path relative to it");
	assert_int_equal(safetensors_open(root, "empty", &arena, &out, &err), SAFETENSORS_ERROR);
	assert_string_equal(err.text,
	                    "empty: expected a safetensors file, which starts with a length field of 8 bytes; the file has 0 bytes");
	assert_int_equal(safetensors_open(root, ".", &arena, &out, &err), SAFETENSORS_ERROR);
	assert_int_equal(safetensors_open(root, "./", &arena, &out, &err), SAFETENSORS_ERROR);
	struct buf maps = {0};

	assert_int_equal(file_read(AT_FDCWD, "/proc/self/maps", 1 << 20, &maps, NULL, NULL), FILE_OK);
	assert_null(strstr(maps.data, folder)); /* no part of a file is still mapped */
	buf_free(&maps);
	close(root);
	assert_int_equal(chdir("/"), 0);
	snprintf(command, sizeof command, "rm -r '%s'", folder);
	assert_int_equal(system(command), 0);
	free(bytes);
	arena_free(&arena);
}

/* The file has tensors that are larger than one read, and empty tensors between them. */
static void a_file_and_its_tensors_have_the_digests_of_their_bytes(void **state)
{
	enum { BIG = (2 << 20) + 5, SMALL = 7 };
	char path[] = "/tmp/reftest-safetensors-XXXXXX", header[512];
	struct arena arena = {0};
	struct digest content, tensors[4], wanted;
	struct safetensors out;
	struct err err = {""};
	size_t length;
	int root = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = mkstemp(path);

	(void)state;
	snprintf(header, sizeof header,
	         "{\"z\": {\"dtype\": \"U8\", \"shape\": [%d], \"data_offsets\": [0, %d]},"
	         "\"e\": {\"dtype\": \"U8\", \"shape\": [0], \"data_offsets\": [%d, %d]},"
	         "\"b\": {\"dtype\": \"U8\", \"shape\": [0, 2], \"data_offsets\": [0, 0]},"
	         "\"a\": {\"dtype\": \"U8\", \"shape\": [%d], \"data_offsets\": [%d, %d]}}",
	         BIG, BIG, BIG, BIG, SMALL, BIG, BIG + SMALL);
	unsigned char *bytes = make(header, BIG + SMALL, &length);

	put(path, bytes, length);
	assert_int_equal(safetensors_open(root, path + 5, &arena, &out, &err), SAFETENSORS_OK);
	assert_true(safetensors_digest(&out, &content, tensors));
	wanted = digest_of(bytes, length);
	assert_true(digest_equal(&content, &wanted));
	for (int i = 0; i < out.count; i++) {
		wanted = digest_of(bytes + out.tensors[i].begin, (size_t)out.tensors[i].bytes);
		assert_true(digest_equal(&tensors[i], &wanted));
	}
	assert_true(safetensors_digest(&out, &content, NULL));
	wanted = digest_of(bytes, length);
	assert_true(digest_equal(&content, &wanted));
	assert_int_equal(ftruncate(fd, (off_t)length - SMALL), 0); /* the file shrinks while it is open */
	assert_false(safetensors_digest(&out, &content, tensors));
	assert_false(safetensors_digest(&out, &content, NULL));
	safetensors_close(&out);
	close(fd);
	close(root);
	unlink(path);
	free(bytes);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tensors_are_found_where_the_header_says),
	    cmocka_unit_test(every_dtype_has_its_size),
	    cmocka_unit_test(headers_that_lie_are_refused),
	    cmocka_unit_test(names_and_numbers_of_tensors_are_bounded),
	    cmocka_unit_test(the_header_lies_within_the_file),
	    cmocka_unit_test(files_are_opened_below_the_root),
	    cmocka_unit_test(a_file_and_its_tensors_have_the_digests_of_their_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
