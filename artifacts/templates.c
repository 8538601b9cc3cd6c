#include "artifacts/templates.h"

#include <stdio.h>
#include <string.h>

#include "templates_digest.h" /* changes whenever one of the texts does: so make assembles them anew */

#define BYTES(symbol, path)                                                                                            \
	__asm__(".pushsection .rodata\n" symbol "_begin:\n.incbin \"" path "\"\n" symbol                               \
		"_end:\n.byte 0\n.popsection\n")

BYTES("conftest", "artifacts/conftest.py");
BYTES("conftest_truths", "artifacts/conftest_truths.py");
BYTES("conftest_checks", "artifacts/conftest_checks.py");
#define TEMPLATE(family) BYTES("template_" #family, "kernels/" #family "/template.py");
#include "templates.inc"
#undef TEMPLATE

#define HIDDEN __attribute__((visibility("hidden")))
extern const char conftest_begin[] HIDDEN, conftest_end[] HIDDEN;
extern const char conftest_truths_begin[] HIDDEN, conftest_truths_end[] HIDDEN;
extern const char conftest_checks_begin[] HIDDEN, conftest_checks_end[] HIDDEN;
#define TEMPLATE(family) extern const char template_##family##_begin[] HIDDEN, template_##family##_end[] HIDDEN;
#include "templates.inc"
#undef TEMPLATE

static const struct {
	const char *family, *begin, *end;
} texts[] = {
#define TEMPLATE(family) {#family, template_##family##_begin, template_##family##_end},
#include "templates.inc"
#undef TEMPLATE
    {NULL, NULL, NULL},
};

static const char *const part_names[TEMPLATE_PARTS] = {
    [TEMPLATE_FLASHINFER] = "flashinfer", [TEMPLATE_SGLANG] = "sglang", [TEMPLATE_FLA] = "fla",
    [TEMPLATE_TORCH] = "torch",		  [TEMPLATE_INPUTS] = "inputs", [TEMPLATE_EDGES] = "edges",
    [TEMPLATE_TOLERANCE] = "tolerance",	  [TEMPLATE_JUDGE] = "judge",	[TEMPLATE_PROBE] = "probe",
};

static bool defines(const struct template *t, const char *part)
{
	char line[128];
	size_t length = (size_t)snprintf(line, sizeof line, "\ndef %s_%s(", t->family, part);

	return t->length > 0 && memmem(t->text - 1, t->length + 1, line, length) != NULL; /* a newline is before it */
}

/* Docstring and imports stand before the first function. */
bool template_at(int index, struct template *out)
{
	const char *begin, *end, *first;

	if (index < 0 || (size_t)index + 1 >= sizeof texts / sizeof *texts)
		return false;
	begin = texts[index].begin;
	end = texts[index].end;
	first = memmem(begin, (size_t)(end - begin), "\ndef ", 5);
	first = first != NULL ? first + 1 : end;
	*out = (struct template){.family = texts[index].family, .text = first, .length = (size_t)(end - first)};
	for (int part = 0; part < TEMPLATE_PARTS; part++)
		out->has[part] = defines(out, part_names[part]);
	return true;
}

bool template_of(const char *family, struct template *out)
{
	for (int i = 0; template_at(i, out); i++)
		if (strcmp(out->family, family) == 0)
			return true;
	*out = (struct template){.family = ""};
	return false;
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
