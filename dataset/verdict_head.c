/* verdict_head - reads a passed verdict quickly: it matches the beginning and the end of verdict_write's output byte by
 * byte. It rejects every other text, and its callers then call verdict_parse. verdict_parse takes some twenty times as
 * long, mostly because it parses the numbers of the outputs.
 *
 * The fields are matched in the order in which verdict_write writes them. A new field of a verdict must also be added
 * here, in the same position. If the field is missing here, verdict_head rejects every text that contains the field,
 * and callers need the slow verdict_parse for these texts. */
#include "dataset/verdict.h"

#include <stdlib.h>
#include <string.h>

struct head {
	const char *at, *end;
	struct arena *arena;
	bool other; /* the text does not match */
};

static void expect(struct head *h, const char *words)
{
	size_t length = strlen(words);

	if (h->other || (size_t)(h->end - h->at) < length || memcmp(h->at, words, length) != 0)
		h->other = true;
	else
		h->at += length;
}

static void expect_key(struct head *h, const char *key)
{
	expect(h, ", \"");
	expect(h, key);
	expect(h, "\": ");
}

/* Returns whether `key` is the next key. */
static bool has_key(const struct head *h, const char *key)
{
	struct head copy = *h;

	expect_key(&copy, key);
	return !copy.other;
}

/* Reads a member that is null or a string without escapes. */
static const char *text_of(struct head *h, const char *key)
{
	expect_key(h, key);
	if (!h->other && h->end - h->at >= 4 && memcmp(h->at, "null", 4) == 0) {
		h->at += 4;
		return NULL;
	}
	expect(h, "\"");
	size_t left = (size_t)(h->end - h->at), length = 0;

	while (!h->other && length < left && h->at[length] != '"' && h->at[length] != '\\' &&
	       (unsigned char)h->at[length] >= 0x20 && (unsigned char)h->at[length] < 0x80)
		length++;
	const char *text = h->other ? NULL : arena_copy(h->arena, h->at, length);

	h->at += h->other ? 0 : length;
	expect(h, "\"");
	return text;
}

/* Reads the characters of a number. */
static const char *number_of(struct head *h, const char *key, char out[32])
{
	size_t length = 0;

	expect_key(h, key);
	while (!h->other && length < 31 && h->at < h->end && strchr("+-.0123456789e", *h->at) != NULL && *h->at != '\0')
		out[length++] = *h->at++;
	out[length] = '\0';
	h->other = h->other || length == 0 || length == 31;
	return out;
}

static int64_t integer_of(struct head *h, const char *key, int64_t least)
{
	static const int64_t most = (int64_t)1 << 53;
	char text[32], *end;
	long long value = strtoll(number_of(h, key, text), &end, 10);

	if (*end != '\0' || value < least || value > most)
		h->other = true;
	return value;
}

static double seconds_of(struct head *h)
{
	char text[32], *end;
	double value = strtod(number_of(h, "seconds", text), &end);

	h->other = h->other || *end != '\0';
	return value;
}

/* Skips the list of margins on other drivers, up to the first "]". If a string in the list contains "]", the skip ends
 * too early; the next field then does not match. */
static void skip_drivers(struct head *h)
{
	const char *end;

	if (h->other || !has_key(h, "drivers"))
		return;
	end = memchr(h->at, ']', (size_t)(h->end - h->at));
	if (end == NULL)
		h->other = true;
	else
		h->at = end + 1;
}

static bool ends_with(const char *text, size_t length, const char *tail)
{
	size_t size = strlen(tail);

	return length >= size && memcmp(text + length - size, tail, size) == 0;
}

const struct verdict *verdict_head(const char *text, size_t length, struct arena *arena)
{
	struct head h = {.at = text, .end = text + length, .arena = arena};

	expect(&h, "{\"status\": \"passed\", \"reason\": null, \"message\": null, \"weak\": false");
	if (h.other || !ends_with(text, length, "], \"findings\": []}"))
		return NULL;
	struct verdict *out = arena_alloc(arena, sizeof *out);

	*out = (struct verdict){.status = STATUS_PASSED, .reason = REASON_NONE};
	out->device_class = text_of(&h, "device_class");
	out->device = text_of(&h, "device");
	out->ground_truth = text_of(&h, "ground_truth");
	out->ground_truth_version = text_of(&h, "ground_truth_version");
	out->torch = text_of(&h, "torch");
	out->cuda = text_of(&h, "cuda");
	if (has_key(&h, "python"))
		out->python = text_of(&h, "python");
	if (has_key(&h, "driver"))
		out->driver = text_of(&h, "driver");
	if (has_key(&h, "containment"))
		out->containment = text_of(&h, "containment");
	if (has_key(&h, "isolation")) {
		out->isolation = text_of(&h, "isolation");
		out->isolation_reason = text_of(&h, "isolation_reason");
	}
	if (has_key(&h, "after"))
		out->after = text_of(&h, "after");
	out->seconds = seconds_of(&h);
	out->time = integer_of(&h, "time", -((int64_t)1 << 53));
	out->elements = integer_of(&h, "elements", 0);
	out->reference_line = (int)integer_of(&h, "reference_line", 0);
	skip_drivers(&h);
	expect(&h, ", \"outputs\": [{");
	return h.other ? NULL : out;
}

int64_t verdict_time(const char *text, size_t length)
{
	/* a quote inside a JSON string is escaped, so `key` cannot match inside a string */
	static const char key[] = "\"time\": ";
	const char *at = memmem(text, length, key, sizeof key - 1), *end = text + length;
	int64_t time = 0;

	if (at == NULL)
		return 0;
	for (at += sizeof key - 1; at < end && *at >= '0' && *at <= '9' && time < INT64_MAX / 100; at++)
		time = time * 10 + (*at - '0');
	return time;
}
