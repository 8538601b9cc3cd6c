#include "workers/pool/answers.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

void answers_add(struct answers *answers, const struct answer *answer, const char *text, size_t length)
{
	struct answer **end = &answers->first, *copy = malloc(sizeof *copy);

	if (copy == NULL)
		die_no_memory();
	*copy = *answer;
	copy->next = NULL;
	copy->length = length;
	copy->text = malloc(length + 1);
	if (copy->text == NULL)
		die_no_memory();
	memcpy(copy->text, text, length);
	copy->text[length] = '\0';
	copy->reached = answer->reached == NULL ? NULL : strdup(answer->reached);
	copy->own_because = answer->own_because == NULL ? NULL : strdup(answer->own_because);
	while (*end != NULL)
		end = &(*end)->next;
	*end = copy;
}

struct answer *answers_pop(struct answers *answers)
{
	struct answer *answer = answers->first;

	if (answer != NULL)
		answers->first = answer->next;
	return answer;
}

int answers_cancel(struct answers *answers, const void *owner)
{
	struct answer **at = &answers->first;
	int dropped = 0;

	while (*at != NULL) {
		struct answer *answer = *at;

		if (answer->owner == owner) {
			*at = answer->next;
			dropped++;
			answer_free(answer);
		} else {
			at = &answer->next;
		}
	}
	return dropped;
}

void answer_free(struct answer *answer)
{
	free(answer->text);
	free(answer->printed);
	free(answer->reached);
	free(answer->own_because);
	free(answer);
}
