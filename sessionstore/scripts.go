package sessionstore

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"time"

	"github.com/redis/go-redis/v9"
)

// renewingTTL is how long a taken session lingers for the repeat of a script
// whose answer got lost.
const renewingTTL = 10 * time.Second

// go-redis sends a script again when its answer got lost, so each script does
// the right thing when it runs twice. None but scriptCreate brings a key into
// being. "Live" is a hash with a version that nobody is renewing.

// scriptCreate stores a new session.
// ARGV: TTL in ms, the creator's nonce, then fields and values.
// Answers 1, or 0 when somebody else's session has the key.
var scriptCreate = redis.NewScript(`
local nonce = redis.call('HGET', KEYS[1], 'nonce')
if nonce then
  return nonce == ARGV[2] and 1 or 0
end
for i = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
`)

// scriptSave applies a delta to a live session and sets its TTL; without
// fields it only touches the TTL.
// ARGV: TTL in ms or 0 to leave it, number of fields to set, fields and values, fields to delete.
// Answers 1, or 0 when the session is gone.
var scriptSave = redis.NewScript(`
local live = redis.call('HMGET', KEYS[1], 'version', 'renewing')
if not live[1] or live[2] then
  return 0
end
local last = 2 + 2 * tonumber(ARGV[2])
for i = 3, last, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
for i = last + 1, #ARGV do
  redis.call('HDEL', KEYS[1], ARGV[i])
end
if #ARGV > 2 then
  redis.call('HINCRBY', KEYS[1], 'version', 1)
end
if ARGV[1] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return 1
`)

// scriptClaim changes the route of a live session by compare-and-set.
// ARGV: expected epoch, shard and nonce; then the new epoch, shard, home,
// group and nonce. Answers won, gone, or lost with the route that stands.
// Finding the own nonce is success: this is a repeat.
var scriptClaim = redis.NewScript(`
local s = redis.call('HMGET', KEYS[1], 'version', 'renewing',
  'epoch', 'db_server', 'nonce', 'home', 'group')
if not s[1] or s[2] then
  return {'gone'}
end
local epoch, shard, nonce = s[3] or '0', s[4] or '', s[5] or ''
if nonce == ARGV[8] then
  return {'won'}
end
if epoch ~= ARGV[1] or shard ~= ARGV[2] or nonce ~= ARGV[3] then
  return {'lost', epoch, shard, nonce, s[6] or '', s[7] or ''}
end
redis.call('HSET', KEYS[1], 'epoch', ARGV[4], 'db_server', ARGV[5],
  'home', ARGV[6], 'group', ARGV[7], 'nonce', ARGV[8])
return {'won'}
`)

// scriptTake marks a session as being renewed, which ends it for everybody
// else, and answers its content; nothing when it is gone or taken. Deleting it
// at once would tell a repeat that it had been logged out.
// ARGV: the taker's nonce, TTL in ms.
var scriptTake = redis.NewScript(`
local s = redis.call('HMGET', KEYS[1], 'version', 'renewing')
if not s[1] or (s[2] and s[2] ~= ARGV[1]) then
  return {}
end
redis.call('HSET', KEYS[1], 'renewing', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('HGETALL', KEYS[1])
`)

// runCreate stores fields under key. False: the key is taken.
func (s *store) runCreate(ctx context.Context, key, nonce string, ttl time.Duration, fields []any) (bool, error) {
	args := append([]any{ttl.Milliseconds(), nonce}, fields...)
	return scriptCreate.Run(ctx, s.rdb, []string{key}, args...).Bool()
}

// runSave applies set and del to the session under key; ttl 0 leaves its TTL
// alone. False: it is gone.
func (s *store) runSave(ctx context.Context, key string, ttl time.Duration, set []any, del []string) (bool, error) {
	args := make([]any, 0, 2+len(set)+len(del))
	args = append(args, ttl.Milliseconds(), len(set)/2)
	args = append(args, set...)
	for _, name := range del {
		args = append(args, name)
	}
	return scriptSave.Run(ctx, s.rdb, []string{key}, args...).Bool()
}

// outcome is what became of a claim.
type outcome string

const (
	claimWon  outcome = "won"
	claimLost outcome = "lost"
	claimGone outcome = "gone"
)

// runClaim changes the route under key from base to next. stands and its nonce
// are set when the claim is lost.
func (s *store) runClaim(ctx context.Context, key string, base Route, baseNonce string, next Route, nonce string) (o outcome, stands Route, standsNonce string, err error) {
	reply, err := scriptClaim.Run(ctx, s.rdb, []string{key},
		formatEpoch(base.Epoch), base.Shard, baseNonce,
		formatEpoch(next.Epoch), next.Shard, next.Home, next.Group, nonce,
	).StringSlice()
	switch {
	case err != nil:
		return "", Route{}, "", err
	case len(reply) == 6:
		return claimLost, parseRoute(reply[5], reply[2], reply[4], reply[1]), reply[3], nil
	case len(reply) == 1:
		return outcome(reply[0]), Route{}, "", nil
	}
	return "", Route{}, "", errMalformed
}

// runTake marks the session under key as being renewed and returns its content.
// False: it is gone.
func (s *store) runTake(ctx context.Context, key, nonce string) (record, bool, error) {
	reply, err := scriptTake.Run(ctx, s.rdb, []string{key}, nonce, renewingTTL.Milliseconds()).StringSlice()
	if err != nil {
		return record{}, false, err
	}
	fields := make(map[string]string, len(reply)/2)
	for i := 0; i+1 < len(reply); i += 2 {
		fields[reply[i]] = reply[i+1]
	}
	delete(fields, fieldRenewing)
	rec, ok := parseRecord(fields, time.Now())
	return rec, ok, nil
}

// newNonce returns a name for one write, unlike every other.
func newNonce() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}
