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
#define TEMPLATE(name, path, needs) BYTES("template_" #name, path);
#include "templates.inc"
#undef TEMPLATE

#define HIDDEN __attribute__((visibility("hidden")))
extern const char conftest_begin[] HIDDEN, conftest_end[] HIDDEN;
extern const char conftest_truths_begin[] HIDDEN, conftest_truths_end[] HIDDEN;
extern const char conftest_checks_begin[] HIDDEN, conftest_checks_end[] HIDDEN;
#define TEMPLATE(name, path, needs) extern const char template_##name##_begin[] HIDDEN, template_##name##_end[] HIDDEN;
#include "templates.inc"
#undef TEMPLATE

static const struct {
	const char *name, *begin, *end;
	const char *needs; /* names of shared ones, each between blanks */
} texts[] = {
#define TEMPLATE(name, path, needs) {#name, template_##name##_begin, template_##name##_end, needs},
#include "templates.inc"
#undef TEMPLATE
    {NULL, NULL, NULL, NULL},
};
enum { TEXTS = sizeof texts / sizeof *texts - 1 };

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

static bool defines(int index, const char *part)
{
	const char *text = functions_of(index), *end = texts[index].end;
	char line[128];
	size_t length = (size_t)snprintf(line, sizeof line, "\ndef %s_%s(", texts[index].name, part);

	return text < end &&
	       memmem(text - 1, (size_t)(end - text + 1), line, length) != NULL; /* a newline is before it */
}

static bool needs(int index, const char *name)
{
	char word[80];

	snprintf(word, sizeof word, " %s ", name);
	return strcmp(texts[index].name, name) == 0 || strstr(texts[index].needs, word) != NULL;
}

/* Its own function comes before that of what it shares. */
static const char *owner_of(int index, const char *part)
{
	if (defines(index, part))
		return texts[index].name;
	for (int i = 0; i < TEXTS; i++)
		if (needs(index, texts[i].name) && defines(i, part))
			return texts[i].name;
	return NULL;
}

bool template_at(int index, struct template *out)
{
	if (index < 0 || index >= TEXTS)
		return false;
	const char *first = functions_of(index);

	*out = (struct template){
	    .name = texts[index].name, .text = first, .length = (size_t)(texts[index].end - first), .index = index};
	for (int part = 0; part < TEMPLATE_PARTS; part++)
		out->owner[part] = owner_of(index, part_names[part]);
	return true;
}

bool template_of(const char *family, struct template *out)
{
	for (int i = 0; template_at(i, out); i++)
		if (strcmp(out->name, family) == 0)
			return true;
	*out = (struct template){.name = "", .index = -1};
	return false;
}

bool template_needs(const struct template *t, const char *name)
{
	return t->index >= 0 && needs(t->index, name);
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
