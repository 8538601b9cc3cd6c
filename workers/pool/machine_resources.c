#include "workers/pool/machine_resources.h"

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
#include "base/hash.h"
#include "base/json.h"
#include "workers/pool/reference_environment.h"
#include "workers/pool/process.h"
#include "workers/pool/script_check.h"

extern char **environ;

enum { SMALL_FILE = 64 << 10, ASK_MS = 30000, ANSWER_MAX = 64 << 10 };

/* ---- the interpreter ---- */

static bool executable_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Makes the path absolute. Does not resolve links, because Python finds its virtual environment by the path with which
 * it is started. */
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

/* Checks the interpreter that the user named. If this interpreter does not exist, returns an error, because another
 * interpreter must not be used silently. */
static int named_python(const char *name, const char *by, char *out, size_t size, struct err *err)
{
	if (strchr(name, '/') != NULL ? absolute(name, out, size) == 0 : on_path(name, out, size) == 0)
		return 0;
	return err_set(err, "%s names %s, which is not an executable program; name a python3 that has torch", by,
	               err_show(name).text);
}

static int in_environment(const char *directory, const char *below, char *out, size_t size)
{
	char path[4096];
	int length = snprintf(path, sizeof path, "%s%s/.venv/bin/python3", directory, below);

	return length > 0 && (size_t)length < sizeof path ? absolute(path, out, size) : -1;
}

/* Returns whether the virtual environment `folder` contains torch. */
static bool environment_has_torch(const char *folder)
{
	char path[4096 + 512];

	snprintf(path, sizeof path, "%s/lib", folder);
	DIR *versions = opendir(path);
	bool found = false;

	for (struct dirent *entry; versions != NULL && !found && (entry = readdir(versions)) != NULL;) {
		snprintf(path, sizeof path, "%s/lib/%.255s/site-packages/torch/version.py", folder, entry->d_name);
		found = access(path, R_OK) == 0;
	}
	if (versions != NULL)
		closedir(versions);
	return found;
}

/* Finds the interpreter of the virtual environment into which pip installed this program, if the environment also has
 * torch. An environment without torch, such as the one that pipx makes for this program, is not used. */
static int in_own_environment(const char *binary, char *out, size_t size)
{
	char path[4096 + 32];

	snprintf(path, sizeof path, "%s/../pyvenv.cfg", binary);
	if (access(path, R_OK) != 0)
		return -1;
	snprintf(path, sizeof path, "%s/..", binary);
	if (!environment_has_torch(path))
		return -1;
	snprintf(path, sizeof path, "%s/python3", binary);
	return absolute(path, out, size);
}

const char *machine_pip_torch(const char *python, bool upgrade, struct arena *arena)
{
	const char *folder = python != NULL ? strstr(python, "/bin/") : NULL;

	if (folder != NULL && access(arena_printf(arena, "%.*s/pyvenv.cfg", (int)(folder - python), python), F_OK) == 0)
		return arena_printf(arena, "%s -m pip install%s torch", python, upgrade ? " --upgrade" : "");
	return "python3 -m venv .venv && .venv/bin/pip install torch (in the dataset, where reftest finds it)";
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
	if (file_program_directory(binary, sizeof binary, NULL) == 0 &&
	    (in_environment(binary, "/..", out, size) == 0 || in_own_environment(binary, out, size) == 0))
		return 0;
	if (on_path("python3", out, size) == 0)
		return 0;
	return err_set(err,
	               "there is no python3 on PATH and no .venv in %s; %suse --python to name an interpreter that "
		       "has torch",
	               root == NULL ? "the dataset" : root,
	               machine_installed() ? "" : "to create a .venv, run `make verify` in the checkout of reftest, or ");
}

/* ---- files of this program ---- */

bool machine_installed(void)
{
	static const char *const sources[] = {"../python", "../../python"};
	char directory[4096], path[4096 + 64];

	if (file_program_directory(directory, sizeof directory, NULL) != 0)
		return false;
	for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
		snprintf(path, sizeof path, "%s/%s/runner.py", directory, sources[i]);
		if (access(path, R_OK) == 0)
			return false;
	}
	return true;
}

