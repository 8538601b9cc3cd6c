#include "workers/machine.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "workers/process.h"

extern char **environ;

enum { SMALL_FILE = 64 << 10, ASK_MS = 30000, ANSWER_MAX = 16 << 10 };

/* ---- the interpreter ---- */

static bool executable_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Made absolute, but links are left as they are: a virtual environment is known by the path of its python. */
static int absolute(const char *path, char *out, size_t size)
{
	char directory[4096];
	int length;

	if (path[0] == '/')
		length = snprintf(out, size, "%s", path);
	else if (getcwd(directory, sizeof directory) != NULL)
		length = snprintf(out, size, "%s/%s", directory, path);
	else
		return -1;
	return length >= 0 && (size_t)length < size && executable_file(out) ? 0 : -1;
}

static int on_path(const char *name, char *out, size_t size)
{
	const char *path = getenv("PATH"), *end;
	char candidate[4096];

	if (path == NULL)
		path = "/usr/local/bin:/usr/bin:/bin";
	for (; *path != '\0'; path = *end == '\0' ? end : end + 1) {
		int length;

		end = path + strcspn(path, ":");
		length = snprintf(candidate, sizeof candidate, "%.*s/%s", (int)(end - path), end == path ? "." : path, name);
		if (end == path)
			length = snprintf(candidate, sizeof candidate, "./%s", name);
		if (length > 0 && (size_t)length < sizeof candidate && absolute(candidate, out, size) == 0)
			return 0;
	}
	return -1;
}

/* What somebody named must be there: falling back would run another interpreter than the one that was asked for. */
static int named_python(const char *name, const char *by, char *out, size_t size, struct err *err)
{
	if (strchr(name, '/') != NULL ? absolute(name, out, size) == 0 : on_path(name, out, size) == 0)
		return 0;
	return err_set(err, "%s names %s, which is no program that can be run; name a python3 that has torch", by,
	               err_show(name).text);
}

static int in_environment(const char *directory, const char *below, char *out, size_t size)
{
	char path[4096];
	int length = snprintf(path, sizeof path, "%s%s/.venv/bin/python3", directory, below);

	return length > 0 && (size_t)length < sizeof path ? absolute(path, out, size) : -1;
}

int machine_python(const char *given, const char *root, char *out, size_t size, struct err *err)
{
	const char *environment = getenv("REFTEST_PYTHON");
	char binary[4096];

	if (given != NULL)
		return named_python(given, "--python", out, size, err);
	if (environment != NULL && environment[0] != '\0')
		return named_python(environment, "REFTEST_PYTHON", out, size, err);
	if (root != NULL && in_environment(root, "", out, size) == 0)
		return 0;
	if (file_program_directory(binary, sizeof binary, NULL) == 0 && in_environment(binary, "/..", out, size) == 0)
		return 0;
	if (on_path("python3", out, size) == 0)
		return 0;
	return err_set(err, "there is no python3 on PATH and no .venv below %s; `make verify` in a checkout of reftest makes "
	               "one, or name an interpreter that has torch with --python", root == NULL ? "the dataset" : root);
}

/* ---- files of this program ---- */

