package main

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asProgram makes the test binary behave as the program.
const asProgram = "EXAMPLE_GAME_AS_PROGRAM=1"

func TestMain(m *testing.M) {
	if os.Getenv("EXAMPLE_GAME_AS_PROGRAM") == "1" {
		main()
		return
	}
	signal.Reset() // package stop listens here, too, and nobody asks it
	os.Exit(m.Run())
}

// program is the game in a process of its own, with nothing set but environ.
func program(t *testing.T, environ ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	// Under -cover the program writes a line about it unless it has a folder.
	cmd.Env = append([]string{asProgram, "GOCOVERDIR=" + t.TempDir()}, environ...)
	return cmd
}

func TestSignalsEndItWithZero(t *testing.T) {
	for _, end := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := program(t, "ADDR=127.0.0.1:0", "ADMIN_ADDR=127.0.0.1:0", "GODEBUG=inittrace=1")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "game on http://127.0.0.1:") {
			t.Errorf("start line %q, %v", line, err)
		}
		began := time.Now()
		if err := cmd.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", end, err)
		}
		// Until the first of these packages is ready, signals are not heard.
		listens := strings.Index(errs.String(), "init github.com/shardhop/shardhop/example-game/internal/stop ")
		slow := strings.Index(errs.String(), "init github.com/dolthub/")
		if listens < 0 || slow >= 0 && slow < listens {
			t.Errorf("%v: signals are heard too late:\n%s", end, errs.String())
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%v: took %v", end, took)
		}
	}
}

// What else can be wrong is tested in package app; a process of its own takes
// seconds to start with the race detector.
func TestAWrongStartEndsWithOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for reason, environ := range map[string][]string{
		"a busy port":      {"ADDR=" + taken.Addr().String(), "ADMIN_ADDR=127.0.0.1:0"},
		"a wrong variable": {"ADDR=nowhere", "ADMIN_ADDR=127.0.0.1:0"},
	} {
		cmd := program(t, environ...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 1 {
			t.Errorf("%s: exit %d", reason, code)
		}
		if text := errs.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "ADDR") || out.Len() > 0 {
			t.Errorf("%s: stderr %q, stdout %q", reason, text, out.String())
		}
	}
}
