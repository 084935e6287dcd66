package game

import (
	"context"
	"net/http"
	"time"

	"github.com/shardhop/shardhop/healthcache"
)

// readyTimeout bounds what a readiness check asks.
const readyTimeout = time.Second

// readiness is the answer of readyz.
type readiness struct {
	Ready  bool              `json:"ready"`
	Shards map[string]string `json:"shards"`
	Redis  string            `json:"redis"`
}

func healthz(w http.ResponseWriter, _ *http.Request) {
	_ = reply(w, http.StatusOK, map[string]string{"status": "alive"})
}

// readyz is good when one shard at least can serve. Redis has its word in the
// body only: it comes back, and meanwhile no other process would do better.
func (g *Game) readyz(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	answer := readiness{Shards: map[string]string{}, Redis: "up"}
	health := g.hop.Router.Health()
	for _, shard := range g.hop.Router.Shards() {
		state := health.View(shard).State
		if state == healthcache.Unknown {
			state = health.Check(ctx, shard).State
		}
		ready := serves(state) && g.schema.isReady(shard)
		answer.Ready = answer.Ready || ready
		answer.Shards[shard] = word(state)
	}
	if err := g.hop.Redis.Ping(ctx).Err(); err != nil {
		answer.Redis = "unreachable"
	}
	if !answer.Ready {
		return reply(w, http.StatusServiceUnavailable, answer)
	}
	return reply(w, http.StatusOK, answer)
}

// serves reports whether a shard in state can answer a player.
func serves(state healthcache.State) bool {
	switch state {
	case healthcache.Up, healthcache.Suspect, healthcache.Busy, healthcache.Draining:
		return true
	}
	return false
}

func word(state healthcache.State) string {
	if state == healthcache.Unknown {
		return "unknown"
	}
	return string(state)
}