int machine_script(const char *name, const char *variable, char *out, size_t size, struct err *err)
{
	static const char *const places[] = {"../workers", "../../workers", "../lib/reftest"};
	const char *given = getenv(variable);
	char directory[4096];

	if (given != NULL && given[0] != '\0') {
		snprintf(out, size, "%s", given);
		return access(out, R_OK) == 0 ? 0 : err_errno(err, "%s names %s", variable, given);
	}
	if (file_program_directory(directory, sizeof directory, err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		int length = snprintf(out, size, "%s/%s/%s", directory, places[i], name);

		if (length > 0 && (size_t)length < size && access(out, R_OK) == 0)
			return 0;
	}
	return err_set(err, "%s is neither in %s/../workers nor in %s/../lib/reftest; run `make install` again, or set %s to "
	               "its path", name, directory, directory, variable);
}

/* ---- its torch ---- */

/* Reads until the end, at most ANSWER_MAX bytes, for at most ASK_MS. */
static int read_answer(int fd, struct buf *out)
{
	struct pollfd poll_fd = {fd, POLLIN, 0};
	char bytes[4096];
	ssize_t got = 1;

	while (got > 0 && out->length < ANSWER_MAX) {
		if (poll(&poll_fd, 1, ASK_MS) != 1)
			return -1;
		got = read(fd, bytes, sizeof bytes);
		if (got > 0)
			buf_add(out, bytes, (size_t)got);
	}
	return got < 0 ? -1 : 0;
}

/* Runs `python words[0] …` (three words at most) and gathers what it prints. 0, or -1: it could not be run, or failed. */
static int ask_python(const char *python, const char *const words[], char *const environment[], struct buf *out,
                      struct err *err)
{
	char *argv[] = {(char *)(uintptr_t)python, (char *)(uintptr_t)words[0], (char *)(uintptr_t)words[1],
	                (char *)(uintptr_t)words[2], NULL};
	int ends[2], rc, status = -1;
	struct process process;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_errno(err, "no pipe to %s", python);
	const int fds[] = {-1, ends[1], -1};

	rc = process_start(&process, python, argv, environment, fds, 3, err);
	close(ends[1]);
	if (rc == 0 && read_answer(ends[0], out) != 0)
		rc = err_set(err, "%s does not answer", python);
	close(ends[0]);
	if (process.pid == 0)
		return rc;
	if (rc != 0)
		process_kill(&process);
	while (waitpid(process.pid, &status, 0) < 0 && errno == EINTR)
		;
	if (process.pidfd >= 0)
		close(process.pidfd);
	if (rc == 0 && status != 0)
		rc = err_set(err, "%s cannot run a little Python: %s", python, process_end(status).text);
	return rc;
}

/* The value of `name = 'value'` (an annotation may stand between) at the beginning of a line; NULL: None, or no such
 * line. */
static const char *assigned(const char *text, const char *name, struct arena *arena)
{
	size_t length = strlen(name);

	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		const char *value, *end;

		line += *line == '\n';
		if (strncmp(line, name, length) != 0 || isalnum((unsigned char)line[length]) || line[length] == '_')
			continue;
		value = line + strcspn(line, "=\n");
		if (*value != '=')
			continue;
		value += 1 + strspn(value + 1, " ");
		end = *value == '\'' || *value == '"' ? strchr(value + 1, *value) : NULL;
		return end == NULL ? NULL : arena_copy(arena, value + 1, (size_t)(end - value - 1));
	}
	return NULL;
}

/* Finding a module's place imports nothing of a top-level package. The working directory is no place to look in, as it is
 * none for the runner, and packages are found as the runner finds them (find_packages). Then what proves that nothing of it
 * has changed: which program really ran, whatever stands in front of it; the folders that were looked into, as they were
 * before; the files that add to those. */
static const char where_is_torch[] =
    "import importlib.util as u, os, site, sys\n"
    "site.execsitecustomize = site.execusercustomize = lambda: None\n"
    "site.main()\n"
    "sys.path[:] = filter(None, sys.path)\n"
    "def stamp(path):\n"
    "    try:\n"
    "        s = os.stat(path)\n"
    "        return '%d.%d' % (s.st_ino, s.st_mtime_ns)\n"
    "    except OSError:\n"
    "        return 'absent'\n"
    "files = [os.path.join(p, n) for p in sys.path if os.path.isdir(p) for n in os.listdir(p) if n.endswith('.pth')]\n"
    "stamps = [stamp(p) + ' ' + p for p in sys.path + files + [os.path.join(sys.prefix, 'pyvenv.cfg')] if '\\n' not in p]\n"
    "s = u.find_spec('torch')\n"
    "print(sys.version.split()[0])\n"
    "print(s.submodule_search_locations[0] if s and s.has_location else '')\n"
    "print(os.path.realpath('/proc/self/exe'))\n"
    "print('\\n'.join(stamps))\n";

/* The next line of `*text`, which goes on behind it; NULL: there is none. */
static char *next_line(char **text)
{
	char *line = *text, *end = line == NULL ? NULL : strchr(line, '\n');

	if (end == NULL)
		return NULL;
	*end = '\0';
	*text = end + 1;
	return line;
}

