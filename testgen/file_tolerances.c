#include "testgen/file_tolerances.h"

#include <stdbool.h>
#include <string.h>

static const char first_line[] = "\nTOLERANCES = (\n";
static const char last_line[] = "\n)\n";
static const char imports[] = "\n\nimport conftest\n";

static bool is_given(const struct tolerance *t)
{
	return t->atol >= 0 || t->rtol >= 0 || t->hit_ratio >= 0;
}

static bool same(const struct tolerance *a, const struct tolerance *b)
{
	return a->atol == b->atol && a->rtol == b->rtol && a->hit_ratio == b->hit_ratio;
}

/* Writes one string of the tuple TOLERANCES; read_tolerance in conftest.py reads this string. If `dtype` is NULL, the
 * bounds are for every dtype without a string of its own. */
static void write_one(const char *dtype, const struct tolerance *t, struct buf *out)
{
	buf_printf(out, "    \"%s%s", dtype != NULL ? dtype : "", dtype != NULL ? "=" : "");
	buf_json_number(out, t->atol);
	if (t->rtol != t->atol || t->hit_ratio >= 0) {
		buf_text(out, ",");
		buf_json_number(out, t->rtol);
	}
	if (t->hit_ratio >= 0) {
		buf_text(out, ",");
		buf_json_number(out, t->hit_ratio);
	}
	buf_text(out, "\",\n");
}

/* Returns the bounds that the largest number of dtypes share, or NULL if some dtype has no bounds. */
static const struct tolerance *usual(const struct tolerance by_dtype[DTYPE_COUNT])
{
	const struct tolerance *best = NULL;
	int most = 0;

	for (int i = 0; i < DTYPE_COUNT; i++) {
		int count = 0;

		if (!is_given(&by_dtype[i]))
			return NULL;
		for (int k = 0; k < DTYPE_COUNT; k++)
			count += same(&by_dtype[i], &by_dtype[k]);
		if (count > most) {
			most = count;
			best = &by_dtype[i];
		}
	}
	return best;
}

void file_tolerances_write(const struct tolerance by_dtype[DTYPE_COUNT], struct buf *out)
{
	const struct tolerance *all = usual(by_dtype);
	struct buf texts = {0};

	if (all != NULL)
		write_one(NULL, all, &texts);
	for (int i = 0; i < DTYPE_COUNT; i++)
		if (is_given(&by_dtype[i]) && (all == NULL || !same(all, &by_dtype[i])))
			write_one(dtype_name((enum dtype)i), &by_dtype[i], &texts);
	if (texts.length > 0)
		buf_printf(out, "%s%s)\n", first_line, texts.data);
	buf_free(&texts);
}

size_t file_tolerances_find(const char *body, size_t length, const char **out)
{
	const char *import = memmem(body, length, imports, sizeof imports - 1), *begin, *end;

	*out = NULL;
	if (import == NULL)
		return 0;
	begin = import + sizeof imports - 1;
	size_t left = length - (size_t)(begin - body);

	if (left < sizeof first_line - 1 || memcmp(begin, first_line, sizeof first_line - 1) != 0)
		return 0;
	end = memmem(begin, left, last_line, sizeof last_line - 1);
	*out = begin;
	return end == NULL ? 0 : (size_t)(end - begin) + sizeof last_line - 1;
}

void file_tolerances_insert(const char *tuple, size_t length, struct buf *body)
{
	const char *import = length == 0 ? NULL : memmem(body->data, body->length, imports, sizeof imports - 1);
	struct buf whole = {0};

	if (import == NULL)
		return;
	size_t head = (size_t)(import - body->data) + sizeof imports - 1;

	buf_add(&whole, body->data, head);
	buf_add(&whole, tuple, length);
	buf_add(&whole, body->data + head, body->length - head);
	buf_free(body);
	*body = whole;
}
