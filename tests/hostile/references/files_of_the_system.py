# Opens files of the system, of the kernel and of devices for writing.
# expect: error raised
# gap: none
import os

PATHS = [
    "/etc/passwd", "/usr/bin/env", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/mm/ksm/run",
    "/dev/mem", "/dev/kmsg", "/dev/port", "/dev/fuse", "/dev/kvm", "/dev/sda", "/dev/vda", "/dev/loop-control",
]  # fmt: skip


def run(hidden_states, weight):
    reached = []
    for path in PATHS:
        try:
            os.close(os.open(path, os.O_WRONLY))
            reached.append(path)
        except OSError:
            pass
    raise AssertionError(f"reached: {reached}" if reached else "contained")
