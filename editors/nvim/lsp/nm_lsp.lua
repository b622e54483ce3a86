-- Lets `vim.lsp.enable('nm_lsp')` work without calling setup.
return require('nm_lsp.server').lsp_config()
