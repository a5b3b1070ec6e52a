"""The public functions and methods with their signatures and docstrings, as the page on the Python API has them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import calque
import calque.clusters
import calque.done
import calque.notices

WIDTH = 100
FUNCTIONS: Mapping[str, tuple[object, Sequence[str]]] = {
    "functions of calque": (calque, ("connect", "open_epoch", "version_at", "delta_jars")),
    "functions of calque.done": (calque.done, calque.done.__all__),
    "functions of calque.notices": (calque.notices, ("subscribe",)),
    "functions of calque.clusters": (calque.clusters, ("open",)),
}
METHODS: Mapping[str, tuple[type, Sequence[str]]] = {
    "methods of OpenEpoch": (calque.OpenEpoch, ("event_id", "number", "tables", "files", "arrow", "spark", "close")),
    "methods of OpenClusters": (calque.clusters.OpenClusters, ("locate", "resolve", "table", "close")),
}


def functions(part: str) -> str:
    module, names = FUNCTIONS[part]
    name_of_module = getattr(module, "__name__", "")
    return "\n\n".join(entry(f"{name_of_module}.{name}", getattr(module, name)) for name in names)


def methods(part: str) -> str:
    owner, names = METHODS[part]
    return "\n\n".join(entry(f"{owner.__name__}.{name}", member(owner, name)) for name in names)


def member(owner: type, name: str) -> Callable[..., object]:
    found = inspect.getattr_static(owner, name)
    return found.fget if isinstance(found, property) else found


def entry(title: str, function: Callable[..., object]) -> str:
    """Return a heading, the signature, and the docstring. Raises `ValueError` where there is none."""
    text = inspect.getdoc(function)
    if not text:
        raise ValueError(f"{title} has no docstring")
    return f"### {title}\n\n```python\n{signature(function)}\n```\n\n{text}"


def signature(function: Callable[..., object]) -> str:
    """Return the head of the function as its source has it, with values for the constants that are defaults."""
    [head] = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(head, ast.FunctionDef)
    arguments = head.args
    for which in (arguments.defaults, arguments.kw_defaults):
        which[:] = [with_value(default, inspect.unwrap(function).__globals__) for default in which]
    if arguments.args and arguments.args[0].arg == "self":
        del arguments.args[0]
    decorators = [f"@{ast.unparse(each)}" for each in head.decorator_list]
    start, end = f"def {head.name}(", f") -> {ast.unparse(head.returns) if head.returns else 'None'}: ..."
    line = f"{start}{', '.join(each_argument(arguments))}{end}"
    folded = [start, *(f"    {each}," for each in each_argument(arguments)), end]
    return "\n".join([*decorators, *([line] if len(line) <= WIDTH else folded)]).replace("'", '"')


def with_value(default: ast.expr | None, constants: Mapping[str, Any]) -> Any:
    return ast.Constant(constants[default.id]) if isinstance(default, ast.Name) else default


def each_argument(arguments: ast.arguments) -> Iterator[str]:
    """Yield each argument as it is written, and the signs between the kinds of arguments."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + [*arguments.defaults]
    for number, (argument, default) in enumerate(zip(positional, defaults, strict=True), 1):
        yield written(argument, default)
        if number == len(arguments.posonlyargs):
            yield "/"
    if arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield written(argument, default)
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def written(argument: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(argument) + (f" = {ast.unparse(default)}" if default is not None else "")
