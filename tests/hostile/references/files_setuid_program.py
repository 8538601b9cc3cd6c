# Gains privileges through a program with the set-user-ID bit, and makes such a program.
# expect: error raised
# gap: capabilities
import os
import re
import shutil
import subprocess


def run(hidden_states, weight):
    path = os.path.join(os.environ["TMPDIR"], "program")
    try:
        shutil.copy("/bin/cat", path)
        os.chmod(path, 0o4755)
        text = subprocess.run([path, "/proc/self/status"], capture_output=True, text=True).stdout
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    rights = int(re.search(r"CapPrm:\s*(\w+)", text)[1], 16) if text else 0
    raise AssertionError(f"reached: {rights:x}" if rights else "contained")
