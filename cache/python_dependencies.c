/* python_dependencies - looks up each name of a Python text in lists of known names.
 *
 * Python code can access a value only through a name, an attribute or an import, or through a name that it computes at
 * run time. Therefore:
 *   - a name that the text does not bind must be a builtin of Python, and must not be in names_outside, the list of
 *     builtins that open files or reach objects by a computed name;
 *   - an attribute must be in names_plain, or the text itself must give its objects an attribute with the same spelling.
 *     The runner then checks that no class of Python or torch has an attribute with this spelling
 *     (python/library_attributes.py). Some attributes are rejected in any case;
 *   - a module's name must be followed by a dot and a name in names_plain, so the module object itself cannot be
 *     assigned or passed. Therefore no chain of attributes leads through a module to another module (random._os,
 *     torch.overrides, functools.sys);
 *   - the body of a class must not import, because the module would be an attribute of the class;
 *   - a class pattern of a `match` statement must have no arguments, because they stand for attributes;
 *   - `dataclass` must decorate a class without bases, because it executes code that contains the names of the fields;
 *   - functions that compute names at run time (getattr, setattr, vars, eval, str.format with paths) are not allowed;
 *   - a class that type(x) or x.__class__ returns must only be compared or asked for its name, because it may be `type`,
 *     which makes attributes with computed names, as the classes of the module enum do;
 *   - functions that return the addresses of objects (id, hash, repr) are not allowed, because addresses differ from
 *     process to process;
 *   - an `except` that can catch a lack of memory is not allowed, because the free memory differs from run to run. The
 *     same holds for code that may replace the exception by one that another `except` catches.
 * A rejected name may be harmless in a reference. The verdict on such a reference is nevertheless not stored, so the
 * reference runs again each time. */
#include "cache/python_dependencies.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cache/python_names.h"
#include "cache/python_own_attributes.h"
#include "cache/python_words.h"

enum { MODULES_MAX = 32 };

struct look {
	const struct python_words *words;
	struct span modules[MODULES_MAX];
	int module_count;
	struct buf own;           /* struct word …: the first use of each attribute that the text gives to its objects */
	bool catches;             /* the text contains `except` or `yield` */
	bool defines_operations;  /* the text uses a name of operations_of_classes */
	const char *const *files; /* the files that the code may open for reading */
	int file_count;
	struct python_dependencies found;
};

/* ---- lists ---- */

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Modules that a reference may import if its verdict is to be stored. All these modules are part of Python or of torch.
 * In each of these modules, a name in names_plain has no effect outside the process. */
static const char *const imports_plain[] = {
    "__future__", "abc", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses", "decimal",
    "fractions", "functools", "heapq", "itertools", "math", "numbers", "operator", "random", "torch", "typing",
};

/* Modules that read the clock or the name of the machine. functions_unsteady contains functions of the module os whose
 * results also differ between runs or machines. */
static const char *const modules_unsteady[] = {"datetime", "platform", "socket", "time", "timeit", "uuid"};
static const char *const functions_unsteady[] = {"getloadavg", "stat", "times", "uname"};

/* Names that are modules if they follow the name of another module and a dot. */
static const char *const submodules[] = {
    "abc", "amp", "attention", "autograd", "backends", "cuda", "cudnn", "fft", "functional", "init", "linalg", "nn",
    "random", "special",
};

/* Names that are modules if they follow the name of another module and a dot. Elsewhere, these names are functions or
 * attributes (Tensor.cpu, copy.copy), so names_plain also contains them. */
static const char *const modules_elsewhere[] = {"copy", "cpu", "func", "grad"};

/* Builtins that open a file, reach an object by a name computed at run time, or return the address of an object. The
 * list is for Python 3.14; later versions may add such builtins. */
static const char *const names_outside[] = {
    "ascii", "breakpoint", "compile", "delattr", "dir", "eval", "exec", "getattr", "globals", "hash", "help", "id",
    "locals", "open", "repr", "setattr", "vars",
};

/* Exceptions that an `except` may catch. None of them, and no class that is derived from one of them, is raised because
 * memory runs out. */
static const char *const exceptions_plain[] = {
    "ArithmeticError", "AssertionError", "AttributeError", "ImportError", "IndexError", "KeyError", "LookupError",
    "ModuleNotFoundError", "NameError", "NotImplementedError", "OverflowError", "StopIteration", "TypeError",
    "UnboundLocalError", "ValueError", "ZeroDivisionError",
};

