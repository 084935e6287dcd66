package fleet_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/internal/lab"
)

// Two instances learn of server_4 from their files while they run, the third does
// not. It serves a player of server_4 elsewhere and moves nobody for good, until
// its own file names the shard too.
func TestShardThatOneFileDoesNotName(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{})
	four := append(shards[:3:3], "server_4")
	files := make([]string, len(f.games))
	for i := range f.games {
		files[i] = filepath.Join(t.TempDir(), "shards.env")
		f.write(files[i], "# nothing yet")
		f.restart(i, shards, "SHARDS_FILE="+files[i])
	}
	learn := func(i int) {
		f.write(files[i], "SHARDS="+strings.Join(four, ","), "SHARD_SERVER_4_DSN="+f.path(i, "server_4"))
		if err := f.games[i].Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	learn(0)
	learn(1)
	f.ready()
	var player *player
	for player == nil {
		if p := f.join(0); p.home == "server_4" {
			player = p
		}
	}
	before := routes(f.players)
	lab.Eventually(t, soon, "the third instance has heard of server_4", func() bool {
		a := player.me(2)
		return a.status == http.StatusOK && f.log.count("request served by a detour") > 0
	})
	for range 5 {
		for i := range f.games {
			if a := player.me(i); a.status != http.StatusOK || (a.shard == "server_4") != (i < 2) {
				t.Errorf("instance %d: %+v", i, a)
			}
		}
	}
	stayed(t, f.players, before)
	learn(2)
	lab.Eventually(t, soon, "the third instance serves at home", func() bool { return player.me(2).shard == "server_4" })
	stayed(t, f.players, before)
}

// write replaces a file of variables.
func (f *fleet) write(file string, lines ...string) {
	f.t.Helper()
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		f.t.Fatal(err)
	}
}
