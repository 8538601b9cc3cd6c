/* targets - the fuzz targets and their seeds. There is a target for each parser that reads untrusted bytes. Each target
 * calls its parser and checks the result. A new parser needs a target. A new field of a definition, workload or verdict
 * needs a seed with this field, and the field's name in the list of words below. */
#include "tests/fuzz/feed.h"
#include "tests/fuzz/targets.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/string_list.h"
#include "base/utf8.h"
#include "dataset/approval.h"
#include "dataset/constraint.h"
#include "dataset/definition_parse.h"
#include "dataset/python_names.h"
#include "dataset/python_outline.h"
#include "dataset/safetensors.h"
#include "dataset/solution.h"
#include "dataset/verdict.h"
#include "dataset/workload.h"
#include "testgen/vacuous_tests.h"

void hold(const struct input *input, bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s %" PRIu64 ": it does not hold that %s; the input:\n", input->target, input->number, what);
	for (size_t i = 0; i < input->length; i++)
		fprintf(stderr, isprint((unsigned char)input->bytes[i]) ? "%c" : "\\x%02x",
		        (unsigned char)input->bytes[i]);
	fputs("\n", stderr);
	abort();
}

bool is_sentence(const char *text)
{
	size_t left = strlen(text), step;

	if (left == 0)
		return false;
	for (; left > 0; left -= step, text += step)
		if ((step = utf8_length(text, left)) == 0 || (unsigned char)*text < 0x20)
			return false;
	return true;
}

/* --- json ---------------------------------------------------------------------------------------------------- */

static const char *const json_seeds[] = {
    "{\"a\": [1, -0, 0.5, 1e3, -1.25E-2, true, false, null, \"\\u00e9\\n\\ud83d\\ude00\"],\n\t\"b\": {}, \"c\": [] }",
    "[[[[[[[[]]]]]]], {\"\\u0061\": \"\xC3\xA9\xF0\x9F\x98\x80\"}, \"\\\"\\\\\\/\\b\\f\\r\\t\"]",
    "{\"k\": {\"k\": {\"k\": [9007199254740993, 1e308, 123456789012345678901234567890]}}}",
};

/* Checks that a message about a value gives the line and the column of this value, for every value of the tree. */
static void check_places(const struct input *input, const struct json_text *text, const cJSON *value,
                         const struct json_step *step, int *budget)
{
	struct json_step inner = {.up = step};
	struct err err;

	json_error_at(text, step, &err, "here");
	hold(input, is_sentence(err.text), "each place of a tree has a line and a column");
	for (const cJSON *child = value->child; child != NULL && (*budget)-- > 0; child = child->next, inner.index++) {
		inner.key = cJSON_IsObject(value) ? child->string : NULL;
		check_places(input, text, child, &inner, budget);
	}
}

static bool feed_json(const struct input *input)
{
	const struct json_text text = {.name = "x", .text = input->bytes, .length = input->length, .first_line = 1};
	struct err err = {""};
	cJSON *value = json_parse(&text, &err);
	int budget = 50;

	hold(input, (value == NULL) == (err.text[0] != '\0'),
	     "what is refused has a sentence and what is taken has none");
	if (value == NULL) {
		hold(input, is_sentence(err.text), "the sentence prints");
		hold(input, strstr(err.text, "cJSON") == NULL || memmem(input->bytes, input->length, "cJSON", 5) != NULL,
		     "cJSON takes what the scanner takes");
		return false;
	}
	check_places(input, &text, value, NULL, &budget);
	char *printed = cJSON_PrintUnformatted(value);
	const struct json_text again = {.name = "x", .text = printed, .length = strlen(printed), .first_line = 1};
	cJSON *second = json_parse(&again, &err);

	hold(input, second != NULL && cJSON_Compare(value, second, true), "a tree is the same once printed and parsed");
	cJSON_Delete(second);
	cJSON_free(printed);
	cJSON_Delete(value);
	return true;
}

/* --- python -------------------------------------------------------------------------------------------------- */

static const char *const python_seeds[] = {
    "import torch\n\n@torch.no_grad()\ndef run(x, *, eps=1e-6, **rest):\n    if x is None:\n\treturn {'a': 1, **rest}\n"
    "    return x[..., 1:-1, None] * torch.rsqrt(eps)\n",
    "async def f(a: int, /, b=(1, 2), *args) -> 'T':\n  async with g() as (h, *i): await j\n  return [k async for k in l if m]\n",
    "s = f\"{a!r:>{w}} {{}} {b['c']}\" rb'\\'' \"\"\"\n\"\"\"\nt = lambda *u, v=0x1F: (u if v else not -v ** 2)\n",
    "try:\r\n  pass\r\nexcept* E as e: raise X from e\r\nelse:\r\n  del y\r\nfinally: global z; z += 1\r\nfor q in 1, 2: continue\r\n",
    "match x:\n  case {'k': [1, _]} if y:\n    class C[T](D, m=E): n: int = (yield)\nwhile (run := f()): \\\n  break\n\f# end",
};

