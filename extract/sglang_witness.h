/* sglang_witness - compares the mapping of an architecture (models/architecture.h) with the model file of a checkout of
 * SGLang, which says independently which layers the architecture has and which fields of the configuration they read.
 *
 * The text of the file is searched, and of those that it imports from sglang.srt.models; nothing is run. A layer is an
 * assignment to `self.NAME` whose name begins with the last part of the module's path: SGLang's `attn_mqa` is
 * `attn`. What SGLang calls otherwise, and the classes in other files that hold layers of the model, are in
 * architectures.json, under "sglang" of the architecture. */
#ifndef REFTEST_EXTRACT_SGLANG_WITNESS_H
#define REFTEST_EXTRACT_SGLANG_WITNESS_H

#include "base/string_list.h"

struct architecture;
struct model;

struct sglang_witness {
	const char *file; /* below the checkout; NULL: none has the architecture */
	struct string_list disagreements; /* sentences */
};

/* Compares the rules with a template, and the linear layers and norms of the file. `checkout` is the folder of the
 * checkout;
 * NULL: there is none. A file that cannot be read is left out. */
void sglang_witness_ask(const char *checkout, const struct model *model, const struct architecture *architecture,
			struct sglang_witness *out, struct arena *arena);

#endif
