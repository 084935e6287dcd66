package healthcache

import (
	"fmt"

	"github.com/redis/go-redis/v9"
)

// All scripts go by Redis's clock, and may run twice without harm, since clients
// repeat what got no answer: a mailbox that was emptied for nobody makes this
// instance abstain, no more.

// readScript reads texts. KEYS: those to read. The answer is Redis's clock in
// milliseconds, and the texts.
var readScript = redis.NewScript(luaClock + luaBounded + `
local texts = {}
for i, key in ipairs(KEYS) do texts[i] = bounded(key) end
return {now, texts}
`)

// luaConstant is the part of a record that a renewal does not change.
const luaConstant = `
local function constant(record)
  record = string.gsub(record, '"checked_at":"[^"]*"', '', 1)
  record = string.gsub(record, ',"rtt_us":%d+', '', 1)
  return record
end
`

// luaTend takes a free lease or extends the own one. It never takes another's:
// only what cannot be a lease, because it is no string or would never end,
// counts as free. With the lease the holder keeps its last record alive, so
// that a record outlives a probe that takes long, but not its prober. mark is a
// digest of the constant part of the record that the holder wrote, if it has
// probed again since with the same result: then the rest of the record, its date
// and round-trip time, is renewed; else it is '-'. The answer is 0: the lease is another's; 1: it is held;
// 2: and the record was renewed.
const luaTend = luaConstant + `
local function tend(health, lease, token, ttl, mark, rtt)
  local holder = bounded(lease)
  if holder and redis.call('PTTL', lease) >= 0 then
    if holder ~= token then return 0 end
    redis.call('PEXPIRE', lease, ttl)
  else
    redis.call('SET', lease, token, 'PX', ttl)
  end
  local record = mark ~= '-' and bounded(health)
  if not record then
    redis.call('PEXPIRE', health, ttl)
    return 1
  end
  if string.sub(redis.sha1hex(constant(record)), 1, #mark) ~= mark then return 1 end
  record = string.gsub(record, '"checked_at":"[^"]*"', '"checked_at":"' .. rfc3339(now) .. '"', 1)
  record = string.gsub(record, '"rtt_us":%d+', '"rtt_us":' .. rtt, 1)
  redis.call('SET', health, record, 'PX', ttl)
  return 2
end
`

// luaBump gives changed shards the next numbers of the change counter; tick is a
// change that is no shard's. Only the newest thousand are kept; every shard is
// read again at times anyway. These keys, like all of the fleet's own, lie in one
// slot and have fixed names, so that the scripts name them and are given one of
// them alone, by which a cluster finds the slot. A counter that this fleet cannot
// have counted up to, it being about the moment of its making, counts as missing:
// from some numbers on it would not grow.
var luaBump = fmt.Sprintf(`
local changes, counter = '%s', '%s'
local function current()
  local found = redis.call('TYPE', counter).ok
  if found ~= 'none' and found ~= 'string' then redis.call('DEL', counter) end
  local n = tonumber(string.match(redis.call('GETRANGE', counter, 0, 20), '^[1-9]%%d*$') or '')
  return n and n < now + 31536000000 and n or nil
end
local function tick()
  local n = (current() or now) + 1
  redis.call('SET', counter, string.format('%%.0f', n))
  return n
end
local function bump(shard)
  redis.call('ZADD', changes, tick(), shard)
  redis.call('ZREMRANGEBYRANK', changes, 0, -1025)
end
`, changesKey, counterKey)

