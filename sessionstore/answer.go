package sessionstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/felixge/httpsnoop"

	"github.com/shardhop/shardhop/internal/httpanswer"
)

// LoadAndSave loads the session of the request's cookie and saves it with the
// answer, in the place of scs's own LoadAndSave.
//
// It saves once, right before the answer's final status, its first byte, a
// Flush or a Hijack; informational answers (1xx) are not the answer. What the
// handler stores later is saved when it returns, if the client has the token
// already. When Redis fails, the client gets one whole answer of ErrorFunc, a
// 503 by default, and the handler's own answer is dropped; see Config.Optional
// for requests that can do without. A handler that panics saves nothing, if it
// had not begun to answer.
//
// A cookie goes out only when a write of this request saw the token alive.
func (m *Manager) LoadAndSave(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Cookie")
		var token string
		if cookie, err := r.Cookie(m.Cookie.Name); err == nil {
			token = cookie.Value
		}
		ctx, err := m.Load(r.Context(), token)
		if err != nil && m.optional != nil && m.optional(r) {
			ctx, err = m.loadNothing(r.Context(), err)
		}
		if err != nil {
			m.fail(w, r, err)
			return
		}
		a := &answer{manager: m, w: w, r: r.WithContext(ctx)}
		next.ServeHTTP(a.writer(), a.r)
		a.finish()
	})
}

// answer is the answer to one request. Like every http.ResponseWriter it is
// used by one goroutine at a time.
type answer struct {
	manager *Manager
	w       http.ResponseWriter
	r       *http.Request

	begun  bool // the session is saved, the headers may go out
	failed bool // the save failed and the error's page is the answer
}

// begin saves the session before the first byte goes out. False: the answer
// has been given, and what the handler writes is dropped.
func (a *answer) begin() bool {
	if !a.begun {
		a.begun = true
		if err := a.manager.save(a.w, a.r); err != nil {
			a.failed = true
			a.manager.fail(a.w, a.r, fmt.Errorf("%w: %w", ErrNotSaved, err))
		}
	}
	return !a.failed
}

// finish saves what is not saved when the handler returns.
func (a *answer) finish() {
	if !a.begun {
		a.begin()
		return
	}
	if !a.failed {
		a.manager.saveLate(a.r.Context())
	}
}

// writer returns the handler's http.ResponseWriter, with the optional
// interfaces of the one beneath.
func (a *answer) writer() http.ResponseWriter {
	return httpsnoop.Wrap(httpanswer.Controllable(a.w), httpsnoop.Hooks{
		WriteHeader: a.hookWriteHeader,
		Write:       a.hookWrite,
		WriteString: a.hookWriteString,
		ReadFrom:    a.hookReadFrom,
		Flush:       a.hookFlush,
		Hijack:      a.hookHijack,
	})
}

func (a *answer) hookWriteHeader(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
	return func(code int) {
		if httpanswer.IsInterim(code) && !a.failed || a.begin() {
			next(code)
		}
	}
}

func (a *answer) hookWrite(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
	return func(b []byte) (int, error) {
		if !a.begin() {
			return len(b), nil
		}
		return next(b)
	}
}

func (a *answer) hookWriteString(next httpsnoop.WriteStringFunc) httpsnoop.WriteStringFunc {
	return func(s string) (int, error) {
		if !a.begin() {
			return len(s), nil
		}
		return next(s)
	}
}

func (a *answer) hookReadFrom(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
	return func(src io.Reader) (int64, error) {
		if !a.begin() {
			return io.Copy(io.Discard, src)
		}
		return next(src)
	}
}

func (a *answer) hookFlush(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
	return func() {
		if a.begin() {
			next()
		}
	}
}

func (a *answer) hookHijack(next httpsnoop.HijackFunc) httpsnoop.HijackFunc {
	return func() (net.Conn, *bufio.ReadWriter, error) {
		if !a.begin() {
			return nil, nil, errors.New("sessionstore: the session could not be saved")
		}
		return next()
	}
}

// save stores the session in r's context and adds the cookie to w's headers.
func (m *Manager) save(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	var token string
	var err error
	switch m.SessionManager.Status(ctx) {
	case scs.Unmodified:
		token, err = m.refresh(ctx)
	case scs.Modified:
		token, _, err = m.Commit(ctx)
	case scs.Destroyed:
		m.WriteSessionCookie(ctx, w, "", time.Time{})
		return nil
	}
	if errors.Is(err, ErrSessionGone) {
		return nil // destroyed meanwhile: the answer stands, the session does not
	}
	if err != nil {
		return err
	}
	sc := m.store.scope(ctx)
	if expiry, ok := sc.cookie(m.storeName(token)); ok {
		m.WriteSessionCookie(ctx, w, token, expiry)
	} else if sc.wasDestroyed() {
		m.WriteSessionCookie(ctx, w, "", time.Time{})
	}
	return nil
}

// saveLate stores what changed after the answer had begun. A session without a
// stored token is left: the client could not be told about it any more.
func (m *Manager) saveLate(ctx context.Context) {
	if m.SessionManager.Status(ctx) != scs.Modified {
		return
	}
	if _, told := m.storedKey(ctx, m.store.scope(ctx)); !told {
		return
	}
	if _, _, err := m.Commit(ctx); err != nil && !errors.Is(err, ErrSessionGone) {
		m.logger.ErrorContext(ctx, "session changes after the answer are lost", "error", err)
	}
}
