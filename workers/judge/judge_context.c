#include "workers/judge/judge_context.h"

#include <string.h>

#include "workers/protocol/layout.h"

enum { SMALL_CASE = 64 << 20 /* for a case up to this size, memory is allocated without a check of the free memory */ };

void judge_context_renew(struct judge_context *context)
{
	if (context->private != NULL)
		context->device->calls->release(context->device, context->private);
	if (context->inputs != NULL)
		context->device->calls->release(context->device, context->inputs);
	context->private = context->inputs = NULL;
	context->private_size = context->inputs_size = 0;
	context->recovered_count = 0;
	memset(&context->diagnosis, 0, sizeof context->diagnosis);
	shared_memory_retire(&context->shared, context->runner);
	shared_memory_renew(&context->provider_memory);
	shared_memory_renew(&context->custom_memory);
	for (int i = 0; i < GROUND_TRUTHS_MAX; i++)
		shared_memory_renew(&context->truth_memory[i]);
}

/* Returns the number of bytes that are available for a case: the free memory, plus the memory that the judge has kept
 * from earlier cases. */
static int64_t available(struct judge_context *context)
{
	int64_t bytes = context->device->calls->memory_free(context->device);

	bytes = layout_add(layout_add(bytes, context->private_size), context->inputs_size);
	return layout_add(bytes, shared_memory_used(&context->shared));
}

static int reserve_private(struct judge_context *context, int64_t need, struct err *err)
{
	struct device *device = context->device;

	if (context->private_size >= need)
		return 0;
	if (context->private != NULL)
		device->calls->release(device, context->private);
	context->private = device->calls->allocate(device, need, err);
	context->private_size = context->private == NULL ? 0 : need;
	return context->private == NULL ? -1 : 0;
}

unsigned char *judge_context_take_inputs(struct judge_context *context, int64_t bytes, struct err *err)
{
	struct device *device = context->device;

	if (context->inputs != NULL && context->inputs_size >= bytes)
		return context->inputs;
	if (context->inputs != NULL)
		device->calls->release(device, context->inputs);
	context->inputs = device->calls->allocate(device, bytes > 0 ? bytes : 1, err);
	context->inputs_size = context->inputs == NULL ? 0 : bytes;
	return context->inputs;
}

bool judge_context_drop_inputs(struct judge_context *context)
{
	if (context->inputs == NULL || context->inputs_size <= context->keep)
		return false;
	context->device->calls->release(context->device, context->inputs);
	context->inputs = NULL;
	context->inputs_size = 0;
	return true;
}

enum judge_context_answer judge_context_reserve(struct judge_context *context, struct judge_context_need *need,
						struct err *err)
{
	int64_t wish = context->wish;

	need->need = layout_add(layout_add(need->arena, need->private), layout_add(need->inputs, need->scratch));
	need->available = need->need > SMALL_CASE || wish > SMALL_CASE ? available(context) : SMALL_CASE;
	if (need->need > need->available) {
		shared_memory_forget(&context->shared);
		need->available = available(context);
	}
	if (need->need > need->available)
		return CONTEXT_NO_MEMORY;
	if (wish > need->available / 2)
		wish = 0;
	if (reserve_private(context, need->private, err) == 0 &&
	    shared_memory_reserve(&context->shared, need->arena, wish, err) >= 0)
		return CONTEXT_OK;
	if (context->device->calls->broken(context->device))
		return CONTEXT_ERROR;
	need->available = context->device->calls->memory_free(context->device);
	return CONTEXT_NO_MEMORY;
}
