/* test_models_file - the entry of one model in a TypeScript file is replaced or added, and every other byte stays. */
#include "web/models_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const norms[] = {"rmsnorm_h64"};
static const char *const attention[] = {"gqa_paged_prefill_causal_h32_kv8_d128_ps1", "gqa_paged_decode_h32_kv8_d128_ps1",
					"gqa_ragged_prefill_causal_h32_kv8_d128"};
static const struct web_module modules[] = {
    {"TinyForCausalLM", 1, NULL, WEB_BLOCK, NULL, 0},
    {"norm", 2, "TinyForCausalLM", WEB_LAYER, norms, 1},
    {"self_attn.attn", 2, "TinyForCausalLM", WEB_LAYER, attention, 3},
};
static const struct web_model tiny = {"tiny-1b", "Tiny \"1B\"", "A model.", modules, 3};

#define ENTRY                                                       \
	"{\n"                                                       \
	"    id: \"tiny-1b\",\n"                                    \
	"    name: \"Tiny \\\"1B\\\"\",\n"                          \
	"    description: \"A model.\",\n"                          \
	"    modules: {\n"                                          \
	"      TinyForCausalLM: {\n"                                \
	"        count: 1,\n"                                       \
	"        type: \"block\",\n"                                \
	"        definitions: [],\n"                                \
	"      },\n"                                                \
	"      norm: {\n"                                           \
	"        count: 2,\n"                                       \
	"        parent: \"TinyForCausalLM\",\n"                    \
	"        type: \"layer\",\n"                                \
	"        definitions: [\"rmsnorm_h64\"],\n"                 \
	"      },\n"                                                \
	"      \"self_attn.attn\": {\n"                             \
	"        count: 2,\n"                                       \
	"        parent: \"TinyForCausalLM\",\n"                    \
	"        type: \"layer\",\n"                                \
	"        definitions: [\n"                                  \
	"          \"gqa_paged_prefill_causal_h32_kv8_d128_ps1\",\n" \
	"          \"gqa_paged_decode_h32_kv8_d128_ps1\",\n"        \
	"          \"gqa_ragged_prefill_causal_h32_kv8_d128\",\n"   \
	"        ],\n"                                              \
	"      },\n"                                                \
	"    },\n"                                                  \
	"  }"
#define HEAD "import type { Model } from \"x\"\n// const models = [ in a comment\nconst models: Array<Model> = [\n"
#define TAIL "\n] satisfies Model[]\n\nexport default models /* the end has no line end */"

static void expect(const char *text, enum models_file_change change, const char *wanted)
{
	struct buf out = {0};
	struct err err = {""};
	/* the copy has exactly this length, so that a sanitizer detects a read beyond its end */
	size_t length = strlen(text);
	char *copy = malloc(length + (length == 0));

	assert_non_null(copy);
	memcpy(copy, text, length);
	assert_int_equal(models_file_set("models.ts", copy, length, &tiny, &out, &err), change);
	if (change == MODELS_FILE_ERROR)
		assert_string_equal(err.text, wanted);
	else
		assert_string_equal(out.data, wanted);
	buf_free(&out);
	free(copy);
}

static void an_entry_is_replaced_and_nothing_else(void **state)
{
	static const char other[] = "  { 'id': 'tiny-1', n: [1, -2.5, {a: null}], /* tiny-1b */ s: `}` }, // odd";
	char text[4096], wanted[4096];

	(void)state;
	snprintf(text, sizeof text, "%s%s\n  {\n    id: \"tiny-1b\", // old\n  },%s", HEAD, other, TAIL);
	snprintf(wanted, sizeof wanted, "%s%s\n  %s,%s", HEAD, other, ENTRY, TAIL);
	expect(text, MODELS_FILE_REPLACED, wanted);
	expect(wanted, MODELS_FILE_SAME, wanted);
}

/* Everything in an entry except the modules stays unchanged: names that somebody wrote, comments, and members that
 * reftest does not know. */
static void the_modules_of_an_entry_are_replaced(void **state)
{
	static const char modules_text[] = "modules: {", end[] = "\n    },\n";
	const char *begin = strstr(ENTRY, modules_text);
	const char *behind = strstr(begin, end) + strlen("\n    }");
	char text[4096], wanted[4096];

	(void)state;
	snprintf(text, sizeof text,
		 "%s  {\n    name: 'Mine', // a name\n    id: \"tiny-1b\",\n"
		 "    'modules': { x: {count: 1} } // old\n    , more: 1,\n  },%s",
		 HEAD, TAIL);
	snprintf(wanted, sizeof wanted,
		 "%s  {\n    name: 'Mine', // a name\n    id: \"tiny-1b\",\n    'modules': %.*s // old\n    , more: 1,\n  },%s", HEAD,
		 (int)(behind - begin - (long)strlen("modules: ")), begin + strlen("modules: "), TAIL);
	expect(text, MODELS_FILE_REPLACED, wanted);
	expect(wanted, MODELS_FILE_SAME, wanted);
}

