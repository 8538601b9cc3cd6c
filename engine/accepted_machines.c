#include "engine/accepted_machines.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/show.h"
#include "engine/devices.h"
#include "engine/library_checkouts.h"
#include "engine/settings.h"
#include "workers/judge/judge.h"
#include "workers/pool/machine_resources.h"
#include "workers/pool/pool.h"

enum { VERSION_FILE_LIMIT = 64 * 1024 };

/* Splits `text` at its first `count` - 1 newlines, in place, into `count` parts. Returns false if the text has fewer
 * newlines. */
static bool split_lines(char *text, char **parts, int count)
{
	for (int i = 0; i < count; i++) {
		parts[i] = text;
		if (i == count - 1)
			return true;
		text = strchr(text, '\n');
		if (text == NULL)
			return false;
		*text++ = '\0';
	}
	return false;
}

static bool content_hex(const char *path, char hex[DIGEST_HEX])
{
	struct buf bytes = {0};
	bool read = file_read(AT_FDCWD, path, VERSION_FILE_LIMIT, &bytes, NULL, NULL) == FILE_OK;

	if (read) {
		struct digest digest = digest_of(bytes.data, bytes.length);

		digest_hex(&digest, hex);
	}
	buf_free(&bytes);
	return read;
}

/* Gets the versions of torch and Python of an interpreter from the cache. The cache entry has six lines: the torch
 * version, the CUDA version, the path and the digest of torch's version file, the Python version, and a proof. The
 * entry is valid if torch's version file still has the stored digest, and machine_torch_holds returns true for the
 * proof. */
static bool remembered_torch(const struct program *program, const char *python, const char *key, struct arena *arena,
                             struct policy *policy)
{
	const char *value = program->torch_key != NULL && strcmp(program->torch_key, key) == 0 ? program->torch_fact : NULL;
	char hex[DIGEST_HEX], *parts[6];

	if (program->store != NULL && store_fact(program->store, key, arena, &value, NULL) != CACHE_HIT)
		return false;
	if (value == NULL)
		return false;
	if (!split_lines(arena_string(arena, value), parts, 6) || !content_hex(parts[2], hex) ||
	    strcmp(hex, parts[3]) != 0 || !machine_torch_holds(python, parts[5]))
		return false;
	policy->torch = parts[0];
	policy->cuda = parts[1][0] != '\0' ? parts[1] : NULL;
	policy->python = parts[4];
	return true;
}

/* Stores the torch version of an interpreter in the cache. Without a cache, keeps the version in memory for the next
 * request of `serve`. */
static void remember_torch(struct program *program, const char *key, const struct torch_facts *facts, struct arena *arena)
{
	char hex[DIGEST_HEX];

	if (facts->proof == NULL || !content_hex(facts->version_file, hex))
		return;
	const char *fact = arena_printf(arena, "%s\n%s\n%s\n%s\n%s\n%s", facts->version, facts->cuda != NULL ? facts->cuda : "",
	                                facts->version_file, hex, facts->python, facts->proof);

	if (program->store == NULL) {
		free(program->torch_key);
		free(program->torch_fact);
		program->torch_key = strdup(key);
		program->torch_fact = strdup(fact);
	} else if (store_writable(program->store)) {
		store_put_fact(program->store, key, fact, NULL);
	}
}

/* Returns the message `why` with advice on how to get an interpreter with torch. `python` is the interpreter that was
 * found, or NULL. */
static const char *no_torch(const char *why, const char *python, struct arena *arena)
{
	if (machine_installed())
		return arena_printf(arena, "%s; choose a Python interpreter with --python, or install torch with: %s", why,
				    machine_pip_torch(python, false, arena));
	return arena_printf(
	    arena, "%s; run `make verify` in the checkout to create a .venv with torch, or choose a Python interpreter with --python",
	    why);
}

