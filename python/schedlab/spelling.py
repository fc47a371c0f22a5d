"""Hints for a name that does not exist: the nearest one that does, or else those that there are."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 16
"""How many names a hint lists; the others are counted."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant: the same but for case, one that ends with `.NAME`, or a similar one."""
    from difflib import get_close_matches

    by_fold = {word.casefold(): word for word in reversed(list(known))}
    folded = name.casefold()
    if folded in by_fold:
        return by_fold[folded]
    ending = [word for fold, word in reversed(by_fold.items()) if fold.endswith(f".{folded}")]
    similar = ending or [by_fold[fold] for fold in get_close_matches(folded, by_fold, 1)]
    return similar[0] if similar else None


def hint(name: str, known: Iterable[str], what: str) -> str:
    """The name that was probably meant; without a similar one all of them, after words such as `the metrics are`."""
    names = list(known)
    near = nearest(name, names)
    if near is not None:
        return f"did you mean `{near}`?"
    more = len(names) - MOST
    listed = ", ".join(names[:MOST]) + (f" and {more} more" if more > 0 else "")
    return f"{what} {listed}" if names else "there are none"
