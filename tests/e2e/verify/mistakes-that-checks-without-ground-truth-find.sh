#!/bin/sh
# Plants forty mistakes in twenty definitions that belong to no op family, and tests which mistakes the checks find.
# docs/ground-truths.md has the counts. No check fails for a correct reference. A check may also have the result
# "property", which is a fact about the operation and not a failure. If a check has this result for a wrong reference,
# it has found the mistake only if it has another result for the correct reference.
. "$(dirname "$0")/../harness.sh"
"$python" -I -S - <<'EOF'
import json
import os

F, B, I = "float32", "bfloat16", "int32"
N = {"n": None, "w": 8}
X = {"x": (["n", "w"], F)}
XY = {**X, "y": (["n", "w"], F)}
Y = {"out": (["n", "w"], F)}
ROW = {"out": (["n"], F)}
G = {"x": (["rows", "w"], F), "row_ids": (["n"], I)}
RAGGED = {"x": (["total", "w"], F), "indptr": (["len_indptr"], I)}
SUMS = "return torch.stack([x[a:b].sum(0) for a, b in zip({first}, {last})])"
# name: (axes, inputs, outputs, body of the right reference, [(body of a wrong reference, the check that finds its
# mistake, or None)])
TABLE = {
    "huber": (N, XY, Y, "d = x - y\n    return torch.where(d.abs() < 1, 0.5 * d * d, d.abs() - 0.5)",
              [("d = x - y\n    return torch.where(d.abs() < 1, d * d, d.abs() - 0.5)", None),
               ("d = x - x\n    return torch.where(d.abs() < 1, 0.5 * d * d, d.abs() - 0.5)", "not_constant")]),
    "mish": (N, X, Y, "return x * torch.tanh(torch.log1p(torch.exp(x)))",
             [("return x * torch.tanh(torch.log(torch.exp(x)))", None),
              ("return x.mul_(torch.tanh(torch.log1p(torch.exp(x)))) + 0", "inputs_kept")]),
    "entropy": (N, {"probs": (["n", "w"], F)}, ROW, "return -(probs * probs.log()).sum(-1)",
                [("return (probs * probs.log()).sum(-1)", None), ("return -(probs * (probs - 1).log()).sum(-1)", "finite")]),
    "gather": ({"n": None, "rows": None, "w": 8}, G, Y, "return x[row_ids.long()]",
               [("return x[: len(row_ids)]", "not_constant"), ("return x[torch.flip(row_ids.long(), [0])]", "rows")]),
    "segment_sum": ({"total": None, "len_indptr": None, "segments": None, "w": 8}, RAGGED, {"out": (["segments", "w"], F)},
                    SUMS.format(first="indptr[:-1]", last="indptr[1:]"),
                    [(SUMS.format(first="indptr[:-1]", last="indptr[1:] - 1"), None),
                     ("return torch.stack([x.sum(0)] * (len(indptr) - 1))", "not_constant")]),
    "standardize": (N, X, Y, "x = x + 3000\n    return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)",
                    [("x = x + 3000\n    m = x.mean(-1, keepdim=True)\n    v = (x * x).mean(-1, keepdim=True) - m * m\n"
                      "    return (x - m) * (v + 1).rsqrt()", "finite"),
                     ("x = x + 3000\n    return (x - x.mean()) / x.std()", "rows")]),
    "cosine": (N, XY, ROW, "return (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1))",
               [("return (x * y).sum(-1) / (x.norm(dim=-1) * x.norm(dim=-1))", None),
                ("return (x * x).sum(-1) / (x.norm(dim=-1) * x.norm(dim=-1))", "not_constant")]),
    "rotate": (N, {**X, "cos": (["n", "w"], F), "sin": (["n", "w"], F)}, Y,
               "return x * cos + torch.cat([-x[:, 4:], x[:, :4]], -1) * sin",
               [("return x * cos + torch.cat([x[:, 4:], -x[:, :4]], -1) * sin", None),
                ("return x * cos + torch.cat([-x[:, 4:], x[:, :4]], -1) * cos", "not_constant")]),
    "masked_mean": (N, {**X, "mask": (["n", "w"], "bool")}, ROW, "return (x * mask).sum(-1) / mask.sum(-1).clamp(min=1)",
                    [("return (x * mask).sum(-1) / 8", None), ("return x.mean(-1)", "not_constant")]),
    "jitter": (N, X, Y, "return x * 1.5",
               [("return x * 1.5 + 1e-3 * torch.randn_like(x)", "seeds"),
                ("return torch.nn.functional.alpha_dropout(x * 1.5, 0.2, True)", "seeds")]),
    "histogram": (N, X, {"out": (["n", "w"], "int64")}, "return (x * 4).floor().long()",
                  [("return (x * 4).round().long()", None), ("return (x * 0.04).long()", "not_constant")]),
    "cumulative": (N, X, Y, "return x.cumsum(-1)", [("return x.cumsum(0)", "rows"), ("return x.flip(-1).cumsum(-1)", None)]),
    "flat_view": (N, X, Y, "return (x * 2).clone()",
                  [("return torch.as_strided(x, x.shape, (8, 1)) * 2", "strided"), ("return x * 3", None)]),
    "root": (N, X, Y, "return x.abs().sqrt()", [("return x.sqrt()", "finite"), ("return x.abs()", None)]),
    "hinge": (N, XY, ROW, "return (1 - x * y).clamp(min=0).sum(-1)",
              [("return (1 - x * y).clamp(min=0).sum(-1).double()", "outputs"), ("return (1 - x * y).sum(-1)", None)]),
    "swish": (N, {"x": (["n", "w"], B)}, {"out": (["n", "w"], B)}, "return (x.float() * torch.sigmoid(x.float())).bfloat16()",
              [("x = (x + 256) - 256\n    return x * torch.sigmoid(x)", "numerics"),
               ("return (x.float() * torch.sigmoid(1.7 * x.float())).bfloat16()", None)]),
    "outer": ({"n": None, "w": 8}, {"a": (["n"], F), "b": (["w"], F)}, Y, "return a[:, None] * b",
              [("return a[:, None] + b", None), ("return a[:, None].expand(-1, 8) * 2", "not_constant")]),
    "two": (N, X, {"out": (["n", "w"], F), "top": (["n"], F)}, "return x * 2, x.amax(-1)",
            [("return x * 2, torch.ones_like(x[:, 0])", "not_constant"), ("return x * 2, x.amax(-1, keepdim=True)", "outputs")]),
    "running": (N, X, Y, "return x - 1",
                [("global seen\n    seen = globals().get('seen', 0) + 1\n    return x - seen", "repeat"),
                 ("return x + 1", None)]),
    "log_sum": (N, X, ROW, "return x.logsumexp(-1)",
                [("return x.exp().sum(-1).log()", None), ("return x.exp().sum(-1, keepdim=True).log()", "outputs")]),
}


