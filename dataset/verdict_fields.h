/* verdict_fields - lists the numbers of struct metrics, with their names in the JSON of a verdict. */
#ifndef REFTEST_DATASET_VERDICT_FIELDS_H
#define REFTEST_DATASET_VERDICT_FIELDS_H

#include "dataset/verdict.h"

enum field_kind { FIELD_INTEGER, FIELD_NUMBER, FIELD_BOOL };

struct verdict_field {
	const char *name;
	enum field_kind kind;
	size_t offset; /* position of the member in struct metrics */
};

/* Ends with an entry whose name is NULL. */
extern const struct verdict_field verdict_fields[];

#endif
