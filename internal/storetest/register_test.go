package storetest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/sessionstore"
)

// claim asks to move the route to shard, as seen from base.
type claim struct {
	base  sessionstore.Route
	shard string
}

// register is what the route of one session has to look like to everybody
// together: a register that is read and moved by compare-and-set. Inputs are
// nil, a read, or a claim; outputs are the route that was seen.
var register = porcupine.Model{
	Init: func() any { return sessionstore.Route{} },
	Step: func(state, input, output any) (bool, any) {
		stands, saw := state.(sessionstore.Route), output.(sessionstore.Route)
		c, isClaim := input.(claim)
		if isClaim && c.base == stands {
			moved := stands.Moved(c.shard)
			return saw == moved, moved
		}
		return saw == stands, stands
	},
	DescribeOperation: func(input, output any) string {
		if c, ok := input.(claim); ok {
			return fmt.Sprintf("claim %s on %v → %v", c.shard, c.base, output)
		}
		return fmt.Sprintf("read → %v", output)
	},
}

func TestModelOfTheRegister(t *testing.T) {
	var none sessionstore.Route
	a, b := none.Moved("A"), none.Moved("B")
	tests := []struct {
		name, reason string
		second       porcupine.Operation
		want         bool
	}{
		{"loser follows", "the second claim came too late", op(1, claim{none, "B"}, a), true},
		{"both win", "two claims on one route cannot both succeed", op(1, claim{none, "B"}, b), false},
		{"stale read", "the claim had been answered before the read began", op(1, nil, none), false},
		{"lost for nothing", "nobody else moved the route", op(1, claim{a, "B"}, a), false},
		{"moved on", "a claim on what stands succeeds", op(1, claim{a, "B"}, a.Moved("B")), true},
	}
	for _, test := range tests {
		history := []porcupine.Operation{op(0, claim{none, "A"}, a), test.second}
		if got := porcupine.CheckOperations(register, history); got != test.want {
			t.Errorf("%s: linearizable %v, want %v: %s", test.name, got, test.want, test.reason)
		}
	}
}

// op is the nth operation of a history in which none overlap.
func op(n int64, input, output any) porcupine.Operation {
	return porcupine.Operation{Input: input, Call: 10 * n, Output: output, Return: 10*n + 5}
}

func TestRouteIsARegister(t *testing.T) {
	clients := map[string]func(t testing.TB) redis.UniversalClient{
		"redis": onRedis, "cluster": onCluster, "sentinel": onSentinel,
	}
	for name, open := range clients {
		t.Run(name, func(t *testing.T) {
			history := readAndMove(t, open)
			if n := lost(history); n == 0 {
				t.Error("nobody lost a claim: the clients did not meet")
			}
			result := porcupine.CheckOperationsTimeout(register, history, 20*time.Second)
			if result == porcupine.Ok {
				return
			}
			t.Errorf("a history of %d operations: %s", len(history), result)
			for _, op := range history {
				t.Log(op.ClientId, op.Call, op.Return, register.DescribeOperation(op.Input, op.Output))
			}
		})
	}
}

// lost counts the claims that another client forestalled.
func lost(history []porcupine.Operation) int {
	n := 0
	for _, op := range history {
		if c, ok := op.Input.(claim); ok && op.Output != c.base.Moved(c.shard) {
			n++
		}
	}
	return n
}

// readAndMove lets players' requests come in at three instances at once and
// returns what each saw, and when.
func readAndMove(t *testing.T, open func(t testing.TB) redis.UniversalClient) []porcupine.Operation {
	t.Helper()
	const instances, clients, requests = 3, 12, 25
	prefix := uniquePrefix()
	managers := make([]*sessionstore.Manager, instances)
	for i := range managers {
		managers[i] = sessionstore.New(open(t), patient(prefix))
	}
	token := storePlayer(t, managers[0])

	began := time.Now()
	histories := make([][]porcupine.Operation, clients)
	var wg sync.WaitGroup
	for id := range clients {
		record := func(input any, do func() sessionstore.Route) {
			call := time.Since(began)
			saw := do()
			histories[id] = append(histories[id], porcupine.Operation{
				ClientId: id, Input: input, Call: call.Nanoseconds(), Output: saw, Return: time.Since(began).Nanoseconds(),
			})
		}
		wg.Go(func() {
			for i := range requests {
				m := managers[rand.IntN(instances)]
				request(t, m, token, fmt.Sprintf("server_%d_%d", id, i), record)
			}
		})
	}
	wg.Wait()
	var all []porcupine.Operation
	for _, history := range histories {
		all = append(all, history...)
	}
	return all
}

// request loads the session and then, like other requests, moves the route or
// stores a value, or both.
func request(t *testing.T, m *sessionstore.Manager, token, shard string, record func(any, func() sessionstore.Route)) {
	var ctx context.Context
	record(nil, func() sessionstore.Route {
		var err error
		if ctx, err = m.Load(t.Context(), token); err != nil {
			t.Error(err)
		}
		r, _ := m.Route(ctx)
		return r
	})
	if rand.IntN(3) == 0 {
		m.Put(ctx, "last", shard)
		if _, _, err := m.Commit(ctx); err != nil {
			t.Error(err)
		}
	}
	for range rand.IntN(3) { // the second claim goes out from what the first one saw
		base, _ := m.Route(ctx)
		record(claim{base, shard}, func() sessionstore.Route {
			stands, err := m.Claim(ctx, base.Moved(shard))
			if err != nil {
				t.Error(err)
			}
			return stands
		})
	}
}

// storePlayer returns the token of a session that is logged in.
func storePlayer(t testing.TB, m *sessionstore.Manager) (token string) {
	t.Helper()
	ctx, err := m.Load(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	m.Put(ctx, "uid", "7")
	lab.Eventually(t, recovery, "the player is logged in", func() bool {
		token, _, err = m.Commit(ctx)
		return err == nil
	})
	return token
}
