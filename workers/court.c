#include "workers/court.h"

#include "workers/layout.h"

enum { SMALL_CASE = 64 << 20 /* bytes that are asked for without looking first how many are free */ };

void court_renew(struct court *court)
{
	if (court->private != NULL)
		court->device->calls->release(court->device, court->private);
	if (court->inputs != NULL)
		court->device->calls->release(court->device, court->inputs);
	court->private = court->inputs = NULL;
	court->private_size = court->inputs_size = 0;
	court->recovered_count = 0;
	shared_renew(&court->shared);
	shared_renew(&court->stand);
}

/* Bytes that a case can have: those that are free, and those that earlier cases took. */
static int64_t available(struct court *court)
{
	int64_t bytes = court->device->calls->memory_free(court->device);

	bytes = layout_add(layout_add(bytes, court->private_size), court->inputs_size);
	return layout_add(bytes, shared_used(&court->shared));
}

static int reserve_private(struct court *court, int64_t need, struct err *err)
{
	struct device *device = court->device;

	if (court->private_size >= need)
		return 0;
	if (court->private != NULL)
		device->calls->release(device, court->private);
	court->private = device->calls->allocate(device, need, err);
	court->private_size = court->private == NULL ? 0 : need;
	return court->private == NULL ? -1 : 0;
}

unsigned char *court_take_inputs(struct court *court, int64_t bytes, struct err *err)
{
	struct device *device = court->device;

	if (court->inputs != NULL && court->inputs_size >= bytes)
		return court->inputs;
	if (court->inputs != NULL)
		device->calls->release(device, court->inputs);
	court->inputs = device->calls->allocate(device, bytes > 0 ? bytes : 1, err);
	court->inputs_size = court->inputs == NULL ? 0 : bytes;
	return court->inputs;
}

bool court_drop_inputs(struct court *court)
{
	if (court->inputs == NULL || court->inputs_size <= court->keep)
		return false;
	court->device->calls->release(court->device, court->inputs);
	court->inputs = NULL;
	court->inputs_size = 0;
	return true;
}

enum court_answer court_reserve(struct court *court, struct court_need *need, struct err *err)
{
	int64_t wish = court->wish;

	need->need = layout_add(layout_add(need->arena, need->private), layout_add(need->inputs, need->scratch));
	need->available = need->need > SMALL_CASE || wish > SMALL_CASE ? available(court) : SMALL_CASE;
	if (need->need > need->available)
		return COURT_NO_MEMORY;
	if (wish > need->available / 2)
		wish = 0;
	if (reserve_private(court, need->private, err) == 0 &&
	    shared_reserve(&court->shared, need->arena, wish, err) >= 0)
		return COURT_OK;
	if (court->device->calls->broken(court->device))
		return COURT_ERROR;
	need->available = court->device->calls->memory_free(court->device);
	return COURT_NO_MEMORY;
}
