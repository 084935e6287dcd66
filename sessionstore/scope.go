package sessionstore

import (
	"sync"
	"time"
)

// scope carries from load to save what one request knows of the sessions that
// it touched; scs itself tells a store neither what was loaded nor whether a
// session is new. It lives in the request's context. A handler may use its
// session from several goroutines, so mu guards what changes, the states
// included; no call to Redis is made under it.
type scope struct {
	// missing is why the request goes without its session, which Redis may
	// well have: nothing can be stored in it. It does not change.
	missing error

	mu     sync.Mutex
	states []*state // as loaded or created

	route   Route  // of the request's session, as stored
	nonce   string // of the last writer of route
	owed    Route  // what follows route as soon as Redis can store it
	pending bool   // route waits for the session to be created

	renewed    *state // the session whose token was renewed, until the save
	renewNonce string // marks the take of renewed as this request's

	put map[string]struct{} // the keys that the request stored with Put

	opened    bool // Load is over; what is found from now on is not the request's own
	destroyed bool

	// iterated is the one session that Iterate shows in this scope.
	iterated map[string][]byte
}

// state is what the request knows of one stored session. token, key and what is
// in values are never changed in place.
type state struct {
	token string // as scs hands it to the store
	key   string // in Redis

	values    []field   // encoded, as loaded or last saved by this request
	deadline  int64     // absolute expiry, Unix milliseconds
	expiry    time.Time // of the key in Redis; zero when unknown
	gone      bool      // destroyed or over
	confirmed bool      // a write of this request found or made it
}

// state returns what is known of token, or nil.
func (sc *scope) state(token string) *state {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for _, st := range sc.states {
		if st.token == token {
			return st
		}
	}
	return nil
}

// loaded notes a session read from Redis. If it is the request's own, its route
// counts, or the one that is owed to it, and loaded returns the shard to show.
// Others are sources of MergeSession, which moves values and never a route.
func (sc *scope) loaded(st *state, rec record, owed Route) (shard string) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.states = append(sc.states, st)
	if sc.opened {
		return ""
	}
	sc.route, sc.nonce, sc.owed = rec.route, rec.nonce, owed
	return sc.shownLocked().Shard
}

// open notes that the request has its session, stored or not.
func (sc *scope) open() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.opened = true
}

// view returns a copy of st to work on.
func (sc *scope) view(st *state) state {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return *st
}

// saved notes that Redis took w as st, or that it did not, since st is no more.
func (sc *scope) saved(st *state, w write, live bool) error {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if !live {
		st.gone = true
		return ErrSessionGone
	}
	// The base of the next comparison is what this request wants, not what it
	// is merged with: or its next save would delete the keys that others
	// stored.
	st.values = w.fields
	st.deadline, st.expiry, st.confirmed = w.deadline, w.expiry, true
	return nil
}

// touched notes that Redis moved the end of st to expiry.
func (sc *scope) touched(st *state, expiry time.Time) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	st.expiry, st.confirmed = expiry, true
}

// created notes a session that this request brought into being.
func (sc *scope) created(st *state, r Route, nonce string) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.states = append(sc.states, st)
	sc.route, sc.nonce, sc.owed, sc.pending = r, nonce, Route{}, false
	sc.renewed = nil
}

// lost notes that st is no more.
func (sc *scope) lost(st *state) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	st.gone = true
}

// forget empties the scope of the session that the request destroyed.
func (sc *scope) forget() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.route, sc.nonce, sc.owed, sc.pending = Route{}, "", Route{}, false
	sc.renewed, sc.put = nil, nil
	sc.destroyed = true
}

// puts notes that the request stored something under key.
func (sc *scope) puts(key string) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.put == nil {
		sc.put = make(map[string]struct{})
	}
	sc.put[key] = struct{}{}
}

// ownValues returns those of mine that the request itself stored.
func (sc *scope) ownValues(mine []field, own delta) map[string]string {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return restricted(mine, own, sc.put)
}

// renew notes that the token of st is to be replaced at the next save. After
// two renewals before a save it is still the stored session that counts.
func (sc *scope) renew(st *state) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.renewed == nil && st != nil {
		sc.renewed, sc.renewNonce = st, newNonce()
	}
}

// renewal returns a copy of the session to be replaced, and the nonce to take
// it with.
func (sc *scope) renewal() (old state, nonce string, ok bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.renewed == nil {
		return state{}, "", false
	}
	return *sc.renewed, sc.renewNonce, true
}

// buried notes that the session whose token was renewed is no more.
func (sc *scope) buried() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.renewed != nil {
		sc.renewed.gone = true
		sc.renewed = nil
	}
}

// current returns the stored route as this request knows it.
func (sc *scope) current() (r Route, nonce string) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.route, sc.nonce
}

// shown returns the route by which the request is served.
func (sc *scope) shown() Route {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.shownLocked()
}

func (sc *scope) shownLocked() Route {
	if !sc.owed.IsZero() {
		return sc.owed
	}
	return sc.route
}

// follow takes over the route that stands in Redis.
func (sc *scope) follow(r Route, nonce string) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.route, sc.nonce, sc.owed = r, nonce, Route{}
}

// owes notes that next is to be stored later.
func (sc *scope) owes(next Route) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.owed = next
}

// keep holds next for the creation of the session.
func (sc *scope) keep(next Route) Route {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	next.Epoch = sc.route.Epoch + 1
	sc.route, sc.pending = next, true
	return next
}

// creationRoute is the route of a session about to be created. stored is the
// one of the session that it replaces, by the writer that nonce names, which may
// have moved since it was loaded; a route claimed after the renewal is newer
// than both.
func (sc *scope) creationRoute(stored Route, nonce string) Route {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	switch {
	case sc.pending || stored.IsZero():
		return sc.shownLocked()
	case stored == sc.route && nonce == sc.nonce:
		return sc.shownLocked()
	}
	return stored
}

// cookie returns the expiry of the cookie for token. False: no write of this
// request saw the token alive, so a cookie could bring back a dead one.
func (sc *scope) cookie(token string) (expiry time.Time, ok bool) {
	st := sc.state(token)
	if st == nil {
		return time.Time{}, false
	}
	v := sc.view(st)
	return v.expiry, v.confirmed && !v.gone
}

func (sc *scope) wasDestroyed() bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.destroyed
}
