/* test_python_dependencies - a scan of the words in a reference's source code. The scan finds out whether the reference
 * can depend on more than its source code and its inputs. */
#include "cache/python_dependencies.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cache/python_names.h"

static struct python_dependencies words_of(const char *source)
{
	/* the allocation has exactly this size, so that a sanitizer detects a read beyond the end */
	char *copy = malloc(strlen(source) + 1);
	size_t length = strlen(source);

	memcpy(copy, source, length);
	struct python_dependencies words = python_dependencies(copy, length);

	free(copy);
	return words;
}

static void expect(const char *const *sources, int count, enum python_access access)
{
	for (int i = 0; i < count; i++) {
		struct python_dependencies words = words_of(sources[i]);

		if (words.access != access)
			fail_msg("it sees %d (%s, line %d), not %d:\n%s", (int)words.access, words.what, words.line, (int)access,
			         sources[i]);
		assert_true(access != ACCESS_OUTSIDE || (words.what[0] != '\0' && words.line > 0));
	}
}

#define ALL(access, ...)                                                                                                \
	do {                                                                                                           \
		static const char *const sources[] = {__VA_ARGS__};                                                    \
		expect(sources, (int)(sizeof sources / sizeof *sources), access);                                       \
	} while (0)

static void ordinary_references_see_nothing(void **state)
{
	(void)state;
	ALL(ACCESS_NOTHING, "", "import torch\nx = torch.rsqrt(y.float().pow(2).mean(-1, keepdim=True) + 1.e-6)\n",
	    "import torch.nn.functional as F\nfrom torch import nn, Tensor\nfrom torch.nn import functional\nx = F.silu(nn.Linear(2, 3)(y))\n",
	    "import math, torch\nx = math.log2(math.e) * torch.cuda.is_available()\n", "x = f'{a + 1:>{w}.3f} {b!r} {{c}}'\n",
	    "from typing import (Optional,\n  List)\ndef run(input: Optional[int], *, time=1, dir_=2):\n  return time\n",
	    "# open('x')\n'os.environ'\ndef f():\n  'time.time()'\n  raise ValueError('too large: {}'.format(1)) from None\n",
	    "@torch_free\ndef f(x):\n\treturn x.mine\nf.mine = 1\n", "import torch\ntorch.backends.cuda.matmul.allow_tf32 = False\n",
	    "import torch\nx = torch.random.manual_seed(1)\n", "import random\nx = random.random()\n",
	    "import torch\ny = torch.fft.fft(x).real\n", "x = \"don't ('x')\"\n",
	    "from copy import copy\nimport copy as c\nx = copy(c.copy(y)).cpu().grad\n", "x = '{0.shape[1]:>{1}} {{.a}} {:.3f}'.format(y, z)\n",
	    "class A:\n  def _f(self):\n    self._g = 1\n    return self._f, self._g\n",
	    "try:\n  x = y[0]\nexcept (KeyError, IndexError) as e:\n  raise KeyError from e\nwhile x:\n  break\n",
	    "try:\n  x = y[0]\nfinally:\n  z = KeyError(1)\nwhile x:\n  break\n",
	    "if type(x) is not type(y):\n  raise KeyError(type(x).__name__)\nz = type(x) in (A, B) or C == type(y)\n",
	    "x = '{0[a1].shape[2]:>8}'.format(y)\n");
}

static void what_sees_itself_is_reported(void **state)
{
	(void)state;
	ALL(ACCESS_OWN_SOURCE, "x = run.__doc__\n", "def f():\n  yield 1\n", "import torch\nx = getattr(torch, 'float8_e4m3fn', None)\n",
	    "frame = 1\n", "x = 'cannot open'\n", "x = '__doc__' + y\n", "class A(metaclass=m):\n  x = 1\n",
	    "class A(B, **{'meta' 'class': m}):\n  x = 1\n");
}

