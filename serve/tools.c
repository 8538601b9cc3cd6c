#include "serve/tools.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/suggest.h"

#define NAMES(required, help) {"names", VALUE_TEXTS, NULL, required, help}
#define OP_TYPES {"op_types", VALUE_TEXTS, "--op-type", false, "select the definitions of these op_types"}
#define SIZES {"sizes", VALUE_TEXT, "--sizes", false, "sizes of the generated cases: any of small, medium and large, separated by commas"}
#define SELECTED "definitions: name, op_type/name, or a pattern with *; without names, all"
#define HOW_TO_VERIFY                                                                                                   \
	SIZES, {"ground_truth", VALUE_TEXT, "--ground-truth", false, "implementations to compare with: auto, all, or names"}, \
	{"tolerance", VALUE_TEXTS, "--tolerance", false, "bounds of outputs: [DTYPE=]ATOL[,RTOL[,HIT_RATIO]]"},          \
	{"seed", VALUE_WHOLE, "--seed", false, "seed of the generated inputs"},                                         \
	{"edge", VALUE_FLAG, "--edge", false, "also run edge cases, and report findings"},                              \
	{"backward", VALUE_FLAG, "--backward", false, "also check the gradients through the reference"},                \
	{"case", VALUE_TEXT, "--case", false, "run only the case with this id"}

static const struct tool tools[] = {
    {"verify",
     "Verifies definitions of the dataset against ground truth. Only cases without a valid verdict run; new verdicts are "
     "stored. Returns the JSON of `reftest verify --format json`.",
     TOOL_VERIFIER,
     {"verify"},
     {NAMES(false, SELECTED), OP_TYPES, HOW_TO_VERIFY,
      {"force", VALUE_FLAG, "--force", false, "run every case, even if the cache has a verdict"}}},
    {"verify_text",
     "Verifies a definition that is given as JSON text and is in no dataset. Its reference runs in the same sandbox as a "
     "reference of the dataset. Nothing is written and no verdict is stored.",
     TOOL_VERIFIER,
     {"verify_text"},
     {{"definition", VALUE_TEXT, NULL, true, "the definition, as the JSON text of its file"}, HOW_TO_VERIFY}},
    {"explain",
     "Explains why definitions are verified, stale or unknown: the status of each case, and the fields that changed since the "
     "last verdict. Runs nothing.",
     TOOL_COMMAND,
     {"explain"},
     {NAMES(true, "definitions: name, op_type/name, or a pattern with *")}},
    {"diff",
     "Compares how references behave now and in a commit, on the same inputs. Returns the JSON of `reftest diff --format "
     "json`.",
     TOOL_COMMAND,
     {"diff", "--format=json"},
     {{"commit", VALUE_TEXT, NULL, true, "the commit to compare with, such as HEAD"}, NAMES(false, SELECTED), SIZES}},
    {"list",
     "Lists the definitions of the dataset by name, without reading them.",
     TOOL_COMMAND,
     {"list", "--format=json"},
     {NAMES(false, SELECTED), OP_TYPES}},
    {"status",
     "Returns what the cache knows about each definition: its status, its diagnosis if it failed, and the number of "
     "its cases with each status. Runs nothing.",
     TOOL_COMMAND,
     {"status", "--format=json", "--no-cases"},
     {NAMES(false, SELECTED), OP_TYPES,
      {"cases", VALUE_FLAG, "--cases", false,
       "also return everything about each case (a long answer: name few definitions)"}}},
};

enum { TOOLS = sizeof tools / sizeof *tools };

const struct tool *tools_at(int index)
{
	return index < TOOLS ? &tools[index] : NULL;
}

const struct tool *tools_find(const char *name)
{
	for (int i = 0; i < TOOLS; i++)
		if (strcmp(tools[i].name, name) == 0)
			return &tools[i];
	return NULL;
}

static int argument_count(const struct tool *tool)
{
	int count = 0;

	while (count < TOOL_ARGUMENTS && tool->arguments[count].name != NULL)
		count++;
	return count;
}

/* ---- a call ------------------------------------------------------------------------------------------------------ */

struct call_words {
	char **items;
	int count;
	char **operands;
	int operand_count;
	struct arena *arena;
};

static int wrong_value(const struct tool_argument *argument, struct err *err)
{
	static const char *const kinds[] = {"a text", "a list of at most 1000 texts", "true or false",
					    "a whole number of at least 0"};

	return err_set(err, "the argument \"%s\" must be %s", argument->name, kinds[argument->value]);
}

static void add_text(struct call_words *words, const struct tool_argument *argument, const char *text)
{
	if (argument->option == NULL)
		words->operands[words->operand_count++] = arena_string(words->arena, text);
	else
		words->items[words->count++] = arena_printf(words->arena, "%s=%s", argument->option, text);
}

static int add_texts(struct call_words *words, const struct tool_argument *argument, const cJSON *value, struct err *err)
{
	if (!cJSON_IsArray(value) || cJSON_GetArraySize(value) > TOOL_TEXTS)
		return wrong_value(argument, err);
	for (const cJSON *item = value->child; item != NULL; item = item->next) {
		if (!cJSON_IsString(item))
			return wrong_value(argument, err);
		add_text(words, argument, item->valuestring);
	}
	return 0;
}

