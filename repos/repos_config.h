/* repos_config - reads and writes the file repos_config.json, which says where `reftest clone` made checkouts.
 *
 *   {"target_dir": DIR, "repositories": {NAME: {"path", "status", "commit", "message"}, …}}
 *
 * A relative path in this file is relative to the folder of the file. */
#ifndef REFTEST_REPOS_REPOS_CONFIG_H
#define REFTEST_REPOS_REPOS_CONFIG_H

#include "base/arena.h"
#include "base/err.h"
#include "repos/checkout.h"

#define REPOS_CONFIG "repos_config.json"

struct repos_entry {
	const char *name;
	struct checkout checkout;
};

struct repos_config {
	const char *target_dir; /* the folder that contains the checkouts; NULL if there is no repos_config.json */
	struct repos_entry *items;
	int count;
};

/* Reads repos_config.json in the folder `root`. If the file is missing, the config is empty. Returns 0, or -1 and sets
 * `err` if the file cannot be read or is not a valid repos_config.json. Everything is allocated in `arena`. */
int repos_config_read(const char *root, struct arena *arena, struct repos_config *out, struct err *err);

/* Returns the entry with this name, or NULL. */
struct repos_entry *repos_config_find(const struct repos_config *config, const char *name);

/* Stores the result `checkout` in the entry with this name. Adds the entry if it is missing. */
void repos_config_set(struct repos_config *config, const char *name, const struct checkout *checkout, struct arena *arena);

/* Replaces repos_config.json in the folder `root` atomically. Returns 0, or -1 and sets `err`. */
int repos_config_write(const char *root, const struct repos_config *config, struct err *err);

#endif
