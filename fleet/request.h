/* request - one request to `reftest work`: a line of JSON that names a definition, and has the digest of its files.
 *
 *   {"id": "7", "definition": "rmsnorm/rmsnorm_h128", "content": "HEX", "whole": false,
 *    "cases": [{"id": "small:batch_size=1", "seconds": 0.2}]}
 *
 * `verify --dry-run --format requests` writes one request, without "id", for each definition that has cases to run.
 * "id" is repeated in the answer. "content" is the digest of the definition's files; the files of the worker must have
 * the same digest. If "whole" is true, every case of the definition is verified; otherwise only the cases under "cases"
 * are. "seconds" is the estimated time of a case. The program that distributes the requests may use this estimate. */
#ifndef REFTEST_FLEET_REQUEST_H
#define REFTEST_FLEET_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "engine/run_state.h"

enum {
	REQUEST_LINE_MAX = 1 << 20,   /* the largest number of bytes in a line */
	REQUEST_ID_MAX = 128,         /* the largest number of bytes in "id" */
	REQUEST_NAME_MAX = 512,       /* the largest number of bytes in "definition" */
	REQUEST_CASES_MAX = 1 << 14,  /* the largest number of cases in a request */
	REQUEST_CASE_MAX = 4096,      /* the largest number of bytes in the id of a case */
};

struct work_request {
	const char *id;           /* the id of the request; NULL: none */
	const char *definition;   /* "op_type/name" */
	struct digest content;
	const char *const *cases; /* the ids of the cases, followed by NULL; if `cases` itself is NULL, every case of
				   * the definition is verified */
};

/* Reads line `number` of the requests. Returns 0 and sets `out` to the request, which is in `arena`. If the line is not
 * a request, returns -1 and sets `err`. Even then, sets `out->id` if the line has a readable id, so that the answer can
 * name the request. */
int request_read(const char *line, size_t length, int64_t number, struct arena *arena, struct work_request *out,
		 struct err *err);

/* `result` is the result of a dry run. Appends a request for those of its cases that would run without --dry-run. If
 * there are no such cases, appends nothing and returns false. */
bool request_write(struct result *result, struct buf *out);

#endif
