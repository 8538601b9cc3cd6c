#include "artifacts/templates.h"

#include <string.h>

#include "templates_digest.h" /* changes whenever one of the texts does: so make assembles them anew */

#define BYTES(symbol, path)                                                                                            \
	__asm__(".pushsection .rodata\n" symbol "_begin:\n.incbin \"" path "\"\n" symbol                               \
		"_end:\n.byte 0\n.popsection\n")

BYTES("conftest", "artifacts/conftest.py");
BYTES("conftest_truths", "artifacts/conftest_truths.py");
BYTES("conftest_checks", "artifacts/conftest_checks.py");
#define TEMPLATE(name, path, needs, parts) BYTES("template_" #name, path);
#include "templates.inc"
#undef TEMPLATE

#define HIDDEN __attribute__((visibility("hidden")))
extern const char conftest_begin[] HIDDEN, conftest_end[] HIDDEN;
extern const char conftest_truths_begin[] HIDDEN, conftest_truths_end[] HIDDEN;
extern const char conftest_checks_begin[] HIDDEN, conftest_checks_end[] HIDDEN;
#define TEMPLATE(name, path, needs, parts)                                                                             \
	extern const char template_##name##_begin[] HIDDEN, template_##name##_end[] HIDDEN;
#include "templates.inc"
#undef TEMPLATE

/* Where each stands in the table. */
enum {
#define TEMPLATE(name, path, needs, parts) INDEX_##name,
#include "templates.inc"
#undef TEMPLATE
	TEXTS
};
_Static_assert(TEXTS <= 64, "a set of templates is a number of 64 bits");

#define NEED(name) UINT64_C(1) << INDEX_##name
#define PART(part) 1U << TEMPLATE_##part
static const struct {
	const char *name, *begin, *end;
	uint64_t needs; /* the shared ones that it stands on, by index */
	unsigned parts; /* its functions {name}_{part}: make looks for them, which takes long */
} texts[] = {
#define TEMPLATE(name, path, needs, parts) {#name, template_##name##_begin, template_##name##_end, needs, parts},
#include "templates.inc"
#undef TEMPLATE
    {NULL, NULL, NULL, 0, 0},
};

static const char *const part_names[TEMPLATE_PARTS] = {
    [TEMPLATE_FLASHINFER] = "flashinfer", [TEMPLATE_SGLANG] = "sglang", [TEMPLATE_FLA] = "fla",
    [TEMPLATE_TORCH] = "torch",		  [TEMPLATE_INPUTS] = "inputs", [TEMPLATE_EDGES] = "edges",
    [TEMPLATE_TOLERANCE] = "tolerance",	  [TEMPLATE_JUDGE] = "judge",	[TEMPLATE_PROBE] = "probe",
};

/* Docstring and imports stand before the first function. */
static const char *functions_of(int index)
{
	const char *begin = texts[index].begin, *end = texts[index].end;
	const char *first = memmem(begin, (size_t)(end - begin), "\ndef ", 5);

	return first != NULL ? first + 1 : end;
}

static bool needs(int index, int other)
{
	return index == other || (texts[index].needs >> other & 1) != 0;
}

/* Its own function comes before that of what it shares. */
static const char *owner_of(int index, int part)
{
	if ((texts[index].parts >> part & 1) != 0)
		return texts[index].name;
	for (int i = 0; i < TEXTS; i++)
		if (needs(index, i) && (texts[i].parts >> part & 1) != 0)
			return texts[i].name;
	return NULL;
}

bool template_at(int index, struct template *out)
{
	if (index < 0 || index >= TEXTS)
		return false;
	*out = (struct template){.name = texts[index].name, .index = index};
	for (int part = 0; part < TEMPLATE_PARTS; part++)
		out->owner[part] = owner_of(index, part);
	return true;
}

bool template_of(const char *family, struct template *out)
{
	for (int i = 0; i < TEXTS; i++)
		if (strcmp(texts[i].name, family) == 0)
			return template_at(i, out);
	*out = (struct template){.name = "", .index = -1};
	return false;
}

bool template_needs(const struct template *t, const struct template *other)
{
	return t->index >= 0 && other->index >= 0 && needs(t->index, other->index);
}

size_t template_text(const struct template *t, const char **text)
{
	*text = functions_of(t->index);
	return (size_t)(texts[t->index].end - *text);
}

const char *template_part_name(enum template_part part)
{
	return part_names[part];
}

/* The first part whole; of the others what their first rule of dashes begins. */
void template_conftest(struct buf *out)
{
	static const char rule[] = "\n# ---- ";
	static const char *const parts[][2] = {{conftest_truths_begin, conftest_truths_end},
					       {conftest_checks_begin, conftest_checks_end}};

	buf_add(out, conftest_begin, (size_t)(conftest_end - conftest_begin));
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		const char *end = parts[i][1],
			   *at = memmem(parts[i][0], (size_t)(end - parts[i][0]), rule, sizeof rule - 1);

		buf_text(out, "\n");
		if (at != NULL)
			buf_add(out, at, (size_t)(end - at));
	}
}

const char *templates_digest(void)
{
	return TEMPLATES_DIGEST;
}
