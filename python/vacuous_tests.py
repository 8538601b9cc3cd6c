"""vacuous_tests - finds test functions that cannot fail, for `reftest generate --audit` (testgen/vacuous_tests.h,
docs/generated-tests.md).

The argument of this script is a folder. Each line of stdin is a JSON object about one Python file, with its "path" in
this folder. If the definition that the file tests is known, the object also has "reference" (source text) and "about"
(path of the definition). For each file the script prints one line of JSON, with the findings sorted by line number:
{"findings": [{"line": 12, "reason": "test_x compares nothing …"}], "vacuous": true, "missing": "flashinfer"}. "vacuous"
is true if the file has tests, but none of them can fail because of an error in the definition. "missing" is a module
that the file imports unconditionally but that is not installed, so that pytest cannot collect the file; null if no
module is missing. Files are parsed and never run. A file that this interpreter cannot parse is a finding.

A statement counts as a comparison if it is an assert or a raise, or if it calls a function that compares. A function of
the same file compares if one of its statements is a comparison. For a function of another file, its name decides
whether it compares (see name_compares)."""

import ast
import collections
import functools
import importlib.machinery
import json
import os
import site
import sys
import warnings

FILE_BYTES = 1 << 20
COMPARING = ("assert", "check", "verify", "expect", "raises", "warns", "fail")
CAUGHT = {"AssertionError", "Exception", "BaseException"}  # except clauses with these names catch failed assertions
SILENT = {"print", "log", "logger", "logging", "warnings", "traceback"}
SKIPPING = {"pytest.skip", "pytest.xfail", "self.skipTest"}
FAILING = {"pytest.fail", "self.fail"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = FUNCTIONS + (ast.ClassDef,)
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
IN_BLOCKS = (ast.stmt, ast.ExceptHandler) + ((ast.match_case,) if hasattr(ast, "match_case") else ())
TRIES = (ast.Try,) + ((ast.TryStar,) if hasattr(ast, "TryStar") else ())


def dotted(node):
    """Returns the dotted name of an expression, or of the function that the expression calls, such as
    "pytest.mark.skip". Returns "" if the expression has no dotted name."""
    names = []
    node = node.func if isinstance(node, ast.Call) else node
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join(reversed(names + [node.id])) if isinstance(node, ast.Name) else ""


def called(statement):
    """Returns the dotted name of the called function if the whole statement is a call, else ""."""
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return dotted(statement.value) if is_call else ""


def name_of(node):
    return getattr(node, "id", "") if isinstance(node, ast.Name) else getattr(node, "attr", "")


def names_any(node, names):
    return any(name_of(part) in names for part in ast.walk(node))


def calls_of(statement):
    """Returns the names of the functions that a statement calls, except for calls in nested statements."""
    left = [] if isinstance(statement, SCOPES) else list(ast.iter_child_nodes(statement))
    names = set()
    while left:
        node = left.pop()
        if not isinstance(node, IN_BLOCKS):
            left.extend(ast.iter_child_nodes(node))
            if isinstance(node, ast.Call):
                names.add(name_of(node.func))
    return names


def always(node, value=True):
    """Is the expression always true, whatever the program computes? If `value` is False: is the expression always
    false?"""
    if isinstance(node, ast.Constant):
        return bool(node.value) is value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return always(node.operand, not value)
    if isinstance(node, ast.BoolOp):
        return (any if isinstance(node.op, ast.Or) is value else all)(always(part, value) for part in node.values)
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return value and any(not isinstance(part, ast.Starred) for part in node.elts)
    return value and isinstance(node, ast.Lambda)


def leaves(statement):
    """Does the statement end its block, so that no later statement of the block runs?"""
    return isinstance(statement, (ast.Return, ast.Continue, ast.Break)) or called(statement) in SKIPPING


def fails(statement):
    is_false = isinstance(statement, ast.Assert) and always(statement.test, False)
    return is_false or isinstance(statement, ast.Raise) or called(statement) in FAILING


def is_silent(statement):
    """Does this statement of an except clause ignore the exception, so that nothing later shows that it occurred?"""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    name = called(statement)
    return isinstance(statement, ast.Pass) or leaves(statement) or name.split(".")[0] in SILENT


def suppresses(node):
    return isinstance(node, (ast.With, ast.AsyncWith)) and any(
        isinstance(item.context_expr, ast.Call)
        and name_of(item.context_expr.func) == "suppress"
        and names_any(item.context_expr, CAUGHT)
        for item in node.items
    )


def disables(mark):
    """Does this decorator, or this element of `pytestmark`, skip a test or expect its failure on every machine?"""
    name = dotted(mark)
    if name.endswith("mark.skip") or name in ("unittest.skip", "unittest.expectedFailure"):
        return True
    if not name.endswith(("mark.skipif", "mark.xfail")):
        return False
    call = mark if isinstance(mark, ast.Call) else ast.Call(mark, [], [])
    conditions = call.args + [word.value for word in call.keywords if word.arg in ("condition", None)]
    return not conditions or (always(conditions[0]) and not isinstance(getattr(conditions[0], "value", None), str))


def disables_block(statement):
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or "pytestmark" not in map(name_of, targets):
        return called(statement) == "pytest.skip"
    value = statement.value
    return any(map(disables, value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]))


