#!/bin/sh
# own interpreter: the test checks what a reference can access.
# A machine has gaps if its sandbox lacks some layers. If a remote has the verdict of a fully contained reference, a
# machine with gaps does not replace it. If the remote has no verdict, a machine with gaps writes its verdict, and a
# verdict of a fully contained reference later replaces it.
. "$(dirname "$0")/../harness.sh"
. "$top/tests/e2e/remotes.sh"
given tiny_gemm
redis_begins
verify
expect_exit 0
[ "$(value "s['containment']")" = full ] || skip "references are not fully contained on this machine"
all=$(value "s['cases_run']")
${CC:-cc} -O1 -D_GNU_SOURCE -o "$work/restrict" "$top/tests/e2e/tools/restrict.c" || fail "restrict.c does not compile"
strong=$reftest
printf '#!/bin/sh\nexec "%s" --no-namespaces "%s" "$@"\n' "$work/restrict" "$strong" >"$work/weak"
chmod +x "$work/weak"

runs() { # runs PROGRAM: runs all cases and writes their verdicts to the remote
	reftest=$1
	verify --force
	expect_exit 0
	expect_ran "$all"
	reftest=$strong
}
remote_has() { # remote_has FULL: expects that all verdicts of the remote (FULL is True) or none (False) say "full"
	forget
	verify --cached-only
	expect_exit 0
	expect_cached "$all"
	expect "[str(x) == 'full' for x in all_of('tiny_gemm', 'containment')] == [$1] * $all"
}

remote_has True
runs "$work/weak"
expect "s['containment'] != 'full'"
remote_has True
redis flushall >/dev/null
runs "$work/weak"
remote_has False
runs "$strong"
remote_has True