static void what_may_see_more_is_reported(void **state)
{
	(void)state;
	ALL(ACCESS_OUTSIDE, "import os\n", "import time as t\n", "import torch, sys\n", "if x:\n  import socket\n", "from os import environ\n",
	    "from random import _os\n", "from random import SystemRandom\n", "import random\nrandom.SystemRandom()\n",
	    "import numpy\n", "import einops\n", "import typing_extensions\n", "from typing_extensions import Self\n", "import triton\n", "import helper\n", "from . import helper\n", "from torch import *\n",
	    "x = open('y')\n", "x = f'{open(\"y\").x}'\n", "x = f\"{open('y')}\"\n", "x = f\"{y:{open('z')}}\"\n", "exec(x)\n",
	    "x = __import__('os')\n", "x = __builtins__\n", "import torch\nx = torch.load('y')\n", "import torch\nx = torch.os\n",
	    "import torch\nx = torch.seed()\n", "import torch\nx = [torch]\n", "import torch\nx = torch.utils.data\n",
	    "import torch\nx = getattr(torch, 'cpu')\n", "import torch\nx = getattr(torch.nn, 'grad', None)\n",
	    "import torch\nx = getattr(torch, 'o' + 's')\n", "import torch\nx = getattr(torch, 'os')\n", "x = y.numpy()\n",
	    "os = 1\nx = y.os\n", "x = y.__globals__\n", "import torch\nx = torch.Tensor.from_file('y')\n", "globals()['x']\n",
	    "x = '{0.a.b}'\ny = x.format(z)\n", "\xC3\xA9 = 1\n", "x = f'{y['open']}'\n", "x = 'unended\n", "import torch.hub\n",
	    "import math; import os\n", "def f(): import os\n", "x = 1if y else open(z)\n", "x = open \\\n (y)\n",
	    "import torch\nx = torch.nn.functional.os\n", "import torch.nn.functional as F\nx = F.torch\n",
	    "import torch\nx = torch.cpu\n", "import torch\nx = torch.func.vmap\n", "from torch import cpu\n", "from torch.nn import grad as g\n",
	    "def f():\n  return random\nimport random\n", "def f():\n  return r._os\nimport random as r\nclass A:\n  def _os():\n    pass\n",
	    "_logging = 1\nx = y._logging\n", "x = y.format_map(z)\nformat_map = 1\n", "x = '{0.__do' 'c__}'.format(y)\n",
	    "x = '{0.__\\x64oc__}'.format(y)\n", "x = f'{y}'.format(z)\n", "x = '{0._logging}'.format(y)\n",
	    "x = id(y)\n", "x = hash(y)\n", "x = repr(y)\n", "x = ascii(y)\n",
	    "try:\n  x = 1\nexcept:\n  x = 2\n", "try:\n  x = 1\nexcept RuntimeError:\n  x = 2\n", "try:\n  x = 1\nexcept (KeyError, MemoryError) as e:\n  x = 2\n",
	    "try:\n  x = 1\nexcept* torch.OutOfMemoryError:\n  x = 2\n", "def f():\n  try:\n    x = 1\n  finally:\n    return 2\n",
	    "KeyError = RuntimeError\ntry:\n  x = 1\nexcept KeyError:\n  x = 2\n", "KeyError, y = RuntimeError, 1\ntry:\n  x = 1\nexcept KeyError:\n  x = 2\n",
	    "class KeyError(RuntimeError):\n  y = 1\ntry:\n  x = 1\nexcept KeyError:\n  x = 2\n", "from contextlib import ExitStack\npush = 1\n");
}