static int add_value(struct call_words *words, const struct tool_argument *argument, const cJSON *value, struct err *err)
{
	int64_t number;

	switch (argument->value) {
	case VALUE_TEXT:
		if (!cJSON_IsString(value))
			return wrong_value(argument, err);
		add_text(words, argument, value->valuestring);
		return 0;
	case VALUE_TEXTS:
		return add_texts(words, argument, value, err);
	case VALUE_FLAG:
		if (!cJSON_IsBool(value))
			return wrong_value(argument, err);
		if (cJSON_IsTrue(value))
			words->items[words->count++] = arena_string(words->arena, argument->option);
		return 0;
	case VALUE_WHOLE:
		break;
	}
	if (!json_integer(value, &number) || number < 0)
		return wrong_value(argument, err);
	add_text(words, argument, arena_printf(words->arena, "%" PRId64, number));
	return 0;
}

static int unknown_argument(const struct tool *tool, const char *name, struct err *err)
{
	const char *known[TOOL_ARGUMENTS];
	int count = argument_count(tool);

	for (int i = 0; i < count; i++)
		known[i] = tool->arguments[i].name;
	const char *near = suggest_word(name, known, count);

	return err_set(err, "the tool %s has no argument \"%s\"%s%s%s", tool->name, err_show(name).text,
		       near != NULL ? "; did you mean \"" : "", near != NULL ? near : "", near != NULL ? "\"?" : "");
}

static int check_names(const struct tool *tool, const cJSON *arguments, struct err *err)
{
	if (arguments != NULL && !cJSON_IsObject(arguments))
		return err_set(err, "\"arguments\" is an object");
	for (const cJSON *member = arguments != NULL ? arguments->child : NULL; member != NULL; member = member->next) {
		int i = 0;

		while (i < argument_count(tool) && strcmp(tool->arguments[i].name, member->string) != 0)
			i++;
		if (i == argument_count(tool))
			return unknown_argument(tool, member->string, err);
	}
	return 0;
}

int tools_command_line(const struct tool *tool, const cJSON *arguments, struct arena *arena, char ***argv, struct err *err)
{
	size_t most = TOOL_WORDS + TOOL_ARGUMENTS * (TOOL_TEXTS + 1) + 2;
	struct call_words words = {.items = arena_array(arena, most, sizeof(char *)),
			      .operands = arena_array(arena, TOOL_TEXTS + 1, sizeof(char *)), .arena = arena};

	if (check_names(tool, arguments, err) < 0)
		return -1;
	for (int i = 0; i < TOOL_WORDS && tool->words[i] != NULL; i++)
		words.items[words.count++] = arena_string(arena, tool->words[i]);
	for (int i = 0; i < argument_count(tool); i++) {
		const struct tool_argument *argument = &tool->arguments[i];
		const cJSON *value = json_member(arguments, argument->name);

		if (value == NULL && argument->required)
			return err_set(err, "the tool %s needs the argument \"%s\"", tool->name, argument->name);
		if (value != NULL && add_value(&words, argument, value, err) < 0)
			return -1;
	}
	words.items[words.count++] = arena_string(arena, "--"); /* so that an operand that begins with a dash does not
								 * count as an option */
	memcpy(words.items + words.count, words.operands, (size_t)words.operand_count * sizeof(char *));
	words.count += words.operand_count;
	*argv = words.items;
	return words.count;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static void write_argument(const struct tool_argument *argument, struct buf *out)
{
	static const char *const types[] = {"{\"type\": \"string\"", "{\"type\": \"array\", \"items\": {\"type\": \"string\"}",
					    "{\"type\": \"boolean\"", "{\"type\": \"integer\", \"minimum\": 0"};

	buf_json_string(out, argument->name);
	buf_printf(out, ": %s, \"description\": ", types[argument->value]);
	buf_json_string(out, argument->help);
	buf_text(out, "}");
}

static void write_tool(const struct tool *tool, struct buf *out)
{
	const char *between = "";

	buf_text(out, "{\"name\": ");
	buf_json_string(out, tool->name);
	buf_text(out, ", \"description\": ");
	buf_json_string(out, tool->description);
	buf_text(out, ", \"inputSchema\": {\"type\": \"object\", \"properties\": {");
	for (int i = 0; i < argument_count(tool); i++) {
		buf_text(out, i > 0 ? ", " : "");
		write_argument(&tool->arguments[i], out);
	}
	buf_text(out, "}, \"required\": [");
	for (int i = 0; i < argument_count(tool); i++)
		if (tool->arguments[i].required) {
			buf_text(out, between);
			buf_json_string(out, tool->arguments[i].name);
			between = ", ";
		}
	buf_text(out, "], \"additionalProperties\": false}}");
}

void tools_write_list(struct buf *out)
{
	buf_text(out, "{\"tools\": [");
	for (int i = 0; i < TOOLS; i++) {
		buf_text(out, i > 0 ? ", " : "");
		write_tool(&tools[i], out);
	}
	buf_text(out, "]}");
}
