"""Logging to standard error, at WARNING unless `NM_LSP_LOG` names another level."""

from __future__ import annotations

import logging
import os
import sys

from nm_lsp.engine.settings import read_environment


class _StderrHandler(logging.StreamHandler):  # type: ignore[type-arg] # generic in the stubs only
    """Drops a record it cannot write: reporting that on the same closed stream would never end."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base class names it
        pass


def set_up_logging() -> None:
    """Send all logging to standard error. Called once per process, by the entry points."""
    # The environment is read here and nowhere else in the server.
    level = read_environment(os.environ).log_level
    known = logging.getLevelNamesMapping()
    handler = _StderrHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(known.get(level, logging.WARNING))
    logging.captureWarnings(True)
    logging.raiseExceptions = False