/* Classes and objects whose attributes have computed names, and objects of libraries that read attributes by such names. */
static void computed_attributes_are_outside(void **state)
{
	(void)state;
	ALL(ACCESS_OUTSIDE, "x = type('A', (), {'__ex' + 'it__': y})\n", "x = type(*y)\n", "class A(type):\n  pass\n", "x = type\n",
	    "setattr(x, '__ex' + 'it__', y)\n", "delattr(x, y)\n", "import torch\nx = torch.nn.ParameterDict()\n",
	    "import torch\nx = torch.nn.ParameterList()\n", "class A:\n  def fget(self):\n    pass\nx = A.y.fget(z)\n",
	    "class A:\n  def _evaluate(self):\n    pass\nx = y._evaluate(z)\n");
	ALL(ACCESS_NOTHING, "x = type(y) is z\n", "x = type(y[1, 2]) == z\n", "x = type(f(y, z)).__name__\n");
	ALL(ACCESS_OWN_SOURCE, "x = y.__class__.__name__\n", "x = y.__class__ is z\n", "x = hasattr(y.shape, 'ndim')\n");
	/* type(int) and int.__class__ are `type`. */
	ALL(ACCESS_OUTSIDE, "class M(type(int)):\n  pass\n", "x = type(type(int))('A', (), {y: z})\n", "x = type(int)\n", "f(type(int))\n",
	    "x = type(int).mro\n", "x = int.__class__\n", "x = int.__class__('A', (), {y: z})\n", "class M(int.__class__):\n  pass\n",
	    "x = y if z is type(int)('A') else 1\n", "x = (y := type(int)) is z\n", "x <= type(int)\n",
	    "class A:\n  def __eq__(self, x):\n    return x\ny = type(int) == A()\n",
	    "class A:\n  def __contains__(self, x):\n    return x\ny = type(int) in A()\n",
	    "class A:\n  def __eq__(self, x):\n    return x\ny = A() == type(int)\n");
	/* the classes of the module enum make attributes from texts */
	ALL(ACCESS_OUTSIDE, "import enum\n", "from enum import Enum\n", "import enum as e\n", "x = y.Enum\n");
	/* the text of a literal is not the whole format */
	ALL(ACCESS_OUTSIDE, "x = f'{y}' '}'.format(z)\n", "x = '{0[:].y}'.format(z)\n", "x = '{0[!].y}'.format(z)\n", "x = '{0[}].y}'.format(z)\n");
	ALL(ACCESS_OUTSIDE, "x = getattr(__builtins__, 'get')(y)\n", "x = getattr(eval, 'shape')\n", "x = hasattr(__builtins__, 'get')\n",
	    "x = getattr(inspect, 'get')\n");
}

/* A block or an operation may replace the exception of a lack of memory by another one, or lose it. */
static void replaced_exceptions_are_outside(void **state)
{
	(void)state;
	ALL(ACCESS_OUTSIDE, "def f():\n  try:\n    yield\n  finally:\n    x = 1\n",
	    "try:\n  try:\n    x = y\n  finally:\n    raise KeyError\nexcept KeyError:\n  pass\n",
	    "class A:\n  def __getitem__(self, i):\n    return i\ntry:\n  x = torch.tensor(A())\nexcept ValueError:\n  pass\n");
	ALL(ACCESS_NOTHING, "class A:\n  def __init__(self):\n    pass\ntry:\n  x = A()\nexcept ValueError:\n  pass\n",
	    "class A:\n  def __getitem__(self, i):\n    return i\n");
}

/* Frames and code objects lead to all builtins, even if the text binds the names of their attributes. */
static void frames_and_code_are_outside(void **state)
{
	(void)state;
	ALL(ACCESS_OUTSIDE, "x = (i for i in y).gi_frame\n", "gi_frame = 1\nx = y.gi_frame\n", "x = y.tb_frame\n", "x = y.f_lineno\n",
	    "class A:\n  f_builtins = f_globals = None\nx = y.f_builtins\n", "y.f_globals = 1\n", "y.f_back = 1\n", "y.f_locals = 1\n",
	    "y.tb_next = 1\n", "y.cell_contents = 1\n", "def f():\n  pass\nf.__code__ = f.__code__.replace(co_names=('a',))\n",
	    "gi_code = 1\nx = y.gi_code.co_consts\n", "x = '__code__'\ny.__code__\n", "y.__closure__\n", "y.__self__\n",
	    "y.__wrapped__\n", "y.__reduce__()\n", "y.__objclass__\n", "y.__traceback__\n", "import inspect\n", "x = y.inspect\ninspect = 1\n");
}

