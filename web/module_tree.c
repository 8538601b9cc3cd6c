#include "web/module_tree.h"

#include <string.h>

#include "models/architecture.h"
#include "models/attested_dimensions.h"

enum { NODES = 256, DEFINITIONS_STEP = 16 };

struct node {
	const char *path; /* a path such as "self_attn.qkv_proj"; the path of the root is the name of the
			   * architecture */
	int parent;	  /* the index of the parent; -1: this is the root */
	int64_t count;
	bool shown;
	const char **definitions;
	int definition_count, definition_room;
};

struct builder {
	const struct model *model;
	struct architecture architecture;
	struct degrees degrees;
	struct node nodes[NODES];
	int node_count;
	int *node_of; /* for each rule, the node of its module; -1: the model has no such module */
	struct arena *arena;
	struct err *err;
};

static int find_node(const struct builder *b, const char *path)
{
	for (int i = 0; i < b->node_count; i++)
		if (strcmp(b->nodes[i].path, path) == 0)
			return i;
	return -1;
}

static int add_node(struct builder *b, const char *path, int parent, int64_t count)
{
	if (b->node_count == NODES)
		return err_set(b->err, "the architecture has more than %d modules", (int)NODES);
	/* copies the path, because the node outlives the architecture */
	b->nodes[b->node_count] = (struct node){.path = arena_string(b->arena, path),
						.parent = parent,
						.count = count};
	return b->node_count++;
}

static int count_error(struct builder *b, const cJSON *module, enum expression_result result)
{
	if (result == EXPRESSION_MISSING)
		return model_field_error(b->model, b->degrees.missing, "an integer above 0", b->err);
	return err_set(b->err, "%s: the number of '%s' is unknown: %s is not an integer of at least 0", b->model->name,
		       json_text_of(module, "module"), json_text_of(module, "count"));
}

static bool has_rules(const struct builder *b, const char *path)
{
	size_t length = strlen(path);

	for (int i = 0; i < b->architecture.rule_count; i++) {
		const char *module = b->architecture.rules[i].module;

		if (strncmp(module, path, length) == 0 && (module[length] == '\0' || module[length] == '.'))
			return true;
	}
	return false;
}

/* Adds the shared modules (listed by "tree" in models/architectures.json) that the architecture has. A shared module
 * without a parent is in every model. Any other shared module is in a model only if the architecture has a rule for the
 * module or for a module below it. */
static int add_shared_modules(struct builder *b)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, json_member(b->architecture.root, "tree"))
	{
		const char *path = json_text_of(item, "module"), *parent = json_text_of(item, "parent");
		int64_t count = 0;

		if (parent != NULL && !has_rules(b, path))
			continue;
		enum expression_result result = degrees_evaluate(&b->degrees, json_text_of(item, "count"), &count);

		if (result != EXPRESSION_VALUE)
			return count_error(b, item, result);
		int above = parent != NULL ? find_node(b, parent) : 0;

		if (count == 0 || above < 0)
			continue;
		int node = add_node(b, path, above, count);

		if (node < 0)
			return -1;
		b->nodes[node].shown = true;
	}
	return 0;
}

/* Returns the node of a path below a shared module (a module that "tree" in models/architectures.json lists). Adds the
 * node, and the nodes above it, if they do not exist. Returns -1 if the model has no such module. Also returns -1, and
 * sets a message, if there are too many nodes. */
static int node_at(struct builder *b, const char *path)
{
	int node = find_node(b, path), above;
	const char *dot = strrchr(path, '.');

	if (node >= 0 || dot == NULL)
		return node;
	above = node_at(b, arena_copy(b->arena, path, (size_t)(dot - path)));
	return above < 0 ? -1 : add_node(b, path, above, b->nodes[above].count);
}

static void show(struct builder *b, int node)
{
	for (; node >= 0; node = b->nodes[node].parent)
		b->nodes[node].shown = true;
}

static int add_rules(struct builder *b)
{
	const struct architecture *a = &b->architecture;

	b->node_of = arena_array(b->arena, (size_t)a->rule_count, sizeof *b->node_of);
	for (int i = 0; i < a->rule_count; i++) {
		b->node_of[i] = node_at(b, a->rules[i].module);
		if (b->node_of[i] < 0 && b->node_count == NODES)
			return -1;
		if (b->node_of[i] >= 0 && a->rules[i].template_name != NULL)
			show(b, b->node_of[i]);
	}
	return 0;
}

static void add_definition(struct builder *b, int at, const char *name)
{
	struct node *node = &b->nodes[at];

	if (node->definition_count > 0 && strcmp(node->definitions[node->definition_count - 1], name) == 0)
		return;
	if (node->definition_count == node->definition_room) {
		const char **more = arena_array(b->arena, (size_t)node->definition_room + DEFINITIONS_STEP, sizeof *more);

		if (node->definition_count > 0)
			memcpy(more, node->definitions, (size_t)node->definition_count * sizeof *more);
		node->definitions = more;
		node->definition_room += DEFINITIONS_STEP;
	}
	node->definitions[node->definition_count++] = name;
}

