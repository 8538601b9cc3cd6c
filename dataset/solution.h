/* solution - reads a solution from its JSON text. A solution implements a definition, and flashinfer-bench can run it.
 * The JSON file of a solution contains its source files. `reftest check` reports what is wrong with the file;
 * engine/solution_truth.h runs solutions. */
#ifndef REFTEST_DATASET_SOLUTION_H
#define REFTEST_DATASET_SOLUTION_H

#include "base/arena.h"
#include "base/err.h"

enum {
	SOLUTION_BYTES = 64 << 20, /* the maximum size of a solution file */
	SOLUTION_SOURCES = 4096	   /* the maximum number of source files */
};

/* How a caller gets the outputs of a solution. */
enum solution_outputs {
	SOLUTION_UNSAID,  /* not stated in the file; flashinfer-bench then assumes SOLUTION_WRITES */
	SOLUTION_RETURNS, /* a solution returns its outputs */
	SOLUTION_WRITES	  /* a solution writes its outputs to tensors that it gets as arguments after the inputs */
};

struct solution_source {
	const char *path, *content;
};

struct solution {
	const char *name, *definition, *author;
	const char *const *languages;
	int language_count;
	const char *binding; /* how compiled code is loaded: "torch", "tvm-ffi"; NULL if the file does not say how */
	const char *entry_source, *entry_function;
	enum solution_outputs outputs;
	const struct solution_source *sources;
	int source_count;
	const char *const *notes; /* one message for each unknown field that resembles a field of the schema */
	int note_count;
};

/* The parts of the path of a solution. Each part must equal the member of the same name in the file, unless the part is
 * NULL. */
struct solution_place {
	const char *author, *definition, *name;
};

/* Reads a solution; `path` appears in messages. Returns NULL with a message about the first error. A source whose path
 * ends in .py must be Python (dataset/python_outline.h). If the path of the source with the entry point ends in .py,
 * this source must define the function of the entry point. */
const struct solution *solution_load(const char *path, const struct solution_place *place, const void *bytes,
				     size_t length, struct arena *arena, struct err *err);

#endif
