#include "workers/pool/judge_fork.h"

#include <unistd.h>

#include "workers/protocol/channel.h"

struct call {
	const struct judge_program *program;
	const struct judge_order *order;
};

static int serve(void *context)
{
	const struct call *call = context;

	return call->program->serve(call->program, call->order);
}

int judge_fork(struct process *judge, const struct judge_program *program, const struct judge_order *order, int *socket,
	       struct err *err)
{
	struct call call = {program, order};
	int theirs;

	*judge = (struct process){0, -1};
	if (channel_pair(socket, &theirs, err) != 0)
		return -1;
	const int fds[JUDGE_FDS] = {-1, STDERR_FILENO, STDERR_FILENO, theirs, program->cuda_library};
	int rc = process_fork(judge, "reftest-judge", serve, &call, fds, JUDGE_FDS, err);

	close(theirs);
	if (rc != 0)
		close(*socket);
	return rc;
}
