/* test_machine_resources - the Python interpreter and its torch are found without importing torch; GPUs and cores are
 * counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "workers/pool/machine_resources.h"

/* A temporary folder that is deleted at the end. Below, the names of files are relative to this folder. */
struct place {
	char folder[64], path[4096];
};

static const char *at(struct place *place, const char *name)
{
	snprintf(place->path, sizeof place->path, "%s/%s", place->folder, name);
	return place->path;
}

static void write_file(struct place *place, const char *name, const char *text, mode_t mode)
{
	struct err err = {""};

	if (file_replace(at(place, name), text, strlen(text), &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(chmod(place->path, mode), 0);
}

/* Writes a fake interpreter for machine_torch. The fake prints a version and the folder of its torch. */
static void write_python(struct place *place, const char *name, const char *torch_folder)
{
	char script[4096];

	snprintf(script, sizeof script, "#!/bin/sh\ncase $* in *-c*) echo 3.11.7; echo '%s%s%s' ;; esac\n",
	         torch_folder[0] == '\0' ? "" : place->folder, torch_folder[0] == '\0' ? "" : "/", torch_folder);
	write_file(place, name, script, 0755);
}

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof *place);

	strcpy(place->folder, "/tmp/reftest-test-machine-XXXXXX");
	*state = place;
	unsetenv("REFTEST_PYTHON");
	return mkdtemp(place->folder) == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;
	char command[128];
	int rc;

	snprintf(command, sizeof command, "rm -rf %s", place->folder);
	rc = system(command);
	free(place);
	return rc;
}

static void the_interpreter_that_is_named_is_used(void **state)
{
	struct place *place = *state;
	char out[4096], expected[4096];
	struct err err = {""};

	write_python(place, "named", "");
	write_python(place, "root/.venv/bin/python3", "");
	snprintf(expected, sizeof expected, "%s", at(place, "root/.venv/bin/python3"));
	assert_int_equal(machine_python(NULL, at(place, "root"), out, sizeof out, &err), 0);
	assert_string_equal(out, expected);

	setenv("REFTEST_PYTHON", at(place, "named"), 1);
	assert_int_equal(machine_python(NULL, at(place, "root"), out, sizeof out, &err), 0);
	assert_string_equal(out, at(place, "named"));
	assert_int_equal(machine_python("sh", at(place, "root"), out, sizeof out, &err), 0);
	assert_int_equal(out[0], '/'); /* the program sh was found through PATH */
	unsetenv("REFTEST_PYTHON");
}

static void a_named_interpreter_that_is_none_is_a_sentence_and_nothing_is_put_in_its_place(void **state)
{
	struct place *place = *state;
	char out[4096];
	struct err err = {""};

	write_file(place, "text", "no program", 0644);
	assert_int_equal(machine_python(at(place, "text"), NULL, out, sizeof out, &err), -1);
	assert_non_null(strstr(err.text, "--python names"));
	assert_int_equal(machine_python("no-such-python", NULL, out, sizeof out, &err), -1);
	assert_int_equal(machine_python(place->folder, NULL, out, sizeof out, &err), -1); /* the path is that of a
											   * folder */
	setenv("REFTEST_PYTHON", "/no/such", 1);
	assert_int_equal(machine_python(NULL, NULL, out, sizeof out, &err), -1);
	assert_non_null(strstr(err.text, "REFTEST_PYTHON names /no/such"));
	unsetenv("REFTEST_PYTHON");
}

/* Links are not followed: the `python` of a virtual environment is a link, and its path tells which environment it
 * is. */
static void links_are_not_followed(void **state)
{
	struct place *place = *state;
	char out[4096], target[4096];
	struct err err = {""};

	write_python(place, "real", "");
	snprintf(target, sizeof target, "%s", at(place, "real"));
	assert_int_equal(symlink(target, at(place, "link")), 0);
	assert_int_equal(machine_python(at(place, "link"), NULL, out, sizeof out, &err), 0);
	assert_string_equal(out, at(place, "link"));
}