static void find_torch(struct program *program, const char *given, struct arena *arena, struct machine_policy *out)
{
	char path[4096];
	struct err err = {""};
	struct torch_facts facts;

	out->cannot_reason = REASON_UNSUPPORTED_DEVICE;
	if (machine_python(given, program->root, path, sizeof path, &err) < 0) {
		out->cannot_run = no_torch(err.text, NULL, arena);
		return;
	}
	out->python = arena_string(arena, path);
	const char *key = arena_printf(arena, "torch %s", machine_torch_key(path, arena));

	out->torch_key = key;
	if (remembered_torch(program, path, key, arena, &out->policy))
		return;
	int found = machine_torch(path, arena, &facts, &err);

	if (found <= 0) {
		const char *paths = getenv("PYTHONPATH");
		const char *why = found < 0 ? err.text : arena_printf(arena, "%s has no torch%s", path,
		    paths == NULL || paths[0] == '\0' ? "" : " (PYTHONPATH does not count, because references run "
		    	"without it)");

		out->cannot_run = no_torch(why, path, arena);
		return;
	}
	out->policy.torch = facts.version;
	out->policy.cuda = facts.cuda;
	out->policy.python = facts.python;
	remember_torch(program, key, &facts, arena);
}

void machine_forget_torch(struct program *program, const struct machine_policy *policy)
{
	free(program->torch_key);
	free(program->torch_fact);
	program->torch_key = program->torch_fact = NULL;
	if (program->store != NULL && store_writable(program->store) && policy->torch_key != NULL)
		store_put_fact(program->store, policy->torch_key, "", NULL);
}

/* The argument `self` of class_of. */
struct class_question {
	struct program *program;
	const char *gpus; /* the GPU driver's description of the GPUs, which is a part of the key of the cache entry */
	struct arena *arena;
};

/* Gets the device class of a GPU ("sm_90") from the cache, or, if the cache has no entry for it, from a judge process
 * that queries the GPU. */
static int class_of(void *self, const char *device, char class_name[DEVICE_CLASS_SIZE], struct err *err)
{
	const struct class_question *question = self;
	struct program *program = question->program;
	const char *key = arena_printf(question->arena, "class of %s %s", device, question->gpus), *value;
	char product[256];

	if (program->store != NULL && store_fact(program->store, key, question->arena, &value, NULL) == CACHE_HIT) {
		snprintf(class_name, DEVICE_CLASS_SIZE, "%s", value);
		return 0;
	}
	program_cuda_kernels(program);
	const struct judge_program judge = judge_program(&program->kernels);

	if (pool_probe_device(&judge, device, class_name, DEVICE_CLASS_SIZE, product, sizeof product, err) < 0)
		return -1;
	if (program->store != NULL && store_writable(program->store))
		store_put_fact(program->store, key, class_name, NULL);
	return 0;
}

static void set_devices(const struct devices *devices, struct arena *arena, struct machine_policy *out)
{
	const char **names = arena_array(arena, (size_t)devices->count, sizeof *names);

	memcpy(names, devices->names, (size_t)devices->count * sizeof *names);
	out->devices = names;
	out->device_count = devices->count;
	out->policy.device = names[0];
	out->policy.device_class = devices->class_name;
}

/* Makes a run with --device auto use the CPU. `why` is the reason why the run cannot use a GPU: for example, the CUDA
 * kernels library is not built, or the GPU's memory is full. If `why` is NULL, prints nothing. */
static void use_cpu(const char *why, struct arena *arena, struct machine_policy *out)
{
	static const struct devices cpu = {.names = {"cpu"}, .count = 1, .class_name = "cpu"};

	if (why != NULL)
		show_print(stderr, "reftest: %s; the run uses the CPU\n", why);
	set_devices(&cpu, arena, out);
	out->policy.any_gpu = true;
}

static int use_gpus(struct program *program, const struct device_choice *choice, int visible, const char *gpus,
		    struct arena *arena, struct machine_policy *out, struct err *err)
{
	struct class_question question = {program, gpus, arena};
	struct devices devices;
	struct err why = {""};
	enum devices_answer answer = DEVICES_UNUSABLE;

