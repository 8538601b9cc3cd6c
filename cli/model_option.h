/* model_option - defines the options --model and --config, which name a model. */
#ifndef REFTEST_CLI_MODEL_OPTION_H
#define REFTEST_CLI_MODEL_OPTION_H

#include "models/model_config.h"

#define ROW_CONFIG \
	{"--config", OPTION_FILE, AT(config), "PATH", NULL, "the model's config.json; the name of its folder is the model's name"}
#define ROW_MODEL                                       \
	{"--model", OPTION_TEXT, AT(model), "NAME", NULL, \
	 "a model that reftest knows, such as llama-3.1-8b; with --config, the model's name"}

/* Opens the model that the options name. `config` and `name` may be NULL. Returns 0, or -1 with a message. If the
 * result is 0, the caller must call model_close. */
int model_option_open(const char *config, const char *name, struct model *model, struct arena *arena, struct err *err);

#endif
