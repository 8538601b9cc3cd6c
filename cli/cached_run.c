#include "cli/cached_run.h"

#include <stdio.h>

#include "base/show_wrapped.h"
#include "report/text.h"

static int select_and_show(struct run *run, const struct cached_run *what, struct err *err)
{
	static const struct words all = {0};
	const struct words *names = what->names != NULL ? what->names : &all;
	const struct words *op_types = what->op_types != NULL ? what->op_types : &all;

	if (run_select(run, names->items, names->count, op_types->items, op_types->count, err) < 0)
		return EXIT_USAGE;
	if (run_to_end(run, err) < 0)
		return EXIT_INTERNAL;
	report_problems(run);
	return what->show(run, what->command, err);
}

int cached_run(struct program *program, const struct cached_run *what, struct err *err)
{
	struct run_options options = what->options;
	struct run run;

	options.cached_only = options.dry_run = options.each = true;
	int code = run_open(&run, program, &options, err);

	if (code == 0)
		code = select_and_show(&run, what, err);
	run_close(&run);
	return code;
}

int cached_run_status(const struct run *run, int code)
{
	return run->problem_count > 0 ? EXIT_USAGE : code;
}

void cached_run_print_json(const struct run *run, struct buf *members)
{
	struct buf out = {0};

	buf_text(&out, "{\"schema\": 1, \"root\": ");
	buf_json_string(&out, run->program->root);
	buf_text(&out, ",\n ");
	buf_add(&out, members->data, members->length);
	buf_text(&out, "}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
	buf_free(members);
}

void cached_run_print_text(struct buf *lines)
{
	if (lines->length > 0)
		show_wrapped(stdout, lines->data);
	buf_free(lines);
}
