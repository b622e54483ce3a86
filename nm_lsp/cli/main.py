"""`nm-lsp`: one visible table of commands, and the language server itself when no command is named.

Guarantees: only the module of the command that runs is imported; each error ends in one readable message and the exit
code of `exits`; a traceback appears for bugs alone.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from nm_lsp import __version__
from nm_lsp.base.errors import EnvironmentProblem, InvalidInput, NmError
from nm_lsp.cli.exits import LEGEND, Exit
from nm_lsp.cli.output import Output
from nm_lsp.worker.spawn import spawn_ahead

# Name → one line of help. The command lives in `nm_lsp.cli.commands.<name>`; the order is that of `--help`.
COMMANDS = {
    "query": "Ask how something works; get the right code in about 1,000 tokens.",
    "search": "Find symbols, best first.",
    "wakeup": "Print what to know about this code before the first question.",
    "explain": "Say why each hit of a question is there.",
    "relevance": "Show every score and factor behind a question's ranking.",
    "index": "Build or refresh the index, with vectors.",
    "status": "Show how far the index is and what it left out.",
    "stats": "Count files, symbols, edges and communities.",
    "graph": "Export or validate the code graph.",
    "model": "Install or inspect the weights for vector search.",
    "decisions": "Record, list, search, restore and retire decisions.",
    "audit": "Check, export or rotate the record of all changes to decisions.",
    "hooks": "Install or remove the git hooks.",
    "guard": "Say which decisions govern files and whether they hold.",
    "demo": "Watch a decision go stale and be restored, on a copy of this folder.",
    "neighbors": "Show what is edited, committed and used together with a symbol.",
    "next": "Show what is usually touched after a symbol.",
    "review": "Show what usually changes with the present changes and did not.",
    "feedback": "Say whether a hit was useful, so that later answers are better.",
    "memory": "Inspect, reset, export or settle what use has taught.",
    "watch": "Learn from edits of programs that speak no LSP, until Ctrl-C.",
    "savings": "Show how many tokens answers have saved.",
    "probe": "Ask for symbols by their documentation; list those that are not found.",
    "doctor": "Check every part and name the command that repairs it.",
    "benchmark": "Measure speed and token savings on this folder.",
    "cache": "List or prune what can be made again: indexes, vectors, pages.",
    "settings": "Print the settings with their defaults, as Markdown or JSON schema.",
}

INDEXED = frozenset({"query", "search", "explain", "relevance", "wakeup", "index", "stats"})
"""Commands that wait for the index."""
NO_CHILD = frozenset({"-h", "--help", "--through-server"})
"""Words on a command line that mean: this process opens no index."""

CONTEXT = {"help_option_names": ["-h", "--help"]}


class LazyCommands(TyperGroup):
    """The commands of `COMMANDS`, each imported when it is the one that runs (and for nothing else, not even help)."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # What the base class proposes for a name that is misspelt.
        self.commands: Any = dict.fromkeys(COMMANDS)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the base class's signature
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the base class's signature
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in INDEXED and not NO_CHILD.intersection(sys.argv):
            # The child of the index imports for as long as the command itself does: side by side they take half.
            spawn_ahead()
        module = importlib.import_module(f"nm_lsp.cli.commands.{cmd_name}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        # A group shows the legend below the help of each of its commands too.
        for shown in (command, *getattr(command, "commands", {}).values()):
            shown.epilog = LEGEND
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the base class's signature
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    cls=LazyCommands,
    subcommand_metavar="[COMMAND]",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings=CONTEXT,
    epilog=LEGEND,
    help="A memory for code, served over LSP. Without a command: the language server.",
)


@app.callback(invoke_without_command=True)
def main(
    ctx: typer.Context,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Serve one client over stdin and stdout (the default).")
    ] = False,
    tcp: Annotated[
        str, typer.Option("--tcp", metavar="[HOST:]PORT", help="Serve clients over TCP; port 0 picks one.")
    ] = "",
    ws: Annotated[str, typer.Option("--ws", metavar="[HOST:]PORT", help="Serve clients over WebSocket.")] = "",
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    # vscode-languageclient adds it to every server's command line; `initialize` carries the same number.
    client_process_id: Annotated[int, typer.Option("--clientProcessId", hidden=True)] = 0,  # noqa: ARG001
) -> None:
    if version:
        Output().text(f"nm-lsp {__version__}")
        return
    if ctx.invoked_subcommand is not None:
        return
    if sum((stdio, bool(tcp), bool(ws))) > 1:
        raise typer.BadParameter("give one of --stdio, --tcp and --ws")
    if not (stdio or tcp or ws) and on_terminal():
        Output().text(ctx.get_help())
        return
    _serve(tcp, ws)


def on_terminal() -> bool:
    return sys.stdin.isatty()


def _serve(tcp: str, ws: str) -> None:
    # The addresses are read first: a wrong one should not wait for the import below.
    tcp_address = address(tcp, "--tcp") if tcp else None
    ws_address = address(ws, "--ws") if ws else None
    spawn_ahead()
    # Imported here because pygls and lsprotocol cost most of a second that no other command should pay.
    from nm_lsp.server.main import serve_stdio, serve_tcp, serve_ws

    try:
        if tcp_address:
            serve_tcp(*tcp_address)
        elif ws_address:
            serve_ws(*ws_address)
    except InvalidInput as error:
        raise InvalidInput("--tcp" if tcp else "--ws", error.message.partition(": ")[2], hint=error.hint) from None
    except OSError as error:
        raise EnvironmentProblem(
            f"The server cannot listen on {tcp or ws}: {error.strerror or error}.", hint="Port 0 takes a free one."
        ) from error
    serve_stdio()


def address(text: str, option: str) -> tuple[str, int]:
    """`[HOST:]PORT` as host and port; without a host, loopback. An IPv6 host stands in brackets."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise typer.BadParameter(f"{option}: {text!r} is not [HOST:]PORT with a port from 0 to 65535")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """The console script, with `arguments` instead of the command line's. Ends with a code of `exits.Exit`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        app(given, prog_name="nm-lsp")
    except NmError as error:
        sys.exit(Output(as_json="--json" in given).failure(error))
    except KeyboardInterrupt:
        sys.exit(Exit.CANCELLED)
    sys.exit(Exit.OK)