/* Attributes that are rejected even if the text itself binds the same name. For example, `obj` of an AttributeError may
 * be a module, Enum._convert_ reads the module that a string names, `_cdata` of a tensor is an address, and the seed() of
 * any generator is a random number of the operating system. The runner also rejects most of these names, because classes
 * of Python or torch have them; this list does not depend on the classes that are loaded. */
static const char *const attributes_outside[] = {
    "SystemRandom", "_cdata", "_convert_", "_evaluate", "_hash", "cell_contents", "ctypes", "elapsed_time", "f_back",
    "f_builtins", "f_globals", "f_locals", "fdel", "fget", "format_map", "fromfile", "fset", "load", "numpy", "obj",
    "os", "record_event", "save", "seed", "sys", "tb_next", "tofile",
};

/* Attributes that are rejected like attributes_outside if they contain one of these parts. Tensors and their storages
 * have many such attributes (_typed_storage, _new_shared_filename_cpu). */
static const char *const parts_outside[] = {
    "_file", "data_ptr", "file_", "is_shared", "share_", "shared_", "storage", "weak_ref", "weakref",
};

/* A dataclass executes code that contains the names of its fields. A text that uses `dataclass` could change these names
 * by these attributes and builtins. */
static const char *const attributes_beside_dataclass[] = {"__class__", "name"};
static const char *const names_beside_dataclass[] = {"__class__", "setattr", "type"};

/* Attributes of an open file. Only a text that may open files may use these attributes. No other object that the text
 * can access has attributes with these names. */
static const char *const attributes_of_files[] = {"close", "read", "readline", "readlines"};

/* The literals and the names of keyword arguments that a call of open may contain after the path. */
static const char *const open_literals[] = {"ascii", "r", "rb", "rt", "utf-8"};
static const char *const open_keywords[] = {"encoding", "mode"};

/* Names by which code can read the text of the reference itself. After a dot, they count as ACCESS_OUTSIDE. */
static const char *const names_itself[] = {
    "ast", "attrgetter", "dis", "doctest", "gc", "inspect", "metaclass", "methodcaller", "pydoc", "tokenize",
};

/* Code can read its own text by a name that contains one of these parts, for example by _getframe, f_lineno,
 * getsourcelines, torch.compiler, _jit_internal, gi_code or co_lines. After a dot, such a name counts as ACCESS_OUTSIDE,
 * because a frame leads to all builtins, and a changed code object can use names that the text does not contain. */
static const char *const parts_itself[] = {
    "_code", "co_", "compile", "frame", "getsource", "importlib", "inspect", "jit", "linecache", "lineno",
    "traceback", "triton",
};

/* Names with two underscores on each side. The names in dunders_plain do not reveal the source of the code; the names
 * in dunders_itself do. Every other name with two underscores on each side counts as ACCESS_OUTSIDE. */
static const char *const dunders_plain[] = {
    "__add__", "__all__", "__call__", "__contains__", "__eq__", "__future__", "__getitem__", "__init__", "__iter__",
    "__len__", "__main__", "__mul__", "__name__", "__neg__", "__next__", "__post_init__", "__radd__", "__rmul__",
    "__setitem__", "__sub__", "__version__",
};
/* The names among dunders_plain by which a class defines what Python and torch do with its objects. Torch replaces some
 * exceptions of these operations by others: torch.tensor(x) raises a ValueError if x[0] lacks memory. */
static const char *const operations_of_classes[] = {
    "__add__", "__call__", "__contains__", "__eq__", "__getitem__", "__iter__", "__len__", "__mul__", "__neg__",
    "__next__", "__radd__", "__rmul__", "__setitem__", "__sub__",
};
static const char *const dunders_itself[] = {
    "__class__", "__doc__", "__file__", "__module__", "__qualname__", "__repr__", "__slots__", "__str__",
};

static bool among(struct span span, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (words[i][0] == span.text[0] && span_is(span, words[i]))
			return true;
	return false;
}

static bool has_part(struct span span, const char *const *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (memmem(span.text, span.length, parts[i], strlen(parts[i])) != NULL)
			return true;
	return false;
}

