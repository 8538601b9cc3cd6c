#include "dataset/lfs_pointer.h"

#include <string.h>

#include "base/shell_word.h"

static const char pointer_line[] = "version https://git-lfs.github.com/spec/v1\n";

const char *lfs_fetch_command(struct arena *arena, const char *path)
{
	return arena_printf(arena, "git lfs pull --include %s", arena_shell_word(arena, path));
}

_Static_assert(sizeof pointer_line - 1 == LFS_POINTER_HEAD, "the head of a pointer is its first line");

bool lfs_pointer_begins(const void *bytes, size_t length)
{
	return length >= sizeof pointer_line - 1 && memcmp(bytes, pointer_line, sizeof pointer_line - 1) == 0;
}
