package sessionstore

import (
	"bufio"
	"net"
	"net/http"
)

// reachable returns w with Flush and Hijack on it. A http.ResponseController
// looks for these through Unwrap, and would find them beneath our hooks, past
// the save, if w only had Unwrap.
func reachable(w http.ResponseWriter) http.ResponseWriter {
	_, flushes := w.(http.Flusher)
	_, hijacks := w.(http.Hijacker)
	_, unwraps := w.(interface{ Unwrap() http.ResponseWriter })
	if !unwraps || flushes && hijacks {
		return w
	}
	return controlled{w}
}

// controlled forwards to whatever a http.ResponseController finds.
type controlled struct{ http.ResponseWriter }

func (c controlled) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Flush drops the error, which has no place in http.Flusher.
func (c controlled) Flush() { _ = c.FlushError() }

// FlushError flushes, or says that nothing beneath can.
func (c controlled) FlushError() error {
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// Hijack takes the connection over, or says that nothing beneath can.
func (c controlled) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(c.ResponseWriter).Hijack()
}
