package middleware_test

import (
	"compress/gzip"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

func attempts(cause error, errs ...error) error {
	err := &shardrouter.UnavailableError{Group: "g", Cause: cause}
	for _, e := range errs {
		err.Attempts = append(err.Attempts, shardrouter.Attempt{Shard: "a", Node: "10.9.8.7:3306", Err: e})
	}
	return err
}

// TestVerdicts holds the table from error to answer.
func TestVerdicts(t *testing.T) {
	tests := []struct {
		err    error
		status int
		code   string
		retry  bool
		reason string
	}{
		{attempts(shardrouter.ErrUnavailable), 503, "unavailable", true, "no candidate"},
		{attempts(shardrouter.ErrBusy), 503, "busy", true, "full"},
		{attempts(shardrouter.ErrUnavailable, context.DeadlineExceeded), 503, "unavailable", true, "the cause counts, not an attempt's error"},
		{shardrouter.ErrBusy, 503, "busy", true, "without evidence"},
		{shardrouter.ErrNestedLease, 500, "internal", false, "coming again does not help: the program is at fault"},
		{&shardrouter.OutcomeError{Shard: "a", Err: shardrouter.ErrShardDown}, 500, "outcome_unknown", false, "never an invitation to do it twice"},
		{fmt.Errorf("dig: %w", shardrouter.ErrShardDown), 503, "unavailable", true, "wrapped by the handler"},
		{shardrouter.ErrUnknownGroup, 503, "unavailable", true, "the session is older than the configuration"},
		{shardrouter.ErrUnknownShard, 503, "unavailable", true, "likewise"},
		{shardrouter.ErrClosed, 503, "unavailable", true, "shutting down"},
		{middleware.ErrContended, 503, "busy", true, "the next try meets less"},
		{fmt.Errorf("%w: %w", middleware.ErrNotStored, errors.New("redis: down")), 503, "unavailable", true, "the store will be back"},
		{&shardrouter.StatementError{Shard: "a", Progress: shardrouter.NotSent, Err: driver.ErrBadConn}, 503, "connection_lost", true, "nothing ran"},
		{&shardrouter.StatementError{Shard: "a", Progress: shardrouter.Sent, Err: mysql.ErrInvalidConn}, 503, "connection_lost", true, "it only reads"},
		{&shardrouter.StatementError{Shard: "a", Progress: shardrouter.RolledBack, Err: mysql.ErrInvalidConn}, 503, "connection_lost", true, "nothing of the transaction stays"},
		{&shardrouter.StatementError{Shard: "a", Progress: shardrouter.NotSent, Err: mysql.ErrPktTooLarge}, 500, "internal", false, "too large now and next time"},
		{&shardrouter.StatementError{Shard: "a", Err: mysql.ErrInvalidConn}, 500, "outcome_unknown", false, "never an invitation to do it twice"},
		{&shardrouter.StatementError{Shard: "a", Err: &mysql.MySQLError{Number: 1290, Message: "--read-only"}}, 500, "outcome_unknown", false, "a procedure may have run in part"},
		{driver.ErrBadConn, 503, "connection_lost", false, "something may have run"},
		{sql.ErrConnDone, 503, "connection_lost", false, "a lease that was lost"},
		{context.DeadlineExceeded, 503, "timeout", false, "the handler's own limit, under which something may have run"},
		{&shardrouter.RolledBackError{Shard: "a", Runs: 10, Err: &mysql.MySQLError{Number: 1213}}, 503, "conflict", true, "nothing of it was committed"},
		{fmt.Errorf("dig: %w", shardrouter.ErrKeyReused), 422, "key_reused", false, "the client has to choose another key"},
		{shardrouter.ErrKeyInProgress, 409, "key_in_progress", true, "nothing ran, and the first answer will be there"},
		{shardrouter.ErrNoOutcomeTable, 500, "internal", false, "the operator has to mend it"},
		{&mysql.MySQLError{Number: 1213, Message: "Deadlock found"}, 503, "conflict", true, "the server rolled it back"},
		{&mysql.MySQLError{Number: 1290, Message: "The MariaDB server is running with the --read-only option"}, 503, "read_only", true, "the statement did not run"},
		{&mysql.MySQLError{Number: 1053, Message: "Server shutdown in progress"}, 503, "connection_lost", false, "something may have run"},
		{&mysql.MySQLError{Number: 1062, Message: "Duplicate entry"}, 500, "internal", false, "the application's own to answer"},
		{sql.ErrNoRows, 500, "internal", false, "the application's own to answer"},
	}
	for _, tt := range tests {
		rec := httptest.NewRecorder()
		middleware.WriteError(rec, httptest.NewRequest(http.MethodPost, "/", nil), tt.err)
		var problem struct {
			Status      int
			Title, Code string
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &problem); err != nil {
			t.Fatalf("%v: body %q: %v", tt.err, rec.Body, err)
		}
		if rec.Code != tt.status || problem.Status != tt.status || problem.Code != tt.code || problem.Title == "" {
			t.Errorf("%v: status %d, problem %+v; want %d %s: %s", tt.err, rec.Code, problem, tt.status, tt.code, tt.reason)
		}
		if retry := rec.Header().Get("Retry-After") == "1"; retry != tt.retry {
			t.Errorf("%v: Retry-After %q: %s", tt.err, rec.Header().Get("Retry-After"), tt.reason)
		}
		if rec.Header().Get("Cache-Control") != "no-store" || rec.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%v: header %v", tt.err, rec.Header())
		}
	}
}

