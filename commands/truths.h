/* truths - which ground truths there are on this machine for an op family, and which of them are asked.
 *
 * What an interpreter has is asked of it once and remembered under keys that change when packages or tables do, so a
 * run in which nothing is stale imports nothing and starts no Python. */
#ifndef REFTEST_COMMANDS_TRUTHS_H
#define REFTEST_COMMANDS_TRUTHS_H

#include "base/arena.h"
#include "base/err.h"
#include "dataset/verdict.h"
#include "kernels/op.h"
#include "reftest.h"

/* A provider on a device of one class: "flashinfer", "torch". */
struct provider_fact {
	const char *name, *version; /* version NULL: it cannot be used for anything */
	const char *why;	    /* version NULL: why */
	const struct provider_family {
		const char *family, *why; /* why NULL: it can; else why not */
		bool never;		  /* the library has no such kernel at all */
	} * families;
	int family_count;
};

/* What --ground-truth asks for. */
struct truth_choice {
	bool automatic; /* the first available; on a CPU builtin alone, which is exact there (double, one rounding) */
	bool all;	/* every available one and builtin */
	const char **names; /* those, in this order */
	int name_count;
	const struct provider_fact *facts; /* in order of preference; read only if a provider may be asked */
	int fact_count;
	const char *trouble; /* the providers could not be asked for; NULL */
};

/* "auto" (or NULL), "all", or names separated by commas. `python` NULL: no provider can be had. -1: no such name, one named
 * twice, or more than TRUTHS_MAX, of which none may be left out. */
int truths_choose(struct reftest *reftest, const char *text, const char *python, const char *device_class,
		  struct arena *arena, struct truth_choice *out, struct err *err);

/* All providers and what they can do here, whatever is asked for (doctor). -1: they cannot be asked. */
int truths_facts(struct reftest *reftest, const char *python, const char *device_class, struct arena *arena,
		 const struct provider_fact **out, int *count, struct err *err);

/* For a family (NULL: none): in the order in which they are asked. */
struct truths truths_for(const struct truth_choice *choice, const struct op_entry *op, struct arena *arena);

/* Builtin alone. Cases of --edge are where implementations differ by convention, and it has the one that counts; in float64
 * others have no kernels. */
struct truths truths_builtin(const struct op_entry *op, struct arena *arena);

/* Whatever could change truths_for's answer for some family, as one text. */
const char *truths_context(const struct truth_choice *choice, struct arena *arena);

#endif
