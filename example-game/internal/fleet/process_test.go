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
	f   *fleet
	cmd *exec.Cmd
}

// process starts one more instance, which can be frozen.
func (f *fleet) process() *prober {
	f.t.Helper()
	i := len(f.games)
	f.proxies = append(f.proxies, map[string]*faultproxy.Proxy{})
	cmd := exec.CommandContext(f.t.Context(), os.Args[0])
	cmd.Env = append(f.environ(i, f.plan.shards), asProgram+"=1", "GOCOVERDIR="+f.t.TempDir())
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
	return &prober{f: f, cmd: cmd}
}

func (p *prober) signal(sig syscall.Signal) {
	p.f.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.f.t.Fatal(err)
	}
}

// holds reports whether a process holds the probe lease of a shard, and whether
// the shard's record is its own, both at one moment.
func (f *fleet) holds(pid int, shard string) (lease, record bool) {
	f.t.Helper()
	all, err := f.rdb.MGet(context.Background(), "db:probe:{db:health:"+shard+"}", "db:health:"+shard).Result()
	if err != nil {
		f.t.Fatal(err)
	}
	name := fmt.Sprintf(":%d:", pid)
	return strings.Contains(fmt.Sprint(all[0]), name), strings.Contains(fmt.Sprint(all[1]), name)
}

// A process that holds a probe lease is frozen, for longer than its lease lasts.
// Another instance takes the lease; and when the process wakes, and finds a record
// that is not its own, it writes nothing.
func TestProberThatWakesWritesNothing(t *testing.T) {
	t.Parallel()
	const shard = "server_1"
	f := newFleet(t, plan{instances: 1, shards: []string{shard}}) // one shard: nobody offers the lease back
	p := f.process()
	alive := func(n int64) func() bool {
		return func() bool { return f.rdb.ZCard(t.Context(), "db:{fleet}:members").Val() == n }
	}
	lab.Eventually(t, soon, "the process lives", alive(2))
	f.games[0].Shutdown()
	lab.Eventually(t, soon, "the process was left the lease, and writes", func() bool {
		lease, record := f.holds(p.cmd.Process.Pid, shard)
		return lease && record
	})
	f.start(0, f.plan.shards)
	f.ready()
	p.signal(syscall.SIGSTOP)
	frozen := time.Now()
	lab.Eventually(t, soon, "another instance probes", func() bool {
		lease, record := f.holds(os.Getpid(), shard)
		return lease && record
	})
	if took := time.Since(frozen); took > 40*interval { // three, and a beat, to a machine that has time
		t.Errorf("another instance took over after %v", took)
	}
	lab.Eventually(t, soon, "the process counts as dead", alive(1))
	p.signal(syscall.SIGCONT)
	lab.Eventually(t, soon, "the process lives again", alive(2))
	for end := time.Now().Add(8 * interval); time.Now().Before(end); <-time.After(interval / 50) {
		if lease, record := f.holds(p.cmd.Process.Pid, shard); lease || record {
			t.Fatalf("lease %v, record %v of the process that woke", lease, record)
		}
	}
	if s := f.shards(0)[shard]; s.State != "up" {
		t.Errorf("%s is %s", shard, s.State)
	}
}