/* Some attributes lead outside on an object that the text did not make. A binding of the same name changes nothing. */
static void bound_names_do_not_open_what_is_outside(void **state)
{
	(void)state;
	ALL(ACCESS_OUTSIDE, "try:\n  x = 1\nexcept AttributeError as e:\n  obj = e.obj\n", "class A:\n  obj = 1\nx = y.obj\n",
	    "seed = 0\nimport torch\nx = torch.Generator().seed()\n", "class A:\n  seed = 0\nx = y.seed\n",
	    "class A:\n  _typed_storage = None\nx = y._typed_storage()\n", "y._data_ptr = 1\n", "y._new_shared_filename_cpu = 1\n",
	    "y._write_file = 1\n", "y.is_shared = 1\n", "SystemRandom = 1\nx = y.SystemRandom()\n", "import secrets\n", "import uuid\n",
	    "from enum import Enum\nclass A:\n  def _convert_(self): pass\nx = Enum._convert_('E', 'os', f)\n", "y._cdata = 1\n",
	    "y._weak_ref = 1\n", "try:\n  x = 1\nexcept (KeyError, ImportError) as e:\n  x = str(e)\n",
	    "import torch\nx = torch.initial_seed()\n", "import torch\nx = torch.cuda.Stream()\n", "y.elapsed_time = 1\n", "import torch\nx = torch.get_rng_state()\n");
}

static void class_patterns_read_attributes(void **state)
{
	(void)state;
	ALL(ACCESS_OUTSIDE, "match x:\n  case object(untyped_storage=s): pass\n", "match x:\n  case [1, (A(b), 2)]:\n    pass\n",
	    "match x:\n  case 1:\n    pass\n  case {'a': a.B(\n    c=d)} if e: pass\n", "match x:\n  case (A(b) | 2): pass\n",
	    "match x:\n  case \\\n    A(b) as c: pass\n");
	ALL(ACCESS_NOTHING, "match x:\n  case int() | [1, *y] | {'a': (z, _)} if f(x): pass\n  case (1): g(x)\n",
	    "case = f(x)\nmatch = re = f(case)\n");
}

static void an_import_in_the_body_of_a_class_makes_the_module_a_value(void **state)
{
	(void)state;
	ALL(ACCESS_OUTSIDE, "class A:\n  import random\n", "class A: import random\n", "class A: x = 1; import random\n",
	    "class A:\n  def f():\n    pass\n\n  # c\n  from torch import nn\n", "class A:\n  if x:\n    from torch import nn as y\n",
	    "def f():\n  class A:\n    def g(): pass\n    x = (1,\n2)\n    import math\n",
	    "class A:\n  x = 1\n  try: import math\n  finally:\n    pass\n", "class A:\n\timport math\n",
	    "class A:\n  async def f(): pass\n  if x:\n    if y:\n     import math\n", "class A:\n  def f(): pass\r\n  import math\r\n");
	ALL(ACCESS_OUTSIDE, "class A:\n  def f():\n    pass\n  \\\n    import math\n", "class A:\n  def f():\n    pass\n      \f  import math\n",
	    "def f(): pass\rclass A: import math\n");
	ALL(ACCESS_NOTHING, "class A:\n  def f():\n    import math\n    return math.pi\nimport torch\n",
	    "class A: x = 1\nimport math\n", "class A:\n  x = 1\n  async def f():\n    if x:\n\n      from torch import nn\n",
	    "class A:\n  def f(): import math\n", "x = 1; import math\n", "def f():\n  class A:\n    x = 1\n  import math\n");
}

