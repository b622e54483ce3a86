-- A Neovim beside another editor: opens $NM_FILE with the plugin and the server $SERVER, and prints as JSON what is marked
-- in it. Fails where nothing is within half a minute, or where there was anything to complain about.
require('nm_lsp').setup({ cmd = { vim.env.SERVER, '--stdio' } })
vim.cmd('filetype on')
vim.cmd.edit(vim.fn.fnameescape(vim.env.NM_FILE))
local is_marked = vim.wait(30000, function()
  return #vim.diagnostic.get(0) > 0
end, 50)
local messages = vim.tbl_map(function(one)
  return one.message
end, vim.diagnostic.get(0))
local said = vim.fn.execute('messages')
io.stdout:write(vim.json.encode({ marks = messages, said = said }))
vim.cmd((is_marked and not said:find('rror')) and 'qa!' or 'cquit')
