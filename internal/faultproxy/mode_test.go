package faultproxy_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

// What a client can meet on a connection.
const (
	echoes  = "echoes"
	silent  = "silent"
	closed  = "closed"
	broken  = "reset"
	refused = "refused"
)

func TestModes(t *testing.T) {
	tests := []struct {
		mode     faultproxy.Mode
		fresh    string // a connection made in the mode
		existing string // a connection made before
		after    string // the existing one when the mode is Pass again
		reason   string
	}{
		{faultproxy.Pass, echoes, echoes, echoes, "no fault"},
		{faultproxy.Refuse, refused, echoes, echoes, "a closed port does not touch what is established"},
		{faultproxy.AcceptThenClose, closed, echoes, echoes, "only the newcomer is turned away"},
		{faultproxy.Silent, silent, silent, silent, "swallowed bytes cannot come back"},
		{faultproxy.Freeze, silent, silent, echoes, "a frozen process goes on where it stood"},
		{faultproxy.Cut, refused, broken, broken, "a crash ends everything"},
		{faultproxy.Drop, silent, silent, silent, "swallowed bytes cannot come back"},
	}
	for _, tt := range tests {
		t.Run(tt.mode.String(), func(t *testing.T) {
			p := faultproxy.New(t, newEcho(t).addr())
			conn := linked(t, p)
			p.SetMode(tt.mode)
			if got := p.Mode(); got != tt.mode {
				t.Errorf("mode = %v", got)
			}
			meet(t, tt.existing, conn, tt.reason)
			meetFresh(t, tt.fresh, p, tt.reason)

			p.SetMode(faultproxy.Pass)
			if tt.existing == silent && tt.after == echoes {
				expect(t, conn, "?") // what meet sent
			}
			meet(t, tt.after, conn, tt.reason)
			meet(t, echoes, dial(t, p), "the proxy is whole again")
		})
	}
}

// meet checks what conn does with one byte.
func meet(t *testing.T, want string, conn net.Conn, reason string) {
	t.Helper()
	t.Log(reason)
	_, err := io.WriteString(conn, "?")
	switch want {
	case echoes:
		expect(t, conn, "?")
	case silent:
		expectSilence(t, conn)
	case closed:
		expectEnd(t, conn)
	case broken:
		if err == nil {
			err = readEnd(t, conn)
		}
		if errors.Is(err, io.EOF) {
			t.Fatal("closed in an orderly way, want a reset")
		}
	}
}

func meetFresh(t *testing.T, want string, p *faultproxy.Proxy, reason string) {
	t.Helper()
	before := p.Accepted()
	if want == refused {
		if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial: %v, want it refused: %s", err, reason)
		}
		if got := p.Accepted(); got != before {
			t.Errorf("accepted %d connections while refusing", got-before)
		}
		return
	}
	meet(t, want, dial(t, p), reason)
	lab.Eventually(t, soon, "the connection is counted", func() bool { return p.Accepted() == before+1 })
}

func TestFrozenNewcomerIsServedAfterTheThaw(t *testing.T) {
	p := faultproxy.New(t, newEcho(t).addr())
	p.SetMode(faultproxy.Freeze)
	conn := dial(t, p)
	send(t, conn, "early")
	expectSilence(t, conn)
	if got := p.Dialed(); got != 0 {
		t.Errorf("dialed %d times while frozen", got)
	}
	p.SetMode(faultproxy.Pass)
	expect(t, conn, "early")
	if got := p.Dialed(); got != 1 {
		t.Errorf("dialed %d times, want 1", got)
	}
}

func TestEndOfTheClient(t *testing.T) {
	tests := []struct {
		mode   faultproxy.Mode
		told   bool
		reason string
	}{
		{faultproxy.Pass, true, "an orderly end is passed on"},
		{faultproxy.Silent, true, "the upstream is well, it is only not heard"},
		{faultproxy.Freeze, false, "the news waits like everything else"},
		{faultproxy.Drop, false, "a lost network leaves a zombie on the server"},
	}
	for _, tt := range tests {
		t.Run(tt.mode.String(), func(t *testing.T) {
			e := newEcho(t)
			p := faultproxy.New(t, e.addr())
			conn := linked(t, p)
			p.SetMode(tt.mode)
			_ = conn.Close()
			if !tt.told {
				neighbour := dial(t, p)
				expectSilence(t, neighbour)
				if e.connections() == 0 {
					t.Fatalf("the upstream was told: %s", tt.reason)
				}
				_ = neighbour.Close()
				p.SetMode(faultproxy.Pass)
			}
			lab.Eventually(t, soon, "all connections have ended: "+tt.reason, func() bool {
				return e.connections() == 0 && p.Open() == 0
			})
		})
	}
}

func TestResetIsPassedOn(t *testing.T) {
	e := newEcho(t)
	p := faultproxy.New(t, e.addr())
	conn := linked(t, p).(*net.TCPConn)
	_ = conn.SetLinger(0)
	_ = conn.Close()
	lab.Eventually(t, soon, "the upstream's connection ends", func() bool { return e.connections() == 0 })
}

func TestUpstreamGone(t *testing.T) {
	p := faultproxy.New(t, lab.FreeAddr(t))
	if conn, err := net.Dial("tcp", p.Addr()); err == nil { // the reset may come first
		expectEnd(t, conn)
		_ = conn.Close()
	}
	lab.Eventually(t, soon, "no connection is left", func() bool { return p.Open() == 0 })
	if p.Accepted() != 1 || p.Dialed() != 0 {
		t.Errorf("accepted %d, dialed %d, want 1 and 0", p.Accepted(), p.Dialed())
	}
}

func TestCloseEndsEverything(t *testing.T) {
	for _, mode := range []faultproxy.Mode{faultproxy.Pass, faultproxy.Freeze, faultproxy.Silent, faultproxy.Drop} {
		t.Run(mode.String(), func(t *testing.T) {
			p := faultproxy.New(t, newEcho(t).addr())
			before := linked(t, p)
			p.SetMode(mode)
			during := dial(t, p)
			send(t, before, "x")
			send(t, during, "x")
			lab.Eventually(t, soon, "both are open", func() bool { return p.Open() == 2 })
			p.Close()
			p.Close()
			p.SetMode(faultproxy.Pass)
			if _, err := net.Dial("tcp", p.Addr()); err == nil {
				t.Error("a closed proxy accepts")
			}
			if got := p.Open(); got != 0 {
				t.Errorf("%d connections left", got)
			}
		})
	}
}

func TestModeNames(t *testing.T) {
	if got := faultproxy.Mode(99).String(); got != "mode 99" {
		t.Errorf("String of an unknown mode = %q", got)
	}
}
