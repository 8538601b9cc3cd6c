# Compiles source texts that are nested too deeply for Python's compiler.
# expect: error raised
import torch


def run(hidden_states, weight):
    texts = ["(" * 5000 + ")" * 5000, "-" * 100000 + "1", "[" * 90 + "a" + ".b" * 50000 + "]" * 90]
    for text in texts:
        try:
            compile(text, "nested", "eval")
        except (SyntaxError, MemoryError, RecursionError):
            continue
        return torch.zeros_like(hidden_states)
    raise ValueError(texts[0])
