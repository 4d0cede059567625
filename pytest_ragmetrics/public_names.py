"""The public names of a package, which its stub ``__init__.pyi`` lists for type checkers, and calls of its functions.

What is wrong with a call is said in a sentence, without the frames of this package.
"""

from __future__ import annotations

import os
import re
from collections.abc import Coroutine, Generator, Iterable, Mapping
from functools import cache, wraps
from importlib.util import find_spec
from inspect import Parameter, iscoroutinefunction, signature
from pkgutil import get_data
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    pass

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)

#: What a bound is called elsewhere.
_BOUNDS = {
    **dict.fromkeys(("threshold", "at_least", "minimum", "lower_bound"), "min"),
    **dict.fromkeys(("at_most", "maximum", "upper_bound"), "max"),
}
_IMPORT = re.compile(r"^from (\S+) import (?:\(\s*)?(\w+) as ", re.MULTILINE)


def is_module(package: str, name: str) -> bool:
    """Tell whether a name is one of Python's own or of a module of the package, which an import asks the package for.

    >>> is_module("pytest_ragmetrics", "plugin"), is_module("pytest_ragmetrics", "Sample")
    (True, False)
    """
    return name.startswith("__") or find_spec(f"{package}.{name}") is not None


def module_of_names(package: str) -> dict[str, str]:
    """Return the module of each public name of a package.

    >>> module_of_names("pytest_ragmetrics")["Sample"]
    'pytest_ragmetrics.sample'
    """
    stub = get_data(package, "__init__.pyi") or b""
    return {name: module for module, name in _IMPORT.findall(stub.decode())}


