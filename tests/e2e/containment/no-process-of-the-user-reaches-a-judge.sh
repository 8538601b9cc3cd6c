#!/bin/sh
# own interpreter: the test checks what a reference can access.
# No other process of the user can open the memory of the main process, of a judge, or of the process that talks to the
# remote cache, not even while one of them starts. The attacker in this test is a process of the same user without a
# sandbox, so it can do more than a reference can. The attacker attacks each new process as soon as this process has a
# process id. A process is at risk after exec: other processes of the user can open it until it forbids this again.
. "$(dirname "$0")/../harness.sh"

# The test drops the capabilities of root, because root could open every process with them.
if [ "$(id -u)" = 0 ]; then
	setpriv --bounding-set=-all true 2>/dev/null || skip "setpriv cannot drop capabilities here"
	plain="setpriv --bounding-set=-all --inh-caps=-all"
else
	plain=
fi
printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$plain" "$build/reftest" >"$work/reftest"
chmod +x "$work/reftest"
reftest=$work/reftest

cat >"$work/attacker.py" <<'P'
"""attacker.py MAIN: tries to open the memory of each child of the process MAIN for writing, until MAIN ends. Prints a line
for each process of reftest that it reached. Children that run Python are left out."""
import os, sys

main, reached, closed = int(sys.argv[1]), set(), False


def stat_of(pid):
    with open("/proc/%d/stat" % pid) as file:
        head, _, rest = file.read().rpartition(")")
    return head.partition("(")[2], int(rest.split()[1])


def attempt(pid):
    try:
        os.close(os.open("/proc/%d/mem" % pid, os.O_RDWR))
    except OSError:
        return False
    return True


def newest():
    with open("/proc/loadavg") as file:
        return int(file.read().split()[-1])


def has_child():
    try:
        with open("/proc/%d/task/%d/children" % (main, main)) as file:
            return file.read().strip() != ""
    except OSError:
        return False


print("begins", flush=True)
while os.path.exists("/proc/%d/stat" % main):
    last = newest()
    if not closed and has_child():  # before, the number may still be that of a shell
        closed = True
        if attempt(main):
            print("reached the main process", flush=True)
    for pid in range(last - 3, last + 6):
        if pid in reached or pid == main or not attempt(pid):
            continue
        try:
            name, parent = stat_of(pid)
            with open("/proc/%d/cmdline" % pid, "rb") as file:
                words = file.read()
        except (OSError, ValueError):
            continue
        if parent == main and b"python" not in words and b"reftest" in words:
            reached.add(pid)
            print("reached the child %d (%s)" % (pid, name), flush=True)
P

given tiny_norm
verify # Python's byte code is cached, and the definition is known to pass
expect_exit 0
attacked() { # attacked WORD...: attacks the processes of a run with these options
	begin verify --format json --device "$device" --sizes small --jobs 4 "$@"
	# shellcheck disable=SC2086 # words
	$plain "$python" -IS "$work/attacker.py" "$program" >>"$work/attacks" 2>&1 &
	attacker=$!
	ended
	wait "$attacker" || fail "the attacker of a run failed: $(tail -n 1 "$work/attacks")"
}
for round in 1 2 3 4 5 6; do
	attacked --force
	expect_exit 0
done
# The process that talks to the remote cache starts at the first lookup. Nobody listens at this address.
REFTEST_REMOTE=redis://127.0.0.1:1?timeout=1
export REFTEST_REMOTE
for round in 1 2 3 4 5 6 7 8; do
	rm -rf .reftest
	attacked --cached-only
	expect_exit 3
done
[ "$(grep -c '^begins$' "$work/attacks")" = 14 ] || fail "the attacker did not work: $(cat "$work/attacks")"
expectations=$((expectations + 1))
! grep '^reached' "$work/attacks" >"$work/python" || fail "$(sort "$work/python" | uniq -c | head -n 5)"
