package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shardhop/shardhop/middleware"
)

// TestRoute holds what one request does to the session's route.
func TestRoute(t *testing.T) {
	refused := errors.New("store refuses")
	tests := []struct {
		name     string
		stored   middleware.Route
		down     []string
		claimErr error
		status   int
		shard    string
		want     middleware.Route
		rotated  bool
		log      string
		returns  bool
		reason   string
	}{
		{name: "home is well again", stored: middleware.Route{Group: "g", Shard: "b", Home: "a", Epoch: 2}, returns: true,
			status: 200, shard: "a", rotated: true, want: middleware.Route{Group: "g", Shard: "a", Home: "a", Epoch: 3, Settled: true},
			log: "session went back home", reason: "once, and marked so"},
		{name: "rotated again after that", stored: middleware.Route{Group: "g", Shard: "a", Home: "a", Epoch: 3, Settled: true}, down: []string{"a"}, returns: true,
			status: 200, shard: "b", rotated: true, want: middleware.Route{Group: "g", Shard: "b", Home: "a", Epoch: 4, Settled: true},
			log: "session rotated", reason: "the mark stays with it"},
		{name: "stays after that", stored: middleware.Route{Group: "g", Shard: "b", Home: "a", Epoch: 4, Settled: true}, returns: true,
			status: 200, shard: "b", want: middleware.Route{Group: "g", Shard: "b", Home: "a", Epoch: 4, Settled: true},
			reason: "nobody goes to and fro"},
		{name: "store refuses the way back", stored: middleware.Route{Group: "g", Shard: "b", Home: "a", Epoch: 2}, returns: true, claimErr: refused,
			status: 200, shard: "b", want: middleware.Route{Group: "g", Shard: "b", Home: "a", Epoch: 2},
			reason: "served where it is, and there is no hurry"},
		{name: "first visit", status: 200, shard: "a", want: home("g", "a", 1),
			reason: "no route: first assignment in the default group, which is the first shard's"},
		{name: "steady", stored: home("g", "b", 1), status: 200, shard: "b", want: home("g", "b", 1),
			reason: "nothing changes, so nothing is claimed"},
		{name: "shard gone", stored: home("g", "a", 1), down: []string{"a"}, status: 200, shard: "b", rotated: true,
			want: middleware.Route{Group: "g", Shard: "b", Home: "a", Epoch: 2}, log: "session rotated",
			reason: "the same request moves on; home stays"},
		{name: "two gone", stored: home("g", "a", 4), down: []string{"a", "b"}, status: 200, shard: "c", rotated: true,
			want: middleware.Route{Group: "g", Shard: "c", Home: "a", Epoch: 5}, log: "session rotated",
			reason: "one change of the route, however many shards were passed over"},
		{name: "group gone", stored: home("g", "a", 1), down: []string{"a", "b", "c"}, status: 503,
			want: home("g", "a", 1), log: "request refused",
			reason: "never another group's shard, and the session keeps its own"},
		{name: "store refuses", stored: home("g", "a", 1), down: []string{"a"}, claimErr: refused, status: 200, shard: "b",
			rotated: true, want: home("g", "a", 1), log: "detour",
			reason: "served, and not stored"},
		{name: "store refuses a first assignment", claimErr: refused, status: 200, shard: "a", log: "detour",
			reason: "served, and not stored"},
		{name: "unknown shard", stored: home("g", "z", 7), status: 200, shard: "a", rotated: true,
			want: middleware.Route{Group: "g", Shard: "a", Home: "z", Epoch: 8}, log: "names a shard",
			reason: "re-assigned inside its group, with a line in the log"},
		{name: "shard of another group", stored: home("g", "x", 7), status: 200, shard: "a", rotated: true,
			want: middleware.Route{Group: "g", Shard: "a", Home: "x", Epoch: 8}, log: "names a shard",
			reason: "the group is the session's, whatever the shard says"},
		{name: "unknown group", stored: home("q", "z", 1), status: 503, want: home("q", "z", 1), log: "unknown group",
			reason: "no other group may serve it"},
		{name: "route without group", stored: middleware.Route{Shard: "b", Home: "b", Epoch: 1}, status: 200, shard: "b",
			want:   middleware.Route{Shard: "b", Home: "b", Epoch: 1},
			reason: "the shard's own group is assumed"},
		{name: "route without group, not the default one's", stored: middleware.Route{Shard: "x", Home: "x", Epoch: 1}, status: 200, shard: "x",
			want:   middleware.Route{Shard: "x", Home: "x", Epoch: 1},
			reason: "the shard's own group is assumed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rg := newRig(t, "g/a", "g/b", "g/c", "h/x")
			rg.sessions.stored = tt.stored
			rg.sessions.claim = func(context.Context, middleware.Route) error { return tt.claimErr }
			rg.fleet.returns = tt.returns
			for _, s := range tt.down {
				rg.fleet.set(s, true)
			}
			var shard, homeShard string
			var rotated bool
			rec := rg.get(func(w http.ResponseWriter, r *http.Request) {
				shard, rotated = middleware.Shard(r.Context()), middleware.Rotated(r.Context())
				homeShard = middleware.Home(r.Context())
				if middleware.Conn(r.Context()).PingContext(r.Context()) != nil {
					t.Error("the connection is not usable")
				}
				w.WriteHeader(http.StatusOK)
			})
			if rec.Code != tt.status || shard != tt.shard || rotated != tt.rotated {
				t.Errorf("status %d, shard %q, rotated %v; want %d, %q, %v: %s",
					rec.Code, shard, rotated, tt.status, tt.shard, tt.rotated, tt.reason)
			}
			if got := rec.Header().Get("X-Shard"); got != tt.shard {
				t.Errorf("X-Shard %q, want %q", got, tt.shard)
			}
			if got := rg.sessions.route(); got != tt.want {
				t.Errorf("stored %+v, want %+v: %s", got, tt.want, tt.reason)
			}
			if tt.status == 200 && homeShard != tt.want.Home {
				t.Errorf("home %q, want %q", homeShard, tt.want.Home)
			}
			if !strings.Contains(rg.log.String(), tt.log) || tt.log == "" && rg.log.Len() > 0 {
				t.Errorf("log is %q, want %q in it", rg.log.String(), tt.log)
			}
		})
	}
}

