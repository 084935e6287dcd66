package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// instances are routers of one fleet over a shard with a standby.
type instances struct {
	pair    *lab.Pair
	routers []*shardrouter.Router
	log     alarms

	mu      sync.Mutex
	applied map[int]bool // the writes that were acknowledged
	next    atomic.Int64
}

// alarms is a log that keeps the alarms.
type alarms struct {
	mu   sync.Mutex
	text strings.Builder
}

func (a *alarms) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if strings.Contains(string(line), "alarm") {
		a.text.Write(line)
	}
	return len(line), nil
}

func (a *alarms) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.String()
}

// newInstances starts n routers that share a Redis.
func newInstances(t *testing.T, n int) *instances {
	t.Helper()
	rdb := lab.Redis(t)
	return newInstancesBy(t, n, func() redis.UniversalClient { return rdb.Client() })
}

// newInstancesBy starts n routers, each with a client of one Redis.
func newInstancesBy(t *testing.T, n int, client func() redis.UniversalClient, edit ...func(*shardrouter.Config)) *instances {
	t.Helper()
	f := &instances{pair: lab.MariaDBPair(t), applied: map[int]bool{}}
	lab.Exec(t, f.pair.Node(0).DSN(), "CREATE TABLE writes (n INT PRIMARY KEY, node VARCHAR(64))")
	f.pair.Await(1, 0)
	for range n {
		f.routers = append(f.routers, f.router(t, client(), f.pair.DSN(), edit...))
	}
	for _, r := range f.routers {
		f.writesTo(t, r, f.pair.Node(0).Addr())
	}
	return f
}

func (f *instances) router(t *testing.T, rdb redis.UniversalClient, dsn string, edit ...func(*shardrouter.Config)) *shardrouter.Router {
	t.Helper()
	cfg := f.config(rdb, dsn)
	for _, e := range edit {
		e(&cfg)
	}
	r, err := shardrouter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func (f *instances) config(rdb redis.UniversalClient, dsn string) shardrouter.Config {
	return shardrouter.Config{
		Redis:          rdb,
		HealthInterval: 200 * time.Millisecond,
		HoldTimeout:    time.Minute,
		Logger:         slog.New(slog.NewTextHandler(&f.log, nil)),
		Shards:         []shardrouter.Shard{{Name: "server_1", DSN: shardrouter.DSN(dsn), MaxConns: 10}},
	}
}

// writesTo waits until a router's connections go to the node at addr.
func (f *instances) writesTo(t *testing.T, r *shardrouter.Router, addr string) {
	t.Helper()
	lab.Eventually(t, 20*time.Second, "the writes go to "+addr, func() bool { return r.Stats()[0].Writer == addr })
}

// source lends leases of one router to one transaction.
type source struct {
	r     *shardrouter.Router
	lease *shardrouter.Lease
}

func (s *source) Lease(ctx context.Context) (*shardrouter.Lease, error) {
	if s.lease != nil {
		return s.lease, nil
	}
	l, err := s.r.Lease(ctx, on("server_1"), "")
	s.lease = l
	return l, err
}

func (s *source) Lost(l *shardrouter.Lease) {
	l.Release()
	s.lease = nil
}

func (s *source) end() {
	if s.lease != nil {
		s.lease.Release()
	}
}

// write makes one write in a transaction.
func (f *instances) write(ctx context.Context, r *shardrouter.Router) error {
	n := int(f.next.Add(1))
	src := &source{r: r}
	defer src.end()
	err := shardrouter.Tx(ctx, src, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO writes VALUES (?, @@port)", n)
		return err
	})
	if err == nil {
		f.mu.Lock()
		f.applied[n] = true
		f.mu.Unlock()
	}
	return err
}

// during has writers write by way of every router while fn runs and a little
// longer, and fails the test for every error that they meet.
func (f *instances) during(t *testing.T, fn func()) {
	t.Helper()
	var writers sync.WaitGroup
	stop := make(chan struct{})
	for _, r := range f.routers {
		for range 2 {
			writers.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
					if err := f.write(t.Context(), r); err != nil {
						t.Errorf("a write failed: %v", err)
						return
					}
				}
			})
		}
	}
	fn()
	for _, r := range f.routers { // each of them gets through again
		if err := f.write(t.Context(), r); err != nil {
			t.Errorf("after the change: %v", err)
		}
	}
	close(stop)
	writers.Wait()
}

// missing counts the acknowledged writes that a node does not have.
func (f *instances) missing(t *testing.T, node int) (missing int) {
	t.Helper()
	rows, err := lab.Open(t, f.pair.Node(node).DSN()).QueryContext(t.Context(), "SELECT n FROM writes")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	has := map[int]bool{}
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		has[n] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for n := range f.applied {
		if !has[n] {
			missing++
		}
	}
	return missing
}

