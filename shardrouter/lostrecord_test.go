package shardrouter_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// A Redis that lost the last move may be told of another one by who never heard
// of that, with the same epoch. What stands there is what everybody goes by.
func TestSameEpochOfAnotherNode(t *testing.T) {
	rdb := lab.Redis(t).Client()
	f := &instances{pair: lab.MariaDBPair(t), applied: map[int]bool{}}
	r := f.router(t, rdb, f.pair.DSN())
	f.writesTo(t, r, f.pair.Node(0).Addr())
	f.pair.Promote(1)
	w, _ := r.Health().Writer("server_1")
	w.Addr, w.Server, w.Life = f.pair.Node(1).Addr(), "", ""
	value, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	rdb.Set(t.Context(), "db:writer:server_1", value, 0)
	f.writesTo(t, r, f.pair.Node(1).Addr())
}

// What is recorded where Redis knows no record, or an older one, must not have
// anybody write to a second node meanwhile.
func TestRecordThatRedisLost(t *testing.T) {
	onA := healthcache.Writer{Addr: "a", Server: "server of a", Epoch: 7}
	late := healthcache.Writer{Addr: "b", Server: "server of b", Epoch: 1}
	toA := healthcache.Writer{Addr: "a", Server: "server of a", Epoch: 7, From: "b", FromServer: "server of b"}
	tests := []struct {
		name, reason   string
		stands, record healthcache.Writer
		nodes          []sight
		epoch          uint64
		from           string
	}{
		{"none, all are seen", "nobody writes to a node that takes none", healthcache.Writer{}, healthcache.Writer{},
			[]sight{seenNode("a", true), seenNode("b", false)}, 1, ""},
		{"none, and a silent node", "others may write to it, and have not heard that Redis lost the record", healthcache.Writer{}, healthcache.Writer{},
			[]sight{seenNode("a", true), seenNode("b", false, mute)}, 1, "b"},
		{"none, and a silent member of a cluster", "no member commits alone", healthcache.Writer{}, healthcache.Writer{},
			[]sight{seenNode("a", true, member), seenNode("b", false, mute)}, 1, ""},
		{"lost", "all others go by it as well", healthcache.Writer{}, onA,
			[]sight{seenNode("a", true), seenNode("b", false, mute)}, 8, ""},
		{"an older one of another node", "who wrote it may write to that", late, onA,
			[]sight{seenNode("a", true), seenNode("b", true)}, 8, "b"},
		{"an older one of a silent node", "who wrote it may write to that", late, onA,
			[]sight{seenNode("a", true), seenNode("b", false, mute)}, 8, "b"},
		{"an older one of a node that takes none", "nobody can write to that", late, onA,
			[]sight{seenNode("a", true), seenNode("b", false)}, 8, ""},
		{"an older one, before a move was completed", "who wrote it may write to that", late, toA,
			[]sight{seenNode("a", true), seenNode("b", false, mute)}, 8, "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			next, written := shardrouter.NextRecord(tt.stands, tt.record, tt.nodes...)
			if !written || next.Addr != "a" || next.Epoch != tt.epoch || next.From != tt.from {
				t.Errorf("written: %v, to %s from %q in epoch %d; want from %q in %d: %s",
					written, next.Addr, next.From, next.Epoch, tt.from, tt.epoch, tt.reason)
			}
		})
	}
}

// A shard that is being reloaded follows its writer until its new nodes are in
// use.
func TestMoveDuringReload(t *testing.T) {
	rdb := lab.Redis(t)
	f := &instances{pair: lab.MariaDBPair(t), applied: map[int]bool{}}
	r, other := f.router(t, rdb.Client(), f.pair.DSN()), f.router(t, rdb.Client(), f.pair.DSN())
	f.writesTo(t, r, f.pair.Node(0).Addr())
	f.writesTo(t, other, f.pair.Node(0).Addr())
	reached, goOn := make(chan struct{}), make(chan struct{})
	goesOn := sync.OnceFunc(func() { close(goOn) })
	defer goesOn()
	cfg := f.reloaded(f.pair)
	cfg.Shards = append(cfg.Shards, shardrouter.Shard{Name: "server_2", DSN: dsnAt(server.Addr())})
	cfg.Prepare = func(context.Context, string, *sql.Conn) error {
		close(reached)
		<-goOn
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Reload(t.Context(), cfg) }()
	<-reached
	again, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	waited := make(chan error, 1)
	go func() { waited <- r.Reload(again, cfg) }()
	select {
	case err := <-waited:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second reload: %v; want the end of its context", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a second reload outlives its context")
	}
	f.pair.Promote(1)
	f.recordStandby(t, other)
	f.writesTo(t, r, f.pair.Node(1).Addr())
	goesOn()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// reloaded is the configuration of the fleet with another DSN of the same nodes.
