# Source this in kakrc after kakoune-lsp, whose own servers stay as they are. Needs a kakoune-lsp that announces its default
# configuration as `User LSPDefaultConfig=<filetype>`.
hook -group nm-lsp global User LSPDefaultConfig=.* %{
    set-option -add buffer lsp_servers %{
        [nm-lsp]
        command = "nm-lsp"
        args = ["--stdio"]
        root_globs = [".git", ".neuralmind"]
    }
}

define-command nm-lsp-ask -params 1.. -docstring 'nm-lsp-ask <question>: show the answer to a question about this code base' %{
    evaluate-commands -save-regs a %{
        set-register a %sh{
            if command -v nm-lsp >/dev/null; then nm-lsp query -- "$*" 2>&1; else echo 'nm-lsp was not found. Install it with `pipx install .` in a copy of its repository.'; fi
        }
        edit! -scratch *nm-lsp-answer*
        execute-keys '%"aRgg'
        set-option buffer filetype markdown
    }
}

define-command nm-lsp-guard -docstring 'show the decisions that govern this file' %{
    info -title nm-lsp -- %sh{
        if command -v nm-lsp >/dev/null; then nm-lsp guard -- "$kak_buffile" 2>&1; else echo 'nm-lsp was not found. Install it with `pipx install .` in a copy of its repository.'; fi
    }
}
