package sessionstore

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// renewalLease is how long a renewal that does not come to its end keeps the
// old session from everybody. A save with all its steps ends well before.
const renewalLease = 5 * time.Second

// longestMark is how far off the end of a renewal's mark can be. One that ends
// later was made by a clock far ahead, or by no renewal, and holds nobody off.
const longestMark = time.Minute

// go-redis sends a script again when its answer got lost, so each script does
// the right thing when it runs twice, and also when other requests came in
// between. None but scriptCreate brings a key into being. "Live" is a hash with
// a version that no renewal has taken.

// luaTaken tells whether a renewal holds the session, as isTaken does.
var luaTaken = fmt.Sprintf(`
local function taken(mark, now)
  local left = mark and tonumber(string.match(mark, '^[^ ]* (%%d+)$') or 0) - tonumber(now)
  return left and left > 0 and left <= %d
end
`, longestMark.Milliseconds())

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

// scriptSave applies a delta to a live session and sets its TTL. It keeps the
// names of the last six saves, and a save that finds its own there has succeeded:
// running again it would overwrite what others stored since.
// ARGV: time now, the save's name, TTL in ms or 0 to leave it, number of
// fields to set, fields and values, fields to delete.
// Answers 1, or 0 when the session is gone.
var scriptSave = redis.NewScript(luaTaken + `
local s = redis.call('HMGET', KEYS[1], 'version', 'renewing', 'saves')
if not s[1] or taken(s[2], ARGV[1]) then
  return 0
end
local saves, name = s[3] or '', ARGV[2]
for i = 1, #saves, #name do
  if string.sub(saves, i, i + #name - 1) == name then
    return 1
  end
end
local last = 4 + 2 * tonumber(ARGV[4])
for i = 5, last, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
for i = last + 1, #ARGV do
  redis.call('HDEL', KEYS[1], ARGV[i])
end
if type(redis.pcall('HINCRBY', KEYS[1], 'version', 1)) ~= 'number' then
  redis.call('HSET', KEYS[1], 'version', 1) -- nobody can count on from what was there
end
redis.call('HSET', KEYS[1], 'saves', string.sub(name .. saves, 1, 6 * #name))
if ARGV[3] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1
`)

