/* test_class - what a generated class says of a definition, by its op family: sizes, hidden constants, and the inputs
 * that the operation may write to. */
#ifndef REFTEST_COMMANDS_TEST_CLASS_H
#define REFTEST_COMMANDS_TEST_CLASS_H

#include "artifacts/test_file.h"
#include "base/arena.h"
#include "base/err.h"
#include "dataset/dataset.h"
#include "kernels/library.h"

/* Fills in a class whose name and definition are there, in the arena. A definition that no family knows has no more. */
void test_class_fill(struct test_class *c, const struct kernels_face *face, struct arena *arena);

/* The definition in a file of the dataset whose folder is `fd`, in the arena; NULL with a sentence, also if the file
 * has gone since the walk. */
const struct definition *test_class_definition(int fd, const struct dataset_file *file, struct arena *arena,
					       struct err *err);

#endif
