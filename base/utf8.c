#include "base/utf8.h"

size_t utf8_length(const char *text, size_t left)
{
	const unsigned char *at = (const unsigned char *)text;

	if (left == 0)
		return 0;
	unsigned char c = at[0];
	size_t length = c < 0x80                ? 1
	                : c >= 0xC2 && c < 0xE0 ? 2
	                : c >= 0xE0 && c < 0xF0 ? 3
	                : c >= 0xF0 && c < 0xF5 ? 4
	                                        : 0;

	if (length == 0 || length > left)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((at[i] & 0xC0) != 0x80)
			return 0;
	if ((c == 0xE0 && at[1] < 0xA0) || (c == 0xED && at[1] >= 0xA0) || (c == 0xF0 && at[1] < 0x90) ||
	    (c == 0xF4 && at[1] >= 0x90))
		return 0;
	return length;
}

size_t utf8_put(char out[UTF8_MAX], uint32_t code)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};

	for (size_t i = length - 1; i > 0; i--, code >>= 6)
		out[i] = (char)(0x80 | (code & 0x3F));
	out[0] = (char)(lead[length] | code);
	return length;
}
