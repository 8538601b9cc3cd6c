#include "cli/model_option.h"

static int unknown_model(const char *name, struct arena *arena, struct err *err)
{
	const char *near = model_near(name, arena);

	return err_set(err, "reftest does not know the model '%s'%s%s%s; models/models.json lists the known models. For "
			    "another model, pass its config.json with --config",
		       err_show(name).text, near != NULL ? " (the nearest is '" : "", near != NULL ? near : "", near != NULL ? "')" : "");
}

int model_option_open(const char *config, const char *name, struct model *model, struct arena *arena, struct err *err)
{
	if (config == NULL && name == NULL)
		return err_set(err, "name a model with --model, or a config.json with --config");
	if (config == NULL)
		return model_find(name, model, arena) ? 0 : unknown_model(name, arena, err);
	if (model_read(config, name, model, arena, err) == 0)
		return 0;
	model_close(model);
	return -1;
}
