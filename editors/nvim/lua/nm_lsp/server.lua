-- Which server a buffer gets, and what happens when there is none, or when it ends by itself.
--
-- One server per repository root. A server that ends at once is not started again until `:NeuralMind restart`, one that
-- crashes after it has worked is started again once; both are said once, with the cause and what repairs it.
local config = require('nm_lsp.config')

local M = {}

M.name = 'nm_lsp'

local QUIET_S = 60

-- By root ('' for files without one): why no server is started there, or nil.
local blocked = {}
-- By root: when its server last crashed after it had worked.
local crashed = {}
-- By id of a client: what waits for its start, and once it has started the buffers it had.
local waiting, buffers = {}, {}
local leaving = false
-- What has been said already: several repositories usually fail for one reason.
local told = {}

-- The oldest version of the server that has all calls of this plugin.
local OLDEST = '0.1.0'

--- How the server is installed: from the copy of the repository that this plugin lies in, where it lies in one.
function M.how_to_install()
  local plugin = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h:h:h')
  local repository = vim.fn.fnamemodify(plugin, ':h:h')
  if vim.uv.fs_stat(vim.fs.joinpath(repository, 'nm_lsp', 'server')) then
    return ('install it with `pipx install %s`'):format(vim.fn.shellescape(repository))
  end
  return 'install it with `pipx install .` in a copy of its repository'
end

local function repair()
  local name_it = "name it: require('nm_lsp').setup { cmd = { '/path/to/nm-lsp', '--stdio' } }"
  return ('To repair that, %s, or %s. Then run :NeuralMind restart.'):format(M.how_to_install(), name_it)
end

local function say(text, level)
  vim.notify('nm_lsp: ' .. text, level or vim.log.levels.ERROR)
end

local function say_once(what, text, level)
  if not told[what] then
    told[what] = true
    say(text, level)
  end
end

--- The command of the server, and whether it can be run.
function M.command()
  local configured = vim.lsp.config[M.name].cmd
  local given = config.get().cmd or (type(configured) == 'table' and configured or nil)
  if given then
    return given, vim.fn.executable(given[1]) == 1
  end
  for _, path in ipairs({ 'nm-lsp', vim.fs.joinpath(vim.uv.os_homedir() or '', '.local', 'bin', 'nm-lsp') }) do
    if vim.fn.executable(path) == 1 then
      return { path, '--stdio' }, true
    end
  end
  return { 'nm-lsp', '--stdio' }, false
end

-- Names such as `fugitive://…` belong to other plugins, and what lies in .git to git.
local function is_file(name)
  return name ~= '' and not name:match('^%a[%w+.-]+://') and not name:match('[/\\]%.git[/\\]')
end

local function is_home(folder)
  local home = vim.uv.os_homedir()
  return home ~= nil and vim.uv.fs_realpath(folder) == vim.uv.fs_realpath(home)
end

--- The root of the repository around a path: the nearest folder with `.git`, which may be a file, else the nearest with
--- `.neuralmind`. A project file in a package of a monorepo is no root.
function M.root_of(path)
  local root = vim.fs.root(path, '.git') or vim.fs.root(path, '.neuralmind')
  if config.get().root then
    return config.get().root(path, root)
  end
  if root and is_home(root) then
    vim.notify_once(
      'nm_lsp: your home folder is a repository. It is not indexed as a workspace; the option `root` of setup can change that.',
      vim.log.levels.INFO
    )
    return nil
  end
  return root
end

local function may_start(root)
  if blocked[root or ''] then
    return false
  end
  local command, found = M.command()
  if not found then
    vim.notify_once(('nm_lsp: the language server `%s` was not found. %s'):format(command[1], repair()), vim.log.levels.WARN)
  end
  return found
end

local function root_dir(bufnr, on_dir)
  local name = vim.api.nvim_buf_get_name(bufnr)
  if not is_file(name) then
    return
  end
  local root = M.root_of(name)
  if (root or config.get().single_file) and may_start(root) then
    on_dir(root)
  end
end

--- The command that prints the server's version: the server's own, which may begin with an interpreter.
function M.version_command(command)
  local words = vim.tbl_filter(function(word)
    return word ~= '--stdio'
  end, command)
  return vim.list_extend(words, { '--version' })
end

