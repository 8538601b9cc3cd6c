/* answer - writes and reads the lines that `reftest work` prints: one line about the worker, and one line for each
 * request.
 *
 *   {"event": "worker", "checker": "HEX", "device": "cuda:0", "device_class": "sm_90", "torch": "2.8.0",
 *    "cuda": "12.8", "requests": 8, "signature": "ed25519"}
 *   {"event": "answer", "id": "7", "checker": "HEX", "definition": "rmsnorm/rmsnorm_h128", "status": "passed",
 *    "reason": null, "message": null, "seconds": 0.31, "cases": [{"id": "small:batch_size=1", "status": "passed",
 *    "reason": null, "message": null, "seconds": 0.05, "stored": true}], "verdicts": ["LINE"]}
 *   {"event": "error", "id": "7", "message": "request:3:2: unknown field 'definitoin'"}
 *
 * "checker" is the digest of the code that checks references (docs/architecture.md). `cache merge` refuses verdicts of
 * a build with a different digest. "verdicts" has one signed line for each verdict that `verify` would store
 * (cache/verdict_line.h). All other fields of an answer are unsigned and must not be trusted. */
#ifndef REFTEST_FLEET_ANSWER_H
#define REFTEST_FLEET_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "engine/run_state.h"
#include "remote/signing_key.h"

enum {
	ANSWER_LINE_MAX = 64 << 20,    /* the largest number of bytes in a line */
	ANSWER_VERDICTS_MAX = 1 << 17, /* the largest number of verdicts in an answer */
};

struct worker_facts {
	const struct program *program;
	const struct machine_policy *machine;
	int requests;                     /* the largest number of requests that the worker accepts at a time */
	const struct signing_key *signer; /* NULL: the worker does not sign */
};

void answer_write_worker(struct buf *out, const struct worker_facts *facts);

/* `verdicts` has JSON strings, separated by commas. `id` may be NULL. */
void answer_write_result(struct buf *out, const char *id, const struct result *result, const struct buf *verdicts);
void answer_write_error(struct buf *out, const char *id, const char *message);

/* One line of a worker's output, with the fields that `cache merge` needs. */
struct answer {
	const char *id;              /* NULL: none */
	const char *checker;         /* the "checker" of the line; NULL in a line about an error */
	const char *const *verdicts; /* lines without LF */
	int verdict_count;
};

/* Reads line `number` of a worker's output. `out` points into `arena`. Returns 0, or -1 and sets `err`. */
int answer_read(const char *line, size_t length, int64_t number, struct arena *arena, struct answer *out,
		struct err *err);

#endif
