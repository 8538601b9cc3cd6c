/* hand_edit - determines whether reftest or a user wrote a test file, and whether a user edited a generated file. The
 * first lines of a generated file say that reftest generated it, and contain a digest of the other lines. Only a
 * generated file that nobody edited may be replaced. */
#ifndef REFTEST_TESTGEN_HAND_EDIT_H
#define REFTEST_TESTGEN_HAND_EDIT_H

#include <stddef.h>

#include "base/buf.h"

enum owner {
	OWNER_REFTEST, /* the file is unchanged since reftest wrote it */
	OWNER_EDITED,  /* the digest in reftest's header does not match: a user edited the file */
	OWNER_USER /* the file has no header of reftest: a user wrote it */
};

enum owner owned_by(const char *bytes, size_t length);

/* Appends a generated file: a header with the digest of `body`, and then `body`, which must end with a newline. */
void owned_seal(struct buf *out, const char *body, size_t length);

/* Returns the position at which the body starts after the header, or 0 if the file has no header. */
size_t owned_body(const char *bytes, size_t length);

#endif
