/* ground_truths - finds the ground truths that this machine has for an op family: `builtin` (reftest's own kernels),
 * and libraries. Chooses the ground truths that a run uses (--ground-truth).
 *
 * The list of libraries that a Python interpreter has is stored in the cache. The list is queried again only if
 * installed packages or the tables of library calls may have changed. If the list is in the cache, no Python process is
 * started for it. */
#ifndef REFTEST_ENGINE_GROUND_TRUTHS_H
#define REFTEST_ENGINE_GROUND_TRUTHS_H

#include "base/arena.h"
#include "base/err.h"
#include "dataset/verdict.h"
#include "engine/dataset_truth.h"
#include "engine/program.h"
#include "kernels/core/op.h"

/* A library that provides ground truths on one device class: "flashinfer", "torch". */
struct provider_fact {
	const char *name, *version; /* `version` is NULL if this machine cannot use the library */
	const char *why;	    /* the reason why the library cannot be used, if `version` is NULL */
	const struct provider_family {
		/* why: the reason why the library does not support the op family; NULL if it does */
		const char *family, *why;
		bool never;		  /* the library has no kernel for this op family */
		bool on_request;	  /* `--ground-truth auto` does not use the library for this op family
					   * (Row.on_request in python/libraries/common.py) */
	} * families;
	int family_count;
};

/* The value of --ground-truth. */
struct truth_choice {
	/* "auto". On a GPU, "auto" means the first available library whose `on_request` is false. On a CPU, it means
	 * builtin alone, which computes in double precision and rounds once. */
	bool automatic;
	bool all;	/* "all": every available library, and also builtin and the dataset's own truth */
	/* The ground truths that --ground-truth names, in this order. If `automatic` or `all` is true, they are used in
	 * addition to the ground truths of "auto" or "all". */
	const char **names;
	int name_count;
	const struct provider_fact *facts; /* the libraries in order of preference; empty if --ground-truth excludes all
					    * libraries */
	int fact_count;
	const char *trouble; /* why the list of libraries could not be queried; NULL if there was no error */
};

/* Parses the value of --ground-truth and checks it against the libraries of this machine. `text` is "auto" (or NULL),
 * "all", or names separated by commas, of which the first may be "auto" or "all". "solution" means all solutions of the
 * dataset, and "solution:WORD" the solutions whose name or author is WORD. If `python` is NULL, only builtin is
 * available. Returns -1 and sets `err` for an unknown name, a repeated name, or more than GROUND_TRUTHS_MAX ground
 * truths. */
int ground_truths_choose(struct program *program, const char *text, const char *python, const char *device_class,
			 struct arena *arena, struct truth_choice *out, struct err *err);

/* Lists all libraries, and the op families that they support on this machine, for `doctor`. The value of --ground-truth
 * has no effect on the list. Returns -1 and sets `err` if the libraries cannot be queried. */
int ground_truths_facts(struct program *program, const char *python, const char *device_class, struct arena *arena,
			const struct provider_fact **out, int *count, struct err *err);

/* Returns whether the choice may use solutions of the dataset. */
bool ground_truths_use_solutions(const struct truth_choice *choice);

/* Returns the ground truths of a definition in the order in which they are used. `op` is the op family of the
 * definition, or NULL. `fi_api` is the call of the FlashInfer function that the definition names, such as
 * "flashinfer.norm.rmsnorm(x=input)"; or NULL. "auto" calls this function if there is no op family. `own` are the
 * dataset's own ground truths. The first two elements are the definition's truth and its chain
 * (engine/dataset_truth.h). "auto" uses the truth and the chain only if there is no op family. "all" uses the truth and
 * the chain if they exist, and --ground-truth can name each of them. The other elements are the definition's solutions
 * (engine/solution_truth.h), which are used only if --ground-truth names them. */
struct truths ground_truths_for(const struct truth_choice *choice, const struct op_entry *op, const struct own_truth *own,
				int own_count, const char *fi_api, struct arena *arena);

#define FI_API_TRUTH "fi_api" /* the ground truth that calls the FlashInfer function named by a definition */

/* Returns whether the choice may use a library as a ground truth. */
bool ground_truths_use_libraries(const struct truth_choice *choice);

/* Returns a list that contains only builtin, for edge cases and float64 cases. Implementations follow different
 * conventions for the inputs of edge cases, and builtin implements the convention that reftest checks. The libraries
 * have no kernels for float64. */
struct truths ground_truths_builtin(const struct op_entry *op, struct arena *arena);

/* Returns a text that changes whenever the results of ground_truths_for may change. context_digest in engine/run_open.c
 * hashes this text. */
const char *ground_truths_context(const struct truth_choice *choice, struct arena *arena);

#endif
