/* storable - the fuzz targets for parsers that determine whether a verdict is stored and found again. These parsers
 * read the source code of a reference, to find its dependencies and its normal form, or the settings of a dataset. */
#include "engine/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cache/python_dependencies.h"
#include "cache/python_normal_form.h"
#include "tests/fuzz/feed.h"
#include "workers/sandbox/containment.h"
#include "workers/sandbox/sandbox.h"

static struct buf joined(const char *before, const struct input *input, const char *after)
{
	struct buf out = {0};

	buf_text(&out, before);
	buf_add(&out, input->bytes, input->length);
	buf_text(&out, after);
	return out;
}

static int64_t lines_of(const struct input *input)
{
	int64_t lines = 1;

	for (size_t i = 0; i < input->length; i++)
		lines += input->bytes[i] == '\n' || input->bytes[i] == '\r';
	return lines;
}

/* ---- dependencies ---- */

static enum python_access access_with(const char *before, const struct input *input, const char *after)
{
	struct buf text = joined(before, input, after);
	enum python_access access = python_dependencies(text.data, text.length).access;

	buf_free(&text);
	return access;
}

bool feed_dependencies(const struct input *input)
{
	const char *const files[] = {"a.txt"};
	const struct python_dependencies found = python_dependencies(input->bytes, input->length),
					 besides = python_dependencies_besides(input->bytes, input->length, files, 1);

	hold(input, (found.access == ACCESS_NOTHING) == (found.what[0] == '\0'), "what is seen has a name");
	hold(input, found.access == ACCESS_NOTHING || (found.line >= 1 && found.line <= lines_of(input)), "it is at a line of the text");
	hold(input, found.unsteady[0] == '\0' || (found.unsteady_line >= 1 && found.unsteady_line <= lines_of(input)),
	     "a clock is read at a line of the text");
	hold(input, besides.access <= found.access, "a file that may be read closes nothing");
	hold(input, access_with("\n", input, "") >= found.access, "an empty line hides nothing");
	hold(input, access_with("import os\n", input, "") == ACCESS_OUTSIDE, "nothing hides an import before it");
	return found.access == ACCESS_NOTHING;
}

/* ---- normal forms ---- */

/* `form` is the normal form of the input. `text` is the input with changes that do not matter to Python. Checks that
 * `text` has the same normal form or none. */
static void expect_form(const struct input *input, const struct buf *form, struct buf text, const char *what)
{
	struct buf other = {0};

	if (python_normal_form(text.data, text.length, &other))
		hold(input, other.length == form->length && memcmp(other.data, form->data, form->length) == 0, what);
	buf_free(&other);
	buf_free(&text);
}

static struct buf with_crlf(const struct input *input)
{
	struct buf out = {0};

	buf_reserve(&out, 1); /* without this call, the data of an empty text would be NULL */
	for (size_t i = 0; i < input->length; i++) {
		if (input->bytes[i] == '\n' && (i == 0 || input->bytes[i - 1] != '\r'))
			buf_text(&out, "\r");
		buf_add(&out, input->bytes + i, 1);
	}
	return out;
}

bool feed_normal_form(const struct input *input)
{
	struct buf form = {0};
	bool tokens = python_normal_form(input->bytes, input->length, &form);

	hold(input, form.length > 0 && form.data[0] == (tokens ? 'T' : 'R'), "a form says what it is");
	if (!tokens)
		hold(input, form.length == input->length + 1 && memcmp(form.data + 1, input->bytes, input->length) == 0,
		     "a form that is not of tokens is the text");
	if (tokens) {
		hold(input, python_dependencies(input->bytes, input->length).access == ACCESS_NOTHING,
		     "a text that may read itself keeps its comments");
		hold(input, access_with("", input, "\nimport os\n") == ACCESS_OUTSIDE, "no complete text hides an import after it");
		expect_form(input, &form, joined("# a comment\n", input, ""), "a comment before it changes nothing");
		expect_form(input, &form, joined("", input, "\n# a comment\n"), "a comment after it changes nothing");
		expect_form(input, &form, joined("", input, "\n\n"), "empty lines after it change nothing");
		expect_form(input, &form, with_crlf(input), "the form of line ends changes nothing");
		struct buf longer = joined("", input, "\nmore = 1\n"), other = {0};

		python_normal_form(longer.data, longer.length, &other);
		hold(input, other.length != form.length || memcmp(other.data, form.data, form.length) != 0,
		     "another statement is another form");
		buf_free(&longer);
		buf_free(&other);
	}
	buf_free(&form);
	return tokens;
}

/* ---- settings ---- */

/* Returns whether the text is "", "full", or a list of gaps of docs/containment.md with commas between them. */
static bool is_requirement(const char *text)
{
	char name_of_gap[64];
	size_t length;

	if (*text == '\0' || strcmp(text, "full") == 0)
		return true;
	for (const char *at = text;; at += length + 1) {
		length = strcspn(at, ",");
		if (length == 0 || length >= sizeof name_of_gap)
			return false;
		snprintf(name_of_gap, sizeof name_of_gap, "%.*s", (int)length, at);
		if (sandbox_gap_named(name_of_gap) == NULL)
			return false;
		if (at[length] == '\0')
			return true;
	}
}

/* An input that begins with '{' is parsed as a reftest.json, and every other input as a reftest.toml. */
bool feed_settings(const struct input *input)
{
	struct err err = {""};
	bool json = input->length > 0 && input->bytes[0] == '{';
	struct settings *settings = settings_parse(input->length > 0 ? input->bytes : "", input->length, json, &err);
	struct buf text = {0};

	hold(input, settings != NULL ? err.text[0] == '\0' : is_sentence(err.text), "what is refused has a sentence");
	if (settings == NULL)
		return false;
	const char *required = settings->required != NULL ? settings->required : "", *truth = settings->ground_truth;

	hold(input, is_requirement(required), "what is required are gaps");
	hold(input, memmem(input->bytes, input->length, "full", 4) != NULL || strcmp(required, "full") != 0,
	     "nothing is required that the text does not name");
	hold(input, *required == '\0' || !containment_suffices(NULL, settings_required(settings, NULL)),
	     "a verdict of unknown containment does not suffice");
	hold(input, truth == NULL || strncmp(truth, "auto", 4) == 0 || strncmp(truth, "all", 3) == 0,
	     "a dataset does not replace the ground truths");
	settings_describe(settings, ~0u, &text);
	for (int id = 0; id < SETTING_COUNT; id++)
		hold(input, settings->of[id].key == NULL || memmem(text.data, text.length, settings->of[id].key, strlen(settings->of[id].key)),
		     "each setting that takes effect is described");
	buf_free(&text);
	settings_free(settings);
	return true;
}
