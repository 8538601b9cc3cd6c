"""c_messages - finds the messages in C files, as a user reads them.

A literal alone is often no message: printf fills in values, and a function such as match_refuse() puts "'q' is [4] of
int32; expected " before the words that it gets. messages(paths) therefore yields (path, line, message, source):

- A value that is filled in is shown as ‹the expression that computes it›; if the expression chooses between literals, as
  (one|other).
- If a literal is an argument of a function that prints it within a longer literal, the longer one is shown too.
- `source` is the statement around a literal whose longer one is not found here, such as a row of a table or an
  assignment. It is "" if the message is whole.
"""
import re

TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|(?P<text>"(?:[^"\\\n]|\\.)*")|'(?:[^'\\\n]|\\.)+'|(?P<word>\w[\w.]*\b|\w)|\s+|->|.""",
                   re.S)
CONVERSION = re.compile(r"%[-+ #0]*(\*|\d+)?(?:\.(\*|\d+))?(?:hh|h|ll|l|j|z|t)?([a-zA-Z%])")
OPEN, CLOSE = "([{", ")]}"
STATEMENTS = {"if", "for", "while", "switch", "return", "sizeof", "_Static_assert", "__attribute__", "__asm__"}
WHOLE = {"err_set", "err_errno", "printf", "fprintf"}  # calls whose literal begins the message
WORDS = 5


class Token:
    def __init__(self, kind, text, line):
        self.kind, self.text, self.line = kind, text, line


def unescape(literal):
    plain = {"n": "\n", "t": "\t", "r": ""}
    return re.sub(r"\\(x[0-9a-fA-F]{2}|.)", lambda m: plain.get(m[1], m[1]), literal[1:-1])


def tokens_of(source):
    """Joins adjacent literals. A macro between them, as in "%" PRId64 " bytes", is the letter of a conversion."""
    source = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m[0].count("\n"), source, flags=re.M)
    found, line = [], 1
    for match in TOKEN.finditer(source):
        text = match[0]
        if match["text"]:
            if found and found[-1].kind == "text":
                found[-1].text += unescape(text)
            else:
                found.append(Token("text", unescape(text), line))
        elif match["word"] and text.startswith("PRI") and found and found[-1].kind == "text":
            found[-1].text += "d"
        elif not text.isspace() and not text.startswith(("/*", "//")):
            found.append(Token("word" if match["word"] else "mark", text, line))
        line += text.count("\n")
    return found


