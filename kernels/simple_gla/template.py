"""simple_gla in the generated pytest files: what follows the imports is pasted into each of them."""

import conftest

from kernels.recurrence_template import (
    recurrence_call,
    recurrence_heads,
    recurrence_log_gates,
    recurrence_normed,
    recurrence_parts,
    recurrence_unit,
)


def simple_gla_fla(test, inputs):
    ops = conftest.need("fla.ops.simple_gla", conftest.device_of(inputs))
    definition = conftest.definition_of(test)
    inputs = recurrence_parts(definition, inputs)
    words, more = recurrence_heads(inputs), {}
    if recurrence_normed(definition, inputs):
        words = recurrence_unit(words)
    if "g_gamma" in inputs:
        more["g_gamma"] = inputs["g_gamma"]
    else:
        words["g"] = recurrence_log_gates(inputs)
    chunk, recurrent = ops.chunk_simple_gla, ops.fused_recurrent_simple_gla
    return recurrence_call(test, inputs, chunk, recurrent, words, **more)
