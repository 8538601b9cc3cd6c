/* sglang_witness - compares reftest's mapping of an architecture, which consists of rules (models/architecture.h), with
 * the model file in a checkout of SGLang. The model file shows which layers the architecture has, and which fields of
 * the configuration these layers read.
 *
 * The comparison searches the text of the model file, and of the files that the model file imports from
 * sglang.srt.models. It runs no code. A layer is an assignment to `self.NAME`. A layer belongs to a module if NAME
 * begins with the last part of the module's path: for example, SGLang's `attn_mqa` belongs to `attn`. SGLang gives some
 * layers other names, and defines some layers of a model in classes of other files. architectures.json lists these
 * names and classes under "sglang". */
#ifndef REFTEST_EXTRACT_SGLANG_WITNESS_H
#define REFTEST_EXTRACT_SGLANG_WITNESS_H

#include "base/string_list.h"

struct architecture;
struct model;

struct sglang_witness {
	const char *file; /* path below the checkout; NULL: no file defines the architecture */
	struct string_list disagreements; /* sentences */
};

/* Compares the rules that have a template with the linear layers and norms in the model file. `checkout` is the folder
 * of SGLang's checkout; NULL: there is no checkout. Ignores source files of SGLang that cannot be read. */
void sglang_witness_ask(const char *checkout, const struct model *model, const struct architecture *architecture,
			struct sglang_witness *out, struct arena *arena);

#endif
