# SPDX-License-Identifier: BSD-3-Clause
"""Changes one field of a flatbuffer, which is given as JSON, by its schema.

    fields = Fields(tree, schema)
    change = fields.change(rng)
    with change:
        ...                       # the tree is changed
"""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from fbs import INTEGERS, Fbs, Field
from parts import NOT_UTF8

_ABSENT = object()
_DOUBLES = (0.0, -1.0, 0.5, 3.0, 1e30, -1e30, 1e-30, "nan", "inf", "-inf")


@dataclass
class Change:
    """A change: new values by the object or list that has them; `what` names the field, `how` its new value."""

    what: str
    how: str
    places: list[tuple[Any, Any, Any]]

    def __enter__(self) -> Change:
        self._before = [(holder, key, _get(holder, key)) for holder, key, _ in self.places]
        for place in self.places:
            _set(*place)
        return self

    def __exit__(self, *_: object) -> None:
        for place in reversed(self._before):
            _set(*place)


def _get(holder: Any, key: Any) -> Any:
    return holder[key] if isinstance(holder, list) else holder.get(key, _ABSENT)


def _set(holder: Any, key: Any, value: Any) -> None:
    if value is _ABSENT:
        holder.pop(key, None)
    else:
        holder[key] = value


@dataclass(frozen=True)
class _Place:
    """A place of a field, or of an item of a vector; `key` is then an index."""

    holder: Any
    key: Any
    field: Field
    is_item: bool
    union_types: Any = None  # the object that has the type of a union


class Fields:
    """The fields in a tree that can be changed; the tree's objects must stay the same."""

    def __init__(self, tree: dict[str, Any], schema: Fbs) -> None:
        self._schema = schema
        self._places: dict[str, list[_Place]] = defaultdict(list)  # places by "TABLE.FIELD"
        self._values: dict[str, list[Any]] = defaultdict(list)  # values of scalars and strings, by "TABLE.FIELD"
        self._tables: dict[str, list[Any]] = defaultdict(list)  # tables by type
        self._members: dict[str, list[tuple[str, Any]]] = defaultdict(list)  # members by union
        self._walk_table(schema.root, tree)
        self._names = sorted(self._places)
        self._all = [(name, place) for name in self._names for place in self._places[name]]

    def change(self, rng: random.Random) -> Change:
        """Returns a change of any place, or of any field of the schema, in turn, as most places are of few fields."""
        if rng.random() < 0.5:
            name, place = rng.choice(self._all)
        else:
            name = rng.choice(self._names)
            place = rng.choice(self._places[name])
        return self._change(rng, name, place)

    def _walk_table(self, table: str, value: dict[str, Any]) -> None:
        self._tables[table].append(value)
        for field in self._schema.tables[table]:
            name = f"{table}.{field.name}"
            if field.type in self._schema.unions:
                self._walk_union(name, field, value)
                continue
            self._places[name].append(_Place(value, field.name, field, is_item=False))
            held = value.get(field.name)
            if held is None:
                continue
            if not field.is_vector:
                self._walk_value(name, field, held)
                continue
            items = f"{name}[]"
            for index, item in enumerate(held):
                if field.type not in self._schema.tables:
                    self._places[items].append(_Place(held, index, field, is_item=True))
                self._walk_value(items, field, item)

    def _walk_value(self, name: str, field: Field, value: Any) -> None:
        if field.type in self._schema.tables:
            self._walk_table(field.type, value)
        else:
            self._values[name].append(value)

    def _walk_union(self, name: str, field: Field, value: dict[str, Any]) -> None:
        self._places[name].append(_Place(value, field.name, field, is_item=False))
        member = value.get(f"{field.name}_type", "NONE")
        if member == "NONE":
            return
        self._members[field.type].append((member, value[field.name]))
        self._walk_table(self._schema.unions[field.type][member], value[field.name])

    def _change(self, rng: random.Random, name: str, place: _Place) -> Change:
        field, old = place.field, _get(place.holder, place.key)
        if field.type in self._schema.unions:
            return self._of_union(rng, name, place)
        if field.is_vector and not place.is_item:
            how, new = self._of_vector(rng, name, field, old)
        elif not place.is_item and rng.random() < 0.1:
            how, new = "absent", _ABSENT
        elif field.type in self._schema.tables:
            how, new = "another", copy.deepcopy(rng.choice(self._tables[field.type] or [{}]))
        else:
            new = self._scalar(rng, name, field, 0 if old is _ABSENT else old)
            how = repr(new)
        return Change(name, how, [(place.holder, place.key, new)])

    def _of_union(self, rng: random.Random, name: str, place: _Place) -> Change:
        key = place.key
        if rng.random() < 0.1:
            return Change(name, "NONE", [(place.holder, key, _ABSENT), (place.holder, f"{key}_type", "NONE")])
        unions = self._schema.unions[place.field.type]
        if rng.random() < 0.2:
            member, value = rng.choice(sorted(unions)), {}
        else:
            member, value = rng.choice(self._members[place.field.type])
        new = copy.deepcopy(value)
        return Change(name, member, [(place.holder, key, new), (place.holder, f"{key}_type", member)])

    def _of_vector(self, rng: random.Random, name: str, field: Field, old: Any) -> tuple[str, Any]:
        items = [] if old is _ABSENT else list(old)
        kind = rng.choice(("absent", "empty", "shorter", "longer", "twice", "swapped", "one less"))
        if kind == "absent":
            return kind, _ABSENT
        if kind == "empty" or not items and kind in ("shorter", "twice", "swapped", "one less"):
            return "empty", []
        if kind == "shorter":
            return kind, items[: rng.randrange(len(items))]
        if kind == "one less":
            items.pop(rng.randrange(len(items)))
        elif kind == "longer":
            items.insert(rng.randint(0, len(items)), self._item(rng, name, field))
        elif kind == "twice":
            items.insert(rng.randint(0, len(items)), copy.deepcopy(rng.choice(items)))
        else:
            a, b = rng.randrange(len(items)), rng.randrange(len(items))
            items[a], items[b] = items[b], items[a]
        return kind, items

    def _item(self, rng: random.Random, name: str, field: Field) -> Any:
        if field.type in self._schema.tables:
            return copy.deepcopy(rng.choice(self._tables[field.type] or [{}]))
        return self._scalar(rng, f"{name}[]", field, 0)

    def _scalar(self, rng: random.Random, name: str, field: Field, old: Any) -> Any:
        others = self._values[name]
        if others and rng.random() < 0.3:
            return rng.choice(others)
        if field.type == "string":
            text = old if isinstance(old, str) else ""
            return rng.choice(("", text[:-1], text + "x", NOT_UTF8, "é" * 300))
        if field.type == "bool":
            return not old
        if field.type in ("float", "double"):
            return rng.choice(_DOUBLES)
        least, most = INTEGERS[self._schema.enums.get(field.type, field.type)]
        if field.type in self._schema.enums:
            return rng.choice((*range(0, 12), rng.randint(0, 50), -1 if least else most, most))
        value = old if isinstance(old, int) else 0
        near = (value - 1, value + 1, value * 2, value // 2, -value, value ^ 1 << rng.randrange(16))
        far = (0, 1, 2, 3, -1, least, most, 2**16, rng.randint(-10, 30))
        return min(max(rng.choice((*near, *far)), least), most)
