-- What is shown: a floating page with places to go to, quickfix and location lists, and a comparison.
local config = require('nm_lsp.config')

local M = {}

local MAX_WIDTH = 100

local function measure(lines)
  local width = 40
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  width = math.min(width + 2, MAX_WIDTH, vim.o.columns - 4)
  local height = 0
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / width))
  end
  return width, math.max(1, math.min(height, math.floor(vim.o.lines * 0.8) - 2))
end

local function border()
  if config.get().border then
    return config.get().border
  end
  return vim.o.winborder == '' and 'rounded' or nil
end

--- Show Markdown in a floating window that has the focus. `go` is what <CR> does by line: a function each.
--- `to_list` is what <C-q> does. q and <Esc> close it. Returns the buffer and the window.
function M.page(title, lines, go, to_list)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].filetype = 'markdown'
  local width, height = measure(lines)
  local winid = vim.api.nvim_open_win(bufnr, true, {
    relative = 'editor',
    width = width,
    height = height,
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.floor((vim.o.columns - width) / 2),
    border = border(),
    style = 'minimal',
    title = ' ' .. title .. ' ',
    title_pos = 'center',
    footer = go and next(go) and ' <CR> go to the place · <C-q> list of places · q close ' or ' q close ',
    footer_pos = 'right',
  })
  vim.wo[winid].wrap = true
  vim.wo[winid].linebreak = true
  vim.wo[winid].conceallevel = 2
  local function close()
    if vim.api.nvim_win_is_valid(winid) then
      vim.api.nvim_win_close(winid, true)
    end
  end
  local function map(key, run, desc)
    vim.keymap.set('n', key, run, { buffer = bufnr, nowait = true, desc = desc })
  end
  map('q', close, 'Close')
  map('<Esc>', close, 'Close')
  map('<CR>', function()
    local act = go and go[vim.api.nvim_win_get_cursor(winid)[1]]
    if act then
      close()
      act()
    end
  end, 'Go to the place under the cursor')
  if to_list then
    map('<C-q>', function()
      close()
      to_list()
    end, 'Put the places in the quickfix list')
  end
  return bufnr, winid
end

--- Open a place of the server's.
function M.open(client, place)
  vim.lsp.util.show_document({ uri = place.uri, range = place.range }, client.offset_encoding, { focus = true })
end

--- Items of a quickfix or location list; `text(place)` is what each says.
function M.items(client, places, text)
  local items = {}
  for _, place in ipairs(places) do
    local item = vim.lsp.util.locations_to_items({ { uri = place.uri, range = place.range } }, client.offset_encoding)[1]
    if item then
      item.text = text(place)
      table.insert(items, item)
    end
  end
  return items
end

--- Show items in the quickfix list, or with `is_local` in the location list of the window.
function M.list(title, items, is_local)
  if is_local then
    vim.fn.setloclist(0, {}, ' ', { title = title, items = items })
    vim.cmd('lopen')
  else
    vim.fn.setqflist({}, ' ', { title = title, items = items })
    vim.cmd('botright copen')
  end
end

local function scratch(name, text, filetype)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, vim.split((text:gsub('\n$', '')), '\n'))
  pcall(vim.api.nvim_buf_set_name, bufnr, name)
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].filetype = filetype
  return bufnr
end

local function path_of(client, result)
  if not (result.path and client.root_dir) then
    return nil
  end
  local path = vim.fs.joinpath(client.root_dir, result.path)
  return vim.uv.fs_stat(path) and path or nil
end

--- Show what changed since a decision was confirmed: both texts side by side in a tab, or the difference as text.
function M.diff(client, result)
  local path = path_of(client, result)
  if not (result.seen and path) then
    M.page('What changed since ' .. result.id, vim.split('```diff\n' .. result.text .. '\n```', '\n'))
    return
  end
  vim.cmd.tabedit(vim.fn.fnameescape(path))
  local filetype = vim.bo.filetype
  vim.cmd.diffthis()
  local when = result.seenCommit and result.seenCommit:sub(1, 8) or 'when it was confirmed'
  local seen = scratch(('%s of %s (%s)'):format(result.path, result.id, when), result.seen, filetype)
  vim.cmd('leftabove vertical sbuffer ' .. seen)
  vim.cmd.diffthis()
  vim.cmd.wincmd('p')
end

return M
