/* approve - records that a person accepts references. A person approves a reference if no ground truth can verify its
 * definition. `verify` compares later versions of a reference with the approved version
 * (engine/approved_reference.h). */
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/operands.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/fold_output.h"
#include "base/show.h"
#include "cli/shared_options.h"
#include "dataset/approval.h"
#include "dataset/linked_dataset.h"
#include "engine/run.h"
#include "engine/run_defaults.h"
#include "report/exit_status.h"
#include "report/text.h"

struct approve_options {
	struct shared_options shared;
	const char *note;
};

#define AT(member) offsetof(struct approve_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    {"--note", OPTION_TEXT, AT(note), "TEXT", NULL, "why the reference is right; stored in the approval"},
    ROW_DEVICE,
    ROW_PYTHON,
    ROW_SIZES,
    ROW_NO_WORKLOADS,
    ROW_SEED,
    ROW_JOBS,
    ROW_TIMEOUT,
    ROW_MEMORY,
    ROW_TEXT_OR_JSON,
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* DECIDED: the definition needs no approval, because a ground truth verifies it. */
enum outcome { APPROVED, UNCHANGED, DECIDED, REFUSED };

static const char *const outcome_names[] = {
    [APPROVED] = "approved", [UNCHANGED] = "unchanged", [DECIDED] = "decided", [REFUSED] = "refused"};

struct approved {
	const struct result *result;
	enum outcome outcome;
	enum status_group group; /* for the exit status */
	const char *message;
};

/* Reads the definition's file again. Returns -1 with a message if the file has changed since it was verified. */
static int read_again(const struct result *result, struct buf *bytes, struct err *err)
{
	enum file_answer answer =
	    file_read(result->run->dataset.fd, result->file->path, DEFINITION_BYTES, bytes, NULL, err);
	const struct digest digest = digest_of(bytes->data, bytes->length);

	if (answer == FILE_ERROR)
		return -1;
	return answer == FILE_OK && digest_equal(&digest, &result->definition_check.seen.content)
		   ? 0
		   : err_set(err, "the definition changed during the verification; run `reftest approve` again");
}

static const char *today(struct arena *arena)
{
	time_t now = time(NULL);
	struct tm utc;
	char text[32] = "1970-01-01";

	if (gmtime_r(&now, &utc) != NULL)
		strftime(text, sizeof text, "%Y-%m-%d", &utc);
	return arena_string(arena, text);
}

static struct approval approval_of(const struct result *result, const char *note, struct arena *arena)
{
	const char **cases = arena_array(arena, (size_t)result->case_count, sizeof *cases);
	struct approval out = {.date = today(arena),
			       .note = note != NULL ? note : "",
			       .device_class = result->run->machine.policy.device_class,
			       .cases = cases};

	for (int i = 0; i < result->case_count; i++)
		if (result->cases[i].verdict != NULL && result->cases[i].verdict->status == STATUS_CHECKED)
			cases[out.case_count++] = result->cases[i].test->id;
	return out;
}

/* Writes the approval file, and reads it again in the same way as `verify` does. */
static int write_file(const struct result *result, const struct approval *approval, const char *path, struct arena *arena,
		      struct err *err)
{
	struct buf bytes = {0}, text = {0};
	int rc = read_again(result, &bytes, err);

	if (rc == 0)
		rc = approval_write(approval, bytes.data, bytes.length, &text, err);
	if (rc == 0 && approval_load(path, result->file->op_type, result->file->name, text.data, text.length, arena, err) == NULL)
		rc = -1;
	if (rc == 0)
		rc = file_replace(arena_printf(arena, "%s/%s", result->run->program->root, path), text.data, text.length, err);
	buf_free(&bytes);
	buf_free(&text);
	return rc < 0 ? -1 : 0;
}

