package lab

import (
	"context"
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// reaperScript ends the server's process group ($1) and removes its folder
// ($2) unless a line says first that the server has ended. It waits on a pipe
// that only the test binary holds open. A dying server may write a last file
// for a moment.
const reaperScript = `read -r _ && exit
kill -s KILL -- "-$1"
sleep 1
rm -rf "$2"`

// reaper is the shell that outlives the test binary.
type reaper struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

func startReaper(pid int, folder string) (*reaper, error) {
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", reaperScript, "lab-reaper", strconv.Itoa(pid), folder)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &reaper{cmd: cmd, pipe: pipe}, nil
}

// dismiss tells the reaper that the server has ended, and waits for it.
func (r *reaper) dismiss() {
	_, _ = io.WriteString(r.pipe, "ended\n")
	_ = r.pipe.Close()
	_ = r.cmd.Wait()
}
