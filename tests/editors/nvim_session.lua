-- One session of a person in a real Neovim. Writes what was seen, step by step, as JSON to $NM_TEST_OUT.
-- Run by test_nvim.py, which holds the expectations.
local given = vim.json.decode(vim.env.NM_TEST)
local seen, notes = { steps = {} }, {}

vim.o.columns, vim.o.lines = 140, 50
vim.notify = function(text, level)
  table.insert(notes, { text = text, level = level or vim.log.levels.INFO })
end

local function taken()
  local texts = vim.tbl_map(function(note)
    return note.text
  end, notes)
  notes = {}
  return texts
end

local function wait(what, holds, ms)
  if not vim.wait(ms or 40000, holds, 20) then
    local found = vim.inspect(vim.diagnostic.get())
    error(('waited in vain for %s; notes: %s; diagnostics: %s'):format(what, vim.inspect(notes), found))
  end
end

-- Answers of the person: what is chosen and typed, in order.
local chosen, typed, questions = {}, {}, {}
vim.ui.select = function(items, options, done)
  local format = options.format_item or tostring
  local shown = vim.tbl_map(format, items)
  table.insert(questions, { prompt = options.prompt, shown = shown })
  local wanted = table.remove(chosen, 1)
  for i, text in ipairs(shown) do
    if wanted and text:find(wanted, 1, true) then
      return done(items[i], i)
    end
  end
  error(('nothing to choose for %s in %s'):format(vim.inspect(wanted), vim.inspect(shown)))
end
vim.ui.input = function(options, done)
  table.insert(questions, { prompt = options.prompt, default = options.default })
  done(table.remove(typed, 1))
end

local function edit(path)
  vim.cmd.edit(vim.fn.fnameescape(path))
  return vim.api.nvim_get_current_buf()
end

local function client_of(bufnr)
  return vim.lsp.get_clients({ name = 'nm_lsp', bufnr = bufnr })[1]
end

local function attached(bufnr)
  wait('a client', function()
    return client_of(bufnr) ~= nil
  end)
  return client_of(bufnr)
end

local function marks(bufnr)
  return vim.tbl_map(function(one)
    return { lnum = one.lnum, code = one.code, message = one.message, severity = one.severity, source = one.source }
  end, vim.diagnostic.get(bufnr))
end

local function marked(bufnr, count)
  wait(count .. ' diagnostics', function()
    return #vim.diagnostic.get(bufnr) == count
  end)
end

local function page()
  for _, winid in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(winid).relative ~= '' then
      return winid, vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(winid), 0, -1, false)
    end
  end
end

local function paged(run)
  run()
  wait('a page', function()
    return page() ~= nil
  end)
  local winid, lines = page()
  return lines, winid
end

local function close_pages()
  for winid in page do
    vim.api.nvim_win_close(winid, true)
  end
end

local function noted(run, pattern)
  notes = {}
  run()
  wait('a message with ' .. pattern, function()
    return vim.iter(notes):any(function(note)
      return note.text:find(pattern) ~= nil
    end)
  end)
  return taken()
end

local function listed(run)
  vim.fn.setqflist({}, 'f')
  run()
  wait('a list', function()
    return #vim.fn.getqflist() > 0
  end)
  local found = vim.tbl_map(function(item)
    return { path = vim.fn.bufname(item.bufnr), line = item.lnum, text = item.text, type = item.type }
  end, vim.fn.getqflist())
  vim.cmd.cclose()
  return found, vim.fn.getqflist({ title = 1 }).title
end

local function shell(...)
  local result = vim.system({ ... }, { cwd = given.project, text = true }):wait()
  assert(result.code == 0, result.stderr)
end

local function change(path, old, new)
  local file = assert(io.open(given.project .. '/' .. path))
  local text = file:read('*a')
  file:close()
  file = assert(io.open(given.project .. '/' .. path, 'w'))
  file:write((text:gsub(old, new)))
  file:close()
end

local steps = {}

local function step(name, run)
  table.insert(steps, { name = name, run = run })
end

local gov