// A planned switchover with seconds in which no node takes writes costs no
// request and no row.
func TestPlannedSwitchover(t *testing.T) {
	f := newInstances(t, 2)
	f.during(t, func() { f.pair.Switchover(0, 1, 5*time.Second) })
	for _, r := range f.routers {
		f.writesTo(t, r, f.pair.Node(1).Addr())
		if epoch := r.Stats()[0].WriterEpoch; epoch != 2 {
			t.Errorf("epoch %d after one switchover, want 2", epoch)
		}
	}
	if n := f.missing(t, 1); n > 0 {
		t.Errorf("%d of %d acknowledged writes are missing", n, len(f.applied))
	}
	t.Logf("%d writes", len(f.applied))
}

// On a Redis Cluster the record lies in another slot than the fleet's keys.
func TestSwitchoverWithRedisCluster(t *testing.T) {
	rdb := lab.RedisCluster(t, 3)
	f := newInstancesBy(t, 2, func() redis.UniversalClient { return rdb.Client() })
	f.during(t, func() { f.pair.Switchover(0, 1, time.Second) })
	for _, r := range f.routers {
		f.writesTo(t, r, f.pair.Node(1).Addr())
		if epoch := r.Stats()[0].WriterEpoch; epoch != 2 {
			t.Errorf("epoch %d after one switchover, want 2", epoch)
		}
	}
	if n := f.missing(t, 1); n > 0 {
		t.Errorf("%d of %d acknowledged writes are missing", n, len(f.applied))
	}
}

// A primary that dies under load, and a standby that is promoted seconds later,
// cost no request.
func TestPrimaryKilled(t *testing.T) {
	f := newInstances(t, 2)
	f.during(t, func() {
		f.pair.Node(0).Kill()
		<-time.After(2 * time.Second)
		f.pair.Promote(1)
	})
	for _, r := range f.routers {
		f.writesTo(t, r, f.pair.Node(1).Addr())
	}
	t.Logf("%d writes, of which asynchronous replication lost %d", len(f.applied), f.missing(t, 1))
}

// The same with a primary that freezes. When it thaws it still takes writes, and
// gets none.
func TestPrimaryFrozenAndThawed(t *testing.T) {
	f := newInstances(t, 2)
	f.during(t, func() {
		f.pair.Node(0).Freeze()
		<-time.After(2 * time.Second)
		f.pair.Promote(1)
	})
	f.pair.Node(0).Thaw()
	before := f.count(t, 0)
	f.during(t, func() {
		lab.Eventually(t, 20*time.Second, "an alarm tells of two writable nodes", func() bool {
			return strings.Contains(f.log.String(), f.pair.Node(1).Addr()+", "+f.pair.Node(0).Addr())
		})
		for _, r := range f.routers {
			lab.Eventually(t, 20*time.Second, "everybody knows of the alarm", func() bool { return r.Stats()[0].Alarm != "" })
		}
	})
	if after := f.count(t, 0); after != before {
		t.Errorf("the old primary got %d rows after its thaw", after-before)
	}
	for _, r := range f.routers {
		f.writesTo(t, r, f.pair.Node(1).Addr())
	}
}