static void torch_is_read_from_its_version_file(void **state)
{
	struct place *place = *state;
	struct arena arena = {0};
	struct torch_facts facts;
	struct err err = {""};
	char python[4096];

	write_python(place, "python", "torch");
	snprintf(python, sizeof python, "%s", at(place, "python"));
	write_file(place, "torch/version.py",
	           "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda']\n__version__ = '2.11.0+cu130'\n"
	           "cuda_extra = '1'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", 0644);
	assert_int_equal(machine_torch(python, &arena, &facts, &err), 1);
	assert_string_equal(facts.version, "2.11.0+cu130");
	assert_string_equal(facts.cuda, "13.0");
	assert_string_equal(facts.python, "3.11.7");
	assert_string_equal(facts.version_file, at(place, "torch/version.py"));

	write_file(place, "torch/version.py", "__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n", 0644);
	assert_int_equal(machine_torch(python, &arena, &facts, &err), 1);
	assert_null(facts.cuda);
	write_file(place, "torch/version.py", "nothing of the kind\n", 0644);
	assert_int_equal(machine_torch(python, &arena, &facts, &err), 0);
	arena_free(&arena);
}

static void an_interpreter_without_torch_is_no_error_and_one_that_fails_is(void **state)
{
	struct place *place = *state;
	struct arena arena = {0};
	struct torch_facts facts;
	struct err err = {""};

	write_python(place, "bare", "");
	assert_int_equal(machine_torch(at(place, "bare"), &arena, &facts, &err), 0);
	assert_string_equal(facts.python, "3.11.7");
	write_file(place, "broken", "#!/bin/sh\nexit 3\n", 0755);
	assert_int_equal(machine_torch(at(place, "broken"), &arena, &facts, &err), -1);
	assert_non_null(strstr(err.text, "exit status 3"));
	write_file(place, "mute", "#!/bin/sh\nexit 0\n", 0755);
	assert_int_equal(machine_torch(at(place, "mute"), &arena, &facts, &err), -1);
	assert_int_equal(machine_torch("/no/such/python", &arena, &facts, &err), -1);
	arena_free(&arena);
}

static void the_python_in_use_is_understood(void **state)
{
	struct arena arena = {0};
	struct torch_facts facts;
	struct err err = {""};
	char python[4096];

	(void)state;
	assert_int_equal(machine_python(NULL, ".", python, sizeof python, &err), 0);
	assert_int_equal(machine_torch(python, &arena, &facts, &err), 1);
	assert_true(facts.version[0] >= '2' && facts.version[0] <= '9');
	arena_free(&arena);
}

static void the_key_changes_when_the_interpreter_or_its_surroundings_do(void **state)
{
	struct place *place = *state;
	struct arena arena = {0};
	static const char *const libraries[] = {"LD_LIBRARY_PATH", "LD_PRELOAD"};
	char python[4096];
	const char *key;

	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
		unsetenv(libraries[i]);
	write_python(place, "python", "");
	snprintf(python, sizeof python, "%s", at(place, "python"));
	key = machine_torch_key(python, &arena);
	assert_string_equal(key, machine_torch_key(python, &arena));
	setenv("PYTHONPATH", "/elsewhere", 1);
	assert_string_not_equal(key, machine_torch_key(python, &arena));
	unsetenv("PYTHONPATH");
	assert_string_equal(key, machine_torch_key(python, &arena));
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
		setenv(libraries[i], "/elsewhere", 1);
		assert_string_not_equal(key, machine_torch_key(python, &arena));
		setenv(libraries[i], "", 1);
		assert_string_equal(key, machine_torch_key(python, &arena));
		unsetenv(libraries[i]);
		assert_string_equal(key, machine_torch_key(python, &arena));
	}
	write_python(place, "python", "torch"); /* replaces the program by a new file, which has another inode */
	assert_string_not_equal(key, machine_torch_key(python, &arena));
	arena_free(&arena);
}