// scriptTouch sets the TTL of a live session.
// ARGV: time now, TTL in ms. Answers 1, or 0 when the session is gone.
var scriptTouch = redis.NewScript(luaTaken + `
local s = redis.call('HMGET', KEYS[1], 'version', 'renewing')
if not s[1] or taken(s[2], ARGV[1]) then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)

// scriptClaim changes the route of a live session by compare-and-set.
// ARGV: time now; expected epoch, shard and nonce; then the new epoch, shard,
// home, group, nonce and settled. Answers won, gone, or lost with the route that stands.
// Finding the own nonce is success: this is a repeat.
var scriptClaim = redis.NewScript(luaTaken + `
local s = redis.call('HMGET', KEYS[1], 'version', 'renewing',
  'epoch', 'db_server', 'nonce', 'home', 'group', 'settled')
if not s[1] or taken(s[2], ARGV[1]) then
  return {'gone'}
end
local epoch, shard, nonce = s[3] or '0', s[4] or '', s[5] or ''
if shard == '' or #epoch > 19 or not string.match(epoch, '^[1-9]%d*$') then
  epoch = '0' -- as whoever loads the route reads it
end
if nonce == ARGV[9] then
  return {'won'}
end
if epoch ~= ARGV[2] or shard ~= ARGV[3] or nonce ~= ARGV[4] then
  return {'lost', epoch, shard, nonce, s[6] or '', s[7] or '', s[8] or ''}
end
redis.call('HSET', KEYS[1], 'epoch', ARGV[5], 'db_server', ARGV[6],
  'home', ARGV[7], 'group', ARGV[8], 'nonce', ARGV[9])
if ARGV[10] ~= '' then
  redis.call('HSET', KEYS[1], 'settled', ARGV[10])
elseif s[8] then
  redis.call('HDEL', KEYS[1], 'settled')
end
return {'won'}
`)

// scriptTake marks a session as being renewed, which ends it for everybody
// else until the mark ends, and answers its content; nothing when it is gone or
// taken by another renewal. Deleting it at once would tell a repeat that it had
// been logged out, and would cost the login if the new one cannot be stored.
// ARGV: time now, the taker's nonce, the mark.
var scriptTake = redis.NewScript(luaTaken + `
local s = redis.call('HMGET', KEYS[1], 'version', 'renewing')
if not s[1] then
  return {}
end
local mine = s[2] and string.sub(s[2], 1, #ARGV[2]) == ARGV[2]
if not mine and taken(s[2], ARGV[1]) then
  return {}
end
redis.call('HSET', KEYS[1], 'renewing', ARGV[3])
return redis.call('HGETALL', KEYS[1])
`)

// scriptRelease ends the mark of a renewal that failed.
// ARGV: the taker's nonce.
var scriptRelease = redis.NewScript(`
local mark = redis.call('HGET', KEYS[1], 'renewing')
if mark and string.sub(mark, 1, #ARGV[1]) == ARGV[1] then
  redis.call('HDEL', KEYS[1], 'renewing')
end
return 1
`)

// scriptEnd deletes a session that holds a value.
// ARGV: time now, the value's field, the value. Answers ended; moving when a
// renewal may be about to store the session under another key; other when it
// holds another value. A session that is gone may have been ended by this same
// script, whose first answer got lost, while it was moving.
var scriptEnd = redis.NewScript(luaTaken + `
local s = redis.call('HMGET', KEYS[1], ARGV[2], 'renewing', 'version')
if not s[3] then
  return 'moving'
elseif s[1] ~= ARGV[3] then
  return 'other'
end
redis.call('DEL', KEYS[1])
return taken(s[2], ARGV[1]) and 'moving' or 'ended'
`)

// run runs script on key, unless the server of key does not answer.
func (s *store) run(ctx context.Context, script *redis.Script, key string, args ...any) *redis.Cmd {
	pass, err := s.circuit.enter(ctx, key)
	if err != nil {
		refused := redis.NewCmd(ctx)
		refused.SetErr(err)
		return refused
	}
	cmd := script.Run(ctx, s.rdb, []string{key}, args...)
	s.circuit.leave(ctx, pass, key, cmd.Err())
	return cmd
}

// runCreate stores fields under key. False: the key is taken.
func (s *store) runCreate(ctx context.Context, key, nonce string, ttl time.Duration, fields []any) (bool, error) {
	args := append([]any{ttl.Milliseconds(), nonce}, fields...)
	return s.run(ctx, scriptCreate, key, args...).Bool()
}

// runSave applies set and del to the session under key; ttl 0 leaves its TTL
// alone. False: it is gone.
func (s *store) runSave(ctx context.Context, key string, ttl time.Duration, set []any, del []string) (bool, error) {
	args := make([]any, 0, 4+len(set)+len(del))
	args = append(args, time.Now().UnixMilli(), newSaveName(), ttl.Milliseconds(), len(set)/2)
	args = append(args, set...)
	for _, name := range del {
		args = append(args, name)
	}
	return s.run(ctx, scriptSave, key, args...).Bool()
}

// runTouch sets the TTL of the session under key. False: it is gone.
func (s *store) runTouch(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	return s.run(ctx, scriptTouch, key, time.Now().UnixMilli(), ttl.Milliseconds()).Bool()
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
	reply, err := s.run(ctx, scriptClaim, key, time.Now().UnixMilli(),
		formatEpoch(base.Epoch), base.Shard, baseNonce,
		formatEpoch(next.Epoch), next.Shard, next.Home, next.Group, nonce, formatSettled(next.Settled),
	).StringSlice()
	switch {
	case err != nil:
		return "", Route{}, "", err
	case len(reply) == 7:
		return claimLost, parseRoute(reply[5], reply[2], reply[4], reply[1], reply[6]), reply[3], nil
	case len(reply) == 1:
		return outcome(reply[0]), Route{}, "", nil
	}
	return "", Route{}, "", errMalformed
}

// runTake marks the session under key as being renewed and returns its content.
// False: it is gone.
func (s *store) runTake(ctx context.Context, key, nonce string) (record, bool, error) {
	now := time.Now()
	mark := renewalMark(nonce, now.Add(renewalLease).UnixMilli())
	reply, err := s.run(ctx, scriptTake, key, now.UnixMilli(), nonce, mark).StringSlice()
	if err != nil {
		return record{}, false, err
	}
	fields := make(map[string]string, len(reply)/2)
	for i := 0; i+1 < len(reply); i += 2 {
		fields[reply[i]] = reply[i+1]
	}
	delete(fields, fieldRenewing)
	rec, ok := parseRecord(fields, now)
	return rec, ok, nil
}

// runRelease ends the mark that runTake made with nonce.
func (s *store) runRelease(ctx context.Context, key, nonce string) error {
	return s.run(ctx, scriptRelease, key, nonce).Err()
}

// end is what runEnd found under a key.
type end string

const (
	endDone   end = "ended"
	endMoving end = "moving" // a renewal may be storing it under another key
)

// runEnd deletes the session under key if its field is value.
func (s *store) runEnd(ctx context.Context, key, field, value string) (end, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	answer, err := s.run(ctx, scriptEnd, key, time.Now().UnixMilli(), field, value).Text()
	return end(answer), err
}

// newNonce returns a name for one creation, claim or renewal, unlike those of
// the session's others.
func newNonce() string {
	var b [6]byte
	fillRandom(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// newSaveName returns a name for one save, unlike those of the session's last
// six. It is the one that costs memory in every session, so it is short and
// holds raw bytes: one save in 180 billion meets its name by chance.
func newSaveName() string {
	var b [5]byte
	fillRandom(b[:])
	return string(b[:])
}

func fillRandom(b []byte) {
	_, _ = rand.Read(b) // never fails: it ends the program instead
}
