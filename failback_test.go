package shardhop_test

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/shardrouter"
)

// Whatever a home does, its players are moved away, brought back once, moved
// away again, and then stay: three moves, however often it falls. Those who
// live elsewhere are not touched.
func TestMovesOfAPlayerAreBounded(t *testing.T) {
	const players, falls, stable = 8, 6, 300 * time.Millisecond
	rdb := lab.Redis(t)
	servers := startShards(t, 2)
	cfg := servers.config(rdb.URL())
	path := faultproxy.New(t, servers["server_1"].Addr())
	cfg.Router.Shards[0].DSN = shardrouter.DSN(servers["server_1"].DSNAt(path.Addr()))
	cfg.Router.HealthInterval, cfg.Router.Failback = 100*time.Millisecond, stable
	hop := open(t, cfg)
	awaitUp(t, hop)
	mux := http.NewServeMux()
	mux.Handle("POST /login", login(hop))
	mux.HandleFunc("POST /dig", dig)
	handler := hop.Handler(mux)

	all := make([]*player, players)
	for i := range all {
		all[i] = newPlayer(t, handler)
		all[i].name += strconv.Itoa(i)
		all[i].post("/login")
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() {
			for pause := time.NewTicker(20 * time.Millisecond); ; <-pause.C {
				select {
				case <-stop:
					pause.Stop()
					return
				default:
					// What was cut off in mid-statement is an error; the next one is served.
					p.do("/dig")
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range falls {
		for _, mode := range []faultproxy.Mode{faultproxy.Cut, faultproxy.Pass} {
			path.SetMode(mode)
			rest := time.NewTimer(stable + time.Duration(random.Int64N(int64(4*stable))))
			<-rest.C
		}
	}
	close(stop)
	wg.Wait()

	moved := 0
	for _, p := range all {
		epoch, err := strconv.Atoi(p.stored(rdb.Client(), "epoch"))
		if err != nil {
			t.Fatal(err)
		}
		home := p.stored(rdb.Client(), "home")
		if most := map[string]int{"server_1": 4, "server_2": 1}[home]; epoch > most {
			t.Errorf("a player of %s is at epoch %d, want at most %d", home, epoch, most)
		}
		if epoch > 1 {
			moved++
		}
	}
	if moved == 0 {
		t.Error("nobody was moved: the test shows nothing")
	}
}
