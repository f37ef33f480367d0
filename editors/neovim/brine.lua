-- Serves SLS files and templates by `brine lsp`. Neovim 0.11 and newer; older ones take the second part.
-- Copy it to ~/.config/nvim/plugin/brine.lua.

local command = { vim.g.brine_path or 'brine', 'lsp' }
local markers = { 'brine.toml', '.git' }

-- `.sls` is also the ending of Scheme libraries.
if vim.fn.has('nvim-0.8') == 1 then
  vim.filetype.add({ extension = { sls = 'sls', jinja = 'jinja', j2 = 'jinja' } })
else
  vim.cmd([[autocmd BufRead,BufNewFile *.sls set filetype=sls]])
  vim.cmd([[autocmd BufRead,BufNewFile *.jinja,*.j2 set filetype=jinja]])
end

vim.api.nvim_create_autocmd('FileType', {
  pattern = 'sls',
  callback = function(event)
    vim.bo[event.buf].syntax = 'yaml'
    vim.bo[event.buf].commentstring = '# %s'
    vim.bo[event.buf].expandtab = true
    vim.bo[event.buf].shiftwidth = 2
  end,
})

if vim.lsp.config then
  vim.lsp.config('brine', { cmd = command, filetypes = { 'sls', 'jinja' }, root_markers = markers })
  vim.lsp.enable('brine')
  return
end

-- Returns the nearest directory above a file with one of the markers, or its own.
local function root_of(path)
  local own = vim.fn.fnamemodify(path, ':p:h')
  local directory = own
  while true do
    for _, marker in ipairs(markers) do
      local found = directory .. '/' .. marker
      if vim.fn.filereadable(found) == 1 or vim.fn.isdirectory(found) == 1 then
        return directory
      end
    end
    local above = vim.fn.fnamemodify(directory, ':h')
    if above == directory then
      return own
    end
    directory = above
  end
end

local clients = {}

vim.api.nvim_create_autocmd('FileType', {
  pattern = { 'sls', 'jinja' },
  callback = function(event)
    local root = root_of(vim.api.nvim_buf_get_name(event.buf))
    if not clients[root] then
      clients[root] = vim.lsp.start_client({
        name = 'brine',
        cmd = command,
        root_dir = root,
        workspace_folders = { { uri = vim.uri_from_fname(root), name = root } },
        on_exit = function()
          clients[root] = nil
        end,
      })
    end
    if clients[root] then
      vim.lsp.buf_attach_client(event.buf, clients[root])
    end
  end,
})
