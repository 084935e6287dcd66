package sessionstore_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
)

// TestSlotsMoveUnderTraffic: the slots of a cluster move to other masters, key
// by key, while players read, store, are moved and renew their tokens.
func TestSlotsMoveUnderTraffic(t *testing.T) {
	cluster := lab.RedisCluster(t, 3)
	s := newSite(t, cluster.Client(), nil)
	s.sessions.IdleTimeout = time.Hour
	var browsers []*browser
	for range 4 {
		b := s.browser()
		b.visit("/put?n=0")
		browsers = append(browsers, b)
	}
	m := newMover(t, cluster)
	traffic, stop := context.WithCancel(t.Context())
	rounds := make(chan struct{})
	var running sync.WaitGroup
	for _, b := range browsers {
		running.Go(func() { keepPlaying(traffic, t, b, rounds) })
	}
	for _, b := range browsers {
		key := b.key()
		for range 3 {
			m.move(key, func() {
				for range 4 * len(browsers) {
					<-rounds
				}
			})
		}
	}
	stop()
	running.Wait()
	if !m.asked() {
		t.Error("no request met a slot on its way")
	}

	sessions := 0
	for _, err := range s.sessions.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		sessions++
	}
	if sessions != len(browsers) {
		t.Errorf("%d sessions of %d players", sessions, len(browsers))
	}
}

// keepPlaying plays rounds until ctx ends: what a player stored is there the
// next time.
func keepPlaying(ctx context.Context, t *testing.T, b *browser, rounds chan<- struct{}) {
	for n := 1; ; n++ {
		for _, visit := range [][2]string{
			{fmt.Sprintf("/put?n=%d", n), ""},
			{fmt.Sprintf("/claim?shard=s%d", n), fmt.Sprintf("s%d", n)},
			{"/get?k=n", strconv.Itoa(n)},
			{"/get?k=db_server", fmt.Sprintf("s%d", n)},
		} {
			p, err := b.try(visit[0])
			if err != nil || p.status != http.StatusOK || p.body != visit[1] {
				t.Errorf("%s: %d %q, %v", visit[0], p.status, p.body, err)
			}
		}
		select {
		case rounds <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// mover moves slots between the masters of a cluster, as redis-cli --cluster
// reshard does.
type mover struct {
	t       *testing.T
	cluster *lab.ClusteredRedis
	masters []*redis.Client
	ids     []string
}

func newMover(t *testing.T, cluster *lab.ClusteredRedis) *mover {
	t.Helper()
	m := &mover{t: t, cluster: cluster}
	for _, node := range cluster.Nodes() {
		master := node.Client()
		m.masters = append(m.masters, master)
		m.ids = append(m.ids, m.must(master.Do(t.Context(), "CLUSTER", "MYID")))
	}
	return m
}

// move moves the slot of key to the next master. halfway runs before and after
// the slot's keys move, while both masters know of it.
func (m *mover) move(key string, halfway func()) {
	m.t.Helper()
	ctx := m.t.Context()
	from := m.owner(key)
	to := (from + 1) % len(m.masters)
	source, target := m.masters[from], m.masters[to]
	slot := source.ClusterKeySlot(ctx, key).Val()
	m.must(target.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", m.ids[from]))
	m.must(source.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", m.ids[to]))
	halfway()
	host, port, err := net.SplitHostPort(target.Options().Addr)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, moving := range source.ClusterGetKeysInSlot(ctx, int(slot), 100).Val() {
		m.must(source.Do(ctx, "MIGRATE", host, port, moving, 0, 5000))
	}
	halfway()
	m.must(target.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", m.ids[to]))
	m.must(source.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", m.ids[to]))
}

// owner is the master that serves key by what it says itself.
func (m *mover) owner(key string) int {
	m.t.Helper()
	for i, master := range m.masters {
		if err := master.Exists(m.t.Context(), key).Err(); err == nil {
			return i
		}
	}
	m.t.Fatalf("no master serves %s", key)
	return 0
}

// asked reports whether a master has sent somebody to where a slot was going.
func (m *mover) asked() bool {
	m.t.Helper()
	return slices.ContainsFunc(m.masters, func(master *redis.Client) bool {
		stats, err := master.Info(m.t.Context(), "errorstats").Result()
		if err != nil {
			m.t.Fatal(err)
		}
		return strings.Contains(stats, "errorstat_ASK:")
	})
}

func (m *mover) must(cmd *redis.Cmd) string {
	m.t.Helper()
	answer, err := cmd.Text()
	if err != nil {
		m.t.Fatal(err)
	}
	return answer
}
