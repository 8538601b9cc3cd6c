#include "report/junit.h"

#include <stdint.h>
#include <string.h>

#include "base/unsafe_character.h"

enum kind { KIND_PASSED, KIND_FAILURE, KIND_ERROR, KIND_SKIPPED, KINDS };

static const char *const elements[KINDS] = {
    [KIND_FAILURE] = "failure", [KIND_ERROR] = "error", [KIND_SKIPPED] = "skipped"};

struct counts {
	int tests, of[KINDS];
	double seconds;
};

/* Writes unsafe characters as visible escapes. Unsafe characters include all characters that XML 1.0 does not allow.
 * Writes newlines and tabs as character references, because XML parsers replace literal newlines and tabs in attributes
 * by spaces. */
static void put_text(struct buf *out, const char *text)
{
	static const char special[] = "&<>\"\t\n\r";
	static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#9;", "&#10;", "&#13;"};
	char escape[ESCAPE_MAX];

	for (size_t left = strlen(text), step; left > 0; text += step, left -= step) {
		const char *found = strchr(special, *text);

		step = character_escape(text, left, escape);
		if (found != NULL)
			buf_text(out, names[found - special]);
		else if (escape[0] != '\0')
			buf_text(out, escape);
		else
			buf_add(out, text, step);
	}
}

static void put_attribute(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, " %s=\"", name);
	put_text(out, text);
	buf_text(out, "\"");
}

static enum kind kind_of(const struct junit_suite *suite, const struct junit_case *c)
{
	if (c->verdict == NULL || (c->verdict->status == STATUS_PASSED && suite->weak))
		return KIND_SKIPPED;
	switch (status_group(c->verdict->status)) {
	case GROUP_VERIFIED:
		return KIND_PASSED;
	case GROUP_UNVERIFIED:
		return KIND_SKIPPED;
	case GROUP_WRONG:
		return c->verdict->status == STATUS_FAILED ? KIND_FAILURE : KIND_ERROR;
	default:
		return KIND_ERROR;
	}
}

static void count_case(struct counts *counts, enum kind kind, const struct junit_case *c)
{
	counts->tests++;
	counts->of[kind]++;
	counts->seconds += c->verdict != NULL ? c->verdict->seconds : 0;
}

static struct counts count_suite(const struct junit_suite *suite)
{
	struct counts counts = {.tests = suite->invalid != NULL, .of[KIND_ERROR] = suite->invalid != NULL};

	for (int i = 0; i < suite->case_count; i++)
		count_case(&counts, kind_of(suite, &suite->cases[i]), &suite->cases[i]);
	return counts;
}

static void put_counts(struct buf *out, const struct counts *counts, double seconds)
{
	buf_printf(out, " tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\" time=\"%.6f\">\n", counts->tests,
		   counts->of[KIND_FAILURE], counts->of[KIND_ERROR], counts->of[KIND_SKIPPED], seconds);
}

/* Writes an `error`, `failure` or `skipped` element with the text `message`. The attribute `message` of the element is
 * the first line of this text. An `error` or `failure` also has the attribute `type`, which is the reason of the
 * verdict. */
static void put_result(struct buf *out, enum kind kind, const char *type, const char *message)
{
	struct buf first = {0};

	buf_add(&first, message, strcspn(message, "\n"));
	buf_printf(out, "      <%s", elements[kind]);
	put_attribute(out, "message", first.length > 0 ? first.data : type);
	if (kind != KIND_SKIPPED)
		put_attribute(out, "type", type);
	buf_text(out, ">");
	put_text(out, message);
	buf_printf(out, "</%s>\n", elements[kind]);
	buf_free(&first);
}

static void begin_case(struct buf *out, const struct junit_suite *suite, const char *name, double seconds)
{
	buf_text(out, "    <testcase classname=\"");
	put_text(out, suite->op_type);
	buf_text(out, ".");
	put_text(out, suite->name);
	buf_text(out, "\"");
	put_attribute(out, "name", name);
	buf_printf(out, " time=\"%.6f\"", seconds);
}

static const char *message_of(const struct junit_case *c, const char *reason)
{
	if (c->verdict == NULL)
		return c->why != NULL ? c->why : "no verdict";
	if (c->verdict->status == STATUS_PASSED)
		return "weak: an output of all zeros would pass";
	if (c->verdict->status == STATUS_CHECKED && c->verdict->reason != REASON_UNATTESTED)
		return "checked: the outputs passed every check that needs no ground truth, but no ground truth "
		       "decided whether they are correct";
	return c->verdict->message != NULL ? c->verdict->message : reason;
}

static void put_case(struct buf *out, const struct junit_suite *suite, const struct junit_case *c)
{
	const struct verdict *v = c->verdict;
	const char *reason = v == NULL || reason_name(v->reason) == NULL ? NULL : reason_name(v->reason);
	enum kind kind = kind_of(suite, c);

	begin_case(out, suite, c->name, v != NULL ? v->seconds : 0);
	if (kind == KIND_PASSED) {
		buf_text(out, "/>\n");
		return;
	}
	if (reason == NULL)
		reason = v == NULL ? "unknown" : status_name(v->status);
	buf_text(out, ">\n");
	put_result(out, kind, reason, message_of(c, reason));
	buf_text(out, "    </testcase>\n");
}

static void put_suite(struct buf *out, const struct junit_suite *suite)
{
	struct counts counts = count_suite(suite);

	buf_text(out, "  <testsuite name=\"");
	put_text(out, suite->op_type);
	buf_text(out, "/");
	put_text(out, suite->name);
	buf_text(out, "\"");
	put_counts(out, &counts, counts.seconds);
	if (suite->invalid != NULL) {
		begin_case(out, suite, "definition", 0);
		buf_text(out, ">\n");
		put_result(out, KIND_ERROR, "invalid", suite->invalid);
		buf_text(out, "    </testcase>\n");
	}
	for (int i = 0; i < suite->case_count; i++)
		put_case(out, suite, &suite->cases[i]);
	buf_text(out, "  </testsuite>\n");
}

void junit_write(const struct junit_suite *suites, int count, double seconds, struct buf *out)
{
	struct counts all = {0};

	for (int i = 0; i < count; i++) {
		struct counts counts = count_suite(&suites[i]);

		all.tests += counts.tests;
		for (int k = 0; k < KINDS; k++)
			all.of[k] += counts.of[k];
	}
	buf_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"reftest\"");
	put_counts(out, &all, seconds);
	for (int i = 0; i < count; i++)
		put_suite(out, &suites[i]);
	buf_text(out, "</testsuites>\n");
}