func (f *instances) count(t *testing.T, node int) (n int) {
	t.Helper()
	row := lab.Open(t, f.pair.Node(node).DSN()).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM writes")
	if err := row.Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The primary crashes and comes back writable, and the standby is promoted a
// second later: whoever may be right, all write to one node, and an alarm says
// why.
func TestCrashedPrimaryBackBeforePromotion(t *testing.T) {
	f := newInstances(t, 3)
	f.during(t, func() {
		f.pair.Node(0).Kill()
		f.pair.Node(0).Start()
		<-time.After(time.Second)
		f.pair.Promote(1)
		lab.Eventually(t, 20*time.Second, "everybody knows of the alarm", func() bool {
			for _, r := range f.routers {
				if r.Stats()[0].Alarm == "" {
					return false
				}
			}
			return true
		})
	})
	first := f.routers[0].Stats()[0]
	for _, r := range f.routers {
		if s := r.Stats()[0]; s.Writer != first.Writer || s.WriterEpoch != first.WriterEpoch {
			t.Errorf("one writes to %s in epoch %d, another to %s in %d", first.Writer, first.WriterEpoch, s.Writer, s.WriterEpoch)
		}
	}
	if !strings.Contains(f.log.String(), "several nodes take writes") {
		t.Errorf("the log has no alarm: %s", f.log.String())
	}
	before := [2]int{f.count(t, 0), f.count(t, 1)}
	for _, r := range f.routers {
		for range 5 {
			if err := f.write(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
	}
	grown := [2]int{f.count(t, 0) - before[0], f.count(t, 1) - before[1]}
	if grown[0] != 0 && grown[1] != 0 {
		t.Errorf("the nodes got %v rows, want all on one", grown)
	}
}

// A promoted standby that has what its crashed primary lost takes over from it,
// although that is back and takes writes.
func TestPromotedNodeAheadWins(t *testing.T) {
	f := newInstances(t, 1)
	// A server tells the second of its start: a restart within it goes unnoticed.
	lab.Eventually(t, 10*time.Second, "the second of the start is over", func() bool { return f.uptime(t, 0) > time.Second })
	lab.Exec(t, f.pair.Node(1).RootDSN(), "STOP SLAVE", "INSERT INTO writes VALUES (-1, 'survived')")
	f.pair.Node(0).Restart()
	f.pair.Promote(1)
	f.writesTo(t, f.routers[0], f.pair.Node(1).Addr())
}

func (f *instances) uptime(t *testing.T, node int) time.Duration {
	t.Helper()
	var name string
	var seconds int64
	row := lab.Open(t, f.pair.Node(node).RootDSN()).QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Uptime'")
	if err := row.Scan(&name, &seconds); err != nil {
		t.Fatal(err)
	}
	return time.Duration(seconds) * time.Second
}

// An address that leads to another server than was recorded gets no lease
// until that server is recorded.
func TestAddressLeadsToAnotherServer(t *testing.T) {
	f := newInstances(t, 1)
	err := shardrouter.MeetAs(t.Context(), f.routers[0], "server_1", "another server")
	if !errors.Is(err, shardrouter.ErrOtherServer) {
		t.Errorf("got %v", err)
	}
}

// A drain of the primary holds new work and lets what runs go on; the work goes
// on at the standby when the operator has promoted that.
func TestDrainOfThePrimary(t *testing.T) {
	f := newInstances(t, 2)
	primary := f.pair.Node(0).Addr()
	running, err := f.routers[0].Lease(t.Context(), on("server_1"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer running.Release()
	if err := f.routers[1].Health().DrainNode(t.Context(), "server_1", primary, "new disks", 0); err != nil {
		t.Fatal(err)
	}
	for _, r := range f.routers {
		lab.Eventually(t, 20*time.Second, "new work is held", func() bool {
			return r.Health().View("server_1").State == healthcache.ReadOnly
		})
	}
	held := make(chan error, 1)
	go func() { held <- f.write(t.Context(), f.routers[1]) }()
	lab.Eventually(t, 20*time.Second, "the write waits", func() bool { return f.routers[1].Stats()[0].Held == 1 })
	if err := running.Conn().PingContext(t.Context()); err != nil {
		t.Errorf("what runs on the drained node has ended: %v", err)
	}
	f.pair.Switchover(0, 1, 0)
	if err := <-held; err != nil {
		t.Errorf("the write that waited: %v", err)
	}
	f.writesTo(t, f.routers[0], f.pair.Node(1).Addr())
	if !running.Alive() {
		t.Error("what runs on the drained node has ended before its time")
	}
	f.routers[0].DrainOver("server_1")
	if running.Alive() {
		t.Error("what runs on the drained node goes on after its time")
	}
	if n := f.count(t, 1); n != len(f.applied) {
		t.Errorf("the new primary has %d rows of %d", n, len(f.applied))
	}
}

// A node that answers a ping late, when another has become the writer, gets no
// more work.
func TestLatePing(t *testing.T) {
	f := newFleet(t, 1, slowProbes)
	f.lease(t, "server_1").Release()
	f.AlwaysPing("server_1")
	const comPing = "\x01\x00\x00\x00\x0e"
	onItsWay := f.proxies["server_1"].SwitchAfter([]byte(comPing), faultproxy.BeforeForward, faultproxy.Freeze)
	got := make(chan *shardrouter.Lease, 1)
	go func() {
		l, err := f.Lease(t.Context(), on("server_1"), "")
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	select {
	case <-onItsWay:
	case <-time.After(10 * time.Second):
		t.Fatal("the connection is not pinged")
	}
	f.Succeed("server_1")
	f.proxies["server_1"].SetMode(faultproxy.Pass)
	l := <-got
	if l == nil {
		return
	}
	defer l.Release()
	if l.Stale() {
		t.Error("a connection to the node before was handed out")
	}
}
