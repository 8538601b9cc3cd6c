/* python_own_attributes - finds out which attributes a Python text gives to its own objects. */
#ifndef REFTEST_CACHE_PYTHON_OWN_ATTRIBUTES_H
#define REFTEST_CACHE_PYTHON_OWN_ATTRIBUTES_H

#include "cache/python_words.h"

/* Returns whether the text gives an object of its own an attribute called `name`: it assigns to such an attribute, or
 * defines the name in the body of a class or in a call such as namedtuple("Point", ["x", "y"]). A variable or a function
 * with this name does not suffice. */
bool gives_own_attribute(const struct python_words *words, struct span name);

#endif
