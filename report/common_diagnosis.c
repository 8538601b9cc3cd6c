#include "report/common_diagnosis.h"

#include <string.h>

#include "engine/definition_files.h"

/* Returns true if the case has a diagnosis that does not contain the mistake `says`. */
static bool contradicts(const struct verdict *v, const char *says)
{
	if (v == NULL || v->status != STATUS_FAILED || !v->diagnosed)
		return false;
	for (int i = 0; i < v->diagnosis_count; i++)
		if (strcmp(v->diagnosis[i], says) == 0)
			return false;
	return true;
}

static bool explains_all(const struct result *result, const char *says)
{
	for (int i = 0; i < result->case_count; i++)
		if (contradicts(result->cases[i].verdict, says))
			return false;
	return true;
}

int diagnosis_of(const struct result *result, const char *says[DIAGNOSIS_SHOWN])
{
	int count = 0;

	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *v = result->cases[i].verdict;

		if (v == NULL || v->status != STATUS_FAILED)
			continue;
		for (int k = 0; k < v->diagnosis_count && count < DIAGNOSIS_SHOWN; k++) {
			bool known = false;

			for (int n = 0; n < count; n++)
				known = known || strcmp(says[n], v->diagnosis[k]) == 0;
			if (!known && explains_all(result, v->diagnosis[k]))
				says[count++] = v->diagnosis[k];
		}
	}
	return count;
}

void diagnosis_json(const struct result *result, struct buf *out)
{
	const char *says[DIAGNOSIS_SHOWN];
	int count = diagnosis_of(result, says);

	buf_text(out, ", \"diagnosis\": ");
	buf_json_strings(out, says, count);
}
