#include "fleet/merge.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cache/fingerprint.h"
#include "fleet/answer.h"
#include "fleet/lines.h"

/* All records from one read of the input are stored in one transaction, or in several if there are more than
 * RECORDS_MOST. */
enum { RECORDS_MOST = 4096 };

struct merging {
	struct store *store;
	const struct merge_rules *rules;
	struct lines lines;
	struct buf records; /* array of struct verdict_line */
	struct buf replies; /* the lines to print after the records are stored */
	long refused;
	struct arena arena; /* the memory of the records */
};

static int check_checker(const char *theirs, const char *ours, struct err *err)
{
	if (theirs != NULL && strcmp(theirs, ours) == 0)
		return 0;
	return err_set(err, "another build of reftest computed the verdict: the digest of its checker is %s, and the "
	    "digest of this build's checker is %s",
		       theirs != NULL ? err_show(theirs).text : "unknown", ours);
}

/* Returns the value of a field of the record as text, or NULL if the record has no such field. */
static const char *field_of(const struct verdict_line *record, const char *tag, struct arena *arena)
{
	struct fields fields = {0};

	if (fields_read(record->fields, record->fields_length, arena, &fields) < 0)
		return NULL;
	for (int i = 0; i < fields.count; i++)
		if (strcmp(fields.items[i].tag, tag) == 0)
			return fields.items[i].value;
	return NULL;
}

int merge_check(const struct merge_rules *rules, const char *line, struct arena *arena, struct verdict_line *out,
		struct err *err)
{
	if (verdict_line_read(line, strlen(line), arena, out, err) == NULL ||
	    rules->signer.check(rules->signer.context, out, err) != 0)
		return -1;
	return check_checker(field_of(out, "checker", arena), rules->checker, err);
}

static int check_answer(struct merging *m, const struct answer *answer, struct err *err)
{
	for (int i = 0; i < answer->verdict_count; i++) {
		struct verdict_line record;
		struct err why;

		if (merge_check(m->rules, answer->verdicts[i], &m->arena, &record, &why) < 0)
			return err_set(err, "verdict %d: %s", i + 1, why.text);
		buf_add(&m->records, &record, sizeof record);
	}
	return 0;
}

static void reply(struct merging *m, const char *id, int stored, const char *refused)
{
	buf_text(&m->replies, "{\"id\": ");
	if (id != NULL)
		buf_json_string(&m->replies, id);
	else
		buf_text(&m->replies, "null");
	buf_printf(&m->replies, ", \"stored\": %d, \"refused\": ", stored);
	if (refused != NULL)
		buf_json_string(&m->replies, refused);
	else
		buf_text(&m->replies, "null");
	buf_text(&m->replies, "}\n");
	m->refused += refused != NULL;
}

static void take_line(struct merging *m, const char *line, size_t length)
{
	size_t before = m->records.length;
	struct answer answer;
	struct err err = {""};
	int rc = answer_read(line, length, m->lines.number, &m->arena, &answer, &err);

	if (rc == 0 && answer.checker != NULL)
		rc = check_checker(answer.checker, m->rules->checker, &err);
	if (rc == 0)
		rc = check_answer(m, &answer, &err);
	if (rc < 0)
		m->records.length = before;
	reply(m, answer.id, rc == 0 ? answer.verdict_count : 0, rc == 0 ? NULL : err.text);
}

/* Stores the records of the lines that were read, and then prints the replies. */
static int store_taken(struct merging *m, struct err *err)
{
	struct store_merged merged = {0};
	int count = (int)(m->records.length / sizeof(struct verdict_line));

	if (count > 0 &&
	    store_merge(m->store, (const struct verdict_line *)(const void *)m->records.data, count, &merged, err) < 0)
		return -1;
	fwrite(m->replies.data, 1, m->replies.length, stdout);
	fflush(stdout);
	buf_clear(&m->records);
	buf_clear(&m->replies);
	arena_free(&m->arena);
	return 0;
}

/* Handles all complete lines that were read. */
static int take_lines(struct merging *m, struct err *err)
{
	const char *line;
	size_t length;
	enum line_kind kind;

	while ((kind = lines_next(&m->lines, &line, &length)) != LINE_NONE) {
		if (kind == LINE_WHOLE)
			take_line(m, line, length);
		else
			reply(m, NULL, 0, "the line is too long");
		if (m->records.length >= RECORDS_MOST * sizeof(struct verdict_line) && store_taken(m, err) < 0)
			return -1;
	}
	return store_taken(m, err);
}

long merge_answers(struct store *store, const struct merge_rules *rules, struct err *err)
{
	struct merging m = {.store = store, .rules = rules, .lines.most = ANSWER_LINE_MAX};
	int rc = 0;

	while (rc == 0 && !m.lines.ended && !ferror(stdout)) {
		rc = lines_fill(&m.lines, STDIN_FILENO);
		if (rc < 0)
			err_errno(err, "standard input cannot be read");
		else
			rc = take_lines(&m, err);
	}
	lines_free(&m.lines);
	buf_free(&m.records);
	buf_free(&m.replies);
	arena_free(&m.arena);
	return rc < 0 ? -1 : m.refused;
}
