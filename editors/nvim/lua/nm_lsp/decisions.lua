-- Decisions: listed, recorded, restored, retired. Which one is meant is asked for where several could be.
local call = require('nm_lsp.call')
local prompts = require('nm_lsp.prompts')
local window = require('nm_lsp.window')

local M = {}

local ORDER = { stale = 1, unknown = 2, active = 3, invalidated = 4 }
local KINDS = { stale = 'W', unknown = 'I', active = 'N', invalidated = 'N' }

local function line_of(row)
  local reason = row.statusReason and (': ' .. row.statusReason) or ''
  return ('%s %s  %s%s'):format(row.id, row.status:upper(), row.title, reason)
end

-- The path of a buffer's file in the client's folder, as the server spells it; nil for any other buffer.
local function path_in(client, bufnr)
  local name = vim.api.nvim_buf_get_name(bufnr)
  if name == '' or vim.bo[bufnr].buftype ~= '' or not client.root_dir then
    return nil
  end
  return vim.fs.relpath(client.root_dir, name)
end

M.path_in = path_in

local function sorted(rows)
  table.sort(rows, function(a, b)
    if a.status ~= b.status then
      return (ORDER[a.status] or 9) < (ORDER[b.status] or 9)
    end
    return a.recordedAt > b.recordedAt
  end)
  return rows
end

-- Asks for decisions and for HEAD before them, so that an act on what is now seen can be refused if HEAD has moved.
local function rows_of(client, params, answer)
  call.ask_client(client, 'status', {}, function(status)
    call.ask_client(client, 'decisions.list', params, function(result)
      answer(sorted(result.decisions), status.head, result)
    end)
  end)
end

--- Choose a decision: the one named, else one that governs the current file, else any, of the wanted statuses.
local function choose(id, wanted, purpose, use)
  call.with_client(function(client)
    local path = path_in(client, vim.api.nvim_get_current_buf())
    local function pick(rows, head)
      local found = vim.tbl_filter(function(row)
        return (not id and wanted[row.status]) or (id and vim.startswith(row.id, id))
      end, rows)
      if #found == 1 and id then
        use(client, found[1], head)
      elseif #found == 0 then
        return false
      else
        vim.ui.select(found, { prompt = purpose, format_item = line_of, kind = 'nm_lsp.decision' }, function(row)
          if row then
            use(client, row, head)
          end
        end)
      end
      return true
    end
    local function anywhere()
      rows_of(client, { limit = 1000 }, function(rows, head)
        if not pick(rows, head) then
          local which = id and ('is named ' .. id) or ('is ' .. table.concat(vim.tbl_keys(wanted), ' or '))
          call.say(('no decision of this workspace %s.'):format(which), vim.log.levels.WARN)
        end
      end)
    end
    if id or not path then
      anywhere()
      return
    end
    rows_of(client, { path = path, limit = 1000 }, function(rows, head)
      if not pick(rows, head) then
        anywhere()
      end
    end)
  end)
end

-- The first governed file that is there.
local function file_of(row)
  for _, anchor in ipairs(row.anchors) do
    local file = anchor.uri and vim.uri_to_fname(anchor.uri)
    if file and vim.fn.filereadable(file) == 1 then
      return file
    end
  end
end

--- List decisions in the quickfix list, those that do not hold first. `status` restricts it; '.' to this file.
function M.list(status, is_local)
  call.with_client(function(client)
    local params = { limit = 1000 }
    if status == '.' then
      params.path = path_in(client, vim.api.nvim_get_current_buf())
      if not params.path then
        call.say('this buffer is no file of the workspace.', vim.log.levels.WARN)
        return
      end
    else
      params.status = status
    end
    rows_of(client, params, function(rows, _, result)
      if #rows == 0 then
        call.say(status and ('No decision here is ' .. (status == '.' and 'about this file' or status) .. '.') or 'No decision is recorded yet. :NeuralMind record makes one.')
        return
      end
      local items = {}
      for _, row in ipairs(rows) do
        local file = file_of(row)
        table.insert(items, {
          filename = file,
          lnum = file and 1,
          type = KINDS[row.status],
          text = line_of(row),
          user_data = { id = row.id },
        })
      end
      local more = result.total > #rows and (' (%d of %d)'):format(#rows, result.total) or ''
      window.list('Decisions' .. more, items, is_local)
    end)
  end)
end

