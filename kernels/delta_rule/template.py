"""delta_rule in the generated pytest files: what follows the imports is pasted into each of them."""

import conftest

from kernels.recurrence_template import (
    recurrence_call,
    recurrence_heads,
    recurrence_normed,
    recurrence_parts,
    recurrence_strength,
)


def delta_rule_fla(test, inputs):
    ops = conftest.need("fla.ops.delta_rule", conftest.device_of(inputs))
    definition = conftest.definition_of(test)
    inputs = recurrence_parts(definition, inputs)
    words = recurrence_heads(inputs)
    words["beta"] = recurrence_strength(definition, inputs)
    norm = {"use_qk_l2norm_in_kernel": recurrence_normed(definition, inputs)}
    chunk, recurrent = ops.chunk_delta_rule, ops.fused_recurrent_delta_rule
    return recurrence_call(test, inputs, chunk, recurrent, words, **norm)
