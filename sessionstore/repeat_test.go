package sessionstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
)

// tape records the scripts that are sent, to send them again later, as
// go-redis does when an answer got lost.
type tape struct {
	lab.NoHook

	mu   sync.Mutex
	last []any // of the scripts that succeeded
}

func (tp *tape) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if name := cmd.Name(); err == nil && (name == "evalsha" || name == "eval") {
			tp.mu.Lock()
			defer tp.mu.Unlock()
			tp.last = cmd.Args()
		}
		return err
	}
}

// again sends what script was sent last, and returns its answer.
func (tp *tape) again(t *testing.T, rdb redis.UniversalClient, script []any) any {
	t.Helper()
	answer, err := rdb.Do(t.Context(), script...).Result()
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func (tp *tape) get() []any {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return tp.last
}

// TestLateRepeats sends every script again after another request came in
// between. None undoes what that one did, and each tells of success.
func TestLateRepeats(t *testing.T) {
	for name, rdb := range map[string]*redis.Client{"miniredis": miniClient(t), "redis": lab.Redis(t).Client()} {
		t.Run(name, func(t *testing.T) {
			tp := new(tape)
			rdb.AddHook(tp)
			s := newSite(t, rdb, nil)
			b := s.browser()
			b.visit("/put?a=1")
			create := tp.get()
			b.visit("/put?a=2")
			save := tp.get()
			for i := 3; i < 8; i++ { // five more saves
				b.visit(fmt.Sprintf("/put?a=%d", i))
			}
			if answer := tp.again(t, rdb, save); answer != int64(1) {
				t.Errorf("a repeated save answers %v", answer)
			}
			if answer := tp.again(t, rdb, create); answer != int64(1) {
				t.Errorf("a repeated create answers %v", answer)
			}
			if hash := s.hash(b.key()); hash["d:a"] != text("7") || hash["version"] != "7" {
				t.Errorf("the repeats changed the session: %v", hash)
			}

			b.visit("/claim?shard=A")
			claim := tp.get()
			b.visit("/claim?shard=B")
			tp.again(t, rdb, claim)
			if hash := s.hash(b.key()); hash["db_server"] != "B" || hash["epoch"] != "2" {
				t.Errorf("the repeated claim changed the route: %v", hash)
			}

			b.visit("/logout")
			for _, script := range [][]any{save, claim} {
				tp.again(t, rdb, script)
			}
			if keys := s.keys(); len(keys) != 0 {
				t.Errorf("the repeats revived %v", keys)
			}
		})
	}
}
