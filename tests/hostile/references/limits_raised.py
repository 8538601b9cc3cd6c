# Raises the resource limits of its own process.
# expect: error raised
# gap: none
import resource

LIMITS = ("RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_NOFILE", "RLIMIT_MSGQUEUE", "RLIMIT_CPU")


def run(hidden_states, weight):
    reached = []
    for name in LIMITS:
        kind = getattr(resource, name, 12)
        try:
            resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            reached.append(name)
        except (OSError, ValueError):
            pass
    raise AssertionError(f"reached: {reached}" if reached else "contained")
