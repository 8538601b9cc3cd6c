/* text - prints the results of a run as text. */
#ifndef REFTEST_REPORT_TEXT_H
#define REFTEST_REPORT_TEXT_H

#include <stdio.h>

#include "engine/run.h"

/* The definitions that a report lists. A report always lists definitions that did not pass, and definitions with
 * findings. */
enum report_list {
	LIST_ALL,
	LIST_RAN,  /* also definitions of which a case ran in this run */
	LIST_WRONG /* none */
};

struct report_options {
	bool strict;	     /* findings count as failures */
	enum report_list list;
	bool no_cases;	     /* report_json prints only the status of each definition and the counts of its cases */
	bool every_case;     /* print every failed case in full, not only the first of a definition */
	bool list_failures;  /* print a line for each failed or invalid definition before the summary */
	int width;	     /* the most columns of a line of text if standard output is not a terminal; 0: there is no
			      * limit */
	const struct run *solutions; /* the run of solutions, which report_json also reports; NULL: none */
	/* appends the member of the JSON object for `solutions` (report/solutions.h) */
	void (*solutions_json)(const struct run *solutions, struct buf *out);
	const char *command; /* the options in the command that repeats a failed case: "--device cpu --seed 3" */
};

/* Returns the escape sequence that sets a terminal's colour for a status; "\033[0m" ends the colour. */
const char *report_colour(enum status status);

/* Returns the name of the status of a result. If a case has no valid verdict and did not run, returns "stale" or, if
 * the definition was never verified, "unknown". */
const char *report_status(const struct result *result);

/* Returns whether a bound of the result is the setting `tolerance` of the dataset. */
bool report_has_dataset_bound(const struct result *result);

/* Prints on stderr the files and folders of the dataset that could not be read. */
void report_problems(const struct run *run);

/* Returns the number of columns to which text on standard output is folded now, or 0 if it is not folded. */
int report_columns(const struct report_options *options);

/* Returns whether report_result prints anything about this result. */
bool report_tells(const struct result *result, const struct report_options *options);

/* Prints the result of one definition on one line and, unless the definition passed, details on the next lines. */
void report_result(const struct result *result, const struct report_options *options);

/* Prints how far an output is from the ground truth, and the worst elements of the output. `one` is a name for the
 * output, and `other` is a name for the ground truth. */
void report_worst(FILE *out, const struct output_verdict *output, const char *one, const char *other);

/* Prints the summary, which is the last line of a text report, after the list of failures. */
void report_summary(const struct run *run, const struct report_options *options);

#endif
