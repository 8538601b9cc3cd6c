"""c_messages - finds the messages in C files, as a user reads them.

A string literal is often only a part of a message: printf fills in values, and some functions add text. For example,
match_refuse() puts "'q' is [4] of int32; expected " before the text that it gets. The function messages(paths, headers)
completes the literals, and yields (path, line, message, source) for each literal. The rules are:

- A value that printf fills in is shown as ‹expression›, with the expression that computes the value. A long call is
  shown without its arguments. A conditional expression with the literals "one" and "other" is shown as (one|other).
- If a function gets the literal as an argument and prints it within a longer text, the longer text is shown.
- `source` shows in which sentence or statement the message occurs. If the message is a whole sentence, `source` is "".
  If the literal is stored in a variable, and another statement prints this variable, `source` is the printed sentence.
  Otherwise, `source` is the statement that contains the literal.

If a literal is stored in a member, variable or table, or returned by a function, it has the name of this member,
variable, table or function. The program assumes that a printf format with an argument of this name prints the literal.
If several formats in the same file have such an argument, the first of them is chosen. A format in another file is
chosen only under two conditions: the literal is stored in a member of a structure that a header defines, and at most
ELSEWHERE formats have an argument with the name of this member. `headers` are the files that define the structures in
tables.
"""
import re

TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|(?P<text>"(?:[^"\\\n]|\\.)*")|'(?:[^'\\\n]|\\.)+'|(?P<word>\w[\w.]*\b|\w)|\s+|->|.""",
                   re.S)
CONVERSION = re.compile(r"%[-+ #0]*(\*|\d+)?(?:\.(\*|\d+))?(?:hh|h|ll|l|j|z|t)?([a-zA-Z%])")
OPEN, CLOSE = "([{", ")]}"
STATEMENTS = {"if", "for", "while", "switch", "return", "sizeof", "_Static_assert", "__attribute__", "__asm__"}
WHOLE = {"err_set", "err_errno", "printf", "fprintf"}  # functions whose literal is a whole message
WORDS = 5
LONG_CALL = 32  # a call with more characters is shown without its arguments
ELSEWHERE = 3
SCRAP = 2  # the text of a format with fewer words is shown only within the format that prints this text


class Name:
    """The name of a variable or member that stores a literal, or whose value a format prints.

    - `chain`: the names in the expression: ["result", "verdict", "message"] for `result->verdict.message`
    - `member`: the last name in `chain` is a member of a structure
    - `shared`: other files may use the structure to which the member belongs
    - `indexed`: the expression is an element of an array; the element may be a copy of a member"""

    def __init__(self, chain, member=False, shared=False, indexed=False):
        self.chain, self.member, self.shared, self.indexed = chain, member, shared, indexed

    def prints(self, stored):
        """`self` is the Name of an argument of a printf-like call. Returns true if this argument may be the literal
        that was stored under the Name `stored`."""
        return self.chain[-len(stored.chain):] == stored.chain and (self.member or self.indexed or not stored.member)


class Token:
    def __init__(self, kind, text, line):
        self.kind, self.text, self.line = kind, text, line
        self.stored = None  # the Name of the member or variable of a table that contains this literal


def unescape(literal):
    plain = {"n": "\n", "t": "\t", "r": ""}
    return re.sub(r"\\(x[0-9a-fA-F]{2}|.)", lambda m: plain.get(m[1], m[1]), literal[1:-1])


def tokens_of(source):
    """Splits C code into tokens, and joins adjacent literals. A macro between two literals, such as PRId64 in "%"
    PRId64 " bytes", is replaced by "d", the letter of a printf conversion."""
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
    """Returns the index after the closing bracket that matches the opening bracket at `start`."""
    depth = 0
    for at in range(start, len(tokens)):
        if tokens[at].kind == "mark":
            depth += (tokens[at].text in OPEN) - (tokens[at].text in CLOSE)
            if depth == 0:
                return at + 1
    return len(tokens)


def split(tokens, marks):
    """Splits the tokens at the given marks, but not at marks inside brackets."""
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
    shown = re.sub(r"\( (?:unsigned )?(?:long long|long|int|double|intmax_t|uintmax_t) \) ", "", shown)  # removes casts
    shown = re.sub(r" ?(->|[\].()\[]) ?", r"\1", shown).replace(" ,", ",")
    return re.sub(r"err_show\(([^()]*)\)\.text", r"\1", shown)


def enough(text):
    return len(re.findall(r"[A-Za-z']{2,}", re.sub(r"‹.*?›", "", text, flags=re.S))) >= WORDS


def words_in(text):
    return len(re.findall(r"[A-Za-z]{2,}", re.sub(r"‹.*?›", "", text, flags=re.S)))


