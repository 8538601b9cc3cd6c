/* definition_text - the text of a definition, of which a test replaces one line. */
#ifndef REFTEST_TESTS_DEFINITION_TEXT_H
#define REFTEST_TESTS_DEFINITION_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "dataset/definition_parse.h"

/* Each field has its own line. Therefore a test that replaces a field knows the line number of the error. */
static const char *const lines[] = {
    "{",
    "\"name\": \"norm_h64\",",
    "\"op_type\": \"norm\",",
    "\"description\": \"A norm.\",",
    "\"tags\": [\"model:m\", \"status:verified\"],",
    "\"axes\": {\"batch\": {\"type\": \"var\"}, \"hidden\": {\"type\": \"const\", \"value\": 64, \"description\": "
    "\"h\"}},",
    "\"inputs\": {\"x\": {\"shape\": [\"batch\", \"hidden\"], \"dtype\": \"bfloat16\"}, \"eps\": {\"shape\": null, "
    "\"dtype\": \"float32\", \"optional\": true, \"description\": \"An epsilon.\"}, \"n\": {\"shape\": [], \"dtype\": \"int32\"}},",
    "\"outputs\": {\"y\": {\"shape\": [\"batch\", \"hidden\"], \"dtype\": \"bfloat16\"}},",
    "\"constraints\": [\"batch >= 1\", \"n.item() == batch\"],",
    "\"reference\": \"import torch\\n\\ndef run(x, eps, n):\\n    return x\\n\"",
    "}",
};
enum { NAME = 1, OP_TYPE, DESCRIPTION, TAGS, AXES, INPUTS, OUTPUTS, CONSTRAINTS, REFERENCE, LINES = 11 };

/* Loads the definition with one line replaced; if `replaced` is -1 or `line` is NULL, no line is replaced. */
static inline const struct definition *load(int replaced, const char *line, struct arena *arena, struct err *err)
{
	struct buf text = {0};

	for (int i = 0; i < LINES; i++) {
		buf_text(&text, i == replaced && line != NULL ? line : lines[i]);
		buf_text(&text, "\n");
	}
	const struct definition *d = definition_parse("d.json", "norm", "norm_h64", text.data, text.length, arena, err);

	buf_free(&text);
	return d;
}

/* Asserts that the definition with this line is rejected with the message `sentence`. */
static inline void rejected(int replaced, const char *line, const char *sentence)
{
	struct arena arena = {0};
	struct err err = {""};

	assert_null(load(replaced, line, &arena, &err));
	assert_string_equal(err.text, sentence);
	arena_free(&arena);
}

/* Asserts that the definition with this line is loaded. */
static inline void accepted(int replaced, const char *line)
{
	struct arena arena = {0};
	struct err err = {""};

	if (load(replaced, line, &arena, &err) == NULL)
		fail_msg("%s: %s", line, err.text);
	arena_free(&arena);
}

#endif