// TestRefusal holds that the log gets every attempt and the client none.
func TestRefusal(t *testing.T) {
	rg := newRig(t, "g/a", "g/b")
	rg.cfg.RetryAfter = 1500 * time.Millisecond
	rg.fleet.err = attempts(shardrouter.ErrUnavailable, errors.New("first refused"), errors.New("second silent"))
	for _, tt := range []struct{ method, accept, contentType string }{
		{http.MethodGet, "", "application/problem+json"},
		{http.MethodGet, "text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8"},
		{http.MethodHead, "text/html", "text/html; charset=utf-8"},
	} {
		rg.log.Reset()
		req := httptest.NewRequest(tt.method, "/", nil)
		req.Header.Set("Accept", tt.accept)
		rec := httptest.NewRecorder()
		rg.handler(ok).ServeHTTP(rec, req)
		if rec.Code != 503 || rec.Header().Get("Retry-After") != "2" || rec.Header().Get("Content-Type") != tt.contentType {
			t.Errorf("%+v: status %d, header %v", tt, rec.Code, rec.Header())
		}
		if empty := rec.Body.Len() == 0; empty != (tt.method == http.MethodHead) {
			t.Errorf("%+v: body %q", tt, rec.Body)
		}
		for _, internal := range []string{"10.9.8.7", "refused", "silent", "shardrouter", "attempt"} {
			if strings.Contains(rec.Body.String()+fmt.Sprint(rec.Header()), internal) {
				t.Errorf("%+v: the client is told %q", tt, internal)
			}
		}
		for _, evidence := range []string{"level=WARN", "10.9.8.7:3306", "first refused", "second silent"} {
			if !strings.Contains(rg.log.String(), evidence) {
				t.Errorf("the log does not say %q: %s", evidence, rg.log.String())
			}
		}
	}
}

// TestClientGone holds that a client's leaving is no trouble of ours.
func TestClientGone(t *testing.T) {
	rg := newRig(t, "g/a")
	rg.cfg.Observer.Refused = func(err error) { t.Errorf("refused: %v", err) }
	ctx, leave := context.WithCancel(context.Background())
	leave()
	handled := false
	h := rg.handler(func(http.ResponseWriter, *http.Request) { handled = true })
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
	if handled || rg.log.Len() > 0 {
		t.Errorf("handled: %v, log: %s", handled, rg.log.String())
	}
}

func TestErrorHandler(t *testing.T) {
	rg := newRig(t, "g/a")
	rg.fleet.set("a", true)
	rg.cfg.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
		if !errors.Is(err, shardrouter.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
		w.WriteHeader(http.StatusTeapot)
	}
	if rec := rg.get(ok); rec.Code != http.StatusTeapot || rec.Body.Len() > 0 || len(rec.Header()) > 0 {
		t.Errorf("status %d, header %v, body %q", rec.Code, rec.Header(), rec.Body)
	}
	rg.cfg.Lazy = true
	rec := rg.get(func(w http.ResponseWriter, r *http.Request) {
		_, err := middleware.Acquire(r.Context())
		middleware.WriteError(w, r, err)
	})
	if rec.Code != http.StatusTeapot {
		t.Errorf("WriteError: status %d", rec.Code)
	}
}

// watched counts how often somebody looks at its header.
type watched struct {
	http.ResponseWriter
	looks int
}

func (w *watched) Header() http.Header {
	w.looks++
	return w.ResponseWriter.Header()
}

// TestWriteErrorToAnotherWriter holds that a refusal goes to the writer that it
// is given and touches no other: behind http.TimeoutHandler another goroutine
// may be writing the answer in that moment.
func TestWriteErrorToAnotherWriter(t *testing.T) {
	rg := newRig(t, "g/a")
	own, outer := httptest.NewRecorder(), &watched{ResponseWriter: httptest.NewRecorder()}
	looks := 0
	rg.handler(func(_ http.ResponseWriter, r *http.Request) {
		before := outer.looks
		middleware.WriteError(own, r, context.DeadlineExceeded)
		looks = outer.looks - before
	}).ServeHTTP(outer, httptest.NewRequest(http.MethodGet, "/", nil))
	if own.Code != http.StatusServiceUnavailable || looks != 0 {
		t.Errorf("status %d, %d looks at the middleware's own writer", own.Code, looks)
	}
	if n := strings.Count(rg.log.String(), "code=timeout"); n != 1 {
		t.Errorf("%d refusals in the log, want 1: %s", n, &rg.log)
	}
}

// compressing is a writer as many applications make one.
type compressing struct {
	http.ResponseWriter
	to *gzip.Writer
}

func (c compressing) Write(b []byte) (int, error) { return c.to.Write(b) }

// TestWriteErrorCompressed holds that an answer promises no length, which is
// another one when a writer of the application compresses it.
func TestWriteErrorCompressed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := compressing{w, gzip.NewWriter(w)}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", "7") // of what the handler meant to send
		middleware.WriteError(c, r, shardrouter.ErrBusy)
		_ = c.to.Close()
	}))
	defer server.Close()
	res, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var problem struct{ Code string }
	if err := json.NewDecoder(res.Body).Decode(&problem); err != nil || problem.Code != "busy" {
		t.Errorf("code %q, %v", problem.Code, err)
	}
}