int machine_torch(const char *python, struct arena *arena, struct torch_facts *out, struct err *err)
{
	struct buf answer = {0}, text = {0};
	const char *version, *folder, *program;
	char *rest;
	int rc = -1;

	const char *const words[] = {"-sS", "-c", where_is_torch, NULL};

	*out = (struct torch_facts){0};
	if (ask_python(python, words, process_reference_environment(arena), &answer, err) != 0)
		goto leave;
	rest = answer.length == 0 ? NULL : arena_copy(arena, answer.data, answer.length);
	if ((version = next_line(&rest)) == NULL) {
		err_set(err, "%s does not answer as a Python does", python);
		goto leave;
	}
	out->python = version;
	rc = 0;
	if ((folder = next_line(&rest)) == NULL || folder[0] == '\0')
		goto leave;
	program = next_line(&rest);
	if (program != NULL)
		out->proof = arena_printf(arena, "%s\n%s", program, rest);
	out->version_file = arena_printf(arena, "%s/version.py", folder);
	if (file_read(AT_FDCWD, out->version_file, SMALL_FILE, &text, NULL, err) != FILE_OK || text.length == 0)
		goto leave;
	out->version = assigned(text.data, "__version__", arena);
	out->cuda = assigned(text.data, "cuda", arena);
	rc = out->version != NULL;
leave:
	buf_free(&answer);
	buf_free(&text);
	return rc;
}

/* A launcher (a script of pyenv or conda, a link to mise) decides anew each time which interpreter it starts. */
static bool is_program(const char *python, const char *program)
{
	char *real = realpath(python, NULL);
	bool same = real != NULL && program != NULL && strcmp(real, program) == 0;

	free(real);
	return same;
}

