-- The options of `setup`, checked once. An option that cannot be used is named in a message; its default is used.
local M = {}

local defaults = {
  -- The server: a command with its arguments, or nil to look for nm-lsp on PATH and where pipx and uv put it.
  cmd = nil,
  -- Settings of the server, as in its README: { decisions = { stale = 'warning' } }.
  settings = {},
  -- The folder for a file: function(file, default) that returns a folder, or nil for none.
  root = nil,
  -- Files outside any repository get a server that knows no folder, so nothing around them is indexed.
  single_file = true,
  -- Start by itself when a file is opened.
  autostart = true,
  -- Show the count of decisions above governed files (code lens).
  code_lens = true,
  -- Seconds after which a server that does not start, or a request without an answer, is given up.
  timeout_s = 60,
  -- What the statusline shows before the state; '' for nothing.
  label = 'memory',
  -- The border of the answer window; nil for that of 'winborder', or a rounded one.
  border = nil,
}

local types = {
  cmd = 'table',
  settings = 'table',
  root = 'function',
  single_file = 'boolean',
  autostart = 'boolean',
  code_lens = 'boolean',
  timeout_s = 'number',
  label = 'string',
  border = { 'string', 'table' },
}

local current = vim.deepcopy(defaults)

local function problem_with(name, value)
  local wanted = types[name]
  if wanted == nil then
    return ('setup has no option “%s”; :help nm_lsp-options lists all'):format(name)
  end
  wanted = type(wanted) == 'table' and wanted or { wanted }
  if not vim.tbl_contains(wanted, type(value)) then
    return ('the option “%s” was not used: expected a %s'):format(name, table.concat(wanted, ' or a '))
  end
  if name == 'cmd' and (#value == 0 or type(value[1]) ~= 'string') then
    return "the option “cmd” was not used: expected a list such as { 'nm-lsp', '--stdio' }"
  end
end

function M.set(options)
  current = vim.deepcopy(defaults)
  for name, value in pairs(options or {}) do
    local problem = problem_with(name, value)
    if problem then
      vim.notify('nm_lsp: ' .. problem .. '.', vim.log.levels.WARN)
    else
      current[name] = value
    end
  end
end

function M.get()
  return current
end

return M
