#include "base/sha256.h"

#include <stdbool.h>
#include <string.h>

#if defined __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

/* FIPS 180-4, section 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

enum { BLOCK = 64, FAST_FROM = 16 /* for fewer blocks, SHA instructions save less time than a check for them takes */ };

static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static uint32_t turn(uint32_t x, int by)
{
	return x >> by | x << (32 - by);
}

static void add_block(uint32_t state[8], const unsigned char *block)
{
	uint32_t w[64], s[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;

		w[i] = w[i - 16] + a + w[i - 7] + b;
	}
	memcpy(s, state, sizeof s);
	for (int i = 0; i < 64; i++) {
		uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]),
			 majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
		uint32_t one = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + choice + constants[i] + w[i];
		uint32_t two = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + majority;

		memmove(s + 1, s, 7 * sizeof *s);
		s[4] += one;
		s[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		state[i] += s[i];
}

#if defined __x86_64__
static bool has_instructions(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSSE3 && c & bit_SSE4_1 && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
	       b & bit_SHA;
}

/* Does the same as add_block, for many blocks. The processor's SHA-256 instructions make this function at least ten
 * times as fast as add_block. These instructions keep the state in two registers: one has the words a b e f, the other
 * the words c d g h. The first word of a register is in its highest bits. */
__attribute__((target("sha,sse4.1,ssse3"))) static void add_blocks_fast(uint32_t state[8], const unsigned char *at,
									 size_t count)
{
	const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i badc = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
	__m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
	__m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);

	for (; count > 0; count--, at += BLOCK) {
		const __m128i abef_before = abef, cdgh_before = cdgh;
		__m128i w[4];

		for (int i = 0; i < 4; i++)
			w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(at + 16 * i)), big_endian);
		for (int i = 0; i < 16; i++) { /* four rounds each */
			const __m128i *last = &w[(i + 3) % 4];
			__m128i sum = _mm_add_epi32(w[i % 4], _mm_loadu_si128((const __m128i *)(constants + 4 * i)));

			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
			sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]),
					    _mm_alignr_epi8(*last, w[(i + 2) % 4], 4));
			w[i % 4] = _mm_sha256msg2_epu32(sum, *last);
		}
		abef = _mm_add_epi32(abef, abef_before);
		cdgh = _mm_add_epi32(cdgh, cdgh_before);
	}
	__m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);

	_mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
	_mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#else
static bool has_instructions(void)
{
	return false;
}

static void add_blocks_fast(uint32_t state[8], const unsigned char *at, size_t count)
{
	(void)state, (void)at, (void)count;
}
#endif

static void add_blocks(struct sha256 *sum, const unsigned char *at, size_t count)
{
	if (count >= FAST_FROM && has_instructions()) {
		add_blocks_fast(sum->state, at, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		add_block(sum->state, at + BLOCK * i);
}

void sha256_add(struct sha256 *sum, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	size_t used = sum->length % BLOCK, more = BLOCK - used < length ? BLOCK - used : length;

	if (sum->length == 0)
		memcpy(sum->state, initial, sizeof initial);
	sum->length += length;
	if (used > 0) {
		memcpy(sum->last + used, at, more);
		if (used + more < BLOCK)
			return;
		add_blocks(sum, sum->last, 1);
		at += more;
		length -= more;
	}
	add_blocks(sum, at, length / BLOCK);
	if (length % BLOCK > 0)
		memcpy(sum->last, at + (length - length % BLOCK), length % BLOCK);
}

void sha256_end(struct sha256 *sum, unsigned char out[SHA256_BYTES])
{
	unsigned char padding[2 * BLOCK] = {0x80};
	uint64_t bits = sum->length * 8;
	size_t used = sum->length % BLOCK, zeros = (size_t)(used < BLOCK - 8 ? BLOCK : 2 * BLOCK) - 8 - used;

	for (int i = 0; i < 8; i++)
		padding[zeros + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
	sha256_add(sum, padding, zeros + 8);
	for (int i = 0; i < SHA256_BYTES; i++)
		out[i] = (unsigned char)(sum->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_of(const void *bytes, size_t length, unsigned char out[SHA256_BYTES])
{
	struct sha256 sum = {.length = 0};

	sha256_add(&sum, bytes, length);
	sha256_end(&sum, out);
}