	if (out->policy.torch != NULL && out->policy.cuda == NULL)
		err_set(&why, "the torch of %s is a CPU build, so references cannot run on %s; install a CUDA build of torch",
			out->python, choice->kind == DEVICE_GPUS ? "a GPU" : "cuda:0");
	else
		answer = devices_choose(choice, visible, (struct device_probe){class_of, &question}, arena, &devices, &why);
	if (answer == DEVICES_DIFFER)
		return err_set(err, "%s", why.text);
	if (answer == DEVICES_FOUND) {
		for (int i = 0; i < devices.left_out_count; i++)
			show_print(stderr, "reftest: %s\n", devices.left_out[i]);
		set_devices(&devices, arena, out);
		return 0;
	}
	if (choice->kind == DEVICE_AUTO) {
		use_cpu(why.text, arena, out);
		return 0;
	}
	out->policy.device = arena_printf(arena, "cuda:%d", choice->ordinals[0]);
	out->policy.device_class = "none";
	out->no_device = true;
	out->cannot_run = arena_string(arena, why.text);
	out->cannot_reason = REASON_UNSUPPORTED_DEVICE;
	return 0;
}

static int find_device(struct program *program, const char *device, const char *python, struct arena *arena,
                       struct machine_policy *out, struct err *err)
{
	static const char *const cpu[] = {"cpu"};
	struct device_choice choice;
	const char *gpus = "";

	*out = (struct machine_policy){.policy = {.device = "cpu", .device_class = "cpu"}, .devices = cpu, .device_count = 1};
	if (devices_read(device, &choice, err) < 0)
		return -1;
	find_torch(program, python, arena, out);
	if (choice.kind == DEVICE_CPU)
		return 0;
	int count = machine_gpus(arena, &gpus);

	if (choice.kind == DEVICE_AUTO && count == 0) {
		use_cpu(NULL, arena, out);
		return 0;
	}
	return use_gpus(program, &choice, count, gpus, arena, out, err);
}

int machine_policy(struct program *program, const char *device, const char *python, const char *ground_truth,
                   struct arena *arena, struct machine_policy *out, struct err *err)
{
	if (find_device(program, device, python, arena, out, err) != 0)
		return -1;
	if (library_checkouts_announce(program, arena, err) != 0)
		return -1;
	const struct settings *settings = program->settings;
	bool by_setting = ground_truth == NULL && settings != NULL && settings->ground_truth != NULL;
	int rc = ground_truths_choose(program, by_setting ? settings->ground_truth : ground_truth, out->python,
				      out->policy.device_class, arena, &out->truths, err);

	if (rc != 0 && by_setting) {
		struct err why = *err;

		err_set(err, "%s:%d: ground-truth: %s", settings->file, settings->of[SETTING_GROUND_TRUTH].line, why.text);
	}
	return rc;
}

static bool is_class(const char *text)
{
	const char *digits = strncmp(text, "sm_", 3) == 0 ? text + 3 : "";

	return strcmp(text, "cpu") == 0 ||
	       (digits[0] != '\0' && strlen(digits) <= 4 && digits[strspn(digits, "0123456789")] == '\0');
}

int machine_accept(struct machine_policy *policy, const char *device_class, struct arena *arena, struct err *err)
{
	const char *here = policy->policy.device_class;

	if (!is_class(device_class))
		return err_set(err, "unknown device class '%s' (--device-class takes cpu or sm_N, as in sm_90)",
			       device_class);
	policy->policy.any_gpu = false;
	if (strcmp(device_class, here) == 0)
		return 0;
	policy->cannot_run = arena_printf(arena,
					  "cases without a stored verdict for the device class %s cannot run here, "
					  "because this machine verifies on %s",
					  device_class, here);
	policy->cannot_reason = REASON_UNSUPPORTED_DEVICE;
	policy->policy.device_class = policy->accepted = arena_string(arena, device_class);
	policy->policy.torch = policy->policy.cuda = policy->policy.python = NULL;
	policy->policy.foreign_class = true;
	return 0;
}
