-- Counts of decisions above governed code. Neovim 0.11 asks for lenses when it is told to, and its own refresh asks no
-- more for a buffer whose server ended in the midst of an answer; so the request is made here.
local config = require('nm_lsp.config')

local M = {}

local function show(client, bufnr)
  if not vim.api.nvim_buf_is_loaded(bufnr) or client:is_stopped() then
    return
  end
  local params = { textDocument = vim.lsp.util.make_text_document_params(bufnr) }
  client:request('textDocument/codeLens', params, vim.lsp.codelens.on_codelens, bufnr)
end

--- Show the lenses of a buffer from now on.
function M.attach(client, bufnr)
  if not config.get().code_lens or not client:supports_method('textDocument/codeLens', bufnr) then
    return
  end
  -- Later versions keep lenses up to date by themselves.
  if vim.lsp.codelens.enable then
    vim.lsp.codelens.enable(true, { bufnr = bufnr })
    return
  end
  local group = vim.api.nvim_create_augroup('nm_lsp.lens.' .. bufnr, { clear = true })
  vim.api.nvim_create_autocmd({ 'BufEnter', 'BufWritePost' }, {
    group = group,
    buffer = bufnr,
    callback = function()
      show(client, bufnr)
    end,
  })
  show(client, bufnr)
end

--- Ask anew for the lenses of all buffers that are shown.
function M.renew(client)
  if not config.get().code_lens or vim.lsp.codelens.enable then
    return
  end
  for bufnr in pairs(client.attached_buffers) do
    if #vim.fn.win_findbuf(bufnr) > 0 then
      show(client, bufnr)
    end
  end
end

return M
