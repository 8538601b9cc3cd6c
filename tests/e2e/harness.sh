# harness - the shell functions of the end-to-end tests. Each test runs the real program in a dataset of its own and
# checks the results.
#
#	# What the test is about, as a sentence.
#	. "$(dirname "$0")/../harness.sh"
#	given tiny_norm
#	verify
#	expect_ran 2
#
# The working directory is the root of the test's dataset. `verify` runs `reftest verify` on the CPU (or on
# $REFTEST_DEVICE) at the small size. It stores the JSON output, standard error and exit status, which the functions
# `expect…` check. The first expectation that fails ends the test with a message and the program's output. A script is
# one test and prints one line of TAP. When a test ends, no process that it started may still run, and no sanitizer may
# have reported an error.
set -eu
test=$(basename "$0" .sh)
top=$(cd "$(dirname "$0")" && while [ ! -f reftest.c ]; do cd ..; done && pwd)
build=$top/${REFTEST_BUILD:-build}
reftest=$build/reftest
# Tests use Python interpreters that have already imported torch (tests/imported_torch/server.py). A test with "# own
# interpreter: WHY" at its head starts its own interpreters instead. A test that calls `own_interpreters` does the same
# after this call. `$python $pytest` runs pytest.
own_interpreters() {
	unset REFTEST_RUNNER REFTEST_PROVIDER
	pytest="-m pytest"
}
pytest="-m pytest"
if [ -n "${REFTEST_TEST_TORCH:-}" ] && ! grep -q '^# own interpreter:' "$0"; then
	export REFTEST_RUNNER="$top/tests/imported_torch/runner.py" REFTEST_PROVIDER="$top/tests/imported_torch/provider.py"
	pytest=$top/tests/imported_torch/pytest.py
fi
work=$(mktemp -d)
root=$work/dataset
mkdir -p "$root"
cd "$root"
unset REFTEST_ROOT FIB_DATASET_PATH REFTEST_KERNELS VIRTUAL_ENV 2>/dev/null || true
export REFTEST_TEST="$test.$$" # marks every process of this test through its environment
if [ -n "${REFTEST_PYTHON:-}" ]; then
	python=$REFTEST_PYTHON
elif [ -x "$top/.venv/bin/python" ]; then
	python=$top/.venv/bin/python
else
	python=$(command -v python3)
fi
device=${REFTEST_DEVICE:-cpu}
status=0 expectations=0 step=start sessions=
: >"$work/out" >"$work/err"
echo "1..1"
trap 'test_end $?' EXIT
trap 'exit 130' INT TERM

test_end() {
	code=$1
	set +e
	trap - EXIT
	if [ "$code" = 0 ] && ! no_process_left; then
		echo "# a process of the test is still running: $(processes)"
		code=1
	fi
	for process in $(processes); do kill -9 "$process" 2>/dev/null; done
	if [ "$code" = 0 ]; then
		echo "ok 1 - $test ($expectations expectations)"
	elif [ "$code" = 77 ]; then
		echo "ok 1 - $test # SKIP $step"
		code=0
	else
		echo "not ok 1 - $test: $step"
	fi
	chmod -R u+w "$work" 2>/dev/null
	rm -rf "$work"
	exit "$code"
}

# Lists the processes of this test, except zombies: the processes in a session that `run` started, and, in any session,
# the processes with the test's REFTEST_TEST in their environment. (If a process has disabled debugging of itself, only
# root can read its environment.)
processes() {
	{
		cat /proc/[0-9]*/stat 2>/dev/null | awk -v sessions=" $sessions " '{
			id = $1
			sub(/^.*\) /, "")
			if ($1 != "Z" && index(sessions, " " $4 " "))
				print id
		}'
		grep -lazE "^REFTEST_TEST=$REFTEST_TEST\$" /proc/[0-9]*/environ 2>/dev/null | while IFS=/ read -r _ _ id _; do
			case $(cat "/proc/$id/cmdline" 2>/dev/null | tr '\0' ' ') in *reftest* | *python*) echo "$id" ;; esac
		done
	} | sort -un
}