static bool feed_python(const struct input *input)
{
	struct arena arena = {0};
	struct err err = {""};
	struct python_outline outline;
	enum python_outline_answer answer =
	    python_outline_read(input->bytes, input->length, "run", &arena, &outline, &err);

	hold(input, (answer == PYTHON_OUTLINE_ERROR) == (err.text[0] != '\0'), "only an error has a sentence");
	if (answer == PYTHON_OUTLINE_ERROR) {
		hold(input, is_sentence(err.text), "the sentence prints");
		hold(input, outline.line >= 1 && outline.column >= 1, "an error has a line and a column");
	}
	struct python_name found[3];
	int count = python_names_undefined(input->bytes, input->length, &arena, found, 3); /* of invalid Python, too */

	for (int i = 0; i < count; i++) {
		hold(input, found[i].name[0] != '\0', "names are not empty");
		hold(input, found[i].line >= 1 && found[i].column >= 1, "a name has a line and a column");
	}
	for (int i = 0; i < outline.function_count; i++) {
		const struct python_function *function = &outline.functions[i];

		hold(input, function->name[0] != '\0', "functions have names");
		hold(input, function->line > (i > 0 ? outline.functions[i - 1].line - 1 : 0), "functions are in order");
		for (int k = 0; k < function->parameter_count; k++)
			hold(input, function->parameters[k].name[0] != '\0', "parameters have names");
	}
	arena_free(&arena);
	return answer == PYTHON_OUTLINE_OK;
}

/* --- definition ---------------------------------------------------------------------------------------------- */

static const char *const definition_seeds[] = {
    "{\"name\": \"n\", \"op_type\": \"o\", \"tags\": [\"fi_api:a.b\"], \"axes\": {\"b\": {\"type\": \"var\"}, \"h\": "
    "{\"type\": \"const\", \"value\": 64}, \"k\": {\"type\": \"var\"}}, \"inputs\": {\"x\": {\"shape\": [\"b\", \"k\"], "
    "\"dtype\": \"bfloat16\", \"param\": \"y\"}, \"m\": {\"shape\": null, \"dtype\": \"string\"}, \"u\": {\"shape\": "
    "[\"b\"], \"dtype\": \"unknown\", \"optional\": true, \"param\": \"v\"}}, \"outputs\": {\"y\": {\"shape\": [], "
    "\"dtype\": \"unknown\", \"optional\": true}}, \"constraints\": [\"h == 2 * k\"], \"init\": \"def _i(): pass\", "
    "\"check\": \"\", \"reference\": \"def f():\\n    '''\\n'''\\ndef _n_reference(y, m=(1,\\n2)):\\n    return y\\n\"}",
    "{\"name\": \"n\", \"op_type\": \"o\", \"tags\": [\"fi_api:a.b\"], \"axes\": {}, \"inputs\": {}, \"outputs\": "
    "{\"y\": {\"shape\": [], \"dtype\": \"int8\"}}}",
    "{\"name\": \"n\", \"op_type\": \"o\", \"description\": \"d\", \"tags\": [\"t\"], \"axes\": {\"b\": {\"type\": "
    "\"var\"}, \"h\": "
    "{\"type\": \"const\", \"value\": 64}}, \"inputs\": {\"x\": {\"shape\": [\"b\", \"h\"], \"dtype\": \"bfloat16\"}, "
    "\"e\": {\"shape\": "
    "null, \"dtype\": \"float32\", \"optional\": true}, \"i\": {\"shape\": [\"b\"], \"dtype\": \"int32\"}}, "
    "\"outputs\": {\"y\": {\"shape\": "
    "[], \"dtype\": \"float8_e4m3fn\", \"tolerance\": {\"atol\": 0.1}}}, \"constraints\": [\"b == i[-1].item() + 1\", "
    "\"h % 8 == 0\"], "
    "\"reference\": \"import torch\\n\\ndef run(x, e, i):\\n    return x\\n\", \"tolerance\": {\"rtol\": 1e-2, "
    "\"hit_ratio\": 0.9}}",
    "{\"name\":\"n\",\"op_type\":null,\"hf_id\":\"a/b\",\"custom_inputs_entrypoint\":\"f\",\"axes\":{},\"inputs\":{},\"outputs\":{\"y\":{\"shape\":null,\"dtype\":\"bool\"}"
    "},\"reference\":\"run = "
    "f\",\"init\":0}",
    "{\"name\":\"n\",\"axes\":{\"c\":{\"type\":\"expr\",\"expression\":\"a // 2\"},\"a\":{\"type\":\"expr\","
    "\"expression\":\"b ** 2 % (3 + h) / 1\"},\"b\":{\"type\":\"var\"},\"h\":{\"type\":\"const\",\"value\":4}},\"inputs\":"
    "{},\"outputs\":{\"y\":{\"shape\":[\"1\",\"c\",\"h * 2\",\"b - 1\"],\"dtype\":\"int8\"}},\"reference\":\"run = f\"}",
};

static void check_tensors(const struct input *input, const struct definition *d, const struct tensor_spec *tensors,
                          int count)
{
	int64_t axis[DEFINITION_AXES];

	for (int i = 0; i < d->axis_count; i++)
		axis[i] = d->axes[i].var ? -1 : d->axes[i].value;
	for (int i = 0; i < count; i++) {
		hold(input, tensors[i].name[0] != '\0', "tensors have names");
		hold(input, tensors[i].rank >= RANK_SCALAR && tensors[i].rank <= RANK_MAX, "ranks are bounded");
		for (int k = 0; k < tensors[i].rank; k++)
			hold(input, tensors[i].axis[k] >= 0 && tensors[i].axis[k] < d->axis_count, "shapes name axes");
		hold(input, definition_bytes(&tensors[i], axis) >= 0, "tensors can be counted");
	}
}

