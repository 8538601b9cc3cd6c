/* model_entry - writes the module tree of a model as TypeScript, for flashinfer-bench's web interface. */
#ifndef REFTEST_WEB_MODEL_ENTRY_H
#define REFTEST_WEB_MODEL_ENTRY_H

#include <stdint.h>

#include "base/buf.h"

enum web_module_type { WEB_BLOCK, WEB_LAYER };

struct web_module {
	const char *name;
	int64_t count;	    /* the number of modules with this name in the model */
	const char *parent; /* the name of the module that contains this module; NULL: no module contains it */
	enum web_module_type type;
	const char *const *definitions; /* the names of the definitions that belong to the module */
	int definition_count;
};

/* A model. The strings are UTF-8. The modules are written in the order of the array. */
struct web_model {
	const char *id, *name, *description;
	const struct web_module *modules;
	int module_count;
};

/* The format of a file: its indentation and its line ends. */
struct web_layout {
	const char *indent;  /* the indentation of the first line of a model's entry */
	const char *step;    /* the indentation that each further level adds */
	const char *newline; /* "\n" or "\r\n" */
};

/* Appends the entry of `model`, from '{' to '}'. The first line gets no indentation, because it may follow other text
 * on its line. */
void web_model_write(const struct web_model *model, const struct web_layout *layout, struct buf *out);

/* Appends the value of the member "modules" of the model's entry, from '{' to '}'. */
void web_modules_write(const struct web_model *model, const struct web_layout *layout, struct buf *out);

#endif