def choices(tokens):
    """Returns a and b of `condition ? a : b`, where b may also be a conditional expression."""
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
    """Returns an argument as it is shown: its literals if it has any, else the expression."""
    if len(tokens) == 1 and tokens[0].kind == "text":
        return tokens[0].text
    if len(tokens) > 2 and tokens[0].kind == "word" and tokens[1].text == "(" and end_of(tokens, 1) == len(tokens):
        texts = [part[0].text for part in split(tokens[2:-1], ",") if len(part) == 1 and part[0].kind == "text"]
        if any(map(enough, texts)):
            return call(split(tokens[2:-1], ","))
        if len(code(tokens)) > LONG_CALL:
            return f"‹{tokens[0].text}(…)›"
    chosen = choices(tokens)
    if len(chosen) >= 2 and any(token.kind == "text" for part in chosen for token in part):
        return "(" + "|".join(map(value, chosen)) + ")"
    return f"‹{code(tokens)}›"


def filled(text, values):
    def fill(match):
        for star in match.groups()[:2]:
            if star == "*":  # the argument is a width or a precision
                next(values, None)
        return "%" if match[3] == "%" else value(next(values, []))

    return CONVERSION.sub(fill, text)


def stored_name(tokens):
    """Returns the Name of the variable or member to which the tokens refer; its chain has no indices of arrays. For a
    call of f, the chain of the Name is ["f()"]. For any other expression, returns None."""
    if len(tokens) > 2 and tokens[0].kind == "word" and tokens[1].text == "(" and end_of(tokens, 1) == len(tokens):
        return Name([f"{tokens[0].text}()"])
    chain, depth = [], 0
    for token in tokens:
        depth += (token.text in OPEN) - (token.text in CLOSE) if token.kind == "mark" else 0
        if depth == 0 and token.kind == "word":
            chain += token.text.split(".")
        elif depth == 0 and token.text not in ("->", ".", "*", "&", *CLOSE):
            return None
    member = len(chain) > 1
    return Name(chain, member, member, tokens[-1].text == "]") if chain else None


class Member:
    def __init__(self, name, structure, is_array):
        self.name, self.structure, self.is_array = name, structure, is_array


def written_name(tokens):
    """Returns the Name of the variable or member to which a statement writes. The chain of this Name has only the last
    name, because the code that reads a member later may reach it through another variable."""
    name = stored_name(tokens)
    return name and Name(name.chain[-1:], name.member, name.shared)


def members_of(body):
    """Returns the members of a structure. If a member is itself a structure, Member.structure is the name of its type,
    else ""."""
    members = []
    for declaration in split(body, ";"):
        structure = declaration[1].text if len(declaration) > 2 and declaration[0].text == "struct" else ""
        for part in split(declaration, ","):
            pointer = next((at + 2 for at in range(len(part) - 2) if part[at].text == "(" and part[at + 1].text == "*"), None)
            mark = next((at for at, t in enumerate(part) if t.text in ("[", ":")), len(part))
            words = [t.text for t in part[:mark] if t.kind == "word"]
            if pointer is not None:
                members.append(Member(part[pointer].text, "", False))
            elif words:
                members.append(Member(words[-1], structure, mark < len(part) and part[mark].text == "["))
    return members


def structures_of(tokens):
    found = {}
    for at in range(len(tokens) - 2):
        if tokens[at].text == "struct" and tokens[at + 1].kind == "word" and tokens[at + 2].text == "{":
            found[tokens[at + 1].text] = members_of(tokens[at + 3:end_of(tokens, at + 2) - 1])
    return found


