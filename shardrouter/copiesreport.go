package shardrouter

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/shardhop/shardhop/healthcache"
)

const (
	// copiesLook is how often it is looked whether the shards of the groups are
	// copies, copiesPause the least time between two reports on one group.
	copiesLook  = time.Second
	copiesPause = 10 * time.Second
)

// copiesReport tells loudly which shards of a group are copies, once for each
// change of it. It is used by one goroutine.
type copiesReport struct {
	r    *Router
	next time.Time
	told map[string]toldCopies // by group
}

// toldCopies is what was last said of a group, and when.
type toldCopies struct {
	sets string
	at   time.Time
}

// look reports on the groups of which it has something new to say. A group of
// one shard, and one of which a shard was never heard of, have nothing to say.
func (c *copiesReport) look(now time.Time) {
	if now.Before(c.next) {
		return
	}
	c.next = now.Add(copiesLook)
	health := c.r.health.Snapshot()
	for group, g := range c.r.layout.Load().groups {
		if len(g.ring) < 2 || !heardOf(g.ring, health) || !c.r.prover.knows(group) {
			continue
		}
		sets := sameRows(g.ring, c.r.cluster)
		text, last := setsText(sets), c.told[group]
		if text == last.sets || now.Sub(last.at) < copiesPause {
			continue
		}
		c.told[group] = toldCopies{text, now}
		c.tell(group, sets, text)
	}
}

func (c *copiesReport) tell(group string, sets [][]string, text string) {
	log := c.r.cfg.Logger
	if len(sets) == 1 {
		log.Info("the shards of a group hold the same rows", "group", group, "shards", text)
	} else {
		level := slog.LevelWarn
		if c.r.cfg.Copies == CopiesMarker { // which says that they do
			level = slog.LevelError
		}
		log.Log(context.Background(), level, "not all shards of a group are proved to hold the same rows: a rotated player starts on other rows",
			"group", group, "same_rows", text, "rotate_to", string(c.r.cfg.RotateTo), "copies", string(c.r.cfg.Copies))
	}
	if f := c.r.cfg.Observer.Copies; f != nil {
		f(group, sets)
	}
}

// heardOf reports whether something is known of every shard.
func heardOf(ring []Shard, health healthcache.Snapshot) bool {
	for _, s := range ring {
		if health[s.Name].State == healthcache.Unknown {
			return false
		}
	}
	return true
}

// sameRows sorts shards into sets of copies, in rotation order. A shard of no
// cluster is a set of its own.
func sameRows(ring []Shard, cluster func(shard string) string) [][]string {
	var sets [][]string
	at := make(map[string]int) // of each cluster
	for _, s := range ring {
		name := cluster(s.Name)
		if i, ok := at[name]; ok && name != "" {
			sets[i] = append(sets[i], s.Name)
			continue
		}
		at[name] = len(sets)
		sets = append(sets, []string{s.Name})
	}
	return sets
}

// setsText is sets on one line: "server_1 server_2 | server_3".
func setsText(sets [][]string) string {
	words := make([]string, len(sets))
	for i, set := range sets {
		words[i] = strings.Join(set, " ")
	}
	return strings.Join(words, " | ")
}