-- E01: no server, then one that ends at once; three files each.
step('missing', function()
  require('nm_lsp').setup({ cmd = { '/nowhere/nm-lsp', '--stdio' } })
  vim.cmd('filetype on')
  edit(given.project .. '/pkg/other.py')
  edit(given.project .. '/pkg/gov.py')
  edit(given.second .. '/b.py')
  vim.wait(100)
  return { notes = taken(), clients = #vim.lsp.get_clients() }
end)

step('broken', function()
  require('nm_lsp').setup({ cmd = given.broken })
  for _, path in ipairs({ 'pkg/other.py', 'pkg/gov.py', 'README.md' }) do
    edit(given.project .. '/' .. path)
    vim.cmd.edit()
  end
  wait('the cause', function()
    return vim.iter(notes):any(function(note)
      return note.text:find('ended at once') ~= nil
    end)
  end)
  edit(given.project .. '/pkg/gov.py')
  vim.cmd.edit()
  vim.wait(300)
  local file = io.open(given.starts)
  local _, starts = file:read('*a'):gsub('start', '')
  return { notes = taken(), starts = starts }
end)

-- An interpreter without the package, as the command that a person named.
step('python', function()
  vim.cmd('silent! %bwipeout!')
  edit(given.project .. '/pkg/gov.py')
  require('nm_lsp').setup({ cmd = { given.python, '-m', 'nm_lsp', '--stdio' } })
  local told = noted(function()
    vim.cmd('NeuralMind restart')
  end, 'ended at once')
  vim.cmd.edit()
  vim.wait(300)
  return { notes = vim.list_extend(told, taken()), clients = #vim.lsp.get_clients({ _uninitialized = true }) }
end)

-- A server of an older version, which then hangs.
step('older', function()
  require('nm_lsp').setup({ cmd = given.older, timeout_s = 0.3 })
  local told = noted(function()
    vim.cmd('NeuralMind restart')
  end, 'has version')
  local silent = noted(function()
    vim.cmd('NeuralMind search governed')
  end, 'no answer')
  return { notes = told, silent = silent }
end)

step('hanging', function()
  require('nm_lsp').setup({ cmd = { 'sleep', '60' }, timeout_s = 0.3 })
  vim.cmd('NeuralMind restart')
  wait('the end of patience', function()
    return vim.iter(notes):any(function(note)
      return note.text:find('has not started') ~= nil
    end)
  end)
  -- Neovim minds a buffer that goes while its server ends.
  wait('the end of the server', function()
    return #vim.lsp.get_clients({ _uninitialized = true }) == 0
  end)
  vim.cmd('silent! %bwipeout!')
  edit(given.project .. '/pkg/gov.py')
  vim.wait(500)
  return { notes = taken(), clients = #vim.lsp.get_clients({ _uninitialized = true }) }
end)

step('restarted', function()
  vim.cmd('silent! %bwipeout!')
  require('nm_lsp').setup({ cmd = given.server, unknown = 1 })
  local told = taken()
  gov = edit(given.project .. '/pkg/gov.py')
  vim.wait(100)
  local before = #vim.lsp.get_clients({ _uninitialized = true })
  vim.cmd('NeuralMind restart')
  local client = attached(gov)
  return { notes = told, before = before, root = client.root_dir, name = client.server_info.name }
end)

-- E02
step('roots', function()
  local first = client_of(gov)
  local second = attached(edit(given.second .. '/b.py'))
  local same = attached(edit(given.project .. '/README.md'))
  local bare = attached(edit(given.project .. '/LICENSE'))
  local loose_buffer = edit(given.loose .. '/loose.py')
  local loose = attached(loose_buffer)
  notes = {}
  local at_home = attached(edit(given.home .. '/notes.py'))
  local told_at_home = taken()
  vim.cmd.cd(vim.fn.fnameescape(given.loose))
  local nowhere = noted(function()
    vim.cmd('NeuralMind status')
  end, 'no repository')
  vim.cmd.cd('-')
  local plain = attached(edit(given.plain .. '/plain.py'))
  vim.cmd.enew()
  local unnamed = vim.api.nvim_get_current_buf()
  vim.bo[unnamed].filetype = 'python'
  vim.cmd.cd(vim.fn.fnameescape(given.project))
  local unnamed_record = noted(function()
    vim.cmd('NeuralMind record')
  end, 'open the file')
  vim.cmd.cd('-')
  vim.cmd.enew()
  local foreign = vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_set_name(foreign, 'fugitive://' .. given.project .. '/.git//0/pkg/gov.py')
  vim.bo[foreign].filetype = 'python'
  vim.wait(100)
  return {
    same = same.id == first.id,
    without_filetype = bare.id == first.id,
    at_home = at_home.id == loose.id,
    told_at_home = told_at_home,
    nowhere = nowhere,
    second = second.root_dir,
    plain = plain.root_dir,
    unnamed_record = unnamed_record,
    loose_root = loose.root_dir or '',
    loose_folders = loose.workspace_folders and #loose.workspace_folders or 0,
    strangers = #vim.lsp.get_clients({ bufnr = unnamed }) + #vim.lsp.get_clients({ bufnr = foreign }),
    clients = #vim.lsp.get_clients(),
    in_loose = vim.fn.readdir(given.loose),
  }
end)

step('record', function()
  vim.cmd.buffer(gov)
  vim.api.nvim_win_set_cursor(0, { 6, 4 })
  chosen = { 'Record a decision for governed' }
  typed = { 'Doubling stays', 'Callers rely on it.', 'Tripling' }
  local told = noted(function()
    vim.cmd('NeuralMind record')
  end, 'Recorded')
  local asked = questions
  questions, typed = {}, {}
  chosen = { 'Record a decision for gov.py' }
  local cancelled = noted(function()
    vim.cmd('NeuralMind record')
  end, 'Nothing was changed')
  return { notes = told, questions = asked, cancelled = cancelled }
end)

local function hovered()
  vim.api.nvim_set_current_win(vim.fn.win_findbuf(gov)[1])
  vim.api.nvim_win_set_cursor(0, { 6, 4 })
  local lines = paged(function()
    vim.lsp.buf.hover()
  end)
  close_pages()
  return table.concat(lines, '\n')
end

step('hover', hovered)

step('commit', function()
  shell('git', 'commit', '-q', '--allow-empty', '-m', 'nothing')
  change('pkg/gov.py', 'value %* 2', 'value * 3')
  shell('git', 'commit', '-q', '-a', '-m', 'triple')
  local start = vim.uv.hrtime()
  -- The text on the screen is still the old one: nothing but the commit tells of the change.
  wait('the diagnostic', function()
    return vim.iter(vim.diagnostic.get(gov)):any(function(one)
      return one.code == 'decision-stale'
    end)
  end)
  local seconds = (vim.uv.hrtime() - start) / 1e9
  vim.cmd('silent checktime')
  vim.cmd('silent edit!')
  marked(gov, 1)
  return { seconds = seconds, marks = marks(gov) }
end)

step('stale', function()
  wait('the statusline', function()
    return require('nm_lsp').statusline(gov):find('stale') ~= nil
  end)
  local list, title = listed(function()
    vim.cmd('NeuralMind decisions stale')
  end)
  vim.cmd.buffer(gov)
  return { statusline = require('nm_lsp').statusline(gov), list = list, title = title, hover = hovered() }
end)

step('lens', function()
  vim.cmd.buffer(gov)
  wait('lenses', function()
    local lenses = vim.lsp.codelens.get(gov)
    return #lenses > 0 and lenses[1].command.title:find('stale') ~= nil
  end)
  local titles = vim.tbl_map(function(lens)
    return lens.command.title
  end, vim.lsp.codelens.get(gov))
  vim.api.nvim_win_set_cursor(0, { 6, 4 })
  chosen = { '1 decision' }
  vim.lsp.codelens.run()
  chosen = {}
  wait('the page', function()
    return vim.api.nvim_buf_get_name(0):find('governing') ~= nil
  end)
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  local name = vim.api.nvim_buf_get_name(0)
  vim.cmd.buffer(gov)
  return { titles = titles, page = name, text = text }
end)

-- D03
step('crash', function()
  local client = client_of(gov)
  notes = {}
  -- The project's server was the first to start.
  local pid = tonumber(io.lines(given.pids)())
  vim.uv.kill(pid, 'sigkill')
  wait('another client', function()
    return client_of(gov) and client_of(gov).id ~= client.id
  end)
  marked(gov, 1)
  vim.wait(200)
  return { notes = taken(), marks = marks(gov) }
end)

step('diff', function()
  local id = vim.fn.getcompletion('NeuralMind restore ', 'cmdline')[1]
  vim.cmd('NeuralMind diff ' .. id)
  wait('two texts', function()
    return #vim.api.nvim_list_tabpages() == 2 and #vim.api.nvim_tabpage_list_wins(0) == 2
  end)
  local texts = vim.tbl_map(function(winid)
    local text = table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(winid), 0, -1, false), '\n')
    return { text = text, diff = vim.wo[winid].diff }
  end, vim.api.nvim_tabpage_list_wins(0))
  vim.cmd.tabclose()
  return texts
end)

step('restore', function()
  vim.cmd.buffer(gov)
  vim.api.nvim_win_set_cursor(0, { 6, 4 })
  questions, chosen = {}, { 'Restore (it still holds)' }
  local start = vim.uv.hrtime()
  local told = noted(function()
    vim.lsp.buf.code_action()
  end, 'Restored')
  marked(gov, 0)
  wait('fewer stale decisions above the code', function()
    local lens = vim.lsp.codelens.get(gov)[1]
    return lens ~= nil and lens.command.title == '1 decision'
  end)
  return { notes = told, offered = questions[1].shown, seconds = (vim.uv.hrtime() - start) / 1e9 }
end)

step('ask', function()
  local lines, winid = paged(function()
    vim.cmd('NeuralMind ask how are values doubled')
  end)
  local bufnr = vim.api.nvim_win_get_buf(winid)
  local filetype = vim.bo[bufnr].filetype
  for number, line in ipairs(lines) do
    if line:find('^%- pkg/gov.py:6 ') then
      vim.api.nvim_win_set_cursor(winid, { number, 0 })
    end
  end
  vim.cmd.normal({ vim.keycode('<CR>'), bang = false })
  local at = { vim.api.nvim_buf_get_name(0), vim.api.nvim_win_get_cursor(0)[1] }
  local is_closed = page() == nil
  paged(function()
    vim.cmd('NeuralMind ask how are values doubled')
  end)
  local list = listed(function()
    vim.cmd.normal({ vim.keycode('<C-q>'), bang = false })
  end)
  return { text = table.concat(lines, '\n'), filetype = filetype, at = at, closed = is_closed, list = list }
end)

step('search', function()
  local list, title = listed(function()
    vim.cmd('NeuralMind search governed')
  end)
  local none = noted(function()
    vim.cmd('NeuralMind search zzyzx')
  end, 'Nothing here matches')
  vim.cmd('NeuralMind! search governed')
  wait('a location list', function()
    return #vim.fn.getloclist(0) > 0
  end)
  local nearby = vim.fn.getloclist(0, { title = 1 }).title
  vim.cmd.lclose()
  return { list = list, title = title, none = none, nearby = nearby }
end)

step('pages', function()
  vim.cmd.buffer(gov)
  local status = paged(function()
    vim.cmd('NeuralMind status')
  end)
  close_pages()
  local id = vim.fn.getcompletion('NeuralMind history ', 'cmdline')[1]
  local history = paged(function()
    vim.cmd('NeuralMind history ' .. id)
  end)
  close_pages()
  notes = {}
  vim.cmd('NeuralMind next %')
  wait('what is next', function()
    return #notes > 0 or vim.fn.getqflist({ title = 1 }).title:find('next') ~= nil
  end)
  local next_notes = taken()
  vim.cmd.cclose()
  return {
    status = table.concat(status, '\n'),
    history = table.concat(history, '\n'),
    next = next_notes,
    older = require('nm_lsp.call').in_words({ code = -32601, message = 'Method not found' }),
    wrong = noted(function()
      vim.cmd('NeuralMind sing')
    end, 'sing'),
    nowhere = noted(function()
      vim.cmd('NeuralMind history nm-zzzzzzzz')
    end, 'nm%-zzzzzzzz'),
  }
end)

step('completion', function()
  return {
    words = vim.fn.getcompletion('NeuralMind ', 'cmdline'),
    statuses = vim.fn.getcompletion('NeuralMind decisions s', 'cmdline'),
    stale = vim.fn.getcompletion('NeuralMind restore ', 'cmdline'),
    active = vim.fn.getcompletion('NeuralMind invalidate nm-', 'cmdline'),
  }
end)

step('invalidate', function()
  vim.cmd.buffer(gov)
  questions, chosen = {}, { 'Doubling stays', 'Another reason' }
  typed = { 'It was tripled on purpose.' }
  local told = noted(function()
    vim.cmd('NeuralMind invalidate')
  end, 'Invalidated')
  local list = listed(function()
    vim.cmd('NeuralMind decisions invalidated')
  end)
  return { notes = told, list = list, questions = questions }
end)

step('health', function()
  vim.cmd('checkhealth nm_lsp')
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  vim.cmd.bwipeout()
  return text
end)

step('help', function()
  vim.cmd('helptags ' .. vim.fn.fnameescape(given.help))
  vim.cmd('help nm_lsp-options')
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  vim.cmd.helpclose()
  return { text = text, words = require('nm_lsp.commands').words() }
end)

local is_good, problem = xpcall(function()
  for _, one in ipairs(steps) do
    seen.step = one.name
    local start = vim.uv.hrtime()
    seen.steps[one.name] = one.run()
    io.stderr:write(('%s %.2f s\n'):format(one.name, (vim.uv.hrtime() - start) / 1e9))
  end
end, debug.traceback)
if not is_good then
  seen.problem = problem
end
seen.messages = vim.fn.execute('messages')
local out = assert(io.open(given.out, 'w'))
out:write(vim.json.encode(seen))
out:close()
vim.cmd('qa!')
