package healthcache

import (
	"fmt"

	"github.com/redis/go-redis/v9"
)

// All scripts go by Redis's clock, and may run twice without harm, since clients
// repeat what got no answer: a mailbox that was emptied for nobody makes this
// instance abstain, no more.

// luaClock gives now in milliseconds, and rfc3339 to write such a moment.
const luaClock = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
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
`

// luaBounded reads a text, false where there is none, and no more of it than shows
// that it is too long: whoever put megabytes into a key shall not have every
// instance fetch them.
var luaBounded = fmt.Sprintf(`
local function bounded(key)
  if redis.call('TYPE', key).ok ~= 'string' then return false end
  return redis.call('GETRANGE', key, 0, %d)
end
`, maxRecordBytes)

// readScript reads texts. KEYS: those to read. The answer is Redis's clock in
// milliseconds, and the texts.
var readScript = redis.NewScript(luaClock + luaBounded + `
local texts = {}
for i, key in ipairs(KEYS) do texts[i] = bounded(key) end
return {now, texts}
`)

// luaTend takes a free lease or extends the own one. It never takes another's:
// only what cannot be a lease, because it is no string or would never end,
// counts as free. With the lease the holder keeps its last record alive, so
// that a record outlives a probe that takes long, but not its prober. head is
// how the record begins that the holder wrote, if it has probed again since
// with the same result: then only the record's date and round-trip time are
// renewed. The answer is 0: the lease is another's; 1: it is held; 2: and the
// record was renewed.
const luaTend = `
local function tend(health, lease, token, ttl, head, rtt)
  local holder = bounded(lease)
  if holder and redis.call('PTTL', lease) >= 0 then
    if holder ~= token then return 0 end
    redis.call('PEXPIRE', lease, ttl)
  else
    redis.call('SET', lease, token, 'PX', ttl)
  end
  local record = head ~= '' and bounded(health)
  if not record then
    redis.call('PEXPIRE', health, ttl)
    return 1
  end
  if string.sub(record, 1, #head) ~= head then return 1 end
  record = string.gsub(record, '"checked_at":"[^"]*"', '"checked_at":"' .. rfc3339(now) .. '"', 1)
  record = string.gsub(record, '"rtt_us":%d+', '"rtt_us":' .. rtt, 1)
  redis.call('SET', health, record, 'PX', ttl)
  return 2
end
`

// luaBump gives changed shards the next numbers of the change counter. Only the
// newest thousand are kept; every shard is read again at times anyway.
const luaBump = `
local function top(changes)
  local last = redis.call('ZREVRANGE', changes, 0, 0, 'WITHSCORES')
  return tonumber(last[2] or '0')
end
local function bump(changes, shard)
  redis.call('ZADD', changes, top(changes) + 1, shard)
  redis.call('ZREMRANGEBYRANK', changes, 0, -1025)
end
`

// beatScript is an instance's sign of life, and brings back what is new. KEYS:
// members, changes, generation, the instance's mail, then health, lease and
// drain key of each shard that it holds, then those of the ledger. ARGV: token,
// milliseconds for which the instance counts as alive, milliseconds of its leases,
// the change counter that it saw last, the number of leases, then the head and the
// round-trip time of each record, then the digests of the ledger.
var beatScript = redis.NewScript(luaClock + luaBounded + luaTend + luaBump + luaLedger + `
local members, changes, generation, mail = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, alive, ttl, seen = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local leases = tonumber(ARGV[5])
local kinds = {'zset', 'zset', 'string', 'set'}
for i, kind in ipairs(kinds) do
  local found = redis.call('TYPE', KEYS[i]).ok
  if found ~= 'none' and found ~= kind then redis.call('DEL', KEYS[i]) end
end
redis.call('ZADD', members, now + alive, token)
if redis.call('ZREMRANGEBYSCORE', members, '-inf', now) > 0 then bump(changes, '*') end
local born = redis.call('GET', generation)
if not born then
  born = string.format('%.0f', now) .. '-' .. string.sub(token, -10)
  redis.call('SET', generation, born)
end
local count = top(changes)
if seen > count then seen = -1 end
local changed = {}
if seen ~= count then changed = redis.call('ZRANGEBYSCORE', changes, '(' .. seen, '+inf') end
local asked = redis.call('SMEMBERS', mail)
if #asked > 0 then redis.call('DEL', mail) end
local tended = {}
for i = 5, 4 + 3 * leases, 3 do
  local drain, left = bounded(KEYS[i + 2]), -1
  if drain then left = redis.call('PTTL', KEYS[i + 2]) end
  tended[#tended + 1] = tend(KEYS[i], KEYS[i + 1], token, ttl, ARGV[#tended / 3 * 2 + 6], ARGV[#tended / 3 * 2 + 7])
  tended[#tended + 1] = drain
  tended[#tended + 1] = left
end
local digests = {unpack(ARGV, 6 + 2 * leases)}
return {now, count, born, redis.call('ZCARD', members), changed, asked, tended, ledger(5 + 3 * leases, digests)}
`)

// tendScript tends one shard. KEYS: health key, lease key. ARGV: token,
// milliseconds of the lease, head and round-trip time of the record.
var tendScript = redis.NewScript(luaClock + luaBounded + luaTend + `
return tend(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
`)

// reportScript writes a record if the lease is held, and answers its "since",
// or an empty text if the lease is another's. KEYS: health key, lease key. ARGV:
// token, TTL in milliseconds, state, milliseconds since the state was entered,
// the "since" that was written before for the same state (may be empty), the
// rest of the record.
var reportScript = redis.NewScript(luaClock + luaBounded + `
if bounded(KEYS[2]) ~= ARGV[1] then return '' end
local checked = rfc3339(now)
local since = ARGV[5]
if since == '' or since > checked then since = rfc3339(now - tonumber(ARGV[4])) end
local record = '{"state":"' .. ARGV[3] .. '","since":"' .. since .. '","checked_at":"' .. checked .. '"' .. ARGV[6]
redis.call('SET', KEYS[1], record, 'PX', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return since
`)

// takeOverScript takes a lease that its holder has offered. KEYS: health key, lease
// key. ARGV: token, milliseconds of the lease, the holder's token.
var takeOverScript = redis.NewScript(luaBounded + `
if bounded(KEYS[2]) ~= ARGV[3] then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
`)

// releaseScript hands the own lease back. KEYS: health key, lease key. ARGV: token.
var releaseScript = redis.NewScript(luaBounded + `
if bounded(KEYS[2]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[2])
`)

// bumpScript tells the fleet that keys changed. KEYS: changes. ARGV: the shards.
var bumpScript = redis.NewScript(luaBump + `
for _, shard in ipairs(ARGV) do bump(KEYS[1], shard) end
return redis.call('PUBLISH', '` + hintChannel + `', table.concat(ARGV, ' '))
`)

// askScript calls for witnesses and answers the moment of the call. Who is asked
// already and has not looked yet needs no second hint. KEYS: the mail of each.
// ARGV: shard, TTL in milliseconds, then the name of each.
var askScript = redis.NewScript(luaClock + `
local whom = {}
for i, mail in ipairs(KEYS) do
  if redis.call('SADD', mail, ARGV[1]) == 1 then whom[#whom + 1] = ARGV[2 + i] end
  redis.call('PEXPIRE', mail, ARGV[2])
end
if #whom > 0 then
  redis.call('PUBLISH', '` + hintChannel + `', '` + callForWitnesses + `' .. table.concat(whom, ' '))
end
return now
`)

// testifyScript writes what an instance has to say about a shard, with the
// moment. KEYS: the shard's witnesses. ARGV: token, word, TTL in milliseconds.
var testifyScript = redis.NewScript(luaClock + `
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. string.format('%.0f', now))
return redis.call('PEXPIRE', KEYS[1], ARGV[3])
`)

// restoreScript writes a drain again that was lost, once in a generation of the
// fleet's keys, and answers whether it did. KEYS: drain key, key of restoring.
// ARGV: reason, milliseconds left (0: no end), generation, milliseconds for
// which a late instance may try.
var restoreScript = redis.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if redis.call('TYPE', KEYS[2]).ok == 'string' and redis.call('GET', KEYS[2]) == ARGV[3] then return 0 end
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
if ARGV[2] == '0' then redis.call('SET', KEYS[1], ARGV[1]) else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return 1
`)
