/* python_expression - parses the expressions of Python and the parameters of functions. The parser does not know the
 * precedence of operators. Each function starts at the current token, and reports an error through
 * python_tokens_fail. */
#ifndef REFTEST_DATASET_PYTHON_EXPRESSION_H
#define REFTEST_DATASET_PYTHON_EXPRESSION_H

#include "dataset/python_parser.h"

bool python_begins_expression(const struct python_parser *p);
/* Sets p->target if the expression can be assigned to. */
void python_expression(struct python_parser *p);
/* Reads `yield`, or a list of expressions without brackets around it. */
void python_expressions(struct python_parser *p);
/* Reads an expression without operators: a name, a literal or a bracketed expression, with the attributes, calls and
 * subscripts that follow it. */
void python_operand(struct python_parser *p);
/* Reads the targets of `for`: a list of operands. */
void python_for_targets(struct python_parser *p);
/* Reads the arguments of a call, up to its closing bracket. */
void python_arguments(struct python_parser *p);
/* Reads parameters up to `end`. Records them in `function`, which is NULL for a lambda. */
void python_parameters(struct python_parser *p, const char *end, struct python_function *function);

#endif
