/* templates - finds the templates of definitions in the folders of op families. kernels/{family}/templates/{name}.json
 * contains a definition that names no model and lacks its reference; {name}.py.in contains the reference. In both
 * files, @NAME@ stands for an axis value, a constant, or the model's name. In the template of the definition, const
 * axes have no value. Its member "degrees" lists degrees of parallelism (tp, ep): every definition made from this
 * template has tags that state these degrees. The Makefile embeds these files in the program. */
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

/* Sets `out` to the template with this name. Returns false if no template has this name. */
bool template_find(const char *name, struct template_text *out);

/* Sets `out` to template number `index`. The templates are numbered from 0, in the order of the names of their
 * families. Returns false if there is no template with this number. */
bool template_at(int index, struct template_text *out);


#endif
