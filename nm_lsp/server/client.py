"""What the client is and wants, read once from `initialize`. Sparse and odd clients get the defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder, get_capability

from nm_lsp.base.text import PositionEncoding
from nm_lsp.wire.commands import DEFAULT_COMMAND_PREFIX

_PREFIX = re.compile(r"[A-Za-z][\w.-]{0,63}")


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """`notifications` is None for "all", else the names asked for; `problems` are texts to show once.

    `prompts`: the client fills the placeholders in arguments of commands by asking its user.
    """

    name: str
    encoding: PositionEncoding
    command_prefix: str
    notifications: frozenset[str] | None
    settings: Any
    pulls_diagnostics: bool
    shows_progress: bool
    has_configuration: bool
    registers_configuration: bool
    registers_watched_files: bool
    problems: tuple[str, ...]
    prompts: bool = False
    shows_markdown: bool = False
    literal_actions: bool = False
    shows_documents: bool = False
    refreshes_lenses: bool = False
    refreshes_diagnostics: bool = False

    def wants(self, notification: str) -> bool:
        """Whether the client asked for `neuralmind/<notification>`."""
        return self.notifications is None or notification in self.notifications


def read_profile(params: types.InitializeParams) -> ClientProfile:
    """Never fails: what cannot be used is named in `problems`."""
    problems: list[str] = []
    given = params.initialization_options
    if given is not None and not isinstance(given, dict):
        problems.append("initializationOptions was not used: expected an object.")
    options: dict[str, Any] = given if isinstance(given, dict) else {}
    prefix = options.get("commandPrefix")
    if prefix is not None and not (isinstance(prefix, str) and _PREFIX.fullmatch(prefix)):
        problems.append("initializationOptions.commandPrefix was not used: expected a name of letters, digits, . - _")
        prefix = None
    capabilities = params.capabilities

    def has(path: str) -> bool:
        return get_capability(capabilities, path, False) is True

    return ClientProfile(
        name=params.client_info.name if params.client_info else "",
        encoding=_encoding(capabilities),
        command_prefix=prefix or DEFAULT_COMMAND_PREFIX,
        notifications=_notifications(options.get("notifications"), problems),
        settings=options.get("settings"),
        pulls_diagnostics=options.get("diagnostics") == "pull",
        shows_progress=has("window.work_done_progress"),
        has_configuration=has("workspace.configuration"),
        registers_configuration=has("workspace.did_change_configuration.dynamic_registration"),
        registers_watched_files=has("workspace.did_change_watched_files.dynamic_registration"),
        problems=tuple(problems),
        prompts=options.get("prompts") is True,
        shows_markdown=_names_markdown(capabilities),
        literal_actions=get_capability(capabilities, "text_document.code_action.code_action_literal_support", None)
        is not None,
        shows_documents=has("window.show_document.support"),
        refreshes_lenses=has("workspace.code_lens.refresh_support"),
        refreshes_diagnostics=has("workspace.diagnostics.refresh_support"),
    )


def _names_markdown(capabilities: types.ClientCapabilities) -> bool:
    formats = get_capability(capabilities, "text_document.hover.content_format", None)
    return isinstance(formats, list | tuple) and types.MarkupKind.Markdown in formats


def _encoding(capabilities: types.ClientCapabilities) -> PositionEncoding:
    """The client's first that is known; UTF-16, as the specification says, for a client that names none."""
    chosen = ServerCapabilitiesBuilder.choose_position_encoding(capabilities)
    return PositionEncoding(chosen.value if isinstance(chosen, types.PositionEncodingKind) else chosen)


def _notifications(wanted: Any, problems: list[str]) -> frozenset[str] | None:
    if wanted is True:
        return None
    if wanted is None or wanted is False:
        return frozenset()
    if isinstance(wanted, list) and all(isinstance(name, str) for name in wanted):
        return frozenset(name.removeprefix("neuralmind/") for name in wanted)
    problems.append("initializationOptions.notifications was not used: expected true, false or a list of names.")
    return frozenset()
