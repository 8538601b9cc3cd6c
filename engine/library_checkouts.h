/* library_checkouts - finds the checkouts of FlashInfer and SGLang. reftest uses them in the same way as installed
 * libraries. Lists these checkouts in the environment variable REFTEST_CHECKOUTS, which the processes of the provider
 * read:
 *
 *   {"flashinfer": {"folder": DIR for sys.path, "commit": NAME, "why": REASON or null, "preferred": bool}, …}
 *
 * If --repos is given, the checkouts are in the folder that it names. Otherwise `reftest clone` made the checkouts, and
 * the file repos_config.json at the root of the dataset lists their folders. With --repos, a checkout is preferred to
 * an installed library; without --repos, the installed library is preferred. "why" is the reason why the checkout
 * cannot be used. For example, a checkout with local changes cannot be used, because its commit does not identify its
 * code. The provider puts the commit into the version of the ground truth. Each verdict's witness (cache/fingerprint.h)
 * thus contains the commit. */
#ifndef REFTEST_ENGINE_LIBRARY_CHECKOUTS_H
#define REFTEST_ENGINE_LIBRARY_CHECKOUTS_H

#include "base/arena.h"
#include "base/err.h"
#include "engine/program.h"

/* Sets the environment variable REFTEST_CHECKOUTS, or removes it if there are no checkouts. Starts git only if there
 * are checkouts. Returns 0. Returns -1 and sets `err` if repos_config.json is damaged, or if the folder of --repos has
 * no checkout. */
int library_checkouts_announce(const struct program *program, struct arena *arena, struct err *err);

/* Returns the folder of the checkout of this repository ("sglang"), or NULL if there is none. The root of the program
 * may be unknown (""). A damaged repos_config.json has the same effect as a missing one. */
const char *library_checkout_path(const struct program *program, const char *name, struct arena *arena);

#endif
