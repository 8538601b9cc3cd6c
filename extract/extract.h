/* extract - writes the definitions of a model into a dataset.
 *
 * Each rule of the model's architecture that has a template gives one definition for each combination of degrees and page
 * size. A definition that means the same as one of the dataset (extract/meaning.h), whatever that is called, is not written
 * again: the definition of the dataset gets the model's tag. A definition that has the name of another one of the dataset
 * gets the name NAME_v2. All files are written, or none. */
#ifndef REFTEST_EXTRACT_EXTRACT_H
#define REFTEST_EXTRACT_EXTRACT_H

#include "base/string_list.h"
#include "models/model.h"

enum { EXTRACT_LIST = 32 };

struct extract_list {
	int64_t values[EXTRACT_LIST];
	int count;
};

struct extract_request {
	const struct model *model;
	struct extract_list tp, ep, page_sizes;
	const char *op_types; /* names separated by commas; NULL: all */
	const char *root;     /* the folder that has, or gets, definitions/ */
};

/* What was done. Texts are in the arena. */
struct extract_result {
	struct string_list written;   /* "gemm/gemm_n4096_k4096" */
	struct string_list tagged;    /* definitions of the dataset that got the model's tag */
	struct string_list unchanged; /* definitions of the dataset that had the tag already */
	struct extract_conflict {
		const char *name, *existing; /* "gemm/x_v2", "gemm/x" */
		const char *differences;     /* a JSON array (meaning_write_differences) */
	} *conflicts;
	int conflict_count;
	struct string_list left_out; /* sentences */
	struct string_list not_covered; /* parts of the architecture that no op family covers */
	struct string_list shared;   /* "gemm/gemm_n4096_k4096: llama-3.1-8b, qwen3-8b" */
};

/* Returns -1 with a message if the configuration, a degree or the dataset is wrong; nothing is written then. */
int extract_model(const struct extract_request *request, struct extract_result *result, struct arena *arena, struct err *err);

#endif
