package faultproxy_test

import (
	"testing"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/internal/lab"
)

func TestCutWithin(t *testing.T) {
	tests := []struct {
		from               faultproxy.Side
		n                  int
		received, answered string
		reason             string
	}{
		{faultproxy.Client, 0, "", "", "nothing passes"},
		{faultproxy.Client, 2, "CO", "CO", "the beginning passes, and is answered or not"},
		{faultproxy.Upstream, 0, "COMMIT", "", "no answer passes"},
		{faultproxy.Upstream, 5, "COMMIT", "COMMI", "the beginning of the answer passes"},
	}
	for _, tt := range tests {
		e := newEcho(t)
		p := faultproxy.New(t, e.addr())
		other, conn := linked(t, p), linked(t, p)
		p.CutWithin(conn.LocalAddr().String(), tt.from, tt.n)
		send(t, conn, "COMMIT")
		if tt.from == faultproxy.Upstream && tt.n > 0 {
			expect(t, conn, tt.answered)
			expectEnd(t, conn)
		}
		want := "hellohello" + tt.received
		lab.Eventually(t, soon, "the upstream got "+want+": "+tt.reason, func() bool { return e.received() == want })
		lab.Eventually(t, soon, "the link has ended", func() bool { return p.Open() == 1 })
		send(t, other, "COMMIT")
		expect(t, other, "COMMIT")
	}

	e := newEcho(t)
	p := faultproxy.New(t, e.addr())
	conn := linked(t, p)
	p.CutWithin(conn.LocalAddr().String(), faultproxy.Client, len("COMMIT"))
	send(t, conn, "COMMIT")
	expect(t, conn, "COMMIT") // all of it passes
	send(t, conn, "x")
	expectEnd(t, conn)
}
