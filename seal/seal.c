#include "seal/seal.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/beside.h"
#include "base/file.h"
#include "seal/face.h"

enum { FILE_LIMIT = 4096, HMAC_LEAST = 16 };

struct seal {
	const struct seal_face *face;
	enum seal_kind kind;
	bool signs;
	size_t length;			    /* of `secret`: with HMAC */
	unsigned char secret[SEAL_KEY_MAX]; /* HMAC's key, or Ed25519's seed */
	unsigned char public[SEAL_PUBLIC];  /* Ed25519 */
};

static const char syntax[] =
    "REFTEST_CACHE_KEY is no key: it takes hmac:HEX (16 to 64 bytes), ed25519:HEX or "
    "ed25519-public:HEX (32 bytes), or the path (with a / in it) of a file whose first line is "
    "one of these; `reftest key` makes one";

static const struct {
	const char *prefix;
	enum seal_kind kind;
	bool signs;
	size_t least, most;
} forms[] = {
    {"hmac:", SEAL_HMAC_SHA256, true, HMAC_LEAST, SEAL_KEY_MAX},
    {"ed25519:", SEAL_ED25519, true, SEAL_SEED, SEAL_SEED},
    {"ed25519-public:", SEAL_ED25519, false, SEAL_PUBLIC, SEAL_PUBLIC},
};

enum { FORMS = sizeof forms / sizeof forms[0] };

const struct seal_face *seal_library(struct err *err)
{
	char path[PATH_MAX];

	if (beside_program("libreftest_seal.so", path, sizeof path) < 0) {
		err_set(err, "libreftest_seal.so, which checks signatures, is not there: make builds it where it finds "
			     "libsodium "
			     "(apt-get install libsodium-dev)");
		return NULL;
	}
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (handle == NULL) {
		err_set(err, "%s cannot be loaded (%s)", path, dlerror());
		return NULL;
	}
	const struct seal_face *face = dlsym(handle, "reftest_seal");

	if (face != NULL && face->abi == SEAL_ABI)
		return face;
	err_set(err, "%s is of another build: run make", path);
	dlclose(handle);
	return NULL;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* All of `hex` as bytes; SIZE_MAX: it is none, or too long. */
static size_t read_hex(const char *hex, size_t length, unsigned char *out, size_t size)
{
	if (length % 2 != 0 || length / 2 > size)
		return SIZE_MAX;
	for (size_t i = 0; i < length; i++)
		if (hex_digit(hex[i]) < 0)
			return SIZE_MAX;
	for (size_t i = 0; i < length / 2; i++)
		out[i] = (unsigned char)(hex_digit(hex[2 * i]) * 16 + hex_digit(hex[2 * i + 1]));
	return length / 2;
}

static void write_hex(const unsigned char *bytes, size_t length, char *out)
{
	for (size_t i = 0; i < length; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* From the first line of `text`. */
static int read_key(struct seal *seal, const char *text)
{
	size_t length = strcspn(text, "\r\n");

	for (int i = 0; i < FORMS; i++) {
		size_t prefix = strlen(forms[i].prefix);
		unsigned char *bytes = forms[i].signs ? seal->secret : seal->public;

		if (length < prefix || memcmp(text, forms[i].prefix, prefix) != 0)
			continue;
		seal->kind = forms[i].kind;
		seal->signs = forms[i].signs;
		seal->length = read_hex(text + prefix, length - prefix, bytes, forms[i].most);
		return seal->length != SIZE_MAX && seal->length >= forms[i].least ? 0 : -1;
	}
	return -1;
}

/* `text` itself, or what stands in the file that it names; in `bytes`, to be wiped. */
static int find_text(const char *text, struct buf *bytes, struct err *err)
{
	if (strchr(text, '/') == NULL) {
		buf_text(bytes, text);
		return 0;
	}
	enum file_answer answer = file_read(AT_FDCWD, text, FILE_LIMIT, bytes, NULL, err);

	if (answer != FILE_OK &&
	    access(text, F_OK) != 0) /* not shown: it may be no path, but a secret with a / in it */
		err_set(err,
			"REFTEST_CACHE_KEY names a file, for there is a / in it, which is not there; `reftest key` "
			"makes a key");
	return answer == FILE_OK ? 0 : -1;
}

struct seal *seal_open(const char *text, struct err *err)
{
	struct seal *seal = calloc(1, sizeof *seal);
	struct buf bytes = {0};
	int rc = -1;

	if (seal == NULL)
		die_no_memory();
	seal->face = seal_library(err);
	if (seal->face == NULL) {
		free(seal);
		return NULL;
	}
	if (find_text(text, &bytes, err) == 0)
		rc = bytes.length > 0 && read_key(seal, bytes.data) == 0 ? 0 : err_set(err, "%s", syntax);
	if (rc == 0 && seal->kind == SEAL_ED25519 && seal->signs)
		seal->face->ed_public(seal->secret, seal->public);
	if (bytes.length > 0)
		seal->face->wipe(bytes.data, bytes.length);
	buf_free(&bytes);
	if (rc == 0)
		return seal;
	seal_close(seal);
	return NULL;
}

void seal_close(struct seal *seal)
{
	if (seal == NULL)
		return;
	seal->face->wipe(seal->secret, sizeof seal->secret);
	free(seal);
}

enum seal_kind seal_kind(const struct seal *seal)
{
	return seal->kind;
}

bool seal_signs(const struct seal *seal)
{
	return seal->signs;
}

size_t seal_sign(const struct seal *seal, const void *bytes, size_t length, unsigned char out[SEAL_SIGNATURE_MAX])
{
	if (!seal->signs)
		return 0;
	if (seal->kind == SEAL_HMAC_SHA256) {
		seal->face->hmac(seal->secret, seal->length, bytes, length, out);
		return SEAL_HMAC;
	}
	seal->face->ed_sign(seal->secret, bytes, length, out);
	return SEAL_ED;
}

bool seal_check(const struct seal *seal, const void *bytes, size_t length, const void *signature,
		size_t signature_length)
{
	unsigned char right[SEAL_HMAC];

	if (seal->kind == SEAL_ED25519)
		return signature_length == SEAL_ED && seal->face->ed_check(seal->public, bytes, length, signature);
	if (signature_length != SEAL_HMAC)
		return false;
	seal->face->hmac(seal->secret, seal->length, bytes, length, right);
	return seal->face->same(right, signature, sizeof right);
}

int seal_make(enum seal_kind kind, char text[SEAL_KEY_TEXT], struct err *err)
{
	const struct seal_face *face = seal_library(err);
	unsigned char bytes[SEAL_SEED];
	const char *prefix = forms[kind == SEAL_HMAC_SHA256 ? 0 : 1].prefix;

	if (face == NULL)
		return -1;
	face->random(bytes, sizeof bytes);
	size_t length = (size_t)snprintf(text, SEAL_KEY_TEXT, "%s", prefix);

	write_hex(bytes, sizeof bytes, text + length);
	face->wipe(bytes, sizeof bytes);
	return 0;
}

int seal_public(const struct seal *seal, char text[SEAL_KEY_TEXT], struct err *err)
{
	if (seal->kind != SEAL_ED25519)
		return err_set(
		    err,
		    "a shared secret (hmac:) has no public half: who may check with it can also sign. ed25519: has "
		    "one");
	size_t length = (size_t)snprintf(text, SEAL_KEY_TEXT, "%s", forms[2].prefix);

	write_hex(seal->public, sizeof seal->public, text + length);
	return 0;
}