/* Returns a proof that /bin/sh is the interpreter and that the file `name` is as it is now. */
static char *proof_of(struct place *place, const char *name, struct arena *arena)
{
	struct stat st;
	char *real = realpath("/bin/sh", NULL);

	assert_int_equal(stat(at(place, name), &st), 0);
	char *proof = arena_printf(arena, "%s\n%ju.%jd%09ld.%jd%09ld %s\n", real, (uintmax_t)st.st_ino,
				   (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (intmax_t)st.st_ctim.tv_sec,
				   st.st_ctim.tv_nsec, place->path);

	free(real);
	return proof;
}

/* `touch -d` can set the mtime of a file back after a change of the file, but not its ctime. */
static void a_change_is_noticed_although_the_mtime_was_set_back(void **state)
{
	struct place *place = *state;
	struct arena arena = {0};
	struct stat st;

	assert_int_equal(symlink("/bin/sh", at(place, "shell")), 0);
	write_file(place, "torch.pth", "elsewhere\n", 0600);
	const char *proof = proof_of(place, "torch.pth", &arena);

	assert_true(machine_torch_holds(at(place, "shell"), proof));
	usleep(20000); /* longer than a tick of the filesystem's clock */
	assert_int_equal(stat(at(place, "torch.pth"), &st), 0);
	FILE *file = fopen(place->path, "r+");

	assert_non_null(file);
	assert_true(fputs("ELSEWHERE", file) >= 0);
	assert_int_equal(fclose(file), 0);
	const struct timespec times[] = {st.st_atim, st.st_mtim};

	assert_int_equal(utimensat(AT_FDCWD, place->path, times, 0), 0);
	assert_false(machine_torch_holds(at(place, "shell"), proof));
	arena_free(&arena);
}

/* An interpreter reports the version and the folder of its torch. The report is reused until one of the folders in
 * which the interpreter searches for modules changes. The report of a launcher (a script or a program) is never reused,
 * because the launcher may start another interpreter next time. */
static void what_a_launcher_said_is_not_believed(void **state)
{
	struct place *place = *state;
	struct arena arena = {0};
	struct torch_facts facts;
	struct err err = {""};
	char python[4096], *proof;
	struct buf script = {0};

	assert_int_equal(machine_python(NULL, ".", python, sizeof python, &err), 0);
	assert_int_equal(machine_torch(python, &arena, &facts, &err), 1);
	assert_non_null(facts.proof);
	assert_true(machine_torch_holds(python, facts.proof));
	assert_false(machine_torch_holds("/bin/sh", facts.proof)); /* the proof is valid, but belongs to another
								    * program */
	assert_false(machine_torch_holds(python, ""));
	buf_printf(&script, "#!/bin/sh\nexec '%s' \"$@\"\n", python);
	write_file(place, "shim", script.data, 0755);
	assert_int_equal(machine_torch(at(place, "shim"), &arena, &facts, &err), 1);
	assert_false(machine_torch_holds(at(place, "shim"), facts.proof));

	assert_int_equal(mkdir(at(place, "packages"), 0700), 0);
	assert_int_equal(symlink("/bin/sh", at(place, "sh")), 0);
	proof = proof_of(place, "packages", &arena);
	assert_true(machine_torch_holds(at(place, "sh"), proof));
	write_file(place, "packages/torch.pth", "elsewhere\n", 0600);
	assert_false(machine_torch_holds(at(place, "sh"), proof));
	buf_free(&script);
	arena_free(&arena);
}

/* Makes a virtual environment `name` that contains only a fake torch. Sets `packages` to its folder of packages, and
 * `python` to its interpreter. */
static void make_environment(struct place *place, const char *name, char packages[64], char python[4096],
			     struct arena *arena)
{
	struct torch_facts facts;
	struct err err = {""};
	char *program;
	int major = 0, minor = 0;

	assert_int_equal(machine_python(NULL, ".", python, 4096, &err), 0);
	assert_int_equal(machine_torch(python, arena, &facts, &err), 1);
	assert_int_equal(sscanf(facts.python, "%d.%d", &major, &minor), 2);
	assert_non_null(program = realpath(python, NULL));
	snprintf(packages, 64, "%s/lib/python%d.%d/site-packages", name, major, minor);
	write_file(place, arena_printf(arena, "%s/pyvenv.cfg", name),
		   arena_printf(arena, "home = %.*s\ninclude-system-site-packages = false\n",
				(int)(strrchr(program, '/') - program), program), 0600);
	write_file(place, arena_printf(arena, "%s/torch/__init__.py", packages), "", 0600);
	write_file(place, arena_printf(arena, "%s/torch/version.py", packages), "__version__ = '2.13.0'\n", 0600);
	assert_int_equal(mkdir(at(place, arena_printf(arena, "%s/bin", name)), 0700), 0);
	assert_int_equal(symlink(program, at(place, arena_printf(arena, "%s/bin/python3", name))), 0);
	snprintf(python, 4096, "%s", place->path);
	free(program);
}

/* Modules in the working directory are not in the interpreter, neither as torch nor as a package that torch uses. */
static void the_working_directory_has_no_packages(void **state)
{
	struct place *place = *state;
	struct arena arena = {0};
	struct torch_facts here, there;
	struct err err = {""};
	char packages[64], python[4096], *directory = getcwd(NULL, 0);

	assert_non_null(directory);
	make_environment(place, "here", packages, python, &arena);
	write_file(place, "elsewhere/torch/__init__.py", "", 0600);
	write_file(place, "elsewhere/torch/version.py", "__version__ = '9.9.9'\n", 0600);
	write_file(place, "elsewhere/opt_einsum/__init__.py", "", 0600);
	assert_int_equal(machine_torch(python, &arena, &here, &err), 1);
	assert_int_equal(chdir(at(place, "elsewhere")), 0);
	assert_int_equal(machine_torch(python, &arena, &there, &err), 1);
	assert_int_equal(chdir(directory), 0);
	assert_string_equal(there.version, here.version);
	assert_string_equal(there.python, here.python);
	assert_string_equal(there.proof, here.proof);
	free(directory);
	arena_free(&arena);
}

/* Torch computes with some packages if they are installed, so they are a part of the version of Python. A remembered
 * version is not believed after such a package was installed, replaced or removed. */
static void packages_with_which_torch_computes_are_a_part_of_the_version(void **state)
{
	static const struct {
		const char *name;
		bool counts;
	} rows[] = {
	    {"opt_einsum", true}, {"opt_einsum-3.4.0.dist-info", true}, {"opt_einsum-3.3.0-py3.9.egg-info", true},
	    {"opt_einsum.py", true}, {"triton", true}, {"triton-3.6.0.dist-info", true},
	    {"nvidia_cublas_cu12-12.8.4.1.dist-info", true}, {"nvidia_cudnn_cu13-9.15.0.dist-info", true},
	    {"nvidia_cutlass_dsl-4.5.2.dist-info", true}, {"torch_xla", true},
	    {"numpy", false}, {"opt_einsum_fx", false}, {"tritonclient-2.50.0.dist-info", false},
	    {"nvidia_ml_py-13.580.65.dist-info", false}, {"torchvision", false},
	};
	struct place *place = *state;
	struct arena arena = {0};
	struct torch_facts before, with;
	struct err err = {""};
	char packages[64], python[4096];

	make_environment(place, "venv", packages, python, &arena);
	assert_int_equal(machine_torch(python, &arena, &before, &err), 1);
	assert_null(strchr(before.python, '+'));
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const char *name = arena_printf(&arena, "%s/%s", packages, rows[i].name);

		assert_int_equal(machine_torch(python, &arena, &before, &err), 1);
		assert_true(machine_torch_holds(python, before.proof));
		assert_int_equal(mkdir(at(place, name), 0700), 0);
		assert_false(machine_torch_holds(python, before.proof));
		assert_int_equal(machine_torch(python, &arena, &with, &err), 1);
		if ((strcmp(before.python, with.python) != 0) != rows[i].counts)
			fail_msg("%s: the version is %s, and was %s", rows[i].name, with.python, before.python);
		if (rows[i].counts)
			assert_non_null(strstr(with.python, "+packages."));
		assert_int_equal(rmdir(at(place, name)), 0);
		assert_false(machine_torch_holds(python, with.proof));
	}
	assert_int_equal(machine_torch(python, &arena, &with, &err), 1);
	assert_string_equal(with.python, before.python);
	arena_free(&arena);
}

