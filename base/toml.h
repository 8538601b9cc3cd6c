/* toml - reads TOML 1.0 from untrusted files into plain values with their positions.
 *
 * The library toml++ does the parsing (base/toml.cpp, the only C++ file of the program). A message has the form
 * "FILE:LINE:COLUMN: what is wrong". */
#ifndef REFTEST_BASE_TOML_H
#define REFTEST_BASE_TOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum {
	/* The greatest length of a text, in bytes. TOML_BYTES also limits how deeply a dotted key (a.b.c) can nest
	 * tables. */
	TOML_BYTES = 16 << 10,
	TOML_DEPTH = 16	       /* the deepest nesting of arrays and tables */
};

enum toml_kind { TOML_TEXT, TOML_INTEGER, TOML_REAL, TOML_FLAG, TOML_LIST, TOML_TABLE, TOML_TIME };

struct toml_value {
	enum toml_kind kind;
	const char *key; /* NULL for the whole text and for items of lists */
	int line, column; /* both count from 1; both are 0 for the value of the whole text */
	const char *text; /* the value of a TOML_TEXT; it contains no NUL */
	int64_t integer;
	double real;
	bool flag;
	const struct toml_value *items; /* the members of a table in the order of the text, or the items of a list */
	int count;
};

/* Parses a text. `name` is shown in messages. The values are allocated in `arena`. Returns the table of the whole
 * text, or NULL with a message. */
const struct toml_value *toml_parse(const char *name, const char *text, size_t length, struct arena *arena,
				    struct err *err);

/* Returns the name of a kind of value for messages: "a number". */
const char *toml_kind_name(enum toml_kind kind);

#endif
