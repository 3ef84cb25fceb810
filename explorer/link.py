"""A link's query string: the values of a page's fields, and what it asks of the page for a class.

    size=100&seed=7&hide=seed,budget&lock=size:300,function&view=projector

`hide` names fields, and parts of the page, whose controls are not shown. `lock` names fields: a
number may then be at most the limit behind the colon, so many heads may be chosen and no others of
the other choices; without a limit that is what the link has. `view` is how large the page is.
Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from explorer.fields import Field, FieldError, shown
from explorer.heads import MOST, HeadsField, count

SERVERS = ("token", "template", "theme")
"""The web server's own names, which are no values of the page."""

ASKS = ("hide", "lock", "view")
"""The names of what a link asks of the page."""

PARTS = {
    "panels": "the switch of the panels",
    "link": "Copy link and its row",
}
"""What can be hidden beside the controls of fields, in words."""

VIEW = Field("view", "choice", "View", "page", choices=("page", "projector"), help="how large")

_HEADS = Field("heads", "integer", "lock: the number of heads", minimum=1, maximum=MOST)
_VALUES = 100  # values that are read of a link: many more than there are fields
_NAMES = 100  # entries that are read of a list
_ONLY = "seed"  # the number of which less is no less


@dataclass(frozen=True)
class Lesson:
    """What a link asks of the page: `hidden` names fields and PARTS, `limits` has by field what is
    the most or the only one allowed, and `projector` is True where the page is large."""

    hidden: tuple[str, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    projector: bool = False


def read(query: str) -> tuple[dict[str, str], list[str]]:
    """(the values of a query string by name, as text and unchecked; a sentence for each oddity).

    The web server's own names are left out; of a name given twice the last counts; of more than
    100 values the first 100.
    """
    parts = query.removeprefix("?").split("&", _VALUES)
    pairs = parse_qsl("&".join(parts[:_VALUES]), keep_blank_values=True)
    pairs = [(name, value) for name, value in pairs if name not in SERVERS]
    names = [name for name, _ in pairs]
    told = [
        f"{shown(name)} is given {times} times; the last one counts."
        for name in dict.fromkeys(names)
        if (times := names.count(name)) > 1
    ]
    if len(parts) > _VALUES:
        told.append(f"It has more than {_VALUES} values; the first {_VALUES} are read.")
    return dict(pairs), told


def write(texts: Mapping[str, str]) -> str:
    """The query string of values as text, `?` not included."""
    return urlencode(texts, safe=",:")


def texts(fields: Mapping[str, Field], values: Mapping[str, Any]) -> dict[str, str]:
    """The values of fields as a link has them."""
    return {name: fields[name].text(value) for name, value in values.items()}


def taken(known: Field, text: str) -> tuple[Any, str]:
    """(the entry that a field has for the text of a link; how it differs from what was asked).

    A number out of range becomes the nearest one allowed, and a list keeps its first 100 entries;
    what is wrong otherwise stays as it is.
    """
    if known.kind == "choices":
        entries = tuple(known.split(text)) if text else ()
        if len(entries) <= _NAMES:
            return entries, ""
        words = f"The link names {len(entries)} {known.label.lower()}s; {_NAMES} were taken."
        return entries[:_NAMES], words
    nearest = known.nearest(text)
    if nearest is None:
        return text, ""
    return known.text(nearest), (
        f"{known.label} is {shown(text)} in the link; {known.text(nearest)} was taken. "
        f"Allowed: {known.allowed}."
    )


def read_lesson(
    asked: Mapping[str, str], fields: Mapping[str, Field], values: Mapping[str, Any]
) -> tuple[Lesson, list[str]]:
    """(what the values under ASKS mean; a sentence for each part that is wrong, which is left out).

    Args:
        fields: those that can be hidden and locked.
        values: what the link has for them, parsed; without what is wrong.
    """
    told: list[str] = []

    def entries(name: str, take: Callable[[str], Any]) -> list[Any]:
        parts = [part.strip() for part in asked.get(name, "").split(",") if part.strip()]
        if len(parts) > _NAMES:
            told.append(f"{name} has {len(parts)} entries; the first {_NAMES} are read.")
        found = []
        for part in dict.fromkeys(parts[:_NAMES]):
            try:
                found.append(take(part))
            except FieldError as error:
                told.append(str(error))
        return found

    hide = Field("hide", "choice", "hide", choices=(*fields, *PARTS))
    lock = Field("lock", "choice", "lock", choices=tuple(fields))

    def limit(entry: str) -> tuple[str, Any]:
        name, colon, text = entry.partition(":")
        known = fields[lock.parse(name)]
        if colon:
            return name, _limit(known, text)
        if name not in values:
            raise FieldError(f"lock: {known.label} has no right value to lock it at.")
        return name, amount(known, values[name])

    hidden = tuple(entries("hide", hide.parse))
    limits = dict(entries("lock", limit))
    view = entries("view", VIEW.parse)
    return Lesson(hidden, limits, view == ["projector"]), told


def lesson_texts(lesson: Lesson, fields: Mapping[str, Field]) -> dict[str, str]:
    """What `read_lesson` reads back, of the fields that there are."""
    locks = []
    for name, limit in lesson.limits.items():
        if name in fields:
            known = fields[name]
            locks.append(name if is_only(known) else f"{name}:{_limit_text(known, limit)}")
    hidden = [name for name in lesson.hidden if name in fields or name in PARTS]
    every = {
        "hide": ",".join(hidden),
        "lock": ",".join(locks),
        "view": "projector" if lesson.projector else "",
    }
    return {name: text for name, text in every.items() if text}


def amount(known: Field, value: Any) -> Any:
    """The limit that locks a field at a parsed value: of heads their number."""
    return count(value) if isinstance(known, HeadsField) else value


def is_only(known: Field) -> bool:
    """Whether a locked field has one value alone."""
    return known.kind in ("choice", "switch") or known.name == _ONLY


def allowed(known: Field, limit: Any) -> str:
    """What a limit leaves of a field, as the end of the sentence "The link allows …"."""
    if isinstance(known, HeadsField):
        return f"at most {limit} head{'' if limit == 1 else 's'}"
    if known.kind == "choices":
        return f"only {', '.join(limit)}" if limit else "nothing"
    if is_only(known):
        return f"only {known.text(limit)}"
    if limit is None:
        return "any"
    return f"at most {known.text(limit)}{f' {known.unit}' if known.unit else ''}"


def exceeds(known: Field, limit: Any, value: Any) -> bool:
    """Whether a parsed value of a field is more, or another, than a limit allows."""
    if isinstance(known, HeadsField):
        return count(value) > int(limit)
    if known.kind == "choices":
        return not set(value) <= set(limit)
    if is_only(known):
        return bool(value != limit)
    return limit is not None and (value is None or value > limit)


def brought(known: Field, limit: Any, value: Any) -> Any:
    """The value that a limit allows in the place of one that exceeds it; None of heads, where
    which ones to leave out is not known."""
    if isinstance(known, HeadsField):
        return None
    if known.kind == "choices":
        return tuple(name for name in value if name in limit) or limit
    return limit


def _limit(known: Field, text: str) -> Any:
    """The limit that stands behind a lock's colon."""
    if isinstance(known, HeadsField):
        return _HEADS.parse(text)
    return known.parse(text.split() if known.kind == "choices" else text)


def _limit_text(known: Field, limit: Any) -> str:
    if isinstance(known, HeadsField):
        return str(limit)
    return " ".join(limit) if known.kind == "choices" else known.text(limit)
