package healthcache

import "github.com/redis/go-redis/v9"

// Every script takes KEYS = health key, lease key and ARGV[1] = lease token,
// and may run twice without harm, since clients repeat what got no answer.

// holdScript takes a free lease or extends the own one, for ARGV[2]
// milliseconds, and answers whether it is held. It never takes another's: only
// what cannot be a lease, because it is no string or would never end, counts
// as free. With the lease the holder keeps its last record alive, so that a
// record outlives a probe that takes long, but not its prober.
var holdScript = redis.NewScript(`
local kind = redis.call('TYPE', KEYS[2]).ok
if kind == 'string' and redis.call('PTTL', KEYS[2]) >= 0 then
  if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 1
`)

// reportScript writes a record if the lease is held, and answers its "since",
// or an empty text if the lease is another's. ARGV: token, TTL in milliseconds,
// state, milliseconds since the state was entered, the "since" that was written
// before for the same state (may be empty), the rest of the record.
// All dates are by Redis's own clock.
var reportScript = redis.NewScript(`
local function rfc3339(ms)
  local rest = math.floor(ms / 1000)
  local days, year, month = math.floor(rest / 86400), 1970, 1
  rest = rest % 86400
  local function leap() return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0) end
  while days >= (leap() and 366 or 365) do
    days = days - (leap() and 366 or 365)
    year = year + 1
  end
  local lengths = {31, leap() and 29 or 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
  while days >= lengths[month] do
    days = days - lengths[month]
    month = month + 1
  end
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, days + 1,
    math.floor(rest / 3600), math.floor(rest % 3600 / 60), rest % 60, ms % 1000)
end

if redis.call('TYPE', KEYS[2]).ok ~= 'string' or redis.call('GET', KEYS[2]) ~= ARGV[1] then return '' end
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local checked = rfc3339(now)
local since = ARGV[5]
if since == '' or since > checked then since = rfc3339(now - tonumber(ARGV[4])) end
local record = '{"state":"' .. ARGV[3] .. '","since":"' .. since .. '","checked_at":"' .. checked .. '"' .. ARGV[6]
redis.call('SET', KEYS[1], record, 'PX', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return since
`)

// releaseScript hands the own lease back.
var releaseScript = redis.NewScript(`
if redis.call('TYPE', KEYS[2]).ok ~= 'string' or redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[2])
`)
