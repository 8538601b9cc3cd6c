/* known_repositories - the repositories that `reftest clone` clones and updates: the libraries that are ground truths,
 * and the dataset. If you add a repository, also add its name to the choices of --only in cli/clone.c, and to
 * docs/clone.md. For a library, also change the texts that list the checkouts: ROW_REPOS in cli/shared_options.h, and
 * engine/library_checkouts.{h,c}. */
#ifndef REFTEST_REPOS_KNOWN_REPOSITORIES_H
#define REFTEST_REPOS_KNOWN_REPOSITORIES_H

struct known_repository {
	const char *name;   /* name of the checkout's folder, and name in repos_config.json */
	const char *url;
	const char *holds;  /* what the repository contains, for help texts */
	const char *python; /* the folder in the checkout from which Python imports the library; NULL if this is not a
			     * library */
};

extern const struct known_repository known_repositories[];
extern const int known_repository_count;

/* Returns the repository of this name, or NULL. */
const struct known_repository *known_repository_find(const char *name);

#endif
