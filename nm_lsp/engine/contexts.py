"""Context for a question: the four layers composed over one view."""

from __future__ import annotations

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Refused
from nm_lsp.engine.answers import View
from nm_lsp.engine.requests import ExplainResult, QueryParams, QueryResult, WakeupParams, WakeupResult


def query(view: View, params: QueryParams, cancel: Cancellation) -> QueryResult:
    raise Refused("not composed yet")


def wakeup(view: View, params: WakeupParams, cancel: Cancellation) -> WakeupResult:
    raise Refused("not composed yet")


def explain(view: View, query: str, cancel: Cancellation) -> ExplainResult:
    raise Refused("not composed yet")
