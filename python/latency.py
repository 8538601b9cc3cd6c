"""latency - measures how long a call takes, for `reftest bench`.

The measured code runs in the process that measures the time, so this code could falsify the figures. The figures are
therefore only shown and stored beside a verdict, and no verdict depends on them.

On a GPU, CUDA events measure the time. "cold" is the time with a flushed L2 cache; "warm" is the time directly after a
call with the same inputs. Other work is queued before the first event, to keep the GPU busy while the CPU launches the
call. Therefore the events measure only the kernels, even if the call is short. On a CPU, the wall clock measures the
time, and no "cold" time is measured."""

import time

SECONDS = 1.0  # the time limit in seconds for all cold runs together, and again for all warm runs together
RUNS = 50  # the maximum number of cold runs, and of warm runs
LEAST = 3  # the minimum number of cold runs, and of warm runs, unless a single run takes longer than SECONDS
FLUSH = 256 << 20  # bytes that are written to flush the L2 cache, or twice the size of the cache if that is more
SPIN = 200_000  # clock cycles for which the GPU is kept busy while the CPU launches the call


class Wall:
    timer, colds = "wall", (False,)

    def once(self, call, cold):
        start = time.perf_counter()
        call()
        return time.perf_counter() - start


class Events:
    timer, colds = "cuda_events", (False, True)

    def __init__(self, torch, device):
        self.cuda = torch.cuda
        size = max(FLUSH, 2 * getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0))
        self.flush = torch.empty(size, dtype=torch.uint8, device=device)

    def once(self, call, cold):
        start, end = self.cuda.Event(enable_timing=True), self.cuda.Event(enable_timing=True)
        self.cuda.synchronize()
        if cold:
            self.flush.zero_()
        self.cuda._sleep(SPIN)  # the L2 cache keeps its content, because _sleep accesses no memory
        start.record()
        call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3


class Inputs:
    """The arguments that all measured calls get. If a call writes to an input, the input's old values are restored
    before the next call."""

    def __init__(self, torch, kept):
        self.torch, self.kept = torch, kept
        self.values = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in kept.items()}
        self.written = []

    def bytes_of(self, value):
        return value.contiguous().flatten().view(self.torch.uint8)

    def find_written(self):
        self.written = [name for name, value in self.kept.items() if isinstance(value, self.torch.Tensor) and
                        not self.torch.equal(self.bytes_of(value), self.bytes_of(self.values[name]))]

    def restore(self):
        for name in self.written:
            self.bytes_of(self.values[name]).copy_(self.bytes_of(self.kept[name]))


def copies(torch, arguments):
    """Returns copies of the inputs. Call this function before anything writes to the inputs."""
    return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in arguments.items()}


def spread(times):
    """Returns the median, the 10th percentile and the 90th percentile, in seconds."""
    times = sorted(times)
    at = lambda part: times[min(len(times) - 1, int(part * len(times)))]
    return {"median": at(0.5), "low": at(0.1), "high": at(0.9), "runs": len(times)}


def runs_of(timer, call, inputs, cold, least):
    times, end = [], time.perf_counter() + SECONDS
    while len(times) < RUNS and (len(times) < least or time.perf_counter() < end):
        inputs.restore()
        times.append(timer.once(lambda: call(**inputs.values), cold))
    return times


def measure(torch, device, call, kept):
    """Measures call(**arguments); `kept` are copies of the arguments. Returns the field "latency" of an answer."""
    inputs = Inputs(torch, kept)
    timer = Wall() if device == "cpu" else Events(torch, device)
    start = time.perf_counter()
    call(**inputs.values)
    if device != "cpu":
        torch.cuda.synchronize()
    first = time.perf_counter() - start
    inputs.find_written()
    least = LEAST if first < SECONDS else 1
    kinds = {cold: spread(runs_of(timer, call, inputs, cold, least)) for cold in timer.colds}
    return {"timer": timer.timer, "warm": kinds[False], "cold": kinds.get(True)}