static bool feed_definition(const struct input *input)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct definition *d = definition_parse("x", NULL, NULL, input->bytes, input->length, &arena, &err);

	hold(input, (d == NULL) == (err.text[0] != '\0'), "what is refused has a sentence and what is taken has none");
	hold(input, d != NULL || is_sentence(err.text), "the sentence prints");
	if (d != NULL) {
		hold(input, d->axis_count <= DEFINITION_AXES && d->output_count >= 1, "counts are bounded");
		for (int i = 0; i < d->axis_count; i++)
			hold(input, d->axes[i].var ? d->axes[i].value == 0 : d->axes[i].value >= 0,
			     "const axes are not negative");
		check_tensors(input, d, d->inputs, d->input_count);
		check_tensors(input, d, d->outputs, d->output_count);
		for (int i = 0; i < d->constraint_count; i++)
			hold(input, constraint_evaluate(d, d->constraints[i], NULL, NULL, &err) != CONSTRAINT_ERROR,
			     "constraints parse");
		for (int i = 0; i < d->note_count; i++)
			hold(input, is_sentence(d->notes[i]), "notes are sentences");
		hold(input, d->left_out_count <= 2 * DEFINITION_TENSORS, "names that are left out are bounded");
		hold(input, d->reference_length > 0 ? d->entry_point != NULL : d->unverifiable != NULL && d->fi_api != NULL,
		     "a reference has a function that is called");
		hold(input, d->init != NULL && d->check != NULL, "sources are texts");
		hold(input, d->reference_line >= 1 && strlen(d->reference) == d->reference_length,
		     "the reference is whole");
	}
	arena_free(&arena);
	return d != NULL;
}

/* --- approval ------------------------------------------------------------------------------------------------ */

static const char *const approved_cases[] = {"small:b=1", "seed\n\"2\""};
static const struct approval approved = {"2026-11-27", "a \"note\"\n", "cpu", approved_cases, 2, NULL};

static const struct approval *read_approval(const struct buf *text, struct arena *arena)
{
	struct err err = {""};

	return approval_load("x", NULL, NULL, text->data, text->length, arena, &err);
}

/* Checks that a file with one changed byte is refused, unless the content is the same as before (for example, because
 * one kind of white space replaced another). */
static void check_damage(const struct input *input, struct buf *text, const struct approval *before, struct arena *arena)
{
	static const char bytes[] = "0e\" ,}";
	size_t at = (size_t)(input->number * 7919) % text->length;

	text->data[at] = bytes[input->number % (sizeof bytes - 1)];
	const struct approval *after = read_approval(text, arena);

	hold(input,
	     after == NULL || (strcmp(after->date, before->date) == 0 && strcmp(after->note, before->note) == 0 &&
	                       strcmp(after->definition->reference, before->definition->reference) == 0 &&
	                       after->definition->input_count == before->definition->input_count),
	     "a file that was changed is refused");
}

/* The input is a definition. The target writes an approval of this definition, reads it, damages it, and reads it
 * again. */
static bool feed_approval(const struct input *input)
{
	const struct json_text json = {"x", input->bytes, input->length, 1};
	struct arena arena = {0};
	struct buf text = {0};
	struct err err = {""}, why = {""};
	const struct definition *d = definition_parse("x", NULL, NULL, input->bytes, input->length, &arena, &why);
	bool written = approval_write(&approved, input->bytes, input->length, &text, &err) == 0;
	const struct approval *found = written ? read_approval(&text, &arena) : NULL;

	hold(input, written || is_sentence(err.text), "what is not written has a sentence");
	hold(input, !written || json_check(&json, &err) == 0, "what is written is JSON by itself");
	hold(input, (found != NULL) == (d != NULL && d->entry_point != NULL), "what can be approved can be read");
	if (found != NULL) {
		hold(input, strcmp(found->date, approved.date) == 0 && strcmp(found->note, approved.note) == 0 &&
			    found->case_count == 2 && strcmp(found->cases[1], approved_cases[1]) == 0 &&
			    strcmp(found->definition->reference, d->reference) == 0,
		     "what is read is what was written");
		check_damage(input, &text, found, &arena);
	}
	buf_free(&text);
	arena_free(&arena);
	return found != NULL;
}

/* --- workload and constraint: against one definition --------------------------------------------------------- */

enum { BATCH, LEN, HEADS, AXES };
enum { Q, INDPTR, SCALE, TABLE, INPUTS };

static const struct axis axes[AXES] = {{"b", true, 0}, {"len", true, 0}, {"h", false, 8}};
static const struct tensor_spec inputs[INPUTS] = {
    {.name = "q", .dtype = DTYPE_BFLOAT16, .rank = 2, .axis = {BATCH, HEADS}},
    {.name = "p", .dtype = DTYPE_INT32, .rank = 1, .axis = {LEN}},
    {.name = "s", .dtype = DTYPE_FLOAT32, .rank = RANK_SCALAR, .optional = true},
    {.name = "t", .dtype = DTYPE_INT64, .rank = 2, .axis = {BATCH, LEN}, .optional = true},
};
static const struct tensor_spec outputs[] = {{.name = "y", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {BATCH, LEN}}};
static const char *const constraints[] = {"len == b + 1", "h <= p[-1].item()"};
static const struct definition definition = {.name = "d", .axes = axes, .axis_count = AXES, .inputs = inputs,
                                             .input_count = INPUTS, .outputs = outputs, .output_count = 1,
                                             .constraints = constraints, .constraint_count = 2,
                                             .custom_inputs_entrypoint = "f"};