/* Writes the path of a Python file of this program to `out`. Returns 1 if the user named the file, and 0 if the file
 * was found beside the program. */
static int find_script(const char *name, const char *variable, char *out, size_t size, struct err *err)
{
	static const char *const places[] = {"../python", "../../python", "../lib/reftest"};
	const char *given = getenv(variable);
	char directory[4096];

	if (given != NULL && given[0] != '\0') {
		snprintf(out, size, "%s", given);
		return access(out, R_OK) == 0 ? 1 : err_errno(err, "%s names %s", variable, given);
	}
	if (file_program_directory(directory, sizeof directory, err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		int length = snprintf(out, size, "%s/%s/%s", directory, places[i], name);

		if (length > 0 && (size_t)length < size && access(out, R_OK) == 0)
			return 0;
	}
	return err_set(err,
		       "%s is neither in %s/../python nor in %s/../lib/reftest; run `make install` again, or set %s to "
		       "its path",
		       name, directory, directory, variable);
}

int machine_script(const char *name, const char *variable, char *out, size_t size, struct err *err)
{
	char folder[4096];
	int found = find_script(name, variable, out, size, err);

	if (found != 0)
		return found > 0 ? 0 : -1;
	snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(out, '/') - out), out);
	return script_check(folder, err);
}

/* ---- the interpreter's torch ---- */

/* Reads a pipe until its end. Returns -1 if there are more than about `most` bytes, or if no byte arrives for ASK_MS
 * milliseconds. */
static int read_answer(int fd, size_t most, struct buf *out)
{
	struct pollfd poll_fd = {fd, POLLIN, 0};
	char bytes[4096];
	ssize_t got = 1;

	while (got > 0) {
		if (out->length > most || poll(&poll_fd, 1, ASK_MS) != 1)
			return -1;
		got = read(fd, bytes, sizeof bytes);
		if (got > 0)
			buf_add(out, bytes, (size_t)got);
	}
	return got < 0 ? -1 : 0;
}

int machine_ask_python(const char *python, const char *const words[], char *const environment[], int input, size_t most,
		       struct buf *out, struct err *err)
{
	char *argv[] = {(char *)(uintptr_t)python, (char *)(uintptr_t)words[0], (char *)(uintptr_t)words[1],
	                (char *)(uintptr_t)words[2], NULL};
	int ends[2], rc, status = -1;
	struct process process;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_errno(err, "cannot create a pipe for %s", python);
	const int fds[] = {input, ends[1], -1};

	rc = process_start(&process, python, argv, environment, fds, 3, err);
	close(ends[1]);
	if (rc == 0 && read_answer(ends[0], most, out) != 0)
		rc = err_set(err, out->length > most ? "%s printed more text than expected" : "%s does not answer", python);
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
		rc = err_set(err, "%s cannot run a short Python script: %s", python, process_end(status).text);
	return rc;
}

/* Finds a line `name = 'value'`, possibly with a type annotation, in Python source code. Returns the value, or NULL if
 * the value is None or there is no such line. */
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

/* A Python script that finds torch without importing it. It must find packages in the same way as the runner, so it
 * begins with the text of python/packages.py, and it does not search the working directory. It prints the Python version,
 * torch's directory, and the proof that machine_torch_holds checks. The proof has the path of the running interpreter. If
 * the script was started by a launcher, this path differs from the path of the launcher. The proof also has a stamp of
 * each directory in which the script searches, of each file that adds such directories, and of each file of code that
 * may do so. The script computes the stamps before the search, because it would otherwise miss a change during the
 * search. Instead of a proof, it prints an empty line if stamps prove nothing: a .pth file runs code that may find torch
 * anywhere, or torch is not in a directory of sys.path, because another finder found it (as in an editable install). */