class Tables:
    """The tables of a C file, which are its variables with initializers in braces. name_all() sets Token.stored of each
    literal in a table. `known` is {name of a structure: its members}. `shared` has the names of the structures that
    headers define."""

    def __init__(self, known, shared):
        self.known, self.shared = known, shared

    def name_row(self, body, members, chain, shared):
        for place, part in enumerate(split(body, ",")):
            member = members[place] if place < len(members) else None
            if len(part) > 2 and part[0].text == "." and part[2].text == "=":
                member, part = next((m for m in members if m.name == part[1].text), None), part[3:]
            if member:
                self.name_value(part, member.structure, member.is_array, [*chain, member.name], True, shared)

    def name_value(self, part, structure, is_array, chain, member, shared):
        """Sets Token.stored of the literals in `part`, which is the initializer of a variable or member. `structure` is
        the type of this variable or member; if it is an array, `structure` is the type of its elements."""
        braces = bool(part) and part[0].text == "{" and end_of(part, 0) == len(part)
        members = self.known.get(structure) if isinstance(structure, str) else structure
        if braces and (is_array or not members):
            for element in split(part[1:-1], ","):
                if len(element) > 2 and element[0].text == "[":
                    element = element[end_of(element, 0) + 1:]
                self.name_value(element, structure, False, chain, member, shared)
        elif braces:
            self.name_row(part[1:-1], members, chain[1:] if not member else chain, shared)
        else:
            for token in part:
                if token.kind == "text" and token.stored is None:
                    token.stored = Name(chain, member, shared)

    def name_all(self, tokens):
        for at in range(2, len(tokens) - 1):
            if tokens[at].text != "=" or tokens[at + 1].text != "{":
                continue
            begin = at - 1
            while begin > 0 and tokens[begin].text == "]":
                while tokens[begin].text != "[":
                    begin -= 1
                begin -= 1
            if tokens[begin].kind != "word" or tokens[begin - 1].text == ".":
                continue
            structure, shared = "", False
            if tokens[begin - 1].text == "}":  # a structure without a name, as in struct {…} rows[] = {…}
                structure = members_of(tokens[self.start_of(tokens, begin - 1) + 1:begin - 1])
            elif tokens[begin - 2].text == "struct":
                structure, shared = tokens[begin - 1].text, tokens[begin - 1].text in self.shared
            chain = [tokens[begin].text]
            self.name_value(tokens[at + 1:end_of(tokens, at + 1)], structure, begin != at - 1, chain, False, shared)

    @staticmethod
    def start_of(tokens, end):
        """Returns the index of the opening bracket that matches the closing bracket at `end`."""
        depth = 0
        for at in range(end, -1, -1):
            if tokens[at].kind == "mark":
                depth += (tokens[at].text in CLOSE) - (tokens[at].text in OPEN)
                if depth == 0:
                    return at
        return 0


def call(arguments):
    """Returns the text that a call prints: its format, which is its first literal, with the values filled in."""
    for at, argument in enumerate(arguments):
        if len(argument) == 1 and argument[0].kind == "text":
            return filled(argument[0].text, iter(arguments[at + 1:]))
    return ""


class Function:
    def __init__(self, parameters):
        self.parameters = parameters
        self.printed = []  # the messages in the body
        self.stored = {}  # {parameter: the Name under which the function stores this parameter's text}
        self.calls = []  # (function, arguments) of each call that has no literal among its arguments


class Source:
    """A C file: its messages and its functions."""

    def __init__(self, path, tokens, tables):
        self.path, self.found, self.functions = path, [], {}
        # An element (name, message, hole, stored) for each value that a printf-like call prints. `name` is the Name of
        # the value, and `hole` is the text that stands for the value in `message`. `stored` is the Name under which
        # `message` is stored, or None.
        self.printers = []
        tables.name_all(tokens)
        self.scan(tokens, 0, len(tokens), None)

    def scan(self, tokens, start, end, function, returned=None):
        at = begin = start
        while at < end:
            token = tokens[at]
            if token.kind == "word" and token.text not in STATEMENTS and at + 1 < end and tokens[at + 1].text == "(":
                close = end_of(tokens, at + 1)
                if function is None and close < end and tokens[close].text == "{":
                    names = [[t.text for t in part if t.kind == "word"][-1:] for part in split(tokens[at + 2:close - 1], ",")]
                    stop = end_of(tokens, close)
                    self.functions[token.text] = Function([name[0] if name else "" for name in names])
                    self.scan(tokens, close + 1, stop - 1, self.functions[token.text], Name([f"{token.text}()"]))
                    at = begin = stop
                    continue
                if any(t.kind == "text" for t in tokens[at:close]):
                    stored = self.place(tokens[begin:at], returned)
                    self.take_call(token, split(tokens[at + 2:close - 1], ","), function, stored)
                    at = close
                    continue
                if token.text == "vsnprintf" and function:
                    arguments = split(tokens[at + 2:close - 1], ",")
                    function.stored[code(arguments[2])] = written_name(arguments[0])
                if function:
                    function.calls.append((token.text, list(map(code, split(tokens[at + 2:close - 1], ",")))))
            elif token.text in ("_Static_assert", "__asm__", "__attribute__"):
                at = end_of(tokens, at + 1)
                continue
            elif token.kind == "text" and enough(token.text):
                stop = next((i for i in range(at, end) if tokens[i].text in (";", "}", ",")), end)
                stored = token.stored or self.place(tokens[begin:at], returned)
                self.found.append((token.line, token.text, code(tokens[max(begin, at - 12):stop]), None, None, stored))
            elif token.text in ";{}" and token.kind == "mark":
                begin = at + 1
            at += 1

    def place(self, before, returned):
        """Returns the Name under which a statement stores a literal: the Name of a variable or member, or of the
        function that returns the literal. The statement begins with the tokens `before`."""
        if any(token.text == "return" for token in before):
            return returned
        for at in range(len(before) - 1, 0, -1):
            comparison = before[at - 1].text in ("=", "!", "<", ">") or [t.text for t in before[at + 1:at + 2]] == ["="]
            if before[at].text == "=" and not comparison:
                name = written_name([t for t in before[:at] if t.text not in ("const", "char", "static")][-6:])
                # `shared` is false, because the name may mean something else in another file
                return name and Name(name.chain, name.member)
        return None

    def note_printers(self, arguments, stored):
        """Adds an element to self.printers for each value that a printf-like call prints. Then does the same for the
        calls inside the arguments of this call."""
        whole = call(arguments)
        form = next((i for i, a in enumerate(arguments) if len(a) == 1 and a[0].kind == "text"), len(arguments))
        for place, argument in enumerate(arguments):
            name = stored_name(argument)
            if place > form and name and value(argument) in whole and (words_in(whole) > 0 or stored):
                self.printers.append((name, whole, value(argument), stored))
            for at in range(len(argument) - 1):
                if argument[at].kind == "word" and argument[at + 1].text == "(":
                    inner = split(argument[at + 2:end_of(argument, at + 1) - 1], ",")
                    if any(t.kind == "text" for part in inner for t in part):
                        self.note_printers(inner, stored)

    def take_call(self, name, arguments, function, stored):
        whole = call(arguments)
        if function:
            function.printed.append(whole)
        if name.text == "snprintf":
            stored = written_name(split(arguments[0], "+")[0])
        self.note_printers(arguments, stored)
        place = next((i for i, a in enumerate(arguments) if len(a) == 1 and a[0].kind == "text"), None)
        if place is None:  # no argument is a literal, but an argument contains literals
            place = next(i for i, a in enumerate(arguments) if any(t.kind == "text" for t in a))
            whole = value(arguments[place])
        if enough(whole):
            statement = f"{name.text}({', '.join(map(code, arguments))})"
            self.found.append((name.line, whole, statement, name.text, place, stored))