// TestOrder holds that a route is claimed after the connection is verified and
// before the handler runs, and that the request's context ends before the
// connection goes back.
func TestOrder(t *testing.T) {
	rg := newRig(t, "g/a")
	var order []string
	var ctx context.Context
	rg.fleet.onLease = func(context.Context, middleware.Route) { order = append(order, "lease") }
	rg.sessions.claim = func(context.Context, middleware.Route) error {
		order = append(order, "claim")
		return nil
	}
	rg.fleet.onRelease = func(string) {
		if ctx.Err() == nil {
			t.Error("the connection goes back while the handler's context lives")
		}
		order = append(order, "release")
	}
	rg.get(func(_ http.ResponseWriter, r *http.Request) {
		ctx = r.Context()
		order = append(order, "handler")
	})
	if want := []string{"lease", "claim", "handler", "release"}; !slices.Equal(order, want) {
		t.Errorf("order is %v, want %v", order, want)
	}
}

// TestFirstRequestsAtOnce holds that the first requests of one session all end
// on one shard.
func TestFirstRequestsAtOnce(t *testing.T) {
	rg := newRig(t, "g/a", "g/b", "g/c")
	const n = 30
	var arrived sync.WaitGroup
	arrived.Add(n)
	rg.fleet.onLease = func(_ context.Context, rt middleware.Route) {
		if rt.Shard == "" { // everybody asks before anybody claims
			arrived.Done()
			arrived.Wait()
		}
	}
	shards := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			rg.get(func(_ http.ResponseWriter, r *http.Request) { shards[i] = middleware.Shard(r.Context()) })
		})
	}
	wg.Wait()
	want := rg.sessions.route()
	for i, s := range shards {
		if s != want.Shard {
			t.Errorf("request %d was served by %q, the session says %q", i, s, want.Shard)
		}
	}
	if want.Epoch != 1 {
		t.Errorf("epoch %d after one assignment", want.Epoch)
	}
}

// TestClaimsLostForEver holds that a request whose session is never at rest is
// served all the same.
func TestClaimsLostForEver(t *testing.T) {
	rg := newRig(t, "g/a", "g/b", "g/c")
	rg.sessions.stored = home("g", "a", 1)
	rg.fleet.set("a", true)
	epoch := uint64(1)
	rg.sessions.claim = func(context.Context, middleware.Route) error {
		epoch += 2
		rg.sessions.store(home("g", "a", epoch)) // the winner insists on a dead shard
		return nil
	}
	var detours int
	rg.cfg.Observer.Detour = func(from, to string, err error) {
		detours++
		if from != "a" || to != "b" || !errors.Is(err, middleware.ErrContended) {
			t.Errorf("detour from %q to %q because of %v", from, to, err)
		}
	}
	if rec := rg.get(ok); rec.Code != http.StatusOK {
		t.Errorf("status %d", rec.Code)
	}
	if len(rg.sessions.claims) != middleware.MaxRounds || detours != 1 {
		t.Errorf("%d claims and %d detours, want %d and 1", len(rg.sessions.claims), detours, middleware.MaxRounds)
	}
}

