/* lane_errand - a judge's request to the provider, who serves one lane at a time. While it waits and while it is served the
 * case's clock stands still. */
#include "workers/lane_parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMPARE_MS = 30000 /* for a judge to go on once a provider has answered, at least */ };

void lane_errand_drop(struct yard *yard, struct lane *lane)
{
	free(lane->request);
	lane->request = NULL;
	if (lane->request_fd >= 0)
		close(lane->request_fd);
	lane->request_fd = -1;
	lane->asking = false;
	if (yard->served == lane) {
		yard->served = NULL;
		provider_abandon(&yard->provider);
	}
}

void lane_errand_take(struct yard *yard, struct lane *lane, const char *line, int fd)
{
	int64_t now = clock_ms();

	lane_errand_drop(yard, lane);
	lane->request = strdup(line);
	if (lane->request == NULL)
		die_no_memory();
	lane->request_fd = fd;
	lane->asking = true;
	lane->left_ms = lane->deadline == INT64_MAX ? INT64_MAX : lane->deadline > now ? lane->deadline - now : 0;
	lane->deadline = INT64_MAX;
}

/* The judge has some time left to compare, whatever the case has. */
static void pass_answer_on(struct lane *lane, const char *answer)
{
	struct buf text = {0};
	int64_t left = lane->left_ms > COMPARE_MS ? lane->left_ms : COMPARE_MS;

	lane->asking = false;
	lane->deadline = lane->left_ms == INT64_MAX ? INT64_MAX : clock_ms() + left;
	buf_printf(&text, "{\"answer\":%s}", answer);
	lane_judge_ask(lane, text.data, text.length);
	buf_free(&text);
}

static void serve_next(struct yard *yard)
{
	for (int i = 0; i < yard->lane_count; i++) {
		struct lane *lane = &yard->lanes[i];

		if (lane->request == NULL)
			continue;
		if (!provider_ready(&yard->provider))
			return;
		provider_ask(&yard->provider, lane->request, strlen(lane->request), lane->request_fd);
		yard->served = lane;
		free(lane->request);
		lane->request = NULL;
		if (lane->request_fd >= 0)
			close(lane->request_fd);
		lane->request_fd = -1;
		return;
	}
}

void yard_dispatch_provider(struct yard *yard, int64_t now_ms)
{
	const char *answer;

	do {
		answer = provider_answer(&yard->provider, now_ms);
		if (answer != NULL && yard->served != NULL) {
			struct lane *lane = yard->served;

			yard->served = NULL;
			pass_answer_on(lane, answer);
		}
		if (yard->served == NULL)
			serve_next(yard);
	} while (answer != NULL || (yard->served != NULL && provider_answers_now(&yard->provider)));
}