func (f *instances) reloaded(pair *lab.Pair) shardrouter.Config {
	return shardrouter.Config{
		HealthInterval: 200 * time.Millisecond, HoldTimeout: time.Minute, Logger: slog.New(slog.NewTextHandler(&f.log, nil)),
		Shards: []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(pair.DSN() + "?maxAllowedPacket=1048576"), MaxConns: 10}},
	}
}

// recordStandby records the standby as the writer.
func (f *instances) recordStandby(t *testing.T, r *shardrouter.Router) {
	t.Helper()
	record, _ := r.Health().Writer("server_1")
	next := healthcache.Writer{Addr: f.pair.Node(1).Addr(), Epoch: record.Epoch + 1}
	if _, err := r.Health().MoveWriter(t.Context(), "server_1", record, next); err != nil {
		t.Fatal(err)
	}
}

// An instance that does not know whether its node is still the writer gets no
// right to write to it by a reload, or by its own end.
func TestNoMandateByTheEndOfAPool(t *testing.T) {
	rdb := lab.Redis(t)
	f := &instances{pair: lab.MariaDBPair(t), applied: map[int]bool{}}
	f.next.Store(100)
	lab.Exec(t, f.pair.Node(0).DSN(), "CREATE TABLE writes (n INT PRIMARY KEY, node VARCHAR(64))")
	f.pair.Await(1, 0)
	r := f.router(t, rdb.Client(), f.pair.DSN())
	f.writesTo(t, r, f.pair.Node(0).Addr())
	var leases []*shardrouter.Lease
	for range 3 {
		l, err := r.Lease(t.Context(), on("server_1"), "")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release()
		leases = append(leases, l)
	}
	write := func(n int) error {
		_, err := leases[n].Conn().ExecContext(t.Context(), "INSERT INTO writes VALUES (?, @@port)", n)
		return err
	}
	lab.Eventually(t, 20*time.Second, "the standby was seen", func() bool { return r.Unrivalled("server_1") != nil })
	if at := r.Unrivalled("server_1").String(); !strings.Contains(at, "m=") {
		t.Errorf("%s has no monotonic reading: a clock that is set back would prolong the right to write", at)
	}
	rdb.Freeze()
	f.pair.Node(1).Freeze()
	lab.Eventually(t, 20*time.Second, "nobody is written to", func() bool {
		return r.Health().View("server_1").State == healthcache.ReadOnly
	})
	if err := r.Reload(t.Context(), f.reloaded(f.pair)); err != nil {
		t.Fatal(err)
	}
	if err := write(0); shardrouter.ProgressOf(err) != shardrouter.NotSent {
		t.Errorf("a write after a reload: %v; want not sent", err)
	}
	rdb.Thaw()
	lab.Eventually(t, 20*time.Second, "the new pool is written to", func() bool { return r.Stats()[0].Writer != "" && f.write(t.Context(), r) == nil })
	if err := write(1); err != nil {
		t.Errorf("a write that began before the reload, when Redis is back: %v", err)
	}
	rdb.Freeze()
	lab.Eventually(t, 20*time.Second, "nobody is written to again", func() bool {
		return r.Health().View("server_1").State == healthcache.ReadOnly
	})
	_ = r.Close()
	if err := write(2); shardrouter.ProgressOf(err) != shardrouter.NotSent {
		t.Errorf("a write after Close: %v; want not sent", err)
	}
	rdb.Thaw()
	f.pair.Node(1).Thaw()
}
