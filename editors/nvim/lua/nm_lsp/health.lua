-- :checkhealth nm_lsp
local M = {}

local function run(command)
  local started, process = pcall(vim.system, command, { text = true, timeout = 20000 })
  if not started then
    return nil, tostring(process)
  end
  local result = process:wait()
  local output = vim.trim((result.stdout or '') ~= '' and result.stdout or result.stderr or '')
  if result.code ~= 0 then
    local lines = vim.split(output, '\n')
    return nil, lines[#lines] ~= '' and lines[#lines] or ('exit code ' .. result.code)
  end
  return vim.split(output, '\n')[1]
end

local function check_editor()
  if vim.fn.has('nvim-0.11') == 1 then
    local version = vim.version()
    vim.health.ok(('Neovim %d.%d.%d'):format(version.major, version.minor, version.patch))
  else
    vim.health.error('Neovim 0.11 or later is needed.')
  end
  local git, problem = run({ 'git', '--version' })
  if git then
    vim.health.ok(git)
  else
    vim.health.warn('git cannot be run: ' .. problem, 'Without git, a decision is judged by what is saved, not by commits.')
  end
end

local function check_command()
  local command, found = require('nm_lsp.server').command()
  if not found then
    vim.health.error(('The language server `%s` was not found.'):format(command[1]), {
      ('To repair that, %s,'):format(require('nm_lsp.server').how_to_install()),
      "or name it: require('nm_lsp').setup { cmd = { '/path/to/nm-lsp', '--stdio' } }",
    })
    return
  end
  local version, problem = run(require('nm_lsp.server').version_command(command))
  if version then
    vim.health.ok(('%s, %s'):format(vim.fn.exepath(command[1]), version))
  else
    vim.health.error(('`%s --version` fails: %s'):format(command[1], problem), 'Install the language server again, or change the option `cmd`.')
  end
end

local function check_client(client)
  local where = client.root_dir or 'files outside any repository'
  local answer = client:request_sync('neuralmind/status', vim.empty_dict(), 5000)
  if not client.root_dir then
    vim.health.ok(where .. ': running')
    return
  end
  if not (answer and answer.result) then
    vim.health.warn(where .. ': the server does not answer.', ':NeuralMind restart starts it again.')
    return
  end
  local status = answer.result
  vim.health.ok(
    ('%s: %s, %d files, %d symbols, %d stale decisions'):format(
      where, status.ready and 'ready' or 'indexing', status.files, status.symbols, status.decisions.stale or 0)
  )
  for _, problem in ipairs(status.problems) do
    vim.health.warn(problem.message, problem.hint)
  end
end

function M.check()
  vim.health.start('nm_lsp: what it needs')
  check_editor()
  check_command()
  vim.health.start('nm_lsp: servers')
  local clients = vim.lsp.get_clients({ name = 'nm_lsp' })
  for _, client in ipairs(clients) do
    check_client(client)
  end
  for root, why in pairs(require('nm_lsp.server').blocked()) do
    vim.health.error(('%s: left off, it %s.'):format(root ~= '' and root or 'files outside any repository', why), ':NeuralMind restart')
  end
  if #clients == 0 then
    vim.health.info('No server runs. It starts with the first file of a repository. `nm-lsp doctor` checks its parts.')
  end
end

return M
