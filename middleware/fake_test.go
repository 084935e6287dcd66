package middleware_test

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

// blank is a driver whose connections can be opened and closed, which is all
// that the middleware ever does with one.
type blank struct{}

func (blank) Connect(context.Context) (driver.Conn, error) { return blankConn{}, nil }
func (blank) Driver() driver.Driver                        { return nil }

type blankConn struct{}

func (blankConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("blank") }
func (blankConn) Close() error                        { return nil }
func (blankConn) Begin() (driver.Tx, error)           { return nil, errors.New("blank") }
func (blankConn) Ping(context.Context) error          { return nil }

// fleet stands in for a router: shards in order, each up or down.
type fleet struct {
	groups map[string]string
	order  []string
	db     *sql.DB

	mu     sync.Mutex
	down   map[string]bool
	next   map[string]int // first assignments, by group
	out    int
	leases []string // every shard lent, in order
	last   *loan
	// detours: leases of another shard are not to be stored.
	detours bool
	wrote   bool // something but reads ran on a lease
	// returns: sessions that are away from home, and may, go back.
	returns bool
	err     error // what Lease answers instead
	// onLease and onRelease run without mu.
	onLease   func(ctx context.Context, rt middleware.Route)
	onRelease func(shard string)
}

// newFleet makes a fleet of "group/shard" names.
func newFleet(t testing.TB, names ...string) *fleet {
	f := &fleet{groups: map[string]string{}, db: sql.OpenDB(blank{}), down: map[string]bool{}, next: map[string]int{}}
	for _, name := range names {
		var group, shard string
		if _, err := fmt.Sscanf(name, "%1s/%1s", &group, &shard); err != nil {
			t.Fatalf("shard %q: %v", name, err)
		}
		f.groups[shard] = group
		f.order = append(f.order, shard)
	}
	t.Cleanup(func() {
		if f.out != 0 {
			t.Errorf("%d leases are still out", f.out)
		}
		_ = f.db.Close()
	})
	return f
}

func (f *fleet) Groups() []string {
	var groups []string
	for _, shard := range f.order {
		if !slices.Contains(groups, f.groups[shard]) {
			groups = append(groups, f.groups[shard])
		}
	}
	return groups
}

func (f *fleet) GroupOf(shard string) (string, bool) {
	group, ok := f.groups[shard]
	return group, ok
}

func (f *fleet) Lease(ctx context.Context, rt middleware.Route, _ string) (middleware.Lease, error) {
	if f.onLease != nil {
		f.onLease(ctx, rt)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	if f.returns && !rt.Settled && rt.Home != rt.Shard && f.groups[rt.Home] == rt.Group && !f.down[rt.Home] {
		l := f.lendLocked(rt.Home)
		l.returned = true
		return l, nil
	}
	shards := slices.DeleteFunc(slices.Clone(f.order), func(s string) bool { return f.groups[s] != rt.Group })
	if len(shards) == 0 {
		return nil, fmt.Errorf("%w: %q", shardrouter.ErrUnknownGroup, rt.Group)
	}
	start := slices.Index(shards, rt.Shard)
	if start < 0 {
		start = f.next[rt.Group]
		f.next[rt.Group]++
	}
	for i := range shards {
		if shard := shards[(start+i)%len(shards)]; !f.down[shard] {
			return f.lendLocked(shard), nil
		}
	}
	return nil, f.unavailable(rt.Group, shards...)
}

func (f *fleet) Acquire(_ context.Context, shard string) (middleware.Lease, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down[shard] {
		return nil, f.unavailable(f.groups[shard], shard)
	}
	return f.lendLocked(shard), nil
}

func (f *fleet) OnlyRead(context.Context) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.wrote
}

func (f *fleet) unavailable(group string, shards ...string) error {
	err := &shardrouter.UnavailableError{Group: group, Cause: shardrouter.ErrUnavailable}
	for _, s := range shards {
		err.Attempts = append(err.Attempts, shardrouter.Attempt{Shard: s, Node: "10.0.0.1:3306", Err: errors.New("refused")})
	}
	return err
}

func (f *fleet) lendLocked(shard string) *loan {
	conn, err := f.db.Conn(context.Background())
	if err != nil {
		panic(err)
	}
	f.out++
	f.leases = append(f.leases, shard)
	f.last = &loan{fleet: f, shard: shard, conn: conn}
	return f.last
}