static const char where_is_torch[] =
#include "packages.inc"
    "import importlib.machinery as m, importlib.util as u\n"
    "imported = find_packages()\n"
    "version = python_version(imported)\n"
    "def stamp(path):\n"
    "    try:\n"
    "        s = os.stat(path)\n"
    "        return '%d.%d.%d' % (s.st_ino, s.st_mtime_ns, s.st_ctime_ns)\n"
    "    except OSError:\n"
    "        return 'absent'\n"
    "files = sys.path + pth_files() + imported + [os.path.join(sys.prefix, 'pyvenv.cfg')]\n"
    "stamps = [stamp(p) + ' ' + p for p in files if '\\n' not in p]\n"
    "s, plain = u.find_spec('torch'), m.PathFinder.find_spec('torch')\n"
    "proven = '+pth.' not in version and s and plain and s.origin == plain.origin\n"
    "print(version)\n"
    "print(s.submodule_search_locations[0] if s and s.has_location else '')\n"
    "print(*[os.path.realpath('/proc/self/exe'), *stamps] if proven else [''], sep='\\n')\n";

/* Returns the next line of `*text`, and advances `*text` past this line. Returns NULL if there is no further line. */
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
	if (machine_ask_python(python, words, environment_of_references(arena), -1, ANSWER_MAX, &answer, err) != 0)
		goto leave;
	rest = answer.length == 0 ? NULL : arena_copy(arena, answer.data, answer.length);
	if ((version = next_line(&rest)) == NULL) {
		err_set(err, "%s printed no Python version, so it is not a usable Python interpreter", python);
		goto leave;
	}
	out->python = version;
	rc = 0;
	if ((folder = next_line(&rest)) == NULL || folder[0] == '\0')
		goto leave;
	program = next_line(&rest);
	if (program != NULL && program[0] != '\0')
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

/* Returns whether `python` is the interpreter itself, and not a launcher. A launcher, such as a script of pyenv or
 * conda or a link to mise, chooses an interpreter at each start. Therefore its path does not identify the
 * interpreter. */
static bool is_program(const char *python, const char *program)
{
	char *real = realpath(python, NULL);
	bool same = real != NULL && program != NULL && strcmp(real, program) == 0;

	free(real);
	return same;
}

enum { STAMP = 96 };

/* Writes the stamp of a file: its inode, mtime and ctime. The scripts that find torch and the providers write stamps in
 * the same form. The ctime shows a change after which the mtime was set back. */
