/* key - creates a key for signed records, or prints the public half of a key, which can only check signatures. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/show.h"
#include "remote/signature.h"

static int show_public(const struct program *program, struct err *err)
{
	char text[SIGNING_KEY_TEXT];
	struct signing_key *signer;
	int found = signature_open(program->secrets.text[SECRET_CACHE_KEY], &signer, err);

	if (found == 0)
		err_set(err, "REFTEST_CACHE_KEY is not set, so there is no key to print");
	if (found <= 0)
		return EXIT_USAGE;
	int rc = signing_key_public(signer, text, err);

	if (rc == 0)
		show_print(stdout, "%s\n", text);
	signing_key_close(signer);
	return rc == 0 ? EXIT_VERIFIED : EXIT_USAGE;
}

static int make_key(enum signing_key_kind kind, struct err *err)
{
	char text[SIGNING_KEY_TEXT];

	if (signing_key_make(kind, text, err) < 0)
		return EXIT_INTERNAL;
	show_print(stdout, "%s\n", text);
	return EXIT_VERIFIED;
}

static int run_ed25519(struct program *program, const void *options, const struct words *names, struct err *err)
{
	(void)program, (void)options, (void)names;
	return make_key(SIGNING_KEY_ED25519, err);
}

static int run_hmac(struct program *program, const void *options, const struct words *names, struct err *err)
{
	(void)program, (void)options, (void)names;
	return make_key(SIGNING_KEY_HMAC_SHA256, err);
}

static int run_public(struct program *program, const void *options, const struct words *names, struct err *err)
{
	(void)options, (void)names;
	return show_public(program, err);
}

static const struct subcommand subcommands[] = {
    {"ed25519", "", "create a key pair (the default): the private half signs, the public half only checks "
        "signatures", 0, 0, run_ed25519},
    {"hmac", "", "create a secret key that all machines share", 0, 0, run_hmac},
    {"public", "", "print the public half of the key in REFTEST_CACHE_KEY", 0, 0, run_public},
};
enum { SUBCOMMANDS = sizeof subcommands / sizeof subcommands[0] };

static int start(struct program *program, int argc, char **argv)
{
	struct command_line line;
	const struct subcommand *sub = NULL;

	if (command_line_begin(&line, &command_key, argc, argv, NULL))
		sub = line.names.count == 0 ? &subcommands[0] : command_line_subcommand(&line);
	if (sub != NULL)
		line.code = sub->run(program, NULL, &line.names, &line.err);
	return command_line_end(&line);
}

const struct command command_key = {
    .name = "key",
    .summary = "create a key for signing the records of shared caches",
    .synopsis = "[ed25519 | hmac | public]",
    .description =
	"Prints a key for REFTEST_CACHE_KEY. Without a subcommand, it is an ed25519 key.",
    .subcommands = subcommands,
    .subcommand_count = SUBCOMMANDS,
    .run = start,
};
