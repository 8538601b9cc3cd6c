/* definition_load - reads a definition from its JSON text and checks it against the schema. A new field of the schema
 * is read here, and also needs the places that docs/architecture.md lists. */
#ifndef REFTEST_DATASET_DEFINITION_LOAD_H
#define REFTEST_DATASET_DEFINITION_LOAD_H

#include "dataset/definition.h"

/* Reads a definition. `path` appears in messages ("definitions/gemm/x.json:3:10: …"). `bytes` are the contents of the
 * file; the definition copies what it needs into `arena`. Returns NULL with a message about the first error. `stem` and
 * `folder` are the stem of the file's name and its op_type folder, or NULL; "name" must equal the stem, and "op_type",
 * which may be absent or null, the folder. */
const struct definition *definition_load(const char *path, const char *folder, const char *stem, const void *bytes,
                                         size_t length, struct arena *arena, struct err *err);

#endif
