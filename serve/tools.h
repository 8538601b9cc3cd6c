/* tools - defines the tools of `reftest serve` with their schemas, and translates a client's call of a tool into a
 * command line.
 *
 * Each argument of a tool becomes an option or the operands of a reftest command. The result of a call is the output of
 * the command. */
#ifndef REFTEST_SERVE_TOOLS_H
#define REFTEST_SERVE_TOOLS_H

#include <stdbool.h>

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum tool_runner {
	TOOL_COMMAND, /* the command runs in a new process */
	TOOL_VERIFIER /* the command runs in a process that keeps its runners alive between calls
		       * (cli/serve_verifier.h) */
};

enum tool_value { VALUE_TEXT, VALUE_TEXTS, VALUE_FLAG, VALUE_WHOLE };

struct tool_argument {
	const char *name;
	enum tool_value value;
	const char *option; /* an option such as "--sizes"; NULL if the argument becomes operands */
	bool required;
	const char *help;
};

enum { TOOL_WORDS = 4, TOOL_ARGUMENTS = 12, TOOL_TEXTS = 1000 };

struct tool {
	const char *name, *description;
	enum tool_runner runner;
	const char *words[TOOL_WORDS]; /* the first words of the command line: "status", "--format=json" */
	struct tool_argument arguments[TOOL_ARGUMENTS];
};

const struct tool *tools_find(const char *name); /* NULL: there is none */
const struct tool *tools_at(int index);		 /* NULL beyond the last */

/* Makes the command line of a call; argv[0] is the command's name. `arguments` is an object, or NULL. The words are
 * allocated in `arena`. NULL follows the last word. Returns the number of words, or -1 and sets `err` for an unknown,
 * missing or wrong argument. */
int tools_command_line(const struct tool *tool, const cJSON *arguments, struct arena *arena, char ***argv, struct err *err);

/* Appends the result of the client's request "tools/list", as JSON. */
void tools_write_list(struct buf *out);

#endif
