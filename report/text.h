/* text - prints the results of a run as text. */
#ifndef REFTEST_REPORT_TEXT_H
#define REFTEST_REPORT_TEXT_H

#include <stdio.h>

#include "engine/run.h"

/* Which definitions a report lists. All reports list the definitions that did not pass, and the definitions with
 * findings. */
enum report_list {
	LIST_ALL,
	LIST_RAN,  /* also the definitions with a case that ran in this run */
	LIST_WRONG /* only the definitions that all reports list */
};

struct report_options {
	bool strict;	     /* findings count as failures */
	enum report_list list;
	bool no_cases;	     /* report_json prints only the status of each definition and the counts of its cases */
	bool every_case;     /* print every failed case in full, not only the first of a definition */
	bool list_failures;  /* print a line for each failed or invalid definition before the summary */
	int width;	     /* the maximum number of columns of a line if standard output is not a terminal; 0: no
			      * limit */
	const struct run *solutions; /* the run of the solutions, which report_json also reports, or NULL */
	/* appends the member "solutions" of report_json's object (report/solutions.h) */
	void (*solutions_json)(const struct run *solutions, struct buf *out);
	const char *command; /* the options in the command that repeats a failed case: "--device cpu --seed 3" */
};

/* Returns the escape sequence that sets a terminal's colour for a status; "\033[0m" ends the colour. */
const char *report_colour(enum status status);

/* Returns the name of the status of a result. If a case did not run and has no valid verdict, returns "unknown" for a
 * definition that was never verified, and "stale" for any other definition. */
const char *report_status(const struct result *result);

/* Returns whether at least one bound of the result comes from the dataset's setting `tolerance`. */
bool report_has_dataset_bound(const struct result *result);

/* Prints on stderr the files and folders of the dataset that could not be read. */
void report_problems(const struct run *run);

/* Returns the current number of columns to which text on standard output is folded, or 0 if it is not folded. */
int report_columns(const struct report_options *options);

/* Returns whether report_result would print anything about this result. */
bool report_tells(const struct result *result, const struct report_options *options);

/* Prints the result of one definition on one line. If the definition did not pass, prints details on the next lines. */
void report_result(const struct result *result, const struct report_options *options);

/* Prints how far an output is from the ground truth, and the worst elements of the output. `one` is the name of the
 * output's values in the text, and `other` is the name of the ground truth's values. */
void report_worst(FILE *out, const struct output_verdict *output, const char *one, const char *other);

/* Prints the list of failures and then the summary, which is the last line of a text report. */
void report_summary(const struct run *run, const struct report_options *options);

#endif
