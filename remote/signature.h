/* signature - signs and verifies records with the key of $REFTEST_CACHE_KEY (remote/signing_key.h).
 *
 * If a key is set, a record from a remote or an imported file is accepted only if that key verifies its signature.
 * Records of the local store need no signature, because a user who can write to the store can also write to the
 * definitions. If the key can sign, records that are exported or sent to a remote are signed. */
#ifndef REFTEST_REMOTE_SIGNATURE_H
#define REFTEST_REMOTE_SIGNATURE_H

#include <stdbool.h>

#include "cache/export_import.h"
#include "cache/verdict_line.h"
#include "remote/signing_key.h"

/* Opens the key in `text`, the value of $REFTEST_CACHE_KEY (NULL: not set). Returns 1 and the key in `*signer`, which
 * the caller closes. Returns 0 and NULL in `*signer` if no key is set. Returns -1 with a message if the key cannot be
 * used. If the key cannot be used, the caller must reject every record from a remote or a file. */
int signature_open(const char *text, struct signing_key **signer, struct err *err);

/* Signs the record. If `signer` is NULL or is only a public key, the record gets no signature. */
void signature_sign(const struct signing_key *signer, struct verdict_line *record);

/* Returns functions that sign exported records and check imported records with the key `signer`. `signer` may be NULL.
 * The functions must not be called after `signer` was closed. */
struct record_signer signature_signer(struct signing_key *signer);

/* Checks the signature of the record. If `signer` is NULL, every record is accepted. Returns 0 if the record is
 * accepted, or -1 with a message that says why it is refused. */
int signature_check(const struct signing_key *signer, const struct verdict_line *record, struct err *err);

#endif
