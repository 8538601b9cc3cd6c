/* packed_bytes - reads integers and byte strings from packed forms that older versions of reftest wrote. */
#ifndef REFTEST_DATASET_PACKED_BYTES_H
#define REFTEST_DATASET_PACKED_BYTES_H

#include <stdbool.h>
#include <stdint.h>

/* The bytes that are not read yet. */
struct packed_bytes {
	const unsigned char *at, *end;
	bool bad; /* the data ended too early; all later reads return 0 */
};
uint64_t packed_get(struct packed_bytes *from);						      /* reads an integer in
                                                                                               * LEB128 */
const unsigned char *packed_take(struct packed_bytes *from, uint64_t length); /* returns NULL if fewer bytes are left */
static inline int64_t packed_unfold(uint64_t value)			      /* decodes a signed integer from its
                                                                               * zigzag form */
{
	return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

#endif
