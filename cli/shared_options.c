#include "cli/shared_options.h"

#include <string.h>

#include "engine/run_defaults.h"
#include "engine/tolerance_text.h"
#include "watcher/client.h"

struct shared_options shared_options_default(void)
{
	return (struct shared_options){.format = "text", .atol = -1, .rtol = -1, .hit_ratio = -1, .timeout = 120};
}

void shared_options_root(const struct shared_options *o, struct program *program)
{
	program->root_given = o->root != NULL ? o->root : program->root_given;
}

/* --atol, --rtol and --hit-ratio override --tolerance. */
static int read_tolerances(const struct shared_options *o, struct case_options *out, struct err *err)
{
	if (o->hit_ratio > 1 || o->hit_ratio == 0)
		return err_set(err, "--hit-ratio takes a number above 0 and at most 1, not %g", o->hit_ratio);
	if (tolerance_texts_read(o->tolerances.items, o->tolerances.count, "--tolerance", out->by_dtype, err) < 0)
		return -1;
	out->tolerance = (struct tolerance){o->atol, o->rtol, o->hit_ratio};
	return 0;
}

static int read_cases(const struct shared_options *o, struct case_options *out, struct err *err)
{
	*out = case_options_default();
	out->workloads = !o->no_workloads;
	out->no_diagnosis = o->no_diagnosis;
	out->edge = o->edge;
	out->backward = o->backward;
	out->seed = o->seed;
	if (read_tolerances(o, out, err) < 0)
		return -1;
	if (o->case_id[0] == NULL)
		return run_sizes_read(o->sizes, out, err);
	case_options_only(out, o->case_id);
	return 0;
}

int shared_options_read(const struct shared_options *o, struct program *program, struct run_options *out, struct err *err)
{
	shared_options_root(o, program);
	program->repos = o->repos != NULL ? o->repos : program->repos;
	*out = (struct run_options){.device = o->device,
				    .device_class = o->device_class,
				    .python = o->python,
				    .ground_truth = o->ground_truth,
				    .jobs = o->jobs,
				    .timeout_s = o->timeout,
				    .memory = o->memory,
				    .kept_runners = o->isolation != NULL && strcmp(o->isolation, "kept") == 0,
				    .staged = o->staged_arena,
				    .from_index = o->index,
				    .required = o->required,
				    .accept = o->accept,
				    .watcher = o->alone ? NULL : &watcher_client};
	if (o->timeout <= 0)
		return err_set(err, "--timeout takes a number of seconds above 0");
	return read_cases(o, &out->cases, err);
}

const char *shared_options_repeat(const struct shared_options *o, struct arena *arena)
{
	struct buf words = {0};

	if (o->index)
		buf_text(&words, " --staged");
	if (o->seed != 0)
		buf_printf(&words, " --seed %llu", (unsigned long long)o->seed);
	if (o->atol >= 0)
		buf_printf(&words, " --atol %g", o->atol);
	if (o->rtol >= 0)
		buf_printf(&words, " --rtol %g", o->rtol);
	if (o->hit_ratio >= 0)
		buf_printf(&words, " --hit-ratio %g", o->hit_ratio);
	if (o->required != NULL)
		buf_printf(&words, " --require-containment %s", o->required);
	if (o->isolation != NULL)
		buf_printf(&words, " --isolation %s", o->isolation);
	if (o->memory != 0)
		buf_printf(&words, " --memory %lld", (long long)o->memory);
	if (o->ground_truth != NULL)
		buf_printf(&words, " --ground-truth %s", o->ground_truth);
	for (int i = 0; i < o->tolerances.count; i++)
		buf_printf(&words, " --tolerance %s", o->tolerances.items[i]);
	const char *text = arena_copy(arena, words.data, words.length);

	buf_free(&words);
	return text;
}
