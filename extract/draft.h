/* draft - the definition of one module of a model, made from a template of its op family (extract/templates.h). */
#ifndef REFTEST_EXTRACT_DRAFT_H
#define REFTEST_EXTRACT_DRAFT_H

#include "extract/meaning.h"
#include "models/architecture.h"

struct draft {
	const char *op_type, *name;
	const char *module;
	cJSON *json; /* the whole definition; owned by the draft */
	struct meaning meaning;
};

enum draft_answer {
	DRAFT_MADE,
	DRAFT_LEFT_OUT, /* the model has no such definition; `why` says why */
	DRAFT_ERROR     /* the configuration or a degree is wrong; `why` says what */
};

/* Makes the definition of a rule, at the degrees and the page size of `degrees`. */
enum draft_answer draft_make(const struct rule *rule, struct degrees *degrees, struct draft *draft, struct arena *arena, struct err *why);
void draft_free(struct draft *draft);

/* Writes the text of a definition: one line for each member of axes, inputs and outputs. */
void draft_write(const cJSON *definition, struct buf *out);

#endif
