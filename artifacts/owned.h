/* owned - whose a generated file is. Its first lines say that reftest made it and hold a digest of all that follows; so
 * a file that somebody wrote, or edited, is told from one that may be replaced. */
#ifndef REFTEST_ARTIFACTS_OWNED_H
#define REFTEST_ARTIFACTS_OWNED_H

#include <stddef.h>

#include "base/buf.h"

enum owner {
	OWNER_REFTEST, /* as reftest wrote it */
	OWNER_EDITED,  /* reftest's header, and another body: somebody's work is in it */
	OWNER_STRANGER /* no header: somebody's file */
};

enum owner owned_by(const char *bytes, size_t length);

/* Appends header and body. `body` ends in a newline. */
void owned_seal(struct buf *out, const char *body, size_t length);

/* Where the body begins; 0: there is no header. */
size_t owned_body(const char *bytes, size_t length);

#endif
