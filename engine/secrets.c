#include "engine/secrets.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static const char *const variables[SECRETS] = {
    [SECRET_CACHE_KEY] = "REFTEST_CACHE_KEY",
    [SECRET_REMOTE] = "REFTEST_REMOTE",
};

void secrets_take(struct secrets *secrets)
{
	for (int i = 0; i < SECRETS; i++) {
		char *given = getenv(variables[i]);

		secrets->text[i] = given == NULL ? NULL : strdup(given);
		if (given == NULL)
			continue;
		if (secrets->text[i] == NULL)
			die_no_memory();
		explicit_bzero(given, strlen(given));
		unsetenv(variables[i]);
	}
}

void secrets_put_back(const struct secrets *secrets)
{
	for (int i = 0; i < SECRETS; i++)
		if (secrets->text[i] != NULL)
			setenv(variables[i], secrets->text[i], 1);
}

void secrets_forget(struct secrets *secrets)
{
	for (int i = 0; i < SECRETS; i++) {
		if (secrets->text[i] != NULL)
			explicit_bzero(secrets->text[i], strlen(secrets->text[i]));
		free(secrets->text[i]);
		secrets->text[i] = NULL;
	}
}
