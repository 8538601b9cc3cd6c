#include "engine/run_pools.h"

#include <string.h>

#include "base/show.h"
#include "engine/job_count.h"
#include "engine/pool_case_runner.h"
#include "engine/settings.h"
#include "engine/device_queue.h"
#include "workers/judge/judge.h"
#include "workers/pool/machine_resources.h"
#include "workers/pool/pool.h"

/* Returns how many references run in parallel on device number `number`. --jobs gives the total of all devices. If the
 * total cannot be divided evenly, each of the first devices runs one reference more than each of the others. */
static int lanes_of_device(const struct run_options *options, const struct machine_policy *machine, int number, int count)
{
	struct job_facts facts = job_facts_here(strcmp(machine->policy.device, "cpu") != 0);

	facts.cores = facts.cores / count > 0 ? facts.cores / count : 1;
	facts.memory /= count;
	facts.kept = options->kept_runners;
	facts.urgent = options->interactive;
	return options->jobs > 0 ? options->jobs / count + (number < options->jobs % count) : job_count(&facts, NULL);
}

/* `watch` runs few references at a time, so it uses the first device only. */
static int devices_in_use(const struct run_options *options, const struct machine_policy *machine)
{
	return options->interactive || machine->device_count < 1 ? 1 : machine->device_count;
}

int run_lanes(const struct run_options *options, const struct machine_policy *machine)
{
	int count = devices_in_use(options, machine), lanes = 0;

	for (int i = 0; i < count; i++)
		lanes += lanes_of_device(options, machine, i, count);
	return lanes;
}

/* Opens the pool of one device. `count` is the number of devices. */
static struct pool *open_pool_of(struct program *program, const struct run_options *options,
				 const struct machine_policy *machine, int number, int count, struct err *err)
{
	if (strcmp(machine->policy.device, "cpu") != 0)
		program_cuda_kernels(program);
	const struct pool_options how = {
	    .device = count > 1 ? machine->devices[number] : machine->policy.device,
	    .python = machine->python,
	    .root = program->root,
	    .judge = judge_program(&program->kernels),
	    .libraries = ground_truths_use_libraries(&machine->truths),
	    .lanes = lanes_of_device(options, machine, number, count),
	    .cores = machine_cores() / count,
	    .guarded = count > 1,
	    .timeout_s = options->timeout_s,
	    .memory = options->memory,
	    .own = !options->kept_runners,
	    .staged = options->staged,
	    .spares = options->spares,
	    .required = settings_required(program->settings, options->required),
	};

	return pool_open(&how, err);
}

struct pool *run_open_pool(struct program *program, const struct run_options *options,
			   const struct machine_policy *machine, struct err *err)
{
	return open_pool_of(program, options, machine, 0, 1, err);
}

static void print_note(const char *sentence)
{
	show_print(stderr, "reftest: %s\n", sentence);
}

static void close_guard(void *context)
{
	pool_guard_close(context);
}

/* Opens a pool for each device that gets references. On error, sets `err` and returns a runner whose `calls` is
 * NULL. */
static struct runner open_pools(struct run *run, int count, struct err *err)
{
	struct device_runner *devices = arena_array(&run->arena, (size_t)count, sizeof *devices);
	struct pool_guard *guard = arena_alloc(&run->arena, sizeof *guard);
	int opened = 0;

	*guard = pool_guard_open();
	for (int i = 0; i < count; i++) {
		int lanes = lanes_of_device(run->options, &run->machine, i, count);
		struct pool *pool = lanes == 0 ? NULL : open_pool_of(run->program, run->options, &run->machine, i, count, err);

		if (pool != NULL)
			devices[opened++] = (struct device_runner){run->machine.devices[i], pool_runner(pool), lanes};
		else if (lanes > 0)
			break;
	}
	if (err->text[0] == '\0')
		return device_queue(devices, opened, print_note, close_guard, guard, err);
	while (opened > 0) {
		const struct runner *runner = &devices[--opened].runner;

		runner->calls->close(runner->self);
	}
	pool_guard_close(guard);
	return (struct runner){NULL, NULL};
}

int run_need_runner(struct run *run, struct err *err)
{
	int count = devices_in_use(run->options, &run->machine);

	if (run->runner.calls == NULL)
		run->runner = count > 1 ? open_pools(run, count, err)
					: pool_runner(run_open_pool(run->program, run->options, &run->machine, err));
	return run->runner.calls == NULL ? -1 : 0;
}

void run_close_runner(struct run *run)
{
	if (run->runner.calls != NULL && !run->lent)
		run->runner.calls->close(run->runner.self);
	run->runner = (struct runner){NULL, NULL};
}