static void hidden_gpus_are_not_counted_and_cores_are(void **state)
{
	struct arena arena = {0};
	const char *key, *hidden;
	int all;

	(void)state;
	unsetenv("CUDA_VISIBLE_DEVICES");
	all = machine_gpus(&arena, &key);
	assert_true(all >= 0);
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	assert_int_equal(machine_gpus(&arena, &hidden), 0);
	assert_string_not_equal(key, hidden);
	setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
	assert_int_equal(machine_gpus(&arena, NULL), 0);
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	assert_int_equal(machine_gpus(&arena, NULL), all > 0);
	unsetenv("CUDA_VISIBLE_DEVICES");
	assert_true(machine_cores() >= 1);
	arena_free(&arena);
}

/* A Python program, the provider, reports which libraries can compute ground truths. reftest stores the report of the
 * provider, and uses it again until a file of the provider changes. Changes of other files do not matter. */
static void what_providers_are_known_by_changes_with_their_files(void **state)
{
	static const char *const files[] = {
	    "program/provider.py", "program/runner.py", "program/arena.py",
#define LIBRARY(name) "program/libraries/" #name ".py",
#include "libraries.inc"
#undef LIBRARY
	};
	struct place *place = *state;
	struct arena arena = {0};
	const char *before;

	assert_int_equal(mkdir(at(place, "program"), 0700), 0);
	assert_int_equal(mkdir(at(place, "program/libraries"), 0700), 0);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		write_file(place, files[i], "#", 0600);
	setenv("REFTEST_PROVIDER", at(place, files[0]), 1);
	before = machine_providers_key("/usr/bin/python3", "cpu", &arena);
	assert_string_equal(machine_providers_key("/usr/bin/python3", "cpu", &arena), before);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		const char *after;

		write_file(place, files[i], "# edited", 0600);
		after = machine_providers_key("/usr/bin/python3", "cpu", &arena);
		if (strcmp(before, after) == 0)
			fail_msg("%s changed, and the stored answer is still used", files[i]);
		before = after;
	}
	write_file(place, "program/notes.txt", "#", 0600);
	assert_string_equal(machine_providers_key("/usr/bin/python3", "cpu", &arena), before);
	unsetenv("REFTEST_PROVIDER");
	arena_free(&arena);
}