static const char *const workload_seeds[] = {
    "{\"definition\": \"d\", \"solution\": null, \"workload\": {\"uuid\": \"u1\", \"axes\": {\"b\": 4, \"len\": 5}, "
    "\"inputs\": {\"q\": "
    "{\"type\": \"random\"}, \"p\": {\"type\": \"safetensors\", \"path\": \"./blob/a/../b.safetensors\", "
    "\"tensor_key\": \"k\"}, \"s\": "
    "{\"type\": \"scalar\", \"value\": 0.125}}}, \"evaluation\": null}\n\n{\"definition\": \"d\", \"workload\": "
    "{\"uuid\": \"u2\", \"axes\": "
    "{\"b\": 0, \"len\": 1, \"h\": 8}, \"inputs\": {\"q\": {\"type\": \"random\"}, \"p\": {\"type\": "
    "\"random\"}}}}\r\n",
    "{\"definition\": \"d\", \"workload\": {\"uuid\": \"u\", \"axes\": {\"b\": 4, \"len\": 5}, \"inputs\": {\"q\": "
    "{\"type\": \"random\"}, "
    "\"p\": {\"type\": \"random\"}}}}\n{\"definition\": \"d\", \"workload\": {\"uuid\": \"u\", \"axes\": {\"b\": 4, "
    "\"len\": 5}, \"inputs\": "
    "{\"q\": {\"type\": \"safetensors\", \"path\": \"b\", \"tensor_key\": \"k\"}, \"p\": {\"type\": \"random\"}}}}\n",
    "{\"uuid\": \"u\", \"axes\": {\"b\": 4, \"len\": 5}, \"inputs\": {\"q\": {\"type\": \"custom\"}, \"p\": {\"type\": "
    "\"custom\"}, \"s\": {\"type\": \"custom\"}}, \"tolerance\": {\"max_atol\": 1e-5, \"max_rtol\": 0.05, "
    "\"required_match_ratio\": 0.98, \"max_error_cap\": null, \"allow_negative_inf\": true}}\n",
};

static void check_source(const struct input *input, const struct input_source *source, const struct tensor_spec *spec)
{
	if (source->kind == SOURCE_SAFETENSORS) {
		hold(input, source->path[0] != '/' && source->path[0] != '\0' && source->tensor_key[0] != '\0',
		     "paths are relative");
		hold(input, strncmp(source->path, "../", 3) != 0 && strstr(source->path, "/../") == NULL,
		     "paths stay below the root");
	}
	hold(input, source->kind != SOURCE_SCALAR || spec->rank == RANK_SCALAR, "scalars are for scalars");
	hold(input, source->kind != SOURCE_ABSENT || spec->optional, "only optional inputs are absent");
}

static bool feed_workload(const struct input *input)
{
	struct arena arena = {0};
	struct workload_file file = workloads_load("x", &definition, input->bytes, input->length, &arena);
	int invalid = 0;

	for (int i = 0; i < file.count; i++) {
		const struct workload *w = &file.lines[i];

		invalid += w->error != NULL;
		hold(input, w->line >= 1 && (i == 0 || w->line > file.lines[i - 1].line), "lines are counted");
		hold(input, (w->error != NULL) == (w->axis == NULL) && (w->error == NULL) == (w->inputs != NULL),
		     "a line is valid or not");
		hold(input, w->error == NULL ? w->uuid != NULL : is_sentence(w->error),
		     "bad lines have a sentence, good ones a uuid");
		for (int k = 0; w->error == NULL && k < INPUTS; k++)
			check_source(input, &w->inputs[k], &inputs[k]);
		hold(input, !w->tolerance.given || (w->tolerance.bounds.atol >= 0 && w->tolerance.bounds.rtol >= 0 &&
						    w->tolerance.bounds.hit_ratio > 0 && w->tolerance.bounds.hit_ratio <= 1),
		     "a tolerance has every bound");
		hold(input, w->error != NULL || w->axis[LEN] == w->axis[BATCH] + 1,
		     "the constraint that axes decide holds");
	}
	hold(input, file.invalid == invalid, "invalid lines are counted");
	arena_free(&arena);
	return file.count > invalid;
}

static const char *const trace_seeds[] = {
    "{\"definition\": \"d\", \"solution\": \"s\", \"workload\": {\"uuid\": \"u1\", \"axes\": {\"b\": 4, \"len\": 5}, "
    "\"inputs\": {\"q\": {\"type\": \"random\"}, \"p\": {\"type\": \"random\"}}}, \"evaluation\": {\"status\": "
    "\"PASSED\", \"environment\": {\"hardware\": \"h\"}, \"timestamp\": \"t\", \"correctness\": {}, "
    "\"performance\": {}}}\n",
    "{\"definition\": \"d\", \"solution\": \"s\", \"workload\": {\"uuid\": \"u1\", \"axes\": {\"b\": 0, \"len\": 1}, "
    "\"inputs\": {\"q\": {\"type\": \"random\"}, \"p\": {\"type\": \"random\"}}}, \"evaluation\": {\"status\": "
    "\"TIMEOUT\", \"environment\": {\"hardware\": \"h\"}, \"timestamp\": \"t\", \"correctness\": null}}\n",
};