-- What a command that failed has to say for itself: the last line of its errors.
local function cause(result)
  local lines = vim.split(vim.trim(result.stderr or ''), '\n')
  local last = vim.trim(lines[#lines] or '')
  return last ~= '' and last or ('exit code ' .. result.code)
end

local function explain_early_end(command, code)
  local probe = M.version_command(command)
  local function tell(why)
    say_once('ends', ('the language server `%s` ended at once: %s. %s'):format(command[1], why, repair()))
  end
  local is_run, problem = pcall(vim.system, probe, { text = true, timeout = 10000 }, vim.schedule_wrap(function(result)
    if result.code == 0 then
      tell(('exit code %d; :NeuralMind log shows its errors'):format(code))
    else
      tell(cause(result))
    end
  end))
  if not is_run then
    tell(tostring(problem))
  end
end

local function start_again(root, had)
  for _, bufnr in ipairs(had) do
    if vim.api.nvim_buf_is_loaded(bufnr) then
      M.start(bufnr)
    end
  end
  if #had == 0 and root then
    M.start_folder(root)
  end
end

local function on_exit(code, signal, id)
  local had = buffers[id]
  buffers[id], waiting[id] = nil, nil
  if leaving or (code == 0 and (signal == 0 or signal == 15)) or signal == 15 then
    return
  end
  local client = vim.lsp.get_client_by_id(id)
  local root = client and client.root_dir
  local key = root or ''
  vim.schedule(function()
    if had == nil then
      blocked[key] = 'ended at once'
      explain_early_end((M.command()), code)
      return
    end
    local now = vim.uv.now() / 1000
    if crashed[key] and now - crashed[key] < QUIET_S then
      blocked[key] = 'crashed'
      say('the language server has crashed twice and is left off. :NeuralMind log shows why, :NeuralMind restart starts it again.')
      return
    end
    crashed[key] = now
    say('the language server has crashed and is started again.', vim.log.levels.WARN)
    -- Neovim forgets the old client first.
    vim.defer_fn(function()
      start_again(root, had)
    end, 100)
  end)
end

-- Takes the nulls out of the objects in `value`, at any depth. In an array they stay, so that it has no holes.
local function without_nulls(value)
  if type(value) ~= 'table' then
    return value
  end
  for key, one in pairs(value) do
    if one ~= vim.NIL then
      without_nulls(one)
    elseif type(key) == 'string' then
      value[key] = nil
    end
  end
  return value
end

-- Every answer of the server comes without nulls: Neovim 0.11 takes them out itself, 0.12 leaves vim.NIL, which is true.
local function forget_nulls(client)
  local request = client.request
  client.request = function(self, method, params, handler, bufnr)
    local plain = handler and function(err, result, context)
      return handler(without_nulls(err), without_nulls(result), context)
    end
    return request(self, method, params, plain, bufnr)
  end
end

local function on_init(client)
  forget_nulls(client)
  local pending = waiting[client.id] or {}
  waiting[client.id] = nil
  buffers[client.id] = {}
  local version = client.server_info and client.server_info.version
  if not version or vim.version.lt(version, OLDEST) then
    say_once(
      'old',
      ('the language server has version %s, and this plugin needs %s or later, so some things will not work. %s'):format(
        version or 'unknown',
        OLDEST,
        repair()
      ),
      vim.log.levels.WARN
    )
  end
  require('nm_lsp.status').refresh(client)
  for _, run in ipairs(pending) do
    run(client)
  end
end

-- A server that does not answer `initialize` would otherwise stay silent for ever.
local function before_init(_, client_config)
  vim.defer_fn(function()
    for _, client in ipairs(vim.lsp.get_clients({ name = M.name, _uninitialized = true })) do
      if client.config == client_config and not client.initialized then
        blocked[client.root_dir or ''] = 'did not start'
        say_once(
          'hangs',
          ('the language server has not started within %g s and is left off. :NeuralMind restart tries again.'):format(config.get().timeout_s),
          vim.log.levels.WARN
        )
        client:stop(true)
      end
    end
  end, config.get().timeout_s * 1000)
end

local function on_attach(client, bufnr)
  local known = buffers[client.id] or {}
  buffers[client.id] = known
  if not vim.tbl_contains(known, bufnr) then
    table.insert(known, bufnr)
  end
  require('nm_lsp.lens').attach(client, bufnr)
end

--- What Neovim starts the server with; `vim.lsp.config('nm_lsp', …)` can change any of it.
function M.lsp_config()
  return {
    -- A function, since Neovim stays silent about a command that does not exist, and looks for it only once.
    cmd = function(dispatchers)
      return vim.lsp.rpc.start((M.command()), dispatchers)
    end,
    root_dir = root_dir,
    init_options = {
      notifications = { 'statusChanged' },
      prompts = true,
      settings = next(config.get().settings) and config.get().settings or vim.empty_dict(),
    },
    settings = { nmLsp = next(config.get().settings) and config.get().settings or vim.empty_dict() },
    commands = require('nm_lsp.prompts').commands(),
    handlers = {
      ['neuralmind/statusChanged'] = function(_, _, context)
        local client = vim.lsp.get_client_by_id(context.client_id)
        if client then
          require('nm_lsp.status').refresh(client)
        end
      end,
    },
    before_init = before_init,
    on_init = on_init,
    on_attach = on_attach,
    on_exit = on_exit,
  }
end

local function resolved(root)
  local found = vim.deepcopy(vim.lsp.config[M.name])
  found.root_dir = root
  return found
end

--- Start, or reuse, the server of a buffer's repository.
function M.start(bufnr)
  root_dir(bufnr, function(root)
    vim.lsp.start(resolved(root), { bufnr = bufnr })
  end)
end

--- Start the server of a folder no file of which is open. Returns the client, or nil with the reason.
function M.start_folder(root)
  if blocked[root] then
    return nil, ('the language server of this folder %s; :NeuralMind restart starts it again'):format(blocked[root])
  end
  local command, found = M.command()
  if not found then
    return nil, ('the language server `%s` was not found. %s'):format(command[1], repair())
  end
  local id = vim.lsp.start(resolved(root), { attach = false })
  return id and vim.lsp.get_client_by_id(id)
end

--- The client that answers for a buffer: its own, else that of the working folder. nil with the reason if there is none.
function M.client_of(bufnr)
  local own = vim.lsp.get_clients({ name = M.name, bufnr = bufnr, _uninitialized = true })[1]
  if own and own.root_dir then
    return own
  end
  local name = vim.api.nvim_buf_get_name(bufnr)
  local root = is_file(name) and vim.bo[bufnr].buftype == '' and M.root_of(name) or M.root_of(vim.uv.cwd())
  local all = vim.lsp.get_clients({ name = M.name, _uninitialized = true })
  for _, client in ipairs(all) do
    if root and client.root_dir == root then
      return client
    end
  end
  if root then
    return M.start_folder(root)
  end
  if #all == 1 and all[1].root_dir then
    return all[1]
  end
  return nil, 'this file and the working folder belong to no repository, so there is no memory to ask. `git init` or a folder .neuralmind makes one'
end

--- Call `run(client)` once the client has started.
function M.when_ready(client, run)
  if client.initialized then
    run(client)
    return
  end
  waiting[client.id] = waiting[client.id] or {}
  table.insert(waiting[client.id], run)
end

--- Stop every server and start those of the open files again, also where one was left off.
function M.restart()
  blocked, crashed, told = {}, {}, {}
  local clients = vim.lsp.get_clients({ name = M.name, _uninitialized = true })
  for _, client in ipairs(clients) do
    client:stop()
  end
  local tries = 0
  local function again()
    local alive = vim.tbl_filter(function(client)
      return not client.rpc.is_closing()
    end, clients)
    tries = tries + 1
    if #alive > 0 and tries < 50 then
      vim.defer_fn(again, 100)
      return
    end
    for _, client in ipairs(alive) do
      client:stop(true)
    end
    if not select(2, M.command()) then
      say(('the language server `%s` was not found. %s'):format(M.command()[1], repair()), vim.log.levels.WARN)
      return
    end
    for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
      if vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].buftype == '' then
        M.start(bufnr)
      end
    end
  end
  again()
end

--- Why no server is started for a root, for the health check.
function M.blocked()
  return blocked
end

--- Start the server for every file that is opened.
function M.enable()
  local group = vim.api.nvim_create_augroup('nm_lsp', { clear = true })
  vim.api.nvim_create_autocmd('VimLeavePre', {
    group = group,
    callback = function()
      leaving = true
    end,
  })
  vim.lsp.config(M.name, M.lsp_config())
  if not config.get().autostart then
    return
  end
  vim.lsp.enable(M.name)
  -- A decision may govern any file, and Neovim enables servers by file type only.
  vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile' }, {
    group = group,
    callback = function(event)
      vim.schedule(function()
        local bufnr = event.buf
        if vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].filetype == '' and vim.bo[bufnr].buftype == '' then
          M.start(bufnr)
        end
      end)
    end,
  })
end

return M
