/* audited - the hand-written test files of a dataset, held to whether they can fail (artifacts/audit.h). */
#ifndef REFTEST_COMMANDS_AUDITED_H
#define REFTEST_COMMANDS_AUDITED_H

#include "base/arena.h"
#include "base/err.h"
#include "dataset/dataset.h"

struct audited {
	int files; /* that were looked at */
	const char *
	    *told; /* "tests/references/test_x.py:12: …" for each finding, and for each file that cannot be read why */
	int told_count;
};

/* 0, or -1 with a sentence when the folder cannot be read. Everything in the arena. */
int audited_files(const struct dataset *dataset, const char *root, struct arena *arena, struct audited *out,
		  struct err *err);

#endif