/* Returns the existing approval if it approves exactly the code of the current reference, and NULL otherwise. */
static const struct approval *approved_before(const struct result *result, const char *path, struct arena *arena)
{
	struct buf bytes = {0};
	struct err err = {""};
	struct approved_reference found = {.code = APPROVED_NONE};

	if (file_read(result->run->dataset.fd, path, APPROVAL_BYTES, &bytes, NULL, &err) == FILE_OK)
		found = approved_reference_read(path, result->definition, &bytes, NULL, arena);
	buf_free(&bytes);
	return found.code == APPROVED_SAME_CODE ? found.approval : NULL;
}

/* Returns whether the approval names all cases of the other one. */
static bool approves_all(const struct approval *approval, const struct approval *other)
{
	for (int i = 0; i < other->case_count; i++)
		if (!approval_names(approval, other->cases[i]))
			return false;
	return true;
}

/* Returns the reason why a result cannot be approved, or NULL if it can be approved. Also sets the outcome. */
static const char *why_not(const struct result *result, enum outcome *outcome, struct arena *arena)
{
	const char *reason = reason_name(result->reason), *message = result->message;

	*outcome = REFUSED;
	if (result->changed)
		return "a file of the definition changed during the verification; run `reftest approve` again";
	for (int i = 0; message == NULL && i < result->case_count; i++)
		if (result->cases[i].verdict != NULL && result->cases[i].verdict->status == result->status)
			message = result->cases[i].verdict->message;
	if (result->known && result->status == STATUS_PASSED) {
		*outcome = DECIDED;
		return "a ground truth verifies this definition, so it needs no approval";
	}
	if (result->known && result->status == STATUS_CHECKED && result->made != NULL && result->made->op == NULL &&
	    result->definition->entry_point != NULL)
		return NULL;
	return arena_printf(arena, "only a definition with the status `checked` can be approved, but the status of "
	    "this definition is %s%s%s%s%.*s",
			    result->known ? status_name(result->status) : "unknown", reason != NULL ? ": " : "",
			    reason != NULL ? reason : "", message != NULL ? ": " : "",
			    message != NULL ? (int)strcspn(message, "\n") : 0, message != NULL ? message : "");
}

static struct approved approve(const struct result *result, const struct approve_options *o, struct arena *arena)
{
	struct approved out = {.result = result, .group = GROUP_VERIFIED};
	const char *path = arena_printf(arena, "approved/%s/%s.json", result->file->op_type, result->file->name);
	struct err err = {""};

	out.message = why_not(result, &out.outcome, arena);
	if (out.message != NULL) {
		out.group = out.outcome == DECIDED ? GROUP_VERIFIED
			    : result->known	   ? status_group(result->status)
						   : GROUP_UNVERIFIED;
		return out;
	}
	const struct approval *before = approved_before(result, path, arena);
	const char *note = o->note != NULL || before == NULL ? o->note : before->note;
	const struct approval now = approval_of(result, note, arena);

	if (before != NULL && approves_all(before, &now) && strcmp(now.note, before->note) == 0) {
		out.outcome = UNCHANGED;
		out.message = arena_printf(arena, "it was approved on %s (%s)", before->date, path);
	} else if (write_file(result, &now, path, arena, &err) != 0) {
		out.outcome = REFUSED;
		out.group = GROUP_INVALID;
		out.message = arena_string(arena, err.text);
	} else {
		out.outcome = APPROVED;
		out.message = arena_printf(arena, "%d case%s on %s (%s)", now.case_count, now.case_count == 1 ? "" : "s",
					   now.device_class, path);
	}
	return out;
}

/* ---- the output ---- */

static void print_text(const struct approved *list, int count)
{
	for (int i = 0; i < count; i++)
		show_print(stdout, "%-9s %s/%s: %s\n", outcome_names[list[i].outcome], list[i].result->file->op_type,
			   list[i].result->file->name, list[i].message);
}