static void a_new_entry_is_added_behind_the_last(void **state)
{
	(void)state;
	expect(HEAD "  {id: 'a'}, // last" TAIL, MODELS_FILE_ADDED, HEAD "  {id: 'a'}, // last\n  " ENTRY "," TAIL);
	expect(HEAD "  {id: 'a'} // last" TAIL, MODELS_FILE_ADDED, HEAD "  {id: 'a'}, // last\n  " ENTRY "," TAIL);
	expect("const models = []", MODELS_FILE_ADDED, "const models = [\n  " ENTRY ",\n]");
	expect("const models = [\n]", MODELS_FILE_ADDED, "const models = [\n  " ENTRY ",\n]");
	expect("const models = [\n  {id: 'a'}]", MODELS_FILE_ADDED, "const models = [\n  {id: 'a'},\n  " ENTRY ",\n]");
}

static void lines_end_as_in_the_file(void **state)
{
	struct buf out = {0};
	static const char text[] = "const models = [\r\n\t{id: 'a'},\r\n]\r\n";

	(void)state;
	assert_int_equal(models_file_set("m.ts", text, strlen(text), &tiny, &out, NULL), MODELS_FILE_ADDED);
	for (size_t i = 0; i < out.length; i++)
		assert_true(out.data[i] != '\n' || out.data[i - 1] == '\r');
	assert_non_null(strstr(out.data, "\r\n\t{\r\n\t\tid: \"tiny-1b\",\r\n"));
	buf_free(&out);
}

static void a_file_of_another_form_is_left_alone(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
	    {"", "models.ts:1:1: expected `const models = [`, found the end of the file"},
	    {"let models = []", "models.ts:1:16: expected `const models = [`, found the end of the file"},
	    {"const models = load()", "models.ts:1:16: expected '[', found load"},
	    {"const models = [\n  ...others,\n]", "models.ts:2:3: expected '{' of an entry, found ."},
	    {"const models = [{id: 'a', n: f(1)}]", "models.ts:1:30: expected a literal value, found f"},
	    {"const models = [{id: `a${b}`}]", "models.ts:1:22: expected a plain string, found a string with ${…}"},
	    {"const models = [{name: 'a'}]", "models.ts:1:17: expected an entry with an id, found {"},
	    {"const models = [{id: 'a', id: 'b'}]", "models.ts:1:31: expected one id, found 'b'"},
	    {"const models = [{id: 'tiny-1b'}, {id: 'tiny-1b'}]",
	     "models.ts:1:34: expected only one entry of this model, found {"},
	    {"const models = [{id: 'a', modules: {}, modules: {}}]", "models.ts:1:40: expected modules once, found modules"},
	    {"const models = [{id: ''}]", "models.ts:1:22: expected a plain string, found ''"},
	    {"const models = [{id: 'a'}", "models.ts:1:26: expected ',' or ']', found the end of the file"},
	    {"const models = [{id: 'a' /* }]", "models.ts:1:25: expected ',' or '}', found a comment without end"},
	    {"const models = [{id: 'a\n'}]", "models.ts:1:22: expected a plain string, found a string without end"},
	    {"const models = [{id: 'a\\", "models.ts:1:22: expected a plain string, found a string without end"},
	    {"const models = [{id: 'a', ...b}]", "models.ts:1:27: expected a key, found ."},
	    {"const models = [{id: 'a'}, , {id: 'b'}]", "models.ts:1:28: expected '{' of an entry, found ,"},
	};
	char message[256], deep[128] = "const models = [{id: 'a', n: ";

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		snprintf(message, sizeof message, "%s; the file was left as it is", rows[i].message);
		expect(rows[i].text, MODELS_FILE_ERROR, message);
	}
	memset(deep + strlen(deep), '[', 60);
	snprintf(message, sizeof message, "models.ts:1:60: expected a value that is nested less deeply, found [; the file was left as it is");
	expect(deep, MODELS_FILE_ERROR, message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_entry_is_replaced_and_nothing_else),
	    cmocka_unit_test(the_modules_of_an_entry_are_replaced),
	    cmocka_unit_test(a_new_entry_is_added_behind_the_last),
	    cmocka_unit_test(lines_end_as_in_the_file),
	    cmocka_unit_test(a_file_of_another_form_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
