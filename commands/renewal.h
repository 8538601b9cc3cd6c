/* renewal - one generated file made true: its definitions become classes, and the file is replaced if its bytes differ
 * and nobody else's work is in it. commands/generated.h does that for all of them. */
#ifndef REFTEST_COMMANDS_RENEWAL_H
#define REFTEST_COMMANDS_RENEWAL_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "commands/sparse.h"
#include "commands/generated.h"
#include "commands/notes.h"
#include "commands/present.h"
#include "commands/sentences.h"
#include "dataset/dataset.h"
#include "reftest.h"

/* One file that there should be, and the definitions that belong into it. */
struct group {
	const char *file; /* "test_rmsnorm.py" */
	const struct dataset_file *const *members;
	int count;
	const char *refused; /* why there is none; NULL */
};

/* Files of which one sentence is told. */
struct some {
	const char *first; /* NULL: none */
	int count;
};

/* An update on its way. */
struct renewal {
	struct reftest *reftest;
	const struct dataset *dataset;
	const struct generated_options *options;
	struct arena *arena;
	struct generated *out; /* counted up as it goes; its sentences are these: */
	struct sentences told, changed;
	struct present present;
	struct notes notes;    /* of the last update */
	struct notes fresh;    /* of this one: room for as many as there are groups */
	struct digest context; /* of what all files depend on */
	struct sparse sparse;
	struct some unwritten; /* files that are not checked out */
	struct some untouched; /* files whose definitions are not */
};

void renewal_tell(struct renewal *r, const char *sentence);

/* Does what was noted of the group's file still hold, so that there is nothing to do? Then it is counted. */
bool renewal_noted(struct renewal *r, const struct group *group, const struct note *note);

/* Of a file that nobody looks at this time: its old note stays. */
void renewal_keep_note(struct renewal *r, const struct note *note);

/* Makes the group's file true, or says what it would hold or that it is out of date, as the options have it. 0, or -1
 * with a sentence: it cannot be written. */
int renewal_of(struct renewal *r, const struct group *group, struct err *err);

/* May a file that is not there be made? Not if git has it and does not want it in this working tree; that is noted. 1, 0, or
 * -1 with a sentence. */
int renewal_may_write(struct renewal *r, const char *file, struct err *err);

/* May a file that no definition here belongs into be removed? Not if git has a definition that it is named after and does not
 * want in this working tree; that is noted. 1, 0, or -1 with a sentence. */
int renewal_may_remove(struct renewal *r, const char *file, struct err *err);

/* Tells what the two noted. */
void renewal_tell_sparse(struct renewal *r);

/* The same for conftest.py. */
int renewal_conftest(struct renewal *r, struct err *err);

/* Removes a file of ours that has nothing to hold any more. */
int renewal_remove(struct renewal *r, const char *file, struct err *err);

#endif
