#!/bin/sh
# The program prints text with show_print, which makes untrusted text safe. This test lists the few other calls that
# print.
. "$(dirname "$0")/../harness.sh"

# `raw FOLDER`: lists the calls below FOLDER that print without show_print, as "FILE: CALL".
raw() {
	(cd "$1" && grep -rnoE '(^|[^a-z_])(v?f?printf|f?puts|f?putc|putchar|dprintf|perror|fwrite) ?\([^;]*' \
		--include='*.c' base check cli dataset cache engine extract fleet git models remote report serve testgen watcher workers reftest.c) |
		sed -E 's/:[0-9]+:[^a-z_]?/: /' | grep -vFf "$work/allowed" || :
}

# These calls print bytes that are not meant for a reader (messages between processes, archives, JSON), constant texts,
# or text that was made safe before.
cat >"$work/allowed" <<'LIST'
base/err.c: fputs("reftest: out of memory\n"
base/fold_output.c: fwrite(lines.data
base/show.c: fwrite(shown.data
base/show_wrapped.c: fwrite(lines.data
cli/affected.c: fwrite(out.data, 1, out.length, stdout)
cli/approve.c: fwrite(out.data, 1, out.length, stdout)
cli/cache.c: fwrite(out.data, 1, out.length, stdout)
cli/cached_run.c: fwrite(out.data, 1, out.length, stdout)
cli/check.c: fputs(colour
cli/check.c: fwrite(out.data, 1, out.length, stdout)
cli/doctor.c: fwrite(out.data
cli/extract.c: fwrite(out.data, 1, out.length, stdout)
cli/help.c: 
cli/list.c: fwrite(out.data, 1, out.length, stdout)
cli/serve_verifier.c: 
cli/status.c: fputs(colour
cli/verify.c: fwrite(line.data, 1, line.length, stdout)
fleet/merge.c: fwrite(m->replies.data
fleet/worker.c: fwrite(worker->out.data
report/behaviour_diff.c: fwrite(out.data
report/ci_export.c: fwrite(text.data
report/events.c: fwrite(out->data
report/progress.c: fwrite(text, 1, length, display->terminal)
report/progress.c: fwrite(out.data
report/run_json.c: fwrite(out.data
report/text.c: fputs(colour
report/text.c: fwrite(
testgen/update_file.c: fwrite(
watcher/tty.c: fwrite(out.data
watcher/tty.c: fwrite(line.text
workers/judge/judge.c: 
workers/judge/trial_save.c: fwrite(h
LIST
expectations=$((expectations + 1))
[ -z "$(raw "$top")" ] || fail "these calls print without show_print: $(raw "$top")"

# Tests `raw` itself: if a copy of the sources has one more call, which is not in the list, `raw` must print this call.
mkdir "$work/copy"
(cd "$top" && cp -r base check cli dataset cache engine extract git models remote report serve testgen watcher workers reftest.c "$work/copy")
echo 'static void f(void) { printf("%s", name); }' >>"$work/copy/cli/status.c"
expectations=$((expectations + 1))
[ "$(raw "$work/copy" | wc -l)" = 1 ] || fail "a planted printf is not found"