static bool feed_trace(const struct input *input)
{
	struct arena arena = {0};
	struct workload_file file = traces_load("x", &definition, input->bytes, input->length, &arena);
	bool taken = file.count > file.invalid;

	for (int i = 0; i < file.count; i++) {
		const struct workload *w = &file.lines[i];

		if (w->error != NULL)
			hold(input, is_sentence(w->error), "bad lines have a sentence");
		else
			hold(input, w->solution != NULL && *w->solution != '\0' && w->axis != NULL,
			     "good lines have a solution and axes");
	}
	arena_free(&arena);
	return taken;
}

/* --- solution ------------------------------------------------------------------------------------------------ */

static const char *const solution_seeds[] = {
    "{\"name\": \"s\", \"definition\": \"d\", \"author\": \"a\", \"spec\": {\"language\": \"python\", "
    "\"target_hardware\": [\"h\"], \"entry_point\": \"m.py::run\", \"dependencies\": [\"x\"], \"build_comands\": []}, "
    "\"sources\": [{\"path\": \"m.py\", \"content\": \"def run(x):\\n  return x\"}, {\"path\": \"k.cu\", \"content\": "
    "\"k\"}]}",
    "{\"name\": \"s\", \"definition\": \"d\", \"author\": \"a\", \"spec\": {\"languages\": [\"cuda\"], "
    "\"target_hardware\": [\"h\"], \"entry_point\": \"k.cu::run\"}, \"sources\": [{\"path\": \"k.cu\", \"content\": "
    "\"k\"}], \"descripton\": null}",
};

static bool feed_solution(const struct input *input)
{
	static const struct solution_place anywhere;
	struct arena arena = {0};
	struct err err = {""};
	const struct solution *solution = solution_load("x", &anywhere, input->bytes, input->length, &arena, &err);
	bool taken = solution != NULL;

	hold(input, taken == (err.text[0] == '\0'), "what is refused has a sentence and what is taken has none");
	hold(input, taken || is_sentence(err.text), "the sentence prints");
	if (taken)
		hold(input, *solution->name != '\0' && *solution->definition != '\0' && *solution->author != '\0',
		     "a solution has names");
	for (int i = 0; taken && i < solution->note_count; i++)
		hold(input, is_sentence(solution->notes[i]), "notes print");
	arena_free(&arena);
	return taken;
}

static const char *const constraint_seeds[] = {
    "len == b + 1", "h <= p[-1].item()", "(b - 1) * h // 3 % 7 >= -2 ** 3 and not t[0, 1] != t[-1][0].item() or True",
    "max(b, len(p), 3) < min(1, 2.5e1) <= t.sum() - p.max() / p.min()", "t.shape[-1] == t[p[0]].numel()", "s > .5",
};

static bool feed_constraint(const struct input *input)
{
	static const int32_t p[] = {0, 3, 3, 9};
	static const int64_t axis[AXES] = {2, 4, 8}, none[AXES] = {-1, -1, 8},
			     t[] = {1, INT64_MAX, 3, -4, INT64_MIN, 6, 7, 0};
	static const float s = 0.125f;
	const struct constraint_tensor tensors[INPUTS] = {[INDPTR] = {p, DTYPE_INT32, 1, {4}},
	                                                  [SCALE] = {&s, DTYPE_FLOAT32, RANK_SCALAR, {0}},
	                                                  [TABLE] = {t, DTYPE_INT64, 2, {2, 4}}};
	char *text = strndup(input->bytes, input->length);
	struct definition with = definition;
	struct err err = {""}, why = {""};
	bool valid = constraint_evaluate(&definition, text, NULL, NULL, &err) != CONSTRAINT_ERROR;
	enum constraint_answer full = constraint_evaluate(&definition, text, axis, tensors, &why);

	hold(input, valid || err.text[0] != '\0', "what is refused has a sentence");
	hold(input, full == CONSTRAINT_HOLDS || why.text[0] != '\0', "every answer but yes has a reason");
	hold(input, !valid || strncmp(why.text, "column ", 7) != 0, "what checks makes sense whatever is known");
	enum constraint_answer partly = constraint_evaluate(&definition, text, none, NULL, &why);

	hold(input,
	     (partly != CONSTRAINT_HOLDS && partly != CONSTRAINT_BROKEN) || partly == full || full == CONSTRAINT_ERROR,
	     "to know more changes no answer");
	int64_t solved[AXES] = {-1, -1, 8};

	with.constraints = (const char *const[]){text};
	with.constraint_count = 1;
	hold(input, constraint_solve(&with, solved) <= 2 && solved[BATCH] >= -1 && solved[LEN] >= -1,
	     "axes are solved to sizes");
	free(text);
	return valid;
}

/* --- safetensors --------------------------------------------------------------------------------------------- */

static const char *const safetensors_seeds[] = {
    "{\"__metadata__\": {\"format\": \"pt\"}, \"a\": {\"dtype\": \"BF16\", \"shape\": [3], \"data_offsets\": [0, 6]}, "
    "\"z\": {\"dtype\": \"I32\", "
    "\"shape\": [2, 1], \"data_offsets\": [6, 14]}, \"e\": {\"dtype\": \"U8\", \"shape\": [0], \"data_offsets\": [14, "
    "14]}}",
    "{\"a\": {\"dtype\": \"F4\", \"shape\": [28], \"data_offsets\": [0, 14]}}",
};

/* The input is the header of a safetensors file. The target adds the length before it, and 14 bytes of data after it.
 * For every fourth input, the length is arbitrary. */
