/* module_tree - the modules of a model as a tree, with the definitions of each: the entry of the model in the web
 * interface.
 *
 * "tree" of models/architectures.json has the modules that all architectures share, and how many of each a model has.
 * The rules of the architecture have those below: "self_attn.qkv_proj" is below "self_attn". A definition belongs to
 * each module whose rule has its axes. A module has the last part of its path as name, or the whole path if two have
 * the same last part. */
#ifndef REFTEST_WEB_MODULE_TREE_H
#define REFTEST_WEB_MODULE_TREE_H

#include "base/string_list.h"
#include "dataset/definition.h"
#include "models/model.h"
#include "web/model_entry.h"

struct module_tree {
	struct web_model model;
	struct string_list unplaced; /* "gemm/x": definitions whose axes no module has */
};

/* Makes the tree. `definitions` are those of the model; their names appear in their order. Returns -1 with a message if
 * the configuration lacks a field that the counts need. The tree is in the arena. */
int module_tree_make(const struct model *model, const struct definition *const *definitions, int count, struct module_tree *out,
		     struct arena *arena, struct err *err);

#endif