-- The new decisions that the server offers for a place: for the symbol around it, and for the file.
local function offers(client, bufnr, range, answer)
  local params = {
    textDocument = vim.lsp.util.make_text_document_params(bufnr),
    range = range,
    context = { diagnostics = {}, only = { 'refactor' } },
  }
  call.send(client, 'textDocument/codeAction', params, function(actions)
    answer(vim.tbl_filter(function(action)
      return type(action.command) == 'table' and action.command.command:match('%.decisions%.record$') ~= nil
    end, actions or {}))
  end)
end

local function record(client, fields)
  prompts.fill(fields, function(filled)
    vim.ui.input({ prompt = 'What else was considered? (none: leave empty) ' }, function(alternative)
      if alternative == nil then
        prompts.give_up()
        return
      end
      if vim.trim(alternative) ~= '' then
        filled.alternatives = { vim.trim(alternative) }
      end
      call.ask_client(client, 'decisions.record', filled, function(result)
        prompts.report('decisions.record', result)
      end)
    end)
  end)
end

--- Record a decision for `anchor` (path, path::symbol, folder/ or glob), else for the symbol or file at the cursor.
function M.record(anchor, first, last)
  call.with_client(function(client)
    if anchor then
      record(client, {
        title = { prompt = { message = 'What was decided?' } },
        rationale = { prompt = { message = 'Why?' } },
        files = { anchor },
      })
      return
    end
    local bufnr = vim.api.nvim_get_current_buf()
    if not path_in(client, bufnr) then
      call.say('open the file first, or name what is governed: :NeuralMind record path/to/file::symbol', vim.log.levels.WARN)
      return
    end
    local range = { start = { line = first - 1, character = 0 }, ['end'] = { line = last - 1, character = 0 } }
    offers(client, bufnr, range, function(found)
      local function begin(action)
        if action then
          record(client, action.command.arguments[1])
        end
      end
      if #found == 0 then
        call.say('nothing here can be governed by a decision.', vim.log.levels.WARN)
      elseif #found == 1 then
        begin(found[1])
      else
        vim.ui.select(found, {
          prompt = 'For what?',
          format_item = function(action)
            return action.title
          end,
        }, begin)
      end
    end)
  end)
end

--- Say that a stale decision still holds. It is refused if the decision or HEAD has changed since it was shown.
function M.restore(id)
  choose(id, { stale = true }, 'Which decision still holds?', function(client, row, head)
    local params = { ids = { row.id }, expect = { [row.id] = row.revision }, head = head }
    call.ask_client(client, 'decisions.restore', params, function(result)
      prompts.report('decisions.restore', result)
    end)
  end)
end

local REASONS = { 'The code was replaced on purpose', 'The reason no longer applies', 'It was wrong from the start' }

--- Say that a decision no longer holds. Asks for the reason unless it is given.
function M.invalidate(id, reason)
  choose(id, { stale = true, unknown = true, active = true }, 'Which decision no longer holds?', function(client, row)
    local fields = { id = row.id, expect = row.revision, reason = reason }
    fields.reason = reason or { prompt = { message = ('Why does “%s” no longer hold?'):format(row.title), choices = REASONS } }
    prompts.fill(fields, function(filled)
      call.ask_client(client, 'decisions.invalidate', filled, function(result)
        prompts.report('decisions.invalidate', result)
      end)
    end)
  end)
end

local ANY = { stale = true, unknown = true, active = true, invalidated = true }

--- Show all that happened to a decision.
function M.history(id)
  choose(id, ANY, 'Whose history?', function(client, row)
    call.ask_client(client, 'decisions.history', { id = row.id }, function(result)
      local lines = { '# ' .. result.title, '', ('%s · %s'):format(row.id, row.status:upper()), '' }
      for _, one in ipairs(result.rows) do
        local at = one.commit and (' (' .. one.commit:sub(1, 8) .. ')') or ''
        local text = vim.split(one.text, '\n')
        table.insert(lines, ('- %s%s %s'):format((one.time:sub(1, 16):gsub('T', ' ')), at, text[1]))
        for i = 2, #text do
          table.insert(lines, '  ' .. text[i])
        end
      end
      window.page('History', lines)
    end)
  end)
end

--- Show what changed since a decision was confirmed.
function M.diff(id)
  choose(id, { stale = true }, 'Which decision?', function(client, row)
    call.ask_client(client, 'decisions.diff', { id = row.id }, function(result)
      window.diff(client, result)
    end)
  end)
end

return M
