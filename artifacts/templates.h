/* templates - the Python that generated files are made of, assembled into the program as it is: conftest*.py, what each
 * op family brings in kernels/{family}/template.py, and what several share in kernels/{name}_template.py, from which
 * theirs import. make writes build/templates.inc from the files' names, functions and these imports, so a file is found
 * without a line anywhere. */
#ifndef REFTEST_ARTIFACTS_TEMPLATES_H
#define REFTEST_ARTIFACTS_TEMPLATES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* What a generated file may take from a family; a family has the functions {family}_{part} that it
 * defines, and {name}_{part} of what it shares. The first TEMPLATE_TRUTHS are ground truths, in order of preference. */
enum template_part {
	TEMPLATE_FLASHINFER,
	TEMPLATE_SGLANG,
	TEMPLATE_FLA,
	TEMPLATE_TORCH,
	TEMPLATE_TRUTHS,
	TEMPLATE_INPUTS = TEMPLATE_TRUTHS, /* generate_random_inputs */
	TEMPLATE_EDGES,			   /* axes of the edge cases */
	TEMPLATE_TOLERANCE,		   /* bounds of an output where reftest's library is not there to say them */
	TEMPLATE_JUDGE,			   /* for outputs that no element rule fits */
	TEMPLATE_PROBE,			   /* recovers constants that nothing attests */
	TEMPLATE_PARTS
};

struct template
{
	const char *name;		   /* of the family, or of what several share */
	const char *owner[TEMPLATE_PARTS]; /* whose function it is: {owner}_{part}; NULL: there is none */
	int index;			   /* among all; -1: it is none */
};

/* A family's, by name; false: it brings none. */
bool template_of(const char *family, struct template *out);

/* The one at `index`, from 0, shared ones first, each in name order; false: there are no more. */
bool template_at(int index, struct template *out);

/* Does its text stand on the other's? It does on its own. */
bool template_needs(const struct template *t, const struct template *other);

/* Its text from the first function on, not NUL-terminated, and how long that is. Of one that is there. */
size_t template_text(const struct template *t, const char **text);

const char *template_part_name(enum template_part part);

/* Appends conftest.py, without header: its parts are files of artifacts/. */
void template_conftest(struct buf *out);

/* Changes whenever any of them does. */
const char *templates_digest(void);

#endif
