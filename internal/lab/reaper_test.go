package lab_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/shardhop/shardhop/internal/lab"
)

// victim is set in the environment of a test binary that is to be killed.
const victim = "LAB_TEST_VICTIM"

func TestServersEndWithTheTestBinary(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), victim+"=1")
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe() // keeps the victim waiting
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = input.Close() }()
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids [2]int
	var folders [2]string
	_, scanErr := fmt.Fscanln(bufio.NewReader(output), &pids[0], &folders[0], &pids[1], &folders[1])
	_ = cmd.Process.Kill() // no cleanup runs
	_ = cmd.Wait()
	if scanErr != nil {
		t.Fatal(scanErr)
	}
	for i, pid := range pids {
		lab.Eventually(t, 10*time.Second, "server and folder are gone", func() bool {
			_, err := os.Stat(folders[i])
			return !lab.Alive(pid) && os.IsNotExist(err)
		})
	}
}

// TestVictim is the test of the binary that is killed; in any other it has
// nothing to do.
func TestVictim(t *testing.T) {
	if os.Getenv(victim) == "" {
		return
	}
	r, m := lab.Redis(t), lab.MariaDB(t)
	m.Freeze()
	fmt.Println(r.PID(), r.Folder(), m.PID(), m.Folder())
	_, _ = io.Copy(io.Discard, os.Stdin)
}
