package fleet_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

// TestDrain tells the whole story of a drain, ordered once with redis-cli and
// once at the admin listener of one instance.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		begin, end   func(f *fleet)
		survivesLoss bool
	}{
		{
			name:  "by redis-cli",
			begin: func(f *fleet) { f.rdb.Set(f.t.Context(), "db:drain:server_1", "new disks", 0) },
			end:   func(f *fleet) { f.rdb.Del(f.t.Context(), "db:drain:server_1") },
		},
		{
			name: "at one instance",
			begin: func(f *fleet) {
				f.operate(2, "PUT", "/shards/server_1/drain", `{"reason":"new disks"}`)
			},
			end: func(f *fleet) { f.operate(1, "DELETE", "/shards/server_1/drain", "") },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plan{calm: true})
			players, _ := f.settle(3, "server_1")
			finish := hold(t, players[0])
			running := make(chan answer, 1)
			go func() { running <- players[0].dig(0) }()
			lab.Eventually(t, soon, "a request runs on server_1", func() bool { return f.shards(0)["server_1"].Pool.InUse == 1 })

			began := time.Now()
			tc.begin(f)
			f.await("server_1", "draining")
			if took := time.Since(began); took > 3*time.Second { // a second is promised
				t.Errorf("all knew of the drain after %v", took)
			}
			for i := range f.games {
				if p := f.join(i); p.home == "server_1" {
					t.Errorf("instance %d: a new player on the drained shard", i)
				}
			}
			for i, p := range players[1:] {
				if a := p.dig(i); a.status != http.StatusOK || a.shard == "server_1" || p.route().shard != a.shard {
					t.Errorf("a present player: %+v, stored %v", a, p.route())
				}
			}
			finish()
			if a := <-running; a.status != http.StatusOK || a.shard != "server_1" {
				t.Errorf("the request that ran: %+v", a)
			}
			f.empty("server_1")

			if err := f.rdb.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			lab.Eventually(t, soon, "the drain is written again", func() bool {
				return f.rdb.Get(t.Context(), "db:drain:server_1").Val() == "new disks"
			})
			tc.end(f)
			f.await("server_1", "up")
			lab.Eventually(t, soon, "new players come again", func() bool { return f.join(0).home == "server_1" })
		})
	}
}

// hold locks a player's row, so that what digs there waits until finish is
// called.
func hold(t *testing.T, p *player) (finish func()) {
	t.Helper()
	tx, err := lab.Open(t, database.DSN()).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	if err := tx.QueryRowContext(t.Context(), "SELECT name FROM players WHERE name = ? FOR UPDATE", p.name).Scan(&name); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(); err != nil {
			t.Errorf("rollback: %v", err)
		}
	}
}

// empty waits until no connection is left at a shard but a probe's, and sees
// that it stays so.
func (f *fleet) empty(shard string) {
	f.t.Helper()
	none := func() bool {
		open := 0
		for i := range f.games {
			open += f.open(i, shard)
		}
		return open <= 1 // one instance probes
	}
	lab.Eventually(f.t, soon, "no connection is left but the probe's", none)
	for end := time.Now().Add(time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		if !none() {
			f.t.Errorf("connections came back to %s", shard)
			return
		}
	}
}

// A group that is drained whole keeps serving, and says so.
func TestDrainWithNowhereToGo(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{})
	players := []*player{f.join(0), f.join(1), f.join(2)}
	before := routes(players)
	for _, shard := range shards {
		f.operate(0, "PUT", "/shards/"+shard+"/drain", `{"reason":"everything at once"}`)
	}
	for _, shard := range shards {
		f.await(shard, "draining")
	}
	met := newTally()
	for i := range f.games {
		for _, p := range players {
			met.add(p.dig(i))
		}
		f.join(i)
	}
	met.allServed(t)
	stayed(t, players, before)
	lab.Eventually(t, soon, "every instance says so", func() bool {
		return f.log.count("every shard of the group is drained") >= len(f.games)
	})
}

// Players of a shard that nobody reaches are served by a drained one.
func TestDrainedShardIsBetterThanNone(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{})
	players, _ := f.settle(1, "server_1")
	for _, shard := range shards[1:] {
		f.operate(0, "PUT", "/shards/"+shard+"/drain", `{"reason":"upgrade"}`)
		f.await(shard, "draining")
	}
	f.set(faultproxy.Cut, "server_1")
	for i := range f.games {
		if a := players[0].me(i); a.status != http.StatusOK || a.shard == "server_1" {
			t.Errorf("instance %d: %+v", i, a)
		}
	}
}
