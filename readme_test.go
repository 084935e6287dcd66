package shardhop_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
)

const readmeAddr = "127.0.0.1:8080"

// The README's program does what the README says, on the README's variables.
func TestReadmeProgram(t *testing.T) {
	rdb := lab.Redis(t)
	shards := startShards(t, 2)
	addr := fmt.Sprintf("127.0.0.1:%d", lab.FreePort(t))
	start(t, buildReadmeProgram(t, addr),
		"REDIS_URL="+rdb.URL(),
		"SHARDS=server_1,server_2",
		"SHARD_SERVER_1_DSN="+shards["server_1"].DSN(),
		"SHARD_SERVER_2_DSN="+shards["server_2"].DSN(),
	)
	player := playerAt(t, "http://"+addr)
	lab.Eventually(t, 10*time.Second, "the program listens", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})

	player.post("/login")
	dug, _ := player.post("/dig")
	before := strings.TrimPrefix(dug, "1 gold, served by ")
	if shards[before] == nil {
		t.Fatalf("dug %q", dug)
	}
	shards[before].Kill()
	dug, _ = player.post("/dig")
	if after := strings.TrimPrefix(dug, "1 gold, served by "); shards[after] == nil || after == before {
		t.Errorf("dug %q after %s died", dug, before)
	}
}

func TestReadmeProgramIsShort(t *testing.T) {
	if lines := strings.Count(readmeProgram(t), "\n"); lines >= 60 {
		t.Errorf("the program has %d lines, want less than 60", lines)
	}
}

// readmeProgram is the one block of Go in the README.
func readmeProgram(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(blocks) != 1 {
		t.Fatalf("the README has %d blocks of Go, want one", len(blocks))
	}
	return string(blocks[0][1])
}

// buildReadmeProgram builds the README's program as it stands, but for its
// address.
func buildReadmeProgram(t *testing.T, addr string) (binary string) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	program := strings.Replace(readmeProgram(t), readmeAddr, addr, 1)
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("the README's program does not build: %v\n%s", err, out)
	}
	return binary
}

// start runs a program that ends with the test.
func start(t *testing.T, binary string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Env = env
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // killed by the end of the test's context
}
