-- :NeuralMind and its words.
local call = require('nm_lsp.call')
local decisions = require('nm_lsp.decisions')
local window = require('nm_lsp.window')

local M = {}

local MISSING = {
  index = 'The index is still being built, so this is not all.',
  vectors = 'Vectors are not all there yet, so search by meaning is incomplete.',
  model = 'There is no model, so words were searched and not meaning: run `nm-lsp model install`.',
}

local STATUSES = { 'stale', 'active', 'invalidated', 'unknown', 'at-risk', 'aged', 'orphaned', '.' }

local function with_text(words, question, use)
  local text = vim.trim(table.concat(words, ' '))
  if text ~= '' then
    use(text)
    return
  end
  vim.ui.input({ prompt = question .. ' ' }, function(given)
    given = given and vim.trim(given)
    if given and given ~= '' then
      use(given)
    end
  end)
end

local function notes_of(result)
  return vim.tbl_map(function(name)
    return MISSING[name] or name
  end, result.partial or {})
end

local function hit_text(hit)
  return ('%s %s  %s'):format(hit.kind, hit.name, (hit.signature:gsub('%s+', ' ')))
end

-- The lines of an answer that name a hit, as `- path:line …`, and what <CR> does there.
local function places_in(client, lines, hits)
  local by_start = {}
  for _, hit in ipairs(hits) do
    by_start[('- %s:%d '):format(hit.path, hit.range.start.line + 1)] = hit
  end
  local go, found = {}, {}
  for number, line in ipairs(lines) do
    for start, hit in pairs(by_start) do
      if vim.startswith(line, start) then
        found[hit.id] = true
        go[number] = function()
          window.open(client, hit)
        end
      end
    end
  end
  return go, found
end

