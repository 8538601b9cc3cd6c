/* fuzz - feeds the parsers with mutated seeds for as long as the user wants:
 *
 *   fuzz [TARGET [COUNT [FIRST]]]     TARGET: a target, or "all"; COUNT inputs for each target (100000 by default),
 *   beginning with input number FIRST (0 by default) */
#include "tests/fuzz/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	const char *wanted = argc > 1 ? argv[1] : "all";
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 100000,
		 first = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	int ran = 0;

	for (int i = 0; fuzz_target(i) != NULL; i++)
		if (strcmp(wanted, "all") == 0 || strcmp(wanted, fuzz_target(i)) == 0) {
			int taken = fuzz_run(fuzz_target(i), first, count);

			printf("%s: %llu inputs, %d of them valid\n", fuzz_target(i), (unsigned long long)count, taken);
			ran++;
		}
	if (ran == 0)
		fprintf(stderr, "fuzz: there is no target %s\n", wanted);
	return ran == 0 ? 2 : 0;
}
