package storetest

import "net/http"

// gate holds one request, which has loaded its session, until it is opened.
type gate struct {
	arrived chan struct{}
	opened  chan struct{}
}

// gated serves path with handler behind a gate.
func (s *site) gated(path string, handler http.HandlerFunc) *gate {
	g := &gate{make(chan struct{}), make(chan struct{})}
	s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		close(g.arrived)
		<-g.opened
		handler(w, r)
	})
	return g
}

// during sends path, lets meanwhile run while its handler stands in the gate,
// and returns its answer.
func (g *gate) during(b *browser, path string, meanwhile func()) page {
	b.site.t.Helper()
	type result struct {
		page
		error
	}
	answered := make(chan result, 1)
	go func() {
		p, err := b.try(path)
		answered <- result{p, err}
	}()
	select {
	case <-g.arrived:
	case early := <-answered:
		b.site.t.Fatalf("GET %s did not come to its gate: %d, %v", path, early.status, early.error)
	}
	func() {
		defer close(g.opened) // also when meanwhile ends the test
		meanwhile()
	}()
	late := <-answered
	if late.error != nil {
		b.site.t.Fatalf("GET %s: %v", path, late.error)
	}
	return late.page
}
