#include "testgen/replace_vacuous.h"

#include <unistd.h>

#include "git/objects.h"

enum { STATUS_BYTES = 1 << 20 };

/* Returns whether HEAD contains the file with its current content. */
static bool in_history(const struct repository *repository, const char *path, struct arena *arena)
{
	const char *full = arena_printf(arena, "%s%s", repository->prefix, path);
	const char *const tracked[] = {"rev-parse", "--verify", "--quiet", arena_printf(arena, "HEAD:%s", full), NULL};
	const char *const changed[] = {"--literal-pathspecs", "diff", "--quiet", "HEAD", "--", full, NULL};
	struct buf text = {0};
	bool is = git_output(repository, tracked, STATUS_BYTES, &text, NULL) == 0 &&
		  git_output(repository, changed, STATUS_BYTES, &text, NULL) == 0;

	buf_free(&text);
	return is;
}

int replace_vacuous(int root_fd, const char *root, const struct vacuous_tests *found, bool check, struct arena *arena,
		    struct replaced *out, struct err *err)
{
	struct string_list messages = {.arena = arena}, removed = {.arena = arena};
	struct repository repository;
	bool has_git = repository_find(root, &repository, NULL) == 0;

	*out = (struct replaced){0};
	for (int i = 0; i < found->vacuous_count; i++) {
		const char *path = found->vacuous[i], *reason = found->reasons[i];

		if (!has_git || !in_history(&repository, path, arena)) {
			out->left++;
			string_list_add(&messages, arena_printf(arena, "%s:%s; left unchanged, because git has no commit with this "
								"content: commit the file, then it can be replaced", path, reason));
			continue;
		}
		if (!check && unlinkat(root_fd, path, 0) != 0)
			return err_errno(err, "cannot remove %s", path);
		string_list_add(&removed, path);
		string_list_add(&messages, arena_printf(arena, "%s:%s; %s", path, reason, check ? "would be replaced" : "replaced"));
	}
	out->messages = messages.items;
	out->message_count = messages.count;
	out->removed = removed.items;
	out->removed_count = removed.count;
	return 0;
}
