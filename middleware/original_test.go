package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	chimw "github.com/go-chi/chi/v5/middleware"

	"github.com/shardhop/shardhop/middleware"
)

// trace runs a router built by mount, on which /games/chess/moves/7 exists, and
// holds that the run which loses its connection and the one after it see the
// same request.
func trace(t *testing.T, mount func(lend func(http.Handler) http.Handler, h http.HandlerFunc) http.Handler) {
	t.Helper()
	tw := failing(t, nil)
	var seen []string
	h := mount(middleware.NewOn(tw.cfg, tw.fleet, tw.fleet), func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, view(r))
		spoil(r)
		tw.ServeHTTP(w, r)
	})
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/games/chess/moves/7?q=1", nil)
	req.Header.Add("X-Hop", "1")
	tw.sessions.load(h).ServeHTTP(rec, req)
	tw.want(t, 2, http.StatusOK, rec.Code)
	if len(seen) == 2 && seen[0] != seen[1] {
		t.Errorf("the runs saw\n%s\n%s", seen[0], seen[1])
	}
}

// view is what a handler can read of its request.
func view(r *http.Request) string {
	text := fmt.Sprint(r.Method, " ", r.URL, " ", r.Pattern, " ", r.Header, " ", r.Form, " ", r.PostForm)
	text += fmt.Sprint(" game=", r.PathValue("game"), " move=", r.PathValue("move"))
	if rc := chi.RouteContext(r.Context()); rc != nil {
		text += fmt.Sprint(" chi game=", rc.URLParam("game"), " move=", rc.URLParam("move"),
			" pattern=", rc.RoutePattern(), " path=", rc.RoutePath, " ", rc.URLParams)
	}
	return text
}

// spoil changes in place what middlewares and handlers do change.
func spoil(r *http.Request) {
	_ = r.ParseForm()
	r.Form.Set("q", "2")
	r.URL.Path, r.URL.RawQuery = "/elsewhere", "q=2"
	r.Header.Set("X-Hop", "2")
	r.Header["X-New"] = []string{"3"}
	if rc := chi.RouteContext(r.Context()); rc != nil {
		rc.RoutePath = "/elsewhere"
		for i := range rc.URLParams.Values {
			rc.URLParams.Values[i] = "spoiled"
		}
	}
}

// TestReplaySeesTheSameRequest holds that on whichever router and wherever the
// middleware is mounted, a second run finds the request as the first did.
func TestReplaySeesTheSameRequest(t *testing.T) {
	type lend = func(http.Handler) http.Handler
	nested := func(use func(r chi.Router, depth int), h http.HandlerFunc) http.Handler {
		root := chi.NewRouter()
		use(root, 0)
		root.Route("/games/{game}", func(r chi.Router) {
			use(r, 1)
			moves := chi.NewRouter()
			use(moves, 2)
			moves.Get("/{move}", h)
			r.Mount("/moves", moves)
		})
		return root
	}
	mounts := map[string]func(l lend, h http.HandlerFunc) http.Handler{
		"around chi": func(l lend, h http.HandlerFunc) http.Handler {
			return l(nested(func(chi.Router, int) {}, h))
		},
		"chi inline": func(l lend, h http.HandlerFunc) http.Handler {
			root := chi.NewRouter()
			root.With(l).Get("/games/{game}/moves/{move}", h)
			return root
		},
		"ServeMux": func(l lend, h http.HandlerFunc) http.Handler {
			mux := http.NewServeMux()
			mux.HandleFunc("GET /games/{game}/moves/{move}", h)
			return l(mux)
		},
		"ServeMux inside": func(l lend, h http.HandlerFunc) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("GET /games/{game}/moves/{move}", l(h))
			return mux
		},
		"ServeMux in ServeMux": func(l lend, h http.HandlerFunc) http.Handler {
			inner, outer := http.NewServeMux(), http.NewServeMux()
			inner.HandleFunc("GET /{game}/moves/{move}", h)
			outer.Handle("/games/", l(http.StripPrefix("/games", inner)))
			return outer
		},
		"form parsed outside": func(l lend, h http.HandlerFunc) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = r.ParseForm()
				l(h).ServeHTTP(w, r)
			})
		},
		"path rewritten inside": func(l lend, h http.HandlerFunc) http.Handler {
			root := chi.NewRouter()
			root.Use(l, chimw.CleanPath, chimw.StripSlashes, chimw.GetHead)
			root.Get("/games/{game}/moves/{move}", h)
			return root
		},
	}
	for depth := range 3 {
		mounts[fmt.Sprint("chi at depth ", depth)] = func(l lend, h http.HandlerFunc) http.Handler {
			return nested(func(r chi.Router, d int) {
				if d == depth {
					r.Use(l)
				}
			}, h)
		}
	}
	for name, mount := range mounts {
		t.Run(name, func(t *testing.T) { trace(t, mount) })
	}
}

// TestReplayRecovered holds that a panic which a Recoverer within the
// middleware makes a 500 of is such an answer as any other.
func TestReplayRecovered(t *testing.T) {
	tw := failing(t, func(http.ResponseWriter, *http.Request) { panic("invalid connection") })
	rec := httptest.NewRecorder()
	quiet := chimw.RequestLogger(&chimw.DefaultLogFormatter{Logger: discard{}, NoColor: true})
	h := middleware.NewOn(tw.cfg, tw.fleet, tw.fleet)(quiet(chimw.Recoverer(tw)))
	tw.sessions.load(h).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	tw.want(t, 2, http.StatusOK, rec.Code)
}

type discard struct{}

func (discard) Print(...any) {}