/* An attribute with an unknown name is allowed if the text gives an object of its own such an attribute. */
static void only_attributes_of_own_objects_are_own(void **state)
{
	(void)state;
	ALL(ACCESS_NOTHING, "x.mine\ny.mine = 1\n", "x.mine\nif z: y.a, y.mine = 1, 2\n", "x.mine\ny.mine, y.a = y.b = 1, 2\nz.b\n",
	    "x.mine\ny.mine: int = 1\n", "x.mine\nclass A:\n  mine: int\n", "x.mine\nclass A:\n  a = 1\n  mine = 2\n",
	    "x.mine\nclass A:\n  @property\n  def mine(self): return 1\n", "x.mine\nclass A:\n  async def mine(self): pass\n",
	    "x.mine\nclass A:\n  class mine: a = 1\n", "x.mine\nclass A: a = 1; mine = 2\n", "x.a\nclass A: a = 1; mine = 2\n",
	    "x.mine\ny = namedtuple('A', 'a mine')\n", "x.mine\ny = NamedTuple('A', [('a', int),\n('mine', int)])\n");
	ALL(ACCESS_OUTSIDE, "x.mine\nmine = 1\n", "x.mine\ndef mine(): pass\n", "x.mine\nclass mine: pass\n", "x.mine\nf(mine=1)\n",
	    "x.mine\nclass A:\n  def f(self, mine):\n    mine = 1\n", "x.mine\ny.mine == 1\n", "f(x.mine, a=1)\n", "x.mine += 1\n",
	    "for mine in x:\n  x.mine\n", "if x.mine: y = 1\n", "x.mine\nclass A:\n  a = f(mine)\n  b == mine\n",
	    "x.mine\ny = namedtuple('A', 'a mine2')\n", "x.mine\ny = 'mine'\n", "x.mine, y.mine == z\n");
}

/* A dataclass executes code that contains the names of its fields, so these must be names in the text. */
static void dataclasses_have_the_fields_of_their_text(void **state)
{
	(void)state;
	ALL(ACCESS_OWN_SOURCE, "from dataclasses import dataclass, field\n@dataclass\nclass A:\n  x: int = field(default=1)\ny = A().x\n",
	    "import dataclasses\n@dataclasses.dataclass(frozen=True, eq=False) # c\n\nclass A():\n  x: int\n",
	    "try: from dataclasses import (field, dataclass)\nfinally: pass\n@dataclass()\nclass A:\n  x: int\n");
	ALL(ACCESS_OUTSIDE, "from dataclasses import dataclass as d\n", "import dataclasses\nd = dataclasses.dataclass\n",
	    "from dataclasses import dataclass\nd = dataclass(A)\n", "from dataclasses import dataclass; d = dataclass\n",
	    "from dataclasses import dataclass\n@dataclass\nclass B(A):\n  y: int = 0\n", "x = [@dataclass\nclass B:\n",
	    "from dataclasses import dataclass\n@dataclass\n@d\nclass B:\n  y: int = 0\n",
	    "from dataclasses import dataclass\n@dataclass(A)\nclass B:\n  y: int = 0\n",
	    "from dataclasses import dataclass\n@dataclass(**x)\nclass B:\n  y: int = 0\n",
	    "from dataclasses import dataclass\n@dataclass\nclass B:\n  __annotations__ = {x: int}\n",
	    "from dataclasses import dataclass, field\nf = field()\n@dataclass\nclass B:\n  x: int = f\nf.name = x\n",
	    "from dataclasses import dataclass\nsetattr(x, y, z)\n", "from dataclasses import dataclass\nx = type(a, b, c)\n",
	    "from dataclasses import dataclass\nx = y.__class__(a, b, c)\n", "import dataclasses\nd = getattr(dataclasses, 'dataclass')\n",
	    "x.__annotations__[y] = int\n");
}