func (f *fleet) set(shard string, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down[shard] = down
}

type loan struct {
	fleet *fleet
	shard string
	conn  *sql.Conn
	once  sync.Once
	dead  atomic.Bool
	lost  atomic.Bool

	returned bool
}

func (l *loan) Conn() *sql.Conn { return l.conn }
func (l *loan) Shard() string   { return l.shard }
func (l *loan) Alive() bool     { return !l.dead.Load() }
func (l *loan) Lost() bool      { return l.lost.Load() }
func (l *loan) Detour() bool    { return l.fleet.detours }
func (l *loan) Returned() bool  { return l.returned }
func (l *loan) Release()        { l.ReleaseAfter(context.Background(), func() {}) }

func (l *loan) ReleaseAfter(_ context.Context, cancel context.CancelFunc) {
	cancel()
	l.once.Do(func() {
		if l.fleet.onRelease != nil {
			l.fleet.onRelease(l.shard)
		}
		_ = l.conn.Close()
		l.fleet.mu.Lock()
		defer l.fleet.mu.Unlock()
		l.fleet.out--
	})
}

// sessions stands in for a store that holds one session.
type sessions struct {
	mu     sync.Mutex
	stored middleware.Route
	claims []middleware.Route
	// claim runs before every claim, without mu. An error of it is the store's.
	claim func(ctx context.Context, next middleware.Route) error
	// changed is what Changed says.
	changed bool
}

type scopeKey struct{}

// scope is what one request knows of the session.
type scope struct {
	mu    sync.Mutex
	route middleware.Route
}

func scopeOf(ctx context.Context) *scope {
	sc, ok := ctx.Value(scopeKey{}).(*scope)
	if !ok {
		panic("no session in this context")
	}
	return sc
}

// load is the session middleware.
func (s *sessions) load(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), scopeKey{}, &scope{route: s.route()})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func (s *sessions) route() middleware.Route {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored
}

func (s *sessions) store(rt middleware.Route) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored = rt
}

func (s *sessions) Route(ctx context.Context) (middleware.Route, bool) {
	sc := scopeOf(ctx)
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.route, !sc.route.IsZero()
}

func (s *sessions) Claim(ctx context.Context, next middleware.Route) (middleware.Route, error) {
	if s.claim != nil {
		if err := s.claim(ctx, next); err != nil {
			return middleware.Route{}, err
		}
	}
	sc := scopeOf(ctx)
	sc.mu.Lock()
	defer sc.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims = append(s.claims, next)
	if s.stored == sc.route {
		s.stored = next
	}
	sc.route = s.stored
	return s.stored, nil
}

// beat has the next claim find that another request stored winner, unless that is
// zero, and every claim end with err.
func (s *sessions) beat(winner middleware.Route, err error) {
	s.claim = func(context.Context, middleware.Route) error {
		if !winner.IsZero() {
			s.store(winner)
			winner = middleware.Route{}
		}
		return err
	}
}

func (s *sessions) Changed(context.Context) bool { return s.changed }

func (s *sessions) Key(context.Context) string { return "key" }

// rig is a middleware on fakes.
type rig struct {
	t        testing.TB
	fleet    *fleet
	sessions *sessions
	cfg      middleware.Config
	log      bytes.Buffer
}

func newRig(t testing.TB, shards ...string) *rig {
	rg := &rig{t: t, fleet: newFleet(t, shards...), sessions: &sessions{}}
	rg.cfg = middleware.Config{
		Sessions:    rg.sessions,
		ShardHeader: "X-Shard",
		Logger:      slog.New(slog.NewTextHandler(&rg.log, nil)),
	}
	return rg
}

// handler mounts h as an application would.
func (rg *rig) handler(h http.HandlerFunc) http.Handler {
	return rg.sessions.load(middleware.NewOn(rg.cfg, rg.fleet, rg.fleet)(h))
}

// get sends one GET through h.
func (rg *rig) get(h http.HandlerFunc) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	rg.handler(h).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	return rec
}

func home(group, shard string, epoch uint64) middleware.Route {
	return middleware.Route{Group: group, Shard: shard, Home: shard, Epoch: epoch}
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
