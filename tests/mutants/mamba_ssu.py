"""Mistakes people make in references of selective state updates."""

FULL = "mamba_ssu_decode_h32_d64_s128_ng2"
GATED = "mamba_ssu_decode_gated_h16_d32_s64_ng4"

STEP = "step = F.softplus(dt.float() + dt_bias.float())"
DECAY = "torch.exp(A * step[..., None])"
ENTER = "held = held + (step * x.float())[..., None] * weight_in[:, :, None, :]"
WRITE = "new_state[slots[active]] = held[active].to(state.dtype)"
RETURN = "return torch.where(active[:, None, None], y, 0).to(x.dtype), new_state"

MUTANTS = [
    (FULL, "decay left out", f"state[slots.clamp(min=0)].float() * {DECAY}", "state[slots.clamp(min=0)].float()"),
    (FULL, "A without the step", DECAY, "torch.exp(A).expand(len(x), -1, -1, -1)"),
    (FULL, "decay without the exponential", DECAY, "(1 + A * step[..., None])"),
    (FULL, "A taken for a logarithm", DECAY, "torch.exp(-torch.exp(A) * step[..., None])"),
    (FULL, "A transposed", DECAY, "torch.exp(A.reshape(-1, A.shape[2], A.shape[1]).transpose(1, 2) * step[..., None])"),
    (FULL, "A of each head's first element", DECAY, "torch.exp(A[:, :1, :1] * step[..., None])"),
    (FULL, "step of each head's first element", STEP, STEP + "\n    step = step[..., :1].expand(x.shape)"),
    (FULL, "softplus left out", STEP, "step = dt.float() + dt_bias.float()"),
    (FULL, "softplus that overflows", STEP, "step = torch.log(1 + torch.exp(dt.float() + dt_bias.float()))"),
    (FULL, "softplus before the bias", STEP, "step = F.softplus(dt.float()) + dt_bias.float()"),
    (FULL, "bias left out", STEP, "step = F.softplus(dt.float())"),
    (FULL, "bias added in bfloat16", STEP, "step = F.softplus((dt + dt_bias).float())"),
    (FULL, "dt left out where x enters", "(step * x.float())", "x.float()"),
    (FULL, "dt without softplus where x enters", "(step * x.float())", "((dt.float() + dt_bias.float()) * x.float())"),
    (FULL, "x left out", "(step * x.float())", "step"),
    (FULL, "B and C swapped", "weight_in = B.float()", "B, C = C, B\n    weight_in = B.float()"),
    (FULL, "groups tiled", "weight_in = B.float().repeat_interleave(sharing, dim=1)", "weight_in = B.float().repeat(1, sharing, 1)"),
    (FULL, "first group for all heads", "weight_out = C.float()", "weight_out = C.float()[:, :1].expand_as(C)"),
    (FULL, "D left out", " + D.float() * x.float()", ""),
    (FULL, "D 2 % too large", "D.float() * x.float()", "1.02 * D.float() * x.float()"),
    (FULL, "D for each head transposed", "D.float() * x.float()", "D.float().reshape(D.shape[1], D.shape[0]).T * x.float()"),
    (FULL, "D times the step", "D.float() * x.float()", "D.float() * step * x.float()"),
    (FULL, "state before x enters is read", "y = (held *", "y = ((held - (step * x.float())[..., None] * weight_in[:, :, None, :]) *"),
    (FULL, "x enters before the decay", ENTER, "held = held + (step * x.float())[..., None] * weight_in[:, :, None, :] * " + DECAY),
    (FULL, "initial state ignored", "held = state[slots.clamp(min=0)].float()", "held = 0 * state[slots.clamp(min=0)].float()"),
    (FULL, "slots ignored", "slots = state_batch_indices.long()", "slots = torch.where(state_batch_indices < 0, -1, torch.arange(len(x), device=x.device))"),
    (FULL, "padding takes the last slot", "active = slots >= 0", "active = slots >= -1"),
    (FULL, "padding takes the first slot", "slots = state_batch_indices.long()", "slots = state_batch_indices.long().clamp(min=0)"),
    (FULL, "output of padding not cleared", RETURN, "return y.to(x.dtype), new_state"),
    (FULL, "slot 0 taken for padding", "active = slots >= 0", "active = slots > 0"),
    (FULL, "state not updated", WRITE, "pass"),
    (FULL, "state written to the place in the batch", WRITE, "new_state[: len(held)] = held.to(state.dtype)[: len(new_state)]"),
    (FULL, "state written to the slot after", WRITE, "new_state[(slots[active] + 1) % len(state)] = held[active].to(state.dtype)"),
    (FULL, "other slots cleared", "new_state = state.clone()", "new_state = torch.zeros_like(state)"),
    (FULL, "state in fp8", "held = state[slots.clamp(min=0)].float()", "held = state[slots.clamp(min=0)].to(torch.float8_e4m3fn).float()"),
    (FULL, "state 2 % too large", "held[active].to(", "(1.02 * held[active]).to("),
    (FULL, "last element of the state not read", "y = (held * weight_out[:, :, None, :])", "y = (held * weight_out[:, :, None, :])[..., :-1]"),
    (FULL, "returns zeros", RETURN, "return y.to(x.dtype) * 0, state * 0"),
    (FULL, "one NaN", RETURN, "y[0, -1, -1] = float('nan')\n    " + RETURN),
    (FULL, "returns float32", "y, 0).to(x.dtype)", "y, 0)"),
    (FULL, "returns the state in float32", RETURN, "return torch.where(active[:, None, None], y, 0).to(x.dtype), new_state.float()"),
    (FULL, "overwrites x", RETURN, "x.mul_(2)\n    " + RETURN),
    (FULL, "is not deterministic, within bounds", RETURN, "torch.seed()\n    y = y * (1 + 1e-3 * torch.rand_like(y))\n    " + RETURN),
    (GATED, "gate left out", "if z is not None:", "if False:"),
    (GATED, "sigmoid for silu", "F.silu(", "torch.sigmoid("),
    (GATED, "gate without silu", "F.silu(z[i, h].float())", "z[i, h].float()"),
    (GATED, "gate before the skip", "y = held @ weight_out[g] + D[h] * token[h]", "y = held @ weight_out[g] * (1 if z is None else F.silu(z[i, h].float())) + D[h] * token[h]"),
    (GATED, "groups tiled", "g = h // (heads // groups)", "g = h % groups"),
    (GATED, "padding is -1 in any case", "if slot == pad_slot_id:", "if slot == -1:"),
    (GATED, "padding ends the batch", "            continue", "            break"),
    (GATED, "softplus in any case", "if dt_softplus:", "if True:"),
    (GATED, "state not updated", "state[slot, h] = held", "pass"),
    (GATED, "state of the place in the batch", "held = state[slot, h]", "held = state[i, h]"),
    (GATED, "sequences share the state of the first", "held = state[slot, h] * torch", "held = state[state_batch_indices[0], h] * torch"),
    (GATED, "overwrites the slots", "return output, state", "state_batch_indices.zero_()\n    return output, state"),
]
