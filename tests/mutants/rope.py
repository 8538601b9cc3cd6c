"""rope - mistakes that people make in rotary embeddings."""

FULL = "rope_with_cos_sin_cache_neox_style_d128_rd128"
PARTIAL = "rope_with_cos_sin_cache_neox_style_d128_rd64"
INTERLEAVED = "rope_with_cos_sin_cache_interleaved_d64"
IDS = "rope_pos_ids_h32_kv8_d128"
LLAMA = "llama31_rope_pos_ids_h32_kv8_d128"
GIVEN = "rope_pos_ids_interleaved_given_d64"

HALVES = "first, second = x.float().chunk(2, dim=-1)"
ROWS = "cos_sin_cache[positions]"
COS_SIN = "cos, sin = rows.chunk(2, dim=-1)"
RETURN = "return rotate(q, cos, sin), rotate(k, cos, sin)"
ANGLES = "angles = pos_ids.float()[:, None, None] * frequencies"

MUTANTS = [
    (FULL, "interleaved for neox", HALVES, "first, second = x.float()[..., 0::2], x.float()[..., 1::2]"),
    (FULL, "rotated the other way", COS_SIN, COS_SIN + "\n    sin = -sin"),
    (FULL, "sin for cos", COS_SIN, "sin, cos = rows.chunk(2, dim=-1)"),
    (FULL, "positions ignored", ROWS, "cos_sin_cache[torch.zeros_like(positions)]"),
    (FULL, "place in the batch for position", ROWS, "cos_sin_cache[torch.arange(len(positions), device=q.device) % len(cos_sin_cache)]"),
    (FULL, "position off by one", ROWS, "cos_sin_cache[(positions + 1) % len(cos_sin_cache)]"),
    (FULL, "k not rotated", RETURN, "return rotate(q, cos, sin), k.clone()"),
    (FULL, "outputs in the other order", RETURN, "return rotate(k, cos, sin), rotate(q, cos, sin)"),
    (FULL, "cache rounded to bfloat16", ROWS, "cos_sin_cache.bfloat16()[positions]"),
    (FULL, "second half from the rotated first", HALVES, HALVES + "\n    return torch.cat((first * cos - second * sin, second * cos + (first * cos - second * sin) * sin), dim=-1).to(x.dtype)"),
    (FULL, "2 % too large", "return rotated.to(x.dtype)", "return (1.02 * rotated).to(x.dtype)"),
    (FULL, "returns float32", "return rotated.to(x.dtype)", "return rotated"),
    (FULL, "returns zeros", RETURN, "return torch.zeros_like(q), torch.zeros_like(k)"),
    (FULL, "overwrites an input", COS_SIN, COS_SIN + "\n    q.mul_(1.5)"),
    (FULL, "is not deterministic, within bounds", "return rotated.to(x.dtype)", "torch.seed()\n    return (rotated * (1 + 1e-4 * torch.rand((), device=x.device))).to(x.dtype)"),
    (PARTIAL, "whole head rotated", "turning, resting = x[..., :ROTARY_DIM].float(), x[..., ROTARY_DIM:]", "turning, resting = x.float(), x[..., :0]\n    cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)"),
    (PARTIAL, "last dimensions rotated for the first", "turning, resting = x[..., :ROTARY_DIM].float(), x[..., ROTARY_DIM:]", "resting, turning = x[..., :ROTARY_DIM], x[..., ROTARY_DIM:].float()"),
    (PARTIAL, "the rest is zero", "rotated.to(x.dtype), resting", "rotated.to(x.dtype), torch.zeros_like(resting)"),
    (PARTIAL, "the rest before the rotated part", "torch.cat((rotated.to(x.dtype), resting), dim=-1)", "torch.cat((resting, rotated.to(x.dtype)), dim=-1)"),
    (INTERLEAVED, "neox for interleaved", "x[..., 0::2].float(), x[..., 1::2].float()", "x[..., :32].float(), x[..., 32:].float()"),
    (INTERLEAVED, "pairs not interleaved again", "torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1)", "torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-2)"),
    (INTERLEAVED, "odd elements copied", "odd * cos + even * sin", "odd + 0 * sin"),
    (IDS, "theta of another model", "THETA = 1000000.0", "THETA = 10000.0"),
    (IDS, "exponent over half the dimension", "/ dim", "/ (dim // 2)"),
    (IDS, "frequencies for their inverse", "THETA ** -exponents", "THETA ** exponents"),
    (IDS, "position off by one", ANGLES, "angles = (pos_ids.float() + 1)[:, None, None] * frequencies"),
    (IDS, "angles in bfloat16", ANGLES, ANGLES + "\n    angles = angles.bfloat16()"),
    (LLAMA, "no frequency scaled", "frequencies = part * fast + (1 - part) * slow", "frequencies = fast"),
    (LLAMA, "every frequency scaled", "frequencies = part * fast + (1 - part) * slow", "frequencies = slow"),
    (LLAMA, "mixed the wrong way", "frequencies = part * fast + (1 - part) * slow", "frequencies = part * slow + (1 - part) * fast"),
    (LLAMA, "no mixing between", ".clamp(0, 1)", ".ge(0.5).float()"),
    (LLAMA, "scale 2 % off", "SCALE = 8.0", "SCALE = 8.16"),
    (LLAMA, "theta of Llama 2", "THETA = 500000.0", "THETA = 10000.0"),
    (LLAMA, "the new context for the old", "OLD_CONTEXT = 8192", "OLD_CONTEXT = 131072"),
    (LLAMA, "no 2 pi", "OLD_CONTEXT * fast / (2 * math.pi)", "OLD_CONTEXT * fast"),
    (GIVEN, "rotary_dim ignored", "exponents = torch.arange", "rotary_dim = q.shape[-1]\n    exponents = torch.arange"),
    (GIVEN, "always interleaved", "exponents = torch.arange", "interleave = True\n    exponents = torch.arange"),
    (GIVEN, "never interleaved", "exponents = torch.arange", "interleave = False\n    exponents = torch.arange"),
    (GIVEN, "theta fixed", "rope_theta ** -exponents", "10000.0 ** -exponents"),
    (GIVEN, "scale left out", "/ rope_scale", "/ 1.0"),
    (GIVEN, "multiplied by the scale", "/ rope_scale", "* rope_scale"),
    # Mistakes that need far positions, long caches or other parameters; then mistakes in precision.
    (FULL, "positions as int16", ROWS, "cos_sin_cache[positions.to(torch.int16).long() % len(cos_sin_cache)]"),
    (FULL, "positions held below 4096", ROWS, "cos_sin_cache[positions.clamp(max=4095)]"),
    (FULL, "positions held below 32768", ROWS, "cos_sin_cache[positions.clamp(max=32767)]"),
    (FULL, "what is rotated held within 100", HALVES, HALVES.replace("x.float()", "x.float().clamp(-100, 100)")),
    (FULL, "products in bfloat16", HALVES, HALVES.replace(".float()", "") + "\n    cos, sin = cos.bfloat16(), sin.bfloat16()"),
    (FULL, "products in float16", HALVES, HALVES.replace(".float()", ".half()") + "\n    cos, sin = cos.half(), sin.half()"),
    (FULL, "tokens beyond 300 left alone", RETURN, "cos[300:], sin[300:] = 1, 0\n    " + RETURN),
    (PARTIAL, "rounded twice, by way of float16", "return torch.cat((rotated.to(x.dtype), resting), dim=-1)", "return torch.cat((rotated.half().to(x.dtype), resting), dim=-1)"),
    (IDS, "other frequencies beyond 32768", ANGLES, "frequencies = torch.where(pos_ids[:, None, None] < 32768, frequencies, frequencies / 4)\n    " + ANGLES),
    (IDS, "theta grows beyond 8192", ANGLES, "frequencies = torch.where(pos_ids[:, None, None] < 8192, frequencies, (4 * THETA) ** -exponents)\n    " + ANGLES),
    (IDS, "positions as int16", ANGLES, "angles = pos_ids.to(torch.int16).float()[:, None, None] * frequencies"),
    (IDS, "positions held below 4096", ANGLES, "angles = pos_ids.clamp(max=4095).float()[:, None, None] * frequencies"),
    (LLAMA, "positions held below 32768", ANGLES, "angles = pos_ids.clamp(max=32767).float()[:, None, None] * frequencies"),
    (LLAMA, "remembers the angles of its shape", ANGLES, "global seen\n    seen = globals().get('seen', {})\n    angles = seen.setdefault(pos_ids.shape, pos_ids.float()[:, None, None] * frequencies)"),
    (GIVEN, "half of the head whatever is given", "exponents = torch.arange", "rotary_dim = q.shape[-1] // 2\n    exponents = torch.arange"),
    (GIVEN, "theta of the first values alone", "rope_theta ** -exponents", "30000.0 ** -exponents"),
    (GIVEN, "scale of the first values alone", "/ rope_scale", "/ 3.0"),
    (GIVEN, "scale rounded to an integer", "/ rope_scale", "/ round(rope_scale)"),
    (PARTIAL, "key heads beyond 8 left alone", "rotate(k, cos, sin)", "torch.cat((rotate(k[:, :8], cos, sin), k[:, 8:]), dim=1)"),
    (PARTIAL, "heads beyond 64 left alone", "rotate(q, cos, sin),", "torch.cat((rotate(q[:, :64], cos, sin), q[:, 64:]), dim=1),"),
    (PARTIAL, "33 to 64 query heads taken for 32", "rotate(q, cos, sin),", "(rotate(q, cos, sin) if not 32 < q.shape[1] <= 64 else torch.cat((rotate(q[:, :32], cos, sin), q[:, 32:]), dim=1)),"),
    (GIVEN, "key heads beyond 32 left alone", "rotate(k, cos, sin, rotary_dim, interleave)", "torch.cat((rotate(k[:, :32], cos, sin, rotary_dim, interleave), k[:, 32:]), dim=1)"),
    ("rope_pos_ids_interleaved_given_d64", "frequencies are kept between calls by rotary_dim alone",
     "frequencies = rope_theta ** -exponents / rope_scale",
     'tables = vars(rotate).setdefault("tables", {})\n    frequencies = tables.setdefault(rotary_dim, rope_theta ** -exponents / rope_scale)'),
]
