/* libfuzzer - runs a fuzz target of targets.h with libFuzzer, which prefers inputs that execute new code. The
 * environment variable FUZZ_TARGET names the target. `make fuzz ENGINE=libfuzzer` builds this program with clang and
 * runs it. */
#include "tests/fuzz/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *count, char ***words);
int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length);

static bool is_target(const char *name)
{
	for (int i = 0; fuzz_target(i) != NULL; i++)
		if (strcmp(fuzz_target(i), name) == 0)
			return true;
	return false;
}

int LLVMFuzzerInitialize(int *count, char ***words)
{
	const char *target = getenv("FUZZ_TARGET");

	(void)count, (void)words;
	if (target != NULL && is_target(target))
		return 0;
	fprintf(stderr, "libfuzzer: set FUZZ_TARGET to the name of a target\n");
	exit(2);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t length)
{
	fuzz_one(getenv("FUZZ_TARGET"), bytes, length);
	return 0;
}
