package storetest

import (
	"bufio"
	"io"
	"net/http"
	"testing"
)

func streamCases() []Case {
	return []Case{
		{"a handler that flushes first keeps the new session", flushesFirst(func(w http.ResponseWriter) { w.(http.Flusher).Flush() })},
		{"a handler that flushes first through a ResponseController keeps the new session", flushesFirst(func(w http.ResponseWriter) {
			_ = http.NewResponseController(w).Flush()
		})},
		{"server-sent events arrive one by one, and what is stored meanwhile is kept", serverSentEvents},
		{"a stream that began before a logout does not bring the session back", streamAcrossLogout},
	}
}

func flushesFirst(flush func(http.ResponseWriter)) func(testing.TB, Harness) {
	return func(t testing.TB, open Harness) {
		s := newSite(t, open)
		s.mux.HandleFunc("/flush", func(w http.ResponseWriter, r *http.Request) {
			s.put(w, r)
			flush(w)
			_, _ = io.WriteString(w, "done")
		})
		b := s.browser()
		if p := b.visit("/flush?a=1"); p.body != "done" || !p.setsCookie() {
			t.Errorf("%q, cookie %q", p.body, p.header["Set-Cookie"])
		}
		s.want(b, "a", "1")
	}
}

// stream is an answer of which the client reads one line at a time.
type stream struct {
	body  io.Closer
	lines *bufio.Scanner
	next  chan string // the server's events
}

// streaming serves events to one client: what is sent to next, and nothing
// more once it is closed. A handler that is told to store does so.
func (s *site) streaming(b *browser, query string) *stream {
	s.t.Helper()
	next := make(chan string)
	s.mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		for event := range next {
			_, _ = io.WriteString(w, "data: "+event+"\n")
			if err := http.NewResponseController(w).Flush(); err != nil {
				s.t.Errorf("flush: %v", err)
			}
		}
		s.put(w, r)
	})
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/events?"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	go func() { next <- "hello" }() // the headers come with the first flush
	res, err := b.client.Do(req)
	if err != nil {
		close(next)
		s.t.Fatal(err)
	}
	st := &stream{body: res.Body, lines: bufio.NewScanner(res.Body), next: next}
	s.t.Cleanup(func() { _ = res.Body.Close() })
	if got := st.line(); got != "data: hello" {
		s.t.Errorf("the first event is %q", got)
	}
	return st
}

func (st *stream) line() string {
	st.lines.Scan()
	return st.lines.Text()
}

// end closes the stream from the server's side and reads the rest.
func (st *stream) end() {
	close(st.next)
	for st.lines.Scan() {
	}
}

func serverSentEvents(t testing.TB, open Harness) {
	s := newSite(t, open)
	b := s.browser()
	b.visit("/put?uid=7")
	st := s.streaming(b, "seen=2")
	for _, event := range []string{"one", "two"} {
		st.next <- event
		if got := st.line(); got != "data: "+event {
			t.Errorf("got %q, want event %q", got, event)
		}
	}
	b.visit("/put?theirs=1") // the stream holds nothing up
	st.end()
	s.want(b, "uid", "7", "theirs", "1", "seen", "2")
}

func streamAcrossLogout(t testing.TB, open Harness) {
	s := newSite(t, open)
	b := s.browser()
	b.visit("/put?uid=7")
	token := b.token()
	st := s.streaming(b, "seen=2")
	b.visit("/logout")
	st.end()
	s.wantStored(0)
	b.plant(token)
	s.want(b, "uid", "", "seen", "")
}