#define AMONG(span, list) among(span, list, COUNT(list))
#define HAS_PART(span, list) has_part(span, list, COUNT(list))

static int compare_name(const void *a, const void *b)
{
	const struct span *span = a;
	const char *name = *(const char *const *)b;
	int order = strncmp(span->text, name, span->length);

	return order != 0 ? order : name[span->length] == '\0' ? 0 : -1;
}

#define AMONG_SORTED(span, list) (bsearch(&(span), list, COUNT(list), sizeof *(list), compare_name) != NULL)

static bool is_plain(struct span span)
{
	return AMONG_SORTED(span, names_plain);
}

static bool is_dunder(struct span name)
{
	return name.length > 4 && memcmp(name.text, "__", 2) == 0 && memcmp(name.text + name.length - 2, "__", 2) == 0;
}

/* Classifies a name in any position: in code, after a dot, or in a string. */
static enum python_access access_of_any(struct span name)
{
	if (is_dunder(name))
		return AMONG(name, dunders_plain)    ? ACCESS_NOTHING
		       : AMONG(name, dunders_itself) ? ACCESS_OWN_SOURCE
		                                     : ACCESS_OUTSIDE;
	return AMONG(name, names_itself) || HAS_PART(name, parts_itself) ? ACCESS_OWN_SOURCE : ACCESS_NOTHING;
}

/* ---- looking ---- */

static void found(struct look *look, enum python_access access, const struct word *word, const char *what)
{
	if (access <= look->found.access)
		return;
	look->found.access = access;
	look->found.line = word->line;
	snprintf(look->found.what, sizeof look->found.what, "%s", what);
}

static void found_word(struct look *look, enum python_access access, const struct word *word, const char *before)
{
	char what[96];

	snprintf(what, sizeof what, "'%s%.*s'", before, (int)(word->span.length < 60 ? word->span.length : 60), word->span.text);
	found(look, access, word, what);
}

static bool is_module(const struct look *look, struct span name)
{
	for (int i = 0; i < look->module_count; i++)
		if (look->modules[i].length == name.length && memcmp(look->modules[i].text, name.text, name.length) == 0)
			return true;
	return false;
}

static void bind_module(struct look *look, const struct word *word)
{
	if (is_module(look, word->span))
		return;
	if (look->module_count == MODULES_MAX)
		found(look, ACCESS_OUTSIDE, word, "so many imports");
	else
		look->modules[look->module_count++] = word->span;
}

/* Records a word that reads the clock or the name of the machine. Does nothing if an earlier word is recorded. */
static void note_unsteady(struct look *look, const struct word *word, const char *before)
{
	if (look->found.unsteady[0] != '\0')
		return;
	look->found.unsteady_line = word->line;
	snprintf(look->found.unsteady, sizeof look->found.unsteady, "'%s%.*s'", before,
		 (int)(word->span.length < 60 ? word->span.length : 60), word->span.text);
}

/* Checks whether the name a.b.c after `import` or `from` is the name of a known module. Returns the word that follows
 * the module name. */
static const struct word *look_module(struct look *look, const struct word *word)
{
	if (word->kind == WORD_NAME && AMONG(word->span, modules_unsteady))
		note_unsteady(look, word, "import ");
	if (word->kind != WORD_NAME || !AMONG(word->span, imports_plain)) {
		found_word(look, ACCESS_OUTSIDE, word, "import ");
		return word + (word->kind != WORD_END && word->kind != WORD_LINE);
	}
	for (word++; is_op(word, '.') && word[1].kind == WORD_NAME; word += 2)
		if (!AMONG(word[1].span, submodules))
			found_word(look, ACCESS_OUTSIDE, word + 1, "import ….");
	return word;
}

/* Checks an import such as `import a.b as c, d`. */
static const struct word *look_import(struct look *look, const struct word *word)
{
	do {
		const struct word *name = word + 1;

		word = look_module(look, name);
		if (is_word(word, "as") && word[1].kind == WORD_NAME) {
			name = word + 1;
			word += 2;
		}
		if (name->kind == WORD_NAME)
			bind_module(look, name);
	} while (is_op(word, ','));
	return word;
}

