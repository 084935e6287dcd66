package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardhop/shardhop/internal/lab"
)

// A player digs while shards come and go by the file.
func TestReloadByFile(t *testing.T) {
	db := lab.MariaDB(t)
	path := filepath.Join(t.TempDir(), "shards")
	write := func(lines ...string) {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, b := "SHARD_A_DSN="+db.DSN(), "SHARD_B_DSN="+db.DSN()
	write("SHARDS=a", a)
	game := start(t, "SHARDS_FILE="+path, "REDIS_URL="+lab.Redis(t).URL())
	ann := newClient(t, game.URL())
	ann.register("ann")
	var digging sync.WaitGroup
	var stop atomic.Bool
	digging.Go(func() {
		for !stop.Load() {
			if got := ann.do("POST", "/api/dig", ""); got.status != http.StatusOK {
				t.Errorf("dig: %d %s", got.status, got.body)
				return
			}
		}
	})
	for _, lines := range [][]string{{"SHARDS=a,b", a, b}, {"SHARDS=b", b}, {"SHARDS=b,a", a, b}} {
		write(lines...)
		if err := game.Reload(t.Context()); err != nil {
			t.Errorf("%s: %v", lines[0], err)
		}
	}
	write("SHARDS=b,a", a, "SHARD_B_DSN=app:hunter2@nonsense")
	if err := game.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "SHARD_B_DSN") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a bad file: %v", err)
	}
	stop.Store(true)
	digging.Wait()
}
