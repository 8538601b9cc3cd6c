#include "commands/audited.h"

#include <string.h>

#include "artifacts/audit.h"
#include "commands/present.h"
#include "commands/sentences.h"
#include "commands/sparse.h"
#include "commands/test_class.h"

enum { AUDIT_BYTES = 1 << 20 /* no file that a person wrote has more */ };

/* Among some definitions that which a test file is named after; else NULL, and those whose names stand in it are counted and
 * the last of them is noted. */
static const struct dataset_file *named_after(const struct dataset_file *files, int count, const char *file,
                                              const struct buf *text, const struct dataset_file **named, int *names)
{
	size_t stem = strlen(file) - strlen("test_.py");

	for (int i = 0; i < count; i++) {
		if (strlen(files[i].name) == stem && memcmp(files[i].name, file + 5, stem) == 0)
			return &files[i];
		if (memmem(text->data, text->length, files[i].name, strlen(files[i].name)) == NULL)
			continue;
		*named = &files[i];
		(*names)++;
	}
	return NULL;
}

/* The definition that a test file is about: the one it is named after, else the only one whose name stands in it. NULL:
 * none, one of several, or one that git has and that is not checked out here. */
static const struct dataset_file *subject_of(const struct dataset *dataset, const struct sparse *sparse, const char *file,
                                             const struct buf *text)
{
	const struct dataset_file *named = NULL, *away = NULL;
	int names = 0;
	const struct dataset_file *here =
	    named_after(dataset->definitions, dataset->definition_count, file, text, &named, &names);

	if (here != NULL || named_after(sparse->definitions, sparse->count, file, text, &away, &names) != NULL)
		return here;
	return names == 1 ? named : NULL;
}

static void audit_file(const struct dataset *dataset, const struct sparse *sparse, const char *file,
                       const struct buf *text, struct sentences *told)
{
	const struct dataset_file *subject = subject_of(dataset, sparse, file, text);
	const struct definition *definition = NULL;
	const struct audit_finding *findings;
	struct arena arena = {0};

	if (subject != NULL)
		definition = test_class_definition(dataset->fd, subject, &arena, NULL);
	int count = audit_text(text->data, text->length, definition != NULL ? definition->reference : NULL,
			       subject != NULL ? subject->path : NULL, &arena, &findings);

	for (int i = 0; i < count; i++)
		sentences_add(told, arena_printf(told->arena, "%s%s:%d: %s", PRESENT_FOLDER, file, findings[i].line,
						 findings[i].reason));
	arena_free(&arena);
}

int audited_files(const struct dataset *dataset, const char *root, struct arena *arena, struct audited *out,
		  struct err *err)
{
	struct sentences told = {.arena = arena};
	struct sparse sparse = {.asked = false};
	struct present present;

	*out = (struct audited){0};
	if (present_list(&present, dataset->fd, root, arena, err) < 0 || sparse_ask(&sparse, dataset, arena, err) < 0)
		return -1;
	for (int i = 0; i < present.count; i++) {
		struct buf text = {0};
		struct err why = {""};
		enum owner owner;
		enum file_answer answer = present_read(&present, present.names[i], &text, &owner, &why);

		if (answer == FILE_ERROR)
			sentences_add(&told, arena_string(arena, why.text));
		if (answer == FILE_OK && owner != OWNER_REFTEST && text.length > 0 && text.length <= AUDIT_BYTES) {
			out->files++;
			audit_file(dataset, &sparse, present.names[i], &text, &told);
		}
		buf_free(&text);
	}
	out->told = told.items;
	out->told_count = told.count;
	return 0;
}
