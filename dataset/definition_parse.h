/* definition_parse - reads a definition from its JSON text and checks it against the schema. To add a field to the
 * schema, read it here; docs/architecture.md lists the other places. */
#ifndef REFTEST_DATASET_DEFINITION_PARSE_H
#define REFTEST_DATASET_DEFINITION_PARSE_H

#include "dataset/definition.h"

/* Reads a definition. `path` appears in messages ("definitions/gemm/x.json:3:10: …"). `bytes` are the contents of the
 * file; the function copies what it needs into `arena`. Returns NULL with a message about the first error. `stem` is
 * the file's name without its suffix, and `folder` is the name of the file's folder; each may be NULL. "name" must be
 * equal to the stem. "op_type" must be equal to the folder, unless it is absent or null. */
const struct definition *definition_parse(const char *path, const char *folder, const char *stem, const void *bytes,
                                         size_t length, struct arena *arena, struct err *err);

#endif
