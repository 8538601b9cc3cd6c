"""library_attributes - finds out which names are attributes of classes of Python and torch.

The engine accepts an unknown attribute in the source code of a reference if the code gives its own objects an attribute
with the same name. The engine cannot tell whether the code uses this attribute only on its own objects. On an object of
Python or torch, the attribute could lead to a module, a file or the environment. Therefore the runner calls this module
before the code runs. Attributes that only an instance has, and not its class, are not found."""

# Modules that references may import and that torch may not import. The zygote imports them, so that their classes are
# found. (The list imports_plain in cache/python_dependencies.c names all modules that references may import.)
LATE_MODULES = ("decimal", "fractions")

dictionary_of = type.__dict__["__dict__"].__get__  # the attributes of a class, whatever its metaclass defines


def import_late_modules():
    for name in LATE_MODULES:
        __import__(name)


def first_shared(names):
    """Returns the first of the names that is an attribute of a class in this process, or None. In the body of a class,
    Python puts _CLASS before a name such as `__x`. Code can give its classes any names, so the attribute _CLASS__x also
    counts as `__x`."""
    if not names:
        return None
    spaces = [dictionary_of(each) for each in classes()]
    shared = {name for space in spaces if not space.keys().isdisjoint(names) for name in names if name in space}
    private = [name for name in names if name.startswith("__")]
    shared.update(name for name in private for space in spaces for one in list(space)
                  if one.startswith("_") and one.endswith(name))
    return next((name for name in names if name in shared), None)


def classes():
    """Returns all classes of this process."""
    found = {object}
    waiting = [object]
    for each in waiting:
        for one in type.__subclasses__(each):
            if one not in found:
                found.add(one)
                waiting.append(one)
    return waiting