/* Checks an import such as `from a.b import (c as d, e)`. */
static const struct word *look_from(struct look *look, const struct word *word)
{
	bool of_os = is_word(word + 1, "os"), of_copy = is_word(word + 1, "copy");

	word = look_module(look, word + 1);
	if (!is_word(word, "import"))
		return word;
	word++;
	while (word->kind != WORD_END && word->kind != WORD_LINE && !is_op(word, ';')) {
		const struct word *name = word++, *bound = name;

		if (is_op(name, '(') || is_op(name, ')') || is_op(name, ','))
			continue;
		if (of_os && name->kind == WORD_NAME && AMONG(name->span, functions_unsteady))
			note_unsteady(look, name, "os.");
		bool module = !of_copy && AMONG(name->span, modules_elsewhere);

		if (name->kind != WORD_NAME || module || !(is_plain(name->span) || AMONG(name->span, submodules))) {
			found_word(look, ACCESS_OUTSIDE, name, "import ….");
			continue;
		}
		if (is_word(word, "as") && word[1].kind == WORD_NAME) {
			bound = word + 1;
			word += 2;
		}
		if (AMONG(name->span, submodules))
			bind_module(look, bound);
	}
	return word;
}

/* Returns whether the text gives its objects an attribute with the name of `word`, and records such a name. Searches the
 * text only once for each of these names. */
static bool is_own(struct look *look, const struct word *word)
{
	const struct word *own = (const struct word *)(const void *)look->own.data;

	for (size_t i = 0; i < look->own.length / sizeof *own; i++)
		if (same_name(&own[i], word->span))
			return true;
	if (!gives_own_attribute(look->words, word->span))
		return false;
	buf_add(&look->own, word, sizeof *word);
	return true;
}

/* Copies the names that is_own recorded to the result, except those of names_of_own_attributes. */
static void list_own(struct look *look)
{
	const struct word *own = (const struct word *)(const void *)look->own.data;
	struct python_dependencies *out = &look->found;
	size_t used = 0;

	for (size_t i = 0; i < look->own.length / sizeof *own; i++) {
		if (AMONG_SORTED(own[i].span, names_of_own_attributes))
			continue;
		if (own[i].span.length + 2 > sizeof out->own_attributes - used) {
			found(look, ACCESS_OUTSIDE, &own[i], "so many attributes");
			return;
		}
		used += (size_t)sprintf(out->own_attributes + used, "%s%.*s", used > 0 ? " " : "", (int)own[i].span.length,
					own[i].span.text);
	}
}

/* Checks the names after a module: `.name` and any further `.name`. Returns the word after the last checked name. */
static const struct word *look_chain(struct look *look, const struct word *word)
{
	const struct word *module = word++;
	bool of_os = is_word(module, "os");

	while (is_op(word, '.') && word[1].kind == WORD_NAME) {
		const struct word *name = word + 1;

		if (of_os && AMONG(name->span, functions_unsteady))
			note_unsteady(look, name, "os.");
		enum python_access access = access_of_any(name->span);
		bool known = is_plain(name->span) || AMONG(name->span, submodules) ||
		             (is_dunder(name->span) && access == ACCESS_NOTHING);

		word += 2;
		if (!known) {
			char before[64];

			snprintf(before, sizeof before, "%.*s.", (int)(module->span.length < 60 ? module->span.length : 60),
			         module->span.text);
			found_word(look, ACCESS_OUTSIDE, name, before);
			return word;
		}
		if (AMONG(name->span, modules_elsewhere) && !is_op(word, '(')) {
			found_word(look, ACCESS_OUTSIDE, name, "");
			return word;
		}
		if (!AMONG(name->span, submodules) || is_op(word, '('))
			return word;
		module = name;
	}
	found_word(look, ACCESS_OUTSIDE, module, ""); /* without a dot, the module object itself is used as a value */
	return word;
}

/* Returns whether each attribute in the replacement fields of a format string, such as {0.shape[1]:>8}, is in
 * names_plain. */
static bool is_plain_format(struct span format)
{
	bool inside = false; /* in brackets; Python reads them up to the closing bracket, whatever they contain */
	const char *end = format.text + format.length;
	bool field = false;

	for (const char *at = format.text; at < end; at++) {
		inside = field && (*at == '[' || (inside && *at != ']'));
		if (inside && *at != '[' && !is_name_character(*at))
			return false;
		if (at + 1 < end && at[0] == '{' && at[1] == '{')
			at++; /* two braces stand for one brace */
		else if (*at == '{')
			field = true;
		else if (*at == '}' || *at == ':' || *at == '!')
			field = false;
		if (!field || *at != '.')
			continue;
		const char *start = at + 1;

		while (at + 1 < end && is_name_character(at[1]))
			at++;
		if (!is_plain((struct span){start, (size_t)(at + 1 - start)}))
			return false;
	}
	return true;
}