/* Adds a definition to each module whose rule gives the lengths of the definition's axes. If a module exists only in
 * some implementations of the model, the definition is added to it only if no other module fits. Returns whether a
 * module fits. */
static bool place_definition(struct builder *b, const struct definition *d)
{
	bool *explains = arena_array(b->arena, (size_t)b->architecture.rule_count, sizeof *explains), placed = false;

	if (attest_rules(d, b->model, &b->architecture, explains) == 0)
		return false;
	for (int pass = 0; pass < 2 && !placed; pass++)
		for (int i = 0; i < b->architecture.rule_count; i++) {
			int node = explains[i] ? b->node_of[i] : -1;

			if (node < 0 || (pass == 0 && !b->nodes[node].shown))
				continue;
			add_definition(b, node, d->name);
			show(b, node);
			placed = true;
		}
	return placed;
}

static const char *last_part(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot != NULL ? dot + 1 : path;
}

static const char *name_of(const struct builder *b, int node)
{
	const char *last = last_part(b->nodes[node].path);
	bool unique = true;

	for (int i = 0; i < b->node_count; i++)
		unique = unique && (i == node || !b->nodes[i].shown || strcmp(last_part(b->nodes[i].path), last) != 0);
	if (unique)
		return last;
	char *copy = arena_string(b->arena, b->nodes[node].path);

	for (char *c = copy; *c != '\0'; c++)
		*c = *c == '.' ? '_' : *c;
	return copy;
}

static bool has_children(const struct builder *b, int node)
{
	for (int i = 0; i < b->node_count; i++)
		if (b->nodes[i].shown && b->nodes[i].parent == node)
			return true;
	return false;
}

/* Adds a node, and after it the nodes below it. */
static void write_node(const struct builder *b, int at, struct web_module *modules, int *count)
{
	const struct node *node = &b->nodes[at];

	if (!node->shown)
		return;
	modules[(*count)++] = (struct web_module){name_of(b, at),
						  node->count,
						  node->parent >= 0 ? name_of(b, node->parent) : NULL,
						  has_children(b, at) ? WEB_BLOCK : WEB_LAYER,
						  node->definitions,
						  node->definition_count};
	for (int i = 0; i < b->node_count; i++)
		if (b->nodes[i].parent == at)
			write_node(b, i, modules, count);
}

/* Returns the label with spaces instead of '-' and '_', such as "Llama 3.1 8B". */
static const char *spaced(const char *label, struct arena *arena)
{
	char *copy = arena_string(arena, label);

	for (char *c = copy; *c != '\0'; c++)
		*c = *c == '-' || *c == '_' ? ' ' : *c;
	return copy;
}

static void write_tree(const struct builder *b, struct module_tree *out)
{
	struct web_module *modules = arena_array(b->arena, (size_t)b->node_count, sizeof *modules);
	int layers = find_node(b, "layers"), count = 0;

	write_node(b, 0, modules, &count);
	out->model = (struct web_model){.id = arena_string(b->arena, b->model->name),
					.name = spaced(b->model->label, b->arena),
					.description = arena_printf(b->arena, "%s with %lld layers.", b->model->architecture,
								    (long long)b->nodes[layers < 0 ? 0 : layers].count),
					.modules = modules,
					.module_count = count};
}

static int build(struct builder *b, const struct definition *const *definitions, int count, struct module_tree *out)
{
	const int root = add_node(b, b->model->architecture, -1, 1);

	if (root < 0 || add_shared_modules(b) < 0 || add_rules(b) < 0)
		return -1;
	b->nodes[root].shown = true;
	for (int i = 0; i < count; i++)
		if (!place_definition(b, definitions[i]))
			string_list_add(&out->unplaced, arena_printf(b->arena, "%s/%s", definitions[i]->op_type, definitions[i]->name));
	write_tree(b, out);
	return 0;
}

int module_tree_make(const struct model *model, const struct definition *const *definitions, int count, struct module_tree *out,
		     struct arena *arena, struct err *err)
{
	struct builder *b = arena_array(arena, 1, sizeof *b);

	*b = (struct builder){.model = model, .arena = arena, .err = err};
	*out = (struct module_tree){.unplaced = {.arena = arena}};
	if (model->architecture == NULL)
		return err_set(err, "the table of models has no architecture for %s; pass the model's config.json with --config",
				    model->name);
	struct architectures all = {0};
	int rc = architecture_find(&all, model, &b->architecture, arena, err);

	b->degrees = (struct degrees){.model = model, .architecture = &b->architecture, .tp = 1, .ep = 1};
	if (rc == 0)
		rc = build(b, definitions, count, out);
	architectures_free(&all);
	return rc;
}
