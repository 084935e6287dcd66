package middleware_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

func TestNewPanics(t *testing.T) {
	fleet := newFleet(t, "g/a", "h/b")
	store := &sessions{}
	for want, fn := range map[string]func(){
		"Config.Router is nil":   func() { middleware.New(middleware.Config{Sessions: store}) },
		"Config.Sessions is nil": func() { middleware.New(middleware.Config{Router: &shardrouter.Router{}}) },
		"use one of g, h":        func() { middleware.NewOn(middleware.Config{Sessions: store, Group: "q"}, fleet, fleet) },
		"ClaimTimeout is negative": func() {
			middleware.NewOn(middleware.Config{Sessions: store, ClaimTimeout: -1}, fleet, fleet)
		},
		"RetryAfter is negative": func() {
			middleware.NewOn(middleware.Config{Sessions: store, RetryAfter: -1}, fleet, fleet)
		},
		"MaxRuns is negative": func() {
			middleware.NewOn(middleware.Config{Sessions: store, MaxRuns: -1}, fleet, fleet)
		},
		"ReplayBuffer is negative": func() {
			middleware.NewOn(middleware.Config{Sessions: store, ReplayBuffer: -1}, fleet, fleet)
		},
	} {
		if text := panicOf(fn); !strings.Contains(text, want) {
			t.Errorf("panics with %q, want %q in it", text, want)
		}
	}
}

func TestGroup(t *testing.T) {
	rg := newRig(t, "g/a", "h/x")
	rg.cfg.Group = "h"
	if rec := rg.get(ok); rec.Header().Get("X-Shard") != "x" {
		t.Errorf("served by %q", rec.Header().Get("X-Shard"))
	}
}

func TestNoShardHeader(t *testing.T) {
	rg := newRig(t, "g/a")
	rg.cfg.ShardHeader = ""
	if rec := rg.get(ok); len(rec.Header()) != 0 {
		t.Errorf("header %v", rec.Header())
	}
}

// TestClientHasNoSay holds that the route is the session's, whatever the client
// sends.
func TestClientHasNoSay(t *testing.T) {
	names := []string{"server", "db_server", "shard", "X-Shard", "group", "home", "route", "realm"}
	with := map[string]func(name string) *http.Request{
		"header": func(name string) *http.Request {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set(name, "b")
			return r
		},
		"cookie": func(name string) *http.Request {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.AddCookie(&http.Cookie{Name: name, Value: "b"})
			return r
		},
		"query": func(name string) *http.Request {
			return httptest.NewRequest(http.MethodGet, "/?"+name+"=b", nil)
		},
		"form": func(name string) *http.Request {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(url.Values{name: {"b"}}.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			return r
		},
		"json": func(name string) *http.Request {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"`+name+`":"b"}`))
			r.Header.Set("Content-Type", "application/json")
			return r
		},
	}
	for place, request := range with {
		for _, name := range names {
			for _, stored := range []middleware.Route{{}, home("g", "a", 1)} {
				rg := newRig(t, "g/a", "g/b", "h/x")
				rg.sessions.stored = stored
				req := request(name)
				sent, _ := io.ReadAll(req.Body)
				req.Body = io.NopCloser(bytes.NewReader(sent))
				rec := httptest.NewRecorder()
				rg.handler(func(_ http.ResponseWriter, r *http.Request) {
					if got, _ := io.ReadAll(r.Body); !bytes.Equal(got, sent) {
						t.Errorf("%s %s: the handler reads %q of %q", place, name, got, sent)
					}
				}).ServeHTTP(rec, req)
				if rec.Header().Get("X-Shard") != "a" || rg.sessions.route() != home("g", "a", 1) {
					t.Errorf("%s %s: served by %q, stored %+v", place, name, rec.Header().Get("X-Shard"), rg.sessions.route())
				}
			}
		}
	}
}