/* The list has the attributes that are accepted only because the text gives them to its objects, each once. */
static void attributes_of_own_objects_are_listed(void **state)
{
	static const struct {
		const char *source, *names;
	} rows[] = {
	    {"x = y.shape\n", ""},
	    {"self.weight = 1\nx = self.weight\n", ""}, /* names_plain has `weight` */
	    {"self.scale = 1\nx = self.scale + self.made_up\nself.made_up = 2\n", "made_up"}, /* names_of_own_attributes */
	    {"class A:\n  def f_1(self):\n    self.q_2 = self.f_1\n    return self.q_2 + self.shape\n", "q_2 f_1"},
	    {"P = namedtuple('P', ['a_3', 'b_3'])\nx = p.b_3\n", "b_3"},
	    {"class A:\n  def fgot(self): pass\nx = f'{p.fgot}'\n", "fgot"},
	    {"class A:\n  def never_read(self): pass\n", ""},
	    {"class A:\n  def f(self):\n    self.__p = 1\n", "__p"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct python_dependencies words = words_of(rows[i].source);

		assert_int_not_equal(words.access, ACCESS_OUTSIDE);
		assert_string_equal(words.own_attributes, rows[i].names);
	}
}

/* If the list has no room for all names, the text counts as ACCESS_OUTSIDE. */
static void a_list_of_attributes_that_is_too_long_is_outside(void **state)
{
	enum { NAMES = 300, LINE = 32, ROOM = sizeof((struct python_dependencies *)NULL)->own_attributes / LINE };
	static char source[NAMES * LINE * 2];
	size_t length = 0;

	(void)state;
	for (int i = 0; i < NAMES; i++) {
		length += (size_t)snprintf(source + length, sizeof source - length, "a.x%0*d = 1\n", LINE - 2, i);
		struct python_dependencies words = words_of(source);

		/* each name has LINE - 1 letters, and a space or the final NUL follows it */
		assert_int_equal(words.access, i < ROOM ? ACCESS_NOTHING : ACCESS_OUTSIDE);
		assert_string_equal(words.what, i < ROOM ? "" : "so many attributes");
		assert_int_equal(words.line, i < ROOM ? 0 : ROOM + 1);
	}
}

static void the_reason_has_its_line(void **state)
{
	struct python_dependencies words = words_of("import torch\n'''\n\n'''\nx = (1,\n  2)\ny = torch.load(x)\n");

	(void)state;
	assert_int_equal(words.access, ACCESS_OUTSIDE);
	assert_string_equal(words.what, "'torch.load'");
	assert_int_equal(words.line, 7);
}

static void names_are_sorted(void **state)
{
	static const struct {
		const char *const *names;
		size_t count;
	} lists[] = {{names_plain, sizeof names_plain / sizeof *names_plain},
		     {names_of_own_attributes, sizeof names_of_own_attributes / sizeof *names_of_own_attributes}};

	(void)state;
	for (int n = 0; n < 2; n++)
		for (size_t i = 1; i < lists[n].count; i++)
			if (strcmp(lists[n].names[i - 1], lists[n].names[i]) >= 0)
				fail_msg("%s stands before %s", lists[n].names[i - 1], lists[n].names[i]);
}

/* A reference may open only the files of a given list, only for reading, and only if the path is a string literal. */
static void declared_files_may_be_read(void **state)
{
	static const char *const files[] = {"a.txt", "b/it's.bin"};
	static const char *const allowed[] = {
	    "x = open('a.txt')\n", "with open(\"a.txt\", \"r\", encoding='utf-8') as f:\n  x = float(f.read())\n",
	    "x = [float(y) for y in open('a.txt', mode='rt').readlines()]\n", "x = open(\n  \"b/it's.bin\", 'rb')\nx.close()\n",
	};
	static const char *const refused[] = {
	    "open('c.txt')", "open('a.txt', 'w')", "open('a.txt', 'r+')", "open('a.txt' 'x')", "open(f'a.txt')", "open(r'a.txt')",
	    "open('a\\x2etxt')", "open('''a.txt''')", "open('a.txt'.upper())", "open('a.txt' + x)", "open('a.txt', mode=m)",
	    "open('a.txt', opener=f)", "open('a.txt', *m)", "open('a.txt', 'r'", "open('a.txt', 'rb', 0)", "open(0)", "open(x)",
	    "open", "f = open", "open('')", "open('a.txt', encoding=open('c.txt').read())", "x.open('a.txt')", "open('/etc/passwd')",
	    "open('a.txt').fileno()", "open('a.txt').buffer", "import os", "open('a.txt', encoding='idna')",
	};

	(void)state;
	for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
		struct python_dependencies words = python_dependencies_besides(allowed[i], strlen(allowed[i]), files, 2);

		if (words.access != ACCESS_NOTHING)
			fail_msg("refused for %s: %s", words.what, allowed[i]);
		assert_int_equal(words_of(allowed[i]).access, ACCESS_OUTSIDE);
	}
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (python_dependencies_besides(refused[i], strlen(refused[i]), files, 2).access != ACCESS_OUTSIDE)
			fail_msg("allowed: %s", refused[i]);
}

