# Makes a symbolic link and a hard link to a secret file, and reads the file through them.
# expect: error raised
# gap: files
import os


def run(hidden_states, weight):
    problems = []
    for make in (os.symlink, os.link):
        path = os.path.join(os.environ["TMPDIR"], make.__name__)
        try:
            make("@home@/secret", path)
            open(path).close()
            raise AssertionError(f"reached: {make.__name__}")
        except OSError as problem:
            problems.append(str(problem))
    raise AssertionError(f"contained: {problems}")
