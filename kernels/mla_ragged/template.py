"""mla_ragged in the generated pytest files: all that ragged attention has."""

from kernels.attention_ragged_template import attention_ragged_inputs  # noqa: F401
