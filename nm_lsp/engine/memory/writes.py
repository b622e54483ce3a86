"""What the learner hands to the keeper: writes that run later, on the thread that owns the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nm_lsp.storage.synapses import SynapseStore, Teaching


@dataclass(frozen=True, slots=True)
class Teach:
    batch: Teaching

    def __call__(self, store: SynapseStore) -> None:
        store.teach(self.batch)


@dataclass(frozen=True, slots=True)
class Rename:
    namespace: str
    renames: dict[str, str]
    now: float

    def __call__(self, store: SynapseStore) -> None:
        store.rename(self.namespace, self.renames, self.now)


@dataclass(frozen=True, slots=True)
class NoteBranch:
    namespace: str
    tip: str | None
    diverged: bool
    now: float

    def __call__(self, store: SynapseStore) -> None:
        store.note_branch(self.namespace, self.tip, diverged=self.diverged, now=self.now)


@dataclass(frozen=True, slots=True)
class Join:
    namespace: str
    now: float

    def __call__(self, store: SynapseStore) -> None:
        store.join(self.namespace, self.now)


@dataclass(frozen=True, slots=True)
class Settle:
    now: float
    namespace: str
    is_gone: Callable[[str], bool] | None

    def __call__(self, store: SynapseStore) -> None:
        if store.is_time_credible(self.now):
            store.settle(self.now)
            if self.is_gone is not None:
                store.settle(self.now, only=[self.namespace], is_gone=self.is_gone)


def nothing(_store: SynapseStore) -> None:
    """Lets the waiting counts be written."""
