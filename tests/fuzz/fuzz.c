/* fuzz - feeds mutated seeds to the parsers for a given time:
 *
 *   fuzz [TARGET [SECONDS [FIRST]]]   TARGET: a target, or "all"; SECONDS of processor time for each target (10 by
 *   default), beginning with input number FIRST (0 by default)
 *   fuzz TARGET FILE                  feeds one file, to repeat a failure
 *
 * `make fuzz` builds this program with sanitizers and runs it. */
#include "tests/fuzz/targets.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"

static int feed_file(const char *target, const char *path)
{
	struct buf bytes = {0};
	struct err err;

	if (file_read(AT_FDCWD, path, 1 << 20, &bytes, NULL, &err) != FILE_OK) {
		fprintf(stderr, "fuzz: %s\n", err.text);
		return 2;
	}
	printf("%s: %s\n", target, fuzz_one(target, bytes.data, bytes.length) ? "accepted" : "rejected");
	buf_free(&bytes);
	return 0;
}

int main(int argc, char **argv)
{
	const char *wanted = argc > 1 ? argv[1] : "all";
	char *end = NULL;
	double seconds = argc > 2 ? strtod(argv[2], &end) : 10;
	uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	int ran = 0;

	if (end != NULL && *end != '\0')
		return feed_file(wanted, argv[2]);
	for (int i = 0; fuzz_target(i) != NULL; i++)
		if (strcmp(wanted, "all") == 0 || strcmp(wanted, fuzz_target(i)) == 0) {
			int64_t fed = fuzz_run_seconds(fuzz_target(i), first, seconds);

			printf("%s: %lld inputs from number %llu on\n", fuzz_target(i), (long long)fed,
			       (unsigned long long)first);
			fflush(stdout);
			ran++;
		}
	if (ran == 0)
		fprintf(stderr, "fuzz: there is no target %s\n", wanted);
	return ran == 0 ? 2 : 0;
}