class File:
    """The statements of a file, the block that contains each statement, and the functions that compare."""

    def __init__(self, tree):
        self.above = {}  # {statement: (the statement that contains it, the name of the block)}
        self.unreached = set()
        self.uses = {}
        for node in ast.walk(tree):
            branches = isinstance(node, (ast.If, ast.While))
            for block in BLOCKS:
                items = getattr(node, block, None)
                never = branches and always(node.test, block == "orelse")
                ended = never or node in self.unreached or (block == "body" and self.is_unused(node))
                for item in items if isinstance(items, list) else ():
                    self.above[item] = node, block
                    if ended:
                        self.unreached.add(item)
                    ended = ended or leaves(item)
        self.tree = tree
        self.functions = sorted((n for n in ast.walk(tree) if isinstance(n, FUNCTIONS)), key=lambda n: n.lineno)
        self.named = {function.name: function for function in reversed(self.functions)}
        self.statements = {f: [n for n in ast.walk(f) if isinstance(n, ast.stmt) and n is not f] for f in self.functions}
        self.calls = {n: calls_of(n) for n in ast.walk(tree) if isinstance(n, ast.stmt)}
        self.comparing = set()
        self.find_comparing()

    def find_comparing(self):
        changed = True
        while changed:
            changed = False
            for f in self.functions:
                if f not in self.comparing and any(self.compares(s) and not self.idle(s, f) for s in self.statements[f]):
                    self.comparing.add(f)
                    changed = True

    def scope(self, node):
        """Returns the innermost function or class that contains the node. If there is none, returns the file."""
        node = self.above[node][0]
        while node in self.above and not isinstance(node, SCOPES):
            node = self.above[node][0]
        return node

    def is_unused(self, function):
        """Is `function` defined in another function that never uses it?"""
        if not isinstance(function, FUNCTIONS) or function.decorator_list:
            return False
        outer = self.scope(function)
        if not isinstance(outer, FUNCTIONS):
            return False
        for f in (outer, function):
            if f not in self.uses:
                self.uses[f] = collections.Counter(n.id for n in ast.walk(f) if isinstance(n, ast.Name))
        return self.uses[outer][function.name] == self.uses[function][function.name]

    def compares(self, statement):
        return isinstance(statement, (ast.Assert, ast.Raise)) or any(
            self.name_compares(name, statement) for name in self.calls[statement]
        )

    def name_compares(self, name, statement):
        """Does this statement, which calls the function `name` of another file, count as a comparison? A function whose
        name contains "compare", but no word from COMPARING, may return a difference instead of raising an exception.
        Therefore a statement that assigns the result of such a function is no comparison."""
        if name in self.named:
            return self.named[name] in self.comparing
        assigned = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign))
        return any(part in name for part in COMPARING) or ("compare" in name and not assigned)

    def catcher(self, node):
        """Returns the except clause of a `try` statement that catches a failed assertion and lets the test continue.
        Ignores clauses that contain a comparison (such as `raise` or a call that makes the test fail) or end the
        process. Also ignores the clauses of a `try` whose `else` block makes the test fail, because such a test expects
        an exception."""
        for clause in node.handlers:
            if clause.type is None or names_any(clause.type, CAUGHT):
                break
        else:
            return None
        if node.orelse and fails(node.orelse[0]):
            return None
        for part in ast.walk(clause):
            if name_of(part) in ("exit", "_exit") or (isinstance(part, ast.stmt) and self.compares(part)):
                return None
        return clause

    def idle(self, statement, function):
        """Returns None if `statement`, a comparison in `function`, can make the test fail. Otherwise returns a pair:
        the reason why it cannot, and whether this reason is a finding even in a test that has other comparisons."""
        if statement in self.unreached:
            return "never reaches this comparison, so the test passes whatever the reference computes", True
        node, suppressed, clause = statement, False, None
        while node is not function and clause is None:
            node, block = self.above[node]
            clause = self.catcher(node) if isinstance(node, TRIES) and block == "body" else None
            suppressed = suppressed or suppresses(node)
        if clause is not None and all(map(is_silent, clause.body)):
            return "catches the error of this assertion, so the test passes anyway", True
        if clause is not None:
            return "catches the error of this comparison and compares nothing afterwards", False
        if suppressed:
            return "suppresses the error of this assertion, so the test passes anyway", True
        if isinstance(statement, ast.Assert) and always(statement.test):
            return "asserts something that is always true, whatever the reference computes", True
        return None

    def mark(self, test):
        """Returns the decorator or statement that skips the test, or expects it to fail, on every machine."""
        node = test
        while node is not None:
            found = [mark for mark in getattr(node, "decorator_list", ()) if disables(mark)]
            if isinstance(node, (ast.ClassDef, ast.Module)):
                found += filter(disables_block, node.body)
            if found:
                return found[0]
            node = self.above.get(node, (None,))[0]
        return None

    def returned(self, test):
        """Returns the first statement by which the test returns a value. Ignores `return True` in a test that
        compares."""
        for s in sorted(self.statements[test], key=lambda s: s.lineno):
            if not isinstance(s, ast.Return) or s.value is None or self.scope(s) is not test:
                continue
            value = s.value.value if isinstance(s.value, ast.Constant) else s.value
            harmless = value is None or (value is True and test in self.comparing)
            if not harmless and dotted(s.value).split(".")[0] != "pytest":
                return s
        return None

    def audit(self, test):
        """Yields the findings about a test as pairs (line, reason)."""
        mark, returned = self.mark(test), self.returned(test)
        if mark is not None:
            yield mark.lineno, "is skipped or expected to fail on every machine, so it never fails"
            return
        if returned is not None:
            yield returned.lineno, "returns its verdict instead of asserting it, so pytest counts the test as passed"
            return
        comparing = found = test in self.comparing
        for s in self.statements[test]:
            reason, even_so = (self.compares(s) and self.idle(s, test)) or (None, False)
            asserts = isinstance(s, ast.Assert) or any("assert" in name for name in self.calls[s])
            if reason is not None and (not comparing or (even_so and asserts)):
                found = True
                yield s.lineno, reason
        if not found:
            yield test.lineno, "compares nothing, so the test passes whatever the reference computes"

    def tests(self):
        tests = (f for f in self.functions if f.name.startswith("test"))
        return [f for f in tests if not any(isinstance(n, FUNCTIONS) for n in self.outer(f))]

    def findings(self):
        return [(line, f"{test.name} {reason}") for test in self.tests() for line, reason in self.audit(test)]

    def is_vacuous(self):
        """Returns whether the file has tests and none of them can fail. Returns false for a file that may import
        further tests."""
        if any(isinstance(n, ast.ImportFrom) and any(a.name == "*" or a.name.startswith("test") for a in n.names) for n in ast.walk(self.tree)):
            return False
        tests = self.tests()
        return bool(tests) and all(self.mark(test) is not None or test not in self.comparing for test in tests)

    def outer(self, node):
        while node in self.above:
            node = self.above[node][0]
            yield node


