#include "commands/audited.h"

#include <string.h>

#include "artifacts/audit.h"
#include "commands/present.h"
#include "commands/sentences.h"
#include "commands/test_class.h"

enum { AUDIT_BYTES = 1 << 20 /* no file that a person wrote has more */ };

/* The definition that a test file is about: the one it is named after, else the only one whose name stands in it. NULL:
 * none, or one of several. */
static const struct dataset_file *subject_of(const struct dataset *dataset, const char *file, const struct buf *text)
{
	const struct dataset_file *found = NULL;
	size_t stem = strlen(file) - strlen("test_.py");
	int count = 0;

	for (int i = 0; i < dataset->definition_count; i++) {
		const struct dataset_file *one = &dataset->definitions[i];

		if (strlen(one->name) == stem && memcmp(one->name, file + 5, stem) == 0)
			return one;
		if (memmem(text->data, text->length, one->name, strlen(one->name)) == NULL)
			continue;
		found = one;
		count++;
	}
	return count == 1 ? found : NULL;
}

static void audit_file(const struct dataset *dataset, const char *file, const struct buf *text, struct sentences *told)
{
	const struct dataset_file *subject = subject_of(dataset, file, text);
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
	struct present present;

	*out = (struct audited){0};
	if (present_list(&present, dataset->fd, root, arena, err) < 0)
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
			audit_file(dataset, present.names[i], &text, &told);
		}
		buf_free(&text);
	}
	out->told = told.items;
	out->told_count = told.count;
	return 0;
}
