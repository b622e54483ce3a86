-- What the statusline shows. The server says when something has changed, so that nothing is asked for in vain.
local config = require('nm_lsp.config')

local M = {}

-- By id of a client: its latest status, and whether a question for it is on its way.
local known, asking, again = {}, {}, {}

--- Ask the server for its status. Questions that come while one is on its way become one more.
function M.refresh(client)
  if asking[client.id] then
    again[client.id] = true
    return
  end
  asking[client.id] = true
  local sent = client:request('neuralmind/status', vim.empty_dict(), function(err, result)
    asking[client.id] = nil
    if not err then
      local before = known[client.id]
      known[client.id] = result
      local is_same = before and before.head == result.head and before.ready == result.ready
      if not (is_same and vim.deep_equal(before.decisions, result.decisions)) then
        require('nm_lsp.lens').renew(client)
      end
      vim.cmd.redrawstatus()
    end
    if again[client.id] then
      again[client.id] = nil
      M.refresh(client)
    end
  end)
  if not sent then
    asking[client.id] = nil
  end
end

--- The state of the memory in a few words. '' where there is none.
function M.text(bufnr)
  local client = vim.lsp.get_clients({ name = 'nm_lsp', bufnr = bufnr or 0 })[1]
  local status = client and client.root_dir and known[client.id]
  if not status then
    return ''
  end
  local words = {}
  if not status.ready then
    local progress = status.progress
    local percent = progress.total > 0 and math.floor(100 * progress.done / progress.total)
    table.insert(words, percent and ('indexing %d%%%%'):format(percent) or 'indexing')
  end
  local stale = status.decisions.stale or 0
  if stale > 0 then
    table.insert(words, stale .. ' stale')
  end
  if #words == 0 then
    words = { 'ready' }
  end
  local label = config.get().label
  return (label ~= '' and label .. ': ' or '') .. table.concat(words, ', ')
end

return M
