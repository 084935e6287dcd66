package healthcache

import "github.com/redis/go-redis/v9"

// luaLedger gives the values of keys that are not as they were: for each key
// from first on, whose digest stands in digests, its value, or nothing; and
// whether there are any. It needs luaBounded.
const luaLedger = `
local function ledger(first, digests)
  local news, any = {}, false
  for i = first, #KEYS do
    local value = bounded(KEYS[i]) or ''
    local other = string.sub(redis.sha1hex(value), 1, 16) ~= digests[#news + 1]
    news[#news + 1] = other and value
    any = any or other
  end
  return news, any
end
`

// moveWriterScript replaces the record of a writer by another, if it is still
// what the caller read, and answers what stands there afterwards. It finds its
// own record when it is repeated. KEYS: the record, and the mark of the last
// move. ARGV: what was read (may be empty), the new record without its date, the
// milliseconds for which no other move may follow (0: this is none that
// has to wait for that). A mark that somebody else wrote ends in time as well.
var moveWriterScript = redis.NewScript(luaClock + luaBounded + `
local record, mark = KEYS[1], KEYS[2]
local stands = bounded(record) or ''
local kind = redis.call('TYPE', record).ok
if kind ~= 'string' and kind ~= 'none' then redis.call('DEL', record) end
if stands ~= ARGV[1] then return stands end
if ARGV[3] ~= '0' and redis.call('EXISTS', mark) == 1 then
  local left = redis.call('PTTL', mark)
  if left < 0 or left > tonumber(ARGV[3]) then redis.call('PEXPIRE', mark, ARGV[3]) end
  return stands
end
stands = ARGV[2] .. ',"since":"' .. rfc3339(now) .. '"}'
redis.call('SET', record, stands)
if ARGV[3] ~= '0' then redis.call('SET', mark, '1', 'PX', ARGV[3]) end
return stands
`)