static void print_json(const struct program *program, const struct approved *list, int count, int code)
{
	struct buf out = {0};

	buf_text(&out, "{\"schema\": 1, \"root\": ");
	buf_json_string(&out, program->root);
	buf_printf(&out, ", \"exit\": %d,\n \"definitions\": [", code);
	for (int i = 0; i < count; i++) {
		const struct dataset_file *file = list[i].result->file;

		buf_printf(&out, "%s\n  {\"name\": ", i > 0 ? "," : "");
		buf_json_string(&out, file->name);
		buf_text(&out, ", \"op_type\": ");
		buf_json_string(&out, file->op_type);
		buf_printf(&out, ", \"outcome\": \"%s\", \"message\": ", outcome_names[list[i].outcome]);
		buf_json_string(&out, list[i].message);
		buf_text(&out, "}");
	}
	buf_text(&out, "]}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}

static int approve_all(struct run *run, const struct approve_options *o, struct arena *arena)
{
	struct approved *list = arena_array(arena, (size_t)run->count, sizeof *list);
	enum status_group worst = run->problem_count > 0 ? GROUP_INVALID : GROUP_VERIFIED;

	for (int i = 0; i < run->count; i++) {
		list[i] = approve(run->results[i], o, arena);
		worst = list[i].group > worst ? list[i].group : worst;
	}
	int code = run->interrupted ? EXIT_INTERRUPTED : exit_status_of_group(worst);

	report_problems(run);
	if (strcmp(o->shared.format, "json") == 0)
		print_json(run->program, list, run->count, code);
	else
		print_text(list, run->count);
	return code;
}

/* ---- the command ---- */

static int check_words(const struct approve_options *o, const struct words *names, struct err *err)
{
	if (names->count == 0)
		return err_set(err, "approve needs the name of a definition, as in `reftest approve rmsnorm_h4096`");
	if (o->note != NULL && strlen(o->note) > APPROVAL_NOTE_BYTES)
		return err_set(err, "--note takes at most %d bytes", APPROVAL_NOTE_BYTES);
	return 0;
}

static int run(struct program *program, const struct approve_options *o, struct words *names, struct arena *arena,
	       struct err *err)
{
	struct run_options options;
	struct run run;

	if (shared_options_read(&o->shared, program, &options, err) < 0)
		return EXIT_USAGE;
	options.details = options.each = options.needs_device = options.ignore_approvals = true;
	if (operands_root(program, names, arena, err) < 0)
		return EXIT_USAGE;
	if (program_root(program, err) < 0)
		return EXIT_USAGE;
	if (linked_dataset_is_root(program->root))
		return err_set(err, "approvals are stored in a dataset, but these definitions are in no dataset"),
		       EXIT_USAGE;
	int code = run_open(&run, program, &options, err);

	if (code == 0 && run_select(&run, names->items, names->count, NULL, 0, err) < 0)
		code = EXIT_USAGE;
	else if (code == 0 && run_to_end(&run, err) < 0)
		code = EXIT_INTERNAL;
	else if (code == 0)
		code = approve_all(&run, o, arena);
	run_close(&run);
	return code;
}

static int start(struct program *program, int argc, char **argv)
{
	struct approve_options o = {.shared = shared_options_default()};
	struct command_line line;

	if (command_line_begin(&line, &command_approve, argc, argv, &o) && check_words(&o, &line.names, &line.err) == 0) {
		if (strcmp(o.shared.format, "text") == 0)
			fold_output();
		line.code = run(program, &o, &line.names, &line.arena, &line.err);
	}
	return command_line_end(&line);
}

const struct command command_approve = {
    .name = "approve",
    .summary = "approve references that no ground truth verifies",
    .synopsis = "[options] NAME…",
    .description =
	"Verifies the definitions. If a definition gets the status `checked` (no ground truth verifies the "
	"definition), its reference is recorded in `approved/OP_TYPE/NAME.json`; commit this file. If the code of the "
	"reference changes later, `reftest verify` runs the changed and the approved reference on the same inputs, and "
	"fails if their outputs differ.\n\n"
	"NAME is the name of a definition, `op_type/name`, a pattern with `*`, or the path of a file of the dataset.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