static void the_version_of_the_driver_is_read(void **state)
{
	static const struct {
		const char *text, *version;
	} rows[] = {
	    {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.57.02  Tue Jul 13 16:14:05 UTC 2021\nGCC version:  gcc 9.3.0\n", "470.57.02"},
	    {"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder)\n", "580.159.04"},
	    {"550.54.15", "550.54.15"},
	    {"", NULL},
	    {"NVRM version: none\nGCC version:  gcc 9.3.0\n", NULL}, /* only the first line is read */
	    {"1234567890.1234567890.1234567890.1234567890", NULL},
	    {"version 580 .5\n", NULL},
	};
	char out[32];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(machine_driver_version(rows[i].text, out, sizeof out), rows[i].version != NULL);
		if (rows[i].version != NULL)
			assert_string_equal(out, rows[i].version);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_interpreter_that_is_named_is_used),
	    cmocka_unit_test(a_named_interpreter_that_is_none_is_a_sentence_and_nothing_is_put_in_its_place),
	    cmocka_unit_test(links_are_not_followed),
	    cmocka_unit_test(torch_is_read_from_its_version_file),
	    cmocka_unit_test(an_interpreter_without_torch_is_no_error_and_one_that_fails_is),
	    cmocka_unit_test(the_python_in_use_is_understood),
	    cmocka_unit_test(the_key_changes_when_the_interpreter_or_its_surroundings_do),
	    cmocka_unit_test(what_providers_are_known_by_changes_with_their_files),
	    cmocka_unit_test(what_a_launcher_said_is_not_believed),
	    cmocka_unit_test(a_change_is_noticed_although_the_mtime_was_set_back),
	    cmocka_unit_test(the_working_directory_has_no_packages),
	    cmocka_unit_test(packages_with_which_torch_computes_are_a_part_of_the_version),
	    cmocka_unit_test(hidden_gpus_are_not_counted_and_cores_are),
	    cmocka_unit_test(the_version_of_the_driver_is_read),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
