/* fold_output - folds what a command prints on standard output between words, if standard output is a terminal. */
#ifndef REFTEST_BASE_FOLD_OUTPUT_H
#define REFTEST_BASE_FOLD_OUTPUT_H

/* From now on, each line that is written to stdout is folded to the width that the terminal has then. Call this before
 * the first output, and not for JSON, whose strings must not be broken. Does nothing without a terminal. */
void fold_output(void);

#endif
