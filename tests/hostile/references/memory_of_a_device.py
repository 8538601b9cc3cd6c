# Maps /dev/zero, and so gets shared memory that belongs to no file.
# expect: error raised | error memory_limit
# gap: memory
# contained: error memory_limit
import mmap
import os

SIZE = 1280 << 20  # 1.25 GiB in bytes, which is more than a reference may use (1 GiB)


def run(hidden_states, weight):
    try:
        memory = mmap.mmap(os.open("/dev/zero", os.O_RDWR), SIZE)
        for place in range(0, SIZE, 4096):
            memory[place] = 1
    except OSError as problem:
        raise AssertionError(f"contained: {problem}") from None
    raise AssertionError("reached")
