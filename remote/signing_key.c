#include "remote/signing_key.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hex.h"
#include "base/library_path.h"
#include "base/sealed_library.h"
#include "remote/sodium/api.h"

#include "library_digests.h"

enum { FILE_LIMIT = 4096, HMAC_LEAST = 16 };

struct signing_key {
	const struct sign_api *api;
	enum signing_key_kind kind;
	bool signs;
	size_t length;				   /* length of `secret` in bytes, for HMAC only */
	unsigned char secret[SIGNING_KEY_KEY_MAX]; /* the HMAC key, or the Ed25519 seed */
	unsigned char public[SIGNING_KEY_PUBLIC];  /* Ed25519 */
};

static const char syntax[] =
    "REFTEST_CACHE_KEY is not a valid key: expected hmac:HEX (16 to 64 bytes), ed25519:HEX or "
    "ed25519-public:HEX (32 bytes), or the path (with a / in it) of a file whose first line is "
    "one of these; create one with `reftest key`";

static const struct {
	const char *prefix;
	enum signing_key_kind kind;
	bool signs;
	size_t least, most;
} forms[] = {
    {"hmac:", SIGNING_KEY_HMAC_SHA256, true, HMAC_LEAST, SIGNING_KEY_KEY_MAX},
    {"ed25519:", SIGNING_KEY_ED25519, true, SIGNING_KEY_SEED, SIGNING_KEY_SEED},
    {"ed25519-public:", SIGNING_KEY_ED25519, false, SIGNING_KEY_PUBLIC, SIGNING_KEY_PUBLIC},
};

enum { FORMS = sizeof forms / sizeof forms[0] };

/* Loads the library, which is never unloaded. Returns NULL with a message on failure. */
static const struct sign_api *signing_key_library(struct err *err)
{
	char path[PATH_MAX];

	if (library_path("libreftest_sign.so", path, sizeof path) < 0) {
		err_set(err, "libreftest_sign.so, the library that checks signatures, is missing: install libsodium "
			     "(apt-get install libsodium-dev) and run make");
		return NULL;
	}
	void *handle = sealed_library_open(path, SIGN_LIBRARY_DIGEST, NULL, err);

	if (handle == NULL)
		return NULL;
	const struct sign_api *api = dlsym(handle, "reftest_sign");

	if (api != NULL && api->abi == SIGNING_KEY_ABI)
		return api;
	err_set(err, "%s is from a different build of reftest than this program; run make", path);
	dlclose(handle);
	return NULL;
}

/* Decodes all of `hex`. Returns the number of bytes, or SIZE_MAX if `hex` is not hexadecimal or is too long. */
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

/* Reads a key from the first line of `text`. */
static int read_key(struct signing_key *signer, const char *text)
{
	size_t length = strcspn(text, "\r\n");

	for (int i = 0; i < FORMS; i++) {
		size_t prefix = strlen(forms[i].prefix);
		unsigned char *bytes = forms[i].signs ? signer->secret : signer->public;

		if (length < prefix || memcmp(text, forms[i].prefix, prefix) != 0)
			continue;
		signer->kind = forms[i].kind;
		signer->signs = forms[i].signs;
		signer->length = read_hex(text + prefix, length - prefix, bytes, forms[i].most);
		return signer->length != SIZE_MAX && signer->length >= forms[i].least ? 0 : -1;
	}
	return -1;
}

/* Writes to `bytes` the text of a key: `text` itself, or the contents of the file that `text` names. The caller must
 * wipe `bytes`. */
static int find_text(const char *text, struct buf *bytes, struct err *err)
{
	if (strchr(text, '/') == NULL) {
		buf_text(bytes, text);
		return 0;
	}
	enum file_answer answer = file_read(AT_FDCWD, text, FILE_LIMIT, bytes, NULL, err);

	if (answer != FILE_OK &&
	    /* the message does not quote the text, because a text with a '/' may be a mistyped secret instead of a
	     * path */
	    access(text, F_OK) != 0)
		err_set(err,
			"REFTEST_CACHE_KEY contains a / and therefore names a file, but that file does not exist; "
			"create a key "
			"with `reftest key`");
	return answer == FILE_OK ? 0 : -1;
}

