package httpanswer

import "net/http"

// Controllable returns w with Flush and Hijack on it, for a caller that is
// about to hook them. A [http.ResponseController] finds these through Unwrap
// too, and there it would go past the hooks. A w that has both comes back as
// it is, and so does one without Unwrap: nothing is made up that was not
// within reach. What nothing beneath w supports says so with
// [http.ErrNotSupported]; only Flush, which has no error, stays silent.
//
// The result is as safe for use by several goroutines as w.
func Controllable(w http.ResponseWriter) http.ResponseWriter {
	_, unwraps := w.(interface{ Unwrap() http.ResponseWriter })
	_, flushes := w.(http.Flusher)
	_, hijacks := w.(http.Hijacker)
	if !unwraps || flushes && hijacks {
		return w
	}
	return controlled{w, http.NewResponseController(w)}
}

// controlled has all methods of a controller on the writer itself.
type controlled struct {
	http.ResponseWriter
	*http.ResponseController
}

func (c controlled) Unwrap() http.ResponseWriter { return c.ResponseWriter }
func (c controlled) FlushError() error           { return c.ResponseController.Flush() }
func (c controlled) Flush()                      { _ = c.FlushError() } // http.Flusher knows no error
