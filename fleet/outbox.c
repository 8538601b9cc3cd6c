#include "fleet/outbox.h"

#include "dataset/verdict.h"
#include "remote/signature.h"

static int no_verdicts(void *self, const struct digest *subject, struct arena *arena, const struct stored_verdict **out)
{
	(void)self, (void)subject, (void)arena;
	*out = NULL;
	return 0;
}

static enum cache_answer no_latest(void *self, const char *definition, const char *case_id, struct arena *arena,
				   struct latest *out)
{
	(void)self, (void)definition, (void)case_id, (void)arena, (void)out;
	return CACHE_MISS;
}

static int add_line(struct outbox *outbox, const struct store_put *put, struct err *err)
{
	const struct case_name name = {put->definition, put->case_id};
	struct verdict_line record = {.subject = put->subject,
				      .witness = put->witness,
				      .made = verdict_time(put->text, put->length),
				      .text = put->text,
				      .length = put->length,
				      .fields = put->fields,
				      .fields_length = put->fields_length,
				      .names = &name,
				      .name_count = 1};
	struct buf line = {0};

	signature_sign(outbox->signer, &record);
	int rc = verdict_line_write(&record, &line, err);

	if (rc == 0) {
		buf_text(&outbox->lines, outbox->lines.length > 0 ? ", " : "");
		buf_json_bytes(&outbox->lines, line.data, line.length - 1); /* without the LF */
	}
	buf_free(&line);
	return rc;
}

static int put_lines(void *self, const struct store_put *puts, int count, struct err *err)
{
	for (int i = 0; i < count; i++)
		if (puts[i].keep_verdict && add_line(self, &puts[i], err) < 0)
			return -1;
	return 0;
}

static bool not_writable(const void *self)
{
	(void)self;
	return false;
}

static int no_files(void *self, const char *prefix, store_visit *visit, void *context, struct err *err)
{
	(void)self, (void)prefix, (void)visit, (void)context, (void)err;
	return 0;
}

static int drop_files(void *self, const struct file_entry *entries, int count, struct err *err)
{
	(void)self, (void)entries, (void)count, (void)err;
	return 0;
}

static void count_nothing(void *self, const struct cache_stats *run)
{
	(void)self, (void)run;
}

struct run_store outbox_store(struct outbox *outbox)
{
	static const struct run_store_calls calls = {no_verdicts, no_latest, put_lines, not_writable,
						     no_files,    NULL,	      drop_files, count_nothing};

	return (struct run_store){&calls, outbox};
}

void outbox_free(struct outbox *outbox)
{
	buf_free(&outbox->lines);
}