static void stamp_of(const char *path, char *out, size_t size)
{
	struct stat st;

	snprintf(out, size, "absent");
	if (stat(path, &st) == 0)
		snprintf(out, size, "%ju.%jd%09ld", (uintmax_t)st.st_ino, (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

bool machine_torch_holds(const char *python, const char *proof)
{
	char *copy = strdup(proof), *rest = copy;
	bool hold = copy != NULL && is_program(python, next_line(&rest));

	for (char *line; hold && (line = next_line(&rest)) != NULL;) {
		char *path = strchr(line, ' '), now[64];

		if (path != NULL) {
			*path++ = '\0';
			stamp_of(path, now, sizeof now);
		}
		hold = path != NULL && strcmp(now, line) == 0;
	}
	free(copy);
	return hold;
}

const char *machine_torch_key(const char *python, struct arena *arena)
{
	const char *path = getenv("PYTHONPATH"), *environment = getenv("VIRTUAL_ENV");
	struct stat st = {0}, link = {0};

	if (stat(python, &st) != 0 || lstat(python, &link) != 0)
		return arena_printf(arena, "%s absent", python);
	return arena_printf(arena, "%s %ju.%ju %jd %jd.%09ld %ju.%ju PYTHONPATH=%s VIRTUAL_ENV=%s", python,
	                    (uintmax_t)st.st_dev, (uintmax_t)st.st_ino, (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec,
	                    st.st_mtim.tv_nsec, (uintmax_t)link.st_ino, (uintmax_t)link.st_mtim.tv_sec,
	                    path == NULL ? "" : path, environment == NULL ? "" : environment);
}

/* ---- providers ---- */

int machine_providers(const char *python, const char *device_class, struct arena *arena, const char **out,
                      struct err *err)
{
	char script[4096];
	struct buf answer = {0};
	const char *const words[] = {script, "--matrix", device_class, NULL};
	int rc = machine_script("provider.py", "REFTEST_PROVIDER", script, sizeof script, err);

	if (rc == 0)
		rc = ask_python(python, words, environ, &answer, err);
	if (rc == 0)
		*out = arena_copy(arena, answer.data == NULL ? "" : answer.data, answer.length);
	buf_free(&answer);
	return rc;
}

static void append_stat(struct buf *out, const char *path)
{
	struct stat st = {0};

	if (stat(path, &st) == 0)
		buf_printf(out, " %ju.%jd.%jd.%09ld", (uintmax_t)st.st_ino, (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec,
		           st.st_mtim.tv_nsec);
	else
		buf_text(out, " absent");
}

const char *machine_providers_key(const char *python, const char *device_class, struct arena *arena)
{
	static const char *const tables[] = {"common.py", "parts.py", "flashinfer.py", "sglang.py", "fla.py", "torch.py"};
	const char *given = getenv("REFTEST_PROVIDERS");
	char script[4096];
	struct buf text = {0};
	const char *folder, *key;

	if (machine_script("provider.py", "REFTEST_PROVIDER", script, sizeof script, NULL) != 0)
		script[0] = '\0';
	buf_printf(&text, "%s on %s by %s", machine_torch_key(python, arena), device_class, script);
	append_stat(&text, script);
	if (strrchr(script, '/') != NULL)
		*strrchr(script, '/') = '\0';
	append_stat(&text, arena_printf(arena, "%s/runner.py", script));
	append_stat(&text, arena_printf(arena, "%s/gradients.py", script));
	folder = given != NULL && given[0] != '\0' ? given : arena_printf(arena, "%s/providers", script);
	buf_printf(&text, " %s", folder);
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		append_stat(&text, arena_printf(arena, "%s/%s", folder, tables[i]));
	key = arena_copy(arena, text.data, text.length);
	buf_free(&text);
	return key;
}

bool machine_providers_hold(const char *python, const char *answer)
{
	const struct json_text text = {"providers", answer, strlen(answer), 1};
	cJSON *json = json_parse(&text, NULL);
	const cJSON *folders = json_member(json, "folders"), *folder;
	bool hold = cJSON_IsArray(folders) && is_program(python, json_text_of(json, "program"));

	cJSON_ArrayForEach (folder, folders) {
		const char *path = json_text_of(folder, "path"), *stamp = json_text_of(folder, "stamp");
		char now[64] = "absent";

		if (path != NULL)
			stamp_of(path, now, sizeof now);
		hold = hold && stamp != NULL && strcmp(now, stamp) == 0;
	}
	cJSON_Delete(json);
	return hold;
}

/* ---- devices and cores ---- */

/* Names in a folder that begin with `prefix` and go on with digits alone. */
static int count_numbered(const char *folder, const char *prefix)
{
	DIR *directory = opendir(folder);
	struct dirent *entry;
	size_t length = strlen(prefix);
	int count = 0;

	while (directory != NULL && (entry = readdir(directory)) != NULL) {
		const char *rest = entry->d_name + length;

		if (strncmp(entry->d_name, prefix, length) == 0 && *rest != '\0' && rest[strspn(rest, "0123456789")] == '\0')
			count++;
	}
	if (directory != NULL)
		closedir(directory);
	return count;
}

static void append_file(struct buf *out, const char *path)
{
	struct buf text = {0};

	if (file_read(AT_FDCWD, path, SMALL_FILE, &text, NULL, NULL) == FILE_OK && text.length > 0)
		buf_add(out, text.data, text.length);
	buf_text(out, "\n");
	buf_free(&text);
}

/* "Model", "GPU UUID", "Bus" of each GPU, as the driver tells them. */
static void append_gpus(struct buf *out)
{
	static const char folder[] = "/proc/driver/nvidia/gpus";
	struct dirent **entries = NULL;
	int count = scandir(folder, &entries, NULL, alphasort);
	char path[512];

	for (int i = 0; i < count; i++) {
		if (entries[i]->d_name[0] != '.') {
			snprintf(path, sizeof path, "%s/%s/information", folder, entries[i]->d_name);
			append_file(out, path);
		}
		free(entries[i]);
	}
	free(entries);
}

/* CUDA_VISIBLE_DEVICES hides all that it does not name; an empty one, or -1, hides all. */
static int visible(int count)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	int named = 0;

	if (list == NULL)
		return count;
	for (const char *at = list; *at != '\0' && *at != '-'; at += strcspn(at, ","), at += *at == ',')
		named++;
	return named < count ? named : count;
}

int machine_gpus(struct arena *arena, const char **key)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	int count = visible(count_numbered("/dev", "nvidia"));
	struct buf text = {0};

	if (key == NULL)
		return count;
	buf_printf(&text, "%d CUDA_VISIBLE_DEVICES=%s\n", count, list == NULL ? "(unset)" : list);
	append_file(&text, "/proc/driver/nvidia/version");
	append_gpus(&text);
	*key = arena_copy(arena, text.data, text.length);
	buf_free(&text);
	return count;
}

/* A container's share of the cores, rounded up; 0: no limit. */
static int quota_cores(void)
{
	struct buf text = {0};
	long long quota = 0, period = 0;
	int cores = 0;

	if (file_read(AT_FDCWD, "/sys/fs/cgroup/cpu.max", SMALL_FILE, &text, NULL, NULL) == FILE_OK && text.length > 0 &&
	    sscanf(text.data, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0 && quota / period < 1 << 20)
		cores = (int)((quota + period - 1) / period);
	buf_free(&text);
	return cores;
}

int machine_cores(void)
{
	cpu_set_t set;
	int cores = 1, quota = quota_cores();

	if (sched_getaffinity(0, sizeof set, &set) == 0)
		cores = CPU_COUNT(&set);
	else if (sysconf(_SC_NPROCESSORS_ONLN) > 0)
		cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
	return quota > 0 && quota < cores ? quota : cores;
}
