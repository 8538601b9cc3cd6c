# Lowers its limit of processor time, ignores the signal of the limit, and keeps computing.
# expect: error crashed
import resource
import signal


def run(hidden_states, weight):
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
    while True:
        pass
