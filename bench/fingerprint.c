/* fingerprint - measures how fast the fingerprints of definitions are computed. For comparison, the same bytes are
 * hashed with plain XXH3-128. A cache could use these plain hashes as keys: they are faster to compute, but each change
 * of a comment would make a case run again. Compare the ratios and not the times, because the times depend on the
 * machine and its load. The definitions are synthetic: norms and attentions of ordinary size, all different. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "cache/fingerprint.h"
#include "cache/python_normal_form.h"
#include "dataset/definition_parse.h"

enum { DEFINITIONS = 2000, ROUNDS = 5 };

static const char reference_head[] =
    "import math\nimport torch\n\n\n@torch.no_grad()\ndef run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):\n"
    "    \"\"\"Paged attention, one request at a time.\n\n    Returns the output and the log-sum-exp in base 2.\n    "
    "\"\"\"\n"
    "    batch_size, num_qo_heads, head_dim = q.shape\n    page_size = k_cache.shape[1]\n"
    "    # Check constants\n    assert num_qo_heads == 32 and head_dim == 128\n\n"
    "    output = torch.zeros((batch_size, num_qo_heads, head_dim), dtype=torch.bfloat16, device=q.device)\n"
    "    lse = torch.full((batch_size, num_qo_heads), -float(\"inf\"), dtype=torch.float32, device=q.device)\n";

static const char reference_step[] =
    "    for b in range(batch_size):\n        beg, end = int(kv_indptr[b].item()), int(kv_indptr[b + 1].item())\n"
    "        if beg >= end:\n            # No pages for this request\n            output[b].zero_()\n            "
    "continue\n"
    "        pages = kv_indices[beg:end].to(torch.long)\n"
    "        k = k_cache[pages].to(torch.float32).reshape(-1, head_dim)[: (end - beg) * page_size]\n"
    "        logits = torch.matmul(q[b].to(torch.float32), k.T) * sm_scale  # [heads, tokens]\n"
    "        lse[b] = torch.logsumexp(logits, dim=-1) / math.log(2.0)\n\n";

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void make_reference(int number, struct buf *out)
{
	buf_printf(out, "# reference %d\n", number);
	buf_text(out, reference_head);
	for (int i = 0; i < 1 + number % 4; i++)
		buf_text(out, reference_step);
	buf_printf(out, "    return {\"output\": output * %d, \"lse\": lse}\n", number);
}

static void make_definition(int number, struct buf *out)
{
	static const char tensor[] = "{\"shape\": [\"batch_size\", \"heads\", \"head_dim\"], \"dtype\": \"bfloat16\"}";
	struct buf reference = {0};

	make_reference(number, &reference);
	buf_printf(out, "{\"name\": \"paged_%d\", \"op_type\": \"paged\", \"description\": \"Number %d.\", ", number,
	           number);
	buf_printf(out,
	           "\"axes\": {\"batch_size\": {\"type\": \"var\"}, \"heads\": {\"type\": \"const\", \"value\": 32}, "
	           "\"head_dim\": {\"type\": \"const\", \"value\": %d}}, ",
	           128 + number);
	buf_printf(out, "\"inputs\": {\"q\": %s, \"k_cache\": %s, \"v_cache\": %s, ", tensor, tensor, tensor);
	buf_text(out, "\"sm_scale\": {\"shape\": null, \"dtype\": \"float32\"}}, ");
	buf_printf(out,
	           "\"outputs\": {\"output\": %s}, \"constraints\": [\"batch_size >= 1\"], \"reference\": ", tensor);
	buf_json_string(out, reference.data);
	buf_text(out, "}\n");
	buf_free(&reference);
}

struct set {
	struct buf text[DEFINITIONS];
	const struct definition *definition[DEFINITIONS];
	struct arena arena;
	size_t bytes, reference_bytes;
};

static int make_set(struct set *set)
{
	struct err err;

	for (int i = 0; i < DEFINITIONS; i++) {
		make_definition(i, &set->text[i]);
		set->bytes += set->text[i].length;
		set->definition[i] = definition_parse("generated", NULL, NULL, set->text[i].data, set->text[i].length,
		                                     &set->arena, &err);
		if (set->definition[i] == NULL) {
			fprintf(stderr, "bench/fingerprint: %s\n", err.text);
			return -1;
		}
		set->reference_bytes += set->definition[i]->reference_length;
	}
	return 0;
}

/* Each of the functions below processes all definitions once. Each function returns a sum, so that the compiler cannot
 * remove the work. */
static unsigned hash_bytes(struct set *set)
{
	unsigned sum = 0;

	for (int i = 0; i < DEFINITIONS; i++)
		sum += digest_of(set->text[i].data, set->text[i].length).bytes[0];
	return sum;
}

static unsigned normalise(struct set *set)
{
	struct buf form = {0};
	unsigned sum = 0;

	for (int i = 0; i < DEFINITIONS; i++) {
		buf_clear(&form);
		sum += python_normal_form(set->definition[i]->reference, set->definition[i]->reference_length, &form);
	}
	buf_free(&form);
	return sum;
}

static unsigned fingerprint(struct set *set)
{
	unsigned sum = 0;

	for (int i = 0; i < DEFINITIONS; i++) {
		struct arena arena = {0};
		struct fields fields = {0};

		definition_fields(set->definition[i], &arena, &fields);
		sum += fields_digest(&fields).bytes[0];
		arena_free(&arena);
	}
	return sum;
}

static unsigned load_and_fingerprint(struct set *set)
{
	unsigned sum = 0;
	struct err err;

	for (int i = 0; i < DEFINITIONS; i++) {
		struct arena arena = {0};
		struct fields fields = {0};

		definition_fields(
		    definition_parse("generated", NULL, NULL, set->text[i].data, set->text[i].length, &arena, &err),
		    &arena, &fields);
		sum += fields_digest(&fields).bytes[0];
		arena_free(&arena);
	}
	return sum;
}

static double best_time(struct set *set, unsigned (*work)(struct set *), unsigned *sum)
{
	double best = 1e9;

	for (int i = 0; i < ROUNDS; i++) {
		double start = now();

		*sum += work(set);
		best = now() - start < best ? now() - start : best;
	}
	return best;
}

int main(void)
{
	static const struct {
		const char *name;
		unsigned (*work)(struct set *);
	} ways[] = {
	    {"plain XXH3-128 of the files", hash_bytes},
	    {"normal form of the references", normalise},
	    {"fingerprints of parsed definitions", fingerprint},
	    {"parsing and fingerprints", load_and_fingerprint},
	};
	struct set *set = calloc(1, sizeof *set);
	unsigned sum = 0;
	double plain = 0;

	if (set == NULL || make_set(set) != 0)
		return 1;
	printf("%d definitions, %zu KiB of JSON, of which %zu KiB are references\n", DEFINITIONS, set->bytes >> 10,
	       set->reference_bytes >> 10);
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		double seconds = best_time(set, ways[i].work, &sum);

		plain = i == 0 ? seconds : plain;
		printf("%-36s %9.0f a second %8.1f MB/s %7.1f times plain XXH3\n", ways[i].name, DEFINITIONS / seconds,
		       (double)set->bytes / seconds / 1e6, seconds / plain);
	}
	for (int i = 0; i < DEFINITIONS; i++)
		buf_free(&set->text[i]);
	arena_free(&set->arena);
	free(set);
	return sum == 0; /* never */
}
