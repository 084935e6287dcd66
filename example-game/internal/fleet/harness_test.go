package fleet_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/example-game/internal/app"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

// soon is long enough for what has to happen at some time on a busy machine.
const soon = time.Minute

// interval is the probe interval of a fleet that is in a hurry.
const interval = 250 * time.Millisecond

// shards are those of a fleet that is not told otherwise.
var shards = []string{"server_1", "server_2", "server_3"}

// plan says how a fleet is made. The zero value is three instances on shards.
type plan struct {
	instances int
	environ   []string          // of every instance, over what the harness sets
	dsns      map[string]string // of shards that are not on the common server
	shards    []string          // those of the list above, unless set
	calm      bool              // the default probe interval
	quiet     bool              // the log is not passed on
}

// fleet is some instances of the game.
type fleet struct {
	t       testing.TB
	plan    plan
	redis   *lab.RedisServer
	rdb     *redis.Client
	log     *journal
	games   []*app.App
	proxies []map[string]*faultproxy.Proxy // of each instance, by shard
	players []*player                      // that have joined; the test's goroutine's
}

// newFleet starts the instances of p at once, and waits until each has found
// every shard up.
func newFleet(t testing.TB, p plan) *fleet {
	t.Helper()
	if p.instances == 0 {
		p.instances = 3
	}
	if p.shards == nil {
		p.shards = shards
	}
	f := &fleet{t: t, plan: p, redis: lab.Redis(t), log: &journal{out: t.Output()}}
	if p.quiet {
		f.log.out = io.Discard
	}
	f.rdb = f.redis.Client()
	f.games = make([]*app.App, p.instances)
	f.proxies = make([]map[string]*faultproxy.Proxy, p.instances)
	for i := range f.games {
		f.proxies[i] = map[string]*faultproxy.Proxy{}
		f.start(i, p.shards)
	}
	t.Cleanup(f.end)
	f.ready()
	return f
}

// start starts one instance that knows the shards of list, with more variables.
func (f *fleet) start(i int, list []string, more ...string) {
	f.t.Helper()
	game, err := app.Start(f.t.Context(), append(f.environ(i, list), more...), slog.New(slog.NewTextHandler(f.log, nil)))
	if err != nil {
		f.t.Fatal(err)
	}
	f.games[i] = game
}

// environ is the environment of an instance that knows the shards of list.
func (f *fleet) environ(i int, list []string) []string {
	environ := []string{"ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0", "REDIS_URL=" + f.redis.URL(), "SHARDS=" + strings.Join(list, ",")}
	if !f.plan.calm {
		environ = append(environ, "SHARD_HEALTH_INTERVAL="+interval.String())
	}
	for _, shard := range list {
		environ = append(environ, "SHARD_"+strings.ToUpper(shard)+"_DSN="+f.path(i, shard))
	}
	return append(environ, f.plan.environ...)
}

// path is the DSN of a shard by way of the instance's own proxy.
func (f *fleet) path(i int, shard string) string {
	target := f.plan.dsns[shard]
	if target == "" {
		target = database.DSN()
	}
	upstream := target[strings.Index(target, "(")+1 : strings.Index(target, ")")]
	if f.proxies[i][shard] == nil {
		f.proxies[i][shard] = faultproxy.New(f.t, upstream)
	}
	return strings.Replace(target, upstream, f.proxies[i][shard].Addr(), 1)
}

// restart ends one instance and starts it anew, as a rolling change does.
func (f *fleet) restart(i int, list []string, more ...string) {
	f.t.Helper()
	f.games[i].Shutdown()
	f.start(i, list, more...)
	f.ready()
}

// ready waits until every instance has found every shard that it knows up.
func (f *fleet) ready() {
	f.t.Helper()
	for i := range f.games {
		lab.Eventually(f.t, soon, fmt.Sprintf("instance %d has found all shards up", i), func() bool {
			for _, s := range f.shards(i) {
				if s.State != "up" {
					return false
				}
			}
			return true
		})
	}
}

// end holds what has to hold after every test: no lease is out and nobody
// waits. Then it ends the instances.
func (f *fleet) end() {
	for i, game := range f.games {
		lab.Eventually(f.t, soon, fmt.Sprintf("all leases of instance %d are back", i), func() bool {
			for _, s := range f.shards(i) {
				if s.Pool.InUse != 0 || s.Pool.Waiting != 0 {
					return false
				}
			}
			return true
		})
		for _, s := range f.shards(i) {
			if s.Counts.Leaks != 0 {
				f.t.Errorf("instance %d leaked %d times on %s", i, s.Counts.Leaks, s.Shard)
			}
		}
		game.Shutdown()
	}
}

// set sets the mode of a shard's proxies for some instances; for all where
// none is named.
func (f *fleet) set(mode faultproxy.Mode, shard string, instances ...int) {
	for i := range f.games {
		if len(instances) == 0 || slices.Contains(instances, i) {
			f.proxies[i][shard].SetMode(mode)
		}
	}
}

// shardInfo is what an operator sees of a shard, in part.
type shardInfo struct {
	Shard   string `json:"shard"`
	State   string `json:"state"`
	Drained bool   `json:"drained"`
	Pool    struct {
		InUse   int `json:"in_use"`
		Idle    int `json:"idle"`
		Waiting int `json:"waiting"`
	} `json:"pool"`
	Counts struct {
		Leaks       int `json:"leaks"`
		RotatedAway int `json:"rotated_away"`
	} `json:"counts"`
}

// shards is what an instance's operators see, by the shards' names.
func (f *fleet) shards(i int) map[string]shardInfo {
	f.t.Helper()
	res, err := http.Get(f.games[i].AdminURL() + "/shards")
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var all []shardInfo
	if err := json.NewDecoder(res.Body).Decode(&all); err != nil {
		f.t.Fatal(err)
	}
	named := map[string]shardInfo{}
	for _, s := range all {
		named[s.Shard] = s
	}
	return named
}

// await waits until every instance sees the shard in state.
func (f *fleet) await(shard, state string) {
	f.t.Helper()
	for i := range f.games {
		lab.Eventually(f.t, soon, fmt.Sprintf("%s is %s for instance %d", shard, state, i), func() bool {
			return f.shards(i)[shard].State == state
		})
	}
}

// operate sends an order to an instance's admin listener.
func (f *fleet) operate(i int, method, path, body string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.games[i].AdminURL()+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		f.t.Fatalf("%s %s: %d", method, path, res.StatusCode)
	}
}

// open is how many connections instance i has to a shard.
func (f *fleet) open(i int, shard string) int { return f.proxies[i][shard].Open() }

// journal keeps the log of a fleet, and passes it on. Safe for use by several
// goroutines.
type journal struct {
	out io.Writer

	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text.Write(p)
	return j.out.Write(p)
}

// count is how often something was logged.
func (j *journal) count(what string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), what)
}
