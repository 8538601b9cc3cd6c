/* secrets - takes the secrets of this program out of its environment.
 *
 * If a process can be debugged, every process of the same user can read its /proc/PID/environ. A process with
 * CAP_SYS_PTRACE (root) can read the /proc/PID/environ of every process. /proc/PID/environ shows the memory into which
 * the kernel copied the environment when the program started. Therefore, before main starts any process, it copies each
 * secret, overwrites the secret in that memory, and removes the variable. No process that reftest starts gets a secret
 * in its environment. */
#ifndef REFTEST_ENGINE_SECRETS_H
#define REFTEST_ENGINE_SECRETS_H

/* A secret that reftest may need. The table in engine/secrets.c names its environment variable. */
enum secret {
	SECRET_CACHE_KEY, /* the key that signs and checks records: $REFTEST_CACHE_KEY */
	SECRET_REMOTE,	  /* the address of the shared cache, which may contain a password: $REFTEST_REMOTE */
	SECRETS
};

struct secrets {
	char *text[SECRETS]; /* owned; NULL: the variable is not set */
};

/* Moves the secrets from the environment to `secrets`. */
void secrets_take(struct secrets *secrets);
/* Puts the secrets back into the environment, because another program is about to replace this process. */
void secrets_put_back(const struct secrets *secrets);
/* Overwrites and frees the secrets. */
void secrets_forget(struct secrets *secrets);

#endif
