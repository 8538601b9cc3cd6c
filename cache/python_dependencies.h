/* python_dependencies - determines from the words of a Python text what the code can access.
 *
 * The result answers two questions about a reference. First: can the code read its own comments, line numbers or
 * docstrings? If so, its comments, line breaks and docstrings are part of the fingerprint (cache/python_normal_form.h).
 * Second: may the result depend on anything other than the code's text, its inputs and the packages of its interpreter?
 * If so, the verdict on the reference is not stored. The module has lists of the words that are known to be harmless;
 * every other word counts as harmful. */
#ifndef REFTEST_CACHE_PYTHON_DEPENDENCIES_H
#define REFTEST_CACHE_PYTHON_DEPENDENCIES_H

#include <stddef.h>

enum python_access {
	ACCESS_NOTHING, /* the code accesses only its inputs, and the libraries whose versions are in the fingerprint */
	ACCESS_OWN_SOURCE,  /* the code may also read its own source: its docstrings or names */
	/* the code may access anything (files, modules, environment, clock), or contains an unknown word */
	ACCESS_OUTSIDE,
};

struct python_dependencies {
	enum python_access access;
	char what[128]; /* if ACCESS_OUTSIDE: the word that is the reason, for example "'os'" or "'torch.load'" */
	int line;       /* line of the source, from 1 */
	/* The first word in the code that reads the clock or the name of the machine; "" if there is none. The results
	 * of code that contains such a word may differ between runs or between machines. */
	char unsteady[128];
	int unsteady_line;
	/* The names of the attributes that were accepted only because the text gives its own objects attributes with these
	 * names; separated by spaces. The code must not run with objects of Python or torch that have an attribute with one
	 * of these names: it could access anything through this attribute. The list is complete unless `access` is
	 * ACCESS_OUTSIDE. */
	char own_attributes[2048];
};

struct python_dependencies python_dependencies(const char *source, size_t length);

/* Does the same as python_dependencies for a reference that may read `files`. The contents of `files` are in the
 * fingerprint. The code may open one of `files` for reading if the path is a literal in the call of `open`. */
struct python_dependencies python_dependencies_besides(const char *source, size_t length, const char *const *files, int count);

#endif
