/* architectures - the parsed models/architectures.json. The file is parsed when it is first needed, and all definitions
 * of a run share the result. models/architecture.h explains the file. */
#ifndef REFTEST_MODELS_ARCHITECTURES_H
#define REFTEST_MODELS_ARCHITECTURES_H

#include <cjson/cJSON.h>

/* Begin with {0}. */
struct architectures {
	cJSON *root;
};

void architectures_free(struct architectures *all);

#endif
