/* definition_meaning - computes the meaning of a definition, which is independent of its name, description and tags. If
 * two definitions have equal meanings, they describe the same operation and have the same reference. */
#ifndef REFTEST_EXTRACT_DEFINITION_MEANING_H
#define REFTEST_EXTRACT_DEFINITION_MEANING_H

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "base/buf.h"

struct meaning {
	/* the fields, sorted by key; keys are for example "axes.N", "inputs.q", "outputs.C" and "reference"; the key of
	 * a constraint is "constraints." and the text of the constraint */
	struct meaning_field {
		const char *key, *value;
	} *fields;
	int count;
	const char *reference; /* the text of the reference, unchanged; "" if there is no reference */
};

/* Computes the meaning of a parsed definition. The order of inputs and outputs matters; the order of axes and
 * constraints does not. The value of the field "reference" is the lexical normal form of the reference's text
 * (cache/python_normal_form.h). */
struct meaning meaning_of(const cJSON *definition, struct arena *arena);

bool meaning_equal(const struct meaning *a, const struct meaning *b);

/* Returns whether two definitions differ at most in their references and constraints. The references of two such
 * definitions have the same inputs. */
bool meaning_same_interface(const struct meaning *a, const struct meaning *b);

/* Appends each field in which two meanings differ, as a JSON object {"field", "ours", "theirs"}. The text of a
 * reference in these objects is that of the definition, and not its normal form. Absent fields are null. */
void meaning_write_differences(const struct meaning *ours, const struct meaning *theirs, struct buf *out);

#endif
