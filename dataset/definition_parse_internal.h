/* definition_parse_internal - declarations for the files that together read a definition. definition_parse.c reads
 * names, tensors and the definition as a whole. definition_parse_axes.c reads axes and constraints.
 * definition_parse_reference.c reads the reference and the code that makes inputs. Functions that return int return 0,
 * or -1 with a message, unless their comments name other values. */
#ifndef REFTEST_DATASET_DEFINITION_PARSE_INTERNAL_H
#define REFTEST_DATASET_DEFINITION_PARSE_INTERNAL_H

#include "base/json.h"
#include "dataset/definition_parse.h"

/* Limits of a definition file. Real definitions have about twenty axes and tensors, and a few constraints. */
enum { NAME_BYTES = 200, CONSTRAINTS = 256, TAGS = 256, NOTES = 20 };

struct reader {
	struct json_text text;
	struct arena *arena;
	struct definition *out;
	/* The axes of `out` and their descriptions and expressions, with room for `axis_room` axes. */
	struct axis *axes;
	const char **descriptions, **expressions;
	int axis_room;
	const char **notes; /* space for NOTES */
	struct err *err;
};

/* Writes a message "expected …, found …". Always returns -1. */
int reader_expected(struct reader *r, const struct json_step *at, const char *what, const cJSON *found);
/* Adds a note with a position. Does nothing if there are already NOTES notes. */
void reader_note(struct reader *r, const struct json_step *at, const char *sentence);
/* Adds a note for each unknown field. Does nothing more once there are NOTES notes, because each note scans the text
 * again to find the position of its field. */
void reader_note_unknown(struct reader *r, const struct json_step *at, const cJSON *object,
			 const char *const *known, int count);
int reader_check_printable(struct reader *r, const struct json_step *at, const char *what, const char *name);
/* Copies a string member. If an optional member is absent or null, writes "". */
int reader_text(struct reader *r, const cJSON *object, const char *key, bool required, const char **out);
/* Reads the member "description" of an object. If the member is present, it must be a string or null. */
int reader_description(struct reader *r, const struct json_step *up, const cJSON *object, const char **out);
/* Reads a list of non-empty strings; the list may be absent. */
int reader_strings(struct reader *r, const cJSON *json, const char *key, int most, const char *const **out,
		   int *count);
/* Finds the object under `key`. Returns the number of its members. Returns -1 with a message if there are more than
 * `most`, or on another error. */
int reader_members(struct reader *r, const cJSON *json, const char *key, int most, const cJSON **out);

/* definition_parse_left_out.c */

/* If cases do not pass this input to the reference, returns the reason; otherwise returns NULL. */
const char *why_input_is_left_out(const cJSON *input);

/* definition_parse_axes.c */

int read_axes(struct reader *r, const cJSON *json);
/* Allocates memory for `room` axes, and copies the axes that were read so far to this memory. */
void reserve_axes(struct reader *r, int room);
/* Marks axis `i` as const if its expression depends on const axes only. Returns 1 if so, otherwise 0; returns -1 with a
 * message on error. `at` is the position of the expression. */
int fix_expression(struct reader *r, const struct json_step *at, int i);
int read_constraints(struct reader *r, const cJSON *json);

/* definition_parse_reference.c */

int read_reference(struct reader *r, const cJSON *json);
/* Finds the code that makes inputs. Adds a note if that code has no function to call. This is not an error, because
 * only the cases that need the function fail. */
void find_input_code(struct reader *r);
/* Copies a member that has Python source. Returns "" if the member is absent. */
const char *read_source(struct reader *r, const cJSON *json, const char *key);

#endif
