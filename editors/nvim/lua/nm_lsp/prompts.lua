-- Commands of code actions. Where one needs words of its user, the server leaves `{ prompt = … }` in their place.
local M = {}

local DONE = {
  ['decisions.restore'] = 'Restored',
  ['decisions.acknowledge'] = 'Hidden until the next change:',
  ['decisions.amend'] = 'Amended',
  ['decisions.supersede'] = 'Replaced',
  ['decisions.invalidate'] = 'Invalidated',
  ['decisions.record'] = 'Recorded',
}

local OTHER = 'Another reason…'

local function find(value, found, holder, key)
  if type(value) ~= 'table' then
    return found
  end
  if holder and type(value.prompt) == 'table' then
    table.insert(found, { holder = holder, key = key, prompt = value.prompt })
    return found
  end
  local keys = vim.tbl_keys(value)
  -- The title is asked for before its rationale, whatever the order of keys.
  table.sort(keys, function(a, b)
    if (a == 'title') ~= (b == 'title') then
      return a == 'title'
    end
    return tostring(a) < tostring(b)
  end)
  for _, name in ipairs(keys) do
    find(value[name], found, value, name)
  end
  return found
end

local function input(prompt, answer)
  -- One line is asked for; what is offered may have several.
  local default = prompt.value and vim.trim((prompt.value:gsub('%s+', ' ')))
  vim.ui.input({ prompt = prompt.message .. ' ', default = default }, function(text)
    text = text and vim.trim(text)
    answer(text ~= '' and text or nil)
  end)
end

local function ask_one(prompt, answer)
  if not prompt.choices then
    input(prompt, answer)
    return
  end
  local choices = vim.list_extend(vim.deepcopy(prompt.choices), { OTHER })
  vim.ui.select(choices, { prompt = prompt.message }, function(chosen)
    if chosen == OTHER then
      input(prompt, answer)
    else
      answer(chosen)
    end
  end)
end

--- Say that the user has given up a change.
function M.give_up()
  require('nm_lsp.call').say('Nothing was changed.')
end

--- Ask for every text that is missing in `arguments`, one after another; `go(filled)` unless the user gives up.
function M.fill(arguments, go)
  local filled = vim.deepcopy(arguments)
  local missing = find(filled, {})
  local function step(i)
    local one = missing[i]
    if not one then
      go(filled)
      return
    end
    ask_one(one.prompt, function(text)
      if text == nil then
        M.give_up()
        return
      end
      one.holder[one.key] = text
      step(i + 1)
    end)
  end
  step(1)
end

--- Say what a change has done.
function M.report(name, result)
  local rows = result.decisions or { result.decision }
  local call = require('nm_lsp.call')
  if #rows == 1 then
    call.say(('%s “%s” (%s).'):format(DONE[name], rows[1].title, rows[1].id))
  else
    call.say(('%s %d decisions.'):format(DONE[name], #rows))
  end
  if result.similar and #result.similar > 0 then
    local like = result.similar[1]
    call.say(('“%s” (%s, %s) is like it: %s'):format(like.decision.title, like.decision.id, like.decision.status, like.why))
  end
end

local function run(name)
  return function(command, context)
    local client = vim.lsp.get_client_by_id(context.client_id)
    if not client then
      return
    end
    M.fill(command.arguments or {}, function(arguments)
      local params = { command = command.command, arguments = arguments }
      require('nm_lsp.call').send(client, 'workspace/executeCommand', params, function(result)
        if name == 'decisions.diff' then
          require('nm_lsp.window').diff(client, result)
        else
          M.report(name, result)
        end
      end)
    end)
  end
end

--- The handlers of commands that a client runs itself, by their full name.
function M.commands()
  local handlers = { ['neuralmind.decisions.diff'] = run('decisions.diff') }
  for name in pairs(DONE) do
    handlers['neuralmind.' .. name] = run(name)
  end
  return handlers
end

return M