/* Returns whether `word` is one literal, without escapes and without a second literal before it, so that its text is
 * the text of the whole string. */
static bool is_one_literal(const struct look *look, const struct word *word)
{
	return word->kind == WORD_STRING && word->plain &&
	       (word == look->words->first || (word[-1].kind != WORD_STRING && !is_op(word - 1, ')')));
}

/* Returns whether a class, which is the value of an expression in front of `next`, is only compared or asked for its
 * name. Any other use may call `type`, which is the class of every class, or derive a metaclass from it. A comparison with
 * `==` or `in` may pass the class to an operation of the text's own classes. */
static bool is_only_compared(const struct look *look, const struct word *next)
{
	bool by_operation = (is_op(next, '=') || is_op(next, '!')) && is_op(next + 1, '=');

	if (is_op(next, '.'))
		return is_word(next + 1, "__name__");
	by_operation = by_operation || is_word(next, "in") || (is_word(next, "not") && is_word(next + 1, "in"));
	return is_word(next, "is") || (by_operation && !look->defines_operations);
}

static void look_attribute(struct look *look, const struct word *word)
{
	enum python_access access = access_of_any(word->span);

	if (is_word(word, "__class__") && !is_only_compared(look, word + 1))
		found_word(look, ACCESS_OUTSIDE, word, ".");
	else if (is_dunder(word->span))
		found_word(look, access, word, "");
	else if (access != ACCESS_NOTHING || AMONG(word->span, attributes_outside) || HAS_PART(word->span, parts_outside))
		found_word(look, ACCESS_OUTSIDE, word, ".");
	/* str.format can read attributes that the format string names. */
	else if (span_is(word->span, "format"))
		found(look, word - 1 > look->words->first && is_one_literal(look, word - 2) && is_plain_format(word[-2].span)
				? ACCESS_NOTHING
				: ACCESS_OUTSIDE,
		      word, "'.format' on a string that is not a plain literal");
	else if (look->file_count > 0 && AMONG(word->span, attributes_of_files))
		return;
	else if (look->found.access != ACCESS_OUTSIDE && !is_plain(word->span) && !is_own(look, word))
		found_word(look, ACCESS_OUTSIDE, word, ".");
}

/* Returns whether the word is a string literal whose contents are one of `texts`. The literal must be in single or
 * double quotes, and must have no prefix and no escapes. */
static bool is_literal(const struct word *word, const char *const *texts, size_t count)
{
	if (word->kind != WORD_STRING || !word->plain || word->span.length < 3 || word->span.text[1] == word->span.text[0])
		return false;
	for (size_t i = 0; i < count; i++)
		if (span_is((struct span){word->span.text + 1, word->span.length - 2}, texts[i]))
			return true;
	return false;
}

/* If `word` begins a call such as `open("path", "rb")` for a file that the code may open, returns the word after the
 * call. Otherwise returns `word`. */
static const struct word *look_open(const struct look *look, const struct word *word)
{
	const struct word *at = word + 1;

	if (!is_op(at, '(') || !is_literal(at + 1, look->files, (size_t)look->file_count))
		return word;
	for (at += 2; is_op(at, ','); at++) {
		if (at[1].kind == WORD_NAME && AMONG(at[1].span, open_keywords) && is_op(at + 2, '='))
			at += 2;
		if (!is_literal(at + 1, open_literals, COUNT(open_literals)))
			return word;
		at++;
	}
	return is_op(at, ')') ? at + 1 : word;
}

/* Checks a call such as getattr(torch, "float8_e4m3fn", None) or hasattr(…). If the attribute's name is a literal, and
 * names_plain contains it, and it is not the name of a module, records ACCESS_OWN_SOURCE for the call (and not
 * ACCESS_OUTSIDE), and returns the word after the literal. Otherwise returns `word`. */