def framed(message, name, place, local, shared):
    """The function `name` gets `message` as argument number `place`. Returns the longer text within which this
    function, or a function to which it passes the argument, prints `message`. If the message is not printed
    within a longer text, returns `message` unchanged."""
    for _ in range(6):
        function = local.get(name) or shared.get(name)
        if function is None or place is None or place >= len(function.parameters):
            break
        parameter = function.parameters[place]
        # by convention, a function with a parameter `format` stores the formatted text in a variable `sentence`
        holes = [f"‹{parameter}›"] + ["‹sentence›"] * (parameter == "format")
        frame = next(((text, hole) for text in function.printed for hole in holes if hole in text and text != hole), None)
        passed = next(((callee, arguments.index(parameter)) for callee, arguments in function.calls
                       if parameter in arguments and callee in {**shared, **local}), None)
        if frame:
            return frame[0].replace(frame[1], message, 1)
        if passed is None:
            break
        name, place = passed
    return message


def printed(message, stored, source, sources):
    """`message` is stored under the Name `stored`. Returns the sentence in which a printf format prints it, or "" if no
    format prints it."""
    for _ in range(3):
        found = [(other, *printer) for other in sources for printer in other.printers if stored and printer[0].prints(stored)]
        here = [one for one in found if one[0] is source]
        if not found or not here and (len(found) > ELSEWHERE or not stored.shared):
            break
        source, _, whole, hole, stored = min(here or found, key=lambda one: len(one[1].chain))
        message, scrap = whole.replace(hole, message, 1), words_in(whole) < SCRAP
        if not scrap:
            return message
    return ""


def messages(paths, headers=()):
    tokens = {path: tokens_of(path.read_text()) for path in [*paths, *headers]}
    shared = {name: members for path in headers for name, members in structures_of(tokens[path]).items()}
    sources = [Source(path, tokens[path], Tables({**shared, **structures_of(tokens[path])}, set(shared))) for path in paths]
    shared = {name: function for source in sources for name, function in source.functions.items()}
    for source in sources:
        for line, message, statement, name, place, stored in source.found:
            whole = framed(message, name, place, source.functions, shared)
            function = source.functions.get(name)
            if function and place is not None and place < len(function.parameters):
                stored = function.stored.get(function.parameters[place], stored)
            if whole != message or name in WHOLE:
                around = ""
            else:
                around = printed(whole, stored, source, sources) or statement
            yield source.path, line, " ".join(whole.split()), " ".join(around.split())
