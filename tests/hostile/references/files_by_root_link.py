# Tries to reach hidden files through /proc/self/root, /proc/self/cwd and a relative path.
# expect: error raised
# gap: files


def run(hidden_states, weight):
    problems = []
    for way in ("/proc/self/root", "/proc/self/cwd", "/proc/1/root", "/proc/self/task/1/root", "../../../.."):
        try:
            open(way + "@home@/secret").close()
            raise AssertionError(f"reached: {way}")
        except OSError as problem:
            problems.append(str(problem))
    raise AssertionError(f"contained: {problems}")
