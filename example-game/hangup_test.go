package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
)

// hangups is how many signals a storm has.
const hangups = 20

// The program reads the file of its shards on SIGHUP, however many come, says
// what is wrong with it and goes on, and still ends with zero.
func TestHangupReadsTheShardsAnew(t *testing.T) {
	db := lab.MariaDB(t)
	file := filepath.Join(t.TempDir(), "shards.env")
	a, b := "SHARD_A_DSN="+db.DSN(), "SHARD_B_DSN="+db.DSN()
	replace(t, file, "SHARDS=a", a)
	p := launch(t, "SHARDS_FILE="+file, "REDIS_URL="+lab.Redis(t).URL())
	p.want(t, "a")

	replace(t, file, "SHARDS=a,b", a, b)
	p.signal(t, syscall.SIGHUP)
	p.want(t, "a", "b")

	replace(t, file, "SHARDS=a,b", a, "SHARD_B_DSN=app:hunter2@nonsense")
	p.signal(t, syscall.SIGHUP)
	lab.Eventually(t, patience, "the log says what is wrong", func() bool {
		return strings.Contains(p.log.String(), "shards not reloaded") && strings.Contains(p.log.String(), "SHARD_B_DSN")
	})
	p.want(t, "a", "b")

	replace(t, file, "SHARDS=b", b)
	var storm sync.WaitGroup
	for range hangups {
		storm.Go(func() { p.signal(t, syscall.SIGHUP) })
	}
	storm.Wait()
	p.want(t, "b")

	p.signal(t, syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("SIGTERM after the storm: %v", err)
	}
	if text := p.log.String(); strings.Contains(text, "hunter2") {
		t.Errorf("the log has a password:\n%s", text)
	}
}

// patience bounds each wait for the program, on the busiest machine.
const patience = 30 * time.Second

// process is the program while it runs.
type process struct {
	cmd   *exec.Cmd
	admin string // URL
	log   *logged
}

// launch starts the program and waits until it serves. It ends with t.
func launch(t *testing.T, environ ...string) *process {
	t.Helper()
	p := &process{cmd: program(t, append(environ, "ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0")...), log: &logged{}}
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	found := regexp.MustCompile(`admin on (http://[^,]+)`).FindStringSubmatch(line)
	if found == nil {
		t.Fatalf("start line %q, %v:\n%s", line, err, p.log)
	}
	p.admin = found[1]
	return p
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Errorf("%v: %v", s, err)
	}
}

// want waits until the program works with just these shards, and all are up.
func (p *process) want(t *testing.T, names ...string) {
	t.Helper()
	lab.Eventually(t, patience, "its shards are "+strings.Join(names, ", "), func() bool {
		res, err := http.Get(p.admin + "/shards")
		if err != nil {
			t.Fatalf("%v:\n%s", err, p.log)
		}
		defer func() { _ = res.Body.Close() }()
		var shards []struct{ Shard, State string }
		if err := json.NewDecoder(res.Body).Decode(&shards); err != nil {
			t.Fatal(err)
		}
		var up []string
		for _, s := range shards {
			if s.State == "up" {
				up = append(up, s.Shard)
			}
		}
		return len(up) == len(shards) && slices.Equal(up, names)
	})
}

// replace puts another file of shards in the place of the one that is there.
func replace(t *testing.T, file string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(file+".new", []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// logged takes what a program writes. It is safe for use by several goroutines.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