static const char *stamp_text(const struct stat *st, char out[STAMP])
{
	snprintf(out, STAMP, "%ju.%jd%09ld.%jd%09ld", (uintmax_t)st->st_ino, (intmax_t)st->st_mtim.tv_sec,
		 st->st_mtim.tv_nsec, (intmax_t)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
	return out;
}

static const char *stamp_of(const char *path, char out[STAMP])
{
	struct stat st;

	return stat(path, &st) == 0 ? stamp_text(&st, out) : strcpy(out, "absent");
}

bool machine_torch_holds(const char *python, const char *proof)
{
	char *copy = strdup(proof), *rest = copy;
	bool hold = copy != NULL && is_program(python, next_line(&rest));

	for (char *line; hold && (line = next_line(&rest)) != NULL;) {
		char *path = strchr(line, ' '), now[STAMP];

		if (path != NULL)
			*path++ = '\0';
		hold = path != NULL && strcmp(stamp_of(path, now), line) == 0;
	}
	free(copy);
	return hold;
}

/* All but the interpreter's path goes into a digest, because a key of the cache must be short. */
const char *machine_torch_key(const char *python, struct arena *arena)
{
	const char *path = getenv("PYTHONPATH"), *environment = getenv("VIRTUAL_ENV"), *counts = environment_that_counts(arena);
	struct stat st = {0}, link = {0};
	char stamp[STAMP], link_stamp[STAMP], hex[DIGEST_HEX];

	if (stat(python, &st) != 0 || lstat(python, &link) != 0)
		return arena_printf(arena, "%s absent", python);
	const char *text = arena_printf(arena, "%ju %jd %s %s\nPYTHONPATH=%s\nVIRTUAL_ENV=%s\n%s", (uintmax_t)st.st_dev,
					(intmax_t)st.st_size, stamp_text(&st, stamp), stamp_text(&link, link_stamp),
					path == NULL ? "" : path, environment == NULL ? "" : environment,
					counts == NULL ? "" : counts);
	struct digest digest = digest_of(text, strlen(text));

	digest_hex(&digest, hex);
	return arena_printf(arena, "%s %s", python, hex);
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
		rc = machine_ask_python(python, words, environ, -1, ANSWER_MAX, &answer, err);
	if (rc == 0)
		*out = arena_copy(arena, answer.data == NULL ? "" : answer.data, answer.length);
	buf_free(&answer);
	return rc;
}

static void append_stat(struct buf *out, const char *path)
{
	struct stat st = {0};
	char stamp[STAMP];

	if (stat(path, &st) == 0)
		buf_printf(out, " %jd.%s", (intmax_t)st.st_size, stamp_text(&st, stamp));
	else
		buf_text(out, " absent");
}

const char *machine_providers_key(const char *python, const char *device_class, struct arena *arena)
{
	static const char *const tables[] = {
#define LIBRARY(name) #name ".py",
#include "libraries.inc"
#undef LIBRARY
	};
	static const char *const parts[] = {
#define SCRIPT(name, digest) name,
#include "scripts.inc"
#undef SCRIPT
	};
	const char *given = getenv("REFTEST_PROVIDERS"), *checkouts = getenv("REFTEST_CHECKOUTS");
	char script[4096];
	struct buf text = {0};
	const char *folder, *key;

	if (find_script("provider.py", "REFTEST_PROVIDER", script, sizeof script, NULL) < 0)
		script[0] = '\0';
	buf_printf(&text, "%s on %s by %s", machine_torch_key(python, arena), device_class, script);
	append_stat(&text, script);
	if (strrchr(script, '/') != NULL)
		*strrchr(script, '/') = '\0';
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		append_stat(&text, arena_printf(arena, "%s/%s", script, parts[i]));
	folder = given != NULL && given[0] != '\0' ? given : arena_printf(arena, "%s/libraries", script);
	buf_printf(&text, " %s %s", folder, checkouts == NULL ? "" : checkouts);
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
		char now[STAMP];

		hold = hold && path != NULL && stamp != NULL && strcmp(stamp_of(path, now), stamp) == 0;
	}
	cJSON_Delete(json);
	return hold;
}

/* ---- devices and cores ---- */

/* Counts the entries of a directory whose names consist of `prefix` and a number. */
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

/* Reads only the first line. The version is the first word in this line that consists of digits and dots. */
bool machine_driver_version(const char *text, char *out, size_t size)
{
	const char *end = text + strcspn(text, "\n");

	for (const char *word = text; word < end; word += strspn(word, " \t")) {
		size_t length = strcspn(word, " \t\n"), number = strspn(word, "0123456789.");

		if (number == length && length < size && *word != '.' && memchr(word, '.', length) != NULL) {
			memcpy(out, word, length);
			out[length] = '\0';
			return true;
		}
		word += length;
	}
	return false;
}

static const char driver_version[] = "/proc/driver/nvidia/version";

const char *machine_driver(struct arena *arena)
{
	char version[32];
	struct buf text = {0};
	bool found = file_read(AT_FDCWD, driver_version, SMALL_FILE, &text, NULL, NULL) == FILE_OK && text.length > 0 &&
		     machine_driver_version(text.data, version, sizeof version);

	buf_free(&text);
	return found ? arena_string(arena, version) : NULL;
}

/* Appends the driver's information about each GPU, which includes the model, the UUID and the bus address. */
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

/* Returns how many of `count` GPUs are visible to CUDA. If CUDA_VISIBLE_DEVICES is set, only the GPUs that it names are
 * visible. If it is empty or -1, no GPU is visible. */
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
	append_file(&text, driver_version);
	append_gpus(&text);
	*key = arena_copy(arena, text.data, text.length);
	buf_free(&text);
	return count;
}

/* Returns the CPU quota of the container in cores, rounded up, or 0 if there is no quota. */
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