local function answer_page(client, question, result, is_local)
  local lines = vim.split(result.text ~= '' and result.text or 'Nothing here matches this question.', '\n')
  local remarks = notes_of(result)
  for _, row in ipairs(result.decisions) do
    if row.status ~= 'active' then
      table.insert(remarks, ('The decision “%s” (%s) is %s.'):format(row.title, row.id, row.status))
    end
  end
  for i, remark in ipairs(remarks) do
    table.insert(lines, i, '> ' .. remark)
  end
  if #remarks > 0 then
    table.insert(lines, #remarks + 1, '')
  end
  local _, named = places_in(client, lines, result.hits)
  local others = vim.tbl_filter(function(hit)
    return not named[hit.id]
  end, result.hits)
  if #others > 0 then
    vim.list_extend(lines, { '', '## Other places' })
    for _, hit in ipairs(others) do
      table.insert(lines, ('- %s:%d %s %s'):format(hit.path, hit.range.start.line + 1, hit.kind, hit.name))
    end
  end
  local go = places_in(client, lines, result.hits)
  window.page(question, lines, go, function()
    window.list(question, window.items(client, result.hits, hit_text), is_local)
  end)
end

local function phase_of(status)
  if status.ready then
    return 'Ready.'
  end
  local progress = status.progress
  return progress.total > 0 and ('Indexing: %d of %d.'):format(progress.done, progress.total) or 'The index is being prepared.'
end

local function show_status(status)
  local lines = {
    '# ' .. vim.uri_to_fname(status.folder),
    '',
    phase_of(status),
    ('- %d files, %d symbols'):format(status.files, status.symbols),
    ('- vectors: %d of %d'):format(status.vectors.done, status.vectors.total),
  }
  local counts = {}
  for _, name in ipairs({ 'active', 'stale', 'invalidated', 'unknown' }) do
    local count = status.decisions[name] or 0
    if count > 0 then
      table.insert(counts, count .. ' ' .. name)
    end
  end
  table.insert(lines, '- decisions: ' .. (#counts > 0 and table.concat(counts, ', ') or 'none yet'))
  if status.nSkipped > 0 then
    table.insert(lines, ('- %d files were left out; `nm-lsp status` says which and why'):format(status.nSkipped))
  end
  for _, problem in ipairs(status.problems) do
    table.insert(lines, '- problem: ' .. problem.message .. (problem.hint and (' ' .. problem.hint) or ''))
  end
  window.page('Memory', lines)
end

local words = {}

words.ask = {
  about = 'Ask how something works',
  run = function(rest, given)
    with_text(rest, 'What do you want to know?', function(question)
      call.ask('query', { query = question }, function(result, client)
        answer_page(client, question, result, given.bang)
      end)
    end)
  end,
}

words.search = {
  about = 'Find symbols',
  run = function(rest, given)
    with_text(rest, 'Search for:', function(query)
      call.ask('search', { query = query, limit = 50 }, function(result, client)
        for _, note in ipairs(notes_of(result)) do
          call.say(note)
        end
        if #result.hits == 0 then
          call.say(('Nothing here matches “%s”.'):format(query))
          return
        end
        window.list('Search: ' .. query, window.items(client, result.hits, hit_text), given.bang)
      end)
    end)
  end,
}

words.record = {
  about = 'Record a decision',
  run = function(rest, given)
    decisions.record(rest[1], given.line1, given.line2)
  end,
}

words.decisions = {
  about = 'List decisions',
  complete = function()
    return STATUSES
  end,
  run = function(rest, given)
    decisions.list(rest[1], given.bang)
  end,
}

words.restore = {
  about = 'Say that a stale decision still holds',
  ids = { stale = true },
  run = function(rest)
    decisions.restore(rest[1])
  end,
}

words.invalidate = {
  about = 'Say that a decision no longer holds',
  ids = { stale = true, active = true, unknown = true },
  run = function(rest)
    local reason = vim.trim(table.concat(rest, ' ', 2))
    decisions.invalidate(rest[1], reason ~= '' and reason or nil)
  end,
}

words.history = {
  about = 'Show all that happened to a decision',
  ids = {},
  run = function(rest)
    decisions.history(rest[1])
  end,
}

words.diff = {
  about = 'Show what changed since a decision was confirmed',
  ids = { stale = true },
  run = function(rest)
    decisions.diff(rest[1])
  end,
}

words.next = {
  about = 'Show what is usually touched next',
  complete = function()
    return { '%' }
  end,
  run = function(rest, given)
    local bufnr = vim.api.nvim_get_current_buf()
    call.with_client(function(client)
      local symbol = rest[1] == '%' and decisions.path_in(client, bufnr) or rest[1]
      call.ask_client(client, 'next', { symbol = symbol }, function(result)
        if #result.steps == 0 then
          call.say('Nothing is known yet of what comes next; it is learned from edits and commits.')
          return
        end
        local items = window.items(client, result.steps, function(step)
          return ('%3.0f %%  %s'):format(100 * step.share, step.id)
        end)
        window.list('Usually next' .. (result.id and (' after ' .. result.id) or ''), items, given.bang)
      end)
    end)
  end,
}

words.status = {
  about = 'Show how far the index is',
  run = function()
    call.ask('status', {}, show_status)
  end,
}

words.restart = {
  about = 'Start the language server again',
  run = function()
    require('nm_lsp.server').restart()
  end,
}

words.log = {
  about = 'Open the log of language servers',
  run = function()
    vim.cmd.tabedit(vim.fn.fnameescape(vim.lsp.log.get_filename()))
  end,
}

--- Every word with what it does, for help and tests.
function M.words()
  local found = {}
  for name, word in pairs(words) do
    found[name] = word.about
  end
  return found
end

function M.run(given)
  local rest = vim.deepcopy(given.fargs)
  local name = table.remove(rest, 1)
  if name and words[name] then
    words[name].run(rest, given)
    return
  end
  local names = vim.tbl_keys(words)
  table.sort(names)
  if name then
    call.say(('there is no :NeuralMind %s. There is: %s.'):format(name, table.concat(names, ', ')), vim.log.levels.ERROR)
    return
  end
  vim.ui.select(names, {
    prompt = 'NeuralMind',
    format_item = function(one)
      return ('%-11s %s'):format(one, words[one].about)
    end,
  }, function(chosen)
    if chosen then
      words[chosen].run({}, given)
    end
  end)
end

-- Completion has to answer at once: a server that takes longer than this offers no ids.
local COMPLETION_MS = 300

local function ids(wanted)
  local client = vim.lsp.get_clients({ name = 'nm_lsp', bufnr = 0 })[1] or vim.lsp.get_clients({ name = 'nm_lsp' })[1]
  local answer = client and client:request_sync('neuralmind/decisions.list', { limit = 1000 }, COMPLETION_MS)
  if not (answer and answer.result) then
    return {}
  end
  local found = {}
  for _, row in ipairs(answer.result.decisions) do
    if not next(wanted) or wanted[row.status] then
      table.insert(found, row.id)
    end
  end
  return found
end

function M.complete(lead, line)
  local before = vim.split(vim.trim(line:sub(1, #line - #lead)), '%s+')
  local offered = {}
  -- The first of `before` is the command, after a range and with or without a bang.
  if #before == 1 then
    offered = vim.tbl_keys(words)
  elseif #before == 2 and words[before[2]] then
    local word = words[before[2]]
    offered = word.ids and ids(word.ids) or word.complete and word.complete() or {}
    if before[2] == 'record' then
      offered = vim.fn.getcompletion(lead, 'file')
    end
  end
  offered = vim.tbl_filter(function(one)
    return vim.startswith(one, lead)
  end, offered)
  table.sort(offered)
  return offered
end

return M
