#include "dataset/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- Integers ---------------------------------------------------------------------------------------------------- */

void packed_put(struct buf *out, uint64_t value)
{
	unsigned char octets[10];
	size_t length = 0;

	for (; value >= 0x80; value >>= 7)
		octets[length++] = (unsigned char)(value | 0x80);
	octets[length++] = (unsigned char)value;
	buf_add(out, octets, length);
}

uint64_t packed_get(struct octets *from)
{
	uint64_t value = 0;

	for (int shift = 0; shift < 64; shift += 7) {
		if (from->at == from->end)
			break;
		unsigned char octet = *from->at++;

		value |= (uint64_t)(octet & 0x7F) << shift;
		if (octet < 0x80)
			return value;
	}
	from->bad = true;
	from->at = from->end;
	return 0;
}

const unsigned char *packed_take(struct octets *from, uint64_t length)
{
	const unsigned char *at = from->at;

	if (from->bad || length > (uint64_t)(from->end - at)) {
		from->bad = true;
		from->at = from->end;
		return NULL;
	}
	from->at += length;
	return at;
}

static void put_octet(struct buf *out, unsigned value)
{
	unsigned char octet = (unsigned char)value;

	buf_add(out, &octet, 1);
}

unsigned packed_octet(struct octets *from)
{
	const unsigned char *at = packed_take(from, 1);

	return at != NULL ? *at : 0;
}

uint64_t packed_most(struct octets *from, uint64_t most)
{
	uint64_t value = packed_get(from);

	if (value > most)
		from->bad = true;
	return from->bad ? 0 : value;
}

/* --- Doubles ---------------------------------------------------------------------------------------------------- */

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	return bits;
}

static uint32_t float_bits(double value)
{
	float narrow = (float)value;
	uint32_t bits;

	memcpy(&bits, &narrow, sizeof bits);
	return bits;
}

static double of_bits(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

static double of_float_bits(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof value);
	return (double)value;
}

static bool is_float(double value)
{
	return bits_of((double)(float)value) == bits_of(value);
}

static bool is_bfloat16(double value)
{
	return is_float(value) && (float_bits(value) & 0xFFFF) == 0;
}

/* `count` octets of `bits`, from the highest of its `width` down. */
static void put_high(struct buf *out, uint64_t bits, int width, int count)
{
	for (int i = 0; i < count; i++)
		put_octet(out, (unsigned)(bits >> (8 * (width - 1 - i)) & 0xFF));
}

static uint64_t get_high(struct octets *from, int width, int count)
{
	const unsigned char *at = packed_take(from, (uint64_t)count);
	uint64_t bits = 0;

	for (int i = 0; at != NULL && i < count; i++)
		bits |= (uint64_t)at[i] << (8 * (width - 1 - i));
	return bits;
}

/* What of a double is left when the octets at its end that are 0 are cut. */
static int octets_of(double value)
{
	uint64_t bits = bits_of(value);
	int count = 8;

	for (; count > 0 && (bits & 0xFF) == 0; bits >>= 8)
		count--;
	return count;
}

/* The number of billionths if it is below 2^35, so that 5 octets hold it, and gives the same bits; -1 if not. */
static int64_t nanos_of(double value)
{
	if (!(value > 0 && value < 34))
		return -1;
	int64_t nanos = llround(value * 1e9);

	return bits_of((double)nanos / 1e9) == bits_of(value) ? nanos : -1;
}

static int ulps_apart(double value, double last)
{
	return (int)(float_bits(value) >> 16) - (int)(float_bits(last) >> 16);
}

static enum mark choose(double value, double last)
{
	int count = octets_of(value);

	if (isnan(value))
		return MARK_NAN;
	if (count > 0 && bits_of(value) == bits_of(last))
		return MARK_SAME;
	if (bits_of(value) == bits_of(1.0))
		return MARK_ONE;
	if (count > 1 && is_bfloat16(value) && is_bfloat16(last) && abs(ulps_apart(value, last)) < 128)
		return MARK_ULPS;
	if (count > 2 && is_bfloat16(value))
		return MARK_BFLOAT16;
	if (count > 3 && is_float(value))
		return (float_bits(value) & 0xFF) == 0 ? MARK_FLOAT_3 : count > 4 ? MARK_FLOAT : (enum mark)count;
	return count > 5 && nanos_of(value) > 0 ? MARK_NANOS : (enum mark)count;
}

void figure_put(struct sink *to, double value)
{
	enum mark mark = choose(value, to->last);

	put_octet(to->marks, mark);
	if (mark < MARK_ONE)
		put_high(to->figures, bits_of(value), 8, (int)mark);
	else if (mark == MARK_BFLOAT16 || mark == MARK_FLOAT_3 || mark == MARK_FLOAT)
		put_high(to->figures, float_bits(value), 4, (int)mark - MARK_BFLOAT16 + 2);
	else if (mark == MARK_NANOS)
		packed_put(to->figures, (uint64_t)nanos_of(value));
	else if (mark == MARK_ULPS)
		put_octet(to->figures, (unsigned)ulps_apart(value, to->last) & 0xFF);
	to->last = value;
}

static double read_figure(struct source *from, unsigned mark)
{
	if (mark < MARK_ONE)
		return of_bits(get_high(from->figures, 8, (int)mark));
	switch (mark) {
	case MARK_ONE:
		return 1;
	case MARK_BFLOAT16:
	case MARK_FLOAT_3:
	case MARK_FLOAT:
		return of_float_bits((uint32_t)get_high(from->figures, 4, (int)mark - MARK_BFLOAT16 + 2));
	case MARK_SAME:
		return from->last;
	case MARK_NAN:
		return NAN;
	case MARK_NANOS:
		return (double)packed_most(from->figures, (uint64_t)1 << 36) / 1e9;
	case MARK_ULPS:
		return of_float_bits((float_bits(from->last) & 0xFFFF0000u) +
				     ((uint32_t)(int8_t)packed_octet(from->figures) << 16));
	default:
		from->marks->bad = true;
		return 0;
	}
}

double figure_get(struct source *from)
{
	double value = read_figure(from, packed_octet(from->marks));

	/* A NaN has one form, whatever octets it was given. */
	return from->last = isnan(value) ? NAN : value;
}