struct signing_key *signing_key_open(const char *text, struct err *err)
{
	struct signing_key *signer = calloc(1, sizeof *signer);
	struct buf bytes = {0};
	int rc = -1;

	if (signer == NULL)
		die_no_memory();
	signer->api = signing_key_library(err);
	if (signer->api == NULL) {
		free(signer);
		return NULL;
	}
	if (find_text(text, &bytes, err) == 0)
		rc = bytes.length > 0 && read_key(signer, bytes.data) == 0 ? 0 : err_set(err, "%s", syntax);
	if (rc == 0 && signer->kind == SIGNING_KEY_ED25519 && signer->signs)
		signer->api->ed_public(signer->secret, signer->public);
	if (bytes.length > 0)
		signer->api->wipe(bytes.data, bytes.length);
	buf_free(&bytes);
	if (rc == 0)
		return signer;
	signing_key_close(signer);
	return NULL;
}

void signing_key_close(struct signing_key *signer)
{
	if (signer == NULL)
		return;
	signer->api->wipe(signer->secret, sizeof signer->secret);
	free(signer);
}

enum signing_key_kind signing_key_kind(const struct signing_key *signer)
{
	return signer->kind;
}

bool signing_key_signs(const struct signing_key *signer)
{
	return signer->signs;
}

size_t signing_key_sign(const struct signing_key *signer, const void *bytes, size_t length,
			unsigned char out[SIGNATURE_MAX])
{
	if (!signer->signs)
		return 0;
	if (signer->kind == SIGNING_KEY_HMAC_SHA256) {
		signer->api->hmac(signer->secret, signer->length, bytes, length, out);
		return SIGNING_KEY_HMAC;
	}
	signer->api->ed_sign(signer->secret, bytes, length, out);
	return SIGNING_KEY_ED;
}

bool signing_key_check(const struct signing_key *signer, const void *bytes, size_t length, const void *signature,
		       size_t signature_length)
{
	unsigned char right[SIGNING_KEY_HMAC];

	if (signer->kind == SIGNING_KEY_ED25519)
		return signature_length == SIGNING_KEY_ED &&
		       signer->api->ed_check(signer->public, bytes, length, signature);
	if (signature_length != SIGNING_KEY_HMAC)
		return false;
	signer->api->hmac(signer->secret, signer->length, bytes, length, right);
	return signer->api->same(right, signature, sizeof right);
}

int signing_key_make(enum signing_key_kind kind, char text[SIGNING_KEY_TEXT], struct err *err)
{
	const struct sign_api *api = signing_key_library(err);
	unsigned char bytes[SIGNING_KEY_SEED];
	const char *prefix = forms[kind == SIGNING_KEY_HMAC_SHA256 ? 0 : 1].prefix;

	if (api == NULL)
		return -1;
	api->random(bytes, sizeof bytes);
	size_t length = (size_t)snprintf(text, SIGNING_KEY_TEXT, "%s", prefix);

	write_hex(bytes, sizeof bytes, text + length);
	api->wipe(bytes, sizeof bytes);
	return 0;
}

int signing_key_public(const struct signing_key *signer, char text[SIGNING_KEY_TEXT], struct err *err)
{
	if (signer->kind != SIGNING_KEY_ED25519)
		return err_set(
		    err,
		    "a shared secret (hmac:) has no public half: everyone who can verify with it can also sign; use "
		    "an ed25519: key instead");
	size_t length = (size_t)snprintf(text, SIGNING_KEY_TEXT, "%s", forms[2].prefix);

	write_hex(signer->public, sizeof signer->public, text + length);
	return 0;
}
