//! Starts `nm-lsp --stdio` from the PATH of the project's shell, or what `lsp.nm-lsp.binary` of Zed's settings names.

use zed_extension_api::{self as zed, settings::LspSettings, LanguageServerId, Result};

const NAME: &str = "nm-lsp";
const MISSING: &str = "nm-lsp was not found. Install it (`pipx install .` in a copy of its repository), or set lsp.nm-lsp.binary.path.";

struct NmLsp;

impl zed::Extension for NmLsp {
    fn new() -> Self {
        NmLsp
    }

    fn language_server_command(&mut self, _: &LanguageServerId, worktree: &zed::Worktree) -> Result<zed::Command> {
        let binary = LspSettings::for_worktree(NAME, worktree).ok().and_then(|settings| settings.binary);
        let (path, arguments) = binary.map(|binary| (binary.path, binary.arguments)).unwrap_or_default();
        Ok(zed::Command {
            command: path.or_else(|| worktree.which(NAME)).ok_or(MISSING)?,
            args: arguments.unwrap_or_else(|| vec!["--stdio".to_string()]),
            env: worktree.shell_env(),
        })
    }
}

zed::register_extension!(NmLsp);
