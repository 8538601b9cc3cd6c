/* fold_output - breaks long lines on standard output between words, if standard output is a terminal. */
#ifndef REFTEST_BASE_FOLD_OUTPUT_H
#define REFTEST_BASE_FOLD_OUTPUT_H

/* Folds every later line on stdout. The width is the width of the terminal at the time when the line is written. Call
 * fold_output before the first output. Do not call fold_output if the output is JSON, because the strings of JSON must
 * not be broken. Does nothing without a terminal. */
void fold_output(void);

#endif
