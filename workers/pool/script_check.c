#include "workers/pool/script_check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/sha256.h"

enum { SCRIPT_MAX = 4 << 20 };

static const struct {
	const char *name, *digest;
} scripts[] = {
#define SCRIPT(name, digest) {name, digest},
#include "scripts.inc"
#undef SCRIPT
};

int script_check(const char *folder, struct err *err)
{
	struct buf bytes = {0};
	char path[4096], hex[2 * SHA256_BYTES + 1] = "";
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof scripts / sizeof scripts[0]; i++) {
		unsigned char digest[SHA256_BYTES];

		if (snprintf(path, sizeof path, "%s/%s", folder, scripts[i].name) >= (int)sizeof path)
			rc = err_set(err, "the path of %s is too long", scripts[i].name);
		else if (file_read(AT_FDCWD, path, SCRIPT_MAX, &bytes, NULL, err) != FILE_OK)
			rc = err_set(err, "%s cannot be read; run make", path);
		if (rc != 0)
			break;
		sha256_of(bytes.data, bytes.length, digest);
		for (int at = 0; at < SHA256_BYTES; at++)
			snprintf(hex + 2 * at, 3, "%02x", digest[at]);
		if (strcmp(hex, scripts[i].digest) != 0)
			rc = err_set(err, "%s has been changed since this program was built; run make", path);
	}
	buf_free(&bytes);
	return rc;
}
