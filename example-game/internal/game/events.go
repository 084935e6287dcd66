package game

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	watchInterval = time.Second      // how often a stream looks at the session
	keepalive     = 15 * time.Second // longest silence of a stream
	streamWrite   = 10 * time.Second // longest wait for a slow reader
)

// place is where a player's session is: the data of an event.
type place struct {
	Shard string `json:"shard"`
	Home  string `json:"home"`
}

// events streams the player's shard and its changes. It looks at the session
// in Redis, which any process may change, and holds no connection to a shard.
func (g *Game) events(w http.ResponseWriter, r *http.Request) error {
	p, err := g.player(r.Context())
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	if r.Method == http.MethodHead {
		return nil
	}
	makeWay, ok := g.streams.enter(p)
	if !ok {
		return errStreams
	}
	defer g.streams.leave(p, makeWay)
	rt, _ := g.hop.Sessions.Route(r.Context())
	s := stream{w: w, ctl: http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	g.follow(r.Context(), &s, place{rt.Shard, rt.Home}, makeWay)
	return nil
}

// follow sends every place that the session takes, until the client, the
// session or the server ends. A stream that has to make way says so, or its
// page would come again at once and push out another.
func (g *Game) follow(ctx context.Context, s *stream, now place, makeWay <-chan struct{}) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	key := g.cfg.SessionPrefix + g.hop.Sessions.Key(ctx)
	s.send(now)
	for s.err == nil {
		select {
		case <-ctx.Done():
			return
		case <-g.stopping:
			return
		case <-makeWay:
			s.write("event: enough\ndata: {}\n\n")
			return
		case <-ticker.C:
		}
		next, alive := g.placeOf(ctx, key, now)
		switch {
		case !alive:
			return
		case next != now:
			now = next
			s.send(now)
		default:
			s.keepAlive()
		}
	}
}

// placeOf reads where a session is. When Redis does not answer, the session is
// where it was.
func (g *Game) placeOf(ctx context.Context, key string, was place) (now place, alive bool) {
	v, err := g.hop.Redis.HMGet(ctx, key, "db_server", "home").Result()
	if err != nil || len(v) != 2 {
		return was, true
	}
	shard, ok := v[0].(string)
	home, _ := v[1].(string)
	return place{shard, home}, ok
}

// stream writes server-sent events. After the first error it writes no more.
type stream struct {
	w    http.ResponseWriter
	ctl  *http.ResponseController
	last time.Time
	err  error
}

func (s *stream) send(p place) {
	data, err := json.Marshal(p)
	if err != nil {
		s.err = err
		return
	}
	s.write(fmt.Sprintf("event: shard\ndata: %s\n\n", data))
}

// keepAlive sends a comment when the stream was silent for long.
func (s *stream) keepAlive() {
	if time.Since(s.last) >= keepalive {
		s.write(": still here\n\n")
	}
}

func (s *stream) write(text string) {
	if s.err != nil {
		return
	}
	s.last = time.Now()
	_ = s.ctl.SetWriteDeadline(s.last.Add(streamWrite)) // not every writer has one
	if _, s.err = s.w.Write([]byte(text)); s.err == nil {
		s.err = s.ctl.Flush()
	}
}