class Unawaited(Coroutine[Any, Any, T]):
    """A coroutine that says so where it is used like its result; ``call`` is what to write behind ``await``."""

    __slots__ = ("__weakref__", "_call", "_coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, T], call: str) -> None:
        self._coroutine = coroutine
        self._call = call

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        """Run it on, as an event loop does."""
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise in it, as an event loop does."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """End it."""
        self._coroutine.close()

    @property
    def _advice(self) -> str:
        return f"{self._call} is not awaited: write await {self._call}"

    def _refuse(self, *_: object) -> NoReturn:
        __tracebackhide__ = True
        self.close()  # a warning that it was never awaited would be the second
        raise TypeError(self._advice)

    if not TYPE_CHECKING:  # type checkers refuse all this of a coroutine
        __bool__ = __float__ = __int__ = __round__ = __len__ = __iter__ = __getitem__ = __contains__ = _refuse
        __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __truediv__ = _refuse
        __format__ = _refuse

        def __eq__(self, other: object) -> bool:
            """Refuse a number to be compared with; asyncio compares coroutines."""
            __tracebackhide__ = True
            return self._refuse() if isinstance(other, (int, float)) else self is other

        __hash__ = object.__hash__

        def __getattr__(self, name: str) -> object:
            """Raise ``AttributeError`` that says what to write for an attribute of the result."""
            if name.startswith(("cr_", "gi_", "_")):
                return getattr(self._coroutine, name)
            raise AttributeError(self._advice, name=name, obj=self)


def without_frames(error: E) -> E:
    """Return an error without the frames of this package and its loop: its message is complete, they would hide it."""
    seen: BaseException | None = error
    while seen is not None:
        seen.__traceback__ = None
        seen = seen.__cause__
    return error


def public(found: T) -> T:
    """Return a function as the package offers it, anything else as it is.

    A call that its parameters do not fit raises ``TypeError`` that says what to write, an error of this package has no
    frames of it, and the coroutine of an async function is an :class:`Unawaited`.
    """
    made: T = _public(found) if isinstance(found, FunctionType) else found
    return made


@cache  # so that a name is the same function each time, and can be pickled
def _public(function: FunctionType) -> Any:
    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        __tracebackhide__ = True
        try:
            return function(*args, **given)
        except Exception as error:
            clearer = _clearer(error, function, args, given)
            if clearer is None:
                raise
            raise clearer from clearer.__cause__

    async def run(args: tuple[Any, ...], given: Mapping[str, Any]) -> Any:
        __tracebackhide__ = True
        try:
            return await function(*args, **given)
        except Exception as error:
            clearer = _clearer(error, function, args, given)
            if clearer is None:
                raise
            raise clearer from clearer.__cause__

    @wraps(function)
    def awaited(*args: Any, **given: Any) -> Unawaited[Any]:
        return Unawaited(run(args, given), f"{function.__name__}(...)")

    made = awaited if iscoroutinefunction(function) else call
    made.__module__, made.__qualname__ = __name__.partition(".")[0], function.__name__
    return made


def _clearer(
    error: Exception, function: FunctionType, args: tuple[Any, ...], given: Mapping[str, Any]
) -> Exception | None:
    """Return what to raise in place of an error: what to write, or it without frames; ``None`` for another's."""
    if isinstance(error, TypeError) and _is_of_call(function, error):
        complaint = _complaint(function, args, given)
        return None if complaint is None else TypeError(complaint)
    if isinstance(error, (TypeError, AttributeError, ValueError)):
        complaint = _mistyped(function, args, given, said=str(error))
        return None if complaint is None else TypeError(complaint)
    from pytest_ragmetrics.errors import RagMetricsError  # not at start-up

    return without_frames(error) if isinstance(error, RagMetricsError) else None


def _is_of_call(function: FunctionType, error: TypeError) -> bool:
    """Tell whether no code of a function has run, or of the one that it wraps."""
    seen, frames = error.__traceback__, 0
    while seen is not None:
        seen, frames = seen.tb_next, frames + 1
    return frames <= 1 + hasattr(function, "__wrapped__")


def _complaint(function: FunctionType, args: tuple[Any, ...], given: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the names and the number of arguments, and what to write; ``None`` where they fit."""
    form = signature(function)
    try:
        form.bind(*args, **given)
    except TypeError:
        pass
    else:
        return None
    parameters = form.parameters.values()
    names = [it.name for it in parameters if it.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    takes_any = any(it.kind is Parameter.VAR_KEYWORD for it in parameters)
    unknown = [name for name in given if name not in names and not takes_any]
    if unknown:
        from pytest_ragmetrics.other_tools import parameter_of_theirs

        near = " or ".join(f"{name}=" for name in _meant(unknown[0], [name for name in names if name not in given]))
        theirs = None if near and unknown[0] in _BOUNDS else parameter_of_theirs(unknown[0], names)
        instead = theirs or (f"write {near}" if near else _form(parameters, names))
        return f"{function.__name__}() takes no {unknown[0]}=: {instead}"
    return f"write {function.__name__}({', '.join(_written(it) for it in parameters if _is_in_form(it))})"


#: The types that an annotation may name; an argument of another one may be right.
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "int": int,
    "float": (int, float),
    "str": str,
    "bool": bool,
    "None": type(None),
    "Path": os.PathLike,
    "Mapping": Mapping,
    "Iterable": Iterable,
    "Sequence": Iterable,
}


def _mistyped(function: FunctionType, args: tuple[Any, ...], given: Mapping[str, Any], *, said: str) -> str | None:
    """Return which argument is of none of the types that its annotation names, unless the error says so itself."""
    form = signature(function)
    for name, value in form.bind(*args, **given).arguments.items():
        annotation = str(form.parameters[name].annotation)
        kinds = [part.partition("[")[0] for part in re.split(r" \| (?![^\[]*\])", annotation)]
        known = all(kind in _TYPES for kind in kinds)
        is_said = re.search(rf"\b{name}\b", said)
        if known and not is_said and not any(isinstance(value, _TYPES[kind]) for kind in kinds):
            return f"{function.__name__}(): {name} must be {annotation}, not {type(value).__name__}"
    return None


def _form(parameters: Iterable[Parameter], names: Iterable[str]) -> str:
    by_name = {it.name for it in parameters if it.kind is Parameter.KEYWORD_ONLY}
    return f"it takes {', '.join(name + '=' * (name in by_name) for name in names)}"


def _is_in_form(parameter: Parameter) -> bool:
    """Tell whether a call is written with a parameter: it must be given, or comes before those that are named."""
    needed = parameter.default is Parameter.empty and parameter.kind is not Parameter.VAR_POSITIONAL
    return needed or parameter.name in ("min", "max") or parameter.kind is Parameter.VAR_KEYWORD


def _written(parameter: Parameter) -> str:
    if parameter.kind is Parameter.VAR_KEYWORD:
        return "metric=bound, ..."
    return f"{parameter.name}=..." if parameter.kind is Parameter.KEYWORD_ONLY else parameter.name


def _meant(name: str, names: list[str]) -> list[str]:
    """Return which of some names of parameters another name means, by its use in other tools or its spelling."""
    from difflib import get_close_matches

    from pytest_ragmetrics.sample import meant_field

    bounds = [each for each in (_BOUNDS.get(name), "max") if name in _BOUNDS and each in names]
    if bounds:
        return bounds[:1]
    field = meant_field(name)
    same = [each for each in names if field is not None and meant_field(each) == field]
    return same[:1] or get_close_matches(name, names, 1) or [each for each in names if each.startswith(f"{name}_")]
