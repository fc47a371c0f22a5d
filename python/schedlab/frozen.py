"""Frozen data classes that a command has at once.

`dataclasses` imports `inspect` and compiles six functions for every class. For the dozen classes that each command
needs, that takes a fifth of the time of a short run. Classes that derive from `Frozen` compile nothing, and
`dataclasses.replace`, `asdict` and `fields` accept them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, dataclass_transform


class Hidden:
    """A field that neither `==` nor `repr` uses."""

    def __init__(self, default: Any) -> None:
        self.default = default


class Made:
    """A field whose default is made anew for every object."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def hidden(*, default: Any = ...) -> Any:
    """The declaration of a field that neither `==` nor `repr` uses."""
    return Hidden(default)


def made(*, default_factory: Callable[[], Any]) -> Any:
    """The declaration of a field whose default is made anew for every object."""
    return Made(default_factory)


class _Fields:
    """The fields as `dataclasses` describes them, built when they are first read."""

    def __get__(self, instance: object, owner: type[Frozen]) -> dict[str, Any]:
        from dataclasses import make_dataclass

        fields: dict[str, Any] = vars(make_dataclass(owner.__name__, owner._names))["__dataclass_fields__"]
        type.__setattr__(owner, "__dataclass_fields__", fields)
        return fields


@dataclass_transform(frozen_default=True, field_specifiers=(hidden, made))
class Frozen:
    """The fields of a derived class are its annotations, in their order; a value in the class is a field's default."""

    _names: tuple[str, ...] = ()
    __dataclass_fields__: Any = _Fields()
    _defaults: Mapping[str, Any] = {}
    _compared: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        names = tuple(vars(cls).get("__annotations__", ()))
        declared = {name: value for name, value in vars(cls).items() if name in names}
        cls._names = names
        cls._compared = tuple(name for name in names if not isinstance(declared.get(name), Hidden))
        defaults = {name: v.default if isinstance(v, Hidden) else v for name, v in declared.items()}
        cls._defaults = {name: default for name, default in defaults.items() if default is not ...}
        for name in declared:
            delattr(cls, name)

    def __init__(self, *values: Any, **named: Any) -> None:
        names, own = self._names, self.__dict__
        own.update(zip(names, values, strict=False))
        if len(values) > len(names) or own.keys() & named.keys() or not named.keys() <= set(names):
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(names)}")
        own.update(named)
        if len(own) == len(names):
            return
        for name in names:
            if name not in own:
                if name not in self._defaults:
                    raise TypeError(f"{type(self).__name__} lacks {name}")
                default = self._defaults[name]
                own[name] = default.make() if isinstance(default, Made) else default

    def _values(self) -> tuple[Any, ...]:
        return tuple(self.__dict__[name] for name in self._compared)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._compared)
        return f"{type(self).__qualname__}({shown})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot delete field {name!r}")
