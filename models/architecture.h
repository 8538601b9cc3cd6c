/* architecture - reads models/architectures.json. models/architectures.json says which definition each module of a
 * model needs.
 *
 * For each architecture (the name in "architectures" of config.json), the file lists blocks of rules. A rule describes
 * one module: its op_type, and the length of each const axis as an expression (models/expression.h). The names in an
 * expression are fields of config.json, names under "let", the parallel degrees `tp` and `ep`, and `page_size`. A field
 * of the configuration takes precedence over a name under "let". A name under the architecture's "let" takes precedence
 * over one under the common "let". `reftest extract` writes no definition for a rule without a template. Such a rule
 * describes another form of a module, for example a fused projection.
 *
 * "when" maps fields of the configuration to values. The rule's template is only for models in which each of these
 * fields either has the given value or is absent. A value of null under "when" restricts the rule to models that lack
 * the field.
 *
 * "tree" lists the modules of all architectures, outer modules before the modules inside them. For each module, an
 * expression gives the number of such modules in a model. "may_be_zero" lists the fields whose value may be 0. */
#ifndef REFTEST_MODELS_ARCHITECTURE_H
#define REFTEST_MODELS_ARCHITECTURE_H

#include "models/architectures.h"
#include "models/expression.h"
#include "models/model_config.h"

enum rule_pages { PAGES_ANY, PAGES_ONE, PAGES_MORE }; /* the page sizes to which a rule applies: any size, 1, or more
						       * than 1 */

struct rule {
	const char *module, *op_type;
	const char *template_name; /* NULL: none */
	enum rule_pages pages;
	bool all_experts;	/* the definition of this rule needs all experts on one device */
	const cJSON *when;	/* an object {field: value}, or NULL; the template is only for models with these
				 * values */
	const cJSON *needs;	/* expressions, or NULL; if one of them has no value, the model does not need this
				 * definition */
	const cJSON *axes;      /* an object {name of an axis: expression for its length} */
	const cJSON *constants; /* an object {name of a constant in the template: expression}, or NULL */
};

struct architecture {
	const cJSON *root; /* owned by the struct architectures, which must live as long as this struct */
	const cJSON *own; /* the object under "architectures" that describes this architecture */
	struct rule *rules;
	int rule_count;
};

/* Finds the architecture that is named in the model's configuration. If this architecture is unknown, returns -1 with a
 * message that names the most similar known one. */
int architecture_find(struct architectures *all, const struct model *model, struct architecture *architecture, struct arena *arena,
		      struct err *err);

enum { USED_FIELDS = 16 };

/* The values with which the expressions of a model are evaluated, and a record of the names that the evaluation
 * used. */
struct degrees {
	const struct model *model;
	const struct architecture *architecture;
	int64_t tp, ep, page_size; /* page_size 0: any */
	bool used_tp, used_ep, used_page_size;
	struct used_field {
		const char *name, *source;
		int64_t value;
	} fields[USED_FIELDS]; /* the fields of the configuration that were read, without duplicates */
	int field_count;
	char missing[64]; /* if the last result was EXPRESSION_MISSING: the name that has no value; else "" */
};

/* Evaluates an expression. Records, in the used_… members and in `fields`, which names the expression uses. */
enum expression_result degrees_evaluate(struct degrees *degrees, const char *expression, int64_t *value);

/* Resets what was used. */
void degrees_reset(struct degrees *degrees);

#endif