static const struct word *look_getattr(struct look *look, const struct word *word)
{
	const struct word *at = word + 1, *literal;

	if (!is_op(at, '(') || at[1].kind != WORD_NAME || AMONG(at[1].span, names_outside) ||
	    access_of_any(at[1].span) != ACCESS_NOTHING)
		return word;
	for (at += 2; is_op(at, '.') && at[1].kind == WORD_NAME; at += 2)
		if (!is_plain(at[1].span))
			return word;
	literal = at + 1;
	if (!is_op(at, ',') || literal->kind != WORD_STRING || !literal->plain || literal->span.length < 3 ||
	    !(is_op(literal + 1, ',') || is_op(literal + 1, ')')))
		return word;
	struct span name = {literal->span.text + 1, literal->span.length - 2};

	if (!is_plain(name) || AMONG(name, submodules) || AMONG(name, modules_elsewhere) || span_is(name, "dataclass"))
		return word;
	found_word(look, ACCESS_OWN_SOURCE, word, "");
	return literal + 1;
}

/* Returns true if each use of the name in the text is inside an `except` line, directly follows `raise`, or is a call.
 * Any other use may give the name another meaning, for example `KeyError = RuntimeError`. */
static bool is_only_caught(const struct look *look, struct span name)
{
	bool caught = false; /* `word` is between `except` and its colon */

	for (const struct word *word = look->words->first; word->kind != WORD_END; word++) {
		const struct word *before = word > look->words->first ? word - 1 : NULL;

		caught = is_word(word, "except") || (caught && !is_op(word, ':') && !is_word(word, "as"));
		if (caught || !same_name(word, name))
			continue;
		bool defined = before != NULL && (is_word(before, "def") || is_word(before, "class"));

		if (defined || !(is_op(word + 1, '(') || (before != NULL && is_word(before, "raise"))))
			return false;
	}
	return true;
}

/* Checks the exceptions after `except`, up to the colon. */
static void look_except(struct look *look, const struct word *word)
{
	const struct word *except = word++;
	bool plain = !is_op(word, ':'), import = false;

	for (; word->kind != WORD_END && !is_op(word, ':') && !is_word(word, "as"); word++) {
		import = import || is_word(word, "ImportError") || is_word(word, "ModuleNotFoundError");
		plain = plain && (word->kind != WORD_NAME ||
				  (AMONG(word->span, exceptions_plain) && is_only_caught(look, word->span)));
	}
	if (!plain)
		found(look, ACCESS_OUTSIDE, except, "an 'except' that can catch a lack of memory");
	if (look->defines_operations)
		found(look, ACCESS_OUTSIDE, except, "an 'except' beside operations of its own classes");
	if (import && is_word(word, "as"))
		found(look, ACCESS_OUTSIDE, except, "the path in an ImportError");
}

/* Checks a `finally` block. A block that leaves the function or a loop (`return`, `break` or `continue`) discards the
 * exception, as an `except` does. A block that raises another exception replaces the first one, which an `except` may then
 * catch. If the `try` block contains a `yield`, Python ignores all exceptions when the generator is deleted. */
static void look_finally(struct look *look, const struct word *word)
{
	const struct word *finally = word++;

	if (look->catches)
		found(look, ACCESS_OUTSIDE, finally, "'finally' beside 'except' or 'yield'");
	for (; word->kind != WORD_END; word++) {
		if (word[-1].kind == WORD_LINE && word->kind != WORD_LINE &&
		    indentation(look->words, word) <= indentation(look->words, finally))
			return;
		if (is_word(word, "return") || is_word(word, "break") || is_word(word, "continue"))
			found_word(look, ACCESS_OUTSIDE, finally, "");
	}
}

/* Checks the pattern of a `case`, up to its guard or its colon. A class pattern reads attributes: those that its keywords
 * name, and those that __match_args__ of the class names. Only a class pattern without arguments reads none. */
static void look_case(struct look *look, const struct word *word)
{
	int depth = 0;

	for (word++; word->kind != WORD_END && word->kind != WORD_LINE && !is_word(word, "if"); word++) {
		if (word->kind == WORD_NAME && is_op(word + 1, '(') && !is_op(word + 2, ')'))
			found(look, ACCESS_OUTSIDE, word, "a class pattern with arguments");
		if (is_op(word, ':') && depth == 0)
			return;
		depth += is_op(word, '(') || is_op(word, '[') || is_op(word, '{');
		depth -= is_op(word, ')') || is_op(word, ']') || is_op(word, '}');
	}
}

