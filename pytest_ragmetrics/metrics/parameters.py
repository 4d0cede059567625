"""Parameters of metrics as declarations: annotated attributes with a default and the check of a given value."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, Signature, get_annotations, signature
from math import inf
from numbers import Integral, Real
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_type_hints

from pytest_ragmetrics.text.unicode import is_invisible

S = TypeVar("S", bound=str)
T = TypeVar("T")


def check_choice(name: str, value: S, choices: Sequence[str]) -> S:
    """Return a value that is one of the choices; raise ``ValueError`` naming them if it is not.

    >>> check_choice("unit", "claims", ("claims", "sentences"))
    'claims'
    """
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}")
    return value


def check_count(name: str, value: object) -> int:
    """Return a whole number from 1 on; raise ``ValueError`` otherwise.

    >>> check_count("strictness", 3)
    3
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1 on, not {value!r}")
    return int(value)


def check_number(name: str, value: object, least: float = 0, most: float = inf) -> float:
    """Return a finite number from ``least`` to ``most``; raise ``ValueError`` otherwise.

    >>> check_number("beta", 0.5), check_number("coeff", 1, most=1)
    (0.5, 1)
    """
    if isinstance(value, bool) or not isinstance(value, Real) or value < least or not value <= most or value == inf:
        ends = f"from {least:g} on" if most == inf else f"from {least:g} to {most:g}"
        raise ValueError(f"{name} must be a number {ends}, not {value!r}")
    # A float cannot represent every whole number.
    return int(value) if isinstance(value, Integral) else float(value)


def check_flag(name: str, value: object) -> bool:
    """Return a truth value; raise ``ValueError`` otherwise.

    >>> check_flag("strict_order", False)
    False
    """
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, not {value!r}")  # noqa: TRY004 - every wrong parameter value is a ValueError
    return value


def check_metrics(value: T) -> T:
    """Return what lists metrics; raise ``TypeError`` for anything else.

    >>> check_metrics(5)
    Traceback (most recent call last):
    TypeError: metrics must be a list of metrics or of their names, not int
    """
    if not isinstance(value, Iterable) or isinstance(value, (str, type)):
        right = f": write [{value!r}]" if isinstance(value, str) else ""
        raise TypeError(f"metrics must be a list of metrics or of their names, not {type(value).__name__}{right}")
    return value


def check_name(value: object) -> str:
    """Return the name of a metric, a text that is not blank; raise ``ValueError`` otherwise.

    >>> check_name("strict_faithfulness")
    'strict_faithfulness'
    """
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"name must be a text that is not blank, not {value!r}")
    return value


def check_texts(
    given: object, *, name: str, nested: bool = False, wanted: str = "give the text to look for"
) -> tuple[tuple[str, ...], ...]:
    """Return conditions, each the texts of which one is enough; raise ``TypeError`` or ``ValueError`` for others."""
    entries = [given] if isinstance(given, str) else given
    if not isinstance(entries, (list, tuple)):
        raise TypeError(f"{name} must be a text or a list of texts, not {type(given).__name__}")
    found = []
    for index, entry in enumerate(entries):
        place = name if isinstance(given, str) else f"{name}[{index}]"
        several = entry if nested and isinstance(entry, (list, tuple)) and entry else [entry]
        if wrong := next((type(it).__name__ for it in several if not isinstance(it, str)), None):
            either = "a text or a list of texts of which one is enough" if nested else "a text"
            raise TypeError(f"{place} must be {either}, not {'an empty list' if entry == [] else wrong}")
        if any(map(is_invisible, several)):
            raise ValueError(f"{place} is blank: {wanted}, or leave the entry out")
        found.append(tuple(several))
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Field:
    """A parameter: its name, its default and what checks a value, where the attribute has not all of that."""

    default: Any
    check: Callable[[str, Any], Any] = lambda _, value: value
    alias: str = ""


def parameter(default: Any, check: Callable[[Any], object]) -> Any:
    """Declare a parameter; ``check`` returns what the attribute holds of a value, and raises for a wrong one."""
    return _Field(default, lambda _, value: check(value))


def choice(default: T, of: Any) -> T:
    """Declare one of the choices of a ``Literal``."""
    return called(alias="", default=default, of=of)


