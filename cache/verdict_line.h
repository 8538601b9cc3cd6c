/* verdict_line - writes and reads a verdict as one line of text. Exported files (cache/export_import.h) and remote
 * caches contain such lines.
 *
 *   line      = checksum, TAB, signature, TAB, subject, TAB, names, fields, verdict, LF
 *   checksum  = XXH3-64 of everything between its TAB and the LF, 16 hexadecimal digits
 *   signature = "-", or "hmac-sha256:" or "ed25519:" and hexadecimal digits
 *   subject   = "-" if the line has fields, from which the subject is computed; otherwise 32 hexadecimal digits
 *   names     = count, TAB, and for each case: its definition, TAB, its id, TAB
 *   fields    = fields_write's text (cache/fingerprint.h); "0" and a TAB if the fields are unknown
 *   verdict   = verdict_write's JSON
 *
 * Subject and witness are the two digests of a fingerprint (cache/fingerprint.h). A line contains everything about a
 * verdict. A line contains nothing that is valid on only one machine, such as absolute paths or file timestamps. The
 * line omits what its reader can compute: the witness and the time from the verdict, and the subject from the fields.
 * The checksum detects damage to the line. A signature proves who wrote the line. */
#ifndef REFTEST_CACHE_VERDICT_LINE_H
#define REFTEST_CACHE_VERDICT_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "dataset/verdict.h"

enum {
	VERDICT_LINE_MAX = 8 << 20,    /* the most bytes of a line */
	VERDICT_LINE_NAMES_MAX = 4096, /* the most names of cases in a line */
	VERDICT_LINE_NAME_MAX = 4096,  /* the most bytes of one name */
	VERDICT_LINE_SIGNATURE_MAX = 64,
};

enum signature_kind { SIGNATURE_NONE, SIGNATURE_HMAC_SHA256, SIGNATURE_ED25519 };

/* A case whose last verdict is the verdict in the record. */
struct case_name {
	const char *definition, *case_id; /* "rmsnorm/rmsnorm_h4096", "small:batch_size=1" */
};

struct verdict_line {
	struct digest subject, witness;
	int64_t made;	  /* time of the verdict in Unix seconds; 0: unknown */
	const char *text; /* the verdict as verdict_write's JSON */
	size_t length;
	const char *fields; /* text that fields_write wrote; fields_length is 0 if the fields are unknown */
	size_t fields_length;
	const struct case_name *names;
	int name_count; /* may be 0 */
	enum signature_kind signature_kind;
	unsigned char signature[VERDICT_LINE_SIGNATURE_MAX];
	size_t signature_length;
};

/* Appends the record as a line. Omits names that are empty or too long, or that contain control characters. Returns 0.
 * Returns -1 with an error message and appends nothing if the verdict is not JSON on one line, or if the line would be
 * too long. */
int verdict_line_write(const struct verdict_line *record, struct buf *out, struct err *err);

/* Reads a line of `length` bytes, not counting its LF, and checks everything in the line except the signature. Sets
 * `out` to the record; its `text` and `fields` point into the line, and its names are in `arena`. Returns the verdict
 * of the record, or NULL with a message. */
const struct verdict *verdict_line_read(const char *line, size_t length, struct arena *arena, struct verdict_line *out,
				       struct err *err);

/* Checks that a record is consistent. The names must be printable. Subject and witness must be the digests of the
 * fields. The verdict must have the witness and the time of the record. Returns the parsed verdict, which is allocated
 * in `arena`, or NULL with a message. */
const struct verdict *verdict_line_check(const struct verdict_line *record, struct arena *arena, struct err *err);

/* Appends the bytes that are signed: a line that names the purpose of the signature, then the subject, the witness, the
 * time and the verdict of the record. Fields and names are not signed, because they only help to explain the verdict.
 * The cases to which the verdict applies follow from the subject and the witness, which are signed. */
void verdict_line_signed(const struct verdict_line *record, struct buf *out);

#endif