/* If a reference imports code that reads the clock or the name of the machine, the import is found in every form,
 * whatever else the source code contains. */
static void what_reads_the_clock_is_reported(void **state)
{
	static const struct {
		const char *source, *unsteady;
		int line;
	} rows[] = {
	    {"import time\n", "'import time'", 1},
	    {"import torch\nimport math, time as t\n", "'import time'", 2},
	    {"import os\nfrom datetime import datetime\n", "'import datetime'", 2},
	    {"def f():\n  import socket\n", "'import socket'", 2},
	    {"import os\nx = os.uname().nodename\n", "'os.uname'", 2},
	    {"from os import (path,\n uname as u)\n", "'os.uname'", 2},
	    {"x = eval('1')\nimport platform\n", "'import platform'", 2},
	    {"import os\nx = os.environ\n", "", 0},
	    {"import torch\ntime = 1\nx = torch.times(time)\n'import time'\n# import time\n", "", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct python_dependencies words = words_of(rows[i].source);

		assert_string_equal(words.unsteady, rows[i].unsteady);
		assert_int_equal(words.unsteady_line, rows[i].line);
		assert_true(words.unsteady[0] == '\0' || words.access == ACCESS_OUTSIDE); /* if a reference reads the
											   * clock, its verdicts are
											   * never stored */
	}
}

static void the_end_of_the_text_may_come_anywhere(void **state)
{
	static const char text[] = "from torch import (nn as n,\n F)\nx = f\"{i:>{j}} {{\" \\\n + 0x1_f - 1.5e-3 ** b'\\n' // getattr(torch.a, 'x', y)\n'''d'''\n"
	                           "import a.b as c, d; x.format.y[..., f'{f\"{z}\"}']\n";

	(void)state;
	for (size_t length = 0; length < sizeof text; length++) {
		char *copy = malloc(length + 1);

		memcpy(copy, text, length);
		copy[length] = '\0';
		words_of(copy);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ordinary_references_see_nothing),
	    cmocka_unit_test(what_sees_itself_is_reported),
	    cmocka_unit_test(what_may_see_more_is_reported),
	    cmocka_unit_test(computed_attributes_are_outside),
	    cmocka_unit_test(replaced_exceptions_are_outside),
	    cmocka_unit_test(frames_and_code_are_outside),
	    cmocka_unit_test(bound_names_do_not_open_what_is_outside),
	    cmocka_unit_test(class_patterns_read_attributes),
	    cmocka_unit_test(an_import_in_the_body_of_a_class_makes_the_module_a_value),
	    cmocka_unit_test(only_attributes_of_own_objects_are_own),
	    cmocka_unit_test(dataclasses_have_the_fields_of_their_text),
	    cmocka_unit_test(attributes_of_own_objects_are_listed),
	    cmocka_unit_test(a_list_of_attributes_that_is_too_long_is_outside),
	    cmocka_unit_test(the_reason_has_its_line),
	    cmocka_unit_test(names_are_sorted),
	    cmocka_unit_test(what_reads_the_clock_is_reported),
	    cmocka_unit_test(declared_files_may_be_read),
	    cmocka_unit_test(the_end_of_the_text_may_come_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
