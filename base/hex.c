#include "base/hex.h"

int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static int lower_digit(char c)
{
	return c >= 'A' && c <= 'F' ? -1 : hex_digit(c);
}

bool hex_read(const char *digits, unsigned char *out, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int high = lower_digit(digits[2 * i]), low = high < 0 ? -1 : lower_digit(digits[2 * i + 1]);

		if (low < 0)
			return false;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}
