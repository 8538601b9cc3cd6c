#include "repos/known_repositories.h"

#include <stddef.h>
#include <string.h>

const struct known_repository known_repositories[] = {
    {"sglang", "https://github.com/sgl-project/sglang.git", "SGLang", "python"},
    {"flashinfer", "https://github.com/flashinfer-ai/flashinfer.git", "FlashInfer", "."},
    {"flashinfer-trace", "https://huggingface.co/datasets/flashinfer-ai/flashinfer-trace", "the dataset", NULL},
};

const int known_repository_count = sizeof known_repositories / sizeof known_repositories[0];

const struct known_repository *known_repository_find(const char *name)
{
	for (int i = 0; i < known_repository_count; i++)
		if (strcmp(known_repositories[i].name, name) == 0)
			return &known_repositories[i];
	return NULL;
}
