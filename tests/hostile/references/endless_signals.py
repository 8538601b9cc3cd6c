# Waits forever, handles every signal, and gets a timer signal every millisecond.
# expect: error timeout
import signal


def run(hidden_states, weight):
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, lambda *ignored: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while True:
        signal.pause()
