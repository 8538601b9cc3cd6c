#include "cli/model_option.h"

int model_option_open(const char *config, const char *name, struct model *model, struct arena *arena, struct err *err)
{
	if (config == NULL && name == NULL)
		return err_set(err, "name a model with --model, or a config.json with --config");
	if (config == NULL)
		return model_find(name, model, arena)
			   ? 0
			   : err_set(err, "reftest does not know the model '%s'; models/models.json lists the models that it knows. Pass the "
					  "model's config.json with --config",
				     err_show(name).text);
	if (model_read(config, name, model, arena, err) == 0)
		return 0;
	model_close(model);
	return -1;
}
