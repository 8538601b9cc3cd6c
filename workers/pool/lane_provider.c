/* lane_provider - passes a judge's request for a ground truth to the provider (the process that calls other
 * libraries). The provider serves one lane at a time. The timeout of the case is paused until the provider has
 * answered. */
#include "workers/pool/lane_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMPARE_MS = 30000 /* the judge has at least this time to compare after the provider's answer */ };

void lane_provider_drop(struct pool_shared *shared, struct lane *lane)
{
	free(lane->request);
	lane->request = NULL;
	if (lane->request_fd >= 0)
		close(lane->request_fd);
	lane->request_fd = -1;
	lane->asking = false;
	if (shared->served == lane) {
		shared->served = NULL;
		provider_abandon(&shared->provider);
	}
}

void lane_pause_timeout(struct lane *lane)
{
	int64_t now = clock_ms();

	lane->asking = true;
	lane->left_ms = lane->deadline == INT64_MAX ? INT64_MAX : lane->deadline > now ? lane->deadline - now : 0;
	lane->deadline = INT64_MAX;
}

void lane_provider_take(struct pool_shared *shared, struct lane *lane, const char *line, int fd)
{
	lane_provider_drop(shared, lane);
	lane->request = strdup(line);
	if (lane->request == NULL)
		die_no_memory();
	lane->request_fd = fd;
	lane_pause_timeout(lane);
}

/* Sends the answer to the judge and resumes the timeout of the case. If the rest of the timeout is short, extends it,
 * because the judge needs time to compare. */
void lane_answer_judge(struct lane *lane, const char *answer)
{
	struct buf text = {0};
	int64_t left = lane->left_ms > COMPARE_MS ? lane->left_ms : COMPARE_MS;

	lane->asking = false;
	lane->deadline = lane->left_ms == INT64_MAX ? INT64_MAX : clock_ms() + left;
	buf_printf(&text, "{\"answer\":%s}", answer);
	lane_judge_ask(lane, text.data, text.length);
	buf_free(&text);
}

static void serve_next(struct pool_shared *shared)
{
	if (zygote_reaches_processes(&shared->runners))
		provider_start_no_more(&shared->provider);
	for (int i = 0; i < shared->lane_count; i++) {
		struct lane *lane = &shared->lanes[i];

		if (lane->request == NULL)
			continue;
		if (!provider_ready(&shared->provider))
			return;
		provider_ask(&shared->provider, lane->request, strlen(lane->request), lane->request_fd);
		shared->served = lane;
		free(lane->request);
		lane->request = NULL;
		if (lane->request_fd >= 0)
			close(lane->request_fd);
		lane->request_fd = -1;
		return;
	}
}

void pool_shared_dispatch_provider(struct pool_shared *shared, int64_t now_ms)
{
	const char *answer;

	do {
		answer = provider_answer(&shared->provider, now_ms);
		if (answer != NULL && shared->served != NULL) {
			struct lane *lane = shared->served;

			shared->served = NULL;
			lane_answer_judge(lane, answer);
		}
		if (shared->served == NULL)
			serve_next(shared);
	} while (answer != NULL || (shared->served != NULL && provider_answers_now(&shared->provider)));
}
