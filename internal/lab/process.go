package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 30 * time.Second
	// freezeTimeout bounds the wait until every thread of a process stands.
	freezeTimeout = 5 * time.Second
)

// install is the remedy when a server's program is missing.
const install = "apt-get install -y mariadb-server redis-server rsync"

// spec says how one server is run.
type spec struct {
	name   string                   // of the program, for messages
	addr   string                   // where it listens
	folder string                   // its own, removed when the test binary dies
	argv   func() ([]string, error) // program and arguments of the next start
	env    []string                 // added to the environment
	ready  func() error             // nil once the server does its work
}

// Process is one server under the control of a test. Start, Restart, Stop,
// Kill, Freeze and Thaw end the test when they fail. All methods are safe for
// use by several goroutines; as with [testing.T.FailNow], a failure in another
// goroutine than the test's ends that goroutine only.
type Process struct {
	t    testing.TB
	spec spec

	mu   sync.Mutex // held by the test's goroutines throughout each operation
	run  *run       // nil while stopped
	more []string   // arguments that come last
}

// run is one life of the process.
type run struct {
	cmd    *exec.Cmd
	reaper *reaper
	ended  chan struct{} // closed when the process has been waited for
}

// newProcess returns a process that is killed when the test ends. It is not
// started yet.
func newProcess(t testing.TB, s spec) *Process {
	p := &Process{t: t, spec: s}
	t.Cleanup(p.cleanup)
	return p
}

func (p *Process) cleanup() {
	p.Kill()
	if p.t.Failed() {
		p.t.Logf("log of %s at %s:\n%s", p.spec.name, p.spec.addr, p.logTail())
	}
}

// Addr returns the host:port that the server listens on.
func (p *Process) Addr() string { return p.spec.addr }

// PID returns the process id, 0 while the server is stopped.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.liveLocked(); r != nil {
		return r.cmd.Process.Pid
	}
	return 0
}

// Start starts the server on its port, with the data in its folder, and
// returns when it answers. A server that runs already is left as it is.
func (p *Process) Start() {
	p.t.Helper()
	p.launch()
	p.awaitReady()
}

// AddArgs adds arguments to the command line of the starts to come, where they
// win over the earlier ones. They must not move the server's port or folders.
func (p *Process) AddArgs(args ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.more = append(p.more, args...)
}

// Restart stops the server in an orderly way and starts it again.
func (p *Process) Restart() {
	p.t.Helper()
	p.Stop()
	p.Start()
}

// Stop asks the server to shut down (SIGTERM) and waits for its end. A frozen
// server is thawed first.
func (p *Process) Stop() {
	p.t.Helper()
	p.end(syscall.SIGTERM)
}

// Kill ends the server at once (SIGKILL), as a crash does, and waits for its
// end.
func (p *Process) Kill() {
	p.t.Helper()
	p.end(syscall.SIGKILL)
}

// Freeze stops every thread of the server (SIGSTOP): its sockets stay open,
// the kernel still accepts connections for it, and nothing answers. It returns
// when the server stands still.
func (p *Process) Freeze() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.liveLocked()
	if r == nil {
		p.t.Fatalf("lab: freeze of %s: it is not running", p.spec.name)
	}
	p.signalLocked(r, syscall.SIGSTOP)
	if !poll(freezeTimeout, func() bool { return frozen(r.cmd.Process.Pid) }) {
		p.t.Fatalf("lab: %s did not freeze within %v", p.spec.name, freezeTimeout)
	}
}

// Thaw lets a frozen server go on (SIGCONT). It does nothing to a server that
// runs or is stopped.
func (p *Process) Thaw() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.liveLocked(); r != nil {
		p.signalLocked(r, syscall.SIGCONT)
	}
}

// liveLocked returns the present run, nil when there is none or when the
// server has ended by itself.
func (p *Process) liveLocked() *run {
	if p.run == nil {
		return nil
	}
	select {
	case <-p.run.ended:
		p.run = nil
	default:
	}
	return p.run
}

// launch starts the program if it does not run, and does not wait for it to
// answer.
func (p *Process) launch() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.liveLocked() != nil {
		return
	}
	r, err := startRun(p.spec, p.more)
	if err != nil {
		p.t.Fatalf("lab: start of %s: %v", p.spec.name, err)
	}
	p.run = r
}

func startRun(s spec, more []string) (*run, error) {
	argv, err := s.argv()
	if err != nil {
		return nil, err
	}
	argv = slices.Concat(argv, more)
	log, err := os.OpenFile(logPath(s.folder), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	reaper, err := startReaper(cmd.Process.Pid, s.folder)
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, err
	}
	r := &run{cmd: cmd, reaper: reaper, ended: make(chan struct{})}
	go r.wait()
	return r, nil
}

// wait owns the end of the process: the only call of Wait, and the dismissal
// of the reaper before the process id can mean another process for long.
func (r *run) wait() {
	_ = r.cmd.Wait()
	r.reaper.dismiss()
	close(r.ended)
}

// awaitReady polls until the server answers.
func (p *Process) awaitReady() {
	p.t.Helper()
	var err error
	up := poll(startTimeout, func() bool {
		if p.PID() == 0 {
			p.t.Fatalf("lab: %s ended while it started:\n%s", p.spec.name, p.logTail())
		}
		err = p.spec.ready()
		return err == nil
	})
	if !up {
		p.t.Fatalf("lab: %s not ready within %v: %v\n%s", p.spec.name, startTimeout, err, p.logTail())
	}
}

// end sends sig to a server that runs and waits for its end. A server that
// outlasts an orderly stop is killed, and the test fails.
func (p *Process) end(sig syscall.Signal) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.liveLocked()
	if r == nil {
		return
	}
	p.signalLocked(r, sig)
	p.signalLocked(r, syscall.SIGCONT)
	if sig == syscall.SIGKILL {
		// The scripts of a state transfer would hold the port.
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
	}
	select {
	case <-r.ended:
	case <-time.After(stopTimeout):
		_ = r.cmd.Process.Kill()
		<-r.ended
		p.t.Errorf("lab: %s did not end within %v of %v", p.spec.name, stopTimeout, sig)
	}
	p.run = nil
}

// signalLocked sends sig; a process that has just ended is no failure.
func (p *Process) signalLocked(r *run, sig syscall.Signal) {
	p.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("lab: signal %v to %s: %v", sig, p.spec.name, err)
	}
}

func (p *Process) logTail() string {
	const lines = 40
	text, err := os.ReadFile(logPath(p.spec.folder))
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

func logPath(folder string) string { return filepath.Join(folder, "log") }

// frozen reports whether every thread of the process is stopped.
func frozen(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if err != nil || threadState(stat) != 'T' {
			return false
		}
	}
	return true
}

// threadState returns the state letter of a line of /proc/pid/stat, which
// follows the program's name in parentheses; 0 for anything else.
func threadState(stat []byte) byte {
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 || len(stat) < i+3 {
		return 0
	}
	return stat[i+2]
}

// program returns the path of a server's program, or ends the test with the
// remedy.
func program(t testing.TB, name string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Fatalf("lab: %s is not installed: %s", name, install)
	return ""
}
