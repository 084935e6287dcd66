package app_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// stream is an open stream of events.
type stream struct {
	data chan string // closed at the end of the stream
}

// listen opens a stream as c. It ends with ctx.
func listen(ctx context.Context, t *testing.T, c *client) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, "GET", c.base+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Jar: c.http.Jar, Transport: c.http.Transport}).Do(req) //nolint:bodyclose // the goroutine below closes it
	if err != nil {
		t.Fatal(err)
	}
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("events: %d %s", res.StatusCode, kind)
	}
	s := &stream{data: make(chan string, 16)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.data)
		defer func() { _ = res.Body.Close() }()
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				s.data <- data
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

// next waits for an event and checks that it holds text.
func (s *stream) next(t *testing.T, text string) {
	t.Helper()
	select {
	case data, ok := <-s.data:
		if !ok || !strings.Contains(data, text) {
			t.Errorf("event %q (stream open: %v), want %s", data, ok, text)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("no event, want %s", text)
	}
}

// ends waits for the end of the stream.
func (s *stream) ends(t *testing.T) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case _, open := <-s.data:
			if !open {
				return
			}
		case <-deadline:
			t.Error("the stream did not end")
			return
		}
	}
}

func TestOnePlayerCannotTakeEveryStream(t *testing.T) {
	game := start(t)
	ann, bob := newClient(t, game.URL()), newClient(t, game.URL())
	ann.register("ann")
	bob.register("bob")
	others := listen(t.Context(), t, bob)
	others.next(t, "shard")
	var streams []*stream
	for range 9 { // one more than a player can have
		s := listen(t.Context(), t, ann)
		s.next(t, "shard")
		streams = append(streams, s)
	}
	streams[0].next(t, "{}") // says that it makes way
	streams[0].ends(t)
	ann.want(http.StatusNoContent, "POST", "/api/logout", "")
	for _, s := range streams[1:] {
		s.ends(t)
	}
	select {
	case data := <-others.data:
		t.Errorf("bob's stream: %q", data)
	default:
	}
}

func TestHeadOfTheStreamEndsAtOnce(t *testing.T) {
	game := start(t)
	ann := newClient(t, game.URL())
	ann.register("ann")
	if got := ann.want(http.StatusOK, "HEAD", "/api/events", ""); got.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: %v", got.header)
	}
}