# Succeeds if no process of this test is left. The function waits, because a killed process needs some time to exit,
# especially on a busy machine.
no_process_left() {
	for _ in $(seq 100); do
		[ -z "$(processes)" ] && return 0
		sleep 0.1
	done
	return 1
}

fail() {
	step=$*
	{
		echo "# exit status $status; standard output:"
		head -c 6000 "$work/out" | sed 's/^/#   /'
		echo "# standard error:"
		head -c 3000 "$work/err" | sed 's/^/#   /'
	}
	exit 1
}

# `skip WHY`: ends the test as skipped, and not as passed, because this machine cannot run it.
skip() {
	step=$*
	exit 77
}

# ---- the dataset ----------------------------------------------------------------------------------------------------

# `given NAME…`: copies definitions with their workloads and blobs from tests/data/dataset or the starter dataset.
given() {
	for name in "$@"; do
		found=
		for from in "$top/tests/data/dataset" "$top"; do
			for file in "$from"/definitions/*/"$name".json; do
				[ -f "$file" ] && [ -z "$found" ] || continue
				found=$from
				type=$(basename "$(dirname "$file")")
				mkdir -p "definitions/$type" "workloads/$type"
				cp "$file" "definitions/$type/"
				[ ! -f "$from/workloads/$type/$name.jsonl" ] || cp "$from/workloads/$type/$name.jsonl" "workloads/$type/"
				[ ! -d "$from/blob/workloads/$type/$name" ] || {
					mkdir -p "blob/workloads/$type"
					cp -r "$from/blob/workloads/$type/$name" "blob/workloads/$type/"
				}
			done
		done
		[ -n "$found" ] || fail "there is no definition $name"
	done
}

# `define NAME`: creates a small RMS norm with the reference on standard input. Like `edit`, replaces the file in one
# step, by a rename.
define() {
	mkdir -p definitions/rmsnorm
	"$python" -I -S -c '
import json, sys
rows = {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}
json.dump({
    "name": sys.argv[1], "op_type": "rmsnorm", "description": "A small RMS norm. Epsilon is 1e-6.",
    "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": 64}},
    "inputs": {"hidden_states": rows, "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"}},
    "outputs": {"output": rows}, "reference": sys.stdin.read(),
}, open("definitions/rmsnorm/.defined", "w"), indent=2)' "$1" &&
		mv definitions/rmsnorm/.defined "definitions/rmsnorm/$1.json"
}

# `define_solution AUTHOR DEFINITION NAME`: creates a solution of a definition that `define` created. The code is on
# standard input; its entry point is `run`.
define_solution() {
	mkdir -p "solutions/$1/rmsnorm/$2"
	"$python" -I -S -c '
import json, sys
author, definition, name = sys.argv[1:]
folder = f"solutions/{author}/rmsnorm/{definition}"
spec = {"language": "python", "target_hardware": ["cpu"], "entry_point": "main.py::run", "destination_passing_style": False}
json.dump({
    "name": name, "definition": definition, "author": author, "spec": spec,
    "sources": [{"path": "main.py", "content": sys.stdin.read()}],
}, open(f"{folder}/.defined", "w"), indent=2)' "$@" &&
		mv "solutions/$1/rmsnorm/$2/.defined" "solutions/$1/rmsnorm/$2/$3.json"
}

# `interpreter_with_packages`: makes the interpreter $other. It has the packages of $python (their folder is $packages),
# and the test may install more packages into its own folder $site.
interpreter_with_packages() {
	"$python" -m venv --without-pip "$work/venv" >"$work/out" 2>&1 || skip "this Python cannot create virtual environments"
	other=$work/venv/bin/python
	site=$("$other" -c 'import site; print(site.getsitepackages()[0])')
	packages=$("$python" -c 'import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec("torch").origin)))')
	echo "$packages" >"$site/packages.pth"
}

# `edit FILE OLD NEW`: replaces the only occurrence of the text OLD. `edit` replaces the file in one step. If `edit`
# truncated the file and then wrote to it, a watcher could report an empty file in between.
edit() {
	"$python" -I -S -c '
import os, sys
path, old, new = sys.argv[1:]
text = open(path, encoding="utf-8").read()
if text.count(old) != 1:
    sys.exit(f"{path} holds {old!r} {text.count(old)} times, not once")
path = os.path.realpath(path)
beside = os.path.join(os.path.dirname(path), ".edited")
with open(beside, "w", encoding="utf-8") as out:
    out.write(text.replace(old, new))
os.chmod(beside, os.stat(path).st_mode)
os.replace(beside, path)' "$@" || fail "$1 could not be edited"
}

# `with_gates`: gives references the functions tell_started() and gate(STARTED, GO). A call of tell_started or gate ends
# the wait of `started`. gate then waits until the file GO exists; if GO already exists, gate does nothing. References
# cannot access the test's files. Therefore their runner opens the test's folder before it enters the sandbox.
with_gates() {
	cat >"$work/gates.py" <<P
import builtins, os, time

place = os.open("$work", os.O_RDONLY)
starts = os.open("$work/starts", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def there(path):
    try:
        os.stat(os.path.basename(path), dir_fd=place)
    except FileNotFoundError:
        return False
    return True

def tell_started():
    if os.fstat(starts).st_size == 0:
        os.write(starts, b"started")

def gate(started, go):
    if not there(go):
        tell_started()
        while not there(go):
            time.sleep(0.01)

builtins.gate, builtins.tell_started = gate, tell_started
P
	echo "__file__ = '$top/python/runner.py'" >>"$work/gates.py"
	echo 'exec(compile(open(__file__).read(), __file__, "exec"))' >>"$work/gates.py"
	if [ -n "${REFTEST_RUNNER:-}" ]; then
		sed "s|\"runner.py\"|\"$work/gates.py\"|; s|os.path.*__file__))|\"$top/tests/imported_torch\"|" "$REFTEST_RUNNER" >"$work/runner.py"
	else
		mv "$work/gates.py" "$work/runner.py"
	fi
	export REFTEST_RUNNER="$work/runner.py"
}

# `make_relabel`: compiles tests/e2e/tools/relabel.c to $work/relabel.
make_relabel() {
	sanitize=
	case $build in *-asan*) sanitize=-fsanitize=address,undefined ;; esac
	# shellcheck disable=SC2086,SC2046 # words
	${CC:-cc} -std=c11 -g -D_GNU_SOURCE $sanitize -I"$top" -I"$build" -o "$work/relabel" \
		"$top/tests/e2e/tools/relabel.c" -Wl,--start-group "$build/obj/program.a" "$build/obj/kernels.a" \
		"$build/obj/base.a" -Wl,--end-group -Wl,-Bstatic -lstdc++ -Wl,-Bdynamic -fopenmp -ldl -lm -pthread -lzstd \
		$(pkg-config --libs libcjson libxxhash lmdb 2>/dev/null || echo -lcjson -lxxhash -llmdb) 2>"$work/err" ||
		fail "relabel.c does not compile"
}

# ---- running --------------------------------------------------------------------------------------------------------

# `run ARGUMENT…`: runs reftest
run() {
	begin "$@"
	ended
}

# `ended`: waits for the program that `begin` started. Fails if a sanitizer reported an error in one of its processes.
ended() {
	wait "$program" && status=0 || status=$?
	! grep -qE 'runtime error:|Sanitizer' "$work/err" || fail "$step: a sanitizer reported an error"
}

# `begin ARGUMENT…`: starts reftest without waiting for it, and sets $program to its process id. `ended` must follow.
begin() {
	step="reftest $*"
	setsid "$reftest" "$@" >"$work/out" 2>"$work/err" </dev/null &
	program=$!
	sessions="$sessions $program"
}

# `started`: waits until a reference has called tell_started or gate, or another child of the program has created
# $work/started. Then deletes $work/started and empties $work/starts, so that `started` can be called again. Fails if
# the program ends first.
started() {
	while [ ! -e "$work/started" ] && [ ! -s "$work/starts" ] && kill -0 "$program" 2>/dev/null; do sleep 0.02; done
	[ -e "$work/started" ] || [ -s "$work/starts" ] || fail "$step: it exited too early"
	rm -f "$work/started"
	[ ! -e "$work/starts" ] || : >"$work/starts"
}

# `watch OPTION…`: starts `reftest watch --json` and waits until the watcher is ready; `await` reads its output.
watch() {
	begin watch --json --device "$device" --sizes small --jobs 1 "$@"
	echo 0 >"$work/awaited"
	await "e['event'] == 'ready'"
}

# `await EXPRESSION`: waits for the next event e for which this Python expression is true. After `await`,
# `expect_events` checks all events since the previous `await`.
await() {
	expectations=$((expectations + 1))
	"$python" -I -S -c '
import json, os, sys, time
work, program, expression = sys.argv[1:]
seen, end = int(open(work + "/awaited").read()), time.monotonic() + 120
a = []
with open(work + "/out") as out:
    out.seek(seen)
    line = ""
    while True:
        line += out.readline()
        if not line.endswith("\n"):
            if time.monotonic() > end or not os.path.exists("/proc/" + program):
                sys.exit("the event did not come; the last ones are " + str(a[-3:]))
            time.sleep(0.005)
            continue
        seen += len(line.encode())
        e = json.loads(line)
        a.append(e)
        line = ""
        if eval(expression):
            break
json.dump(a, open(work + "/events", "w"))
open(work + "/awaited", "w").write(str(seen))' "$work" "$program" "$1" 2>"$work/python" ||
		fail "$step: awaited $1: $(tail -n 1 "$work/python")"
}

# `expect_events EXPRESSION`: expects a Python expression to be true for the events that the last `await` read. In the
# expression, `a` is the list of these events, and `e` is the last of them, for which `await` waited.
expect_events() {
	expectations=$((expectations + 1))
	"$python" -I -S -c '
import json, sys
a = json.load(open(sys.argv[1] + "/events"))
e = a[-1]
sys.exit(not eval(sys.argv[2]))' "$work" "$1" 2>"$work/python" ||
		fail "$step: not true: $1 of $(head -c 6000 "$work/events") $(tail -n 1 "$work/python")"
}

await_batch() { await "e['event'] == 'batch'"; }

# `end_watch`: ends the watcher as Ctrl-C does, and expects that none of its processes is left.
end_watch() {
	kill -INT "$program"
	ended
	expect_exit 130
	expect_no_process
}

verify() { run verify --format json --device "$device" --sizes small --jobs 1 "$@"; }

# ---- expectations ---------------------------------------------------------------------------------------------------

expect_exit() {
	expectations=$((expectations + 1))
	[ "$status" = "$1" ] || fail "$step: exit status $status, expected $1"
}

json_names='
import json, sys
r = json.load(open(sys.argv[1]))
s = r.get("summary")
d = {one["name"]: one for one in r.get("definitions", [])}
c = {(name, case["id"]): case for name, one in d.items() for case in one.get("cases", [])}
all_of = lambda name, key: [case[key] for case in d[name]["cases"]]
'

# `value EXPRESSION`: prints the value of a Python expression about the last JSON output. The expression may use the
# names that `expect` defines.
value() { "$python" -I -S -c "$json_names"'print(eval(sys.argv[2]))' "$work/out" "$1"; }

# `expect EXPRESSION`: expects a Python expression about the last JSON output to be true. In the expression, `r` is the
# whole object, and `s` is its summary. `d` has the definitions by name, and `c` the cases by name and id. `all_of(name,
# key)` lists the values of this key in the cases of a definition.
expect() {
	expectations=$((expectations + 1))
	"$python" -I -S -c "$json_names"'sys.exit(not eval(sys.argv[2]))' "$work/out" "$1" 2>"$work/python" ||
		fail "$step: not true: $1 $(tail -n 1 "$work/python")"
}

expect_ran() { expect "s['cases_run'] == $1"; }
expect_cached() { expect "s['cases_cached'] == $1"; }
# `expect_status NAME STATUS [REASON]`: expects that the definition NAME has the status STATUS and the reason REASON.
expect_status() {
	expect "d['$1']['status'] == '$2'"
	[ -z "${3:-}" ] || expect "d['$1']['reason'] == '$3'"
}

# `expect_says TEXT…`: expects each text on standard output or standard error.
expect_says() {
	for text in "$@"; do
		expectations=$((expectations + 1))
		cat "$work/out" "$work/err" | grep -qF -e "$text" || fail "$step: the output does not contain '$text'"
	done
}

expect_silence_about() {
	for text in "$@"; do
		expectations=$((expectations + 1))
		! cat "$work/out" "$work/err" | grep -qF -e "$text" || fail "$step: the output contains '$text'"
	done
}

# `expect_why NAME TEXT…`: expects each text in the output of `reftest explain NAME`.
expect_why() {
	name=$1
	shift
	run explain --device "$device" "$name"
	expect_says "$@"
}

expect_nothing_to_do() {
	verify --changed
	expect_exit 0
	expect_ran 0
}

expect_no_process() {
	expectations=$((expectations + 1))
	no_process_left || fail "$step: processes are left: $(processes)"
}

# `fla_is_here`: lets $python import the flash-linear-attention and the Triton that tools/setup.sh --tests installs.
fla_is_here() {
	find='import importlib.util as u, sys; sys.exit(not (u.find_spec("fla") and u.find_spec("triton")))'
	if ! "$python" -c "$find"; then
		for site in "$top"/.venv-tests/lib/python3*/site-packages; do
			[ -d "$site" ] && PYTHONPATH=$site
		done
		export PYTHONPATH
		"$python" -c "$find" || fail "there is no fla: tools/setup.sh --tests installs it"
	fi
}