// beatScript is an instance's sign of life, and brings back what is new. KEYS: the
// instance's mail, then those of the ledger. ARGV: what it knows, the leases that
// it holds, then the digests of the ledger. What it knows is the change counter,
// the number of instances, and the milliseconds of its leases. It counts as
// alive for a little longer, so that these are free when its end is noticed. Of
// each lease it says the shard with '+' before it where it is drained, else '-',
// and the mark and the round-trip time of its record.
// The keys of the leases are named by the shards, which one server alone allows: on
// a cluster none are given. The answer is 0 where all is as the instance knows it.
// What is not of the fleet's making is swept away or passed over: instances that
// would live for ages, numbers of changes yet to come, more letters and longer ones
// than anybody writes.
var beatScript = redis.NewScript(luaClock + luaBounded + luaShort + luaOfKind + luaTend + luaBump + luaLedger + fmt.Sprintf(`
local members, generation, mail = '%s', '%s', KEYS[1]
local token = string.sub(mail, %d)
`, membersKey, generationKey, len(mailPrefix)+1) + `
local seen, known, ttl = string.match(ARGV[1], '(%S+) (%S+) (%S+)')
seen = tonumber(seen)
local kinds = {[members] = 'zset', [changes] = 'zset', [generation] = 'string', [mail] = 'set'}
for key, kind in pairs(kinds) do ofkind(key, kind) end
if redis.call('ZADD', members, math.floor(now + ttl * 13 / 12), token) == 1 then tick() end
local dead = redis.call('ZREMRANGEBYSCORE', members, '-inf', now) > 0
local forged = string.format('(%.0f', now + math.max(20 * ttl, 600000))
if redis.call('ZREMRANGEBYSCORE', members, forged, '+inf') > 0 then dead = true end
local born = redis.call('GETRANGE', generation, 0, longest)
if born == '' or #born > longest then born = nil end
if dead or not born or not current() then bump('*') end
if not born then
  born = string.format('%.0f', now) .. '-' .. string.sub(token, -10)
  redis.call('SET', generation, born)
end
local count = current()
if seen > count then seen = -1 end
local changed = {}
if seen ~= count then
  redis.call('ZREMRANGEBYSCORE', changes, string.format('(%.0f', count), '+inf')
  changed = short(redis.call('ZREVRANGEBYSCORE', changes, '+inf', string.format('(%.0f', seen), 'LIMIT', 0, most))
end
local asked = {}
local letters = redis.call('SCARD', mail)
if letters > 0 and letters <= most then asked = short(redis.call('SMEMBERS', mail)) end
if letters > 0 then redis.call('DEL', mail) end
local living = redis.call('ZCARD', members)
local quiet = seen == count and living == tonumber(known) and #asked == 0
local tended = {}
for drained, shard, mark, rtt in string.gmatch(ARGV[2] or '', '([+-])(%S+) (%S+) (%S+)') do
  local drain, left = bounded('db:drain:' .. shard), -1
  if drain then left = redis.call('PTTL', 'db:drain:' .. shard) end
  local word = tend('db:health:' .. shard, 'db:probe:{db:health:' .. shard .. '}', token, ttl, mark, rtt)
  for _, part in ipairs({word, drain, left}) do tended[#tended + 1] = part end
  quiet = quiet and not drain and drained == '-' and word == (mark == '-' and 1 or 2)
end
local news, any = ledger(2, {unpack(ARGV, 3)})
if quiet and not any then return 0 end
return {now, count, born, living, changed, asked, tended, news}
`)

// peekScript tells whether a beat has something to bring: whether the change
// counter is another than seen, or a drain key came or went. ARGV: what was seen,
// and the shards to look at, each with '+' before it where it is drained, else
// '-'. It is given no keys, which one server alone allows.
var peekScript = redis.NewScript(fmt.Sprintf(`
local count = redis.call('TYPE', '%[1]s').ok == 'string' and redis.call('GETRANGE', '%[1]s', 0, 20)
if count ~= ARGV[1] then return 1 end
for drained, shard in string.gmatch(ARGV[2], '([+-])(%%S+)') do
  local stands = redis.call('TYPE', 'db:drain:' .. shard).ok == 'string'
  if stands ~= (drained == '+') then return 1 end
end
return 0
`, counterKey))

// extendScript tends a shard whose lease is the own one, which the end of the
// token tells; 0 where it is not. KEYS: health key; the lease lies in its slot.
// ARGV: end of the token, milliseconds of the lease, mark and round-trip time of
// the record, with blanks between.
var extendScript = redis.NewScript(luaClock + luaBounded + luaTend + `
local mine, ttl, mark, rtt = string.match(ARGV[1], '(%S+) (%S+) (%S+) (%S+)')
local lease = 'db:probe:{' .. KEYS[1] .. '}'
local holder = bounded(lease)
if not holder or string.sub(holder, -#mine) ~= mine then return 0 end
return tend(KEYS[1], lease, holder, ttl, mark, rtt)
`)

// tendScript tends one shard. KEYS: health key, lease key. ARGV: token,
// milliseconds of the lease, mark and round-trip time of the record.
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
var bumpScript = redis.NewScript(luaClock + luaBump + `
for _, shard in ipairs(ARGV) do bump(shard) end
return redis.call('PUBLISH', '` + hintChannel + `', table.concat(ARGV, ' '))
`)

// askScript calls for witnesses and answers the moment of the call. Who is asked
// already and has not looked yet needs no second hint. KEYS: the mail of each.
// ARGV: shard, TTL in milliseconds, then the name of each.
var askScript = redis.NewScript(luaClock + luaOfKind + luaBump + `
local whom = {}
for i, mail in ipairs(KEYS) do
  ofkind(mail, 'set')
  if redis.call('SADD', mail, ARGV[1]) == 1 then whom[#whom + 1] = ARGV[2 + i] end
  redis.call('PEXPIRE', mail, ARGV[2])
end
if #whom > 0 then
  tick() -- for those whom the hint does not reach
  redis.call('PUBLISH', '` + hintChannel + `', '` + callForWitnesses + `' .. table.concat(whom, ' '))
end
return now
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