static bool feed_safetensors(const struct input *input)
{
	size_t length = 8 + input->length + 14;
	unsigned char *bytes = calloc(1, length);
	struct arena arena = {0};
	struct safetensors out;
	struct err err = {""};

	if (bytes == NULL)
		die_no_memory();
	memcpy(bytes + 8, input->bytes, input->length);
	for (int i = 0; i < 8; i++)
		bytes[i] =
		    (unsigned char)((input->number % 4 == 0 ? input->number * 0x9E3779B97F4A7C15u : input->length) >>
		                    (8 * i));
	bool valid = safetensors_parse("x", bytes, length, &arena, &out, &err) == 0;

	hold(input, valid == (err.text[0] == '\0'), "what is refused has a sentence and what is taken has none");
	for (int i = 0; valid && i < out.count; i++) {
		const struct safetensor *t = &out.tensors[i];

		hold(input, t->bytes >= 0 && t->begin >= 8 && t->bytes <= (int64_t)length - t->begin,
		     "data lies in the file");
		hold(input, safetensors_find(&out, t->name) == t, "each tensor is found");
	}
	free(bytes);
	arena_free(&arena);
	return valid;
}

/* --- verdict ------------------------------------------------------------------------------------------------- */

static const char *const verdict_seeds[] = {
    "{\"status\": \"failed\", \"reason\": \"numeric\", \"message\": \"m\", \"weak\": true, \"device_class\": \"cpu\", "
    "\"device\": \"cpu\", "
    "\"ground_truth\": \"builtin\", \"ground_truth_version\": \"0\", \"torch\": \"2\", \"cuda\": null, \"seconds\": "
    "0.002, \"time\": 1, "
    "\"elements\": 24, \"reference_line\": 17, \"outputs\": [{\"name\": \"o\", \"ground_truth\": \"builtin\", "
    "\"status\": \"failed\", "
    "\"reason\": \"numeric\", \"atol\": 0.008, \"rtol\": 0.01, \"hit_ratio_needed\": 0.85, \"shape\": [2, 3, 4], "
    "\"elements\": 24, \"hits\": "
    "18, \"nan_reference\": 1, \"nan_ground_truth\": 2, \"inf_reference\": 3, \"inf_ground_truth\": 4, \"max_abs\": "
    "1.0, \"mean_abs\": 1e-9, "
    "\"max_rel\": \"inf\", \"mean_rel\": 0.1, \"cosine\": -0.0, \"mse\": 1e-300, \"margin\": \"nan\", "
    "\"zeros_would_pass\": true, \"passed\": "
    "false, \"worst\": [[23, \"nan\", \"-inf\"]]}], "
    "\"constants\": [{\"name\": "
    "\"eps\", \"value\": 1e-05, \"source\": \"unattested\"}], \"findings\": [\"f\"]}",
};

static bool feed_verdict(const struct input *input)
{
	struct arena arena = {0};
	struct buf once = {0}, twice = {0}, shown = {0};
	struct err err = {""};
	const struct verdict *v = verdict_parse(input->bytes, input->length, &arena, &err);
	bool valid = v != NULL;

	hold(input, valid == (err.text[0] == '\0'), "what is refused has a sentence and what is taken has none");
	if (valid) {
		verdict_write(v, &once);
		verdict_write_outputs(v, &shown);
		const struct json_text text = {
		    .name = "x", .text = shown.data, .length = shown.length, .first_line = 1};
		cJSON *json = json_parse(&text, &err);

		hold(input, json != NULL, "what is shown is JSON");
		cJSON_Delete(json);
		v = verdict_parse(once.data, once.length, &arena, &err);
		hold(input, v != NULL, "what is written is read");
		verdict_write(v, &twice);
		hold(input, strcmp(once.data, twice.data) == 0, "writing and reading change nothing");
	}
	buf_free(&once);
	buf_free(&twice);
	buf_free(&shown);
	arena_free(&arena);
	return valid;
}

/* --- audit --------------------------------------------------------------------------------------------------- */

static const char *const audit_seeds[] = {
    "{\"findings\": []}",
    "{\"findings\": [{\"line\": 3, \"reason\": \"test_\u00e9 compares nothing\"}, {\"line\": 2147483647, \"reason\": \"x\"}], \"vacuous\": true, \"missing\": \"flashinfer\"}",
    "{\"findings\": [{\"reason\": \"run is a copy\", \"line\": 1, \"more\": {\"a\": [null]}}], \"line\": 2}",
};

/* Parses the input as an answer of the audit script (python/vacuous_tests.py). Checks that each finding has a message
 * and a line, and that a rejected answer adds no findings. */
static bool feed_audit(const struct input *input)
{
	struct arena arena = {0};
	struct string_list messages = {.arena = &arena};
	struct err err = {""};
	struct vacuous_answer answer;
	bool valid = vacuous_tests_read_answer("test_x.py", input->bytes, input->length, &messages, &answer, &err) == 0;

	hold(input, valid ? err.text[0] == '\0' : messages.count == 0 && is_sentence(err.text), "a refusal says why");
	for (int i = 0; i < messages.count; i++) {
		hold(input, is_sentence(messages.items[i]), "a finding is a sentence");
		hold(input, strncmp(messages.items[i], "test_x.py:", 10) == 0 && atoi(messages.items[i] + 10) > 0,
		     "a finding is at a line");
	}
	arena_free(&arena);
	return valid;
}

/* --- targets ------------------------------------------------------------------------------------------------- */

/* Most inputs of a target are mutations of its seeds, which are those in this table and the files of
 * tests/fuzz/corpus/NAME/. */
