/* extract - makes the definitions of a model, and writes them into a dataset.
 *
 * Each rule of the model's architecture that has a template yields one definition for each combination of parallel
 * degrees and page size. If a definition of the dataset has the same meaning (extract/definition_meaning.h), under
 * whatever name, no new definition is written. Instead, the existing definition gets the model's tag. If a definition
 * of the dataset has the same name but another meaning, the new definition gets the name NAME_v2. Between extract_plan
 * and extract_write, the caller may remove new definitions: it sets extract_file.keep to false. extract_write writes
 * all files or none. */
#ifndef REFTEST_EXTRACT_EXTRACT_H
#define REFTEST_EXTRACT_EXTRACT_H

#include "base/string_list.h"
#include "extract/sglang_witness.h"
#include "models/model_config.h"

enum { EXTRACT_LIST = 32 };

struct extract_list {
	int64_t values[EXTRACT_LIST];
	int count;
};

struct extract_request {
	const struct model *model;
	struct extract_list tp, ep, page_sizes;
	const char *op_types; /* names separated by commas; NULL: all */
	const char *root;     /* the root of the dataset: the folder that contains definitions/, which is created if it
			       * does not exist */
	const char *sglang;   /* the folder of a checkout of SGLang; NULL: there is none */
};

/* A file that extract_write writes. */
struct extract_file {
	const char *op_type, *name; /* for example "gemm", "gemm_n4096_k4096" */
	const char *path;	    /* the file to write: ROOT/definitions/…, after symbolic links are resolved */
	const char *below;	    /* the path below the root: "definitions/gemm/gemm_n4096_k4096.json" */
	const char *text, *old_text; /* old_text: NULL for a new definition */
	bool keep;		    /* false: the file is not written; extract_plan sets this member to true */
	bool in_new_folder;	    /* true: extract_write created the file's folder */
	const char *status, *why;   /* set by the caller if it removes the definition: the status and the reason */
};

/* A new definition that got the name NAME_v2, because the dataset already had another definition with its name. */
struct extract_conflict {
	const char *name, *existing;	/* for example "gemm/x_v2" and "gemm/x" */
	const struct extract_file *file; /* the new definition */
	const char *existing_text;	/* the text of the existing definition; NULL: its file cannot be read */
	const char *differences;	/* a JSON array (meaning_write_differences) */
	bool same_interface;		/* the two definitions differ only in their references and constraints */
	const char *behaviour, *why;	/* set by the caller: whether both definitions behave alike, and a sentence
					 * about the comparison; NULL: their behaviour was not compared */
};

/* The texts are in the arena that was passed to extract_plan. */
struct extract_result {
	struct extract_file *files; /* new and changed files */
	int file_count;
	struct string_list written;   /* names of new definitions, such as "gemm/gemm_n4096_k4096" */
	struct string_list tagged;    /* definitions of the dataset that got the model's tag */
	struct string_list unchanged; /* definitions of the dataset that had the tag already */
	struct extract_conflict *conflicts;
	int conflict_count;
	struct string_list left_out; /* sentences about the definitions that were left out */
	struct string_list not_covered; /* parts of the architecture that no op family covers */
	struct sglang_witness sglang; /* the comparison of the architecture's rules with SGLang's model file */
	struct string_list shared;   /* definitions and the models that share them: "gemm/gemm_n4096_k4096:
				      * llama-3.1-8b, qwen3-8b" */
};

/* Makes the definitions, but writes no file. Returns -1 with a message if the configuration, a degree or the dataset is
 * wrong. */
int extract_plan(const struct extract_request *request, struct extract_result *result, struct arena *arena, struct err *err);

/* Writes the files whose member `keep` is true, and lists the new files in `written`. If a file cannot be written,
 * writes no file and returns -1 with a message. */
int extract_write(struct extract_result *result, struct arena *arena, struct err *err);

#endif
