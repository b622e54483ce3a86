-- A memory for code: ask how something works, and keep the decisions that govern it. See :help nm_lsp.
local M = {}

--- Configure the plugin and start the server for files that are opened. See :help nm_lsp-options.
function M.setup(options)
  if vim.fn.has('nvim-0.11') == 0 then
    vim.notify_once('nm_lsp needs Neovim 0.11 or later.', vim.log.levels.WARN)
    return
  end
  require('nm_lsp.config').set(options)
  require('nm_lsp.server').enable()
end

--- The state of the memory of a buffer's workspace in a few words, for a statusline. Never waits.
function M.statusline(bufnr)
  return require('nm_lsp.status').text(bufnr)
end

return M
