/* relabel ROOT CLASS OP_TYPE/NAME… - copies the newest verdict of each case, labels the copy as if a device of the
 * class CLASS had computed it, and stores the copy in the same cache, with a valid checksum. Tests use this program on
 * machines without a GPU. If the environment variable FOLDER is set, its value is the path of a folder, and the copy is
 * written there instead, in the form of a remote cache: one file for each key of the verdict, named after the key. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/fingerprint.h"
#include "cache/witness.h"
#include "cache/store.h"
#include "cache/verdict_line.h"
#include "dataset/verdict.h"
#include "engine/cases.h"
#include "engine/remote_keys.h"

static int give(const struct store_put *put, const struct verdict *v, const char *folder, struct err *err)
{
	const struct verdict_line record = {.subject = put->subject,
					.witness = put->witness,
					.made = v->time,
					.text = put->text,
					.length = put->length};
	const struct remote_keys remote_keys = remote_keys_of(&put->subject, &put->witness, v);
	struct buf bytes = {0};
	int rc = verdict_line_write(&record, &bytes, err);

	for (int i = 0; rc == 0 && i < remote_keys.count; i++) {
		char path[4096];

		snprintf(path, sizeof path, "%s/%s", folder, remote_keys.text[i]);
		FILE *file = fopen(path, "wb");

		rc = file == NULL || fwrite(bytes.data, 1, bytes.length, file) != bytes.length || fclose(file) != 0;
	}
	buf_free(&bytes);
	return rc;
}

static int relabel(struct store *store, const char *definition, const char *case_id, const char *device_class,
		   struct arena *arena, struct err *err)
{
	struct latest latest;
	struct fields fields = {0};
	struct buf text = {0};
	const char *found;
	size_t length;

	if (store_latest(store, definition, case_id, arena, &latest, err) != CACHE_HIT ||
	    store_verdict(store, &latest.subject, &latest.witness, arena, &found, &length, err) != CACHE_HIT)
		return 1;
	const struct verdict *given = verdict_parse(found, length, arena, err);

	if (given == NULL)
		return 1;
	struct verdict copy = *given;

	copy.device_class = device_class;
	copy.device = "cuda:0";
	copy.torch = "2.13.0+cu130";
	copy.cuda = "13.0";
	verdict_write(&copy, &text);
	witness_fields(copy.ground_truth, verdict_truth_version(&copy, arena), copy.device_class, copy.torch, copy.cuda,
		       copy.python, arena, &fields);
	const struct store_put put = {.subject = latest.subject,
				      .witness = fields_digest(&fields),
				      .text = arena_copy(arena, text.data, text.length),
				      .length = text.length,
				      .definition = definition,
				      .case_id = case_id,
				      .fields = latest.fields,
				      .fields_length = latest.fields_length,
				      .keep_verdict = true};

	buf_free(&text);
	const char *folder = getenv("FOLDER");

	return folder != NULL ? give(&put, &copy, folder, err) != 0 : store_put(store, &put, 1, err) < 0;
}

enum { CASES_MAX = 256 };

struct named_cases {
	const char *definition, *id[CASES_MAX];
	int count;
	struct arena *arena;
};

/* `context` has the name of a definition and a list of its cases (struct named_cases). If the verdict in `record` is
 * the verdict of cases of this definition, adds these cases to the list. */
static void collect(const struct verdict_line *record, int64_t left, void *context)
{
	struct named_cases *cases = context;

	(void)left;
	for (int i = 0; i < record->name_count && cases->count < CASES_MAX; i++)
		if (strcmp(record->names[i].definition, cases->definition) == 0)
			cases->id[cases->count++] = arena_string(cases->arena, record->names[i].case_id);
}

int main(int argc, char **argv)
{
	struct arena arena = {0};
	struct err note = {""}, err = {""};
	struct store *store = argc < 4 ? NULL : store_open(argv[1], &(struct store_options){0}, &note, &err);
	int rc = store == NULL, done = 0;

	for (int i = 3; rc == 0 && i < argc; i++) {
		struct named_cases cases = {.definition = argv[i], .arena = &arena};
		int64_t damaged;

		rc = store_each_verdict(store, collect, &cases, &damaged, &err) != 0;
		for (int k = 0; rc == 0 && k < cases.count; k++, done++)
			rc = relabel(store, argv[i], cases.id[k], argv[2], &arena, &err);
	}
	if (store != NULL)
		store_close(store);
	printf("%d verdicts %s\n", done, err.text);
	arena_free(&arena);
	return rc != 0 || done == 0;
}
