#include "cli/operands.h"

#include <stdio.h>

#include "base/show.h"
#include "engine/named_files.h"

int operands_root(struct program *program, struct words *names, struct arena *arena, struct err *err)
{
	int made = named_files_root(program, names->items, &names->count, arena, err);

	if (made > 0)
		show_print(stderr, "reftest: %d definition%s in no dataset; the verdicts are stored below %s\n", made,
			   made == 1 ? " is" : "s are", program->root);
	return made < 0 ? -1 : 0;
}
