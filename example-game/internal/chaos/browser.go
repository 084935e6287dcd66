package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"strings"
	"time"
)

// patience is how long a player waits for an answer.
const patience = 60 * time.Second

// call is a request of a player.
type call struct {
	method, path string
	body         string // JSON; "" for none
	key          string // Idempotency-Key; "" for none
}

// answer is what became of a call.
type answer struct {
	status int
	header http.Header
	body   string
	took   time.Duration
	sent   int   // how often the transport sent the call
	err    error // instead of all but took and sent
}

// browser sends the calls of one player, with the player's cookie. It is for
// one goroutine at a time.
type browser struct {
	base      string
	client    *http.Client
	transport *http.Transport
}

func newBrowser(base string) *browser {
	jar, _ := cookiejar.New(nil) // fails never
	transport := &http.Transport{}
	return &browser{base: base, transport: transport, client: &http.Client{Jar: jar, Transport: transport, Timeout: patience}}
}

func (b *browser) close() { b.transport.CloseIdleConnections() }

// do sends c and waits for the answer.
func (b *browser) do(c call) (a answer) {
	began := time.Now()
	defer func() { a.took = time.Since(began) }()
	trace := &httptrace.ClientTrace{WroteHeaders: func() { a.sent++ }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(context.Background(), trace), c.method, b.base+c.path, strings.NewReader(c.body))
	if err != nil {
		return answer{err: err}
	}
	if c.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Idempotency-Key", c.key)
	}
	res, err := b.client.Do(req)
	if err != nil {
		a.err = err
		return a
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	a.status, a.header, a.body, a.err = res.StatusCode, res.Header, string(body), err
	return a
}

// treasure is the part of an answer that tells the player's gold.
type treasure struct {
	Gold int64 `json:"gold"`
}

func (a answer) gold() int64 {
	var t treasure
	_ = json.Unmarshal([]byte(a.body), &t)
	return t.Gold
}

// code is that of an error's problem document.
func (a answer) code() string {
	var problem struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal([]byte(a.body), &problem)
	return problem.Code
}

// failure says what is wrong with the answer, in words that are the same for
// the same trouble; "" when nothing is.
func (a answer) failure() string {
	switch {
	case a.err != nil:
		return "no answer: " + a.err.Error()
	case a.sent > 1:
		return fmt.Sprintf("sent %d times by the client's transport", a.sent)
	case a.status == http.StatusOK, a.status == http.StatusConflict && a.code() == "not_enough_gold":
		return ""
	}
	return fmt.Sprintf("%d %s", a.status, a.code())
}