def write(name, axes, inputs, outputs, body):
    def side(tensors):
        return {key: {"shape": shape, "dtype": dtype} for key, (shape, dtype) in tensors.items()}

    definition = {
        "name": name, "op_type": "novel", "description": "",
        "axes": {key: {"type": "var"} if value is None else {"type": "const", "value": value} for key, value in axes.items()},
        "inputs": side(inputs), "outputs": side(outputs),
        "reference": f"import torch\n\n\ndef run({', '.join(inputs)}):\n    {body}\n"}
    if "segments" in axes:
        definition["constraints"] = ["segments == len_indptr - 1"]
    with open(f"definitions/novel/{name}.json", "w") as out:
        json.dump(definition, out)


os.makedirs("definitions/novel")
expected = []
for name, (axes, inputs, outputs, right, wrong) in TABLE.items():
    write(f"{name}_right", axes, inputs, outputs, right)
    for number, (body, found) in enumerate(wrong):
        write(f"{name}_wrong{number}", axes, inputs, outputs, body)
        expected.append([f"{name}_wrong{number}", f"{name}_right", found])
json.dump(expected, open("../expected", "w"))
EOF
verify
expect_exit 1
expect "s['passed'] == 0 and s['definitions'] == 60 and len(json.load(open('../expected'))) == 40"
# No check fails for a correct reference.
right="[(n, d[n]['cases'][0]['message']) for n in d if n.endswith('_right') and d[n]['status'] != 'checked']"
step="these definitions: $(value "$right")"
expect "$right == []"
# A check finds a mistake if its result for the wrong reference differs from its result for the correct one.
found="{c['name'] for c, r in zip(d[n]['cases'][0]['checks'], d[right]['cases'][0]['checks']) if c['result'] != r['result']
	and c['result'] in ('fails', 'property')}"
other="[(n, by, $found) for n, right, by in json.load(open('../expected')) if ([by] if by else []) != [c for c in $found if c == by or not by]]"
step="these definitions: $(value "$other")"
expect "$other == []"
# These are the counts in docs/ground-truths.md.
expect "sum(by is None for _, _, by in json.load(open('../expected'))) == 16"
expect "'find 24 of 40' in open('$top/docs/ground-truths.md').read()"