/* Checks a class statement. A metaclass gets the namespace of the class, which contains the docstring of the class. The
 * metaclass may be an argument that `**` passes. */
static void look_class(struct look *look, const struct word *word)
{
	for (const struct word *at = word; at->kind != WORD_END && at->kind != WORD_LINE && !is_op(at, ':'); at++)
		if (is_op(at, '*'))
			found_word(look, ACCESS_OWN_SOURCE, word, "");
}

/* Returns whether `word` is a name that a `from … import …` imports and does not rename. */
static bool is_imported(const struct look *look, const struct word *word)
{
	const struct word *start = word;

	while (!begins_statement(look->words, start))
		start--;
	return is_word(start, "from") && !is_word(word + 1, "as");
}

/* Returns whether `word` is the name of the only decorator of a class without bases. The decorator may have arguments
 * such as frozen=True. */
static bool decorates_plain_class(const struct look *look, const struct word *word)
{
	ptrdiff_t before = behind_dot(look->words, word) ? 3 : 1;
	const struct word *at = word + 1;

	if (word - look->words->first < before || !is_op(word - before, '@') || !begins_statement(look->words, word - before))
		return false;
	if (is_op(at, '(')) {
		for (at++; at->kind == WORD_NAME && is_op(at + 1, '=') && at[2].kind == WORD_NAME; at += is_op(at, ','))
			at += 3;
		if (!is_op(at++, ')'))
			return false;
	}
	while (at->kind == WORD_LINE)
		at++;
	return is_word(at, "class") && (is_op(at + 2, ':') || (is_op(at + 2, '(') && is_op(at + 3, ')')));
}

/* Checks a text that uses dataclasses. The fields of a dataclass must be the names in the body of its class, because the
 * dataclass executes code that contains them. A class that an expression makes, or that has bases, may have any names. The
 * text may read its own source, because a dataclass without a docstring calls repr() of the defaults to make one. */
static void look_dataclasses(struct look *look)
{
	bool used = false;

	for (const struct word *word = look->words->first; word->kind != WORD_END; word++)
		if (is_word(word, "dataclass")) {
			bool plain = is_imported(look, word) || decorates_plain_class(look, word);

			found_word(look, plain ? ACCESS_OWN_SOURCE : ACCESS_OUTSIDE, word, "");
			used = true;
		}
	for (const struct word *word = look->words->first; used && word->kind != WORD_END; word++)
		if (word->kind == WORD_NAME && (behind_dot(look->words, word) ? AMONG(word->span, attributes_beside_dataclass)
								       : AMONG(word->span, names_beside_dataclass)))
			found_word(look, ACCESS_OUTSIDE, word, "");
}

/* Returns whether a class, which is the value of an expression between `first` and `next`, is the right side of a
 * comparison. */
static bool is_compared_with(const struct look *look, const struct word *first, const struct word *next)
{
	ptrdiff_t room = first - look->words->first;

	if (room < 2 || is_op(next, '.') || is_op(next, '(') || is_op(next, '['))
		return false;
	bool by_identity = is_word(first - 1, "is") || (is_word(first - 1, "not") && is_word(first - 2, "is"));
	bool by_operation = is_op(first - 1, '=') && (is_op(first - 2, '=') || is_op(first - 2, '!'));

	return by_identity || (by_operation && !look->defines_operations);
}

/* Returns whether `word`, the name `type`, is called with a single argument, and the class is only compared or asked for
 * its name. With three arguments, `type` makes a class whose attributes may have computed names. */
static bool asks_for_type(const struct look *look, const struct word *word)
{
	const struct word *first = word;
	int depth = 1;

	if (!is_op(word + 1, '(') || is_op(word + 2, '*'))
		return false;
	for (word += 2; word->kind != WORD_END && depth > 0; word++) {
		if (is_op(word, ',') && depth == 1)
			return false;
		depth += is_op(word, '(') || is_op(word, '[') || is_op(word, '{');
		depth -= is_op(word, ')') || is_op(word, ']') || is_op(word, '}');
	}
	return is_only_compared(look, word) || is_compared_with(look, first, word);
}

