package fleet_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop/example-game/internal/app"
	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

// asProgram makes the test binary behave as the game, in a process of its own
// that ends with its standard input.
const asProgram = "FLEET_TEST_AS_PROGRAM"

func runProgram() int {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := app.Run(ctx, os.Environ(), os.Stdout, os.Stderr); err != nil {
		slog.Error("the game ended", slog.Any("error", err))
		return 1
	}
	return 0
}

// prober is an instance of the game in a process of its own.
type prober struct {
	f    *fleet
	cmd  *exec.Cmd
	path *faultproxy.Proxy // to every shard
}

// process starts one more instance, which can be frozen.
func (f *fleet) process() *prober {
	f.t.Helper()
	i := len(f.games)
	f.proxies = append(f.proxies, map[string]*faultproxy.Proxy{})
	path := faultproxy.New(f.t, database.Addr())
	for _, shard := range shards {
		f.proxies[i][shard] = path
	}
	cmd := exec.CommandContext(f.t.Context(), os.Args[0])
	cmd.Env = append(f.environ(i, shards), asProgram+"=1", "GOCOVERDIR="+f.t.TempDir())
	cmd.Stderr = f.log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	return &prober{f: f, cmd: cmd, path: path}
}

func (p *prober) signal(sig syscall.Signal) {
	p.f.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.f.t.Fatal(err)
	}
}

// holds reports whether the process holds the probe lease of a shard, and
// whether the shard's record is its own, both at one moment.
func (p *prober) holds(shard string) (lease, record bool) {
	p.f.t.Helper()
	all, err := p.f.rdb.MGet(context.Background(), "db:probe:{db:health:"+shard+"}", "db:health:"+shard).Result()
	if err != nil && err != redis.Nil {
		p.f.t.Fatal(err)
	}
	name := fmt.Sprintf(":%d:", p.cmd.Process.Pid)
	return strings.Contains(fmt.Sprint(all[0]), name), strings.Contains(fmt.Sprint(all[1]), name)
}

// A process that holds a probe lease is frozen, for longer than its lease lasts.
// Another instance takes the lease; and when the process wakes, with a path that
// is broken by then and results that it would have written, it writes nothing.
func TestProberThatWakesWritesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{instances: 2})
	p := f.process()
	held := ""
	lab.Eventually(t, soon, "the process was given a lease, and writes", func() bool {
		for _, shard := range shards {
			if lease, record := p.holds(shard); lease && record {
				held = shard
			}
		}
		return held != ""
	})
	p.signal(syscall.SIGSTOP)
	frozen := time.Now()
	lab.Eventually(t, soon, "another instance probes", func() bool {
		lease, record := p.holds(held)
		return !lease && !record
	})
	if took := time.Since(frozen); took > 40*interval { // three, and a beat, to a machine that has time
		t.Errorf("another instance took over after %v", took)
	}
	p.path.SetMode(faultproxy.Cut)
	p.signal(syscall.SIGCONT)
	lab.Eventually(t, soon, "the process finds its path broken", func() bool {
		if lease, record := p.holds(held); record && !lease {
			t.Fatal("the process wrote without the lease")
		}
		return f.log.count("shard is down for this instance alone") > 0
	})
	for i := range f.games {
		if s := f.shards(i)[held]; s.State != "up" {
			t.Errorf("instance %d: %s is %s", i, held, s.State)
		}
	}
}
