package fleet_test

import (
	"net/http"
	"testing"

	"github.com/shardhop/shardhop/internal/lab"
)

// A fourth shard comes by a rolling change: while some instances know it and
// some do not, nobody is moved for good.
func TestShardThatComesByARollingChange(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{})
	four := append(shards[:3:3], "server_4")
	f.restart(0, four)
	var player *player
	for player == nil {
		if p := f.join(0); p.home == "server_4" {
			player = p
		}
	}
	old, _ := f.settle(1, "server_1")
	players := append(old, player)
	before := routes(players)
	for i := 1; i < len(f.games); i++ {
		lab.Eventually(t, soon, "the older instances have heard of server_4", func() bool {
			a := player.me(i)
			return a.status == http.StatusOK && f.log.count("request served by a detour") > 0
		})
	}
	for next := 1; next <= len(f.games); next++ {
		for i := range f.games {
			if a := player.me(i); a.status != http.StatusOK || i >= next && a.shard == "server_4" {
				t.Errorf("%d of 3 know server_4, instance %d: %+v", next, i, a)
			}
			if a := old[0].me(i); a.status != http.StatusOK {
				t.Errorf("a player who has nothing to do with it: %+v", a)
			}
			if i < next {
				lab.Eventually(t, soon, "who knows server_4 serves its player there", func() bool { return player.me(i).shard == "server_4" })
			}
		}
		stayed(t, players, before)
		if next < len(f.games) {
			f.restart(next, four)
		}
	}
}

// A shard leaves by a rolling change: its players move to another, once, and
// all instances agree on which.
func TestShardThatLeavesByARollingChange(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{})
	players, others := f.settle(2, "server_3")
	rest := routes(others)
	for next := range f.games {
		f.restart(next, shards[:2])
		for i := range f.games {
			for _, p := range players {
				a := p.me(i)
				if a.status != http.StatusOK || i <= next && a.shard == "server_3" {
					t.Errorf("%d of 3 have let go of server_3, instance %d: %+v", next+1, i, a)
				}
			}
		}
		stayed(t, others, rest)
	}
	for _, p := range players {
		if now := p.route(); now.shard == "server_3" {
			lab.Eventually(t, soon, "the last record of server_3 is gone, and its players are assigned anew", func() bool {
				p.me(0)
				return p.route().shard != "server_3"
			})
		}
		home := p.route()
		for i := range f.games {
			if a := p.me(i); a.shard != home.shard {
				t.Errorf("instance %d: %+v, stored %v", i, a, home)
			}
		}
		if now := p.route(); now != home {
			t.Errorf("moved again, from %v to %v", home, now)
		}
	}
}

// A weight of 0 keeps who is there and takes nobody new.
func TestWeightOfZero(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{})
	players, _ := f.settle(2, "server_1")
	before := routes(players)
	for i := range f.games {
		f.restart(i, shards, "SHARD_SERVER_1_WEIGHT=0")
	}
	met := newTally()
	for i := range f.games {
		for _, p := range players {
			met.add(p.dig(i))
		}
		for range 3 {
			if p := f.join(i); p.home == "server_1" {
				t.Errorf("instance %d: a new player on a shard of weight 0", i)
			}
		}
	}
	met.allServed(t)
	if met.shards["server_1"] != len(met.waits) {
		t.Errorf("present players: %v", met)
	}
	stayed(t, players, before)
}
