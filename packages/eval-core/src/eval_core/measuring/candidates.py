"""How many documents a query may find: what chance has to choose from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from eval_core.files import canonical
from eval_core.measuring.plan import Plan
from eval_core.sets.corpus import scopes_of
from eval_core.sets.dataset import Query

#: Looks at single documents beyond which counting would take longer than measuring, and is left.
MOST_LOOKS = 20_000_000


def counter(made: Plan) -> Callable[[Query], int | None]:
    """A function from a query to the number of documents of its scope, filter and time, less those that it excludes.

    None where a large corpus would have to be gone through again and again. Queries that ask alike share one count.
    """
    dataset = made.dataset
    scopes = Counter(scope for has in dataset.attributes.values() for scope in scopes_of(has))
    counted: dict[bytes, int] = {}
    looks = 0

    def visible(query: Query) -> int | None:
        nonlocal looks
        wanted = made.filter_for(query)
        if dataset.timeline is None and not wanted:
            return scopes[query.scope] if query.scope is not None else dataset.documents
        key = canonical([query.scope, wanted, query.metadata.get("time")])
        if key not in counted:
            looks += dataset.documents
            if looks > MOST_LOOKS:
                return None
            counted[key] = sum(dataset.visible(document, query, wanted) for document in dataset.ids)
        return counted[key]

    def candidates(query: Query) -> int | None:
        found = visible(query)
        if found is None:
            return None
        return found - sum(
            document in dataset.ids and dataset.visible(document, query, made.filter_for(query))
            for document in set(query.exclude)
        )

    return candidates
