#!/bin/sh
# own interpreter: the test checks what a reference can access.
# A reference tries to read and to change files of its user, of the dataset and of reftest, to reach the network, other
# processes and the kernel, and to use up processes, memory and disk. Every attempt fails, except those that the verdict
# names as possible. The test makes the same attempts in four ways: with all layers of the sandbox that this machine
# supports, without Landlock, without namespaces, and without both.
. "$(dirname "$0")/../harness.sh"
[ "$(uname -m)" = x86_64 ] || skip "the attempts use numbers of system calls of x86-64"
[ "$device" = cpu ] || skip "the limits of memory are those of the CPU"
${CC:-cc} -O1 -D_GNU_SOURCE -o "$work/restrict" "$top/tests/e2e/tools/restrict.c" || fail "restrict.c does not compile"
mkdir "$work/home"
export HOME="$work/home"
echo secret >"$work/home/secret"
echo others >"$work/beside"
"$python" -I -S -c 'import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
time.sleep(600)' >"$work/port" &
server=$!
sleep 600 &
sleeper=$!
trap 'code=$?; kill $server $sleeper 2>/dev/null; test_end $code' EXIT
while [ ! -s "$work/port" ]; do sleep 0.05; done
port=$(cat "$work/port")

# The reference raises an error with the names of the attempts that succeeded.
define tries <<P
import ctypes
import os
import signal
import socket
import threading

import torch

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def read(path):
    with open(path, "rb") as file:
        file.read(1)


def write(path):
    open(path, "r+b").close()  # harmless if it succeeds


def connect(family, address):
    with socket.socket(family) as one:
        one.connect(address)


def start_many():
    end = threading.Event()
    threading.stack_size(65536)
    try:
        for _ in range(16 * os.cpu_count() + 1200):
            threading.Thread(target=end.wait).start()
    finally:
        end.set()


def fill_disk():
    with open(os.path.join(os.environ["TMPDIR"], "big"), "wb") as file:
        os.truncate(file.fileno(), 1 << 40)


def fill_folder():
    for i in range(2):
        with open(os.path.join(os.environ["TMPDIR"], "big%d" % i), "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 900 << 20)


def list_others():
    if len([name for name in os.listdir("/proc") if name.isdigit()]) < 5:
        raise OSError("only own processes")


class Attribute(ctypes.Structure):
    _fields_ = [("limit", ctypes.c_uint64 * 2)]


attempts = {
    "home": lambda: read("$work/home/secret"),
    "home by listing": lambda: os.listdir("$work/home"),
    "file beside the dataset": lambda: read("$work/beside"),
    "dataset": lambda: read("$root/definitions/rmsnorm/tries.json"),
    "cache": lambda: os.listdir("$root/.reftest"),
    "sources of reftest": lambda: read("$top/python/runner.py"),
    "written dataset": lambda: write("$root/definitions/rmsnorm/tries.json"),
    "written interpreter": lambda: write(torch.__file__),
    "written file of the system": lambda: write("/etc/passwd"),
    "new file beside the dataset": lambda: os.mkdir("$work/planted"),
    "network": lambda: connect(socket.AF_INET, ("127.0.0.1", $port)),
    "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "local socket": lambda: connect(socket.AF_UNIX, "$root/.reftest/watch.sock"),
    "signal": lambda: os.kill($sleeper, signal.SIGKILL),
    "signal to parent": lambda: os.kill(os.getppid() or 1 << 22, signal.SIGTERM),
    "memory of another process": lambda: read("/proc/$sleeper/mem"),
    "environment of another process": lambda: read("/proc/$sleeper/environ"),
    "list of processes": list_others,
    "ptrace": lambda: call(101, 16, $sleeper, 0, 0),
    "limit of another process": lambda: call(302, $sleeper, 7, 0, ctypes.byref(Attribute())),
    "sysctl": lambda: write("/proc/sys/kernel/core_pattern"),
    "sysrq": lambda: write("/proc/sysrq-trigger"),
    "user namespace": lambda: call(272, 0x10000000),
    "mount": lambda: call(165, b"x", b"/tmp", b"tmpfs", 0, 0),
    "bpf": lambda: call(321, 0, ctypes.byref(Attribute()), 16),
    "perf": lambda: call(298, ctypes.byref(Attribute()), 0, -1, -1, 0),
    "keys": lambda: call(250, 0, -3, 0),
    "io_uring": lambda: call(425, 1, ctypes.create_string_buffer(256)),
    "System V memory": lambda: call(29, 1234, 4096, 0o1600),
    "host name": lambda: call(170, b"planted", 7),
    "descriptor of the user's shell": lambda: os.write(9, b"x"),
    "many processes": start_many,
    "large file": fill_disk,
    "full disk": fill_folder,
    "core dump": lambda: None if __import__("resource").getrlimit(4)[1] else read("/none"),
    "memory": lambda: [torch.empty(1 << 33) for _ in range(1 << 10)],
}


def run(hidden_states, weight):
    done = []
    for name, attempt in attempts.items():
        try:
            attempt()
            done.append(name)
        except (OSError, RuntimeError, MemoryError, PermissionError):
            pass
    raise AssertionError("succeeded: " + "; ".join(done) + ".")
P
define well <<'P'
import torch


def run(hidden_states, weight):
    x = hidden_states.float()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)
P

