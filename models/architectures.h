/* architectures - models/architectures.json as a tree. The tree is parsed when it is first needed, so that all
 * definitions of a run share it. models/architecture.h reads it. */
#ifndef REFTEST_MODELS_ARCHITECTURES_H
#define REFTEST_MODELS_ARCHITECTURES_H

#include <cjson/cJSON.h>

/* Begin with {0}. */
struct architectures {
	cJSON *root;
};

void architectures_free(struct architectures *all);

#endif
