/* fold_output - breaks long lines on standard output between words, if standard output is a terminal. */
#ifndef REFTEST_BASE_FOLD_OUTPUT_H
#define REFTEST_BASE_FOLD_OUTPUT_H

/* Folds every later line on stdout. The width of the terminal is read again for each line. Call fold_output before the
 * first output. Do not call fold_output if the output is JSON, because the strings of JSON must not be broken. Does
 * nothing without a terminal. */
void fold_output(void);

#endif
