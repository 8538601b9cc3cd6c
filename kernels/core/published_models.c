/* published_models - looks up published model configurations. The assembler embeds published_models.json in the library
 * unchanged. Each call parses the text again, because it has a few dozen lines and is read once per definition. */
#include "kernels/core/published_models.h"

#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "kernels_digest.h" /* changes whenever published_models.json does, so that make assembles this file again */

__asm__(".pushsection .rodata\n"
        "models_begin:\n"
        ".incbin \"kernels/core/published_models.json\"\n"
        "models_end:\n"
        ".byte 0\n"
        ".popsection\n");

extern const char models_begin[] __attribute__((visibility("hidden")));
extern const char models_end[] __attribute__((visibility("hidden")));

static bool entry_number(const cJSON *entry, const char *model, const char *field, double *out)
{
	const char *name = json_text_of(entry, "model");
	const cJSON *value = json_member(entry, field);

	if (name == NULL || strcmp(name, model) != 0 || !cJSON_IsNumber(value))
		return false;
	*out = value->valuedouble;
	return true;
}

bool model_number(const char *model, const char *field, double *out)
{
	cJSON *models = cJSON_ParseWithLength(models_begin, (size_t)(models_end - models_begin));
	const cJSON *entry;
	bool found = false;

	cJSON_ArrayForEach(entry, models)
	{
		if (entry_number(entry, model, field, out)) {
			found = true;
			break;
		}
	}
	cJSON_Delete(models);
	return found;
}
