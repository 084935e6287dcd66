package fleet_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

// A server that accepts and stays silent, one that is frozen under warm idle
// connections, one whose packets are lost: whoever comes first waits for the
// verdict, and nobody after that.
func TestSilentShardCostsOneWait(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		mode   faultproxy.Mode
		reason string
	}{
		{faultproxy.Silent, "accepts, and answers nothing"},
		{faultproxy.Freeze, "frozen under warm idle connections"},
		{faultproxy.Drop, "drops every packet"},
	} {
		t.Run(tc.mode.String(), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plan{})
			there, _ := f.settle(3, "server_1")
			for i, p := range there {
				for n := range f.games { // connections are warm everywhere
					if a := p.me((i + n) % len(f.games)); a.status != http.StatusOK {
						t.Fatalf("before: %+v", a)
					}
				}
			}
			f.set(tc.mode, "server_1")
			first := there[0].me(0)
			if first.status != http.StatusOK || first.shard != "server_2" {
				t.Errorf("%s: the first got %+v", tc.reason, first)
			}
			if first.took > 10*time.Second { // the budget
				t.Errorf("%s: the first waited %v", tc.reason, first.took)
			}
			f.await("server_1", "down")
			after := newTally()
			for i := range f.games {
				for _, p := range there {
					after.add(p.me(i))
				}
			}
			after.allServed(t)
			if after.shards["server_1"] > 0 || after.longest() > 2*time.Second {
				t.Errorf("%s: after the verdict %v, longest wait %v", tc.reason, after, after.longest())
			}
			f.set(faultproxy.Pass, "server_1")
			f.await("server_1", "up")
		})
	}
}

// One instance cannot reach a shard that all others reach. Its players are
// served elsewhere for as long as that lasts, and nobody is moved.
func TestOneInstanceWithABrokenPathMovesNobody(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{})
	players, _ := f.settle(3, "server_1")
	before := routes(players)
	f.set(faultproxy.Cut, "server_1", 0)
	at := [3]*tally{newTally(), newTally(), newTally()}
	for end := time.Now().Add(12 * interval); time.Now().Before(end); {
		for i := range f.games {
			for _, p := range players {
				at[i].add(p.me(i))
			}
		}
	}
	for i, c := range at {
		c.allServed(t)
		if home := c.shards["server_1"]; (home > 0) == (i == 0) {
			t.Errorf("instance %d: %v", i, c)
		}
	}
	stayed(t, players, before)
	if n := f.log.count("down for this instance alone"); n == 0 {
		t.Error("the log does not say that the shard is down for one instance alone")
	}
	f.set(faultproxy.Pass, "server_1", 0)
	lab.Eventually(t, soon, "the instance serves its players at home again", func() bool {
		return players[0].me(0).shard == "server_1"
	})
	stayed(t, players, before)
}

// A server that says "too many connections" is full, not dead.
func TestFullServerMovesNobody(t *testing.T) {
	t.Parallel()
	small := lab.MariaDB(t, lab.WithArgs("--max-connections=12"))
	f := newFleet(t, plan{dsns: map[string]string{"server_1": small.DSN()}, environ: []string{"SHARD_ACQUIRE_TIMEOUT=2s"}})
	players, others := f.settle(2, "server_1")
	before := routes(players)
	// sql.DB's idle connections would serve on: they end first.
	for i := range f.games {
		f.proxies[i]["server_1"].SetMode(faultproxy.Cut)
		f.proxies[i]["server_1"].SetMode(faultproxy.Pass)
	}
	f.await("server_1", "up")
	release := fill(t, small)
	f.await("server_1", "busy")
	for i := range f.games {
		a := players[i%2].me(i)
		if a.status != http.StatusServiceUnavailable || a.retry == "" {
			t.Errorf("instance %d, while the server is full: %+v", i, a)
		}
		if a.took > 8*time.Second {
			t.Errorf("instance %d kept a player waiting for %v", i, a.took)
		}
		if a := others[0].me(i); a.status != http.StatusOK {
			t.Errorf("a player of another shard: %+v", a)
		}
	}
	release()
	for i := range f.games {
		lab.Eventually(t, soon, "players are served again", func() bool { return players[0].me(i).shard == "server_1" })
	}
	stayed(t, players, before)
	if f.log.count("shard=server_1 from=busy to=down") > 0 {
		t.Error("a full server was called down")
	}
}

