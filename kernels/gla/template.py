"""gla in the generated pytest files: what follows the imports is pasted into each of them."""

import conftest

from kernels.recurrence_template import (
    recurrence_call,
    recurrence_heads,
    recurrence_log_gates,
    recurrence_normed,
    recurrence_parts,
    recurrence_unit,
)


def gla_fla(test, inputs):
    ops = conftest.need("fla.ops.gla", conftest.device_of(inputs))
    definition = conftest.definition_of(test)
    inputs = recurrence_parts(definition, inputs)
    words = recurrence_heads(inputs)
    if recurrence_normed(definition, inputs):
        words = recurrence_unit(words)
    words["g"] = recurrence_log_gates(inputs)

    def recurrent(g, **more):
        return ops.fused_recurrent_gla(gk=g, **more)

    return recurrence_call(test, inputs, ops.chunk_gla, recurrent, words)