def find_function(tree, name):
    """Returns (text, line) of a function at top level. The text omits decorators and docstrings."""
    run = [node for node in tree.body if isinstance(node, FUNCTIONS) and node.name == name][-1:]
    for node in [part for found in run for part in ast.walk(found) if isinstance(part, SCOPES)]:
        if ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    for node in run:
        node.decorator_list = []
        return ast.dump(node), node.lineno
    return None, 0


def parse(source, name):
    """Parses a source text. Returns (syntax tree, None), or (None, finding) if the file cannot be parsed."""
    try:
        return ast.parse(source), None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        version = ".".join(map(str, sys.version_info[:2]))
        why = e.msg if isinstance(e, SyntaxError) else str(e) or type(e).__name__
        return None, (getattr(e, "lineno", None) or 1, f"{name} cannot be parsed by Python {version}: {why}")


def audit(source, reference=None, about=None, name="run"):
    """Audits the text of a file (bytes). Returns a tuple: the findings, which are pairs (line, reason) sorted by line;
    true if the file has tests, but none of them can fail because of an error in the definition; and the modules that
    the file imports unconditionally. `reference` is the source code of the definition's reference, and `name` is the
    name of the reference's function."""
    tree, finding = parse(source, "the file")
    if tree is None:
        return [finding], False, []
    file = File(tree)
    findings, vacuous = file.findings(), file.is_vacuous()
    pasted, line = find_function(tree, name)
    if pasted is not None and reference is not None:
        original, finding = parse(reference, f"the reference of {about}")
        if original is None:
            findings.append((line, f"{name} may be a copy of a reference, but {finding[1]}"))
        elif find_function(original, name)[0] not in (None, pasted):
            vacuous = True
            findings.append(
                (line, f"{name}() is an edited copy of the reference of {about}, so the test does not test the "
                       "definition")
            )
    return sorted(findings), vacuous, imported(tree)


