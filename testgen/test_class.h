/* test_class - collects the data of a generated test class from a definition and its op family: roles, modes, sizes,
 * edge cases, hidden constants (numbers such as an epsilon that no field of the definition contains), tolerance rules,
 * and the inputs that the operation may write to. */
#ifndef REFTEST_TESTGEN_TEST_CLASS_H
#define REFTEST_TESTGEN_TEST_CLASS_H

#include "base/arena.h"
#include "base/err.h"
#include "dataset/dataset.h"
#include "kernels/core/kernels_library.h"
#include "testgen/test_file.h"

/* Fills in a class whose name and definition are already set. The data is allocated in `arena`. If the definition has
 * no op family, adds only the sizes. */
void test_class_fill(struct test_class *c, const struct kernels_api *api, const struct tolerance *dataset,
		     struct arena *arena);

/* Loads a definition of the dataset in the folder `fd` into `arena`. Returns NULL and sets `err` on error, for example
 * if the file was deleted after the scan. */
const struct definition *test_class_definition(int fd, const struct dataset_file *file, struct arena *arena,
					       struct err *err);

#endif
