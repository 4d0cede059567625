"""The metrics by name, as settings and markers call them: those of this package and those that a hook registers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from inspect import Parameter, isabstract, signature
from pkgutil import iter_modules
from types import GenericAlias
from typing import TYPE_CHECKING, Any

from pytest_ragmetrics.core.credentials import masked
from pytest_ragmetrics.core.other_tools import class_of_theirs, equivalent_of, folded, written_instead
from pytest_ragmetrics.judges import context
from pytest_ragmetrics.metrics.asserting import assert_metric
from pytest_ragmetrics.metrics.base import Metric, rule_of
from pytest_ragmetrics.metrics.judged import EmbedderLike, JudgedMetric, JudgeLike

if TYPE_CHECKING:
    from pluggy import HookImpl

HOOK = "pytest_ragmetrics_register_metrics"
#: Names that metrics had, and those that they have now.
_RENAMED = {"correctness_rating": "correctness"}


@lru_cache(maxsize=1)
def built_in_metrics() -> tuple[type[Metric], ...]:
    """Return the metrics of this package that their name alone makes.

    They are the classes with a ``name`` of their own in the modules of :mod:`pytest_ragmetrics.metrics`: to add one is
    to add it there. Scanning the modules, unlike registering in ``__init_subclass__``, leaves out the classes of users,
    tests and docstrings.

    >>> "faithfulness" in [metric.name for metric in built_in_metrics()]
    True
    """
    package = import_module(__name__.rpartition(".")[0])
    there = [module.name for module in iter_modules(package.__path__)]
    order = [*package.MODULES, *there]
    modules = [import_module(f"{package.__name__}.{name}") for name in sorted(there, key=order.index)]
    return tuple(
        dict.fromkeys(kind for module in modules for kind in vars(module).values() if _is_listed(kind, module))
    )


def _is_listed(kind: object, module: object) -> bool:
    # On Python 3.10 list[str] passes for an instance of type, and issubclass() refuses it.
    if isinstance(kind, GenericAlias) or not isinstance(kind, type) or not issubclass(kind, Metric):
        return False
    if kind.__module__ != getattr(module, "__name__", ""):
        return False
    needed = [it for it in signature(kind).parameters.values() if it.default is Parameter.empty]
    return "name" in vars(kind) and not needed


def helper_of(kind: type[Metric]) -> Callable[..., object]:
    """Return the assertion helper of a metric, a function in the module of the class that names it."""
    owner = next(base for base in kind.__mro__ if "helper" in vars(base))
    if owner is Metric:
        return assert_metric
    found: Callable[..., object] = getattr(import_module(owner.__module__), kind.helper)
    return found


def helper_named(name: str) -> Callable[..., object] | None:
    """Return the assertion helper of that name that belongs to a metric of this package."""
    return next((helper_of(kind) for kind in built_in_metrics() if kind.helper == name), None)


def registered_metrics(implementations: Iterable[HookImpl]) -> list[Metric | type[Metric]]:
    """Return the metrics of all implementations; raise ``ValueError`` naming the one that returned anything else.

    Two metrics of one name are refused: which one a name finds would depend on the order of loading.
    """
    found: dict[str, tuple[str, Metric | type[Metric]]] = {}
    for implementation in implementations:
        owner = implementation.plugin_name
        for metric in _metrics_of(implementation):
            other, known = found.setdefault(metric.name, (owner, metric))
            if known is not metric:
                msg = f"{owner}: {HOOK} returned {metric.name!r}, which is also a metric of {other}; rename one of them"
                raise ValueError(msg)
    return [metric for _, metric in found.values()]


def _metrics_of(implementation: HookImpl) -> list[Metric | type[Metric]]:
    try:
        returned = implementation.function()
    except Exception as error:
        reason = f"{type(error).__name__}: {masked(str(error))}"
        raise ValueError(f"{implementation.plugin_name}: {HOOK} raised {reason}") from error
    listed = [] if returned is None else returned
    if not isinstance(listed, (list, tuple)):
        raise ValueError(f"{implementation.plugin_name}: {HOOK} returned {returned!r:.80}; return a list of metrics")  # noqa: TRY004 - callers of a look-up expect this one
    for item in listed:
        if complaint := _complaint(item):
            raise ValueError(f"{implementation.plugin_name}: {HOOK} returned {item!r:.80}, which {complaint}")
    return list(listed)


def _complaint(item: object) -> str:
    """Return why an object cannot be registered; empty if it can."""
    if not isinstance(item, Metric) and not (isinstance(item, type) and issubclass(item, Metric)):
        hint = "; write @metric above it" if callable(item) and not isinstance(item, type) else ""
        return f"is no metric and no class of metrics{hint}"
    if isabstract(item):
        return "cannot score; implement measure() or judged()"
    name = getattr(item, "name", None)
    return "" if isinstance(name, str) and name.strip() else "has no name; give the class a name"


def metric_named(name: str, *, also: Iterable[Metric | type[Metric]] = ()) -> Metric | type[Metric]:
    """Return the metric of a name, an alias or a class name.

    It knows the built-in metrics, those of the hook ``pytest_ragmetrics_register_metrics``, those in ``also``, and
    those of the running test's module. Of equal names the later one wins, except for those of the module. Raises
    ``ValueError`` that lists the closest names.

    >>> metric_named("ResponseRelevancy")
    <class 'pytest_ragmetrics.metrics.answers.AnswerRelevancy'>
    """
    session = context.current().session
    others = (*(() if session is None else session.metrics), *also)
    if not others and (found := _named_like_its_class(name)) is not None:
        return found
    known = _by_name((*built_in_metrics(), *others))
    if name in known:
        return known[known[name].name]
    own = _by_name(_made_in(() if session is None else session.module.values()))
    if name in own:
        return own[name]
    known = {**own, **known}
    if name in _RENAMED:
        raise ValueError(f"there is no metric {name!r} any more: it is called {_RENAMED[name]!r} now")
    alike = [each for each in known if folded(each) == folded(name)]
    theirs = None if alike else equivalent_of(name)
    if theirs is not None:
        raise ValueError(theirs)
    near = dict.fromkeys(known[each].name for each in alike or get_close_matches(name, known, n=3))
    yours = ", ".join(sorted({metric.name for metric in (*others, *own.values())}))
    listed = f"`ragmetrics metrics` lists them{yours and f'; yours are {yours}'}"
    hint = f"did you mean {' or '.join(near)}?" if near else listed
    raise ValueError(f"there is no metric {name!r}: {hint}")


def _made_in(things: Iterable[object]) -> Iterator[Metric | type[Metric]]:
    """Yield the metrics of a user among the things in a module, without those of this package under its own names."""
    for thing in things:
        # Neither isinstance(), which loads a lazy object, nor list[str], which Python 3.10 takes for a type.
        kind: Any = thing if issubclass(type(thing), type) else type(thing)
        if issubclass(kind, Metric) and not _complaint(thing):
            made: Any = thing
            if not kind.__module__.startswith("pytest_ragmetrics.") or made.name != kind.name:
                yield made


@lru_cache(maxsize=128)
def _named_like_its_class(name: str) -> type[Metric] | None:
    """Return the metric of this package whose class is named after it, without loading the modules of others."""
    package = import_module(__name__.rpartition(".")[0])
    title = "".join(map(str.capitalize, name.split("_")))
    kind: Any = getattr(package, title) if title in package.__all__ else None
    is_metric = isinstance(kind, type) and _is_listed(kind, import_module(kind.__module__))
    return kind if is_metric and kind.name == name else None


def missing_name(package: str, name: str) -> AttributeError | ImportError:
    """Return the error of a package for a name that it does not have, and what to write for it.

    It is an ``ImportError`` where the name is known elsewhere: ``from package import name`` drops the text of an
    ``AttributeError``.

    >>> missing_name("pytest_ragmetrics", "Faithfulness")
    ImportError("cannot import name 'Faithfulness' from 'pytest_ragmetrics': write from pytest_ragmetrics.metrics \
import Faithfulness")
    """
    theirs = written_instead("names").get(name)
    instead = f"write {theirs}" if theirs else _import_of(name, package) or equivalent_of(name)
    if instead:
        return ImportError(f"cannot import name {name!r} from {package!r}: {instead}", name=package)
    near = get_close_matches(name, dir(sys.modules[package]), 1)
    hint = f": did you mean {near[0]}?" if near else ""
    return AttributeError(f"module {package!r} has no attribute {name!r}{hint}")


def _import_of(name: str, package: str) -> str | None:
    """Return the import of what is known by a name, ``None`` where ``package`` was just asked for that."""
    metrics = __name__.rpartition(".")[0]
    known = _by_name(built_in_metrics()).get(name)
    home, found = (metrics.rpartition(".")[0] if known is None else metrics), getattr(known, "__name__", name)
    is_there = (known is not None or name in sys.modules[home].__all__) and (home, found) != (package, name)
    return f"write from {home} import {found}" if is_there else None


def metric_of_rule(name: str, rules: Collection[str | None]) -> Metric | None:
    """Return the metric of a name whose code and parameters are those of some records, ``None`` if there is none."""
    with suppress(ValueError, TypeError):
        found = metric_named(name)
        made = found() if isinstance(found, type) else found
        return made if {rule_of(made)} == {*rules} else None
    return None


def scale_of(name: str) -> tuple[float, float] | None:
    """Return the lowest and the highest score of the metric of a name, ``None`` where no metric is known by it.

    >>> scale_of("faithfulness"), scale_of("sympathy")
    ((0.0, 1.0), None)
    """
    try:
        return metric_named(name).scale
    except ValueError:
        return None


def metric_for(metric: str | Metric, *, judge: JudgeLike | None = None, embedder: EmbedderLike | None = None) -> Metric:
    """Return a metric as it is, or one of that name with this judge and embedder where it takes them.

    >>> metric_for("faithfulness", judge="local").name
    'faithfulness'
    """
    if isinstance(metric, Metric):
        return metric
    if not isinstance(metric, str):
        raise TypeError(_instead_of(metric))
    found = metric_named(metric)
    if isinstance(found, JudgedMetric):
        return found if judge is None and embedder is None else found.asking(judge=judge, embedder=embedder)
    if isinstance(found, Metric):
        return found
    given: dict[str, Any] = {"judge": judge, "embedder": embedder}
    return found(**{name: given[name] for name in given.keys() & signature(found).parameters.keys()})


def _instead_of(given: object) -> str:
    """Return what is wrong with an object that is no metric, and what to write for it."""
    if isinstance(given, type) and issubclass(given, Metric):
        return f"{given.__name__} is the class of a metric: write {given.__name__}()"
    theirs = class_of_theirs(given)
    if theirs is None:
        return f"{given!r:.80} is no metric: give one, or its name"
    tool, name = theirs
    try:
        found = metric_named(name)
    except ValueError as error:
        return str(error)
    bound = getattr(given, "threshold", None)
    keep = f'; its threshold is a bound here: metrics={{"{found.name}": {bound}}}' if isinstance(bound, float) else ""
    return f'this {name} is of {tool}: write "{found.name}"{keep}'


def _by_name(metrics: Iterable[Metric | type[Metric]]) -> dict[str, Metric | type[Metric]]:
    """Map names to metrics; a metric that comes later may take a name over."""
    known: dict[str, Metric | type[Metric]] = {}
    for metric in metrics:
        kind = metric if isinstance(metric, type) else type(metric)
        # Not the inherited aliases, nor the class of one that is called otherwise: they are those of another metric.
        others = (*vars(kind).get("aliases", ()), kind.__name__) if metric.name == kind.name else ()
        for name in (*others, metric.name):
            known[name] = metric
    return known
