# SPDX-License-Identifier: BSD-3-Clause
"""Classes of the extension as mappings."""

from __future__ import annotations

from collections.abc import Mapping


def make_mapping(kind: type) -> None:
    """Has a class that finds by name, counts and names what it has be a Mapping, with a Mapping's other methods."""
    Mapping.register(kind)
    for name in ("__contains__", "get", "items", "keys", "values"):
        setattr(kind, name, getattr(Mapping, name))
