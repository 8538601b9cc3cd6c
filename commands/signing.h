/* signing - records under the key of $REFTEST_CACHE_KEY (seal/seal.h): whose word counts.
 *
 * With a key set, a record that comes from elsewhere (a remote, an imported file) and is not signed with it is a miss.
 * A record of the local store is believed as the program itself is: who can write there can write the definitions, too.
 * What leaves the machine is signed if the key can. */
#ifndef REFTEST_COMMANDS_SIGNING_H
#define REFTEST_COMMANDS_SIGNING_H

#include <stdbool.h>

#include "cache/carry.h"
#include "cache/portable.h"
#include "seal/seal.h"

/* 1: *seal is the key, to be closed; 0: none is asked for, and *seal is NULL; -1: it is unusable, with the sentence.
 * Nothing from elsewhere may count then. */
int signing_open(struct seal **seal, struct err *err);

/* Signs the record. The signature lies in `room`; without a key, or with one that cannot sign, the record has none. */
void signing_sign(const struct seal *seal, struct portable *record, unsigned char room[SEAL_SIGNATURE_MAX]);

/* The same for who carries archives: `*out` is good as long as `seal`, which may be NULL. */
void signing_carry(struct seal *seal, struct carry_seal *out);

/* May the record count? `seal` NULL: every record may. -1 with the sentence why not. */
int signing_check(const struct seal *seal, const struct portable *record, struct err *err);

#endif
