-- Defines :NeuralMind; everything else is loaded when it is first used.
if vim.g.loaded_nm_lsp then
  return
end
vim.g.loaded_nm_lsp = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.notify_once('nm_lsp needs Neovim 0.11 or later. This one is older, so the plugin stays off.', vim.log.levels.WARN)
  return
end

vim.api.nvim_create_user_command('NeuralMind', function(given)
  require('nm_lsp.commands').run(given)
end, {
  nargs = '*',
  bang = true,
  range = true,
  desc = 'Ask the memory of this workspace, and keep its decisions',
  complete = function(lead, line)
    return require('nm_lsp.commands').complete(lead, line)
  end,
})
