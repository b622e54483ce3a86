-- Requests to the server, and its errors in words. Nothing here waits.
local config = require('nm_lsp.config')
local server = require('nm_lsp.server')

local M = {}

local METHOD_NOT_FOUND = -32601
local CANCELLED = -32800

function M.say(text, level)
  vim.notify('nm_lsp: ' .. text, level or vim.log.levels.INFO)
end

--- What went wrong, for a person: the server's message and what repairs it.
function M.in_words(err)
  if err.code == METHOD_NOT_FOUND then
    return 'the language server is older than this plugin and does not know this call. Install a newer one, as :checkhealth nm_lsp says'
  end
  local hint = type(err.data) == 'table' and err.data.hint or nil
  local text = tostring(err.message)
  return type(hint) == 'string' and not text:find(hint, 1, true) and (text .. ' ' .. hint) or text
end

--- Ask the client for `neuralmind/<name>`; `answer(result)` gets its result, an error is a message.
function M.ask_client(client, name, params, answer)
  M.send(client, 'neuralmind/' .. name, next(params) and params or vim.empty_dict(), answer)
end

--- Send any request; `answer(result)` gets its result, an error or no answer in time is a message.
function M.send(client, method, params, answer)
  local done = false
  local sent, id = client:request(method, params, function(err, result)
    if done then
      return
    end
    done = true
    if err then
      if err.code ~= CANCELLED then
        M.say(M.in_words(err), vim.log.levels.ERROR)
      end
      return
    end
    answer(result)
  end)
  if not sent then
    M.say('the language server is gone. :NeuralMind restart starts it again.', vim.log.levels.ERROR)
    return
  end
  vim.defer_fn(function()
    if not done and not client:is_stopped() then
      done = true
      client:cancel_request(id)
      M.say(
        ('no answer within %g s, so the question was withdrawn. :NeuralMind status says what the server is doing.'):format(config.get().timeout_s),
        vim.log.levels.WARN
      )
    end
  end, config.get().timeout_s * 1000)
end

--- Run `use(client)` with the client that answers for a buffer (the current one), once it has started.
function M.with_client(use, bufnr)
  local client, why = server.client_of(bufnr or vim.api.nvim_get_current_buf())
  if not client then
    M.say((why or 'the language server could not be started') .. '.', vim.log.levels.WARN)
    return
  end
  server.when_ready(client, use)
end

--- Ask whoever answers for the current buffer; `answer(result, client)`.
function M.ask(name, params, answer)
  M.with_client(function(client)
    M.ask_client(client, name, params, function(result)
      answer(result, client)
    end)
  end)
end

return M
