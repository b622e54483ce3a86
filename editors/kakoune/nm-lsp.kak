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
    info -title nm-lsp -- %sh{ nm-lsp query "$*" 2>&1 }
}

define-command nm-lsp-guard -docstring 'show the decisions that govern this file' %{
    info -title nm-lsp -- %sh{ nm-lsp guard "$kak_buffile" 2>&1 }
}