def called(*, alias: str, default: T, of: Any) -> T:
    """Declare a choice whose parameter has another name than its attribute."""
    return cast("T", _Field(default, partial(check_choice, choices=get_args(of)), alias))


def count(default: T) -> T:
    """Declare a whole number from 1 on, or ``None`` where that is the default."""
    return _unless_default(default, check_count)


def amount(default: T, *, most: float = inf) -> T:
    """Declare a number from 0 to ``most``, or ``None`` where that is the default."""
    return _unless_default(default, partial(check_number, most=most))


def _unless_default(default: T, check: Callable[[str, Any], object]) -> T:
    return cast("T", _Field(default, lambda name, value: value if value is default else check(name, value)))


def share(default: T) -> T:
    """Declare a number from 0 to 1, or ``None`` where that is the default."""
    return amount(default, most=1)


if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[T], T]:
        """Tell type checkers alone."""
        return lambda it: it


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(called,))
def declared(kind: type[T]) -> type[T]:
    """Make the annotated attributes of a class of metrics its keyword-only parameters, as a dataclass has them.

    They stand before ``name`` and, as the class ``asks``, ``judge`` and ``embedder``. A default that is a truth value
    is checked for one; ``__post_init__`` is called when all are set.
    """
    made: Any = kind
    fields: dict[str, _Field] = {}
    own: dict[str, Parameter] = {}
    hints, known = get_type_hints(kind), get_type_hints(made.__init__)
    for attribute, annotation in get_annotations(kind).items():
        if "ClassVar" in str(annotation):
            continue
        default = vars(kind).get(attribute, Parameter.empty)
        usual = _Field(default, check_flag) if isinstance(default, bool) else _Field(default)
        field = fields[attribute] = default if isinstance(default, _Field) else usual
        name = field.alias or attribute
        own[name] = Parameter(name, Parameter.KEYWORD_ONLY, default=field.default, annotation=annotation)
        known[name] = hints[attribute]
        if field.default is not Parameter.empty:
            setattr(kind, attribute, field.default)
    me, *taken = signature(made.__init__).parameters.values()
    given = {it.name: it for it in taken if it.name not in own}
    last = {name: given.pop(name) for name in ("name", "judge", "embedder") if name in given}
    given |= own | {name: it for name, it in last.items() if name == "name" or name in made.asks}
    after = vars(kind).get("__post_init__")

    def set_up(self: Any, **values: Any) -> None:
        __tracebackhide__ = True
        super(made, self).__init__(**{name: value for name, value in values.items() if name not in own})
        for attribute, field in fields.items():
            name = field.alias or attribute
            setattr(self, attribute, field.check(name, values[name]))
        if after is not None:
            after(self)

    call = Signature([me, *given.values()], return_annotation="None")
    made.__init__ = written("__init__", call, set_up, known, sys._getframe(1))  # noqa: SLF001 - as namedtuple does
    made.__init__.__qualname__ = f"{kind.__qualname__}.__init__"
    return kind


def written(
    name: str, call: Signature, run: Callable[..., object], hints: Mapping[str, Any], frame: FrameType
) -> Callable[..., Any]:
    """Return a function as if it were written where the frame is, which passes its arguments on by name.

    Its code has the parameters, so that Python's errors name them and debuggers show them. ``call`` is what
    :mod:`inspect` shows of it, ``hints`` are the types of its parameters.
    """
    bare = [it.replace(annotation=it.empty) for it in call.parameters.values()]
    passed = ", ".join(f"{it.name}={it.name}" for it in bare)
    lines = [*[""] * (frame.f_lineno - 2), "def make(run):"]
    lines += [f" def {name}{Signature(bare)}: __tracebackhide__ = True; return run({passed})", f" return {name}"]
    made: dict[str, Any] = {}
    exec(compile("\n".join(lines), frame.f_code.co_filename, "exec"), frame.f_globals, made)  # noqa: S102 - as dataclass does
    function = made["make"](run)
    function.__qualname__, function.__signature__ = name, call
    function.__annotations__ = {it: hints[it] for it in call.parameters if it in hints}
    return cast("Callable[..., Any]", function)


if TYPE_CHECKING:

    @declared
    class Named:
        """The name that every metric takes, of which its own attribute says another type."""

        _given_name: str | None = called(alias="name", default=None, of=None)

else:
    Named = object