static const struct target {
	const char *name;
	feed_function *feed;
	const char *const *seeds;
	size_t seed_count;
	int slower; /* the unit tests divide the number of inputs by this; at least 1 */
} targets[] = {
    {"json", feed_json, json_seeds, sizeof json_seeds / sizeof *json_seeds, 1},
    {"python", feed_python, python_seeds, sizeof python_seeds / sizeof *python_seeds, 1},
    {"definition", feed_definition, definition_seeds, sizeof definition_seeds / sizeof *definition_seeds, 1},
    {"approval", feed_approval, definition_seeds, sizeof definition_seeds / sizeof *definition_seeds, 4},
    {"workload", feed_workload, workload_seeds, sizeof workload_seeds / sizeof *workload_seeds, 1},
    {"trace", feed_trace, trace_seeds, sizeof trace_seeds / sizeof *trace_seeds, 1},
    {"solution", feed_solution, solution_seeds, sizeof solution_seeds / sizeof *solution_seeds, 1},
    {"constraint", feed_constraint, constraint_seeds, sizeof constraint_seeds / sizeof *constraint_seeds, 1},
    {"safetensors", feed_safetensors, safetensors_seeds, sizeof safetensors_seeds / sizeof *safetensors_seeds, 1},
    {"verdict", feed_verdict, verdict_seeds, sizeof verdict_seeds / sizeof *verdict_seeds, 1},
    {"audit", feed_audit, audit_seeds, sizeof audit_seeds / sizeof *audit_seeds, 1},
    {"dependencies", feed_dependencies, NULL, 0, 1},
    {"normal_form", feed_normal_form, NULL, 0, 1},
    {"settings", feed_settings, NULL, 0, 1},
    {"row", feed_row, NULL, 0, 1},
    {"fields", feed_fields, NULL, 0, 1},
    {"verdict_line", feed_verdict_line, NULL, 0, 4},
    {"archive", feed_archive, NULL, 0, 20},
    {"message", feed_message, NULL, 0, 1},
    {"action_result", feed_action_result, NULL, 0, 1},
    {"url", feed_url, NULL, 0, 1},
    {"index", feed_index, NULL, 0, 4},
    {"listing", feed_listing, NULL, 0, 4},
    {"job", feed_job, NULL, 0, 4},
    {"channel", feed_channel, NULL, 0, 4},
    {"question", feed_question, NULL, 0, 1},
    {"answer", feed_answer, NULL, 0, 1},
    {"facts", feed_facts, NULL, 0, 1},
    {"work_request", feed_work_request, NULL, 0, 1},
    {"work_answer", feed_work_answer, NULL, 0, 4},
    {"rpc_request", feed_rpc_request, NULL, 0, 1},
#ifdef REMOTE_LIBRARIES
    {"redis_reply", feed_redis_reply, NULL, 0, 8},
    {"http_reply", feed_http_reply, NULL, 0, 8},
#endif
};
enum { TARGETS = sizeof targets / sizeof *targets, INPUT_BYTES = 8192, CORPUS_BYTES = 1 << 20 };

/* --- seeds --------------------------------------------------------------------------------------------------- */

struct seeds {
	struct arena arena;
	struct string_list names; /* the names of the files in the corpus, sorted */
	struct buf *items;
	size_t count;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Finds the corpus from the program's own path, because unit tests run in any directory. */
static const char *corpus_folder(const char *target, struct arena *arena)
{
	char program[4096];
	ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

	while (length > 0 && program[length - 1] != '/')
		length--;
	return arena_printf(arena, "%.*s../../../tests/fuzz/corpus/%s", (int)(length > 0 ? length : 0), program, target);
}

static void list_corpus(const char *folder, struct seeds *out)
{
	DIR *stream = opendir(folder);
	const struct dirent *entry;

	while (stream != NULL && (entry = readdir(stream)) != NULL)
		if (entry->d_name[0] != '.')
			string_list_add(&out->names, arena_printf(&out->arena, "%s/%s", folder, entry->d_name));
	if (stream != NULL)
		closedir(stream);
	if (out->names.count > 1)
		qsort(out->names.items, (size_t)out->names.count, sizeof *out->names.items, compare_names);
}

static void seeds_open(const struct target *target, struct seeds *out)
{
	struct err err;

	*out = (struct seeds){0};
	out->names.arena = &out->arena;
	const char *folder = corpus_folder(target->name, &out->arena);

	list_corpus(folder, out);
	if (target->seed_count + (size_t)out->names.count == 0) {
		fprintf(stderr, "fuzz: target %s has no seeds, because there are no files in %s\n", target->name, folder);
		exit(2);
	}
	out->items = arena_array(&out->arena, target->seed_count + (size_t)out->names.count, sizeof *out->items);
	for (size_t i = 0; i < target->seed_count; i++)
		buf_text(&out->items[out->count++], target->seeds[i]);
	for (int i = 0; i < out->names.count; i++)
		if (file_read(AT_FDCWD, out->names.items[i], CORPUS_BYTES, &out->items[out->count++], NULL, &err) != FILE_OK) {
			fprintf(stderr, "%s\n", err.text);
			abort();
		}
}

static void seeds_close(struct seeds *seeds)
{
	for (size_t i = 0; i < seeds->count; i++)
		buf_free(&seeds->items[i]);
	arena_free(&seeds->arena);
}

/* --- mutation ------------------------------------------------------------------------------------------------ */

/* Words with a meaning for at least one of the parsers. Mutations insert them into inputs. */
static const char *const words[] = {
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "\\",
    "\n",
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    "9223372036854775808",
    "9007199254740992",
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "\xFF",
    "\xC3",
    "\xED\xA0\x80",
    "\xEF\xBB\xBF",
    "NaN",
    "Infinity",
    "//",
    "'",
    "1.5",
    "-0",
    "[[[[[[[[",
    "\"shape\"",
    "\"dtype\"",
    "\"value\"",
    "\"type\"",
    "\"var\"",
    "\"const\"",
    "\"description\"",
    "(",
    ")",
    "**",
    "//",
    "%",
    "not ",
    " and ",
    " or ",
    "==",
    "<",
    ".item()",
    ".shape[0]",
    ".sum()",
    "[-1]",
    "[9]",
    "len(",
    "max(",
    "2 ** 62",
    "-9223372036854775807",
    "p",
    "t",
    "b",
    "len",
    "../",
    "/",
    "def run(",
    "\"inf\"",
    "\"nan\"",
    "\x1b",
    "\x7f",
    "\x01",
};

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545F4914F6CDD1Du >> 16;
}