def imported(tree):
    """Returns the top-level modules that are imported by statements at the file's top level."""
    names = []
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            names += [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.level == 0:
            names.append(statement.module)
    return [name.split(".")[0] for name in names]


@functools.lru_cache(maxsize=None)
def is_here(name, folder):
    """Can this interpreter import a top-level module from a test file in `folder`? Does not import the module. Assumes
    that pytest and torch are installed, because every test needs them."""
    folders = [folder, os.path.dirname(folder), os.path.dirname(os.path.dirname(folder))]
    return (
        name in ("pytest", "torch")
        or importlib.machinery.PathFinder.find_spec(name, folders) is not None
        or any(finder.find_spec(name, None) is not None for finder in sys.meta_path)
    )


def answer(folder, request):
    path = os.path.join(folder, request["path"])
    try:
        with open(path, "rb") as file:
            source = file.read(FILE_BYTES + 1)
        if len(source) > FILE_BYTES:
            return [(1, f"the file is larger than {FILE_BYTES} bytes and was not read")], False, None
        findings, vacuous, names = audit(source, request.get("reference"), request.get("about"), request.get("entry_point", "run"))
        missing = (name for name in names if name.isascii() and len(name) <= 100 and not is_here(name, os.path.dirname(path)))
        return findings, vacuous, next(missing, None)
    except (OSError, RecursionError, MemoryError) as e:
        return [(1, f"the file cannot be read: {e}")], False, None


def main():
    warnings.simplefilter("ignore")  # suppresses the parser's warnings about the audited files
    site.main()  # adds the folders of installed modules, which -S left out
    for line in sys.stdin.buffer:
        findings, vacuous, missing = answer(sys.argv[1], json.loads(line))
        found = [
            {"line": n, "reason": "".join(c if c.isprintable() else "?" for c in reason[:400])}
            for n, reason in findings
        ]
        print(json.dumps({"findings": found, "vacuous": vacuous, "missing": missing}), flush=True)


if __name__ == "__main__":
    main()
