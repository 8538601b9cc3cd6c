/* module_tree - makes the tree of a model's modules, with the definitions of each module, for the model's entry in the
 * web interface.
 *
 * "tree" in models/architectures.json has the modules that all architectures share, and how often each occurs in a
 * model. The rules of an architecture name modules below the shared ones: for example, "self_attn.qkv_proj" is below
 * "self_attn". A definition belongs to each module whose rule gives the lengths of the definition's axes. The name
 * of a module is the last part of its path, or the whole path if two modules have the same last part. */
#ifndef REFTEST_WEB_MODULE_TREE_H
#define REFTEST_WEB_MODULE_TREE_H

#include "base/string_list.h"
#include "dataset/definition.h"
#include "models/model_config.h"
#include "web/model_entry.h"

struct module_tree {
	struct web_model model;
	struct string_list unplaced; /* definitions ("gemm/x") whose axes fit no module */
};

/* Makes the tree in the arena. `definitions` are the definitions of the model; the tree keeps their order. Returns -1
 * and sets `err` if the model's configuration lacks a field that says how often a module occurs. */
int module_tree_make(const struct model *model, const struct definition *const *definitions, int count, struct module_tree *out,
		     struct arena *arena, struct err *err);

#endif
