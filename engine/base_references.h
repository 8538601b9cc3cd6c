/* base_references - the references that the definitions have in a commit of git, for `reftest diff`.
 *
 * If the option `base` of a run is set to a commit, the only ground truth for each reference is its version in this
 * commit (BASE_NAME). This version runs in a separate process, like the dataset's own ground truths
 * (engine/dataset_truth.h). Such a run neither reads nor stores verdicts, because agreement with an earlier version
 * does not verify a reference. */
#ifndef REFTEST_ENGINE_BASE_REFERENCES_H
#define REFTEST_ENGINE_BASE_REFERENCES_H

#include "base/arena.h"
#include "base/err.h"
#include "dataset/definition.h"
#include "engine/dataset_truth.h"
#include "git/changes.h"

#define BASE_NAME "base"

struct base_reference {
	const char *path; /* path of the definition: "definitions/rmsnorm/rmsnorm_h64.json" */
	const struct definition *definition; /* the version in the commit; NULL if it cannot be loaded */
	const char *trouble;                 /* why the version in the commit cannot be loaded or cannot run; else
					      * NULL */
};

struct base_references {
	const struct base_reference *items; /* sorted by path */
	int count;
};

/* Loads the definitions of `commit` whose paths are in `paths`. Everything is allocated in `arena`. Returns 0, or -1
 * and sets `err` if git fails. If a definition cannot be loaded, this is no error: the function sets `trouble` of the
 * item of this definition. */
int base_references_read(const struct repository *repository, const char *commit, const struct git_files *paths,
			 struct arena *arena, struct base_references *out, struct err *err);

/* Returns the definition with this path, or NULL if the commit has no such definition. */
const struct base_reference *base_reference_find(const struct base_references *base, const char *path);

/* Returns the reference that the definition at `path` has in the commit, as a ground truth. */
struct own_truth base_reference_truth(const struct base_references *base, const char *path, struct arena *arena);

/* Returns whether two definitions have the same schema and the same code. Names, descriptions, tags, comments and
 * spacing may differ. */
bool base_reference_same_code(const struct definition *a, const struct definition *b, struct arena *arena);

/* Returns the names of the members in which two definitions differ, for example "`init`, `check`". The definitions must
 * have the same schema and code. Returns "" if only names, descriptions, tags and comments differ. */
const char *base_reference_other_members(const struct definition *a, const struct definition *b, struct arena *arena);

#endif
