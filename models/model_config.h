/* model_config - the configuration of a model: a model of models/models.json, or a config.json of the user.
 *
 * In both files, the fields have the same names. models/models.json may contain several objects for one model, each
 * with its own source. In a config.json, a field of "text_config" takes precedence over the field of the same name at
 * the top level, because "text_config" describes the language model of a model that also reads images. A field of
 * "rope_parameters" is used only if "text_config" and the top level lack it. A field whose value is null counts as
 * absent. */
#ifndef REFTEST_MODELS_MODEL_CONFIG_H
#define REFTEST_MODELS_MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

enum { MODEL_PARTS = 8, CONFIG_BYTES = 1 << 20 };

struct model {
	const char *name;         /* as in a `model:` tag: "llama-3.1-8b" */
	const char *architecture; /* "LlamaForCausalLM"; NULL: unknown */
	const char *label;        /* the name as people write it: "Llama-3.1-8B" */
	struct model_part {
		const cJSON *object;
		const char *source; /* the source of the numbers, for messages */
		const char *path;   /* where `object` is in the file: "text_config", or "" for the whole file */
	} parts[MODEL_PARTS];
	int part_count;
	cJSON *owned[MODEL_PARTS];
	int owned_count;
	struct json_text text; /* text of the config.json, for messages; text.text is NULL for a model of models.json */
};

/* Finds a model in models/models.json by its name, an alias, or the part of its hf_id after the '/'. Ignores case. If
 * models.json has no such model, returns false and leaves `model` unchanged. If this function returns true, the caller
 * must call model_close. */
bool model_find(const char *name, struct model *model, struct arena *arena);

/* Returns the name or alias in models/models.json that is most similar to `name`, or NULL if none is similar. */
const char *model_near(const char *name, struct arena *arena);

/* Reads a config.json. `name` becomes the model's name. If `name` is NULL, the model is named after the file, or after
 * the file's folder if the file is called config.json. On an error, returns -1 with a message that names the place in
 * the file. Call model_close even after an error. */
int model_read(const char *path, const char *name, struct model *model, struct arena *arena, struct err *err);

void model_close(struct model *model);

/* Returns the member `field`, or NULL if the configuration lacks it. Sets `part`, which may be NULL, to the part of the
 * configuration that contains the member. */
const cJSON *model_member(const struct model *model, const char *field, const struct model_part **part);

/* Writes the value and the source of the member `field`. Returns false if the member is absent or is not an integer
 * above 0. */
bool model_integer(const struct model *model, const char *field, int64_t *value, const char **source);

/* Writes the value of the member `field`. Returns false if the member is absent or is not a number above 0. */
bool model_real(const struct model *model, const char *field, double *value);

/* Reports that the member `field` is absent, or that its value is not `what` ("a positive integer"). Always returns
 * -1. */
int model_field_error(const struct model *model, const char *field, const char *what, struct err *err);

#endif