# ---- generated tests ------------------------------------------------------------------------------------------------

# `ruff_is_here`: sets $ruff to the path of ruff.
ruff_is_here() {
	ruff=$top/.venv-tests/bin/ruff
	[ -x "$ruff" ] || ruff=$(command -v ruff) || fail "there is no ruff: tools/setup.sh --tests installs it"
}

# `pytest_is_here`: lets $python import the pytest that tools/setup.sh --tests installs.
pytest_is_here() {
	for site in "$top"/.venv-tests/lib/python3*/site-packages; do
		[ -d "$site" ] && PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
	done
	export PYTHONPATH
	"$python" -c 'import pytest' 2>/dev/null || fail "there is no pytest: tools/setup.sh --tests installs it"
	# Python cannot load a library that is built with the address sanitizer.
	[ -f "$top/build/libreftest_kernels.so" ] || fail "there is no build/libreftest_kernels.so: make builds it"
	PYTHONDONTWRITEBYTECODE=1
	export PYTHONDONTWRITEBYTECODE
}

# `run_pytest WORD…`: runs plain pytest on the generated files, with reftest's kernels available.
run_pytest() {
	step="pytest $*"
	# shellcheck disable=SC2086 # words
	REFTEST_KERNELS=$top/build "$python" $pytest -q -p no:cacheprovider --device "${REFTEST_DEVICE:-cpu}" \
		tests/references "$@" >"$work/out" 2>"$work/err" && status=0 || status=$?
}
