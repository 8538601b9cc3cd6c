"""page in the generated pytest files: what follows the imports is pasted into each of them."""

import conftest


def page_flashinfer(test, inputs):
    page = conftest.need("flashinfer.page", conftest.device_of(inputs))
    definition = conftest.definition_of(test)
    caches = [name for name in definition["inputs"] if "cache" in name]
    added = [inputs[name] for name in definition["inputs"] if "append" in name]
    named = [inputs[name] for name in ("batch_indices", "positions")]
    pages = [inputs[name] for name in ("kv_indices", "kv_indptr", "kv_last_page_len")]
    held = [inputs[name] for name in caches]
    if "mla" in test.NAME:
        page.append_paged_mla_kv_cache(*added, *named, *held, *pages)
    elif len(held) == 1:
        page.append_paged_kv_cache(*added, *named, held[0], *pages)
    else:
        page.append_paged_kv_cache(*added, *named, tuple(held), *pages)
    return held