def end_of(tokens, start):
    """Returns the index behind the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(tokens)):
        if tokens[at].kind == "mark":
            depth += (tokens[at].text in OPEN) - (tokens[at].text in CLOSE)
            if depth == 0:
                return at + 1
    return len(tokens)


def split(tokens, marks):
    """Splits at the given marks, but not inside brackets."""
    parts, depth = [[]], 0
    for token in tokens:
        if token.kind == "mark":
            depth += (token.text in OPEN) - (token.text in CLOSE)
            if depth == 0 and token.text in marks:
                parts.append([])
                continue
        parts[-1].append(token)
    return parts


def code(tokens):
    shown = " ".join(f'"{t.text}"' if t.kind == "text" else t.text for t in tokens)
    shown = re.sub(r"\( (?:unsigned )?(?:long long|long|int|double|intmax_t|uintmax_t) \) ", "", shown)  # casts
    shown = re.sub(r" ?(->|[\].()\[]) ?", r"\1", shown).replace(" ,", ",")
    return re.sub(r"err_show\(([^()]*)\)\.text", r"\1", shown)


def enough(text):
    return len(re.findall(r"[A-Za-z']{2,}", re.sub(r"‹.*?›", "", text))) >= WORDS


def choices(tokens):
    """Returns a and b of `condition ? a : b`; b may be such an expression itself."""
    found, begin, depth = [], None, 0
    for at, token in enumerate(tokens):
        if token.kind == "mark":
            depth += (token.text in OPEN) - (token.text in CLOSE)
            if depth == 0 and token.text in "?:":
                if token.text == ":" and begin is not None:
                    found.append(tokens[begin:at])
                begin = at + 1
    return [*found, tokens[begin:]] if found else []


def value(tokens):
    """Shows an argument: its literals, or else the expression."""
    if len(tokens) == 1 and tokens[0].kind == "text":
        return tokens[0].text
    if len(tokens) > 2 and tokens[0].kind == "word" and tokens[1].text == "(" and end_of(tokens, 1) == len(tokens):
        texts = [part[0].text for part in split(tokens[2:-1], ",") if len(part) == 1 and part[0].kind == "text"]
        if any(map(enough, texts)):
            return call(split(tokens[2:-1], ","))
    chosen = choices(tokens)
    if len(chosen) >= 2 and any(token.kind == "text" for part in chosen for token in part):
        return "(" + "|".join(map(value, chosen)) + ")"
    return f"‹{code(tokens)}›"


def filled(text, values):
    def fill(match):
        for star in match.groups()[:2]:
            if star == "*":  # a width or a precision
                next(values, None)
        return "%" if match[3] == "%" else value(next(values, []))

    return CONVERSION.sub(fill, text)


def call(arguments):
    """Fills the values into the format of a call, which is its first literal."""
    for at, argument in enumerate(arguments):
        if len(argument) == 1 and argument[0].kind == "text":
            return filled(argument[0].text, iter(arguments[at + 1:]))
    return ""


class Function:
    def __init__(self, parameters):
        self.parameters = parameters
        self.printed = []  # the messages in it
        self.calls = []  # pairs of a name and the arguments, for calls without a literal


class Source:
    """A C file: its messages and its functions."""

    def __init__(self, path):
        self.path, self.found, self.functions = path, [], {}
        tokens = tokens_of(path.read_text())
        self.scan(tokens, 0, len(tokens), None)

    def scan(self, tokens, start, end, function):
        at = begin = start
        while at < end:
            token = tokens[at]
            if token.kind == "word" and token.text not in STATEMENTS and at + 1 < end and tokens[at + 1].text == "(":
                close = end_of(tokens, at + 1)
                if function is None and close < end and tokens[close].text == "{":
                    names = [[t.text for t in part if t.kind == "word"][-1:] for part in split(tokens[at + 2:close - 1], ",")]
                    stop = end_of(tokens, close)
                    self.functions[token.text] = Function([name[0] if name else "" for name in names])
                    self.scan(tokens, close + 1, stop - 1, self.functions[token.text])
                    at = begin = stop
                    continue
                if any(t.kind == "text" for t in tokens[at:close]):
                    self.take_call(token, split(tokens[at + 2:close - 1], ","), function)
                    at = close
                    continue
                if function:
                    function.calls.append((token.text, list(map(code, split(tokens[at + 2:close - 1], ",")))))
            elif token.text in ("_Static_assert", "__asm__", "__attribute__"):
                at = end_of(tokens, at + 1)
                continue
            elif token.kind == "text" and enough(token.text):
                stop = next((i for i in range(at, end) if tokens[i].text in (";", "}", ",")), end)
                self.found.append((token.line, token.text, code(tokens[max(begin, at - 12):stop]), None, None))
            elif token.text in ";{}" and token.kind == "mark":
                begin = at + 1
            at += 1

    def take_call(self, name, arguments, function):
        whole = call(arguments)
        if function:
            function.printed.append(whole)
        place = next((i for i, a in enumerate(arguments) if len(a) == 1 and a[0].kind == "text"), None)
        if place is None:  # the literals are inside an expression, as in f(is_a ? "…" : "…")
            place = next(i for i, a in enumerate(arguments) if any(t.kind == "text" for t in a))
            whole = value(arguments[place])
        if enough(whole):
            statement = f"{name.text}({', '.join(map(code, arguments))})"
            self.found.append((name.line, whole, statement, name.text, place))


def framed(message, name, place, local, shared):
    """Puts a message into the longer one that the function `name` prints around this argument, or that a function
    prints to which `name` passes the argument."""
    for _ in range(6):
        function = local.get(name) or shared.get(name)
        if function is None or place is None or place >= len(function.parameters):
            break
        parameter = function.parameters[place]
        holes = [f"‹{parameter}›"] + ["‹sentence›"] * (parameter == "format")  # printf-like functions fill `sentence`
        frame = next(((text, hole) for text in function.printed for hole in holes if hole in text and text != hole), None)
        passed = next(((callee, arguments.index(parameter)) for callee, arguments in function.calls
                       if parameter in arguments and callee in {**shared, **local}), None)
        if frame:
            message = frame[0].replace(frame[1], message, 1)
        if passed is None:
            break
        name, place = passed
    return message


def messages(paths):
    sources = [Source(path) for path in paths]
    shared = {name: function for source in sources for name, function in source.functions.items()}
    for source in sources:
        for line, message, statement, name, place in source.found:
            whole = framed(message, name, place, source.functions, shared)
            clear = whole != message or name in WHOLE
            yield source.path, line, " ".join(whole.split()), "" if clear else " ".join(statement.split())
