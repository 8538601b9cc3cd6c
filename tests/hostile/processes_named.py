def processes_named(name):
    """Returns the pids of the processes with this name that this process can see, except its own."""
    import os

    try:
        listed = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    except OSError:
        listed = range(2, 5000)
    found = []
    for pid in listed:
        try:
            with open(f"/proc/{pid}/comm") as file:
                if pid != os.getpid() and file.read().strip() == name:
                    found.append(pid)
        except OSError:
            pass
    return found