// TestClaimOutlivesClient holds that the client's leaving does not undo a
// rotation that has found its shard.
func TestClaimOutlivesClient(t *testing.T) {
	rg := newRig(t, "g/a", "g/b")
	rg.sessions.stored = home("g", "a", 1)
	rg.fleet.set("a", true)
	ctx, leave := context.WithCancel(context.Background())
	rg.sessions.claim = func(ctx context.Context, _ middleware.Route) error {
		leave()
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the claim has no deadline")
		}
		return ctx.Err()
	}
	req := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)
	rg.handler(ok).ServeHTTP(httptest.NewRecorder(), req)
	if got := rg.sessions.route().Shard; got != "b" {
		t.Errorf("the session says %q, want b", got)
	}
}

// TestPanic holds that a panic passes untouched and leaves nothing behind.
func TestPanic(t *testing.T) {
	for _, value := range []any{"boom", http.ErrAbortHandler} {
		rg := newRig(t, "g/a")
		rec := httptest.NewRecorder()
		func() {
			defer func() {
				if got := recover(); got != value {
					t.Errorf("recovered %v, want %v", got, value)
				}
			}()
			rg.handler(func(http.ResponseWriter, *http.Request) { panic(value) }).
				ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
		}()
		if rg.fleet.out != 0 {
			t.Error("the connection is still out")
		}
		if rec.Header().Get("X-Shard") != "a" {
			t.Error("an answer by whoever recovers would not name the shard")
		}
	}
}

// TestObserver holds that each hook hears of its own kind of event only.
func TestObserver(t *testing.T) {
	tests := []struct {
		name     string
		stored   middleware.Route
		down     []string
		claimErr error
		want     string
	}{
		{"steady", home("g", "a", 1), nil, nil, ""},
		{"first assignment", middleware.Route{}, nil, nil, ""},
		{"rotation", home("g", "a", 1), []string{"a"}, nil, "rotated a b;"},
		{"detour", home("g", "a", 1), []string{"a"}, errors.New("no"), "detour a b;"},
		{"unknown", home("g", "z", 1), nil, nil, "reassigned z a;"},
		{"unknown, not stored", home("g", "z", 1), nil, errors.New("no"), "reassigned z a;detour z a;"},
		{"none left", home("g", "a", 1), []string{"a", "b"}, nil, "refused;"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rg := newRig(t, "g/a", "g/b")
			rg.sessions.stored = tt.stored
			rg.sessions.claim = func(context.Context, middleware.Route) error { return tt.claimErr }
			for _, s := range tt.down {
				rg.fleet.set(s, true)
			}
			var heard strings.Builder
			rg.cfg.Observer = middleware.Observer{
				Rotated:    func(from, to string) { heard.WriteString("rotated " + from + " " + to + ";") },
				Detour:     func(from, to string, _ error) { heard.WriteString("detour " + from + " " + to + ";") },
				Reassigned: func(unknown, to string) { heard.WriteString("reassigned " + unknown + " " + to + ";") },
				Refused:    func(error) { heard.WriteString("refused;") },
			}
			rg.get(ok)
			if heard.String() != tt.want {
				t.Errorf("heard %q, want %q", heard.String(), tt.want)
			}
		})
	}
}

// What may be this instance's trouble alone is served, and not stored.
func TestDetourIsNotStored(t *testing.T) {
	rg := newRig(t, "g/a", "g/b")
	rg.sessions.stored = middleware.Route{Group: "g", Shard: "a", Home: "a", Epoch: 1}
	rg.fleet.set("a", true)
	rg.fleet.detours = true
	rg.get(func(_ http.ResponseWriter, r *http.Request) {
		if got := middleware.Shard(r.Context()); got != "b" {
			t.Errorf("served by %q, want b", got)
		}
	})
	if got := rg.sessions.stored.Shard; got != "a" {
		t.Errorf("the session names %q, want a as before", got)
	}
}
