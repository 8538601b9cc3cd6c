#include "extract/templates.h"

#include <string.h>

#define TEMPLATE(family, name)                                                                                            \
	__asm__(".pushsection .rodata\n"                                                                                  \
		"template_" #name "_json:\n"                                                                              \
		".incbin \"kernels/" #family "/templates/" #name ".json\"\n"                                              \
		"template_" #name "_python:\n"                                                                            \
		".incbin \"kernels/" #family "/templates/" #name ".py.in\"\n"                                             \
		"template_" #name "_end:\n"                                                                               \
		".byte 0\n"                                                                                               \
		".popsection\n");                                                                                         \
	extern const char template_##name##_json[] __attribute__((visibility("hidden")));                                 \
	extern const char template_##name##_python[] __attribute__((visibility("hidden")));                               \
	extern const char template_##name##_end[] __attribute__((visibility("hidden")));
#include "templates.inc"
#undef TEMPLATE

static const struct {
	const char *name, *json, *python, *end;
} places[] = {
#define TEMPLATE(family, name) {#name, template_##name##_json, template_##name##_python, template_##name##_end},
#include "templates.inc"
#undef TEMPLATE
};

/* Sets `out` to template number `index`. The templates are numbered from 0, in the order of the names of their
 * families. Returns false if there is no template with this number. */
bool template_at(int index, struct template_text *out)
{
	if ((size_t)index >= sizeof places / sizeof *places)
		return false;
	*out = (struct template_text){places[index].name, places[index].json, (size_t)(places[index].python - places[index].json),
				      places[index].python, (size_t)(places[index].end - places[index].python)};
	return true;
}

bool template_find(const char *name, struct template_text *out)
{
	for (int i = 0; template_at(i, out); i++)
		if (strcmp(out->name, name) == 0)
			return true;
	return false;
}
