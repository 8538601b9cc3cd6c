/* architecture - which definitions the modules of a model have: models/architectures.json.
 *
 * The file states for each architecture (the name in "architectures" of config.json) which blocks of rules it has. A rule
 * says which op_type a module has, and the length of each const axis as an expression (models/expression.h) over the
 * fields of config.json, names under "let", the parallel degrees `tp` and `ep`, and `page_size`. A field of the
 * configuration comes before a name under "let", and a "let" of the architecture before the common one. A rule without a
 * template describes a module in a form that `reftest extract` does not write, such as one of several fused projections.
 *
 * The template of a rule with "when" is only for models whose configuration has these values, or lacks the fields. A
 * rule with a null there is only for models that lack the field.
 *
 * "tree" lists the modules of every architecture from the outside to the inside, with the expression of how many of each a
 * model has. "may_be_zero" lists the fields whose value may be 0. */
#ifndef REFTEST_MODELS_ARCHITECTURE_H
#define REFTEST_MODELS_ARCHITECTURE_H

#include "models/expression.h"
#include "models/model.h"

enum rule_pages { PAGES_ANY, PAGES_ONE, PAGES_MORE }; /* the page sizes that a rule is for: any, 1, or more than 1 */

struct rule {
	const char *module, *op_type;
	const char *template_name; /* NULL: none */
	enum rule_pages pages;
	bool all_experts;	/* its definition needs all experts on one device */
	const cJSON *when;	/* field: the value for which the template is; NULL: any */
	const cJSON *needs;	/* expressions without which there is no such definition; NULL: none */
	const cJSON *axes;      /* name of an axis: expression */
	const cJSON *constants; /* name of a constant in the template: expression; NULL: none */
};

struct architecture {
	cJSON *root;
	const cJSON *own; /* the architecture's member of "architectures" */
	struct rule *rules;
	int rule_count;
};

/* Opens the architecture of a model that states one. Returns -1 with a message that names the nearest known architecture.
 * The caller calls architecture_close. */
int architecture_open(const struct model *model, struct architecture *architecture, struct arena *arena, struct err *err);
void architecture_close(struct architecture *architecture);

enum { USED_FIELDS = 16 };

/* What expressions of a model are evaluated for, and what their evaluation used. */
struct degrees {
	const struct model *model;
	const struct architecture *architecture;
	int64_t tp, ep, page_size; /* page_size 0: any */
	bool used_tp, used_ep, used_page_size;
	struct used_field {
		const char *name, *source;
		int64_t value;
	} fields[USED_FIELDS]; /* the fields of the configuration that were read, each once */
	int field_count;
	char missing[64]; /* the name without a value, after EXPRESSION_MISSING; else "" */
};

/* Evaluates an expression and adds to what was used. */
enum expression_result degrees_evaluate(struct degrees *degrees, const char *expression, int64_t *value);

/* Forgets what was used. */
void degrees_reset(struct degrees *degrees);

#endif