/* Replaces the `cut` bytes at `at` by `length` other bytes. */
static void replace_bytes(struct buf *text, size_t at, size_t cut, const char *bytes, size_t length)
{
	struct buf out = {0};

	buf_add(&out, text->data, at);
	buf_add(&out, bytes, length);
	buf_add(&out, text->data + at + cut, text->length - at - cut);
	buf_free(text);
	*text = out;
}

static void mutate(struct buf *text, const struct seeds *seeds, uint64_t *state)
{
	size_t at = draw(state) % (text->length + 1), left = text->length - at;
	size_t cut = left == 0 ? 0 : draw(state) % (left < 40 ? left + 1 : 40);
	const char *word = words[draw(state) % (sizeof words / sizeof *words)];
	const struct buf *seed = &seeds->items[draw(state) % seeds->count];
	size_t from = draw(state) % (seed->length + 1);
	char byte = (char)draw(state), copy[40];

	memcpy(copy, text->data + at, cut);
	switch (draw(state) % 8) {
	case 0: /* a bit */
		if (left > 0)
			text->data[at] = (char)(text->data[at] ^ (1 << (draw(state) % 8)));
		break;
	case 1: /* a byte */
		replace_bytes(text, at, left > 0, &byte, 1);
		break;
	case 2: /* less */
		replace_bytes(text, at, cut, "", 0);
		break;
	case 3: /* the end */
		replace_bytes(text, at, draw(state) % 4 == 0 ? left : 0, "", 0);
		break;
	case 4: /* repeat a part of the input */
		replace_bytes(text, at, 0, copy, cut);
		break;
	case 5: /* append the rest of another seed */
		replace_bytes(text, at, left, seed->data + from, seed->length - from);
		break;
	case 6: /* replace a few bytes by a word */
		replace_bytes(text, at, cut < 6 ? cut : 1, word, strlen(word));
		break;
	default: /* insert a word */
		replace_bytes(text, at, 0, word, strlen(word));
	}
}

/* Feeds a copy of the bytes in an allocation of exactly their size. */
static bool feed_exactly(const struct target *target, uint64_t number, const void *from, size_t length)
{
	char *bytes = malloc(length + (length == 0));

	if (bytes == NULL)
		die_no_memory();
	if (length > 0)
		memcpy(bytes, from, length);
	bool taken = target->feed(&(struct input){target->name, number, bytes, length});

	free(bytes);
	return taken;
}

static bool feed(const struct target *target, const struct seeds *seeds, uint64_t number)
{
	uint64_t state = (number + 1) * 0x9E3779B97F4A7C15u;
	const struct buf *seed = &seeds->items[number % seeds->count];
	struct buf text = {0};

	buf_add(&text, seed->data, seed->length);
	/* the first inputs are the seeds themselves */
	for (uint64_t rounds = number < seeds->count ? 0 : draw(&state) % 5; rounds > 0 && text.length < INPUT_BYTES; rounds--)
		mutate(&text, seeds, &state);
	bool taken = feed_exactly(target, number, text.data, text.length);

	buf_free(&text);
	return taken;
}

/* --- the interface ------------------------------------------------------------------------------------------- */

const char *fuzz_target(int index)
{
	return index < TARGETS ? targets[index].name : NULL;
}

static const struct target *target_of(const char *name)
{
	for (int i = 0; i < TARGETS; i++)
		if (strcmp(targets[i].name, name) == 0)
			return &targets[i];
	return NULL;
}

int fuzz_run(const char *name, uint64_t first, uint64_t count)
{
	const struct target *target = target_of(name);
	struct seeds seeds;
	int taken = 0;

	if (target == NULL)
		return -1;
	seeds_open(target, &seeds);
	for (uint64_t k = 0; k < count; k++)
		taken += feed(target, &seeds, first + k);
	seeds_close(&seeds);
	return taken;
}

int64_t fuzz_run_seconds(const char *name, uint64_t first, double seconds)
{
	const struct target *target = target_of(name);
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
	struct seeds seeds;
	int64_t fed = 0;

	if (target == NULL)
		return -1;
	seeds_open(target, &seeds);
	for (; clock() < end; fed++)
		feed(target, &seeds, first + (uint64_t)fed);
	seeds_close(&seeds);
	return fed;
}

bool fuzz_one(const char *name, const void *bytes, size_t length)
{
	const struct target *target = target_of(name);

	return target != NULL && feed_exactly(target, length, bytes, length);
}
