/* definition_of_module - makes the definition of one module of a model from a template of its op family (extract/templates.h). */
#ifndef REFTEST_EXTRACT_DEFINITION_OF_MODULE_H
#define REFTEST_EXTRACT_DEFINITION_OF_MODULE_H

#include "extract/definition_meaning.h"
#include "models/architecture.h"

struct draft {
	const char *op_type, *name;
	const char *module;
	cJSON *json; /* the whole definition; owned by the draft */
	struct meaning meaning;
};

enum draft_answer {
	DRAFT_MADE,
	DRAFT_LEFT_OUT, /* the model needs no definition from this rule; `why` is the reason */
	DRAFT_ERROR     /* the configuration or a degree is wrong; `why` is the error message */
};

/* Makes the definition for a rule of the architecture, with the parallel degrees and the page size in `degrees`. */
enum draft_answer draft_make(const struct rule *rule, struct degrees *degrees, struct draft *draft, struct arena *arena, struct err *why);
void draft_free(struct draft *draft);

/* Writes the text of a definition, with one line for each axis, input and output. */
void draft_write(const cJSON *definition, struct buf *out);

#endif
