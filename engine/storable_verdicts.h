/* storable_verdicts - decides whether the verdicts of a definition may be stored.
 *
 * A verdict may be stored only if its subject and its witness (cache/fingerprint.h) contain everything that it depends
 * on. The following conditions ensure this; beside each condition is the function that checks it:
 *
 *   - the code of the reference contains nothing that may access more than its inputs and torch: storable_reference,
 *     before the run
 *   - no class of Python or torch has one of the attributes that the code gives only to objects of its own:
 *     storable_attributes; the runner checks this before it runs the code, and the engine learns it from
 *     storable_reached
 *   - while the reference ran, it accessed nothing but its inputs and torch: storable_reached
 *   - no file changed during the run:                                            storable_after_run, storable_for_subject
 *   - the verdict's cause is not transient:            reason_is_transient (dataset/verdict.h), in workers/pool/pool.c
 *
 * engine/save_verdicts.c writes the verdicts that may be stored. */
#ifndef REFTEST_ENGINE_STORABLE_VERDICTS_H
#define REFTEST_ENGINE_STORABLE_VERDICTS_H

#include "engine/run_state.h"
#include "workers/pool/task.h"

/* Finds the first construct in the reference whose result may depend on more than the reference's text and inputs. If
 * `with_init` is true, also examines the code in `init`, which makes inputs. Returns a message about the construct,
 * allocated in `arena`, or NULL if there is none. */
const char *storable_reference(const struct definition *definition, bool with_init, struct arena *arena);

/* Returns the names of the attributes that storable_reference accepts only because the text gives its own objects these
 * attributes (python_dependencies.own_attributes), allocated in `arena`, or NULL if there are none. */
const char *storable_attributes(const struct definition *definition, const char *text, size_t length,
				struct arena *arena);

/* Does the same for all source files of a ground truth. */
const char *storable_program_attributes(const struct truth_program *program, struct arena *arena);

/* Finds the first word by which the definition's code may read the clock or the name of the machine. Returns a message
 * about this word, allocated in `arena`, or NULL if there is no such word. If there is such a word, the reference may
 * compute other outputs in its next run, so it can only be `checked`, and not `passed`. */
const char *storable_unsteady(const struct definition *definition, bool with_init, struct arena *arena);

/* Returns a message which says that no verdict is stored, because the running reference accessed something besides its
 * inputs and torch. `reached` describes what the reference accessed, for example "it opens /etc/hostname". */
const char *storable_reached(const char *reached, struct arena *arena);

/* Call this after the cases of a definition have run. `unchanged` is the value of result_unchanged. If `unchanged` is
 * false, or if a tensor file was changed before the judge read it, sets result->changed, so that no verdict from this
 * run of the definition is stored. */
void storable_after_run(struct result *result, bool unchanged);

/* Returns whether other cases with the same subject may share the verdict. Returns false if the judge rejected a tensor
 * file because it was removed or changed after it was hashed. Such a verdict says nothing about the other cases: they
 * may use an unchanged copy of the file, so they must run. */
bool storable_for_subject(const struct verdict *verdict);

#endif
