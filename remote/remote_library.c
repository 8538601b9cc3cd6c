#include "remote/remote_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/library_path.h"
#include "base/sealed_library.h"
#include "remote/message.h"

#include "library_digests.h"

static const char name[] = "libreftest_remote.so";

int remote_library_path(char *path, size_t size, struct err *err)
{
	if (library_path(name, path, size) == 0)
		return 0;
	return err_set(err,
		       "%s is missing: install hiredis, libcurl and libsodium, and run make "
		       "(apt-get install libhiredis-dev libcurl4-openssl-dev libsodium-dev)",
		       name);
}

const struct remote_api *remote_library(struct err *err)
{
	char path[PATH_MAX];
	const struct remote_api *api = NULL;

	if (remote_library_path(path, sizeof path, err) < 0)
		return NULL;
	void *handle = sealed_library_open(path, REMOTE_LIBRARY_DIGEST, NULL, err);

	if (handle == NULL)
		return NULL;
	api = dlsym(handle, "reftest_remote");
	if (api != NULL && api->abi == REMOTE_ABI)
		return api;
	err_set(err, "%s is from a different build of reftest than this program; run make", path);
	dlclose(handle);
	return NULL;
}

int remote_helper_run(const struct remote_url *url)
{
	struct err err = {""};

	signal(SIGPIPE, SIG_IGN);
	const struct remote_api *api = remote_library(&err);

	if (api != NULL)
		return api->serve(STDIN_FILENO, url);
	struct buf out = {0};

	message_put_numbered(&out, MESSAGE_DONE, 0, err.text, strlen(err.text));
	/* Without the library, the helper only sends this message, and then exits. */
	ssize_t sent = send(STDIN_FILENO, out.data, out.length, MSG_NOSIGNAL);

	buf_free(&out);
	return sent > 0 ? 4 : 5;
}
