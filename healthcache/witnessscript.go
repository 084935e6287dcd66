package healthcache

import "github.com/redis/go-redis/v9"

// testifyScript writes what an instance has to say about a shard, with the
// moment. KEYS: the shard's witnesses. ARGV: token, word, TTL in milliseconds.
var testifyScript = redis.NewScript(luaClock + luaOfKind + `
ofkind(KEYS[1], 'hash')
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. string.format('%.0f', now))
return redis.call('PEXPIRE', KEYS[1], ARGV[3])
`)

// hearScript gives what instances said about a shard, nothing for who did not
// speak, and none of the words that are yet to be said. KEYS: the shard's
// witnesses. ARGV: the tokens.
var hearScript = redis.NewScript(luaClock + `
local words = {}
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then return words end
for i, token in ipairs(ARGV) do
  local word = redis.call('HGET', KEYS[1], token)
  words[i] = word and #word < 64 and (tonumber(string.match(word, ' (%d+)$') or '') or now + 1) <= now and word
end
return words
`)

// membersScript lists the instances that live. KEYS: the list.
var membersScript = redis.NewScript(luaShort + `
return short(redis.call('ZREVRANGE', KEYS[1], 0, most - 1))
`)
