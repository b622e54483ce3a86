"""The one place that maps errors to JSON-RPC.

Guarantees: no traceback and no local variable reaches the client; what is not one of our errors is an internal error
whose message names only the exception.
"""

from __future__ import annotations

from typing import Any

from cattrs.errors import BaseValidationError
from pygls.exceptions import JsonRpcException

from nm_lsp.base.errors import Cancelled, Conflict, EnvironmentProblem, NmError, Refused, UserError
from nm_lsp.base.naming import camel_case

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800
REQUEST_FAILED = -32803


def to_json_rpc(error: BaseException) -> JsonRpcException:
    """The answer to a request that ended with `error`."""
    if isinstance(error, JsonRpcException):
        return JsonRpcException(error.message, error.code, _without_traceback(error.data))
    if isinstance(error, NmError):
        data: dict[str, Any] = {"code": error.code, "hint": error.hint}
        if isinstance(error, Conflict):
            data["current"] = error.current
        return JsonRpcException(str(error), _code(error), data)
    name = type(error).__name__
    return JsonRpcException(f"Internal error ({name}).", INTERNAL_ERROR, {"code": "internal", "hint": None})


def _code(error: NmError) -> int:
    if isinstance(error, Cancelled):
        return REQUEST_CANCELLED
    if isinstance(error, Refused | Conflict | EnvironmentProblem):
        return REQUEST_FAILED
    return INVALID_PARAMS if isinstance(error, UserError) else INTERNAL_ERROR


def _without_traceback(data: object) -> object:
    return None if isinstance(data, dict) and "traceback" in data else data


def explain_malformed(error: BaseException) -> str:
    """Names the fields of an LSP message that could not be read: "position.line: expected a number"."""
    return "; ".join(sorted(set(_leaves(error, "")))[:5]) or "the parameters could not be read"


def _leaves(error: BaseException, where: str) -> list[str]:
    if isinstance(error, BaseValidationError) and isinstance(error, BaseExceptionGroup):
        found: list[str] = []
        for inner in error.exceptions:
            found += _leaves(inner, _inside(where, inner))
        return found
    if isinstance(error, KeyError):
        return [f"{where or error.args[0]}: is missing"]
    return [f"{where or 'params'}: {_reason(error)}"]


def _inside(where: str, error: BaseException) -> str:
    for note in getattr(error, "__notes__", ()):
        name = getattr(note, "name", None)
        index = getattr(note, "index", None)
        if isinstance(name, str):
            name = camel_case(name)
            # The outermost attribute is the message's own `params`, which the caller never wrote as a name.
            return name if where in {"", "params"} else f"{where}.{name}"
        if index is not None:
            return f"{where}[{index}]"
    return where


def _reason(error: BaseException) -> str:
    text = str(error)
    if "should be in range" in text:
        return "is out of range"
    if "int()" in text:
        return "expected a whole number"
    return "has the wrong type"
