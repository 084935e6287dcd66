package sessionstore_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/sessionstore"
)

// holding holds one command until it is told to go on.
type holding struct {
	lab.NoHook
	is func(redis.Cmder) bool
	g  *gate
}

func (h holding) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.is(cmd) {
			h.g.wait()
		}
		return next(ctx, cmd)
	}
}

// takenIn reports whether a renewal holds the session under key.
func takenIn(t *testing.T, rdb redis.UniversalClient, key string) bool {
	t.Helper()
	taken, err := rdb.HExists(t.Context(), key, "renewing").Result()
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// TestEndAllMeetsARenewal: a session that has no key of its own just then, as
// its token is being renewed, is ended under its new one.
func TestEndAllMeetsARenewal(t *testing.T) {
	t.Run("once", func(t *testing.T) { endAllMeetsARenewal(t, lab.NoHook{}) })
	t.Run("scripts twice", func(t *testing.T) { endAllMeetsARenewal(t, lab.ScriptsTwice{}) })
}

func endAllMeetsARenewal(t *testing.T, repeat redis.Hook) {
	redisServer := lab.Redis(t)
	rdb, slowly := redisServer.Client(), redisServer.Client()
	s := newSite(t, rdb, nil)
	g := newGate()
	b := s.browser()
	b.visit("/put?uid=7")
	key := b.key()
	slowly.AddHook(holding{g: g, is: func(cmd redis.Cmder) bool {
		return cmd.Name() == "evalsha" && takenIn(t, rdb, key) // the create
	}})
	slow := newSite(t, slowly, nil)

	operator := redisServer.Client()
	operator.AddHook(repeat)
	ended := make(chan error, 1)
	p := g.during(&browser{site: slow, client: b.client}, "/renew", func() {
		go func() {
			_, err := sessionstore.New(operator, sessionstore.Config{Timeout: 2 * time.Second}).EndAll(t.Context(), "uid", "7")
			ended <- err
		}()
		lab.Eventually(t, 5*time.Second, "the old session ends", func() bool { return rdb.Exists(t.Context(), key).Val() == 0 })
	})
	if p.status != http.StatusOK {
		t.Fatalf("%d %s", p.status, p.body)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := b.visit("/get?k=uid").body; got != "" || len(s.keys()) != 0 {
		t.Errorf("uid is %q, keys %v", got, s.keys())
	}
}

// TestEndAllWaitsNoLongerThanItsContext is about the wait for such a renewal.
func TestEndAllWaitsNoLongerThanItsContext(t *testing.T) {
	rdb := miniClient(t)
	m := sessionstore.New(rdb, sessionstore.Config{Timeout: time.Minute})
	ctx := load(t, m, "")
	m.Put(ctx, "uid", "7")
	if _, _, err := m.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	key := "session:" + m.Key(ctx)
	set(t, rdb, key, "renewing", mark(30*time.Second))
	short, cancel := context.WithCancel(t.Context())
	go func() {
		lab.Eventually(t, 5*time.Second, "the session ends", func() bool { return rdb.Exists(t.Context(), key).Val() == 0 })
		cancel()
	}()
	if _, err := m.EndAll(short, "uid", "7"); err == nil {
		t.Error("no error")
	}
}

// TestEndAllKeepsTheOneThatAsks, which gets a new token in the same request, as
// after a change of the password.
func TestEndAllKeepsTheOneThatAsks(t *testing.T) {
	everyRedis(t, func(t *testing.T, rdb redis.UniversalClient) {
		m, token := stored(t, rdb)
		_, other := stored(t, rdb)
		ctx := load(t, m, token)
		key := m.Key(ctx)
		if err := m.RenewToken(ctx); err != nil {
			t.Fatal(err)
		}
		if got := m.Key(ctx); got != key {
			t.Errorf("the key is %q before the new one is stored, want %q", got, key)
		}
		if n, err := m.EndAll(ctx, "uid", "7", m.Key(ctx)); n != 1 || err != nil {
			t.Errorf("ended %d, %v", n, err)
		}
		renewed, _, err := m.Commit(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Key(ctx); got == key || got == "" {
			t.Errorf("the key is %q after the renewal", got)
		}
		for token, want := range map[string]string{token: "", other: "", renewed: "7"} {
			if got := m.GetString(load(t, m, token), "uid"); got != want {
				t.Errorf("uid is %q, want %q", got, want)
			}
		}
	})
}

// hopping lets a session get a new token between the step of a scan that finds
// it and the look into it.
type hopping struct {
	lab.NoHook
	hops int // to come
	hop  func()
}

func (h *hopping) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if name := cmds[0].Name(); h.hops > 0 && (name == "hget" || name == "hmget") {
			h.hops--
			h.hop()
		}
		return next(ctx, cmds)
	}
}

// TestEndAllFollowsASession that moves to a new token whenever it is looked at.
// What cannot be caught is no success.
func TestEndAllFollowsASession(t *testing.T) {
	for hops, caught := range map[int]bool{1: true, 2: true, 3: true, 1000: false} {
		t.Run(fmt.Sprintf("%d new tokens", hops), func(t *testing.T) {
			server := lab.Redis(t)
			m, token := stored(t, server.Client())
			operator := server.Client()
			operator.AddHook(&hopping{hops: hops, hop: func() { token = renewed(t, m, token) }})
			n, err := sessionstore.New(operator, patient).EndAll(t.Context(), "uid", "7")
			if alive := m.GetString(load(t, m, token), "uid") != ""; alive == caught {
				t.Errorf("ended %d, %v; alive: %v", n, err, alive)
			}
			if caught && err != nil || !caught && !errors.Is(err, sessionstore.ErrContended) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// renewed gives the session of token a new one.
func renewed(t *testing.T, m *sessionstore.Manager, token string) string {
	t.Helper()
	ctx := load(t, m, token)
	if err := m.RenewToken(ctx); err != nil {
		t.Fatal(err)
	}
	next, _, err := m.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return next
}