// fill takes every connection that a server gives, for the application and for
// root, until release is called.
func fill(t *testing.T, server *lab.MariaDBServer) (release func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	db := lab.Open(t, server.DSN())
	var conns []*sql.Conn
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		// What the fleet gives back is taken too, also the probe's.
		for ctx.Err() == nil {
			conn, err := db.Conn(ctx)
			if err == nil {
				conns = append(conns, conn)
				continue
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	release = func() {
		cancel()
		<-taken
		for _, conn := range conns {
			_ = conn.Close()
		}
		_ = db.Close()
	}
	t.Cleanup(release)
	return release
}

// Whatever the health keys say, servers that answer serve, and nobody is moved
// by a lie: not when it is told of every shard, and not when it is told of one, by
// an instance that has not used that shard lately.
func TestHealthKeysThatLie(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		about []string
	}{
		{"about all shards", shards},
		{"about one shard", shards[:1]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			hearLies(t, tc.about)
		})
	}
}

func hearLies(t *testing.T, about []string) {
	f := newFleet(t, plan{})
	players, _ := f.settle(2, "server_1")
	before := routes(players)
	<-time.After(4 * interval) // nobody has seen anything lately but the prober
	met := newTally()
	for end := time.Now().Add(8 * interval); time.Now().Before(end); {
		lies := map[string]string{}
		for _, shard := range about {
			now := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
			lies["db:health:"+shard] = fmt.Sprintf(`{"state":"down","since":%q,"checked_at":%q,"by":"liar"}`, now, now)
		}
		if err := f.rdb.MSet(t.Context(), lies).Err(); err != nil {
			t.Fatal(err)
		}
		f.rdb.Publish(t.Context(), "db:changes", strings.Join(about, " "))
		for i := range f.games {
			for _, p := range players {
				met.add(p.me(i))
			}
		}
	}
	met.allServed(t)
	stayed(t, players, before)
	if met.shards["server_1"] == 0 {
		t.Errorf("nobody looked for the truth: %v", met)
	}
	f.ready()
	for i := range f.games {
		lab.Eventually(t, soon, "everybody plays at home", func() bool { return players[0].me(i).shard == "server_1" })
	}
	stayed(t, players, before)
}

// A server that closes idle connections is not dead, and no request notices.
func TestServerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	const account = "sleeper"
	lab.Exec(t, database.RootDSN(), "CREATE OR REPLACE USER "+account+" IDENTIFIED BY 'sleeps'", "GRANT ALL ON game.* TO "+account)
	_, at, _ := strings.Cut(database.DSN(), "@")
	dsn := account + ":sleeps@" + at + "?wait_timeout=1"
	f := newFleet(t, plan{dsns: map[string]string{"server_1": dsn, "server_2": dsn, "server_3": dsn}})
	root := lab.Open(t, database.RootDSN())
	players := []*player{f.join(0), f.join(1), f.join(2)}
	before := routes(players)
	met := newTally()
	for range 3 {
		for i := range f.games {
			for _, p := range players {
				met.add(p.me(i))
				met.add(p.dig(i))
			}
		}
		lab.Eventually(t, soon, "the server has closed what was idle", func() bool {
			var open int
			// A probe's connection may be open.
			err := root.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE user = ? AND command = 'Sleep'", account).Scan(&open)
			return err == nil && open <= 1
		})
	}
	met.allServed(t)
	stayed(t, players, before)
	if n := f.log.count("to=down"); n > 0 {
		t.Errorf("%d shards were called down", n)
	}
}

// A shard that comes and goes with every probe, sixty times, moves a player once,
// and no player goes to and fro, not even by a detour.
func TestFlappingShard(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{})
	players, others := f.settle(3, "server_1")
	rest := routes(others)
	before := routes(players)
	stop := play(players, 20*time.Millisecond)
	for n := range 60 {
		<-time.After(interval) // that is the flapping, not a wait for something
		f.set([]faultproxy.Mode{faultproxy.Cut, faultproxy.Pass}[n%2], "server_1")
	}
	met := stop()
	met.allServed(t)
	for i, p := range players {
		now := p.route()
		var from, to int
		_, _ = fmt.Sscan(before[i].epoch, &from)
		_, _ = fmt.Sscan(now.epoch, &to)
		if to-from > 1 {
			t.Errorf("%s was moved %d times", p.name, to-from)
		}
		if n := met.switches[p.name]; n == 0 || n > 3 { // until the move is stored, a detour may go before it
			t.Errorf("%s was served by another shard than before %d times", p.name, n)
		}
	}
	stayed(t, others, rest)
	f.await("server_1", "up")
}
