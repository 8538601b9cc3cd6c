#include "web/model_entry.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { COLUMNS = 100 }; /* the maximum width of a line; a wider array is written with one element per line */

static void add_line(const struct web_layout *layout, int level, struct buf *out)
{
	buf_text(out, layout->newline);
	buf_text(out, layout->indent);
	for (int i = 0; i < level; i++)
		buf_text(out, layout->step);
}

static bool is_identifier(const char *name)
{
	if (name[0] == '\0' || isdigit((unsigned char)name[0]))
		return false;
	for (const char *at = name; *at != '\0'; at++)
		if ((unsigned char)*at >= 0x80 || (!isalnum((unsigned char)*at) && *at != '_' && *at != '$'))
			return false;
	return true;
}

static void add_key(const char *name, struct buf *out)
{
	if (is_identifier(name))
		buf_text(out, name);
	else
		buf_json_string(out, name);
	buf_text(out, ": ");
}

static void add_text(const struct web_layout *layout, int level, const char *key, const char *text, struct buf *out)
{
	add_line(layout, level, out);
	add_key(key, out);
	buf_json_string(out, text);
	buf_text(out, ",");
}

/* Returns the number of columns that the array "definitions" needs on one line, with its indentation and the comma. */
static size_t width_of(const struct web_layout *layout, int level, const struct web_module *module)
{
	size_t width = strlen(layout->indent) + (size_t)level * strlen(layout->step) + strlen("definitions: [],");

	for (int i = 0; i < module->definition_count; i++)
		width += strlen(module->definitions[i]) + (i == 0 ? 2 : 4);
	return width;
}

static void add_definitions(const struct web_layout *layout, int level, const struct web_module *module, struct buf *out)
{
	bool long_array = module->definition_count > 1 && width_of(layout, level, module) > COLUMNS;

	add_line(layout, level, out);
	buf_text(out, "definitions: [");
	for (int i = 0; i < module->definition_count; i++) {
		if (long_array)
			add_line(layout, level + 1, out);
		else if (i > 0)
			buf_text(out, " ");
		buf_json_string(out, module->definitions[i]);
		if (long_array || i + 1 < module->definition_count)
			buf_text(out, ",");
	}
	if (long_array)
		add_line(layout, level, out);
	buf_text(out, "],");
}

static void add_module(const struct web_layout *layout, const struct web_module *module, struct buf *out)
{
	add_line(layout, 2, out);
	add_key(module->name, out);
	buf_text(out, "{");
	add_line(layout, 3, out);
	buf_printf(out, "count: %lld,", (long long)module->count);
	if (module->parent != NULL)
		add_text(layout, 3, "parent", module->parent, out);
	add_text(layout, 3, "type", module->type == WEB_BLOCK ? "block" : "layer", out);
	add_definitions(layout, 3, module, out);
	add_line(layout, 2, out);
	buf_text(out, "},");
}

void web_modules_write(const struct web_model *model, const struct web_layout *layout, struct buf *out)
{
	buf_text(out, "{");
	for (int i = 0; i < model->module_count; i++)
		add_module(layout, &model->modules[i], out);
	add_line(layout, 1, out);
	buf_text(out, "}");
}

void web_model_write(const struct web_model *model, const struct web_layout *layout, struct buf *out)
{
	buf_text(out, "{");
	add_text(layout, 1, "id", model->id, out);
	add_text(layout, 1, "name", model->name, out);
	add_text(layout, 1, "description", model->description, out);
	add_line(layout, 1, out);
	buf_text(out, "modules: ");
	web_modules_write(model, layout, out);
	buf_text(out, ",");
	add_line(layout, 0, out);
	buf_text(out, "}");
}
