package sessionstore

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// scanCount is how many keys Redis looks at in one step of a scan, which takes
// it well under a millisecond.
const scanCount = 200

// server is one Redis server that holds keys.
type server struct {
	addr string // "" when there is but one
	scanner
}

type scanner interface {
	ScanType(ctx context.Context, cursor uint64, match string, count int64, keyType string) *redis.ScanCmd
}

// servers lists the servers that together hold all keys, in a fixed order.
func (s *store) servers(ctx context.Context) ([]server, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	var mu sync.Mutex
	var found []server
	add := func(_ context.Context, client *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		found = append(found, server{client.Options().Addr, client})
		return nil
	}
	var err error
	switch rdb := s.rdb.(type) {
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(ctx, add)
	case *redis.Ring:
		err = rdb.ForEachShard(ctx, add)
	default:
		return []server{{"", s.rdb}}, nil
	}
	slices.SortFunc(found, func(a, b server) int { return cmp.Compare(a.addr, b.addr) })
	return found, err
}

// position is where a scan of all servers stands: before a step on one of them.
// The zero position is the beginning, with no address for the first server.
type position struct {
	addr   string
	cursor uint64
}

func (p position) String() string { return p.addr + "/" + strconv.FormatUint(p.cursor, 10) }

// parsePosition reads what String wrote; "" is the beginning.
func parsePosition(text string) (position, error) {
	if text == "" {
		return position{}, nil
	}
	addr, cursor, ok := cutLast(text, "/")
	n, err := strconv.ParseUint(cursor, 10, 64)
	if !ok || err != nil {
		return position{}, fmt.Errorf("%w: %q", ErrCursor, text)
	}
	return position{addr, n}, nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+len(sep):], true
}

// step takes one step of a scan, from at. It returns the keys of sessions that
// it found and where the next one begins; more is false after the last.
func (s *store) step(ctx context.Context, servers []server, at position) (keys []string, next position, more bool, err error) {
	i := 0
	if at != (position{}) {
		i = slices.IndexFunc(servers, func(sv server) bool { return sv.addr == at.addr })
	}
	if i < 0 || len(servers) == 0 {
		return nil, position{}, false, fmt.Errorf("%w: no server %s", ErrCursor, at.addr)
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	match := globEscaper.Replace(s.prefix) + "*"
	keys, cursor, err := servers[i].ScanType(ctx, at.cursor, match, scanCount, "hash").Result()
	switch {
	case err != nil:
		return nil, position{}, false, err
	case cursor != 0:
		return keys, position{servers[i].addr, cursor}, true, nil
	case i+1 < len(servers):
		return keys, position{servers[i+1].addr, 0}, true, nil
	}
	return keys, position{}, false, nil
}

// globEscaper takes the meaning of a pattern from a prefix.
var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// pages visits the keys of all sessions, a step of a scan at a time, each key
// once.
func (s *store) pages(ctx context.Context, visit func(keys []string) error) error {
	servers, err := s.servers(ctx)
	if err != nil {
		return err
	}
	seen := newSeen()
	var at position
	for more := true; more; {
		var keys []string
		if keys, at, more, err = s.step(ctx, servers, at); err != nil {
			return err
		}
		if keys = seen.fresh(keys); len(keys) == 0 {
			continue
		}
		if err := visit(keys); err != nil {
			return err
		}
	}
	return nil
}

// seen remembers keys by their hashes, in a fraction of their room: SCAN may
// give a key more than once. Two keys out of a million share a hash with a
// chance of one in 30 million.
type seen struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func newSeen() seen { return seen{maphash.MakeSeed(), map[uint64]struct{}{}} }

// fresh returns the keys that it has not seen before. It reuses keys.
func (sn seen) fresh(keys []string) []string {
	unseen := keys[:0]
	for _, key := range keys {
		h := maphash.String(sn.seed, key)
		if _, ok := sn.hashes[h]; !ok {
			sn.hashes[h] = struct{}{}
			unseen = append(unseen, key)
		}
	}
	return unseen
}

// each sends one command for every key, all in one round trip per server, and
// returns the answers in the order of keys.
func each[C redis.Cmder](ctx context.Context, s *store, keys []string, send func(pipe redis.Pipeliner, key string) C) ([]C, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	pipe := s.rdb.Pipeline()
	answers := make([]C, len(keys))
	for i, key := range keys {
		answers[i] = send(pipe, key)
	}
	if _, err := pipe.Exec(ctx); err != nil && err != redis.Nil { //nolint:errorlint // as go-redis returns it: a field that is not there
		return nil, err
	}
	return answers, nil
}
