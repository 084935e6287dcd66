package sessionstore_test

// gate holds a handler until it is opened.
type gate struct {
	arrived chan struct{}
	opened  chan struct{}
}

func newGate() *gate { return &gate{make(chan struct{}), make(chan struct{})} }

// wait is called by the handler, which has loaded its session.
func (g *gate) wait() {
	close(g.arrived)
	<-g.opened
}

// during sends path, lets fn run while its handler waits, and returns its
// answer.
func (g *gate) during(b *browser, path string, fn func()) page {
	b.site.t.Helper()
	answered := make(chan page, 1)
	failed := make(chan error, 1)
	go func() {
		p, err := b.try(path)
		if err != nil {
			failed <- err
			return
		}
		answered <- p
	}()
	select {
	case <-g.arrived:
	case err := <-failed:
		b.site.t.Fatal(err)
	}
	fn()
	close(g.opened)
	select {
	case p := <-answered:
		return p
	case err := <-failed:
		b.site.t.Fatal(err)
		return page{}
	}
}
