/* templates - finds the templates of definitions in the folders of op families. kernels/{family}/templates/{name}.json
 * is a definition without a model and without a reference, and {name}.py.in is its reference. In both, @NAME@ stands
 * for an axis value, a constant, or the model's name. In the definition of a template, const axes have no value, and
 * "degrees" lists the degrees (tp, ep) that the definition always states as tags. make embeds the templates in the
 * program. */
#ifndef REFTEST_EXTRACT_TEMPLATES_H
#define REFTEST_EXTRACT_TEMPLATES_H

#include <stdbool.h>
#include <stddef.h>

struct template_text {
	const char *name;
	const char *definition; /* the text of the definition, JSON */
	size_t definition_length;
	const char *reference; /* the text of the reference, Python */
	size_t reference_length;
};

/* Writes the template with this name. Returns false if there is none. */
bool template_find(const char *name, struct template_text *out);

/* Writes template number `index` (numbers begin at 0 and follow the order of the families' names). Returns false if
 * there is no template with this number. */
bool template_at(int index, struct template_text *out);


#endif
