/* portable - one verdict in the form in which it leaves the machine: in an exported file, in a shared store.
 *
 *   record = magic "rfvt" . version u32 . length u32 . body (length octets) . checksum u64      (version 1: older fields)
 *   body   = signature kind u32 . signature bytes
 *          . subject . witness . made u64 . verdict bytes . fields bytes
 *          . count u32 . { definition bytes . case bytes } …
 *
 * Numbers are little-endian, bytes are counted by a u32 (cache/record.h), so it is the same on every machine. The
 * checksum is XXH3-64 of all that stands before it. Magic, version, length and checksum keep their places in every
 * version to come, so that a record of a later one can be stepped over. A record says everything of a verdict and
 * nothing of a machine: no path, no stat, no number of a transaction.
 *
 * What a record says is no reason to believe it: portable_check holds its digests to its own words, and a signature, if
 * one is asked for, says who wrote it. */
#ifndef REFTEST_CACHE_PORTABLE_H
#define REFTEST_CACHE_PORTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"

enum {
	PORTABLE_VERSION = 2,	   /* is written; those from 1 on are read */
	PORTABLE_HEAD = 12,	   /* octets before the body */
	PORTABLE_TAIL = 8,	   /* and behind it */
	PORTABLE_MAX = 8 << 20,	   /* octets of a body */
	PORTABLE_NAMES_MAX = 4096, /* definitions that share one verdict */
	PORTABLE_NAME_MAX = 4096,  /* octets of one name */
	PORTABLE_SIGNATURE_MAX = 1024,
};

/* These numbers travel: never renumber, only append. */
enum signature_kind { SIGNATURE_NONE = 0, SIGNATURE_HMAC_SHA256 = 1, SIGNATURE_ED25519 = 2 };

/* A case that the verdict was last seen to answer. */
struct portable_name {
	const char *definition, *case_id; /* "rmsnorm/rmsnorm_h4096", "small:batch_size=1" */
};

struct portable {
	struct digest subject, witness;
	int64_t made;	  /* Unix seconds, what the verdict says of itself; 0: unknown */
	const char *text; /* verdict_write's JSON; inside an archive or the store its packed form (dataset/packed.h) */
	size_t length;
	const void *fields; /* fields_write's: each field of subject and witness with its digest; length 0: not known */
	size_t fields_length;
	const struct portable_name *names;
	int name_count; /* may be 0 */
	enum signature_kind signature_kind;
	const void *signature;
	size_t signature_length; /* 0 with SIGNATURE_NONE */
	bool agrees;		 /* whoever read it saw already what portable_check looks for. Does not travel */
};

/* Appends what a record has between its length and its checksum. */
void portable_body(const struct portable *record, struct buf *out);

/* Appends the record, whose text is JSON. 0, or -1 with a sentence and nothing appended: it is larger than a record may be. */
int portable_write(const struct portable *record, struct buf *out, struct err *err);

enum portable_answer {
	PORTABLE_LOST = -1, /* there is no record here: where the next one begins is not known */
	PORTABLE_SHORT = 0, /* the octets end before the record does; no sentence */
	PORTABLE_WHOLE = 1,
	PORTABLE_DAMAGED = 2, /* does not check out; `used` steps over it, if its length is not what is wrong */
	PORTABLE_NEWER = 3,   /* of a version that this program does not know */
};

/* Reads the record at the beginning of `bytes` (octets after its end are none of its business). `used` gets its length,
 * 0 with LOST and SHORT. Texts are copied into `arena` with a NUL appended. A sentence with LOST, DAMAGED and NEWER. */
enum portable_answer portable_read(const void *bytes, size_t length, struct arena *arena, struct portable *out,
				   size_t *used, struct err *err);

/* Does the record agree with itself? The verdict is one; its witness is the digest of what it says verified it; `made`
 * is its time; the fields, where there are any, digest to subject and witness; names are fit to be shown. 0, or -1 with
 * the sentence what does not agree. */
int portable_check(const struct portable *record, struct err *err);

/* Names come to be shown on terminals and to be looked for in files. */
bool portable_name_is_fit(const char *name);

/* Appends what a signature is made over: a line that names the purpose, subject, witness, made and verdict, in the form in
 * which it travels. Fields and names are not among it: they explain, and decide nothing. */
void portable_signed(const struct portable *record, struct buf *out);

/* The time in a verdict's text of either form, without parsing all of it; 0: there is none. */
int64_t portable_made(const char *text, size_t length);

#endif