# `tried LIST OPTION…`: runs reftest under tests/e2e/tools/restrict.c with the OPTIONs, and expects that exactly the
# attempts in LIST succeed.
tried() {
	list=$1
	shift
	step="the attempts below restrict $*"
	status=0
	"$work/restrict" "$@" "$reftest" verify --all --alone --force --format json --device "$device" --sizes small --jobs 1 \
		>"$work/out" 2>"$work/err" 9>"$work/inherited" || status=$?
	expect_exit 1
	expect_status well passed
	expect "'succeeded: $list.' in d['tries']['cases'][0]['message']"
	kill -0 $sleeper || fail "$step: a process of the user was killed"
	[ ! -e "$work/planted" ] || fail "$step: a folder was created"
}

tried ''
expect "set(map(str, all_of('well', 'containment'))) == {'full'} and s['containment'] == 'full'"
[ ! -s "$work/err" ] || fail "a complete sandbox prints a note: $(cat "$work/err")"
run doctor --format json
expect "[x['state'] for x in r['checks'] if x['name'] == 'containment'] == ['ok'] and r['gaps'] == []"

tried '' --no-landlock
expect "s['containment'] == 'full'" # namespaces alone close every gap

# Without PID namespaces, nothing limits the total memory of a reference's processes. If the user is root, nothing
# limits the number of these processes either.
processes=
[ "$(id -u)" != 0 ] || processes='many processes'
tried "$processes" --no-pid-namespaces
expect "{'memory'} <= set(s['containment']) <= {'memory', 'processes'}"

# Without namespaces, only Landlock and seccomp remain, and neither limits disk use.
tried "${processes:+$processes; }full disk" --no-namespaces
expect "{'attributes', 'disk', 'memory'} <= set(s['containment']) <= {'attributes', 'disk', 'memory', 'processes'}"

# Without Landlock and namespaces, references can access files and processes of the user, and the verdict says so.
run_weak() {
	status=0
	"$work/restrict" --no-namespaces --no-landlock "$reftest" "$@" >"$work/out" 2>"$work/err" || status=$?
}
define peeks <<P
import socket


def reads(path):
    try:
        open(path, "rb").close()
        return path
    except OSError:
        return ""


def run(hidden_states, weight):
    try:
        network = bool(socket.create_connection(("127.0.0.1", $port)))
    except OSError:
        network = False
    raise AssertionError("read: %s%s, network: %s." % (reads("$work/home/secret"), reads("$root/definitions/rmsnorm/well.json"), network))
P
run_weak verify peeks --alone --force --format json --device "$device" --sizes small --jobs 1
expect "'read: $work/home/secret$root/definitions/rmsnorm/well.json, network: False.' in d['peeks']['cases'][0]['message']"
expect "{'files', 'attributes', 'signals', 'process_memory', 'process_list', 'disk', 'memory'} <= set(s['containment'])"
expect "not {'network', 'local_services', 'ipc', 'kernel', 'capabilities'} & set(s['containment'])"
gaps=$(value "sorted(s['containment'])")
run_weak doctor --format json
expect "sorted(r['gaps']) == $gaps" # doctor says the same
run verify peeks --alone --force --format json --device "$device" --sizes small --jobs 1
expect "'read: , network: False.' in d['peeks']['cases'][0]['message']"
rm definitions/rmsnorm/peeks.json

# If the sandbox cannot mount anything, a reference sees all processes of the machine, including the runners of other
# references. But it cannot open the memory of any of them. The two references run at the same time for some seconds.
define looks_around <<'P'
import os
import time


def run(hidden_states, weight):
    opened, most = set(), 0
    until = time.monotonic() + 4
    while time.monotonic() < until and not opened:
        seen = [pid for pid in os.listdir("/proc") if pid.isdigit() and pid != os.readlink("/proc/self")]
        most = max(most, len(seen))
        for pid in seen:
            try:
                os.close(os.open("/proc/%s/mem" % pid, os.O_RDWR))
                opened.add(pid)
            except OSError:
                pass
        time.sleep(0.01)
    raise AssertionError("many: %s, opened: %s." % (most > 5, sorted(opened)))
P
define rests <<'P'
import time


def run(hidden_states, weight):
    time.sleep(4)
    raise AssertionError("rested")
P
status=0
"$work/restrict" --no-mounts --no-landlock "$reftest" verify looks_around rests --force --format json --device "$device" \
	--sizes small --jobs 2 >"$work/out" 2>"$work/err" || status=$?
expect "'many: True, opened: [].' in d['looks_around']['cases'][0]['message']"
rm definitions/rmsnorm/looks_around.json definitions/rmsnorm/rests.json

# The temporary folders of runners are removed at the end of a run.
mkdir "$work/temporary"
TMPDIR=$work/temporary "$work/restrict" --no-namespaces "$reftest" verify well --alone --force --device "$device" --sizes small \
	>"$work/out" 2>"$work/err"
[ -z "$(ls -A "$work/temporary")" ] || fail "temporary files are left: $(ls -A "$work/temporary")"

# In text format, a run reports the missing layers of the sandbox only once.
run_weak verify well --alone --force --device "$device" --sizes small --jobs 1
expect_says 'references are not fully contained' 'references can read and change files of your user;'

# With --require-containment, no reference runs, and the verdict of an earlier run is not accepted.
run_weak verify well --alone --force --format json --device "$device" --sizes small
expect_exit 0
run_weak verify well --alone --require-containment files --device "$device" --sizes small
expect_exit 3
expect_says 'no reference runs, because this machine does not meet --require-containment files'
run_weak verify well --alone --require-containment network --device "$device" --sizes small --format json
expect_exit 0
expect "s['cases_run'] == 0"
run verify well --alone --require-containment full --device "$device" --sizes small --format json
expect_exit 0
expect "s['cases_cached'] == 0 and s['containment'] == 'full'"
run verify well --alone --require-containment everything --device "$device"
expect_exit 2
run_weak doctor
expect_says 'references can read and change files of your user' 'mount_namespace'
