#include "remote/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/beside.h"
#include "remote/frame.h"

static const char name[] = "libreftest_remote.so";

int remote_library_path(char *path, size_t size, struct err *err)
{
	if (beside_program(name, path, size) == 0)
		return 0;
	return err_set(err,
		       "%s is not there: make builds it where it finds hiredis, libcurl and libsodium "
		       "(apt-get install libhiredis-dev libcurl4-openssl-dev libsodium-dev)",
		       name);
}

const struct remote_face *remote_library(struct err *err)
{
	char path[PATH_MAX];
	const struct remote_face *face = NULL;

	if (remote_library_path(path, sizeof path, err) < 0)
		return NULL;
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (handle == NULL) {
		err_set(err, "%s cannot be loaded (%s)", path, dlerror());
		return NULL;
	}
	face = dlsym(handle, "reftest_remote");
	if (face != NULL && face->abi == REMOTE_ABI)
		return face;
	err_set(err, "%s is of another build: run make", path);
	dlclose(handle);
	return NULL;
}

int courier_main(void)
{
	const char *text = getenv("REFTEST_REMOTE");
	struct place place;
	struct err err = {""};

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever began it is the only one it works for */
	signal(SIGPIPE, SIG_IGN);
	if (text == NULL || place_parse(text, &place, NULL) < 0)
		return 2;
	const struct remote_face *face = remote_library(&err);

	if (face != NULL)
		return face->serve(STDIN_FILENO, &place);
	struct buf out = {0};

	frame_put_numbered(&out, FRAME_DONE, 0, err.text, strlen(err.text));
	ssize_t sent = send(STDIN_FILENO, out.data, out.length, MSG_NOSIGNAL); /* all that it will ever say */

	buf_free(&out);
	return sent > 0 ? 4 : 5;
}
