/* key - makes a key for signed records, or shows the half of one that only checks. */
#include "commands/command.h"

#include <stdio.h>
#include <string.h>

#include "commands/options.h"
#include "commands/signing.h"

static int show_public(struct err *err)
{
	char text[SEAL_KEY_TEXT];
	struct seal *seal;
	int found = signing_open(&seal, err);

	if (found == 0)
		err_set(err, "REFTEST_CACHE_KEY is not set, so there is no key to show the public half of");
	if (found <= 0)
		return EXIT_USAGE;
	int rc = seal_public(seal, text, err);

	if (rc == 0)
		puts(text);
	seal_close(seal);
	return rc == 0 ? EXIT_VERIFIED : EXIT_USAGE;
}

static int make_key(enum seal_kind kind, struct err *err)
{
	char text[SEAL_KEY_TEXT];

	if (seal_make(kind, text, err) < 0)
		return EXIT_INTERNAL;
	puts(text);
	return EXIT_VERIFIED;
}

static int run(const struct words *names, struct err *err)
{
	const char *what = names->count > 0 ? names->items[0] : "ed25519";

	if (names->count > 1)
		err_set(err, "key takes one word; '%s' is another", names->items[1]);
	else if (strcmp(what, "ed25519") == 0 || strcmp(what, "hmac") == 0)
		return make_key(what[0] == 'h' ? SEAL_HMAC_SHA256 : SEAL_ED25519, err);
	else if (strcmp(what, "public") == 0)
		return show_public(err);
	else
		err_set(err, "'%s' is no kind of key; key takes ed25519, hmac or public", err_show(what).text);
	return EXIT_USAGE;
}

int command_key(struct reftest *reftest, int argc, char **argv)
{
	static const char usage[] =
	    "key [ed25519|hmac|public]\n\n"
	    "Prints a new key for REFTEST_CACHE_KEY: ed25519 (the default) has a public half, which only checks; hmac "
	    "is a\n"
	    "secret that all share. `public` prints the public half of the key that REFTEST_CACHE_KEY is or names.";
	struct told told;

	(void)reftest;
	if (options_begin(&told, usage, NULL, 0, argc, argv, NULL))
		told.code = run(&told.names, &told.err);
	return options_end(&told);
}