/* Checks a name that does not follow a dot. */
static const struct word *look_name(struct look *look, const struct word *word)
{
	if (span_is(word->span, "except"))
		look_except(look, word);
	if (span_is(word->span, "finally"))
		look_finally(look, word);
	if (span_is(word->span, "class"))
		look_class(look, word);
	if (span_is(word->span, "case") && begins_statement(look->words, word) && !is_op(word + 1, '='))
		look_case(look, word);

	enum python_access access = access_of_any(word->span);

	if (span_is(word->span, "import") || (span_is(word->span, "from") && begins_statement(look->words, word))) {
		/* The module is an attribute of the class, and its attributes are not checked as those of a module. */
		if (in_class(look->words, word))
			found(look, ACCESS_OUTSIDE, word, "an import in the body of a class");
		return span_is(word->span, "import") ? look_import(look, word) : look_from(look, word);
	}
	if (is_module(look, word->span))
		return look_chain(look, word);
	if (span_is(word->span, "getattr") || span_is(word->span, "hasattr")) {
		const struct word *next = look_getattr(look, word);

		if (next != word)
			return next;
	}
	if (span_is(word->span, "open")) {
		const struct word *next = look_open(look, word);

		if (next != word)
			return next;
	}
	if (AMONG(word->span, names_outside) || access == ACCESS_OUTSIDE || (span_is(word->span, "type") && !asks_for_type(look, word)))
		found_word(look, ACCESS_OUTSIDE, word, "");
	else
		/* `yield` makes a generator, whose gi_frame reveals the source. */
		found_word(look, span_is(word->span, "yield") ? ACCESS_OWN_SOURCE : access, word, "");
	return word + 1;
}

/* Checks the words in a string, because code may use them as names. */
static void look_string(struct look *look, const struct word *word)
{
	const char *end = word->span.text + word->span.length;

	for (const char *at = word->span.text; at < end;) {
		const char *start = at;

		while (at < end && is_name_character(*at))
			at++;
		struct span name = {start, (size_t)(at - start)};

		if (at > start && (access_of_any(name) != ACCESS_NOTHING || AMONG(name, names_outside)))
			found_word(look, ACCESS_OWN_SOURCE, word, "");
		at += at == start;
	}
}

/* If the statement that begins at `word` consists only of strings, like a docstring, returns the end of the statement.
 * Otherwise returns NULL. */
static const struct word *only_strings(const struct word *word)
{
	while (word->kind == WORD_STRING)
		word++;
	return word->kind == WORD_LINE || word->kind == WORD_END ? word : NULL;
}

static void look_at(struct look *look)
{
	bool begins = true; /* `word` is the first word of a line */

	for (const struct word *word = look->words->first; word->kind != WORD_END; word++) {
		look->catches = look->catches || is_word(word, "except") || is_word(word, "yield");
		look->defines_operations =
		    look->defines_operations || (word->kind == WORD_NAME && AMONG(word->span, operations_of_classes));
	}
	look_dataclasses(look);
	for (const struct word *word = look->words->first; word->kind != WORD_END;) {
		const struct word *idle = begins ? only_strings(word) : NULL;

		begins = word->kind == WORD_LINE;
		if (idle != NULL && idle != word) {
			word = idle;
		} else if (word->kind == WORD_STRING) {
			look_string(look, word++);
		} else if (word->kind != WORD_NAME) {
			word++;
		} else if (behind_dot(look->words, word)) {
			look_attribute(look, word++);
		} else {
			word = look_name(look, word);
		}
	}
}

struct python_dependencies python_dependencies(const char *source, size_t length)
{
	return python_dependencies_besides(source, length, NULL, 0);
}

struct python_dependencies python_dependencies_besides(const char *source, size_t length, const char *const *files, int count)
{
	struct python_words words;
	struct look look = {.words = &words, .files = files, .file_count = count, .found.access = ACCESS_NOTHING};

	if (python_words_read(&words, source, length)) {
		look_at(&look); /* finds the names of all modules, because a function may use a module that is imported below it */
		look.found = (struct python_dependencies){.access = ACCESS_NOTHING};
		look_at(&look);
		list_own(&look);
	} else {
		look.found = (struct python_dependencies){.access = ACCESS_OUTSIDE,
							  .what = "code that reftest cannot parse",
							  .line = words.last_line};
	}
	buf_free(&look.own);
	python_words_free(&words);
	return look.found;
}
